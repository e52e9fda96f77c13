// @ts-check
/*
 * Makes a textarea for JSON or another code nicer to edit: line numbers, keeping the indent on
 * Enter, Tab for indenting after Ctrl+M, Ctrl+S for saving, buttons that format, copy and show
 * the whole text at once, how much room is left, colors, and jumping to the place of an error.
 * loom.js loads it only on pages that have such a field.
 */

/** As much as the server takes, in bytes. */
const limit = 256 * 1024;
/** What is longer is not colored, in characters; from the second on, only when somebody pauses. */
const colored = 200 * 1024;
const slow = 20 * 1024;
const encoder = new TextEncoder();

/** @param {string} label */
function button(label) {
  const node = document.createElement('button');
  node.type = 'button';
  node.className = 'c-link-button';
  node.textContent = label;
  return node;
}

/** Adds line numbers and keys to the textarea inside a c-editor element. @param {HTMLElement} frame */
export function enhance(frame) {
  const area = /** @type {HTMLTextAreaElement | null} */ (frame.querySelector('textarea'));
  if (!area || frame.dataset.ready) return;
  frame.dataset.ready = '1';

  const gutter = document.createElement('pre');
  gutter.className = 'c-editor-gutter';
  gutter.setAttribute('aria-hidden', 'true');
  area.before(gutter);

  let lines = 0;
  const number = () => {
    const now = area.value.split('\n').length;
    if (now !== lines) gutter.textContent = Array.from({ length: now }, (_, i) => i + 1).join('\n');
    lines = now;
    gutter.scrollTop = area.scrollTop;
  };
  for (const type of ['input', 'loom:set']) area.addEventListener(type, number);
  area.addEventListener('scroll', () => { gutter.scrollTop = area.scrollTop; }, { passive: true });

  const bar = document.createElement('div');
  bar.className = 'c-editor-bar';
  const format = button('Format');
  const whole = button('Expand');
  whole.setAttribute('aria-expanded', 'false');
  whole.setAttribute('aria-controls', area.id);
  const copy = button('Copy');
  const mode = document.createElement('span');
  mode.setAttribute('role', 'status');
  const place = document.createElement('span');
  const room = document.createElement('span');
  room.setAttribute('role', 'status');
  if (!('code' in frame.dataset)) bar.append(format);
  bar.append(whole, copy, mode, room, place);
  frame.after(bar);
  color(frame, area);

  let indenting = false;
  const showMode = () => { mode.textContent = indenting ? 'Tab indents (Ctrl+M: leave)' : 'Tab leaves the field (Ctrl+M: indent)'; };
  const showPlace = () => {
    const before = area.value.slice(0, area.selectionStart).split('\n');
    place.textContent = `Ln ${before.length}, Col ${(before.at(-1) ?? '').length + 1}`;
  };
  // What takes a moment to count is counted when somebody pauses, and told near the limit.
  let timer = 0;
  const showRoom = () => {
    const used = area.value.length < limit / 8 ? 0 : encoder.encode(area.value).length;
    const text = used > limit ? `${Math.ceil((used - limit) / 1024)} KiB too long` : used > limit * 0.9 ? `${Math.floor((limit - used) / 1024)} KiB left` : '';
    if (room.textContent !== text) room.textContent = text;
    room.classList.toggle('u-bad', used > limit);
  };
  area.addEventListener('input', () => { clearTimeout(timer); timer = window.setTimeout(showRoom, 300); });
  for (const type of ['keyup', 'click', 'input', 'focus']) area.addEventListener(type, showPlace);

  format.addEventListener('click', () => {
    try {
      replace(area, 0, area.value.length, JSON.stringify(JSON.parse(area.value), null, 2));
      mode.textContent = 'Formatted';
    } catch {
      // The server says where the error is; formatting just does not happen.
      mode.textContent = 'Not valid JSON yet, so it was left as it is';
    }
  });

  whole.addEventListener('click', () => {
    const open = !('whole' in frame.dataset);
    if (open) frame.dataset.whole = ''; else delete frame.dataset.whole;
    whole.setAttribute('aria-expanded', String(open));
    whole.textContent = open ? 'Collapse' : 'Expand';
    number();
  });
  copy.setAttribute('aria-label', 'Copy the text');
  copy.dataset.copyFrom = area.id;

  area.addEventListener('keydown', (event) => {
    if (event.key === 'm' && event.ctrlKey) {
      event.preventDefault();
      indenting = !indenting;
      showMode();
    } else if (event.key === 's' && (event.ctrlKey || event.metaKey) && frame.dataset.save) {
      event.preventDefault();
      document.getElementById(frame.dataset.save)?.click();
    } else if (event.key === 'Tab' && indenting) {
      event.preventDefault();
      indent(area, event.shiftKey);
    } else if (event.key === 'Enter' && !event.ctrlKey && !event.isComposing) {
      event.preventDefault();
      newLine(area);
    }
  });
  number();
  showMode();
  showPlace();
  showRoom();
}

