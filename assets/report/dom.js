// Elements, texts and numbers. Everything shown passes through here as text, never as markup.

const texts = JSON.parse(document.getElementById('texts').textContent);

/** A text of the page, with each `{name}` replaced by its value. */
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

/** A text whose parts between backticks are code. */
const withCode = (text) => {
  const parts = text.split('`');
  return parts.length % 2 ? parts.map((part, i) => (i % 2 ? h('code', {}, part) : part)) : [text];
};

/** An SVG element. */
function s(tag, attributes = {}, ...children) {
  return fillElement(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

/** An unstyled button. What it shows is its name; `label` describes it, and is its name where it shows nothing. */
function markButton(label, open, attributes, ...children) {
  const { class: more = '', ...rest } = attributes;
  const all = { type: 'button', class: `mark ${more}`, title: label, on: { click: open }, ...rest };
  return h('button', all, children);
}

/** Roving tabindex: the marks in `container` are one Tab stop; arrow keys move among them, by row where there are rows. */
function rovingFocus(container) {
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

/** A part that scrolls sideways where it is too wide; then it can be reached with the keyboard. */
function scrollable(child) {
  const host = h('div', { class: 'scroll' }, child);
  new ResizeObserver(() => { host.tabIndex = host.scrollWidth > host.clientWidth ? 0 : -1; }).observe(host);
  return host;
}

const UNKNOWN = '–';
const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

/** A score with two digits; an unknown value is a dash. */
const score = (value) => (isNumber(value) ? value.toFixed(2) : UNKNOWN);
const integer = (value) => (isNumber(value) ? Math.round(value).toLocaleString('en-US') : UNKNOWN);
/** A count in few characters. */
const compact = (value) => {
  if (!isNumber(value)) return UNKNOWN;
  return value >= 10000 ? `${Math.round(value / 1000)}k` : value >= 1000 ? `${(value / 1000).toFixed(1)}k` : `${Math.round(value)}`;
};
