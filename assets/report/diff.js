// Line diff of two texts: the shortest edit script (Myers 1986) up to a limit.

const MAX_CHANGES = 1200;

/** `[{kind: ' ' | '-' | '+', text}]`; beyond MAX_CHANGES the middle is all removed and all added. */
function lineDiff(before, after) {
  const [a, b] = [before.split('\n'), after.split('\n')];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const same = (lines) => lines.map((text) => ({ kind: ' ', text }));
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
  const lines = [];
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
      lines.push({ kind: ' ', text: a[x] });
    }
    if (d > 0 && down) lines.push({ kind: '+', text: b[(y -= 1)] });
    else if (d > 0) lines.push({ kind: '-', text: a[(x -= 1)] });
  }
  return lines.reverse();
}

/** The changed lines with `around` lines of context. */
function diffView(before, after, around = 2) {
  const lines = lineDiff(before, after);
  const near = lines.map(() => false);
  lines.forEach(({ kind }, i) => {
    if (kind === ' ') return;
    for (let j = Math.max(0, i - around); j <= Math.min(lines.length - 1, i + around); j += 1) near[j] = true;
  });
  const counts = { '-': 0, '+': 0, ' ': 0 };
  lines.forEach(({ kind }) => { counts[kind] += 1; });
  const rows = [];
  let skipped = 0;
  const flush = () => {
    if (skipped) rows.push(h('div', { class: 'gap' }, t('lines_same', { n: skipped })));
    skipped = 0;
  };
  const NAMES = { '-': 'gone', '+': 'new', ' ': 'same' };
  lines.forEach(({ kind, text }, i) => {
    if (!near[i]) { skipped += 1; return; }
    flush();
    rows.push(h('div', { class: NAMES[kind] }, h('span', { class: 'side' }, kind === '-' ? '−' : kind), h('span', {}, text || ' ')));
  });
  flush();
  const lead = counts['-'] + counts['+'] ? t('diff_counts', { gone: counts['-'], new: counts['+'] }) : t('diff_none');
  return [h('p', { class: 'note' }, lead), h('div', { class: 'diff', tabindex: '0', role: 'region', 'aria-label': t('diff') }, rows)];
}
