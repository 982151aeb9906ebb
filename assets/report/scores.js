// Scores: the table, and what changed since a baseline.

const measuredDimensions = [-1, ...dimensions.map((_, d) => d).filter((d) => hasDimension[d])];
const heading = (d) => (d < 0 ? t('overall') : dimensions[d].label);
const compared = report.summary.comparison ?? null;
const comparisonFor = (m, d) => {
  const found = compared?.methods?.[methods[m].name];
  return (d < 0 ? found?.overall : found?.dimensions?.[dimensions[d].id]) ?? null;
};

/** Opens the cells of a method that have a score on a dimension, worst first. */
const openLevel = (m, d) => openList({ method: methods[m].name, ...(d < 0 ? {} : { score: dimensions[d].id }) });

/** A sentence about the source of the levels. */
const scopeNote = () => h('p', { class: 'note' }, t(`scope_${scope()}`));

function scoresSection() {
  return section('scores', t('scores'), t('scores_lead'), reactive('', () => [rovingFocus(scoreTable()), scopeNote()]));
}

function scoreTable() {
  const heads = [t('method'), ...measuredDimensions.map(heading), t('kept'), t('retention'), t('judged')];
  const cls = (i) => (i === 0 ? 'left' : i > measuredDimensions.length ? 'num' : '');
  return h('table', { class: 'scores' },
    h('thead', {}, h('tr', {}, heads.map((text, i) => h('th', { scope: 'col', class: cls(i) }, text)))),
    h('tbody', {}, shownMethods().map((m) => scoreRow(m, heads))));
}

function scoreRow(m, heads) {
  const summary = summaries[m];
  const how = [methods[m].strategy, methods[m].model].filter(Boolean).join(' · ');
  const counts = summary?.cells ?? {};
  const lack = (n, word) => (n ? h('span', { class: 'sub warn' }, t(word, { n: integer(n) })) : null);
  // Sizes need no grades.
  const removed = summary?.compression_ratio ?? summary?.compression?.compression_ratio;
  const kept = isNumber(removed) ? percent(1 - removed, 1) : null;
  const retention = summary?.retention ?? {};
  const plain = [
    [integer(summary?.context_tokens ?? summary?.compression?.tokens), kept ? h('span', { class: 'sub' }, t('kept_share', { share: kept })) : null],
    [percent(retention.value), h('span', { class: 'sub', title: retention.reason }, range(retention.ci95, percent))],
    [integer(counts.judged), lack(counts.failed, 'failed_n'), lack(counts.missing, 'missing_n')],
  ];
  return h('tr', { 'data-row': '', class: methodClass(m) },
    h('th', { scope: 'row', class: 'left' }, methodLabel(m), how ? h('span', { class: 'sub' }, how) : null),
    measuredDimensions.map((d) => h('td', { 'data-label': heading(d) }, scoreCell(m, d))),
    plain.map((content, i) => h('td', { class: 'num', 'data-label': heads[measuredDimensions.length + 1 + i] }, h('div', {}, content))));
}

function scoreCell(m, d) {
  const found = level(m, d);
  if (!isNumber(found.v)) return h('span', { class: 'absent' }, UNKNOWN);
  const against = scope() === 'all' ? comparisonFor(m, d) : null;
  const verdict = VERDICTS[against?.verdict];
  // What did not change is not marked.
  const delta = against && against.reason !== 'unchanged'
    ? h('span', { class: `delta ${verdict?.className ?? ''}` }, `${verdict?.glyph ?? ''}${signed(against.difference)}`)
    : null;
  const label = levelText(`${methods[m].name}, ${heading(d)}`, found) + (delta ? `; ${signed(against.difference)} ${range(against.ci95, signed)}` : '');
  return markButton(label, () => openLevel(m, d), { class: `score ${d < 0 ? 'overall' : ''}` },
    h('span', { class: 'value' }, score(found.v)), delta, intervalBar(found.v, found.ci));
}

// --- against the baseline ---

