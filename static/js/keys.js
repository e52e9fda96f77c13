// @ts-check
/*
 * Shortcuts of single keys (the page behind "Keyboard help" lists them). They do
 * nothing while one types in a field or a dialog is open, nor where somebody turned
 * them off (data-keys-off). loom.js imports this on every page.
 */

const doc = document;
const places = { c: '/clusters', t: '/catalog', a: '/activity' };
/** How long a second key may take, in milliseconds. */
const patience = 1500;

/** @param {HTMLElement} help */
export function enhance(help) {
  if (help.dataset.ready) return;
  help.dataset.ready = '1';
  let since = 0;
  doc.addEventListener('keydown', (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (doc.documentElement.hasAttribute('data-keys-off') || doc.querySelector('dialog[open]')) return;
    if (target.closest?.('input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]')) return;
    const second = Date.now() - since < patience;
    since = 0;
    const place = second ? places[/** @type {'c'} */ (event.key)] : undefined;
    if (place) { event.preventDefault(); location.assign(place); return; }
    if (event.key === 'g') { since = Date.now(); return; }
    const act = { '/': search, n: create, e: edit, o: follow, '.': menu, j: () => move(1), k: () => move(-1), x: select, '?': () => help.click() }[event.key];
    if (act) { event.preventDefault(); act(); }
  });
}

/** @param {string} selector @returns {HTMLElement | undefined} */
const visible = (selector) => /** @type {HTMLElement[]} */ ([...doc.querySelectorAll(selector)]).find((e) => e.checkVisibility());

function search() {
  const field = visible('main input[type=search]');
  if (field) field.focus(); else doc.dispatchEvent(new CustomEvent('loom:search'));
}

function create() {
  const button = visible('main .l-page-head a.c-button[data-kind=primary][href*="/new"]');
  if (button) button.click(); else location.assign('/clusters/new');
}

/** Opens what the page is about: the first link of a cluster's services. */
function follow() { visible('main a[data-open]')?.click(); }

/** Opens the menu of the page. */
function menu() { visible('main .l-page-head button[popovertarget]')?.click(); }

function edit() { visible('main a[href$="/edit"]')?.click(); }

const rows = () => /** @type {HTMLElement[]} */ ([...doc.querySelectorAll('main tbody tr:has(a)')]).filter((row) => row.checkVisibility());
const here = () => /** @type {HTMLElement | null} */ (doc.activeElement?.closest('main tbody tr') ?? null);

/** @param {number} by */
function move(by) {
  const all = rows();
  if (!all.length) return;
  const row = here();
  const at = row ? all.indexOf(row) + by : by > 0 ? 0 : all.length - 1;
  const next = all[Math.max(0, Math.min(all.length - 1, at))];
  /** @type {HTMLElement | null} */ (next.querySelector('th a, td a'))?.focus();
  next.scrollIntoView({ block: 'nearest' });
}

function select() { /** @type {HTMLElement | null} */ (here()?.querySelector('input[type=checkbox]') ?? null)?.click(); }
