// What became of the facts, what it cost, what failed, and what must be known about it all.

function lossSection() {
  const letters = new Set(cells.facts.join(''));
  const shown = Object.keys(FATES).filter((letter) => letters.has(letter));
  if (!shown.length) return null;
  return section('facts', t('facts'), t('facts_lead'),
    h('ul', { class: 'legend' }, shown.map((letter) => h('li', {}, fate(letter), ' ', t(FATES[letter].word)))),
    live('stacks', () => rove(h('div', {}, shownMethods().map((m) => lossRow(m, shown))))));
}

function lossRow(m, letters) {
  const counts = Object.fromEntries(letters.map((letter) => [letter, 0]));
  for (const cell of hits) {
    if (at(cells.method, cell) !== m) continue;
    for (const letter of cells.facts[cell]) counts[letter] += 1;
  }
  const all = letters.reduce((sum, letter) => sum + counts[letter], 0);
  const present = letters.filter((letter) => counts[letter]);
  return h('div', { class: 'stack-row', 'data-row': '' }, named(m),
    h('div', { class: 'stack' }, present.map((letter) => lossPart(m, letter, counts[letter], all))),
    h('span', { class: 'value' }, t('facts_n', { n: whole(all) })));
}

function lossPart(m, letter, count, all) {
  const { word, glyph, tone: name } = FATES[letter];
  const share = count / all;
  const open = () => openList(`${methods[m].name} · ${t(word)}`, (cell) => at(cells.method, cell) === m && cells.facts[cell].includes(letter), -1);
  return mark(`${methods[m].name}: ${t(word)} ${percent(share)} (${count})`, open, { class: `part ${name}`, vars: { share: count } },
    share > 0.07 ? h('span', {}, `${glyph} ${percent(share)}`) : null);
}

/** A stage in the texts of the page; anything else as it is. */
const stageName = (stage) => texts[`stage_${stage}`] ?? stage;

// --- cost ---

const NEEDS = 10;

function costSection() {
  const rows = methods.map((_, m) => ({ m, context: summaries[m]?.context_tokens, refetch: summaries[m]?.refetch_tokens }));
  const most = Math.max(1, ...rows.map(({ context, refetch }) => (context ?? 0) + NEEDS * (refetch ?? 0)));
  const known = rows.some(({ context }) => isNumber(context));
  return section('cost', t('cost'), known ? t('cost_lead', { k: NEEDS }) : null,
    known ? h('ul', { class: 'legend' }, h('li', {}, h('span', { class: 'swatch kept' }), t('cost_context')),
      h('li', {}, h('span', { class: 'swatch again' }), t('cost_refetch', { k: NEEDS }))) : null,
    known ? live('stacks', () => rove(h('div', {}, rows.filter(({ m }) => shownMethods().includes(m)).map((row) => costRow(row, most))))) : null,
    h('div', { class: 'tables' }, live('', methodSpend), spendTable()));
}

function costRow({ m, context, refetch }, most) {
  const again = isNumber(refetch) ? NEEDS * refetch : null;
  const total = isNumber(context) && isNumber(again) ? context + again : null;
  const even = summaries[m]?.break_even_k;
  const label = `${methods[m].name}: ${t('cost_context')} ${whole(context)}, ${t('cost_refetch', { k: NEEDS })} ${whole(again)}`;
  return mark(label, () => openLevel(m, -1), { class: 'stack-row cost-row', 'data-row': '' }, named(m),
    h('span', { class: 'stack plain' },
      h('span', { class: 'part kept', vars: { width: ((context ?? 0) / most) * 100 } }),
      h('span', { class: 'part again', vars: { width: ((again ?? 0) / most) * 100 } })),
    h('span', { class: 'value' }, whole(total), isNumber(even) ? h('span', { class: 'sub' }, t('break_even', { k: even.toFixed(1) })) : null));
}

