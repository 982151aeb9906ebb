// Outcomes of facts, cost, failures, published scores and notes.

function factsSection() {
  const letters = new Set(cells.facts.join(''));
  const shown = Object.keys(FATES).filter((letter) => letters.has(letter));
  if (!shown.length) return null;
  return section('facts', t('facts'), t('facts_lead'),
    h('ul', { class: 'legend' }, shown.map((letter) => h('li', {}, fateIcon(letter), ' ', t(FATES[letter].word)))),
    reactive('stacks', () => rovingFocus(h('div', {}, shownMethods().map((m) => factsRow(m, shown))))),
    h('details', {}, h('summary', {}, t('facts_tables')), h('div', { class: 'tables' }, reactive('', () => survivalTable('survival_by_depth')), reactive('', () => survivalTable('survival_by_mentions')),
      reactive('', headingTable), reactive('', withoutFactsTable), reactive('', unsupportedTable))));
}

/** A share with its interval and denominator. */
function shareCell(found) {
  if (!found || !found.of) return UNKNOWN;
  const detail = [range(found.ci95, percent), t('of_n', { n: integer(found.of) })].filter(Boolean).join(' ');
  return [percent(found.share, 1), h('span', { class: 'sub' }, detail)];
}

/** Survival of facts by a property of the transcript: methods by group, in the order of the summary. */
function survivalTable(field) {
  const groups = [...new Set(summaries.flatMap((summary) => Object.keys(summary?.[field] ?? {})))];
  const order = { survival_by_depth: ['earlier_span', 'first_third', 'middle_third', 'last_third'], survival_by_mentions: ['1', '2-3', '4+'] }[field];
  const shown = order.filter((group) => groups.includes(group));
  if (!shown.length) return null;
  const rows = shownMethods().map((m) => [methodLabel(m), ...shown.map((group) => shareCell(summaries[m]?.[field]?.[group]))]);
  return plainTable(t(field), [t('method'), ...shown.map((group) => t(`${field}_${group}`))], rows);
}

/** Survival by the heading of the compression prompt: headings by the methods that have any. */
function headingTable() {
  const of = (m) => summaries[m]?.survival_by_heading ?? {};
  const having = shownMethods().filter((m) => Object.keys(of(m)).length);
  const headings = [...new Set(having.flatMap((m) => Object.keys(of(m))))];
  if (!headings.length) return null;
  const rows = headings.map((name) => [name, ...having.map((m) => shareCell(of(m)[name]))]);
  return plainTable(t('survival_by_heading'), [t('heading'), ...having.map((m) => methods[m].name)], rows);
}

/** What answers do whose context lost every expected fact. */
function withoutFactsTable() {
  const kinds = ['other_value', 'admission', 'vague', 'right'];
  const known = shownMethods().filter((m) => summaries[m] && summaries[m].overclaim?.other_value.of !== 0);
  if (!known.length) return null;
  const row = (m) => kinds.map((kind) => shareCell(summaries[m].overclaim?.[kind]));
  return plainTable(t('without_facts'), [t('method'), ...kinds.map((kind) => t(`when_lost_${kind}`))], known.map((m) => [methodLabel(m), ...row(m)]));
}

/** What answers assert without support, besides: fabrications, invented names, superseded facts. */
function unsupportedTable() {
  const rows = shownMethods().filter((m) => summaries[m]).map((m) => [methodLabel(m), shareCell(summaries[m].fabrication),
    isNumber(summaries[m].invented_per_100) ? summaries[m].invented_per_100.toFixed(1) : UNKNOWN, integer(summaries[m].stale_facts)]);
  return rows.length ? plainTable(t('unsupported'), [t('method'), t('fabrication'), t('invented_per_100'), t('stale_facts')], rows) : null;
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

const PROBES = 10;

function costSection() {
  const ratio = (m) => summaries[m]?.cached_price_ratio ?? 1;
  const times = (value, factor) => (isNumber(value) ? value * factor : value);
  const rows = methods.map((_, m) => ({
    m, context: times(summaries[m]?.task_context_tokens, 1 + ratio(m) * (PROBES - 1)), again: times(summaries[m]?.refetch_tokens, PROBES),
  }));
  const most = Math.max(1, ...rows.map(({ context, again }) => (context ?? 0) + (again ?? 0)));
  const rho = [...new Set(rows.map(({ m }) => ratio(m).toFixed(2)))].join(', ');
  const known = rows.some(({ context }) => isNumber(context));
  return section('cost', t('cost'), known ? t('cost_lead', { k: PROBES, rho }) : null,
    known ? h('ul', { class: 'legend' }, h('li', {}, h('span', { class: 'swatch kept' }), t('cost_context')),
      h('li', {}, h('span', { class: 'swatch again' }), t('cost_refetch', { k: PROBES }))) : null,
    known ? reactive('stacks', () => rovingFocus(h('div', {}, rows.filter(({ m }) => shownMethods().includes(m)).map((row) => costRow(row, most))))) : null,
    h('div', { class: 'tables' }, reactive('', methodCostTable), costTable()));
}

function costRow({ m, context, again }, most) {
  const total = isNumber(context) && isNumber(again) ? context + again : null;
  const even = summaries[m]?.break_even_k;
  const label = `${methods[m].name}: ${t('cost_context')} ${integer(context)}, ${t('cost_refetch', { k: PROBES })} ${integer(again)}`;
  return markButton(label, () => openLevel(m, -1), { class: 'stack-row cost-row', 'data-row': '' }, methodLabel(m),
    h('span', { class: 'stack plain' },
      h('span', { class: 'part kept', vars: { width: ((context ?? 0) / most) * 100 } }),
      h('span', { class: 'part again', vars: { width: ((again ?? 0) / most) * 100 } })),
    h('span', { class: 'value' }, integer(total), isNumber(even) ? h('span', { class: 'sub' }, t('break_even', { k: even.toFixed(1) })) : null));
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
