// What changed since a baseline.

const measuredDimensions = [-1, ...dimensions.map((_, d) => d).filter((d) => hasDimension[d])];
const heading = (d) => (d < 0 ? t('overall') : dimensions[d].label);
const compared = report.summary.comparison ?? null;

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
  return section('changes', t('changes'), null, reactive('', () => {
    const made = comparedMethods().filter((m) => shownMethods().includes(m)).map(changesOf).filter(Boolean);
    return made.length ? made : [h('p', { class: 'note' }, t('changes_none'))];
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

const SHOWN_CHANGES = 2;

function changeList(word, found) {
  const line = ([cell, text]) => h('li', {}, h('button', { type: 'button', class: 'line-button', on: { click: () => openCell(cell) } }, text,
    h('span', { class: 'sub' }, report.fixtures[probeOf(cell).fixture], ' · ', t('cycle_n', { n: probeOf(cell).point }))));
  const [first, rest] = [found.slice(0, SHOWN_CHANGES), found.slice(SHOWN_CHANGES)];
  return h('div', {}, h('h4', {}, t(`changes_${word}`, { n: integer(found.length) })), h('ul', {}, first.map(line)),
    rest.length ? h('details', {}, h('summary', {}, t('more_n', { n: rest.length })), h('ul', {}, rest.map(line))) : null);
}
