// Plots: quality against size, curves over cycles, heat maps by fixture and probe type.

/** A plot that is redrawn when its width or the filters change. */
function responsive(draw, name) {
  const host = h('div', { class: 'plot' });
  let width = Math.min(document.documentElement.clientWidth - 32, 760);
  const redraw = () => host.replaceChildren(rovingFocus(draw(Math.max(280, Math.min(width, 760)))));
  onFilterChange(redraw);
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now === width || now === 0) return;
    width = now;
    requestAnimationFrame(redraw);
  }).observe(host);
  return h('div', { class: 'figure' }, host, copyTools(() => host.querySelector('svg'), name));
}

const axisText = (x, y, text, anchor = 'middle', more = '') => s('text', { x, y, 'text-anchor': anchor, class: `axis ${more}` }, text);
const line = (x1, y1, x2, y2, name) => s('line', { x1, y1, x2, y2, class: name });

// --- quality against tokens kept ---

function paretoSection() {
  const points = methods.map((_, m) => ({ m, x: summaries[m]?.context_tokens, level: asLevel(summaries[m]?.overall) }))
    .filter((p) => isNumber(p.x) && isNumber(p.level.v));
  if (!points.length) return null;
  const best = frontier(points);
  const lead = best.length ? t('pareto_lead') : t('pareto_undefined');
  return section('size', t('pareto'), lead, responsive((width) => scatter(points, best, width), t('pareto')), unknownSizes());
}

function unknownSizes() {
  const names = methods.filter((_, m) => summaries[m] && !isNumber(summaries[m].context_tokens)).map((method) => method.name);
  return names.length ? h('p', { class: 'note' }, t('no_size', { names: names.join(', ') })) : null;
}

/** The Pareto frontier of quality and size, among methods with a defined retention. */
function frontier(points) {
  const able = points.filter(({ m }) => isNumber(summaries[m].retention?.value));
  const beats = (a, b) => a.x <= b.x && a.level.v >= b.level.v && (a.x < b.x || a.level.v > b.level.v);
  return able.filter((p) => !able.some((other) => beats(other, p))).sort((a, b) => a.x - b.x);
}

/** Round numbers from 0 to `most` that are well spaced on a square-root scale. */
function rootTicks(most) {
  const step = 10 ** Math.floor(Math.log10(Math.max(most, 10)));
  return [0, 0.05, 0.2, 0.5, 1, 2, 3, 5, 7].map((k) => k * step).filter((x) => x <= most * 1.02);
}

function scatter(points, best, width) {
  const shown = shownMethods();
  const [left, right, top, bottom, height] = [34, 16, 14, 40, width < 480 ? 300 : 360];
  const most = Math.max(...points.map((p) => p.x), 1) * 1.05;
  const px = (x) => left + 8 + Math.sqrt(x / most) * (width - left - right - 8);
  const py = (y) => top + (1 - y / 5) * (height - top - bottom);
  const base = height - bottom;
  const grid = [0, 1, 2, 3, 4, 5].map((y) => [line(left, py(y), width - right, py(y), 'grid'), axisText(left - 8, py(y) + 4, y, 'end')]);
  const ticks = rootTicks(most).map((x) => [line(px(x), base, px(x), base + 4, 'tick'), axisText(px(x), base + 17, compact(x))]);
  const path = best.length > 1 ? s('path', { class: 'frontier', d: `M${best.map((p) => `${px(p.x)} ${py(p.level.v)}`).join('L')}` }) : null;
  const drawn = points.filter(({ m }) => shown.includes(m));
  const labels = placeLabels(drawn.map((p) => ({ x: px(p.x), y: py(p.level.v), text: clipped(mates.has(p.m) ? shortName(p.m) : methods[p.m].name) })), width);
  return h('div', {}, svgRoot(width, height, t('pareto'), grid, ticks,
    axisText((left + width - right) / 2, height - 4, t('tokens_axis'), 'middle', 'title'), path,
    drawn.map((p, i) => scatterPoint(p, best.includes(p), px(p.x), py, labels[i]))));
}

function scatterPoint({ m, x, level: found }, isBest, px, py, label) {
  const text = `${levelText(methods[m].name, found)}; ${t('tokens_n', { n: integer(x) })}${isBest ? `; ${t('pareto_mark')}` : ''}`;
  const y = py(found.v);
  return svgButton(text, () => openLevel(m, -1),
    s('g', { class: methodClass(m) },
      s('circle', { class: 'reach', cx: px, cy: y, r: 14 }),
      found.ci ? line(px, py(found.ci[0]), px, py(found.ci[1]), 'whisker') : null,
      isBest ? s('circle', { class: 'halo', cx: px, cy: y, r: 10 }) : null,
      s('g', { class: 'sign', transform: `translate(${px} ${y})` }, methodShape(m, 5.5))),
    s('text', { x: label.x, y: label.y, 'text-anchor': label.anchor, class: 'label' }, label.text));
}