/** What was edited: the lines of each text that differ, and the settings. */
function editsSection() {
  const edited = Object.values(compared?.methods ?? {});
  const unique = (all) => [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
  const edits = unique(edited.flatMap((method) => method.edited_texts ?? [])).filter((edit) => edit.diff.length);
  const places = new Set(edits.flatMap((edit) => edit.places));
  const settings = unique([...edited.flatMap((method) => method.edits ?? []), ...(compared?.edits ?? [])]).filter((edit) => !places.has(edit));
  if (!edits.length && !settings.length) return null;
  const row = (line) => h('div', { class: line.startsWith('+') ? 'new' : 'gone' }, h('span', { class: 'sign-of' }, line.slice(0, 1)), line.slice(1));
  return section('edits', t('edits'), null,
    settings.length ? h('ul', { class: 'notes' }, settings.map((setting) => h('li', {}, h('code', {}, setting)))) : null,
    edits.map((edit) => h('figure', { class: 'prompt-diff' }, h('figcaption', {}, edit.places.join(', ')),
      h('div', { class: 'diff-lines' }, edit.diff.filter((line) => line.length > 1).map(row)))));
}

/** The methods that are compared, on the page of a comparison and on that of a compared run. */
const comparedMethods = () => methods.map((_, m) => m).filter((m) => (mates.size ? judgedMethods.has(m) : compared?.methods?.[methods[m].name]));

/** What became different with each compared method: each line opens its cell. */
function flippedSection() {
  if (!comparedMethods().length) return null;
  return section('changes', t('changes'), t('changes_lead'), reactive('', () => {
    const made = comparedMethods().filter((m) => shownMethods().includes(m)).map((m) => [m, changesOf(m)]);
    const same = made.filter(([, change]) => !change).map(([m]) => h('li', {}, methodLabel(m)));
    return [...made.map(([, change]) => change), same.length ? [h('p', { class: 'note' }, t('changes_none')), h('ul', { class: 'legend' }, same)] : null];
  }));
}

function changesOf(m) {
  const { flipped, facts_lost: lost, facts_gained: gained, contexts } = compared.methods[methods[m].name];
  const places = new Map(filteredCells.filter((cell) => valueAt(cells.method, cell) === m).reverse().map((cell) => [placeName(cell), cell]));
  const lines = (found, text) => found.map((one) => [places.get([one.fixture, one.point, one.probe].join()), text(one)]).filter(([cell]) => cell !== undefined);
  const step = ({ probe, before, after }) => [h('b', {}, probe), ` ${score(before)} → ${score(after)}`];
  const fact = ({ probe, fact: name }) => [h('code', {}, name), ` ${probe}`];
  const lists = [['worse', lines(flipped.filter((flip) => flip.after < flip.before), step)], ['facts_lost', lines(lost, fact)],
    ['better', lines(flipped.filter((flip) => flip.after > flip.before), step)], ['facts_gained', lines(gained, fact)]].filter(([, found]) => found.length);
  if (!lists.length) return null;
  const same = contexts ? t('same_contexts', { n: contexts.same, all: contexts.compared }) : null;
  return h('div', { class: 'change' }, h('h3', {}, methodLabel(m), same ? h('span', { class: 'sub' }, same) : null),
    h('div', { class: 'change-lists' }, lists.map(([word, found]) => changeList(word, found))));
}

const SHOWN_CHANGES = 5;

function changeList(word, found) {
  const line = ([cell, text]) => h('li', {}, h('button', { type: 'button', class: 'line-button', on: { click: () => openCell(cell) } }, text,
    h('span', { class: 'sub' }, report.fixtures[probeOf(cell).fixture], ' · ', t('cycle_n', { n: probeOf(cell).point }))));
  const [first, rest] = [found.slice(0, SHOWN_CHANGES), found.slice(SHOWN_CHANGES)];
  return h('div', {}, h('h4', {}, t(`changes_${word}`, { n: integer(found.length) })), h('ul', {}, first.map(line)),
    rest.length ? h('details', {}, h('summary', {}, t('more_n', { n: rest.length })), h('ul', {}, rest.map(line))) : null);
}
