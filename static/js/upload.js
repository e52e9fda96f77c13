// @ts-check
/*
 * Shows how far the upload of a form is. The form is sent by htmx where scripts run,
 * which tells the progress; without it the form is sent as any other. loom.js imports
 * this where a page has such a form.
 */

/** @param {HTMLElement} form */
export function enhance(form) {
  if (form.dataset.ready) return;
  form.dataset.ready = '1';
  const bar = /** @type {HTMLElement | null} */ (form.querySelector('[data-upload]'));
  const progress = bar?.querySelector('progress');
  const text = bar?.querySelector('span');
  if (!bar || !progress || !text) return;
  // The button that was pressed says where the form goes.
  form.addEventListener('htmx:configRequest', (event) => {
    const { detail } = /** @type {CustomEvent} */ (event);
    const to = detail.triggeringEvent?.submitter?.getAttribute('formaction');
    if (to) detail.path = to;
  });
  form.addEventListener('htmx:xhr:progress', (event) => {
    const { lengthComputable, loaded, total } = /** @type {CustomEvent} */ (event).detail;
    if (!lengthComputable) return;
    const part = Math.floor((100 * loaded) / total);
    bar.hidden = false;
    progress.value = part;
    text.textContent = part < 100 ? part + ' %' : 'Storing…';
  });
  form.addEventListener('htmx:afterRequest', () => { bar.hidden = true; });
}