const clipped = (text, most = 22) => ([...text].length > most ? `${[...text].slice(0, most - 1).join('')}…` : text);
const textWidth = (text) => [...text].reduce((sum, c) => sum + (c > '\u2e80' ? 12.5 : 6.9), 0);

/** Positions for labels near their points, without overlap where possible. */
function placeLabels(points, width) {
  const taken = points.map(({ x, y }) => [x - 9, y - 9, x + 9, y + 9]);
  const free = (box) => box[0] > 2 && box[2] < width - 2 && !taken.some((t) => box[0] < t[2] && t[0] < box[2] && box[1] < t[3] && t[1] < box[3]);
  return points.map(({ x, y, text }) => {
    const w = textWidth(text);
    const spots = [[x + 14, y + 4, 'start'], [x - 14, y + 4, 'end'], [x + 10, y - 12, 'start'], [x + 10, y + 20, 'start'],
      [x - 10, y - 12, 'end'], [x - 10, y + 20, 'end'], [x, y - 26, 'middle'], [x, y + 34, 'middle'],
      ...[28, 44, 60, 76].flatMap((far) => [[x + 14, y - far, 'start'], [x + 14, y + far, 'start'], [x - 14, y - far, 'end'], [x - 14, y + far, 'end']])];
    const boxes = spots.map(([lx, ly, anchor]) => {
      const start = anchor === 'start' ? lx : anchor === 'end' ? lx - w : lx - w / 2;
      return [start, ly - 11, start + w, ly + 4];
    });
    const found = boxes.findIndex(free);
    const chosen = found < 0 ? (x > width / 2 ? 1 : 0) : found;
    taken.push(boxes[chosen]);
    const [lx, ly, anchor] = spots[chosen];
    return { x: lx, y: ly, anchor, text };
  });
}

// --- over cycles ---

function cyclesSection() {
  const most = Math.max(0, ...summaries.map((summary) => summary?.by_cycle?.length ?? 0));
  if (most < 2) return null;
  const curves = (of, top, write, title) => h('figure', {}, h('figcaption', {}, title), responsive((width) => cycleChart(of, top, write, width, title), title));
  return section('cycles', t('cycles'), t('cycles_lead'),
    h('div', { class: 'pair' },
      curves((cycle) => asLevel(cycle.overall), 5, score, t('overall')),
      curves((cycle) => ({ v: cycle.fact_survival, ci: null }), 1, percent, t('survival'))),
    reactive('', () => legend(shownMethods())));
}

function cycleChart(of, top, write, width, title) {
  const series = shownMethods().map((m) => ({ m, points: (summaries[m]?.by_cycle ?? []).map((cycle) => ({ c: cycle.cycle, ...of(cycle) })).filter((p) => isNumber(p.v)) }))
    .filter(({ points }) => points.length);
  const cycles = [...new Set(series.flatMap(({ points }) => points.map((p) => p.c)))].sort((a, b) => a - b);
  const [left, right, above, below, height] = [42, 16, 10, 38, 240];
  const px = (c) => left + 14 + (cycles.indexOf(c) / Math.max(1, cycles.length - 1)) * (width - left - right - 28);
  const py = (v) => above + (1 - v / top) * (height - above - below);
  const steps = [0, 0.2, 0.4, 0.6, 0.8, 1].map((k) => k * top);
  const grid = steps.map((v) => [line(left, py(v), width - right, py(v), 'grid'), axisText(left - 6, py(v) + 4, top === 5 ? v : write(v), 'end')]);
  const ticks = cycles.map((c) => axisText(px(c), height - below + 17, c));
  return h('div', {}, svgRoot(width, height, title, grid, ticks,
    axisText((left + width - right) / 2, height - 4, t('cycle_axis'), 'middle', 'title'),
    series.map(({ m, points }) => s('path', { class: `curve ${methodClass(m)}`, d: `M${points.map((p) => `${px(p.c)} ${py(p.v)}`).join('L')}` })),
    series.map(({ m, points }) => points.map((p) => cyclePoint(m, p, px(p.c), py, write, title)))));
}

