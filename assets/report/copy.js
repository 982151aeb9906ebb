// Figures as pictures: SVG as text, PNG as an image. Where there is no clipboard, a file is saved.

const LOOKS = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linecap', 'stroke-linejoin', 'opacity', 'font-family', 'font-size', 'font-weight', 'text-anchor', 'paint-order'];

/** A copy of a figure that looks the same without the styles of the page. */
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [from, to] = [svg, copy].map((root) => [root, ...root.querySelectorAll('*')]);
  from.forEach((element, i) => {
    const look = getComputedStyle(element);
    LOOKS.forEach((name) => to[i].style.setProperty(name, look.getPropertyValue(name)));
    ['class', 'role', 'tabindex'].forEach((name) => to[i].removeAttribute(name));
  });
  const [width, height] = ['width', 'height'].map((name) => Number(svg.getAttribute(name)));
  const ground = s('rect', { width, height });
  ground.style.setProperty('fill', getComputedStyle(document.body).backgroundColor);
  copy.prepend(ground);
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

const dataAddress = (text) => `data:image/svg+xml;base64,${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}`;

/** The figure at twice its size. */
async function asCanvas({ text, width, height }) {
  const image = new Image();
  image.src = dataAddress(text);
  await image.decode();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas;
}

function save(address, name) {
  h('a', { href: address, download: name }).click();
}

/** Copies a figure; true if it is in the clipboard, false if it was saved. */
async function copyFigure(svg, kind, name) {
  const made = standalone(svg);
  const file = `${name.replace(/[^\p{L}\p{N}]+/gu, '-').toLowerCase()}.${kind}`;
  const canvas = kind === 'png' ? await asCanvas(made) : null;
  try {
    if (!canvas) await navigator.clipboard.writeText(made.text);
    else await navigator.clipboard.write([new ClipboardItem({ 'image/png': new Promise((done) => { canvas.toBlob(done); }) })]);
    return true;
  } catch {
    save(canvas ? canvas.toDataURL() : dataAddress(made.text), file);
    return false;
  }
}

/** Buttons that copy a figure. */
function copyTools(figure, name) {
  const button = (kind) => {
    const word = t(`copy_${kind}`);
    const made = h('button', { type: 'button', class: 'copy', 'aria-label': `${word}: ${name}`, on: { click: async () => {
      const isCopied = await copyFigure(figure(), kind, name);
      made.textContent = t(isCopied ? 'copied' : 'saved');
      setTimeout(() => { made.textContent = kind.toUpperCase(); }, 1500);
    } } }, kind.toUpperCase());
    return made;
  };
  return h('span', { class: 'copy-tools' }, button('png'), button('svg'));
}
