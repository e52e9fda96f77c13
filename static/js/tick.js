// @ts-check
/*
 * Times that go on, once a second: the text of every [data-tick] counts on from the
 * seconds that the server wrote there, and that of every [data-age] says how long ago
 * something was, or how soon it is, by the seconds since. The clock of this computer is
 * never asked what time it is, only how much has passed. Parts that come later, in rows
 * that are fetched again, go on as well. loom.js imports this on every page.
 */

/** @type {WeakMap<Element, {from: string, at: number}>} */
const begun = new WeakMap();
let timer = 0;

/** As ui.Duration writes it: "12 s", "4 min 12 s", "1 h 5 min", "3 d 4 h". @param {number} seconds */
export function duration(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  /** @type {[number, string, number, string][]} */
  const units = [[86400, 'd', 3600, 'h'], [3600, 'h', 60, 'min'], [60, 'min', 1, 's']];
  for (const [major, majorUnit, minor, minorUnit] of units) {
    if (s < major) continue;
    const rest = Math.floor((s % major) / minor);
    return `${Math.floor(s / major)} ${majorUnit}` + (rest ? ` ${rest} ${minorUnit}` : '');
  }
  return `${s} s`;
}

/** As ui.Relative writes it: "just now", "5 min ago", "in 3 d". @param {number} age seconds, less than 0 for what is still to come */
export function relative(age) {
  const s = Math.abs(age);
  if (s < 10) return 'just now';
  const day = 86400;
  const half = age < 0 ? 0.5 : 0; // what is to come is rounded
  /** @type {[number, number, string][]} */
  const units = [[60, s, 's'], [3600 - half * 60, s / 60 + half, 'min'], [2 * day - half * 3600, s / 3600 + half, 'h'], [60 * day - half * day, s / day + half, 'd'], [730 * day, (s + 15 * day) / (30 * day), 'mo'], [Infinity, s / (365 * day), 'y']];
  const [, count, unit] = units.find(([end]) => s < end) ?? units[5];
  const text = `${Math.floor(count)} ${unit}`;
  return age < 0 ? 'in ' + text : text + ' ago';
}

/** Gives parts their texts. @param {'tick' | 'age'} name of the attribute @param {(seconds: number) => string} words */
function go(name, words) {
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(`[data-${name}]`))) {
    const from = part.dataset[name] ?? '';
    let since = begun.get(part);
    if (since?.from !== from) begun.set(part, since = { from, at: Date.now() });
    const text = words(Number(from) + (Date.now() - since.at) / 1000);
    // What is read aloud when it changes is left alone.
    if (part.textContent !== text && !(name === 'age' && part.closest('[role=status], [role=alert], [aria-live=polite]'))) part.textContent = text;
  }
}

function tick() {
  if (document.hidden) return;
  go('tick', duration);
  go('age', relative);
}

export function enhance() {
  tick();
  if (timer) return;
  timer = setInterval(tick, 1000);
  document.addEventListener('visibilitychange', tick);
}
