// @ts-check
/*
 * The sign-in of the page: two minutes before it ends a dialog offers to go on, and
 * where it ended meanwhile one asks for the password, so that what stands in a form is
 * not lost. <main data-session-left> says how many seconds are left. A form whose answer
 * is another page is sent only once Loom answers and the sign-in holds, for the same
 * reason. loom.js imports this where somebody is signed in.
 */

const doc = document;
const warning = 120;
/** The longest time that browsers wait for, in seconds. */
const longest = 2_000_000;
/** How long an answer may take before a form is sent, in milliseconds. */
const patience = 10_000;
let timer = 0;
/** Whether the dialog is on its way. */
let asking = false;

/** @param {HTMLElement} main */
export function enhance(main) {
  if (!doc.body.dataset.session) {
    doc.body.dataset.session = '1';
    doc.addEventListener('loom:signin', signIn);
    addEventListener('submit', ask, true); // before everybody else
  }
  arm(Number(main.dataset.sessionLeft));
}

/** @param {number} left seconds */
function arm(left) {
  clearTimeout(timer);
  if (left > 0 && left < longest) timer = window.setTimeout(warn, Math.max(1, left - warning) * 1000);
}

/** A dialog of our own: that of the page may hold what somebody is writing. */
function dialog() {
  const there = /** @type {HTMLDialogElement | null} */ (doc.getElementById('session'));
  if (there) return there;
  const made = doc.createElement('dialog');
  made.id = 'session';
  made.className = 'c-dialog';
  made.setAttribute('aria-labelledby', 'dialog-title');
  made.addEventListener('submit', submit);
  made.addEventListener('close', () => made.replaceChildren());
  doc.body.append(made);
  return made;
}

/** @param {string} url */
async function show(url) {
  const answer = await fetch(url, { headers: { 'HX-Request': 'true', 'HX-Target': 'dialog' } });
  if (answer.status === 401) { if (url !== loginForm()) await show(loginForm()); return; }
  const left = Number(answer.headers.get('Loom-Session-Left') ?? 0);
  // Another tab has gone on with it.
  if (left > warning + 30) { arm(left); return; }
  const box = dialog();
  box.innerHTML = await answer.text();
  if (!box.open) box.showModal();
  /** @type {HTMLElement | null} */ (box.querySelector('[autofocus]') ?? box.querySelector('input:not([type=hidden]), button[type=submit]'))?.focus();
}

/** The form with the name of whoever was signed in. */
const loginForm = () => '/login/dialog?' + new URLSearchParams({ user: doc.querySelector('.l-user-name')?.textContent ?? '' });

const warn = () => show('/account/session').catch(() => arm(warning + 30));

/** Asks who it is, once for all that were refused; some are only told when that is done. */
function signIn() {
  if (asking || dialog().open) return;
  asking = true;
  show('/account/session').catch(() => location.reload()).finally(() => { asking = false; });
}

/** Asks before a form leaves the page, and sends it then. @param {SubmitEvent} event */
async function ask(event) {
  const form = /** @type {HTMLFormElement} */ (event.target);
  const button = /** @type {HTMLButtonElement | null} */ (event.submitter);
  if (!form.matches('form[method=post]:is([data-once], [data-guard]):not([hx-post])') || form.dataset.sent || button?.getAttribute('aria-disabled') === 'true') return;
  if (form.dataset.asked) { delete form.dataset.asked; return; }
  event.preventDefault();
  event.stopImmediatePropagation();
  if (form.classList.contains('htmx-request')) return;
  form.classList.add('htmx-request'); // the thin line, should it take long
  let status = 0;
  try {
    status = (await fetch('/account/session', { headers: { 'HX-Request': 'true', 'HX-Target': 'dialog' }, signal: AbortSignal.timeout(patience) })).status;
  } catch { /* no answer is status 0 */ }
  form.classList.remove('htmx-request');
  if (status === 401) { signIn(); return; }
  if (status === 0 || status >= 500) {
    doc.dispatchEvent(new CustomEvent('loom:toast', { detail: { text: 'Loom does not answer. Nothing was sent, and what stands here is kept; try again in a moment.', tone: 'bad' } }));
    return;
  }
  form.dataset.asked = '1';
  form.requestSubmit(button?.isConnected ? button : null);
}

/** @param {Event} event */
async function submit(event) {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (form.method === 'dialog') return;
  event.preventDefault();
  const box = dialog();
  /** @type {Record<string, string>} */
  const fields = {};
  for (const [key, value] of new FormData(form)) if (typeof value === 'string') fields[key] = value;
  const answer = await fetch(form.action, { method: 'POST', body: new URLSearchParams(fields), headers: { 'HX-Request': 'true', 'HX-Target': 'dialog' } });
  if (answer.status === 204) {
    arm(Number(answer.headers.get('Loom-Session-Left') ?? 0));
    box.close();
    doc.dispatchEvent(new CustomEvent('loom:toast', { detail: { text: answer.headers.get('Loom-Said') ?? 'You are signed in.' } }));
    return;
  }
  if (answer.status === 401 && form.action.endsWith('/account/session')) { await show(loginForm()); return; }
  box.innerHTML = await answer.text();
  /** @type {HTMLElement | null} */ (box.querySelector('input[type=password]'))?.focus();
}
