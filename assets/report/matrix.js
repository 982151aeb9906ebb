// The questions by method: the score of each, and what became of each of its facts.

/** The rows that are shown at first, and that each step adds. */
const ROWS_AT_FIRST = 25;
const ROWS_MORE = 200;

/** The name of a question: its fixture, point and id. */
const placeName = (cell) => [report.fixtures[probeOf(cell).fixture], probeOf(cell).point, probeOf(cell).id].join();

/** The cell with the lowest score, which stands for the others of a question and a method. */
const worstOf = (found) => found.reduce((worst, cell) => ((scoreOf(cell) ?? 9) < (scoreOf(worst) ?? 9) ? cell : worst));
const meanOf = (found) => {
  const values = found.map((cell) => scoreOf(cell)).filter(isNumber);
  return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
};

/** `{probe, byMethod}` for each question with a cell that matches the filters. */
function questionRows() {
  const rows = new Map();
  for (const cell of filteredCells) {
    const probe = valueAt(cells.probe, cell);
    if (!rows.has(probe)) rows.set(probe, { probe: report.probes[probe], byMethod: new Map() });
    const { byMethod } = rows.get(probe);
    const m = valueAt(cells.method, cell);
    if (byMethod.has(m)) byMethod.get(m).push(cell);
    else byMethod.set(m, [cell]);
  }
  return [...rows.values()];
}

const ordinaryCells = ({ byMethod }) => [...byMethod].filter(([m]) => ordinary.includes(m)).map(([, found]) => found);
const scoresOf = (row) => ordinaryCells(row).map(meanOf).filter(isNumber);
const lowest = (row) => Math.min(9, ...scoresOf(row));
const average = (row) => scoresOf(row).reduce((a, b) => a + b, 0) / Math.max(1, scoresOf(row).length);
/** Whether a compression lost a fact: this is what to look at first. */
const isLost = (row) => ordinaryCells(row).some((found) => cells.facts[worstOf(found)].includes('l'));
const stepOf = (row) => Math.max(0, ...ordinaryCells(row).map((found) => Math.abs(changeOf(worstOf(found)) ?? 0)));

const ORDERS = {
  ...(mates.size ? { changed: (a, b) => stepOf(b) - stepOf(a) } : {}),
  worst: (a, b) => isLost(b) - isLost(a) || lowest(a) - lowest(b) || average(a) - average(b),
  best: (a, b) => average(b) - average(a),
  matrix: () => 0,
};

/** The cells of the matrix, by row. */
let explored = [];

/** The answers in lower case, by cell; read when somebody first searches. */
let answers = [];
let areAnswersRead = false;

async function readAnswers() {
  if (areAnswersRead) return;
  areAnswersRead = true;
  const texts = await Promise.all(report.chunks.map((_, number) => chunk(`cells-${number}`)));
  answers = texts.flat().map((text) => (text.answer ?? '').toLowerCase());
}

/** Whether words stand in a question, its names and facts, or in one of its answers. */
function isFound({ probe, byMethod }, words) {
  const facts = [...(probe.expected ?? []), ...(probe.superseded ?? [])].flat();
  const names = [probe.id, probe.question ?? '', report.fixtures[probe.fixture], ...facts].join('\n').toLowerCase();
  return names.includes(words) || [...byMethod.values()].flat().some((cell) => answers[cell]?.includes(words));
}

