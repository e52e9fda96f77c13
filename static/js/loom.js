// @ts-check
/*
 * The one script of Loom's pages. Every page works without it; it makes them live.
 * It keeps no state besides the DOM, and htmx events are touched only here.
 *
 * Live pages. <main data-events="/events?topics=a,b" data-cursor="…"> names the
 * page's one stream. Events are named after topics and carry {"ids": […]}. For
 * each, elements whose data-live lists the topic get the event "loom:live"; they
 * fetch their fragment with hx-trigger="loom:live" and morph it in (ui.Live emits
 * these attributes). "reset" refreshes all of them, "end" closes the stream.
 * Where no stream can be had (data-poll, refused as one too many, or three failures),
 * all are refreshed every 5 s while the page is visible. Those that say when somebody
 * last looked ([data-seen]) are refreshed every 30 s: a look that finds nothing new is no event.
 *
 * Parts that few pages have name their module in data-module (logs, pickers, JSON
 * fields); it is imported and its enhance(element) called.
 *
 * Answers may carry HX-Trigger: {"loom:toast": {"text", "tone"?, "action"?, "href"?,
 * "request"?}}, "loom:announce": {"text"} (both for toast.js), "loom:close-dialog".
 */

/** @type {any} */
const win = window;
const doc = document;

/** @template {Element} [T=HTMLElement] @param {string} selector @param {ParentNode} [root] @returns {T[]} */
const all = (selector, root = doc) => /** @type {T[]} */ ([...root.querySelectorAll(selector)]);

/** @param {string} selector @param {ParentNode} [root] @returns {any} */
const one = (selector, root = doc) => root.querySelector(selector);

/** @param {any} node @param {string} selector @returns {any} */
const up = (node, selector) => node instanceof Element ? node.closest(selector) : null;

// Markup comes from our own server, escaped there; script text is never made from strings.
if (win.trustedTypes?.createPolicy) {
  win.trustedTypes.createPolicy('default', {
    createHTML: (/** @type {string} */ html) => html,
    createScript: () => null,
    createScriptURL: (/** @type {string} */ url) => new URL(url, location.href).origin === location.origin ? url : null,
  });
}

/** Says something: toast.js shows and announces. @param {{text?: string, tone?: string, request?: string}} detail */
const toast = (detail) => doc.dispatchEvent(new CustomEvent('loom:toast', { detail }));

/** @param {string} text */
const announce = (text) => doc.dispatchEvent(new CustomEvent('loom:announce', { detail: { text } }));

/* The event stream */

const live = {
  /** @type {EventSource | null} */ source: null,
  url: '', cursor: '', failures: 0, refreshOnOpen: false,
  /** @type {any} */ retry: 0, /** @type {any} */ poll: 0, /** @type {any} */ hide: 0, /** @type {any} */ flush: 0,
  /** @type {Set<Element>} */ due: new Set(),
  /** @type {Set<Element>} parts whose refresh failed */ lost: new Set(), losses: 0, /** @type {any} */ again: 0,
};

/** @param {string} state @param {string} text */
function showLive(state, text) {
  const dot = one('#live');
  if (!dot || dot.dataset.state === state) return;
  dot.dataset.state = state;
  one('.l-live-text', dot).textContent = text;
}

/** Asks elements to fetch themselves again, a burst of signals once. @param {Element[]} elements */
function refresh(elements) {
  for (const element of elements) live.due.add(element);
  live.flush ||= setTimeout(() => {
    live.flush = 0;
    for (const element of live.due) {
      if (element.isConnected) element.dispatchEvent(new CustomEvent('loom:live'));
    }
    live.due.clear();
  }, 60);
}

/**
 * A refresh without an answer is asked for again until it has one: the signal behind it
 * may have been the last. @param {Element} element @param {number} status of the answer, 0 without one
 */
function refreshed(element, status) {
  if (status > 0 && status < 500 && status !== 429) { live.losses = 0; live.lost.delete(element); return; }
  live.lost.add(element);
  live.again ||= setTimeout(() => {
    live.again = 0;
    live.losses += 1;
    refresh([...live.lost]);
    live.lost.clear();
  }, backOff(live.losses));
}

/** From 1 s to 30 s, up to half of it less by chance, so that pages do not come all at once. @param {number} failures */
const backOff = (failures) => Math.min(30_000, 1000 * 2 ** failures) * (0.5 + Math.random() / 2);

const refreshAll = () => refresh(all('[data-live]'));

/** @param {string} topic */
const signalled = (topic) => refresh(all('[data-live]').filter((e) => e.dataset.live?.split(' ').includes(topic)));

setInterval(() => {
  if (!doc.hidden) refresh(all('[data-live]').filter((e) => e.querySelector('[data-seen]')));
}, 30_000);

