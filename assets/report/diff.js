// Differences of two texts, by line and by word: the shortest edit script (Myers 1986) up to a limit.

const MAX_CHANGES = 1200;
/** Below this part in common a line counts as another line, and no words are marked in it. */
const MIN_COMMON = 0.3;

/** `[{kind: ' ' | '-' | '+', text}]` of two lists of texts; beyond MAX_CHANGES the middle is all removed and all added. */
function difference(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const same = (texts) => texts.map((text) => ({ kind: ' ', text }));
  const [inA, inB] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  return [...same(a.slice(0, head)), ...(shortestEdit(inA, inB) ?? replacement(inA, inB)), ...same(a.slice(a.length - tail))];
}

const replacement = (a, b) => [...a.map((text) => ({ kind: '-', text })), ...b.map((text) => ({ kind: '+', text }))];

function shortestEdit(a, b) {
  const most = Math.min(a.length + b.length, MAX_CHANGES);
  const furthest = new Map([[1, 0]]);
  const trail = [];
  for (let d = 0; d <= most; d += 1) {
    trail.push(new Map(furthest));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && furthest.get(k - 1) < furthest.get(k + 1));
      let x = down ? furthest.get(k + 1) : furthest.get(k - 1) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      furthest.set(k, x);
      if (x >= a.length && x - k >= b.length) return backtrack(a, b, trail);
    }
  }
  return null;
}

function backtrack(a, b, trail) {
  const parts = [];
  let [x, y] = [a.length, b.length];
  for (let d = trail.length - 1; d >= 0; d -= 1) {
    const furthest = trail[d];
    const k = x - y;
    const down = k === -d || (k !== d && furthest.get(k - 1) < furthest.get(k + 1));
    const fromK = down ? k + 1 : k - 1;
    const fromX = furthest.get(fromK);
    const fromY = fromX - fromK;
    while (x > fromX && y > fromY && x > 0 && y > 0) {
      x -= 1;
      y -= 1;
      parts.push({ kind: ' ', text: a[x] });
    }
    if (d > 0 && down) parts.push({ kind: '+', text: b[(y -= 1)] });
    else if (d > 0) parts.push({ kind: '-', text: a[(x -= 1)] });
  }
  return parts.reverse();
}

/** Words, spaces and signs; Han characters are words of their own. */
const wordsOf = (text) => text.match(/\p{Script=Han}|(?:(?!\p{Script=Han})[\p{L}\p{N}_])+|\s+|./gsu) ?? [];

/** The difference by word; null of texts that have little in common. */
function wordDifference(before, after) {
  const parts = difference(wordsOf(before), wordsOf(after));
  const letters = (kinds) => parts.filter(({ kind, text }) => kinds.includes(kind) && text.trim()).reduce((sum, { text }) => sum + text.length, 0);
  return letters(' ') < MIN_COMMON * Math.max(letters(' -'), letters(' +')) ? null : parts;
}

/** One side of a difference by word: its words, with those marked that the other side lacks. */
function markedWords(parts, side) {
  const shown = [];
  for (const { kind, text } of parts.filter(({ kind }) => kind === ' ' || kind === side)) {
    const last = shown[shown.length - 1];
    if (last?.kind === kind) last.text += text;
    else shown.push({ kind, text });
  }
  return shown.map(({ kind, text }) => (kind === ' ' ? text : h(side === '-' ? 'del' : 'ins', {}, text)));
}

/** Two texts as they are beside each other. */
function wordColumns(before, after) {
  const parts = wordDifference(before, after) ?? replacement([before], [after]).filter(({ text }) => text);
  const isOther = parts.every(({ kind }) => kind !== ' ');
  return ['-', '+'].map((side) => (isOther ? parts.filter(({ kind }) => kind === side).map(({ text }) => text) : markedWords(parts, side)));
}

/** The changed lines with `around` lines of context, and in them the changed words. */
function diffView(before, after, around = 2) {
  const lines = difference(before.split('\n'), after.split('\n'));
  const near = lines.map(() => false);
  lines.forEach(({ kind }, i) => {
    if (kind === ' ') return;
    for (let j = Math.max(0, i - around); j <= Math.min(lines.length - 1, i + around); j += 1) near[j] = true;
  });
  const rows = [];
  for (let i = 0; i < lines.length;) {
    const from = i;
    if (!near[i]) {
      while (i < lines.length && !near[i]) i += 1;
      rows.push(h('div', { class: 'gap' }, t('lines_same', { n: i - from })));
    } else if (lines[i].kind === ' ') {
      rows.push(diffRow(' ', lines[i].text));
      i += 1;
    } else {
      while (i < lines.length && lines[i].kind !== ' ') i += 1;
      rows.push(...changedRows(lines.slice(from, i)));
    }
  }
  const counts = { '-': 0, '+': 0, ' ': 0 };
  lines.forEach(({ kind }) => { counts[kind] += 1; });
  const lead = counts['-'] + counts['+'] ? t('diff_counts', { gone: counts['-'], new: counts['+'] }) : t('diff_none');
  return [h('p', { class: 'note' }, lead), rows.length ? h('div', { class: 'diff', tabindex: '0', role: 'region', 'aria-label': t('diff') }, rows) : null];
}

/** The rows of adjoining changed lines, those removed first. */
function changedRows(lines) {
  const of = (side) => lines.filter(({ kind }) => kind === side).map(({ text }) => text);
  const [gone, added] = [of('-'), of('+')];
  const pairs = Array.from({ length: Math.max(gone.length, added.length) }, (_, i) =>
    (gone[i] === undefined || added[i] === undefined ? null : wordDifference(gone[i], added[i])));
  const rows = (side, texts) => texts.map((text, i) => diffRow(side, pairs[i] ? markedWords(pairs[i], side) : text));
  return [...rows('-', gone), ...rows('+', added)];
}

const ROWS = { '-': 'gone', '+': 'new', ' ': 'same' };
const diffRow = (kind, content) => h('div', { class: ROWS[kind] }, h('span', { class: 'side' }, kind === '-' ? '−' : kind), h('span', {}, content.length ? content : ' '));
