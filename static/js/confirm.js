// @ts-check
/*
 * A form whose button waits until the name of what is to be destroyed was typed, and that
 * says so when it is pressed before. The server asks again. loom.js imports it where there
 * is one.
 */

/** @param {HTMLFormElement} form */
export function enhance(form) {
  /** @returns {HTMLInputElement | null} */
  const field = () => form.querySelector('[name=confirm]');
  const compare = () => {
    form.querySelector('[data-confirm]')?.setAttribute('aria-disabled', String(field()?.value !== form.dataset.confirmName));
    field()?.setCustomValidity('');
  };
  if (!form.dataset.sent) compare();
  if (form.dataset.ready) return;
  form.dataset.ready = '1';
  form.addEventListener('input', compare);
  form.addEventListener('loom:waits', () => {
    if (form.dataset.sent) return;
    field()?.setCustomValidity(`Type “${form.dataset.confirmName}” here first.`);
    field()?.reportValidity();
  });
}
