// @ts-check
/*
 * A fold of a form that stays as the reader left it when the server makes the form anew:
 * a hidden field within it says whether it is open. loom.js imports it where there is one.
 */

/** @param {HTMLDetailsElement} fold */
export function enhance(fold) {
  const field = /** @type {HTMLInputElement | null} */ (fold.querySelector('input[data-fold]'));
  if (!field || fold.dataset.ready) return;
  fold.dataset.ready = '1';
  const tell = () => { field.value = fold.open ? '1' : ''; };
  fold.addEventListener('toggle', tell);
  tell();
}
