// What the page shows as the fragment of its address: filters, order, what is open. A link that was sent shows the same.

/** The state by name, all of it text: names and not numbers, so that links outlive a run that adds cells. */
let shown = readAddress();
const restorers = [];

function readAddress() {
  const text = location.hash.slice(1);
  return text.includes('=') ? Object.fromEntries(new URLSearchParams(text)) : { at: text };
}

/** Changes parts of the state; an empty part is left out. Back undoes it unless it `replaces` the last step. */
function go(change, replaces = false) {
  const next = Object.fromEntries(Object.entries({ ...shown, ...change }).filter(([, value]) => value !== undefined && value !== ''));
  const { at = '', ...rest } = next;
  const text = `#${Object.keys(rest).length ? new URLSearchParams(next) : at}`;
  shown = next;
  if (text === (location.hash || '#')) return;
  history[replaces ? 'replaceState' : 'pushState'](null, '', text);
}

/** Calls `restore` now, and whenever Back, Forward or an edit of the address changed the state. */
function onAddress(restore) {
  restorers.push(restore);
  restore();
}

window.addEventListener('popstate', () => {
  shown = readAddress();
  restorers.forEach((restore) => restore());
});