/** Dollars by method and stage; one unknown price makes a sum unknown. */
function methodSpend() {
  const stages = ['compress', 'answer', 'judge'];
  const known = shownMethods().filter((m) => stages.some((stage) => isNumber(summaries[m]?.usd?.[stage])));
  if (!known.length) return null;
  const row = (m) => {
    const parts = stages.map((stage) => summaries[m].usd[stage]);
    const given = parts.filter((part) => part !== undefined);
    return [...parts, given.every(isNumber) ? given.reduce((a, b) => a + b, 0) : null];
  };
  return h('div', { class: 'scroll' }, h('table', { class: 'plain-table' }, h('caption', {}, t('spend_method')),
    h('thead', {}, h('tr', {}, [t('method'), ...stages.map(stageName), t('in_all')].map((text, i) => h('th', { scope: 'col', class: i ? 'num' : 'left' }, text)))),
    h('tbody', {}, known.map((m) => h('tr', {}, h('th', { scope: 'row', class: 'left' }, named(m)), row(m).map((usd) => h('td', { class: 'num' }, money(usd))))))));
}

function spendTable() {
  if (!report.costs.length) return null;
  const columns = [['cost_part', (c) => stageName(c.part)], ['actions', (c) => whole(c.actions)], ['cached', (c) => whole(c.cached)],
    ['input_tokens', (c) => whole(c.input_tokens)], ['output_tokens', (c) => whole(c.output_tokens)], ['usd', (c) => money(c.usd)]];
  const cls = (i) => (i ? 'num' : 'left');
  return h('div', { class: 'scroll' }, h('table', { class: 'plain-table' }, h('caption', {}, t('spend')),
    h('thead', {}, h('tr', {}, columns.map(([key], i) => h('th', { scope: 'col', class: cls(i) }, texts[key])))),
    h('tbody', {}, report.costs.map((line) => h('tr', {}, columns.map(([, read], i) =>
      h(i ? 'td' : 'th', { scope: i ? null : 'row', class: cls(i) }, read(line))))))));
}

// --- failures, reference, notes ---

function failuresSection() {
  if (!report.failures.length) return null;
  const row = (failure) => h('li', {}, h('div', { class: 'place' }, failure.place),
    h('div', { class: 'tags' }, h('span', { class: 'tag' }, stageName(failure.stage)),
      h('span', { class: `tag ${failure.by_method ? 'warn' : ''}` }, t(failure.by_method ? 'by_method' : 'by_infrastructure'))),
    h('div', { class: 'message' }, failure.message));
  const [first, rest] = [report.failures.slice(0, 20), report.failures.slice(20, 500)];
  return section('failures', t('failures'), t('failures_lead', { n: whole(report.failures.length) }),
    h('ul', { class: 'failures' }, first.map(row)),
    rest.length ? h('details', {}, h('summary', {}, t('more_n', { n: rest.length })), h('ul', { class: 'failures' }, rest.map(row))) : null);
}

function referenceSection() {
  if (!report.reference.length) return null;
  const heads = [t('method'), t('overall'), ...dimensions.map(({ label }) => label), t('removed')];
  const cls = (i) => (i ? 'num' : 'left');
  return section('reference', t('reference'), t('reference_lead'),
    h('div', { class: 'scroll' }, h('table', { class: 'plain-table' },
      h('thead', {}, h('tr', {}, heads.map((text, i) => h('th', { scope: 'col', class: cls(i) }, text)))),
      h('tbody', {}, report.reference.map((row) => h('tr', {}, h('th', { scope: 'row', class: 'left' }, row.name),
        row.scores.map((v) => h('td', { class: 'num' }, score(v))), h('td', { class: 'num' }, percent(row.removed, 1))))))));
}

function notesSection() {
  const models = report.models.map((model) => h('tr', {}, h('th', { scope: 'row', class: 'left' }, stageName(model.role)), h('td', {}, model.name), h('td', {}, model.model)));
  return section('notes', t('notes'), null,
    report.notes.length ? h('ul', { class: 'notes' }, report.notes.map((note) => h('li', {}, note))) : null,
    models.length ? h('div', { class: 'scroll' }, h('table', { class: 'plain-table text' }, h('caption', {}, t('models')), h('tbody', {}, models))) : null);
}
