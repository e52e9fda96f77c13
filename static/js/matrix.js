// @ts-check
/*
 * The matrix of services as one stop of the Tab key: arrow keys, Home and End move
 * between its cells, Enter and Space change one, M, C and Delete set it. Without this
 * module each cell is a button that sends the form. loom.js imports it.
 */

/** @param {HTMLElement} region */
export function enhance(region) {
  if (region.dataset.ready) return;
  region.dataset.ready = '1';
  const cells = () => /** @type {HTMLButtonElement[]} */ ([...region.querySelectorAll('[data-cell]')]);
  let current = '';

  /** Leaves one cell for the Tab key. */
  const rove = () => {
    const all = cells();
    const stop = all.find((cell) => cell.id === current) ?? all[0];
    for (const cell of all) {
      const index = cell === stop ? '0' : '-1';
      if (cell.getAttribute('tabindex') !== index) cell.setAttribute('tabindex', index);
    }
  };

  region.addEventListener('focusin', (event) => {
    const cell = /** @type {HTMLElement} */ (event.target);
    if (!cell.matches('[data-cell]')) return;
    current = cell.id;
    rove();
  });

  region.addEventListener('click', (event) => {
    const cell = /** @type {HTMLElement} */ (event.target).closest('[data-cell]');
    if (!cell) return;
    event.preventDefault();
    send(/** @type {HTMLButtonElement} */ (cell).value);
  });

  /** Sends the form with a cell's value; the answer takes the place of the picture. @param {string} value */
  function send(value) {
    const picture = region.closest('[hx-trigger]');
    const form = cells()[0]?.form;
    if (form) form.dataset.dirty = '1';
    picture?.setAttribute('hx-vals', JSON.stringify({ do: value }));
    picture?.dispatchEvent(new CustomEvent('loom:relate'));
  }

  region.addEventListener('keydown', (event) => {
    const cell = /** @type {HTMLButtonElement | null} */ (/** @type {HTMLElement} */ (event.target).closest('[data-cell]'));
    if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
    const relation = { m: 'must', c: 'cant', Delete: 'none', Backspace: 'none' }[event.key];
    if (relation) {
      event.preventDefault();
      send(cell.value.replace(/^relate:\S+/, 'relate:' + relation));
      return;
    }
    const row = /** @type {HTMLElement[]} */ ([...(cell.closest('tbody')?.rows ?? [])]);
    const at = row.indexOf(/** @type {HTMLElement} */ (cell.closest('tr')));
    const column = [...(cell.closest('tr')?.children ?? [])].indexOf(/** @type {HTMLElement} */ (cell.parentElement));
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -999], End: [0, 999] }[event.key];
    if (!step) return;
    event.preventDefault();
    next(row, at, column, step)?.focus();
  });

  /** The next cell in a direction, over the diagonal. @param {HTMLElement[]} rows @param {number} at @param {number} column @param {number[]} step */
  function next(rows, at, column, step) {
    const width = rows[0].children.length - 1;
    let r = at + step[0], c = Math.min(Math.max(column + step[1], 1), width);
    for (; r >= 0 && r < rows.length && c >= 1 && c <= width; r += step[0], c += Math.sign(step[1])) {
      const found = rows[r].children[c].querySelector('[data-cell]');
      if (found) return /** @type {HTMLElement} */ (found);
      if (Math.abs(step[1]) > 1) step = [0, -Math.sign(step[1])]; // the end lies on the diagonal
    }
    return null;
  }

  // An answer that is morphed in brings back the Tab stops of a page without scripts.
  new MutationObserver(rove).observe(region, { childList: true, subtree: true, attributeFilter: ['tabindex'] });
  rove();
}
