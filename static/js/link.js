// @ts-check
/*
 * What an open page says while Loom does not answer it, or its database does not: the
 * dot in the header and a banner with how long already. loom.js tells by "loom:link" how
 * each refresh of a live part ended; the first that works takes both away. Nothing is
 * ever asked from here: loom.js asks again. loom.js imports this where a page lives.
 */

/** @type {{state: string, text: string} | null} */
let before = null;

/** @param {number} status of the answer, 0 without one */
const words = (status) => status === 503
  ? ['Database not reached', 'Loom cannot reach its database. What runs on machines goes on; what you see here may be old.']
  : status ? ['Not updated', `Loom could not bring this page up to date (status ${status}). What you see may be old.`]
    : ['No connection', 'Loom does not answer. What you see may be old; this page goes on by itself when it is back.'];

/** @param {HTMLElement} dot */
export function enhance(dot) {
  if (dot.dataset.ready) return;
  dot.dataset.ready = '1';
  const text = /** @type {HTMLElement} */ (dot.querySelector('.l-live-text'));
  document.addEventListener('loom:link', (event) => {
    const status = /** @type {CustomEvent} */ (event).detail.status;
    if (status === 0 || status >= 500) lost(status); else back();
  });

  /** @param {number} status */
  function lost(status) {
    const [short, long] = words(status);
    before ??= { state: dot.dataset.state ?? '', text: text.textContent ?? '' };
    dot.dataset.state = 'lost';
    text.textContent = short;
    const old = document.getElementById('link-lost');
    if (old) {
      const said = /** @type {HTMLElement} */ (old.querySelector('[data-said]'));
      if (said.textContent !== long) said.textContent = long;
      return;
    }
    const banner = document.createElement('div');
    banner.className = 'c-banner';
    banner.id = 'link-lost';
    banner.dataset.tone = 'warn';
    banner.setAttribute('role', 'alert');
    const part = document.createElement('p');
    const said = document.createElement('span');
    said.dataset.said = '';
    said.textContent = long;
    const since = document.createElement('span');
    since.dataset.tick = '0';
    since.setAttribute('role', 'timer');
    since.setAttribute('aria-live', 'off');
    part.append(said, ' Since ', since, '.');
    banner.append(part);
    document.getElementById('banners')?.append(banner);
    import(dot.dataset.tickModule ?? '').then((module) => module.enhance(since), () => since.parentElement?.replaceChildren(said));
  }

  function back() {
    document.getElementById('link-lost')?.remove();
    if (!before) return;
    // The stream may have told another state meanwhile.
    if (dot.dataset.state === 'lost') [dot.dataset.state, text.textContent] = [before.state, before.text];
    before = null;
  }
}