function disconnect() {
  clearTimeout(live.retry);
  live.source?.close();
  live.source = null;
}

function connect() {
  disconnect();
  const url = new URL(live.url, location.href);
  if (live.cursor) url.searchParams.set('after', live.cursor);
  else live.refreshOnOpen = true; // nobody will tell what happened before
  const source = new EventSource(url);
  live.source = source;
  /** @param {string} name @param {(event: MessageEvent) => void} act */
  const on = (name, act) => source.addEventListener(name, (event) => {
    if (event.lastEventId) live.cursor = event.lastEventId;
    act(event);
  });
  source.onopen = () => {
    live.failures = 0;
    stopPolling();
    showLive('live', 'Live');
    if (live.refreshOnOpen) refreshAll();
    live.refreshOnOpen = false;
  };
  // The browser would reconnect by itself, but at once, together with everybody
  // else, and without the cursor of an earlier page.
  source.onerror = () => {
    const refused = source.readyState === EventSource.CLOSED; // answered, but with no stream
    disconnect();
    live.failures += 1;
    if (refused || live.failures >= 3) startPolling(); else showLive('reconnecting', 'Reconnecting');
    if (live.failures < 3) retryLater();
  };
  for (const topic of (url.searchParams.get('topics') ?? '').split(',')) on(topic, (event) => {
    signalled(topic);
    if (topic === 'user:me') doc.dispatchEvent(new CustomEvent('loom:news', { detail: JSON.parse(event.data) }));
  });
  on('reset', refreshAll);
  on('end', (event) => {
    disconnect();
    refreshAll();
    let reason = 'done';
    try { reason = JSON.parse(event.data).reason; } catch { /* an end without reason is an end */ }
    if (reason === 'shutdown') { showLive('reconnecting', 'Reconnecting'); retryLater(); } else showLive('ended', 'Finished');
  });
}

function retryLater() {
  clearTimeout(live.retry);
  live.retry = setTimeout(connect, backOff(live.failures));
}

function startPolling() {
  showLive('polling', 'Updating every 5 s');
  if (live.poll) return;
  let rounds = 0;
  live.poll = setInterval(() => {
    if (doc.hidden) return;
    refreshAll();
    // Now and then see whether the stream works again.
    rounds += 1;
    if (live.url && rounds % 6 === 0) connect();
  }, 5000);
}

const stopPolling = () => { clearInterval(live.poll); live.poll = 0; };

/** Starts what the present <main> asks for; a swap may have changed it. */
function startLive() {
  const main = one('#main');
  const url = main?.dataset.events ?? '';
  if (url === live.url && url !== '') return;
  disconnect();
  stopPolling();
  Object.assign(live, { url, cursor: main?.dataset.cursor ?? '', failures: 0, refreshOnOpen: !main?.dataset.cursor });
  if (url) connect();
  else if (main?.hasAttribute('data-poll')) startPolling();
}

doc.addEventListener('visibilitychange', () => {
  clearTimeout(live.hide);
  if (doc.hidden) live.hide = setTimeout(() => { if (live.source) { disconnect(); showLive('paused', 'Paused'); } }, 60_000);
  else if (live.url && !live.source && one('#live')?.dataset.state !== 'ended') connect();
});
addEventListener('pagehide', disconnect);
addEventListener('pageshow', (event) => { if (event.persisted && live.url) { live.refreshOnOpen = true; connect(); } });

/* Forms */

/** A form that was changed and not sent warns before the page is left. */
addEventListener('beforeunload', (event) => { if (one('form[data-dirty]')) event.preventDefault(); });

doc.addEventListener('input', (event) => {
  const target = /** @type {any} */ (event.target);
  const guarded = up(target, 'form[data-guard]');
  if (guarded && target.name) guarded.dataset.dirty = '1';
  // An answer about the old text is dimmed until the new one arrives.
  const panel = up(target, 'form[data-check]')?.dataset.check;
  if (panel) one(panel)?.setAttribute('aria-busy', 'true');
});

doc.addEventListener('submit', (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  const button = /** @type {HTMLButtonElement | null} */ (event.submitter);
  if (form.matches('[data-theme-form]') && button) { event.preventDefault(); chooseTheme(form, button); return; }
  if (form.dataset.sent || button?.getAttribute('aria-disabled') === 'true') { event.preventDefault(); event.stopImmediatePropagation(); return; }
  delete form.dataset.dirty;
  if (form.matches('[data-once]')) form.dataset.sent = '1';
  markBusy(button);
}, true);
doc.addEventListener('htmx:beforeRequest', (event) => markBusy(/** @type {any} */ (event).detail.elt));
/** Says on a button that its request is at work. @param {HTMLElement | null} button */
function markBusy(button) {
  if (!button?.dataset.busy) return;
  button.dataset.label = one('.c-button-label', button)?.textContent ?? '';
  setTimeout(() => { button.setAttribute('aria-disabled', 'true'); one('.c-button-label', button).textContent = button.dataset.busy; }); // its value is sent first
}

