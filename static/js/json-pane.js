// @ts-check
/*
 * The JSON beside a form of the catalog. The form is checked while it changes; the
 * answer brings its document, which this puts into the pane, unless somebody typed
 * there. What is typed goes to the server, which answers with the form (hx-post on the
 * textarea). Parts of the form that were unfolded stay so when it is exchanged, and it
 * knows which fields were left.
 * loom.js imports this where a page has such a pane.
 */

/** @param {HTMLDetailsElement} pane */
export function enhance(pane) {
  const area = pane.querySelector('textarea');
  const parts = document.getElementById('form-parts');
  const check = document.getElementById('validation');
  if (pane.dataset.ready || !area || !parts || !check) return;
  pane.dataset.ready = '1';

  // What the area held when it last said the same as the form; null: it never did.
  /** @type {string | null} */
  let same = pane.dataset.typed ? null : area.value;
  const typing = () => document.activeElement === area;

  new MutationObserver(() => {
    const draft = /** @type {HTMLTextAreaElement | null} */ (check.querySelector('[data-draft]'));
    if (!draft || area.value !== same || typing() || draft.value === same) return;
    const { scrollTop } = area;
    area.value = same = draft.value;
    area.scrollTop = scrollTop;
    area.dispatchEvent(new Event('loom:set'));
    const of = /** @type {HTMLInputElement | null} */ (pane.querySelector('[name="json.of"]'));
    if (of) of.value = draft.dataset.draft ?? '';
  }).observe(check, { childList: true, subtree: true });

  new MutationObserver(() => {
    const said = pane.querySelector('#json-said');
    if (said?.hasAttribute('data-took')) same = area.value;
  }).observe(pane, { childList: true, subtree: true });

  area.addEventListener('input', () => {
    const form = area.form;
    if (form) form.dataset.dirty = '1';
  });

  // Fields that somebody has left are told to the server: what is wrong in others is no
  // mistake yet. Who only passed by an empty one has not been there.
  const left = /** @type {HTMLInputElement | null} */ (parts.closest('form')?.querySelector('[data-left]') ?? null);
  /** @type {WeakSet<EventTarget>} */
  const edited = new WeakSet();
  parts.addEventListener('input', (event) => { if (event.target) edited.add(event.target); });
  parts.addEventListener('focusout', (event) => {
    const control = /** @type {HTMLInputElement} */ (event.target);
    if (!left || left.value === '*' || !control.value && !edited.has(control)) return;
    const ids = new Set(left.value.split(' ').filter(Boolean));
    const { size } = ids;
    for (let at = /** @type {Element | null} */ (control); at && at !== parts; at = at.parentElement) {
      if (at.id && (at === control || at.matches('fieldset') && !at.contains(/** @type {Node | null} */ (event.relatedTarget)))) ids.add(at.id);
    }
    if (ids.size === size) return;
    left.value = [...ids].join(' ');
    if (left.form?.dataset.dirty) parts.dispatchEvent(new Event('loom:left'));
  });

  /** @type {Set<string>} */
  const open = new Set();
  /** @param {Element} fold */
  const name = (fold) => `${fold.closest('section, [role=group]')?.getAttribute('aria-label') ?? fold.closest('section')?.id}/${fold.querySelector('summary')?.textContent?.split(':')[0]}`;
  parts.addEventListener('toggle', (event) => {
    const fold = /** @type {HTMLDetailsElement} */ (event.target);
    if (fold.isConnected) open[fold.open ? 'add' : 'delete'](name(fold));
  }, true);
  new MutationObserver(() => {
    for (const fold of parts.querySelectorAll('details')) if (open.has(name(fold))) fold.open = true;
  }).observe(parts, { childList: true, subtree: true });
}
