// Lists of cells, and the drawer.

/** A list of cells; `open` is called with the chosen one. */
const cellList = (found, open) => rovingFocus(h('div', { class: 'cells', role: 'group', 'aria-label': t('cells') }, found.map((cell) => listRow(cell, open))));

function listRow(cell, open) {
  const probe = probeOf(cell);
  const before = baselineOf(cell);
  const lettersOf = (one) => [...cells.facts[one]].slice(0, 8).map(fateIcon);
  const flags = valueAt(cells.flags, cell) ?? 0;
  const value = before === undefined ? score(scoreOf(cell)) : `${score(scoreOf(before))} → ${score(scoreOf(cell))}`;
  return markButton(`${probe.id}: ${value}`, () => open(cell), { class: `cell-row ${before === undefined ? '' : 'pair'}`, 'data-row': '' },
    h('span', { class: 'who' }, methodLabel(valueAt(cells.method, cell)), h('span', { class: 'sub' }, locationText(cell))),
    h('span', { class: 'what' }, h('span', { class: 'probe' }, probe.id), h('span', { class: 'sub' }, probe.question ?? '')),
    h('span', { class: 'fates' }, flags ? h('span', { class: 'flag', title: flagText(flags) }, '!') : null,
      before === undefined || cells.facts[before] === cells.facts[cell] ? null : [lettersOf(before), ' → '], lettersOf(cell)),
    h('span', { class: 'points' }, h('span', { class: 'value' }, value), scoreBar(scoreOf(cell))));
}

// What is above all other elements is printed on one page only.
for (const event of ['beforeprint', 'afterprint']) {
  window.addEventListener(event, () => {
    if (!drawer.open) return;
    drawer.close();
    if (event === 'afterprint') drawer.showModal();
    else drawer.show();
  });
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
  list.querySelectorAll('.cell-row')[Math.max(0, position)]?.focus();
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