/**
 * Colors the text: a copy of it lies beneath the textarea, whose own text is transparent then.
 * @param {HTMLElement} frame @param {HTMLTextAreaElement} area
 */
async function color(frame, area) {
  const { highlight, grammar } = frame.dataset;
  if (!highlight || !grammar) return;
  const [core, language] = await Promise.all([import(highlight), import(grammar)]).catch(() => []);
  if (!core || !language) return;
  core.default.registerLanguage('code', language.default);
  const copy = document.createElement('pre');
  copy.className = 'c-editor-copy';
  copy.setAttribute('aria-hidden', 'true');
  area.before(copy);
  const follow = () => { copy.scrollTop = area.scrollTop; copy.scrollLeft = area.scrollLeft; };
  const paint = () => {
    copy.innerHTML = core.default.highlight(area.value, { language: 'code', ignoreIllegals: true }).value + '\n\n';
    follow();
  };
  let timer = 0;
  const draw = () => {
    clearTimeout(timer);
    frame.toggleAttribute('data-colored', area.value.length <= colored);
    if (area.value.length > colored) copy.textContent = '';
    else if (area.value.length <= slow) paint();
    else { copy.textContent = area.value + '\n\n'; follow(); timer = window.setTimeout(paint, 200); }
  };
  for (const type of ['input', 'loom:set']) area.addEventListener(type, draw);
  area.addEventListener('scroll', follow, { passive: true });
  draw();
}

/** Replaces a range so that the browser's undo still works. @param {HTMLTextAreaElement} area @param {number} from @param {number} to @param {string} text */
function replace(area, from, to, text) {
  area.focus();
  area.setSelectionRange(from, to);
  // The only way that keeps the undo history; the other is for browsers without it.
  if (!document.execCommand('insertText', false, text)) {
    area.setRangeText(text, from, to, 'end');
    area.dispatchEvent(new Event('input', { bubbles: true }));
  }
}

/** @param {HTMLTextAreaElement} area */
function newLine(area) {
  const { selectionStart: from, selectionEnd: to, value } = area;
  const line = value.slice(value.lastIndexOf('\n', from - 1) + 1, from);
  const indent = line.match(/^\s*/)?.[0] ?? '';
  const opens = /[[{]\s*$/.test(line);
  const closes = /^\s*[\]}]/.test(value.slice(to));
  const inner = '\n' + indent + (opens ? '  ' : '');
  replace(area, from, to, inner + (opens && closes ? '\n' + indent : ''));
  area.setSelectionRange(from + inner.length, from + inner.length);
}

/** @param {HTMLTextAreaElement} area @param {boolean} back */
function indent(area, back) {
  const { selectionStart: from, selectionEnd: to, value } = area;
  const start = value.lastIndexOf('\n', from - 1) + 1;
  if (from === to && !back) return replace(area, from, to, '  ');
  const block = value.slice(start, to);
  const moved = back ? block.replace(/^ {1,2}/gm, '') : block.replace(/^/gm, '  ');
  replace(area, start, to, moved);
  area.setSelectionRange(start, start + moved.length);
}

document.addEventListener('loom:goto', (event) => {
  const { goto: id, line, column } = /** @type {CustomEvent} */ (event).detail;
  const area = /** @type {HTMLTextAreaElement | null} */ (document.getElementById(id));
  if (!area?.setSelectionRange) return;
  const lines = area.value.split('\n');
  const row = Math.min(Number(line), lines.length) - 1;
  const at = lines.slice(0, row).reduce((sum, text) => sum + text.length + 1, 0) + Math.max(Number(column || 1) - 1, 0);
  area.focus();
  area.setSelectionRange(at, Math.min(at + 1, area.value.length));
  area.scrollTop = Math.max(0, (row - 3) * parseFloat(getComputedStyle(area).lineHeight));
});
