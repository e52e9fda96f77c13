// @ts-check
/*
 * A panel beside a plan, in which its tasks open, or beside a node, in which journals do. It
 * has the address of the task's page:
 * a reload shows that page, Back and Esc close the panel and give the focus back to
 * where it came from. Where there is no room beside, links lead to the page as they do
 * without scripts. On the page itself this only notices when Back leads to the plan that
 * the panel was beside. loom.js imports it where there are tasks.
 */

const doc = document;
const room = matchMedia('(min-width: 64rem)');

/** @param {HTMLElement} part the panel, or the content of a task's page */
export function enhance(part) {
  if (part.dataset.ready) return;
  part.dataset.ready = '1';
  if (part.dataset.tasks) panel(part, part.dataset.tasks, new RegExp(`^${part.dataset.rest}$`));
  else {
    const own = location.pathname;
    // Browsers take the plan's address for this document, since the panel had been part of it.
    addEventListener('popstate', () => { if (part.isConnected && location.pathname !== own) location.reload(); });
  }
}

/** @param {HTMLElement} side @param {string} tasks what addresses of tasks begin with @param {RegExp} rest how they go on */
function panel(side, tasks, rest) {
  const body = /** @type {HTMLElement} */ (side.querySelector('.c-side-body'));
  const page = /** @type {HTMLAnchorElement} */ (side.querySelector('[data-side-page]'));
  const plan = location.pathname + location.search;
  let from = '';

  /** The task that a link leads to. @param {string | null} href */
  const taskOf = (href) => {
    const url = new URL(href ?? '', location.href);
    const end = url.pathname.startsWith(tasks) ? url.pathname.slice(tasks.length) : '';
    return url.origin === location.origin && rest.test(end) && !url.searchParams.has('lines') ? url : null;
  };
  /** Links to a task, in the plan. @param {string} path */
  const links = (path) => /** @type {HTMLElement[]} */ ([...doc.querySelectorAll('#main a[href]')])
    .filter((a) => !side.contains(a) && taskOf(a.getAttribute('href'))?.pathname === path);

  /** @param {string} path "" for none */
  const choose = (path) => {
    for (const old of doc.querySelectorAll('[data-chosen]')) old.removeAttribute('data-chosen');
    if (path) for (const link of links(path)) link.dataset.chosen = '';
  };

  /** @param {URL} url */
  async function show(url) {
    const address = url.pathname + url.search;
    page.href = address;
    side.hidden = false;
    side.setAttribute('aria-busy', 'true');
    choose(url.pathname);
    await /** @type {any} */ (window).htmx.ajax('GET', address, { source: body, target: body, swap: 'innerHTML' }).catch(() => {});
    side.removeAttribute('aria-busy');
    if (side.hidden || location.pathname + location.search !== address) return; // another one was chosen meanwhile
    if (!body.querySelector('#task-side-title')) { location.reload(); return; } // an error: the page itself says which
    /** @type {HTMLElement | null} */ (body.querySelector('[tabindex="-1"]'))?.focus();
    links(url.pathname).find((link) => link.checkVisibility())?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  function hide() {
    if (side.hidden) return;
    side.hidden = true;
    body.replaceChildren();
    choose('');
    const back = links(from).filter((link) => link.checkVisibility());
    (back.find((link) => link === opener) ?? back[0] ?? doc.getElementById('main'))?.focus();
  }

  /** @type {Element | null} */
  let opener = null;
  doc.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('#main a[href]') : null;
    const url = link && room.matches && !event.defaultPrevented && event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey
      ? taskOf(link.getAttribute('href')) : null;
    if (!link || !url || link === page) return;
    event.preventDefault();
    const open = !side.hidden;
    if (!side.contains(link)) [opener, from] = [link, url.pathname];
    history[open ? 'replaceState' : 'pushState']({ side: true }, '', url.pathname + url.search);
    show(url);
  });

  const close = () => {
    if (history.state?.side) { history.back(); return; }
    history.pushState(null, '', plan); // a line of the log was chosen since
    hide();
  };
  side.querySelector('[data-side-close]')?.addEventListener('click', close);
  doc.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || side.hidden || event.defaultPrevented || doc.querySelector('dialog[open], :popover-open')) return;
    event.preventDefault();
    close();
  });
  addEventListener('popstate', () => {
    const url = taskOf(location.href);
    if (!url) { if (location.pathname + location.search === plan) hide(); else location.reload(); return; }
    if (side.hidden || taskOf(page.href)?.pathname !== url.pathname) { from ||= url.pathname; show(url); }
  });
}
