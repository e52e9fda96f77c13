// @ts-check
/*
 * What is said in passing: toasts, and the region in which things are announced to those
 * who do not see them. "loom:toast" {text, tone?, action?, href?, request?} shows one;
 * the server may also put one into the slot. "loom:announce" {text} is only read aloud.
 *
 * "loom:news" {ids} says that something of the reader's has ended; the server words it.
 *
 * A toast goes by itself unless it tells of a failure, or is pointed at, has the focus or
 * is in a tab that nobody sees. The slot follows into an open dialog: what stands outside
 * of that can neither be pressed nor heard. loom.js imports this on every page.
 */

const doc = document;
/** How long a toast stays, and how long a live region has to be there before its text, in milliseconds. */
const stay = 6000;
const settle = 100;
/** More of them at once would hide the page. */
const most = 3;
const icons = { ok: 'check-circle', warn: 'alert', bad: 'error' };

/** @param {HTMLElement} slot */
export function enhance(slot) {
  if (slot.dataset.ready) return;
  slot.dataset.ready = '1';
  const region = /** @type {HTMLElement} */ (doc.getElementById('announce'));
  /** Where the focus was before it came to a toast. @type {HTMLElement | null} */
  let before = null;

  /** Into the dialog that is open on top, and above it. */
  const place = () => {
    const home = [...doc.querySelectorAll('dialog:modal')].at(-1) ?? doc.body;
    if (slot.parentNode !== home) home.append(slot);
    if (home !== doc.body) lost.observe(home, { childList: true });
    if (slot.querySelector('.c-toast') && !slot.matches(':popover-open')) slot.showPopover?.();
  };
  // Another content of the dialog takes the slot away with the old one.
  const lost = new MutationObserver(() => { if (!slot.isConnected) place(); });
  doc.addEventListener('close', () => { lost.disconnect(); place(); }, true);

  // Seen to here, wherever they come from. A region that is there before its text is read
  // out once by every reader; one that comes with its text by some, and by some twice.
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) for (const node of addedNodes) if (node instanceof HTMLElement && node.matches('.c-toast') && !node.dataset.seen) adopt(node);
  }).observe(slot, { childList: true });
  for (const node of slot.querySelectorAll('.c-toast')) {
    const text = /** @type {HTMLElement} */ (node.querySelector('p'));
    if (node.role === 'status') setTimeout(() => text.replaceChildren(...[...text.childNodes].map((part) => part.cloneNode(true))), settle);
    expire(/** @type {HTMLElement} */ (node));
  }

  /** @param {HTMLElement} node */
  function adopt(node) {
    node.dataset.seen = '1';
    const text = /** @type {HTMLElement} */ (node.querySelector('p'));
    const said = text.textContent ?? '';
    const others = /** @type {HTMLElement[]} */ ([...slot.querySelectorAll('.c-toast')]).filter((other) => other !== node);
    for (const other of others) if ((other.dataset.text ?? other.querySelector('p')?.textContent) === said) other.remove();
    while (slot.querySelectorAll('.c-toast').length > most) (others.find((other) => other.isConnected && other.dataset.tone !== 'bad') ?? others.find((other) => other.isConnected))?.remove();
    node.dataset.text = said;
    place();
    if (node.role === 'status') {
      const parts = [...text.childNodes];
      text.replaceChildren();
      setTimeout(() => text.replaceChildren(...parts), settle);
    }
    expire(node);
  }

  slot.addEventListener('focusin', (event) => {
    const from = event.relatedTarget;
    if (from instanceof HTMLElement && !slot.contains(from)) before = from;
  });
  /** @param {Element} node */
  const dismiss = (node) => {
    const focused = node.contains(doc.activeElement);
    node.remove();
    if (focused) (/** @type {HTMLElement | null} */ (slot.querySelector('.c-toast .c-close')) ?? (before?.isConnected ? before : doc.getElementById('main')))?.focus();
  };
  slot.addEventListener('click', (event) => {
    const button = /** @type {Element} */ (event.target).closest('[data-dismiss]');
    if (button?.parentElement) dismiss(button.parentElement);
  });
  slot.addEventListener('keydown', (event) => {
    const node = /** @type {Element} */ (event.target).closest('.c-toast');
    if (event.key === 'Escape' && node) { event.preventDefault(); event.stopPropagation(); dismiss(node); }
  });

  doc.addEventListener('loom:toast', (event) => {
    // The refresh of a live part that failed is told by link.js.
    if (!(/** @type {any} */ (event).target.dataset?.live)) show(slot, /** @type {CustomEvent} */ (event).detail);
  });
  /** What was told already: signals may repeat. @type {Set<string>} */
  const told = new Set();
  doc.addEventListener('loom:news', async (event) => {
    for (const id of /** @type {CustomEvent} */ (event).detail.ids) begun(id);
    // A page that shows the cluster tells of it itself.
    const shown = decodeURIComponent(doc.getElementById('main')?.dataset.events ?? '');
    const ids = /** @type {{ids: string[]}} */ (/** @type {CustomEvent} */ (event).detail).ids.filter((id) => !told.has(id) && !shown.includes(':' + id.split('/')[0]));
    if (!ids.length || !slot.dataset.news) return;
    for (const id of ids) told.add(id);
    try {
      const answer = await fetch(slot.dataset.news + '?' + new URLSearchParams({ of: ids.join(',') }), { headers: { 'HX-Request': 'true' } });
      if (answer.ok) slot.insertAdjacentHTML('beforeend', await answer.text());
    } catch { /* the feed has it */ }
  });
  /** That an operation began is no news when it has ended. @param {string} id such as "00000042/3" */
  function begun(id) {
    const [cluster, number] = id.split('/');
    for (const link of slot.querySelectorAll(`.c-toast a[href="/clusters/${cluster}/operations/${number}"]`)) {
      const node = link.closest('.c-toast');
      if (node && !node.matches(':hover, :focus-within')) node.remove();
    }
  }
  doc.addEventListener('loom:announce', (event) => {
    const text = /** @type {CustomEvent} */ (event).detail.text ?? '';
    place();
    region.textContent = '';
    setTimeout(() => { region.textContent = text; }, settle);
  });
}