/** @param {ParentNode} root */
function releaseForms(root) {
  for (const form of all('form[data-sent]', root)) delete form.dataset.sent;
  for (const button of all('button[data-label]', root)) {
    one('.c-button-label', button).textContent = button.dataset.label;
    button.removeAttribute('aria-disabled');
    delete button.dataset.label;
  }
}

/** @param {HTMLFormElement} form @param {HTMLButtonElement} button */
function chooseTheme(form, button) {
  doc.documentElement.dataset.theme = button.value;
  for (const other of all('button[name=theme]', form)) other.setAttribute('aria-pressed', String(other === button));
  fetch(form.action, { method: 'POST', body: new URLSearchParams({ theme: button.value }), redirect: 'manual' })
    .catch(() => toast({ text: 'The theme could not be stored; it holds for this page only.', tone: 'warn' }));
}

/* Clicks */

/** @param {HTMLElement} button */
async function copy(button) {
  const from = /** @type {any} */ (doc.getElementById(button.dataset.copyFrom ?? ''));
  const text = button.dataset.copy ?? from?.value ?? from?.textContent ?? '';
  const what = (button.getAttribute('aria-label') ?? '').replace(/^Copy /, '');
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without TLS there is no clipboard; the old way needs a selection.
    const area = doc.createElement('textarea');
    area.className = 'u-hidden';
    (button.closest('dialog') ?? doc.body).append(area);
    area.value = text;
    area.select();
    const done = doc.execCommand('copy');
    area.remove();
    button.focus();
    if (!done) return toast({ text: 'This browser does not let pages copy; select the text instead.', tone: 'warn' });
  }
  button.dataset.done = '1';
  setTimeout(() => { delete button.dataset.done; }, 2000);
  announce('Copied ' + what);
}

doc.addEventListener('click', (event) => {
  const button = up(event.target, '[data-copy], [data-copy-from], [data-close-dialog], [data-goto], [data-set], [aria-disabled=true]');
  if (!button) return;
  if (button.getAttribute('aria-disabled') === 'true') {
    event.preventDefault();
    event.stopPropagation();
    button.dispatchEvent(new CustomEvent('loom:waits', { bubbles: true })); // confirm.js says for what
    return;
  }
  if (button.matches('[data-copy], [data-copy-from]')) copy(button);
  if (button.matches('[data-goto]')) doc.dispatchEvent(new CustomEvent('loom:goto', { detail: button.dataset }));
  if (button.matches('[data-close-dialog]') && button.closest('dialog')) { event.preventDefault(); button.closest('dialog').close(); }
  if (button.matches('[data-set]')) applySuggestion(event, button);
}, true);

/** Changes the form as a suggestion says, where its field is a plain one. @param {Event} event @param {HTMLElement} button */
function applySuggestion(event, button) {
  const form = button.closest('form') ?? one('form[data-check]');
  const field = form?.elements.namedItem(button.dataset.set ?? '');
  if (!field || field instanceof RadioNodeList || field.type === 'checkbox') return;
  event.preventDefault();
  field.value = button.dataset.value;
  field.dispatchEvent(new Event('input', { bubbles: true }));
  field.dispatchEvent(new Event('change', { bubbles: true }));
}

/**
 * The palette opens at once, even while its module is on its way: what is typed until then
 * is in its field, and palette.js looks for it when it comes.
 */
function openPalette() {
  const dialog = one('#palette');
  if (!dialog || one('dialog[open]')) return;
  const input = one('input', dialog);
  input.value = '';
  dialog.showModal();
  input.focus();
  doc.dispatchEvent(new CustomEvent('loom:palette'));
}
doc.addEventListener('loom:search', openPalette);
doc.addEventListener('keydown', (event) => {
  if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) { event.preventDefault(); openPalette(); }
});
doc.addEventListener('click', (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || !up(event.target, '[data-palette]') || !one('#palette')) return;
  event.preventDefault();
  openPalette();
});

/* htmx */

