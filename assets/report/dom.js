// Elements, texts and numbers: everything that is shown passes through here, as text.

const texts = JSON.parse(document.getElementById('texts').textContent);

/** A word of the page, with `{name}` replaced by the values given. */
function t(key, values = {}) {
  const text = texts[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

function fillElement(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    } else if (name === 'vars') {
      for (const [variable, number] of Object.entries(value)) element.style.setProperty(`--${variable}`, number);
    } else {
      element.setAttribute(name, value === true ? '' : value);
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element; strings among the children become text. */
function h(tag, attributes = {}, ...children) {
  return fillElement(document.createElement(tag), attributes, children);
}

/** An SVG element. */
function s(tag, attributes = {}, ...children) {
  return fillElement(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

/** A picture of the given size that shrinks with its column. */
function picture(width, height, label, ...children) {
  const box = `0 0 ${width} ${height}`;
  return s('svg', { viewBox: box, width, height, role: 'group', 'aria-label': label }, children);
}

/** Something in a picture that opens what it stands for. */
function svgMark(label, open, ...children) {
  const onKey = (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    open();
  };
  const attributes = { class: 'mark', role: 'button', tabindex: '0', 'aria-label': label, on: { click: open, keydown: onKey } };
  return s('g', attributes, s('title', {}, label), children);
}

/** A button that looks like what it holds. */
function mark(label, open, attributes, ...children) {
  const { class: more = '', ...rest } = attributes;
  const all = { type: 'button', class: `mark ${more}`, 'aria-label': label, title: label, on: { click: open }, ...rest };
  return h('button', all, children);
}

/** Makes the marks inside `container` one stop of the Tab key; arrows move among them, by row where there are rows. */
function rove(container) {
  const marks = () => [...container.querySelectorAll('.mark')];
  const rest = (chosen) => marks().forEach((m) => m.setAttribute('tabindex', m === chosen ? '0' : '-1'));
  rest(marks()[0]);
  container.addEventListener('focusin', (event) => {
    const chosen = event.target.closest('.mark');
    if (chosen) rest(chosen);
  });
  container.addEventListener('keydown', (event) => {
    const next = neighbour(marks(), event.target.closest('.mark'), event.key);
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  return container;
}

function neighbour(marks, from, key) {
  const at = marks.indexOf(from);
  if (at < 0) return null;
  if (key === 'Home') return marks[0];
  if (key === 'End') return marks[marks.length - 1];
  if (key === 'ArrowRight') return marks[at + 1] ?? null;
  if (key === 'ArrowLeft') return marks[at - 1] ?? null;
  if (key !== 'ArrowDown' && key !== 'ArrowUp') return null;
  const row = from.closest('[data-row]');
  const step = key === 'ArrowDown' ? 1 : -1;
  if (!row) return marks[at + step] ?? null;
  const column = marks.filter((m) => row.contains(m)).indexOf(from);
  const rows = [...new Set(marks.map((m) => m.closest('[data-row]')))];
  const target = rows[rows.indexOf(row) + step];
  const there = target ? marks.filter((m) => target.contains(m)) : [];
  return there[Math.min(column, there.length - 1)] ?? null;
}

const MISSING = '–';
const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

/** A score or a difference, two digits; what is unknown is a dash. */
const score = (value) => (isNumber(value) ? value.toFixed(2) : MISSING);
const percent = (value, digits = 0) => (isNumber(value) ? `${(value * 100).toFixed(digits)}%` : MISSING);
const whole = (value) => (isNumber(value) ? Math.round(value).toLocaleString('en-US') : MISSING);
const signed = (value) => (isNumber(value) ? `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(2)}` : MISSING);
const money = (value) => (isNumber(value) ? `$${value.toFixed(value !== 0 && value < 1 ? 4 : 2)}` : MISSING);
const range = (ends, write = score) => (Array.isArray(ends) ? `[${write(ends[0])}, ${write(ends[1])}]` : '');
/** Tokens in few characters. */
const short = (value) => {
  if (!isNumber(value)) return MISSING;
  return value >= 10000 ? `${Math.round(value / 1000)}k` : value >= 1000 ? `${(value / 1000).toFixed(1)}k` : `${Math.round(value)}`;
};
