// @ts-check
/*
 * A followed log: c-log inside a frame. On "loom:live", or every data-every seconds,
 * it fetches the rows after its last one from data-more and appends those it does not
 * have, so that nothing is doubled however often it is asked. An answer of 200 rows or
 * more means that there may be others. Rows before the first come in place of a new
 * page. A line or a range of lines is named by #L120 or #L120-L131. loom.js imports
 * this where a page has a log.
 */

/** How many rows stay in the page; what is before them has a page of its own. */
const mostRows = 5000;

/** @param {HTMLElement} frame */
export function enhance(frame) {
  const log = /** @type {HTMLElement} */ (frame.querySelector('.c-log'));
  const boxes = /** @type {HTMLInputElement[]} */ ([...frame.querySelectorAll('[data-log-toggle]')]);
  if (!log || frame.dataset.ready) return;
  frame.dataset.ready = '1';
  const follow = boxes.find((box) => box.dataset.logToggle === 'follow');
  const end = /** @type {HTMLElement | null} */ (frame.querySelector('[data-log-end]'));
  const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 24;
  const toEnd = () => { log.scrollTop = log.scrollHeight; };

  /** @param {HTMLInputElement} box */
  const apply = (box) => {
    const name = box.dataset.logToggle ?? '';
    if (box.checked) log.dataset[name] = '1'; else delete log.dataset[name];
    if (name === 'follow' && box.checked) toEnd();
  };
  for (const box of boxes) {
    apply(box);
    box.addEventListener('change', () => apply(box));
  }
  if (!mark(log) && !('found' in log.dataset)) toEnd();
  addEventListener('hashchange', () => log.isConnected && mark(log));
  range(log);
  earlier(frame, log);

  // Scrolling up stops following; coming back to the end does not start it again.
  let top = log.scrollTop;
  log.addEventListener('scroll', () => {
    if (follow?.checked && !atEnd() && log.scrollTop < top) {
      follow.checked = false;
      apply(follow);
    }
    top = log.scrollTop;
    if (end) end.hidden = atEnd();
  }, { passive: true });
  end?.addEventListener('click', () => {
    if (follow) { follow.checked = true; apply(follow); }
    toEnd();
    end.hidden = true;
    log.focus();
  });

  let busy = false;
  let again = false;
  const look = async () => {
    again = true;
    if (busy) return;
    busy = true;
    try {
      while (again) {
        again = false;
        again = await more(log) || again;
      }
    } catch {
      // No connection: the next look begins where this one would have.
    } finally {
      busy = false;
    }
  };
  log.addEventListener('loom:live', look);
  const every = Number(log.dataset.every ?? 0);
  const timer = every && setInterval(() => {
    if (!log.isConnected) clearInterval(timer);
    else if (!document.hidden) look();
  }, every * 1000);
}

/** The lines that the address names. @returns {[number, number] | null} */
function named() {
  const found = /^#L(\d+)(?:-L?(\d+))?$/.exec(location.hash);
  if (!found) return null;
  const [a, b] = [Number(found[1]), Number(found[2] ?? found[1])];
  return a <= b ? [a, b] : [b, a];
}

/** Marks the lines of the address and shows the first. Lines that the page does not
 * have are on a page around them. @param {HTMLElement} log */
function mark(log) {
  const lines = named();
  if (!lines) return false;
  for (const row of log.querySelectorAll('[data-marked]')) row.removeAttribute('data-marked');
  const first = document.getElementById('L' + lines[0]);
  if (!first) {
    if (!log.dataset.at) return false;
    const url = new URL(log.dataset.at, location.href);
    if (new URL(location.href).searchParams.get('lines') === lines.join('-')) return false;
    url.searchParams.set('lines', lines.join('-'));
    location.replace(url + location.hash);
    return true;
  }
  for (let n = lines[0]; n <= Math.min(lines[1], lines[0] + mostRows); n += 1) document.getElementById('L' + n)?.setAttribute('data-marked', '');
  first.scrollIntoView({ block: 'center' });
  return true;
}

/** With the shift key a second number makes a range. @param {HTMLElement} log */
function range(log) {
  log.addEventListener('click', (event) => {
    const number = event.target instanceof Element ? event.target.closest('.c-log-number') : null;
    const lines = named();
    if (!number || !event.shiftKey || !lines || !number.getAttribute('href')?.startsWith('#')) return;
    event.preventDefault();
    const n = Number(number.getAttribute('data-n'));
    history.replaceState(history.state, '', `#L${Math.min(n, lines[0])}-L${Math.max(n, lines[0])}`);
    mark(log);
  });
}

