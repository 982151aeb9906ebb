// Sections of the report as it was made: sentences, lists and tables, which `report.md` has too; and failures.

/** A cell of a table: its lines below each other. Shares and intervals do not break. */
const tableCell = (cell, i, label) => h(i ? 'td' : 'th', { scope: i ? null : 'row', class: i ? 'num' : 'left', 'data-label': i ? label : null },
  cell.map(([style, text], n) => h('span', { class: `${style} ${n ? 'sub' : ''}` }, text.replaceAll(' ', i ? '\u00a0' : ' '))));

const BLOCKS = {
  sentence: ([style, text]) => h('p', { class: style === 'strong' ? 'strong' : 'note' }, withCode(text)),
  list: (texts) => h('ul', { class: 'notes' }, texts.map((text) => h('li', {}, withCode(text)))),
  table: ({ header, rows }) => scrollable(h('table', { class: 'plain-table' },
    h('thead', {}, h('tr', {}, header.map((text, i) => h('th', { scope: 'col', class: i ? 'num' : 'left' }, text)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, row.map((cell, i) => tableCell(cell, i, header[i]))))))),
};

const reportSection = ({ id, title, blocks }) =>
  section(id, title, null, blocks.flatMap((block) => Object.entries(block).map(([kind, content]) => BLOCKS[kind](content))));

// --- failures ---

/** The translated name of a stage; other names unchanged. */
const stageName = (stage) => texts[`stage_${stage}`] ?? stage;

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
