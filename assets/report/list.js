// Virtual lists of cells: only visible rows have elements, so the number of cells does not matter.

const ROWS_AROUND = 6;

/** A list of cells. `open` is called with the chosen one. */
function cellList(found, open) {
  const tall = matchMedia('(max-width: 700px)').matches ? 66 : 46;
  const spacer = h('div', { class: 'spacer', vars: { height: `${found.length * tall}px` } });
  const list = h('div', { class: 'cells', role: 'listbox', tabindex: '0', 'aria-label': t('cells'), vars: { rows: `${found.length * tall}px` } }, spacer);
  let active = 0;
  let drawn = '';
  const draw = (force) => {
    const from = Math.max(0, Math.floor(list.scrollTop / tall) - ROWS_AROUND);
    const to = Math.min(found.length, from + Math.ceil((list.clientHeight || 600) / tall) + 2 * ROWS_AROUND);
    if (force || drawn !== `${from}-${to}`) drawRows(from, to);
  };
  const drawRows = (from, to) => {
    drawn = `${from}-${to}`;
    const rows = [];
    for (let i = from; i < to; i += 1) rows.push(listRow({ found, i, isActive: i === active, top: i * tall, id: `${spacer.id}-${i}` }));
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
    open(found[active]);
  });
  list.start = (i = 0) => show(i);
  list.onprint = (isOver) => (isOver ? draw(true) : drawRows(0, Math.min(found.length, MOST_PRINTED)));
  draw(true);
  return list;
}

/** Paper does not scroll: a list is printed from its beginning, up to so many rows. */
const MOST_PRINTED = 200;
for (const event of ['beforeprint', 'afterprint']) {
  window.addEventListener(event, () => {
    const isOver = event === 'afterprint';
    // What is above all other elements is printed on one page only.
    if (drawer.open) {
      drawer.close();
      if (isOver) drawer.showModal();
      else drawer.show();
    }
    document.querySelectorAll('.cells').forEach((list) => list.onprint(isOver));
  });
}

function listKey(event, active, page, found, show, open) {
  const moves = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: found.length - 1 };
  if (event.key in moves) show(moves[event.key]);
  else if ((event.key === 'Enter' || event.key === ' ') && found.length) open(found[active]);
  else return;
  event.preventDefault();
}

function listRow({ found, i, isActive, top, id }) {
  const cell = found[i];
  const probe = probeOf(cell);
  const m = valueAt(cells.method, cell);
  const value = scoreOf(cell);
  const before = baselineOf(cell);
  const lettersOf = (one) => [...cells.facts[one]].slice(0, 8).map(fateIcon);
  const flags = valueAt(cells.flags, cell) ?? 0;
  return h('div', { class: `cell-row ${isActive ? 'active' : ''} ${before === undefined ? '' : 'pair'}`, role: 'option', id, 'data-at': i, vars: { top: `${top}px` },
    'aria-selected': isActive ? 'true' : 'false', 'aria-setsize': found.length, 'aria-posinset': i + 1 },
    h('span', { class: 'who' }, methodLabel(m), h('span', { class: 'sub' }, locationText(cell))),
    h('span', { class: 'what' }, h('span', { class: 'probe' }, probe.id), h('span', { class: 'sub' }, probe.question ?? '')),
    h('span', { class: 'fates' }, flags ? h('span', { class: 'flag', title: flagText(flags) }, '!') : null,
      before === undefined || cells.facts[before] === cells.facts[cell] ? null : [lettersOf(before), ' → '], lettersOf(cell)),
    h('span', { class: 'points' }, h('span', { class: 'value' }, before === undefined ? score(value) : `${score(scoreOf(before))} → ${score(value)}`), scoreBar(value)));
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
drawer.addEventListener('close', () => drawer.open || go({ ...NO_LIST, cell: '', tab: '', with: '' }));

function fillDrawer(title, tools, ...children) {
  const close = h('button', { type: 'button', class: 'icon', 'aria-label': t('close'), title: t('close'), on: { click: () => drawer.close() } }, '✕');
  const head = h('div', { class: 'drawer-head' }, tools, h('h2', { id: 'drawer-title' }, title), close);
  drawer.setAttribute('aria-labelledby', 'drawer-title');
  drawer.replaceChildren(head, h('div', { class: 'drawer-body', tabindex: '-1' }, children));
  if (!drawer.open) drawer.showModal();
  drawer.querySelector('.drawer-body').scrollTop = 0;
}

// What a list can be of: each part with its test of a cell, and its part of the title.
const PARTS = {
  method: [(cell, name) => methods[valueAt(cells.method, cell)].name === name, (name) => name],
  probe: [(cell, name) => placeName(cell) === name, (name) => name.split(',').slice(2).join()],
};
const NO_LIST = Object.fromEntries(Object.keys(PARTS).map((part) => [`in.${part}`, '']));

/** Opens the list of the filtered cells that have all these parts, worst first. */
function openList(parts) {
  go({ ...NO_LIST, ...Object.fromEntries(Object.entries(parts).map(([part, value]) => [`in.${part}`, String(value)])), cell: '' });
  restoreDrawer();
}

/** The list that the address names: `{title, found}`, or null. */
function listedCells() {
  const parts = Object.keys(PARTS).filter((part) => shown[`in.${part}`]).map((part) => [part, shown[`in.${part}`]]);
  if (!parts.length) return null;
  const rank = (cell) => scoreOf(cell) ?? 9;
  const found = filteredCells.filter((cell) => parts.every(([part, value]) => PARTS[part][0](cell, value)));
  return { title: parts.map(([part, value]) => PARTS[part][1](value)).join(' · '), found: distinct(found).sort((a, b) => rank(a) - rank(b) || a - b) };
}

function showList(from, position) {
  drawer.onkeydown = null;
  delete drawer.dataset.cell;
  const list = cellList(from.found, openCell);
  const lead = [t('cells_n', { n: integer(from.found.length) }), t('worst_first'), isFiltered() ? t('filtered') : null];
  fillDrawer(from.title, null, h('p', { class: 'note' }, lead.filter(Boolean).join(' · ')), list);
  list.start(Math.max(0, position));
  list.focus();
}

/** The name of a cell in the address. */
function cellName(cell) {
  const probe = probeOf(cell);
  const numbers = [valueAt(cells.run, cell), valueAt(cells.answer_n, cell), valueAt(cells.judge_n, cell)];
  const [answerer, judge] = [report.answerers, report.judges].map((names, i) => (names.length > 1 ? names[valueAt([cells.answerer, cells.judge][i], cell)] : ''));
  return [report.fixtures[probe.fixture], probe.point, probe.id, methods[valueAt(cells.method, cell)].name, numbers.join('.'), answerer, judge].filter((part) => part !== '').join(' ');
}

/** Opens a cell. Going on from another one is no step of its own: Back leads to where the first was chosen. */
function openCell(cell) {
  const isNext = drawer.open && Boolean(shown.cell);
  go({ cell: cellName(cell), ...(isNext ? {} : { tab: '', with: '' }) }, isNext);
  restoreDrawer();
}

/** Shows in the drawer what the address names. */
function restoreDrawer() {
  const from = listedCells();
  const all = shown.cell ? [...Array(cells.n).keys()] : [];
  const cell = all.find((one) => cellName(one) === shown.cell);
  if (cell !== undefined) showCell(cell, from ?? { title: t('cells'), found: explored, page: true });
  else if (from) showList(from, from.found.indexOf(Number(drawer.dataset.cell)));
  else if (drawer.open) drawer.close();
}