/** @param {HTMLElement} node */
function expire(node) {
  if (node.dataset.tone === 'bad') return;
  let timer = 0;
  const start = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => { if (doc.hidden || node.matches(':hover, :focus-within')) start(); else node.remove(); }, stay);
  };
  for (const type of ['pointerleave', 'focusout']) node.addEventListener(type, start);
  start();
}

/** @param {string} tag @param {Record<string, string>} attributes @param {...(Node | string)} children */
function make(tag, attributes, ...children) {
  const node = doc.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** @param {string} name */
function icon(name) {
  const svg = /** @type {SVGElement} */ (/** @type {Element} */ (doc.querySelector('.c-icon')).cloneNode(true));
  const use = /** @type {Element} */ (svg.querySelector('use'));
  use.setAttribute('href', use.getAttribute('href')?.split('#')[0] + '#' + name);
  svg.dataset.icon = name;
  return svg;
}

/** The same markup as the component of the server. @param {HTMLElement} slot @param {{text?: string, tone?: string, action?: string, href?: string, request?: string}} data */
function show(slot, { text, tone = 'ok', action, href, request }) {
  if (!text) return;
  const said = make('p', {}, text);
  if (action && href) said.append(' ', make('a', { href }, action));
  if (request) {
    const copy = make('button', { class: 'c-copy', type: 'button', 'data-copy': request, 'aria-label': 'Copy request id', title: 'Copy request id' }, icon('copy'), icon('check'));
    said.append(' Request ', make('span', { class: 'c-copytext' }, make('code', {}, request), copy));
  }
  const close = make('button', { class: 'c-close', type: 'button', 'data-dismiss': '', 'aria-label': 'Close' }, icon('x'));
  slot.append(make('div', { class: 'c-toast', 'data-tone': tone, role: tone === 'bad' ? 'alert' : 'status' }, icon(icons[/** @type {'ok'} */ (tone)] ?? 'info'), said, close));
}
