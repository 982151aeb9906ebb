// One cell in detail: question, context, answer, grades and actions.

/** A text with marks. A mark has the number of its fact, because colour alone is not accessible. */
function markedText(text, marks) {
  const parts = [];
  let end = 0;
  for (const [fact, start, length] of marks ?? []) {
    const from = Math.max(start, end);
    const to = start + length;
    if (to <= from) continue;
    parts.push(text.slice(end, from));
    const stale = fact < 0;
    parts.push(h('mark', { class: stale ? 'stale' : 'fact', title: t(stale ? 'superseded' : 'expected') },
      text.slice(from, to), h('sup', {}, stale ? `×${-fact}` : fact + 1)));
    end = to;
  }
  return [...parts, text.slice(end)];
}

const block = (title, ...children) => h('section', { class: 'block' }, h('h3', {}, title), children);

/** Shows one cell. `from` is the list in which it was chosen: `{found, page}`. */
async function showCell(cell, { found, page }) {
  const probe = probeOf(cell);
  const step = document.activeElement?.dataset?.step;
  const near = (by) => found[found.indexOf(cell) + by];
  const toList = () => { go({ cell: '', tab: '', with: '' }); restoreDrawer(); };
  const tools = h('div', { class: 'drawer-tools' },
    page ? null : h('button', { type: 'button', class: 'icon back', 'aria-label': t('back'), title: t('back'), on: { click: toList } }, '←'),
    stepButton(near(-1), -1, '‹', t('previous')), stepButton(near(1), 1, '›', t('next')));
  fillDrawer(probe.id, tools, h('p', { class: 'note' }, t('opening')));
  drawer.dataset.cell = cell;
  drawer.onkeydown = (event) => stepKey(event, near);
  const other = otherOf(cell);
  drawer.classList.toggle('wide', other !== undefined);
  const isJudged = other !== undefined && baselineOf(cell) === other;
  const shownCells = other === undefined ? [cell] : isJudged ? [other, cell] : [cell, other];
  const [bothTexts, contexts, session] = await Promise.all([
    Promise.all(shownCells.map(cellText)), Promise.all(shownCells.map(contextText)), sessionOf(cell)]);
  if (drawer.dataset.cell !== String(cell)) return;
  const body = shown.tab === 'session' && session ? [sessionBlock(cell, session)]
    : other === undefined ? oneCell(cell, bothTexts[0], contexts[0]) : twoCells(shownCells, bothTexts, contexts);
  fillDrawer(probe.id, tools, drawerTabs(session), body);
  (tools.querySelector(`[data-step="${step}"]:enabled`) ?? drawer.querySelector('.drawer-body')).focus({ preventScroll: true });
}

function drawerTabs(session) {
  if (!session) return null;
  const choose = (tab) => { go({ tab }); restoreDrawer(); };
  const tab = (id, label) => h('button', { type: 'button', class: 'tab', 'aria-pressed': String((shown.tab ?? '') === id), on: { click: () => choose(id) } }, label);
  return h('div', { class: 'tabs' }, tab('', t('cell')), tab('session', t('session')));
}

function oneCell(cell, text, context) {
  return [cellHead(cell), compareChoice(cell), questionBlock([cell], [text]), searchesBlock([text], [cell]), answerBlock(text), criteriaBlock(text),
    contextBlock(cell, context), keysBlock(text)];
}

/** Two cells beside each other: the same question with two methods, or with the two sides of a comparison. */
function twoCells(both, bothTexts, contexts) {
  const absent = contexts.map((context) => context.absent).find(Boolean);
  const [, after] = both;
  const answers = wordColumns(...bothTexts.map((text) => text.answer));
  return [
    h('div', { class: 'columns' }, both.map((cell) => cellHead(cell))),
    compareChoice(Number(drawer.dataset.cell)),
    questionBlock(both, bothTexts),
    searchesBlock(bothTexts, both),
    block(t('answer'), h('div', { class: 'columns' }, answers.map((answer, i) =>
      h('div', { class: 'prose side-text' }, columnName(both[i]), bothTexts[i].answer.trim() ? answer : t('empty_answer'), inventedLine(bothTexts[i]))))),
    block(t('criteria'), h('ul', { class: 'criteria two' }, gradePairs(bothTexts).map(([c, grades]) => h('li', {}, criterionName(c),
      grades.map((grade, i) => h('div', {}, columnName(both[i]), grade ? [gradePips(grade[1]), h('p', { class: 'reason' }, grade[2])] : UNKNOWN)))))),
    block(t('diff'), absent ? h('p', { class: 'note' }, texts[`context_${absent}`]) : diffView(contexts[0].text, contexts[1].text)),
    keysBlock(bothTexts[both.indexOf(after)]),
  ];
}