doc.addEventListener('htmx:afterSwap', (event) => {
  const target = /** @type {any} */ (event).detail.target;
  if (target?.id === 'dialog' && !target.open && target.childElementCount) {
    target.showModal();
    one('[autofocus], .c-dialog-foot [data-close-dialog]', target)?.focus();
  }
});
doc.addEventListener('htmx:load', (event) => prepare(/** @type {any} */ (event).detail.elt));
doc.addEventListener('htmx:afterSettle', startLive);
doc.addEventListener('htmx:afterRequest', (event) => {
  const { elt, target, successful } = /** @type {any} */ (event).detail;
  for (const part of [elt, target]) part?.removeAttribute?.('aria-busy');
  const form = up(elt, 'form');
  if (successful) told(elt, 200); else if (form?.matches('[data-guard]')) form.dataset.dirty = '1'; // it was not sent after all
  if (form || elt.dataset.label) releaseForms((form ?? elt).parentElement ?? doc);
});
// A list that was filtered since a refresh of it began keeps its new rows.
doc.addEventListener('htmx:beforeSwap', (event) => {
  const { detail } = /** @type {any} */ (event), { elt, path } = detail.requestConfig;
  if (elt.matches?.('[data-live]') && path !== elt.getAttribute('hx-get')) detail.shouldSwap = false;
});
/** Notes how the refresh of a live part ended, and tells link.js. @param {any} elt @param {number} status */
function told(elt, status) {
  if (!elt.matches?.('[data-live]')) return false;
  refreshed(elt, status);
  doc.dispatchEvent(new CustomEvent('loom:link', { detail: { status } }));
  return true;
}
doc.addEventListener('htmx:responseError', (event) => {
  const { xhr, elt } = /** @type {any} */ (event).detail;
  if (told(elt, xhr.status) || xhr.status === 401 || xhr.getResponseHeader('HX-Trigger')) return; // session.js asks, the server told
  toast({ text: `That did not work (status ${xhr.status}).`, tone: 'bad', request: xhr.getResponseHeader('X-Request-Id') ?? '' });
});
doc.addEventListener('htmx:sendError', (event) => {
  const { elt, requestConfig } = /** @type {any} */ (event).detail;
  if (told(elt, 0) || unchecked(elt)) return;
  const acts = requestConfig?.verb !== 'get' && up(elt, 'form[data-once]');
  toast({ text: 'Loom does not answer. What stands here is kept; try again in a moment.' + (acts ? ' It may have been done all the same: look first.' : ''), tone: 'bad' });
});
/** What is checked while somebody types says itself that it was not, and asks again. @param {Element} elt */
function unchecked(elt) {
  const room = one('.c-check-problem', elt);
  if (!room) return false;
  room.textContent = 'Loom does not answer, so the last change was not checked yet.';
  setTimeout(() => doc.body.dispatchEvent(new CustomEvent('loom:recheck')), backOff(2));
  return true;
}
doc.addEventListener('loom:close-dialog', () => one('#dialog')?.close());
one('#dialog')?.addEventListener('close', (/** @type {any} */ event) => event.target.replaceChildren());

// What the reader opened stays open, and what is being typed stays as typed.
if (win.Idiomorph) {
  win.Idiomorph.defaults.ignoreActiveValue = true;
  win.Idiomorph.defaults.callbacks.beforeAttributeUpdated = (/** @type {string} */ name, /** @type {Element} */ node) =>
    name !== 'data-ready' && name !== 'data-chosen' && !(name === 'open' && node.matches('details, dialog')) && !(name === 'checked' && node.matches('[data-kept]'));
  // htmx forgets what it did for an element that asks for nothing any more.
  win.Idiomorph.defaults.callbacks.afterNodeMorphed = (/** @type {any} */ node) => node['htmx-internal-data']?.initHash && !node.matches('[hx-get], [hx-post]') && win.htmx.process(node);
}

/* Start */

// Times are shown in the zone of the browser unless another is preferred.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? '';
if (/^[\w+\-/]+$/.test(zone) && !doc.cookie.includes('loom-zone=' + zone)) doc.cookie = `loom-zone=${zone}; path=/; max-age=31536000; samesite=lax` + (location.protocol === 'https:' ? '; secure' : '');

/** Prepares what a page or a fragment brought. @param {ParentNode & Node} root */
function prepare(root) {
  all('[data-focus]', root).at(0)?.focus();
  const parts = all('[data-module]', root);
  if (root instanceof HTMLElement && root.dataset.module) parts.push(root);
  for (const tab of all('.c-tabs [aria-current]', root)) {
    const strip = tab.closest('.c-tabs');
    if (strip) strip.scrollLeft += tab.getBoundingClientRect().left - strip.getBoundingClientRect().left - strip.clientWidth / 3;
  }
  for (const part of parts) import(part.dataset.module ?? '').then((module) => module.enhance(part));
}

// A page from the browser's history must not keep its forms locked, nor offer a preview that was used.
addEventListener('pageshow', (event) => (event.persisted && doc.querySelector('form[data-sent][action^="/previews/"]') ? location.reload() : releaseForms(doc)));
startLive();