function cellsSection() {
  let most = ROWS_AT_FIRST;
  const host = h('div', {});
  const count = h('p', { class: 'note', 'aria-live': 'polite' });
  const onSearch = (event) => {
    go({ q: event.target.value }, true);
    draw();
    if (event.target.value) readAnswers().then(draw);
  };
  const search = h('input', { type: 'search', id: 'search', placeholder: t('search'), 'aria-label': t('search'), on: { input: onSearch } });
  const sort = h('select', { 'aria-label': t('order'), on: { change: (event) => { go({ order: event.target.value }); draw(); } } },
    Object.keys(ORDERS).map((key) => h('option', { value: key }, texts[`order_${key}`])));
  const draw = () => {
    const order = shown.order in ORDERS ? shown.order : Object.keys(ORDERS)[0];
    const words = (shown.q ?? '').toLowerCase();
    if (search.value !== (shown.q ?? '')) search.value = shown.q ?? '';
    sort.value = order;
    const all = questionRows();
    const rows = all.filter((row) => !words || isFound(row, words)).sort(ORDERS[order]);
    const columns = shownMethods();
    explored = rows.flatMap(({ byMethod }) => columns.filter((m) => byMethod.has(m)).map((m) => worstOf(byMethod.get(m))));
    count.textContent = t('questions_of', { n: integer(rows.length), all: integer(all.length) });
    const more = h('button', { type: 'button', class: 'quiet-button', on: { click: () => { most += ROWS_MORE; draw(); } } }, t('more_n', { n: integer(rows.length - most) }));
    host.replaceChildren(rovingFocus(matrixTable(rows.slice(0, most), columns)), rows.length > most ? more : '');
  };
  const made = section('cells', t('cells'), t('cells_lead'), fateLegend(), h('div', { class: 'tools' }, search, sort), count, host);
  onFilterChange(draw);
  onAddress(draw);
  if (shown.q) readAnswers().then(draw);
  return made;
}

function fateLegend() {
  const letters = new Set(cells.facts.join(''));
  const used = Object.keys(FATES).filter((letter) => letters.has(letter));
  const flags = [cells.flags ?? 0].flat().reduce((all, one) => all | one, 0);
  const flag = flags ? h('li', {}, h('span', { class: 'flag' }, '!'), ' ', flagText(flags)) : null;
  return h('ul', { class: 'legend' }, used.map((letter) => h('li', {}, fateIcon(letter), ' ', t(FATES[letter].word))), flag);
}

function matrixTable(rows, columns) {
  const row = ({ probe, byMethod }) => h('tr', { 'data-row': '' },
    h('th', { scope: 'row', class: 'left' }, h('span', { class: 'probe' }, probe.id), h('span', { class: 'sub' }, report.fixtures[probe.fixture], ' · ', t('cycle_n', { n: probe.point })),
      h('span', { class: 'asked' }, withCode(probe.question ?? ''))),
    columns.map((m) => h('td', {}, byMethod.has(m) ? matrixCell(m, byMethod.get(m)) : h('span', { class: 'absent' }, UNKNOWN))));
  return scrollable(h('table', { class: 'matrix' },
    h('thead', {}, h('tr', {}, h('th', { scope: 'col', class: 'left' }, t('question')), columns.map((m) => h('th', { scope: 'col' }, methodLabel(m))))),
    h('tbody', {}, rows.map(row))));
}

/** The score of a question with a method, and the fates of its facts in the worst answer. */
function matrixCell(m, found) {
  const cell = worstOf(found);
  const before = baselineOf(cell);
  const fates = (one) => [...cells.facts[one]].slice(0, 10).map(fateIcon);
  const flags = valueAt(cells.flags, cell) ?? 0;
  const isChanged = before !== undefined && cells.facts[before] !== cells.facts[cell];
  const isMoved = before !== undefined && scoreOf(before) !== scoreOf(cell);
  const value = isMoved ? `${score(scoreOf(before))} → ${score(scoreOf(cell))}` : score(meanOf(found));
  const one = distinct(found);
  const open = () => (one.length > 1 && before === undefined ? openList({ method: methods[m].name, probe: placeName(cell) }) : openCell(cell));
  return markButton(`${probeOf(cell).id}, ${methods[m].name}: ${value}`, open, { class: 'outcome' }, h('span', { class: 'value' }, value),
    h('span', { class: 'fates' }, flags ? h('span', { class: 'flag', title: flagText(flags) }, '!') : null, isChanged ? [fates(before), ' → '] : null, fates(cell)));
}
