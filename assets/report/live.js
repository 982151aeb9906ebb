// How far the run is that fills this page and serves it. A page in a file has none of this.

const POLL_MS = 1000;
/** A page that is looked at is not replaced more often than this. */
const STAY_MS = 4000;

function liveProgress() {
  if (!isNumber(report.live)) return null;
  const host = h('div', { class: 'live' }, h('p', { class: 'note' }, t('live_begins')));
  poll(host);
  return host;
}

async function poll(host) {
  let state;
  try {
    state = await (await fetch('progress')).json();
  } catch {
    host.replaceChildren(h('p', { class: 'note' }, t('live_over')));
    return;
  }
  const isNew = state.ended || state.version !== report.live;
  const isBusy = drawer.open || document.activeElement?.id === 'search';
  if (isNew && !isBusy && (state.ended || performance.now() > STAY_MS)) {
    location.reload();
    return;
  }
  const more = isNew && isBusy ? h('button', { type: 'button', class: 'quiet-button', on: { click: () => location.reload() } }, t('live_more')) : null;
  if (state.run) host.replaceChildren(...state.run.stages.map(stageBar), h('p', { class: 'note' }, [state.run.pace, state.run.waits].filter(Boolean).join(' · ')), more ?? '');
  setTimeout(poll, POLL_MS, host);
}

const stageBar = ({ name, finished, total, words }) => h('div', { class: 'live-stage' }, h('span', {}, stageName(name)),
  h('span', { class: 'track' }, h('span', { class: 'bar', vars: { at: total ? (finished / total) * 100 : 0 } })),
  h('span', { class: 'sub' }, words));
