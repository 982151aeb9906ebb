// Sections of the report as it was made: sentences, lists and tables, which `report.md` has too.

/** A cell of a table: its lines below each other. Shares and intervals do not break. */
const tableCell = (cell, i, label) => h(i ? 'td' : 'th', { scope: i ? null : 'row', class: i ? 'num' : 'left', 'data-label': i ? label : null },
  cell.map(([style, text], n) => h('span', { class: `${style} ${n ? 'sub' : ''}` }, text.replaceAll(' ', i ? '\u00a0' : ' '))));

const BLOCKS = {
  sentence: ([style, text]) => h('p', { class: style === 'strong' ? 'strong' : 'note' }, withCode(text)),
  list: (texts) => h('ul', { class: 'notes' }, texts.map((text) => h('li', {}, withCode(text)))),
  lines: ([title, texts]) => [h('p', { class: 'strong' }, title), h('ul', { class: 'notes' }, texts.map((text) => h('li', {}, withCode(text))))],
  diff: ([place, lines]) => h('figure', { class: 'prompt-diff' }, h('figcaption', {}, place), h('div', { class: 'diff-lines' }, lines.map((line) =>
    h('div', { class: line.startsWith('+') ? 'new' : 'gone' }, h('span', { class: 'sign-of' }, line.slice(0, 1)), line.slice(1))))),
  table: ({ header, rows }) => scrollable(h('table', { class: 'plain-table' },
    h('thead', {}, h('tr', {}, header.map((text, i) => h('th', { scope: 'col', class: i ? 'num' : 'left' }, text)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, row.map((cell, i) => tableCell(cell, i, header[i]))))))),
};

const reportSection = ({ id, title, blocks }) =>
  section(id, title, null, blocks.flatMap((block) => Object.entries(block).map(([kind, content]) => BLOCKS[kind](content))));