/** Puts earlier rows above the first, without moving what is being read.
 * @param {HTMLElement} frame @param {HTMLElement} log */
function earlier(frame, log) {
  frame.addEventListener('click', async (event) => {
    const link = event.target instanceof Element ? /** @type {HTMLAnchorElement | null} */ (event.target.closest('[data-log-earlier]')) : null;
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || log.querySelectorAll('.c-log-row').length >= mostRows) return;
    event.preventDefault();
    if (link.getAttribute('aria-busy')) return;
    link.setAttribute('aria-busy', 'true');
    try {
      const answer = await fetch(link.dataset.logEarlier ?? '', { headers: { 'HX-Request': 'true' } });
      if (!answer.ok) { location.href = link.href; return; }
      const height = log.scrollHeight;
      const at = log.scrollTop;
      const template = document.createElement('template');
      template.innerHTML = await answer.text();
      log.prepend(template.content);
      log.scrollTop = at + log.scrollHeight - height;
      const next = answer.headers.get('Loom-Earlier');
      link.dataset.logEarlier = answer.headers.get('Loom-Earlier-Rows') ?? '';
      if (next) link.href = next; else { log.focus(); link.parentElement?.remove(); }
    } finally {
      link.removeAttribute('aria-busy');
    }
  });
}

/** Appends newer rows; says whether there may be others. @param {HTMLElement} log */
async function more(log) {
  if (!log.dataset.more) return false;
  const rows = log.querySelectorAll('.c-log-row');
  const end = /** @type {HTMLElement | undefined} */ (rows[rows.length - 1]);
  const last = Number(end?.dataset.seq ?? 0);
  const url = new URL(log.dataset.more, location.href);
  const cursor = end ? end.dataset.cursor : url.searchParams.get('after') ?? undefined;
  url.searchParams.set('after', cursor ?? String(last));
  const answer = await fetch(url, { headers: { 'HX-Request': 'true' } });
  if (answer.headers.has('Loom-Ended')) delete log.dataset.more;
  if (!answer.ok || answer.status === 204) return false;
  const template = document.createElement('template');
  template.innerHTML = await answer.text();
  if (cursor === undefined) {
    for (const row of template.content.querySelectorAll('.c-log-row')) {
      if (Number(/** @type {HTMLElement} */ (row).dataset.seq) <= last) row.remove();
    }
  }
  const added = template.content.querySelectorAll('.c-log-row').length;
  const errors = log.closest('.c-log-frame')?.querySelector('[data-log-errors]');
  const bad = template.content.querySelectorAll('.c-log-row:is([data-stream="stderr"], [data-level="error"])').length;
  if (errors && bad && /^\d+$/.test(errors.textContent ?? '')) errors.textContent = String(Number(errors.textContent) + bad);
  if (added) log.append(template.content);
  if (added && log.dataset.follow) {
    trim(log, rows.length + added);
    log.scrollTop = log.scrollHeight;
  }
  return added >= 200;
}

/** Takes the oldest blocks of a followed log out of the page when it has too many rows;
 * the link to what is earlier leads to them. @param {HTMLElement} log @param {number} rows */
function trim(log, rows) {
  if (!log.dataset.at || rows <= mostRows) return;
  for (let first = log.firstElementChild; first && rows > mostRows; first = log.firstElementChild) {
    rows -= first.querySelectorAll('.c-log-row').length;
    first.remove();
  }
  const frame = /** @type {HTMLElement} */ (log.parentElement);
  let link = /** @type {HTMLAnchorElement | null} */ (frame.querySelector('[data-log-earlier]'));
  if (!link) {
    const bar = document.createElement('p');
    bar.className = 'c-log-more';
    link = document.createElement('a');
    link.textContent = 'Load 1,000 earlier';
    bar.append(link);
    log.before(bar);
  }
  const seq = log.querySelector('.c-log-row')?.getAttribute('data-seq') ?? '';
  const [page, part] = [log.dataset.at, log.dataset.more ?? ''].map((text) => {
    const url = new URL(text, location.href);
    url.searchParams.set('before', seq);
    return url.pathname + url.search;
  });
  link.href = page;
  link.dataset.logEarlier = part;
}
