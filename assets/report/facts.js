// Outcomes of facts, cost, failures, published scores and notes.

function factsSection() {
  const letters = new Set(cells.facts.join(''));
  const shown = Object.keys(FATES).filter((letter) => letters.has(letter));
  if (!shown.length) return null;
  return section('facts', t('facts'), t('facts_lead'),
    h('ul', { class: 'legend' }, shown.map((letter) => h('li', {}, fateIcon(letter), ' ', t(FATES[letter].word)))),
    reactive('stacks', () => rovingFocus(h('div', {}, shownMethods().map((m) => factsRow(m, shown))))));
}

function factsRow(m, letters) {
  const counts = Object.fromEntries(letters.map((letter) => [letter, 0]));
  for (const cell of filteredCells) {
    if (valueAt(cells.method, cell) !== m) continue;
    for (const letter of cells.facts[cell]) counts[letter] += 1;
  }
  const all = letters.reduce((sum, letter) => sum + counts[letter], 0);
  const present = letters.filter((letter) => counts[letter]);
  return h('div', { class: 'stack-row', 'data-row': '' }, methodLabel(m),
    h('div', { class: 'stack' }, present.map((letter) => factsPart(m, letter, counts[letter], all))),
    h('span', { class: 'value' }, t('facts_n', { n: integer(all) })));
}

function factsPart(m, letter, count, all) {
  const { word, glyph, className } = FATES[letter];
  const share = count / all;
  const open = () => openList({ method: methods[m].name, fact: letter });
  return markButton(`${methods[m].name}: ${t(word)} ${percent(share)} (${count})`, open, { class: `part ${className}`, vars: { share: count } },
    share > 0.07 ? h('span', {}, `${glyph} ${percent(share)}`) : null);
}

/** The translated name of a stage; other names unchanged. */
const stageName = (stage) => texts[`stage_${stage}`] ?? stage;

// --- cost ---

/** What the run cost, and what each method would have: in dollars. */
function costSection() {
  const tables = [reactive('', methodCostTable), costTable()].filter(Boolean);
  return report.costs.length ? section('cost', t('cost'), null, h('div', { class: 'tables' }, tables)) : null;
}

/** Scores and facts kept after repeated compression: later points have other probes, so methods are compared, not points. */
function cyclesSection() {
  const most = Math.max(0, ...summaries.map((summary) => summary?.by_cycle?.length ?? 0));
  if (most < 2) return null;
  const figures = (cycle) => (cycle ? `${score(cycle.overall?.median)} · ${percent(cycle.fact_survival)}` : UNKNOWN);
  const rows = () => shownMethods().map((m) => [methodLabel(m), ...Array.from({ length: most }, (_, i) => figures(summaries[m]?.by_cycle?.[i]))]);
  const heads = [t('method'), ...Array.from({ length: most }, (_, i) => t('cycle_n', { n: i + 1 }))];
  return section('cycles', t('cycles'), t('cycles_lead'), reactive('', () => plainTable(null, heads, rows())));
}

/** Dollars by method and stage; one unknown price makes a sum unknown. */
function methodCostTable() {
  const stages = ['compress', 'answer', 'judge'];
  const known = shownMethods().filter((m) => stages.some((stage) => isNumber(summaries[m]?.usd?.[stage])));
  if (!known.length) return null;
  const row = (m) => {
    const parts = stages.map((stage) => summaries[m].usd[stage]);
    const given = parts.filter((part) => part !== undefined);
    return [...parts, given.every(isNumber) ? given.reduce((a, b) => a + b, 0) : null];
  };
  const rows = known.map((m) => [methodLabel(m), ...row(m).map(money)]);
  return plainTable(t('spend_method'), [t('method'), ...stages.map(stageName), t('in_all')], rows);
}

function costTable() {
  if (!report.costs.length) return null;
  const names = ['cost_part', 'actions', 'cached', 'input_tokens', 'output_tokens', 'usd'];
  const counts = ['actions', 'cached', 'input_tokens', 'output_tokens'];
  const rows = report.costs.map((cost) => [stageName(cost.part), ...counts.map((name) => integer(cost[name])), money(cost.usd)]);
  return plainTable(t('spend'), names.map((name) => t(name)), rows);
}

/** A table with a heading in front of each row of figures. */
function plainTable(caption, heads, rows) {
  const cls = (i) => (i ? 'num' : 'left');
  return scrollable(h('table', { class: 'plain-table' }, caption ? h('caption', {}, caption) : null,
    h('thead', {}, h('tr', {}, heads.map((text, i) => h('th', { scope: 'col', class: cls(i) }, text)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, row.map((value, i) =>
      h(i ? 'td' : 'th', { scope: i ? null : 'row', class: cls(i) }, value)))))));
}

// --- failures, reference, notes ---

/** Failures with the same message, with the places of all. */
function failureGroups() {
  const groups = new Map();
  for (const failure of report.failures) {
    const key = JSON.stringify([failure.stage, failure.by_method, failure.message]);
    if (groups.has(key)) groups.get(key).places.push(failure.place);
    else groups.set(key, { failure, places: [failure.place] });
  }
  return [...groups.values()];
}

/** The first places of a group, and how many more there are. */
const placesText = (places) => [...places.slice(0, 4), ...(places.length > 4 ? [t('more_n', { n: integer(places.length - 4) })] : [])].join('; ');

function failuresSection() {
  if (!report.failures.length) return null;
  const row = ({ places, failure }) => h('li', {}, h('div', { class: 'place' }, placesText(places)),
    h('div', { class: 'tags' }, h('span', { class: 'tag' }, stageName(failure.stage)),
      h('span', { class: `tag ${failure.by_method ? 'warn' : ''}` }, t(failure.by_method ? 'by_method' : 'by_infrastructure'))),
    h('div', { class: 'message' }, failure.message));
  const groups = failureGroups();
  const [first, rest] = [groups.slice(0, 20), groups.slice(20, 500)];
  return section('failures', t('failures'), t('failures_lead', { n: integer(report.failures.length) }),
    h('ul', { class: 'failures' }, first.map(row)),
    rest.length ? h('details', {}, h('summary', {}, t('more_n', { n: rest.length })), h('ul', { class: 'failures' }, rest.map(row))) : null);
}

function referenceSection() {
  if (!report.reference.length) return null;
  const heads = [t('method'), t('overall'), ...dimensions.map(({ label }) => label), t('removed')];
  const rows = report.reference.map((row) => [row.name, ...row.scores.map((value) => score(value)), percent(row.removed, 1)]);
  return section('reference', t('reference'), t('reference_lead'), plainTable(null, heads, rows));
}

function modelsSection() {
  const models = report.models.map((model) => h('tr', {}, h('th', { scope: 'row', class: 'left' }, stageName(model.role)), h('td', {}, model.name), h('td', {}, model.model)));
  if (!models.length) return null;
  return section('models', t('models'), null, scrollable(h('table', { class: 'plain-table text' }, h('tbody', {}, models))));
}
