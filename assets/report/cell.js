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

/** Opens one cell. `from` is the list in which it was chosen: `{title, found, position, dimension, page}`. */
async function openCell(cell, from) {
  const probe = probeOf(cell);
  const step = document.activeElement?.dataset?.step;
  const tools = h('div', { class: 'drawer-tools' },
    from.page ? null : h('button', { type: 'button', class: 'icon back', 'aria-label': t('back'), title: t('back'), on: { click: () => showList(from, from.position) } }, '←'),
    stepButton(from, -1, '‹', t('previous')), stepButton(from, 1, '›', t('next')));
  fillDrawer(probe.id, tools, h('p', { class: 'note' }, t('opening')));
  drawer.dataset.cell = cell;
  drawer.onkeydown = (event) => stepKey(event, from);
  const [text, context] = await Promise.all([cellText(cell), contextText(cell)]);
  if (drawer.dataset.cell !== String(cell)) return;
  const marks = context.marks?.[valueAt(cells.probe, cell)];
  fillDrawer(probe.id, tools, cellHead(cell), questionBlock(cell, probe, text), answerBlock(text), criteriaBlock(text),
    contextBlock(cell, context, marks), compareBlock(cell, context), keysBlock(text));
  (tools.querySelector(`[data-step="${step}"]:enabled`) ?? drawer.querySelector('.drawer-body')).focus({ preventScroll: true });
}

function stepButton(from, by, sign, label) {
  const next = from.found[from.position + by];
  const open = () => openCell(next, { ...from, position: from.position + by });
  return h('button', { type: 'button', class: 'icon', 'aria-label': label, title: label, 'data-step': by, disabled: next === undefined, on: { click: open } }, sign);
}

function stepKey(event, from) {
  const by = { j: 1, k: -1 }[event.key];
  const next = by && !event.target.closest('input, select') ? from.found[from.position + by] : undefined;
  if (next !== undefined) openCell(next, { ...from, position: from.position + by });
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
      h('div', {}, h('dt', {}, name), h('dd', {}, h('span', { class: 'value' }, score(value)), intervalBar(value, null, 0, 5))))));
}

function questionBlock(cell, probe, text) {
  const letters = [...cells.facts[cell]];
  const facts = (probe.expected ?? []).map((spellings, i) => h('li', {}, letters[i] ? fateIcon(letters[i]) : null,
    h('span', { class: 'number' }, i + 1), h('span', {}, h('span', { class: 'spelling' }, spellings.join(' | ')),
      letters[i] ? h('span', { class: 'sub' }, t(FATES[letters[i]].word)) : null)));
  const stated = new Set(text.stale ?? []);
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

function answerBlock(text) {
  const invented = (text.invented ?? []).length
    ? h('p', { class: 'warn-line' }, h('strong', {}, t('invented')), ' ', text.invented.map((name) => h('code', {}, name)))
    : null;
  const shown = text.answer.trim() ? h('div', { class: 'prose' }, markedText(text.answer, text.marks)) : h('p', { class: 'note' }, t('empty_answer'));
  return block(t('answer'), shown, invented);
}

function criteriaBlock(text) {
  return block(t('criteria'), h('ul', { class: 'criteria' }, text.criteria.map(([c, points, reasoning]) => {
    const [name, dimension] = report.criteria[c];
    return h('li', {},
      h('div', { class: 'criterion' }, h('span', {}, name), dimension === null ? null : h('span', { class: 'sub' }, dimensions[dimension].label)),
      h('div', { class: 'grade' }, h('span', { class: 'pips', 'aria-hidden': 'true' }, [1, 2, 3, 4, 5].map((p) => h('span', { class: p <= points ? 'on' : '' }))),
        h('span', { class: 'value' }, t('of_five', { n: points }))),
      reasoning ? h('p', { class: 'reason' }, reasoning) : null);
  })));
}

function contextBlock(cell, context, marks) {
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

/** The same probe, run and repetition with other methods. */
function siblings(cell) {
  const same = ['probe', 'run', 'judge', 'answer_n', 'judge_n'];
  const found = new Map();
  for (let other = 0; other < cells.n; other += 1) {
    if (other !== cell && valueAt(cells.method, other) !== valueAt(cells.method, cell)
      && same.every((name) => valueAt(cells[name], other) === valueAt(cells[name], cell))) found.set(valueAt(cells.method, other), other);
  }
  return found;
}

function compareBlock(cell, context) {
  const others = siblings(cell);
  if (!others.size) return null;
  const host = h('div', { class: 'compare' });
  const choose = async (event) => {
    const other = others.get(Number(event.target.value));
    if (other === undefined) return host.replaceChildren();
    const [text, there] = await Promise.all([cellText(other), contextText(other)]);
    const head = h('p', { class: 'where' }, methodLabel(valueAt(cells.method, other)), h('span', { class: 'value' }, score(scoreOf(other))),
      [...cells.facts[other]].map(fateIcon));
    const difference = context.absent || there.absent
      ? h('p', { class: 'note' }, texts[`context_${context.absent ?? there.absent}`])
      : diffView(context.text, there.text);
    return host.replaceChildren(head, h('h4', {}, t('answer')), h('div', { class: 'prose' }, markedText(text.answer, text.marks)), h('h4', {}, t('diff')), ...[difference].flat());
  };
  const options = [h('option', { value: '' }, t('choose_method')), [...others.keys()].sort((a, b) => a - b).map((m) => h('option', { value: m }, methods[m].name))];
  return block(t('compare'), h('label', { class: 'choice' }, t('compare_with'), h('select', { class: 'compare-with', on: { change: choose } }, options)), host);
}

function keysBlock(text) {
  const names = [t('key_compress'), t('key_answer'), t('key_judge')];
  return block(t('keys'), h('dl', { class: 'keys' }, names.map((name, i) => h('div', {}, h('dt', {}, name), h('dd', {}, h('code', {}, text.keys[i]))))),
    h('p', { class: 'note' }, t('keys_lead')));
}
