// @ts-check
/*
 * Rows that can be selected: counts them, and lets the box in the head of the table
 * select all of the page. What is selected stays so when the rows are fetched again,
 * since the boxes carry data-kept. loom.js imports this where a list has a bar of what
 * can be done to several rows.
 */

/** @param {HTMLElement} bar */
export function enhance(bar) {
  const region = bar.parentElement;
  if (!region) return;
  const boxes = () => /** @type {HTMLInputElement[]} */ ([...region.querySelectorAll('tbody input[type=checkbox][data-kept]')]);
  const head = () => /** @type {HTMLInputElement | null} */ (region.querySelector('[data-select-all]'));
  const all = () => /** @type {HTMLInputElement | null} */ (region.querySelector('.c-bulk [name=all]'));
  const show = () => {
    const chosen = boxes().filter((box) => box.checked).length;
    const box = head();
    if (box) { box.checked = chosen > 0 && chosen === boxes().length; box.indeterminate = chosen > 0 && !box.checked; }
    const count = region.querySelector('[data-bulk-count]');
    const text = all()?.checked ? 'All that match are selected' : `${chosen} ${bar.dataset.noun}${chosen === 1 ? '' : 's'} selected`;
    if (count && count.textContent !== text) count.textContent = text;
  };
  show();
  if (region.dataset.selects) return;
  region.dataset.selects = '1';
  // Fetched again, the bar says what the server knows.
  new MutationObserver(show).observe(region, { childList: true, subtree: true, characterData: true });
  region.addEventListener('change', (event) => {
    const box = /** @type {HTMLInputElement} */ (event.target);
    if (!box.matches('[data-kept]')) return;
    if (box.matches('[data-select-all]')) for (const other of boxes()) other.checked = box.checked;
    if (!box.checked && box.name !== 'all') { const every = all(); if (every) every.checked = false; }
    show();
    document.dispatchEvent(new CustomEvent('loom:announce', { detail: { text: region.querySelector('[data-bulk-count]')?.textContent ?? '' } }));
  });
}