/** Which column it is, where columns stand below each other. */
const columnName = (cell) => h('p', { class: 'column-name' }, methodLabel(valueAt(cells.method, cell)));

/** The grades of both by criterion, in the order of the first. */
function gradePairs(bothTexts) {
  const all = [...new Set(bothTexts.flatMap((text) => text.criteria.map(([c]) => c)))];
  return all.map((c) => [c, bothTexts.map((text) => text.criteria.find(([of]) => of === c))]);
}

function stepButton(next, by, sign, label) {
  return h('button', { type: 'button', class: 'icon', 'aria-label': label, title: label, 'data-step': by, disabled: next === undefined, on: { click: () => openCell(next) } }, sign);
}

function stepKey(event, near) {
  const by = { j: 1, k: -1 }[event.key];
  const next = by && !event.target.closest('input, select') ? near(by) : undefined;
  if (next !== undefined) openCell(next);
}

function cellHead(cell) {
  const m = valueAt(cells.method, cell);
  const probe = probeOf(cell);
  const scores = measuredDimensions.map((d) => [heading(d), scoreOf(cell, d)]).filter(([, value]) => value !== null);
  return h('div', { class: 'cell-head' },
    h('p', { class: 'where' }, methodLabel(m), h('span', { class: 'sub' }, locationText(cell)), h('span', { class: 'tag' }, t(`type_${probe.type}`)),
      (probe.tags ?? []).map((tag) => h('span', { class: 'tag' }, tag)),
      probe.answerable === false ? h('span', { class: 'tag warn' }, t('unanswerable')) : null),
    h('dl', { class: 'cell-scores' }, scores.map(([name, value]) =>
      h('div', {}, h('dt', {}, name), h('dd', {}, h('span', { class: 'value' }, score(value)), scoreBar(value))))));
}

/** The question with its facts, and what became of them in each of the cells. */
function questionBlock(shownCells, bothTexts) {
  const probe = probeOf(shownCells[0]);
  const letters = shownCells.map((cell) => [...cells.facts[cell]]);
  const fates = (i) => letters.map((of) => of[i]).filter(Boolean);
  const words = (i) => [...new Set(fates(i))].map((letter) => t(FATES[letter].word)).join(' → ');
  const facts = (probe.expected ?? []).map((spellings, i) => h('li', { class: new Set(fates(i)).size > 1 ? 'changed' : null },
    h('span', { class: 'fate-pair' }, fates(i).map(fateIcon)),
    h('span', { class: 'number' }, i + 1), h('span', {}, h('span', { class: 'spelling' }, spellings.join(' | ')),
      fates(i).length ? h('span', { class: 'sub' }, words(i)) : null)));
  const stated = new Set(bothTexts.flatMap((text) => text.stale ?? []));
  const old = (probe.superseded ?? []).map((spellings, i) => h('li', {}, h('span', { class: 'fate stale' }, '×'), h('span', { class: 'number' }, `×${i + 1}`),
    h('span', {}, h('span', { class: 'spelling' }, spellings.join(' | ')),
      h('span', { class: `sub ${stated.has(spellings[0]) ? 'warn' : ''}` }, t(stated.has(spellings[0]) ? 'stale_stated' : 'stale_not')))));
  return [
    block(t('question'), probe.question === undefined ? h('p', { class: 'note' }, t('no_probe')) : h('p', { class: 'question' }, probe.question)),
    facts.length ? block(t('expected_facts'), h('ul', { class: 'fact-list' }, facts)) : null,
    old.length ? block(t('superseded_facts'), h('ul', { class: 'fact-list' }, old)) : null,
    probe.reference ? block(t('reference_answer'), h('p', { class: 'prose quiet' }, probe.reference)) : null,
  ];
}

function inventedLine(text) {
  const names = text.invented ?? [];
  return names.length ? h('p', { class: 'warn-line' }, h('strong', {}, t('invented')), ' ', names.map((name) => h('code', {}, name))) : null;
}

function answerBlock(text) {
  const shownText = text.answer.trim() ? h('div', { class: 'prose' }, markedText(text.answer, text.marks)) : h('p', { class: 'note' }, t('empty_answer'));
  return block(t('answer'), shownText, inventedLine(text));
}

/** What the answerer searched for, and what it got to read; null where it could not search. */
function searchesBlock(bothTexts, shownCells) {
  if (!bothTexts.some((text) => text.searches)) return null;
  const lists = bothTexts.map((text, i) => [bothTexts.length > 1 ? columnName(shownCells[i]) : null, searchList(text, shownCells[i])]);
  return block(t('searches'), lists.length > 1 ? h('div', { class: 'columns' }, lists.map((list) => h('div', {}, list))) : lists);
}

