// @ts-check
/*
 * A followed log: c-log inside a frame. On "loom:live" it fetches the rows after
 * its last one from data-more and appends those it does not have, so that nothing
 * is doubled however often it is asked. An answer of 200 rows or more means that
 * there may be others. loom.js imports this where a page has a log.
 */

/** @param {HTMLElement} frame */
export function enhance(frame) {
  const log = /** @type {HTMLElement} */ (frame.querySelector('.c-log'));
  const boxes = /** @type {HTMLInputElement[]} */ ([...frame.querySelectorAll('[data-log-toggle]')]);
  if (!log || frame.dataset.ready) return;
  frame.dataset.ready = '1';

  /** @param {HTMLInputElement} box */
  const apply = (box) => {
    const name = box.dataset.logToggle ?? '';
    if (box.checked) log.dataset[name] = '1'; else delete log.dataset[name];
    if (name === 'follow' && box.checked) log.scrollTop = log.scrollHeight;
  };
  for (const box of boxes) {
    apply(box);
    box.addEventListener('change', () => apply(box));
  }
  if (!location.hash.startsWith('#L')) log.scrollTop = log.scrollHeight;

  // Scrolling up stops following; coming back to the end does not start it again.
  let top = log.scrollTop;
  log.addEventListener('scroll', () => {
    const follow = boxes.find((box) => box.dataset.logToggle === 'follow');
    const end = log.scrollHeight - log.scrollTop - log.clientHeight < 24;
    if (follow?.checked && !end && log.scrollTop < top) {
      follow.checked = false;
      apply(follow);
    }
    top = log.scrollTop;
  }, { passive: true });

  let busy = false;
  let again = false;
  log.addEventListener('loom:live', async () => {
    again = true;
    if (busy) return;
    busy = true;
    try {
      while (again) {
        again = false;
        again = await more(log) || again;
      }
    } finally {
      busy = false;
    }
  });
}

/** Appends newer rows; says whether there may be others. @param {HTMLElement} log */
async function more(log) {
  if (!log.dataset.more) return false;
  const rows = log.querySelectorAll('.c-log-row');
  const last = Number(/** @type {HTMLElement | undefined} */ (rows[rows.length - 1])?.dataset.seq ?? 0);
  const url = new URL(log.dataset.more, location.href);
  url.searchParams.set('after', String(last));
  const answer = await fetch(url, { headers: { 'HX-Request': 'true' } });
  if (!answer.ok || answer.status === 204) return false;
  const template = document.createElement('template');
  template.innerHTML = await answer.text();
  for (const row of template.content.querySelectorAll('.c-log-row')) {
    if (Number(/** @type {HTMLElement} */ (row).dataset.seq) <= last) row.remove();
  }
  const added = template.content.querySelectorAll('.c-log-row').length;
  if (added) log.append(template.content);
  if (added && log.dataset.follow) log.scrollTop = log.scrollHeight;
  return added >= 200;
}
