// Icons and labels that all sections share: methods, scores, outcomes of facts.

// SHAPES, of radius 1, come from marks.json.
const COLOURS = 7;
const isAnchor = (m) => ['full', 'none'].includes(methods[m].strategy);
const ordinary = methods.map((_, m) => m).filter((m) => !isAnchor(m) && !isBaseline(m));

/** The class that gives a method its colour; the ends of the scale are grey. */
function methodClass(m) {
  return isAnchor(m) ? 'anchor' : `m${ordinary.indexOf(ownOf(m)) % COLOURS}${ownOf(m) === m ? '' : ' before'}`;
}

/** The method whose colour and shape it has: a baseline those of what is compared with it, but hollow. */
const ownOf = (m) => (isBaseline(m) ? mates.get(m) : m);

/** The shape of a method in SVG. Shapes and colours vary independently, so that 49 methods differ. */
function methodShape(m, r) {
  const number = ordinary.indexOf(ownOf(m));
  if (methods[m].strategy === 'full') return s('path', { d: `M${-r} ${r * 0.6}L0 ${-r * 0.6}L${r} ${r * 0.6}`, class: 'open' });
  if (methods[m].strategy === 'none') return s('path', { d: `M${-r} ${-r * 0.6}L0 ${r * 0.6}L${r} ${-r * 0.6}`, class: 'open' });
  const shape = SHAPES[(number + Math.floor(number / COLOURS)) % SHAPES.length];
  return s('path', { d: shape.path, transform: `scale(${r})`, class: shape.open ? 'open' : '' });
}

/** The icon of a method in text. */
function methodIcon(m) {
  return s('svg', { class: `sign ${methodClass(m)}`, viewBox: '-8 -8 16 16', 'aria-hidden': 'true' }, methodShape(m, 4.6));
}

/** The name of a method on this page; a baseline has that of its result set in front. */
const shortName = (m) => (!isBaseline(m) && methods[m].label) || methods[m].name;

/** The icon and name of a method, and what it keeps verbatim. */
const methodLabel = (m) => h('span', { class: 'named' }, methodIcon(m), h('span', { class: 'name' }, shortName(m)));

/** A point on a track from 0 to 5. */
function scoreBar(value) {
  const at = Math.max(0, Math.min(100, value * 20));
  return h('span', { class: 'iv', 'aria-hidden': 'true' }, isNumber(value) ? h('span', { class: 'iv-point', vars: { at } }) : null);
}

const FATES = {
  a: { word: 'fate_answered', glyph: '✓', className: 'fate-a' },
  e: { word: 'fate_elsewhere', glyph: '~', className: 'fate-e' },
  s: { word: 'fate_found', glyph: '⌕', className: 'fate-s' },
  m: { word: 'fate_missed', glyph: '○', className: 'fate-m' },
  u: { word: 'fate_unused', glyph: '⌕', className: 'fate-u' },
  l: { word: 'fate_lost', glyph: '×', className: 'fate-l' },
  y: { word: 'fate_yes', glyph: '✓', className: 'fate-y' },
  n: { word: 'fate_no', glyph: '×', className: 'fate-n' },
};

/** The outcome of a fact as an icon. */
function fateIcon(letter) {
  const known = FATES[letter];
  return h('span', { class: `fate ${known.className}`, title: t(known.word) }, known.glyph);
}

/** A section of the page. */
function section(id, title, lead, ...children) {
  const heading = h('h2', { id: `${id}-title` }, title);
  return h('section', { id, 'aria-labelledby': `${id}-title` }, heading, lead ? h('p', { class: 'lead' }, lead) : null, children);
}

/** A part of a section that is redrawn when the filters change. */
function reactive(className, draw) {
  const host = h('div', { class: className });
  onFilterChange(() => host.replaceChildren(...[draw()].flat(Infinity).filter(Boolean)));
  return host;
}

const measuredDimensions = [-1, ...dimensions.map((_, d) => d).filter((d) => hasDimension[d])];
const heading = (d) => (d < 0 ? t('overall') : dimensions[d].label);
