// @ts-check
/*
 * A form that stands in the place of the texts it is for. Esc gives the texts back,
 * Enter saves; in a field of lines, which is in fixed-width type, Enter begins the next
 * one and Ctrl+Enter saves. loom.js imports this where such a form was opened; the server
 * sends the texts with the focus on the link that opened it.
 */

/** @param {HTMLElement} part */
export function enhance(part) {
  const form = part.querySelector('form');
  const cancel = /** @type {HTMLElement | null} */ (part.querySelector('[data-cancel]'));
  part.dataset.ready = '1';
  if (!form) { cancel?.focus(); return; }
  const first = /** @type {HTMLTextAreaElement | null} */ (form.querySelector('textarea:not([hidden])'));
  // Where the server put the focus, on what is wrong or on the first field, it stays.
  if (first && document.activeElement === first) first.setSelectionRange(first.value.length, first.value.length);

  part.addEventListener('keydown', (event) => {
    if (event.isComposing || event.defaultPrevented) return;
    const area = /** @type {HTMLElement} */ (event.target).closest('textarea');
    if (event.key === 'Escape') {
      event.preventDefault();
      delete form.dataset.dirty;
      cancel?.click();
    } else if (event.key === 'Enter' && area && !event.shiftKey && !event.altKey) {
      if (area.classList.contains('u-mono') && !event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      form.requestSubmit(/** @type {HTMLButtonElement | null} */ (form.querySelector('button[type=submit]')));
    }
  });
}
