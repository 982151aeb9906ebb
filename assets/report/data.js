// The data: columns of cells, filters, and chunks of texts that are decompressed when needed.

const report = JSON.parse(document.getElementById('report').textContent);
const cells = report.cells;
const methods = report.methods;
const dimensions = report.dimensions.map(([id, label]) => ({ id, label }));

/** The value of a column for a cell. A column of equal values is stored as that value. */
const valueAt = (column, cell) => (Array.isArray(column) ? column[cell] : column);
const probeOf = (cell) => report.probes[valueAt(cells.probe, cell)];
const scoreOf = (cell, dimension = -1) => {
  const value = valueAt(dimension < 0 ? cells.overall : cells.dimensions[dimension], cell);
  return isNumber(value) ? value / 100 : null;
};

/** The names that the address has for the values of a filter, by their index. */
const NAMES = { method: methods.map((method) => method.name), fixture: report.fixtures };
const filters = { fixture: '', method: '', run: '', type: '', show: '' };
const listeners = [];

/** Calls `draw` now and on each change of the filters. */
function onFilterChange(draw) {
  listeners.push(draw);
  draw();
}

function setFilters(change) {
  const named = Object.entries(change).map(([name, value]) => [name, NAMES[name]?.[value] ?? value]);
  go(Object.fromEntries(named));
  restoreFilters();
}

/** Takes the filters from the address. */
function restoreFilters() {
  const before = JSON.stringify(filters);
  const indexOf = (name, value) => (NAMES[name].includes(value) ? String(NAMES[name].indexOf(value)) : '');
  for (const name of Object.keys(filters)) filters[name] = NAMES[name] ? indexOf(name, shown[name]) : shown[name] ?? '';
  if (JSON.stringify(filters) === before) return;
  filteredCells = matchingCells();
  listeners.forEach((draw) => draw());
}

const isFiltered = () => Object.values(filters).some((value) => value !== '');

function matchingCells() {
  const found = [];
  for (let cell = 0; cell < cells.n; cell += 1) {
    const probe = probeOf(cell);
    const out =
      (filters.method !== '' && valueAt(cells.method, cell) !== Number(filters.method)) ||
      (filters.run !== '' && valueAt(cells.run, cell) !== Number(filters.run)) ||
      (filters.fixture !== '' && probe.fixture !== Number(filters.fixture)) ||
      (filters.type !== '' && probe.type !== filters.type) ||
      (filters.show !== '' && !SHOWN[filters.show]?.(cell));
    if (!out) found.push(cell);
  }
  return found;
}

/** One cell for each judgement: repetitions of a deterministic method rest on the same one. */
function distinct(found) {
  const seen = new Set();
  return found.filter((cell) => {
    const key = valueAt(cells.same, cell);
    return !seen.has(key) && seen.add(key);
  });
}

/** The indices of the methods that match the filters. A baseline stands beside what is compared with it, unless it is chosen. */
const shownMethods = () => methods.map((_, m) => m).filter((m) => (filters.method === '' ? !isBaseline(m) : Number(filters.method) === m));

const hasDimension = dimensions.map((_, d) =>
  Array.isArray(cells.dimensions[d]) ? cells.dimensions[d].some(isNumber) : isNumber(cells.dimensions[d]));

/** On the page of a comparison: by method, what it is compared with. */
const mates = new Map(report.pairs.map((names) => names.map((name) => NAMES.method.indexOf(name))).flatMap(([a, b]) => [[a, b], [b, a]]));
const judgedMethods = new Set(report.pairs.map(([name]) => NAMES.method.indexOf(name)));
const isBaseline = (m) => mates.has(m) && !judgedMethods.has(m);

const REPEATED = ['probe', 'run', 'answer_n', 'judge', 'judge_n'];
let cellsByPlace;

/** The cell of the same probe, run and repetition with another method. */
function cellWith(cell, method) {
  const key = (m, one) => [m, ...REPEATED.map((name) => valueAt(cells[name], one))].join();
  cellsByPlace ??= new Map(Array.from({ length: cells.n }, (_, one) => [key(valueAt(cells.method, one), one), one]));
  return cellsByPlace.get(key(method, cell));
}

/** The baseline's cell that a judged cell is compared with. */
const baselineOf = (cell) => (judgedMethods.has(valueAt(cells.method, cell)) ? cellWith(cell, mates.get(valueAt(cells.method, cell))) : undefined);

/** How much a cell changed since the baseline; null where one of the two has no score. */
function changeOf(cell) {
  const [before, after] = [baselineOf(cell), cell].map((one) => (one === undefined ? null : scoreOf(one)));
  return isNumber(before) && isNumber(after) ? after - before : null;
}

/** Whether it went from good to bad or back, by the thresholds of `compare`. */
function isFlipped(cell) {
  const change = changeOf(cell);
  return change !== null && Math.abs(change) >= 1 && (scoreOf(cell) >= 2.5) !== (scoreOf(cell) - change >= 2.5);
}

/** The judged cell of a pair, whichever of the two is given. */
const judgedOf = (cell) => (judgedMethods.has(valueAt(cells.method, cell)) ? cell : cellWith(cell, mates.get(valueAt(cells.method, cell))) ?? cell);

/** Which cells are shown: those with a bad score, those that went from good to bad or back, those whose score changed. */
const SHOWN = {
  failed: (cell) => scoreOf(cell) !== null && scoreOf(cell) < 2.5,
  flipped: (cell) => isFlipped(judgedOf(cell)),
  changed: (cell) => Boolean(changeOf(judgedOf(cell))),
};

/** The cells that match the filters. */
let filteredCells = matchingCells();
onAddress(restoreFilters);

const openedChunks = new Map();

/** The content of a chunk of texts; each is decompressed once. */
function chunk(id) {
  if (!openedChunks.has(id)) openedChunks.set(id, decompressed(document.getElementById(id).textContent));
  return openedChunks.get(id);
}

async function decompressed(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Response(stream).json();
}

/** The long texts of a cell. */
async function cellText(cell) {
  const number = report.chunks.findLastIndex((first) => first <= cell);
  const texts = await chunk(`cells-${number}`);
  return texts[cell - report.chunks[number]];
}

/** A context: `{text, marks}`, or `{absent}` with the reason. */
async function contextText(cell) {
  const id = `contexts-${valueAt(cells.context, cell)}`;
  return document.getElementById(id) === null ? { absent: 'pruned' } : chunk(id);
}
