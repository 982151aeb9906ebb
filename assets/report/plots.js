// Quality against size.

/** A plot that is redrawn when its width or the filters change. */
function responsive(draw) {
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
  return host;
}

const axisText = (x, y, text, anchor = 'middle', more = '') => s('text', { x, y, 'text-anchor': anchor, class: `axis ${more}` }, text);
const line = (x1, y1, x2, y2, name) => s('line', { x1, y1, x2, y2, class: name });

function paretoSection() {
  const points = methods.map((_, m) => ({ m, x: summaries[m]?.context_tokens, level: asLevel(summaries[m]?.overall) }))
    .filter((p) => isNumber(p.x) && isNumber(p.level.v));
  if (!points.length) return null;
  const best = frontier(points);
  const lead = best.length ? t('pareto_lead') : t('pareto_undefined');
  return section('size', t('pareto'), lead, responsive((width) => scatter(points, best, width)), unknownSizes());
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
