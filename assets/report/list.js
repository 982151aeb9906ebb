// Virtual lists of cells: only visible rows have elements, so the number of cells does not matter.

const ROWS_AROUND = 6;

/** A list of cells. `open(cell, position)` is called for the chosen one; rows show the score on `dimension`. */
function cellList(found, open, dimension = -1) {
  const tall = matchMedia('(max-width: 700px)').matches ? 66 : 46;
  const spacer = h('div', { class: 'spacer', vars: { height: `${found.length * tall}px` } });
  const list = h('div', { class: 'cells', role: 'listbox', tabindex: '0', 'aria-label': t('cells') }, spacer);
  let active = 0;
  let drawn = '';
  const draw = (force) => {
    const from = Math.max(0, Math.floor(list.scrollTop / tall) - ROWS_AROUND);
    const to = Math.min(found.length, from + Math.ceil((list.clientHeight || 600) / tall) + 2 * ROWS_AROUND);
    if (!force && drawn === `${from}-${to}`) return;
    drawn = `${from}-${to}`;
    const rows = [];
    for (let i = from; i < to; i += 1) rows.push(listRow({ found, i, isActive: i === active, top: i * tall, dimension, id: `${spacer.id}-${i}` }));
    spacer.replaceChildren(...rows);
    if (found.length) list.setAttribute('aria-activedescendant', `${spacer.id}-${active}`);
  };
  spacer.id = `list-${(cellList.made = (cellList.made ?? 0) + 1)}`;
  const show = (i) => {
    active = Math.max(0, Math.min(found.length - 1, i));
    if (active * tall < list.scrollTop) list.scrollTop = active * tall;
    if ((active + 1) * tall > list.scrollTop + list.clientHeight) list.scrollTop = (active + 1) * tall - list.clientHeight;
    draw(true);
  };
  list.addEventListener('scroll', () => draw(false), { passive: true });
  list.addEventListener('keydown', (event) => listKey(event, active, Math.max(1, Math.floor(list.clientHeight / tall)), found, show, open));
  list.addEventListener('click', (event) => {
    const row = event.target.closest('[role=option]');
    if (!row) return;
    show(Number(row.dataset.at));
    open(found[active], active);
  });
  list.start = (i = 0) => show(i);
  draw(true);
  return list;
}

function listKey(event, active, page, found, show, open) {
  const moves = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: found.length - 1 };
  if (event.key in moves) show(moves[event.key]);
  else if ((event.key === 'Enter' || event.key === ' ') && found.length) open(found[active], active);
  else return;
  event.preventDefault();
}

function listRow({ found, i, isActive, top, dimension, id }) {
  const cell = found[i];
  const probe = probeOf(cell);
  const m = valueAt(cells.method, cell);
  const value = scoreOf(cell, dimension);
  const flags = valueAt(cells.flags, cell) ?? 0;
  return h('div', { class: `cell-row ${isActive ? 'active' : ''}`, role: 'option', id, 'data-at': i, vars: { top: `${top}px` },
    'aria-selected': isActive ? 'true' : 'false', 'aria-setsize': found.length, 'aria-posinset': i + 1 },
    h('span', { class: 'who' }, methodLabel(m), h('span', { class: 'sub' }, locationText(cell))),
    h('span', { class: 'what' }, h('span', { class: 'probe' }, probe.id), h('span', { class: 'sub' }, probe.question ?? '')),
    h('span', { class: 'fates' }, flags ? h('span', { class: 'flag', title: flagText(flags) }, '!') : null,
      [...cells.facts[cell]].slice(0, 8).map(fateIcon)),
    h('span', { class: 'points' }, h('span', { class: 'value' }, score(value)), intervalBar(value, null, 0, 5)));
}

