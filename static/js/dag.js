// @ts-check
/*
 * The picture of a graph: what lies before and behind the node that is pointed at or
 * focused stands out. loom.js imports this where there is such a picture.
 */

/** Lifts a node's ancestors and descendants. @param {Element} svg @param {string} id */
function emphasize(svg, id) {
  const edges = /** @type {NodeListOf<HTMLElement>} */ (svg.querySelectorAll('.dag-edge'));
  const nodes = new Set([id]);
  const lit = new Set();
  for (const [from, to] of [['from', 'to'], ['to', 'from']]) {
    const queue = [id];
    for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
      for (const edge of edges) {
        if (edge.dataset[from] !== at || lit.has(edge)) continue;
        lit.add(edge);
        const next = edge.dataset[to] ?? '';
        if (!nodes.has(next)) { nodes.add(next); queue.push(next); }
      }
    }
  }
  svg.classList.add('has-focus');
  for (const edge of edges) edge.classList.toggle('is-lit', lit.has(edge));
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (svg.querySelectorAll('.dag-node'))) node.classList.toggle('is-lit', nodes.has(node.dataset.node ?? ''));
}

/** @param {HTMLElement} dag the box around the picture; the picture within it is fetched again, the box stays */
export function enhance(dag) {
  if (dag.dataset.ready) return;
  dag.dataset.ready = '1';
  /** @param {EventTarget | null} target what is pointed at or focused now */
  const point = (target) => {
    const svg = dag.querySelector(':scope > svg');
    const node = target instanceof Element ? /** @type {HTMLElement | null} */ (target.closest('.dag-node')) : null;
    if (svg && node) emphasize(svg, node.dataset.node ?? '');
    else if (svg && !svg.contains(document.activeElement)) svg.classList.remove('has-focus');
  };
  for (const type of ['pointerover', 'pointerleave', 'focusin']) dag.addEventListener(type, (event) => point(event.target));
  dag.addEventListener('focusout', (event) => point(event.relatedTarget));

  // A picture higher than its box begins where something failed or runs.
  const first = dag.querySelector('.is-failed') ?? dag.querySelector('.is-retry, .is-running');
  const past = first ? first.getBoundingClientRect().bottom - dag.getBoundingClientRect().bottom : -1;
  if (past > 0) dag.scrollTop += past + dag.clientHeight / 2;

  // A picture wider than its box begins with the service that it is about.
  const middle = dag.querySelector('.is-middle')?.getBoundingClientRect(), box = dag.getBoundingClientRect();
  if (middle && middle.right > box.right) dag.scrollLeft += (middle.left + middle.right - box.left - box.right) / 2;
}