function cyclePoint(m, { c, v, ci }, x, py, write, title) {
  const label = `${methods[m].name}, ${t('cycle_n', { n: c })}, ${title}: ${write(v)}${ci ? ` ${range(ci, write)}` : ''}`;
  const open = () => openList({ method: methods[m].name, cycle: c });
  return svgButton(label, open, s('g', { class: methodClass(m) }, s('circle', { class: 'reach', cx: x, cy: py(v), r: 11 }),
    s('g', { class: 'sign', transform: `translate(${x} ${py(v)})` }, methodShape(m, 4.5))));
}

// --- heat maps ---

/** The dimension of the maps; -1 is the overall score. */
const mapDimension = () => dimensionOf(shown.map);

function mapsSection() {
  const choices = measuredDimensions.map((d) => h('option', { value: d }, heading(d)));
  const redraw = [];
  const choose = (event) => {
    go({ map: dimensions[event.target.value]?.id ?? '' });
    redraw.forEach((draw) => draw());
  };
  const chosen = h('select', { id: 'map-dimension', on: { change: choose } }, choices);
  onAddress(() => {
    chosen.value = mapDimension();
    redraw.forEach((draw) => draw());
  });
  const map = (title, columns, value, open) => {
    const host = h('div', { class: 'map-host' });
    const draw = () => host.replaceChildren(rovingFocus(heatMap(title, columns(), value, open)));
    redraw.push(draw);
    onFilterChange(draw);
    return host;
  };
  const fixtures = () => report.fixtures.map((name, f) => ({ id: f, name })).filter(({ id }) => filters.fixture === '' || Number(filters.fixture) === id);
  const types = () => report.types.map((name) => ({ id: name, name: t(`type_${name}`) })).filter(({ id }) => filters.type === '' || filters.type === id);
  const groups = (field) => [...new Set(summaries.flatMap((summary) => Object.keys(summary?.[field] ?? {})))];
  const groupMap = (field) => {
    const names = groups(field);
    const level = (m, name) => levelIn(field, m, name, mapDimension());
    return names.length > 1 ? map(t(field), () => names.map((name) => ({ id: name, name })), level, () => null) : null;
  };
  return section('maps', t('maps'), t('maps_lead'),
    h('label', { class: 'choice' }, t('dimension'), chosen),
    h('div', { class: 'map-pair' }, map(t('by_fixture'), fixtures, (m, f) => levelIn('by_fixture', m, report.fixtures[f], mapDimension()), (f) => ({ fixture: report.fixtures[f] })),
    map(t('by_type'), types, (m, type) => levelIn('by_probe_type', m, type, mapDimension()), (type) => ({ type }))),
    h('div', { class: 'map-pair' }, groupMap('by_tag'), groupMap('by_length')));
}

/** More columns than this do not fit a page: they become rows, and the methods columns. */
const MOST_COLUMNS = 8;

function heatMap(title, columns, value, open) {
  const isTall = columns.length > MOST_COLUMNS;
  const across = columns.map(({ id, name }) => ({ head: h('span', { title: name }, name), cell: (m) => heatCell(m, name, value(m, id), open(id)) }));
  const lines = shownMethods().map((m) => ({ m, head: methodLabel(m), cells: across.map(({ cell }) => cell(m)) }));
  const heads = isTall ? lines.map(({ m, head }) => h('span', { title: methods[m].name }, head)) : across.map(({ head }) => head);
  const rows = isTall ? across.map(({ head }, i) => [head, lines.map(({ cells: made }) => made[i])]) : lines.map(({ head, cells: made }) => [head, made]);
  return scrollable(h('table', { class: `map ${isTall ? 'tall' : ''}` }, h('caption', {}, title),
    h('thead', {}, h('tr', {}, h('td', {}), heads.map((head) => h('th', { scope: 'col' }, head)))),
    h('tbody', {}, rows.map(([head, made]) => h('tr', { 'data-row': '' }, h('th', { scope: 'row' }, head), made.map((cell) => h('td', {}, cell)))))));
}

function heatCell(m, name, found, part) {
  if (!isNumber(found.v)) return h('span', { class: 'absent' }, UNKNOWN);
  const d = mapDimension();
  const label = levelText(`${methods[m].name} · ${name}, ${heading(d)}`, found);
  const depth = (Math.max(0, found.v) / 5) ** 1.6;
  const look = { class: `heat ${depth > 0.82 ? 'deep' : ''}`, vars: { p: `${depth * 100}%` } };
  if (!part) return h('span', { ...look, title: label }, score(found.v));
  const open = () => openList({ method: methods[m].name, ...part, ...(d < 0 ? {} : { score: dimensions[d].id }) });
  return markButton(label, open, look, score(found.v));
}
