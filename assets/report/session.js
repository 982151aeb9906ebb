// The timeline of a session: its messages, the points, and what a method kept of the facts that were asked for.

/** The session of a cell, or null where it is not in the page. */
async function sessionOf(cell) {
  const id = `sessions-${probeOf(cell).fixture}`;
  return document.getElementById(id) === null ? null : chunk(id);
}

/** The facts asked for at the point of a cell, with what became of each: those of its own probe first. */
function factsAtPoint(cell, session) {
  const here = (one) => ['method', 'run', 'answer_n', 'judge', 'judge_n'].every((name) => valueAt(cells[name], one) === valueAt(cells[name], cell))
    && probeOf(one).fixture === probeOf(cell).fixture && probeOf(one).point === probeOf(cell).point;
  const asked = filteredCells.filter((one) => one !== cell && here(one));
  const heldOf = (one) => session.facts.find(([point, id]) => point === probeOf(one).point && id === probeOf(one).id)?.[2] ?? [];
  return [cell, ...asked].flatMap((one) => (probeOf(one).expected ?? []).map((spellings, i) => ({
    own: one === cell, probe: probeOf(one).id, name: spellings[0], letter: cells.facts[one][i], held: heldOf(one)[i] ?? [],
  }))).filter(({ letter }) => letter);
}

function sessionBlock(cell, session) {
  const sizes = session.messages.map(([, tokens]) => Math.max(tokens, 1));
  const total = sizes.reduce((a, b) => a + b, 0);
  let sum = 0;
  const starts = sizes.map((size) => { sum += size; return ((sum - size) / total) * 100; });
  const at = (message) => starts[message] ?? 100;
  const point = probeOf(cell).point - 1;
  const [from, end] = [session.points[point - 1] ?? session.start, session.points[point] ?? sizes.length];
  const facts = factsAtPoint(cell, session);
  const replaced = sizes.slice(session.start, end).reduce((a, b) => a + b, 0);
  const lead = t('session_lead', { n: integer(sizes.length), end, all: integer(replaced), kept: integer(valueAt(cells.tokens, cell)), name: methods[valueAt(cells.method, cell)].name });
  return [
    h('p', { class: 'where' }, methodLabel(valueAt(cells.method, cell)), h('span', { class: 'sub' }, locationText(cell))),
    h('p', { class: 'lead' }, lead),
    h('ul', { class: 'legend' }, ['user', 'assistant', 'tool', 'system'].map((role) => h('li', {}, h('span', { class: `swatch role-${role}` }), t(`role_${role}`)))),
    h('div', { class: 'timeline' },
      h('div', { class: 'line-row' }, h('span', {}), h('div', { class: 'line points-line' }, session.points.map((message, i) =>
        h('span', { class: i === point ? 'now' : '', vars: { at: at(message) } }, i + 1)))),
      h('div', { class: 'line-row' }, h('span', { class: 'sub' }, t('messages')), h('div', { class: 'line strip' },
        sizes.map((size, i) => h('span', { class: `role-${session.messages[i][0]} ${i >= end ? 'later' : ''}`, title: messageText(session, i), vars: { at: at(i), size: (size / total) * 100 } })))),
      h('div', { class: 'line-row' }, h('span', { class: 'sub' }, t('cycle_n', { n: point + 1 })), h('div', { class: 'line spans' },
        h('span', { class: 'span', vars: { at: at(from), size: at(end) - at(from) }, title: t('span_of_point') }))),
      facts.map((fact) => h('div', { class: `line-row ${fact.own ? 'own' : ''}` },
        h('span', { class: 'fact-name', title: `${fact.probe}: ${fact.name}` }, fateIcon(fact.letter), h('span', {}, fact.name)),
        h('div', { class: 'line' }, fact.held.map((message) => h('span', { class: `held ${FATES[fact.letter].className}`, title: messageText(session, message), vars: { at: at(message) } })))))),
    h('ol', { class: 'messages' }, session.messages.flatMap((message, i) => [
      session.points.includes(i) ? pointRow(session.points.indexOf(i), point) : null, messageRow(message, i, facts, end)]),
      session.points.includes(sizes.length) ? pointRow(session.points.indexOf(sizes.length), point) : null),
  ];
}

const messageText = (session, i) => `${i + 1} · ${t(`role_${session.messages[i][0]}`)} · ${t('tokens_n', { n: `≈${integer(session.messages[i][1])}` })}: ${session.messages[i][2]}`;

const pointRow = (i, point) => h('li', { class: `point ${i === point ? 'now' : ''}` }, t('compressed_here', { n: i + 1 }));

function messageRow([role, tokens, words], i, facts, end) {
  const said = facts.filter(({ held }) => held.includes(i));
  return h('li', { class: i >= end ? 'later' : '' }, h('span', { class: 'number' }, i + 1), h('span', { class: `who role-name-${role}` }, t(`role_${role}`)),
    h('span', { class: 'words' }, words || UNKNOWN, said.length ? h('span', { class: 'said' }, said.map(({ letter, name }) => h('span', { title: `${name}: ${t(FATES[letter].word)}` }, fateIcon(letter), h('code', {}, name)))) : null),
    h('span', { class: 'number' }, compact(tokens)));
}