function searchList({ searches }, cell) {
  if (!searches) return h('p', { class: 'note' }, UNKNOWN);
  if (!searches.length) return h('p', { class: 'note' }, t('search_none'));
  return h('ol', { class: 'searches' }, searches.map((search) => h('li', {}, h('details', {},
    h('summary', {}, h('span', { class: 'query' }, search.query || t('search_misused')), h('span', { class: 'sub' }, searchResult(search, cell))),
    h('div', { class: 'context', tabindex: '0', role: 'region', 'aria-label': search.query || t('search_misused') }, markedText(search.returned, search.marks))))));
}

/** How many excerpts a search returned, and which of the expected facts stand in them. */
function searchResult({ messages, returned, marks }, cell) {
  const excerpts = messages || (returned.match(/^\[note \d+\]$/gm) ?? []).length;
  const expected = probeOf(cell).expected ?? [];
  const facts = expected.filter((_, i) => marks.some(([fact]) => fact === i)).map((spellings) => spellings[0]);
  const found = facts.length ? t('search_facts', { names: facts.join(', ') }) : t(expected.length ? 'search_no_fact' : 'search_without_facts');
  return [excerpts === 1 ? t('search_1') : t('search_n', { n: excerpts }), found].join(' · ');
}

function criterionName(c) {
  const [name, dimension] = report.criteria[c];
  return h('div', { class: 'criterion' }, h('span', {}, name), dimension === null ? null : h('span', { class: 'sub' }, dimensions[dimension].label));
}

const gradePips = (points) => h('div', { class: 'grade' },
  h('span', { class: 'pips', 'aria-hidden': 'true' }, [1, 2, 3, 4, 5].map((p) => h('span', { class: p <= points ? 'on' : '' }))),
  h('span', { class: 'value' }, t('of_five', { n: points })));

function criteriaBlock(text) {
  return block(t('criteria'), h('ul', { class: 'criteria' }, text.criteria.map(([c, points, reasoning]) =>
    h('li', {}, criterionName(c), gradePips(points), reasoning ? h('p', { class: 'reason' }, reasoning) : null))));
}

function contextBlock(cell, context) {
  const probe = probeOf(cell);
  const marks = context.marks?.find(([[fixture, id]]) => fixture === report.fixtures[probe.fixture] && id === probe.id)?.[1];
  const tokens = valueAt(cells.tokens, cell);
  const title = isNumber(tokens) ? `${t('context')} · ${t('tokens_n', { n: integer(tokens) })}` : t('context');
  if (context.absent) return block(title, h('p', { class: 'note' }, texts[`context_${context.absent}`]));
  const text = h('div', { class: 'context', tabindex: '0', role: 'region', 'aria-label': t('context') }, markedText(context.text, marks));
  const found = [...text.querySelectorAll('mark')];
  let next = 0;
  const jump = () => {
    found[next % found.length].scrollIntoView({ block: 'center' });
    found.forEach((m, i) => m.classList.toggle('now', i === next % found.length));
    next += 1;
  };
  const button = found.length ? h('button', { type: 'button', class: 'quiet-button', on: { click: jump } }, t('next_mark', { n: found.length })) : null;
  return block(title, button, context.text ? text : h('p', { class: 'note' }, t('context_empty')));
}

/** The cell that stands beside this one: of the method that was chosen, else of the other side of a comparison. */
function otherOf(cell) {
  const m = valueAt(cells.method, cell);
  return cellWith(cell, shown.with ? NAMES.method.indexOf(shown.with) : mates.get(m));
}

/** The choice of another method to stand beside this one. */
function compareChoice(cell) {
  const m = valueAt(cells.method, cell);
  const others = methods.map((_, other) => other).filter((other) => other !== m && cellWith(cell, other) !== undefined);
  if (!others.length) return null;
  const chosen = shown.with ?? methods[mates.get(m)]?.name ?? '';
  // Where a mate stands beside a cell by itself, nothing has to be chosen: no method has this name.
  const none = mates.has(m) ? '-' : '';
  const options = [h('option', { value: none, selected: chosen === none }, t('choose_method')), others.map((other) => h('option', { value: methods[other].name, selected: methods[other].name === chosen }, methods[other].name))];
  const choose = (event) => { go({ with: event.target.value }); restoreDrawer(); };
  return h('label', { class: 'choice' }, t('compare_with'), h('select', { class: 'compare-with', on: { change: choose } }, options));
}

function keysBlock(text) {
  const names = [t('key_compress'), t('key_answer'), t('key_judge')];
  return block(t('keys'), h('dl', { class: 'keys' }, names.map((name, i) => h('div', {}, h('dt', {}, name), h('dd', {}, h('code', {}, text.keys[i]))))),
    h('p', { class: 'note' }, t('keys_lead')));
}