/** Fixture, cycle, run and repetition of a cell. */
function locationText(cell) {
  const probe = probeOf(cell);
  const parts = [report.fixtures[probe.fixture], t('cycle_n', { n: probe.point }), t('run_n', { n: valueAt(cells.run, cell) })];
  if (report.answerers.length > 1) parts.push(report.answerers[valueAt(cells.answerer, cell)]);
  if (report.judges.length > 1) parts.push(report.judges[valueAt(cells.judge, cell)]);
  if (valueAt(cells.answer_n, cell) > 1) parts.push(t('answer_n', { n: valueAt(cells.answer_n, cell) }));
  if (valueAt(cells.judge_n, cell) > 1) parts.push(t('judgement_n', { n: valueAt(cells.judge_n, cell) }));
  return parts.join(' · ');
}

const flagText = (flags) => [[1, 'flag_fabricated'], [2, 'flag_stale'], [4, 'flag_invented']]
  .filter(([bit]) => flags & bit).map(([, key]) => texts[key]).join('; ');

// --- the drawer ---

const drawer = document.getElementById('drawer');
drawer.addEventListener('click', (event) => event.target === drawer && drawer.close());

function fillDrawer(title, tools, ...children) {
  const close = h('button', { type: 'button', class: 'icon', 'aria-label': t('close'), title: t('close'), on: { click: () => drawer.close() } }, '✕');
  const head = h('div', { class: 'drawer-head' }, tools, h('h2', { id: 'drawer-title' }, title), close);
  drawer.setAttribute('aria-labelledby', 'drawer-title');
  drawer.replaceChildren(head, h('div', { class: 'drawer-body', tabindex: '-1' }, children));
  if (!drawer.open) drawer.showModal();
  drawer.querySelector('.drawer-body').scrollTop = 0;
}

/** Opens the list of the filtered cells for which `belongs` is true, worst first. */
function openList(title, belongs, dimension) {
  const rank = (cell) => scoreOf(cell, dimension) ?? 9;
  const found = filteredCells.filter((cell) => belongs(cell) && (dimension < 0 || scoreOf(cell, dimension) !== null))
    .sort((a, b) => rank(a) - rank(b) || a - b);
  showList({ title, found, dimension }, 0);
}

function showList(from, position) {
  drawer.onkeydown = null;
  const list = cellList(from.found, (cell, i) => openCell(cell, { ...from, position: i }), from.dimension);
  const lead = [t('cells_n', { n: integer(from.found.length) }), t('worst_first'), isFiltered() ? t('filtered') : null];
  fillDrawer(from.title, null, h('p', { class: 'note' }, lead.filter(Boolean).join(' · ')), list);
  list.start(position);
  list.focus();
}

// --- all cells ---

const ORDERS = {
  matrix: () => 0,
  worst: (a, b) => (scoreOf(a) ?? 9) - (scoreOf(b) ?? 9),
  best: (a, b) => (scoreOf(b) ?? -1) - (scoreOf(a) ?? -1),
};
let order = 'worst';
let query = '';

function cellsSection() {
  const host = h('div', { class: 'explorer' });
  const count = h('p', { class: 'note', 'aria-live': 'polite' });
  const draw = () => {
    const folded = query.toLowerCase();
    const found = filteredCells.filter((cell) => !folded || searchText(cell).includes(folded)).sort((a, b) => ORDERS[order](a, b) || a - b);
    count.textContent = t('cells_of', { n: integer(found.length), all: integer(cells.n) });
    const list = cellList(found, (cell, i) => openCell(cell, { title: t('cells'), found, dimension: -1, position: i, page: true }));
    host.replaceChildren(list);
    list.start(0);
  };
  const search = h('input', { type: 'search', id: 'search', placeholder: t('search'), 'aria-label': t('search'), on: { input: (e) => { query = e.target.value; draw(); } } });
  const sort = h('select', { 'aria-label': t('order'), on: { change: (e) => { order = e.target.value; draw(); } } },
    Object.keys(ORDERS).map((key) => h('option', { value: key, selected: key === order }, texts[`order_${key}`])));
  const made = section('cells', t('cells'), t('cells_lead'), h('div', { class: 'tools' }, search, sort), count, host);
  onFilterChange(draw);
  return made;
}

function searchText(cell) {
  const probe = probeOf(cell);
  return `${probe.id} ${probe.question ?? ''} ${methods[valueAt(cells.method, cell)].name} ${report.fixtures[probe.fixture]}`.toLowerCase();
}
