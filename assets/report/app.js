// The page: masthead, a bar with section links and filters, and the sections.

const MARKS = { good: '▲', bad: '▼' };

/** The main result, what it had no room for, and the warnings without which the figures mislead. */
function front() {
  const [[style, text], ...rest] = report.front.map(({ sentence }) => sentence);
  const more = rest.filter(([kind, said]) => kind !== 'warning' && said);
  const warnings = rest.filter(([kind]) => kind === 'warning');
  return [
    h('h1', { class: 'headline' }, MARKS[style] ? h('span', { class: `headline-mark ${style}`, 'aria-hidden': 'true' }, MARKS[style]) : null, withCode(text)),
    more.map(([, said]) => h('p', { class: 'headline-more' }, withCode(said))),
    h('p', { class: 'set-name' }, report.label),
    warnings.length
      ? h('ul', { class: 'warnings', 'aria-label': t('warnings') }, warnings.map(([, said]) => h('li', {}, h('span', { class: 'bang', 'aria-hidden': 'true' }, '!'), h('span', {}, said))))
      : null,
  ];
}

const masthead = () => fillElement(document.getElementById('masthead'), {}, [
  h('p', { class: 'kicker' }, t('report')),
  front(),
  h('dl', { class: 'facts' }, report.facts.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, withCode(value))))),
  reactive('on-paper', () => {
    const chosen = Object.keys(filters).filter((name) => filters[name] !== '').map((name) => `${t(name)}: ${filterText(name)}`);
    return chosen.length ? [h('p', { class: 'note' }, `${t('filters')}: ${chosen.join(' · ')}`)] : [];
  }),
]);

const filterText = (name) => {
  if (name === 'type') return t(`type_${filters[name]}`);
  return name === 'show' ? t(`show_${filters[name]}`) : NAMES[name]?.[filters[name]] ?? filters[name];
};

function filterSelect(name, label, options, least = 1) {
  const select = h('select', { id: `filter-${name}`, on: { change: (event) => setFilters({ [name]: event.target.value }) } },
    h('option', { value: '' }, t('all')), options.map(([value, text]) => h('option', { value }, text)));
  onFilterChange(() => {
    select.value = filters[name];
    select.classList.toggle('on', filters[name] !== '');
  });
  return options.length > least ? h('label', {}, h('span', {}, label), select) : null;
}

function filterFields() {
  const runs = [...new Set(Array.isArray(cells.run) ? cells.run : [cells.run])].filter(isNumber).sort((a, b) => a - b);
  const types = report.types.filter((type) => report.probes.some((probe) => probe.type === type));
  const clear = h('button', { type: 'button', class: 'quiet-button', hidden: true, on: { click: () => setFilters({ fixture: '', method: '', run: '', type: '', show: '' }) } }, t('clear'));
  onFilterChange(() => { clear.hidden = !isFiltered(); });
  return h('div', { class: 'filters', role: 'group', 'aria-label': t('filters') },
    filterSelect('method', t('method'), methods.map((method, m) => [m, method.name])),
    filterSelect('fixture', t('fixture'), report.fixtures.map((name, f) => [f, name])),
    filterSelect('type', t('type'), types.map((type) => [type, t(`type_${type}`)])),
    filterSelect('run', t('run'), runs.map((run) => [run, run])),
    filterSelect('show', t('show'), (mates.size ? ['failed', 'flipped', 'changed'] : ['failed']).map((name) => [name, t(`show_${name}`)]), 0),
    clear);
}

function bar(sections) {
  const links = h('ul', { class: 'section-links' }, sections.map((made) =>
    h('li', {}, h('a', { href: `#${made.id}`, on: { click: (event) => toSection(event, made.id) } }, made.querySelector('h2').textContent))));
  const fold = h('details', { class: 'fold' }, h('summary', {}, t('filters')), filterFields());
  fold.open = !matchMedia('(max-width: 900px)').matches;
  document.getElementById('bar').replaceChildren(h('div', { class: 'bar-row-1' }, links), fold);
  document.getElementById('bar').setAttribute('aria-label', t('sections'));
}

/** Goes to a section and leaves the rest of the address as it is. */
function toSection(event, id) {
  event.preventDefault();
  go({ at: id });
  restorePlace();
}

let place = '';

function restorePlace() {
  const at = shown.at ?? '';
  const found = at !== place ? document.getElementById(at) : null;
  place = at;
  if (!found?.matches('section')) return;
  const fold = found.querySelector('details') ?? found.closest('details');
  if (fold && (found.id === 'more' || fold.contains(found))) fold.open = true;
  found.scrollIntoView();
}

/** Everything that does not answer the first questions. */
function moreSection(made) {
  return made.length ? section('more', t('more'), null, h('details', {}, h('summary', {}, made.map((one) => one.querySelector('h2').textContent).join(' · ')), made)) : null;
}

/** The sections that are not folded. The questions stand first, but after what changed. */
const OPEN = ['overview', 'changes-in-detail', 'scores', 'failures', 'notes'];

function start() {
  masthead();
  // Without answers there are no scores, and contexts are all that was measured.
  const isGraded = report.sections.some(({ id }) => id === 'scores');
  const isOpen = ({ id }) => !isGraded || OPEN.includes(id);
  const open = report.sections.filter(isOpen);
  const changes = report.sections.some(({ id }) => id === 'changes-in-detail');
  const first = open.filter(({ id }) => id === 'overview' && (changes || !cells.n));
  const sections = [first.map(reportSection), cells.n ? cellsSection() : null, open.filter((one) => !first.includes(one)).map(reportSection),
    moreSection(report.sections.filter((one) => !isOpen(one)).map(reportSection))].flat().filter(Boolean);
  document.getElementById('main').replaceChildren(...sections);
  bar(sections);
  onAddress(restorePlace);
  onAddress(restoreDrawer);
}

start();
