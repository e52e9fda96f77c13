// @ts-check
/*
 * A filterable choice: a field narrows the list, and the ticked boxes of a picker
 * stand above it as chips that can be removed. The boxes stay the truth; without
 * this module they are all there is. loom.js imports it where a page has one.
 */

/** @param {HTMLElement} group */
export function enhance(group) {
  if (group.dataset.ready) return;
  group.dataset.ready = '1';
  const filter = /** @type {HTMLInputElement | null} */ (group.querySelector('[data-filter]'));
  const chips = /** @type {HTMLElement | null} */ (group.querySelector('[data-chips]'));
  const items = /** @type {HTMLElement[]} */ ([...group.querySelectorAll('[data-filter-item]')]);
  const box = (/** @type {HTMLElement} */ item) => /** @type {HTMLInputElement} */ (item.querySelector('input'));
  const name = (/** @type {HTMLElement} */ item) => item.querySelector('.c-choice-label')?.textContent ?? '';

  filter?.addEventListener('input', () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    for (const item of items) {
      const text = (item.textContent ?? '').toLowerCase();
      // What is chosen stays in sight.
      item.hidden = !box(item).checked && !words.every((word) => text.includes(word));
    }
  });
  // Enter in the filter must not send the form.
  filter?.addEventListener('keydown', (event) => { if (event.key === 'Enter') event.preventDefault(); });
  if (!chips) return;

  /** @param {HTMLElement} item */
  const remove = (item) => {
    const at = items.filter((i) => box(i).checked).indexOf(item);
    box(item).checked = false;
    box(item).dispatchEvent(new Event('change', { bubbles: true }));
    document.dispatchEvent(new CustomEvent('loom:announce', { detail: { text: 'Removed ' + name(item) } }));
    const left = chips.querySelectorAll('button');
    (left[Math.min(at, left.length - 1)] ?? box(item)).focus();
  };

  const draw = () => chips.replaceChildren(...items.filter((item) => box(item).checked).map((item) => {
    const chip = document.createElement('span');
    chip.className = 'c-chip';
    const text = document.createElement('span');
    text.textContent = name(item);
    chip.append(text);
    const button = document.createElement('button');
    button.type = 'button';
    button.setAttribute('aria-label', 'Remove ' + name(item));
    button.textContent = '×';
    button.addEventListener('click', () => remove(item));
    button.addEventListener('keydown', (event) => {
      if (event.key === 'Delete' || event.key === 'Backspace') { event.preventDefault(); remove(item); }
    });
    if (!box(item).disabled) chip.append(button);
    return chip;
  }));
  group.addEventListener('change', draw);
  draw();
}
