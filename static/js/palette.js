// @ts-check
/*
 * The command palette: a combobox in a dialog that loom.js opens, on Ctrl+K and by the
 * search button of the header. What is found comes from the server while one types.
 * loom.js imports this on every page.
 */

const doc = document;

/** @param {HTMLElement} opener */
export function enhance(opener) {
  const dialog = /** @type {HTMLDialogElement | null} */ (doc.getElementById('palette'));
  if (!dialog || dialog.dataset.ready) return;
  dialog.dataset.ready = '1';
  const input = /** @type {HTMLInputElement} */ (dialog.querySelector('input'));
  const list = /** @type {HTMLElement} */ (dialog.querySelector('[role=listbox]'));
  const count = /** @type {HTMLElement} */ (doc.getElementById('palette-count'));
  const options = () => /** @type {HTMLElement[]} */ ([...list.querySelectorAll('[role=option]')]);
  const current = () => /** @type {HTMLElement | null} */ (list.querySelector('[aria-selected=true]'));
  let asked = 0;
  let timer = 0;

  /** @param {HTMLElement | undefined} option */
  const choose = (option) => {
    current()?.setAttribute('aria-selected', 'false');
    option?.setAttribute('aria-selected', 'true');
    option?.scrollIntoView({ block: 'nearest' });
    if (option) input.setAttribute('aria-activedescendant', option.id); else input.removeAttribute('aria-activedescendant');
  };

  const ask = async () => {
    const url = new URL(opener.dataset.palette ?? '', location.href);
    url.searchParams.set('q', input.value.trim());
    url.searchParams.set('at', location.pathname);
    asked += 1;
    const turn = asked;
    list.setAttribute('aria-busy', 'true');
    try {
      const answer = await fetch(url, { headers: { 'HX-Request': 'true' } });
      if (turn !== asked) return;
      if (answer.status === 401) { dialog.close(); doc.dispatchEvent(new CustomEvent('loom:signin')); return; }
      if (!answer.ok) throw new Error(String(answer.status));
      list.innerHTML = await answer.text();
      input.setAttribute('aria-expanded', String(options().length > 0));
      choose(options()[0]);
      count.textContent = /** @type {HTMLElement | null} */ (list.querySelector('[data-count]'))?.dataset.count ?? '';
    } catch {
      if (turn === asked) count.textContent = list.textContent = 'Loom does not answer.';
    } finally {
      if (turn === asked) list.removeAttribute('aria-busy');
    }
  };


  /** @param {HTMLElement} option */
  const go = (option) => {
    if (!option.dataset.post) { dialog.close(); location.assign(option.getAttribute('href') ?? ''); return; }
    const form = doc.createElement('form');
    form.method = 'post';
    form.action = option.dataset.post;
    form.append(Object.assign(doc.createElement('input'), { type: 'hidden', name: 'from', value: location.pathname + location.search }));
    doc.body.append(form);
    form.submit();
  };

  input.addEventListener('input', () => { clearTimeout(timer); timer = window.setTimeout(ask, 120); });
  input.addEventListener('keydown', (event) => {
    const all = options();
    const at = all.indexOf(/** @type {any} */ (current()));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 8, PageUp: at - 8 }[event.key];
    if (to !== undefined && all.length) {
      event.preventDefault();
      const step = Math.abs(to - at) === 1;
      choose(all[step ? (to + all.length) % all.length : Math.max(0, Math.min(all.length - 1, to))]);
    } else if (event.key === 'Escape') {
      // A search field would only empty itself.
      event.preventDefault();
      dialog.close();
    }
  });
  // Enter: what is chosen, or with nothing found the page of the search.
  dialog.addEventListener('submit', (event) => {
    const option = current();
    if (option) { event.preventDefault(); go(option); }
  });
  list.addEventListener('click', (event) => {
    const option = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('[role=option]'));
    const mouse = /** @type {MouseEvent} */ (event);
    if (!option || (!option.dataset.post && (mouse.ctrlKey || mouse.metaKey || mouse.shiftKey))) return;
    event.preventDefault();
    go(option);
  });
  list.addEventListener('pointermove', (event) => {
    const option = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('[role=option]'));
    if (option && option !== current()) choose(option);
  });
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  doc.addEventListener('loom:palette', () => { list.replaceChildren(); ask(); });
  if (dialog.open) ask(); // loom.js opened it before
}
