// @ts-check
/*
 * Times that go on: the text of every [data-tick] counts on, once a second, from the
 * seconds that the server wrote there. loom.js imports this where a page has one.
 */

/** @type {WeakMap<Element, {tick: string, at: number}>} */
const begun = new WeakMap();
let timer = 0;

/** As the server writes it: "12 s", "4 m 12 s", "1 h 5 m", "3 d 4 h". @param {number} seconds */
function words(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  /** @type {[number, string, number, string][]} */
  const units = [[86400, 'd', 3600, 'h'], [3600, 'h', 60, 'm'], [60, 'm', 1, 's']];
  for (const [major, majorUnit, minor, minorUnit] of units) {
    if (s < major) continue;
    const rest = Math.floor((s % major) / minor);
    return `${Math.floor(s / major)} ${majorUnit}` + (rest ? ` ${rest} ${minorUnit}` : '');
  }
  return `${s} s`;
}

function tick() {
  const parts = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[data-tick]'));
  if (!parts.length) { clearInterval(timer); timer = 0; return; }
  for (const part of parts) {
    const text = part.dataset.tick ?? '';
    let from = begun.get(part);
    if (from?.tick !== text) begun.set(part, from = { tick: text, at: performance.now() });
    const now = words(Number(text) + (performance.now() - from.at) / 1000);
    if (part.textContent !== now) part.textContent = now;
  }
}

export function enhance() {
  tick();
  if (!timer) timer = setInterval(tick, 1000);
}
