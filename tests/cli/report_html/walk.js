// Clicks through the page as a reader would, and writes down what went wrong.
(() => {
  const problems = [];
  let opened = 0;
  const check = (right, what) => { if (!right) problems.push(what); };
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const soon = (ready, what) => new Promise((resolve) => {
    let tries = 0;
    const look = () => {
      const found = ready();
      if (found || (tries += 1) > 200) { check(found, what); resolve(found); } else setTimeout(look, 10);
    };
    look();
  });
  const key = (element, name) => element.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
  const drawer = one('#drawer');
  const close = () => { drawer.close(); check(!drawer.open, 'the drawer stays open'); };
  const done = (more) => {
    const pre = document.createElement('pre');
    pre.id = 'walk';
    pre.textContent = JSON.stringify({ problems, opened, planted: window.planted ?? null, ...more });
    document.body.append(pre);
  };
  window.addEventListener('error', (event) => problems.push(`error: ${event.message}`));
  window.addEventListener('unhandledrejection', (event) => problems.push(`rejected: ${event.reason}`));
  document.addEventListener('securitypolicyviolation', (event) => problems.push(`policy: ${event.violatedDirective}`));

  async function walkCell(where) {
    await soon(() => one('.criteria li', drawer) && one('.keys code', drawer), `${where}: no cell`);
    opened += 1;
    check(one('.question, .block .note', drawer)?.textContent.trim(), `${where}: no question`);
    check(one('.prose', drawer)?.textContent.trim(), `${where}: no answer`);
    check(all('.keys code', drawer).every((code) => /^[0-9a-f]{16}$/.test(code.textContent)), `${where}: no keys`);
  }

  /** Opens the cell of a question and a method; where several stand behind it, the first of their list. */
  async function openQuestion(where) {
    one('#cells .mark').click();
    const list = one('.cells', drawer);
    if (list) one('.cell-row', list).click();
    await walkCell(where);
  }

  async function walkMarks(section) {
    const marks = all('.mark', section);
    for (const mark of marks.filter((_, i) => i % Math.ceil(marks.length / 10) === 0)) {
      check((mark.textContent + (mark.title ?? '')).trim(), `${section.id}: a mark without a name`);
      mark.dispatchEvent(new MouseEvent('click', { bubbles: true }));
      check(drawer.open, `${section.id}: nothing opened`);
      const list = one('.cells', drawer);
      if (!list) {
        await walkCell(section.id);
        close();
        continue;
      }
      check(all('.cell-row', list).length > 0, `${section.id}: an empty list behind "${mark.title || mark.textContent}"`);
      key(one('.cell-row', list), 'ArrowDown');
      check(document.activeElement === all('.cell-row', list)[1], 'arrows do not move in the list');
      document.activeElement.click();
      await walkCell(section.id);
      one('.back', drawer).click();
      check(one('.cells', drawer), `${section.id}: no way back`);
      close();
    }
    return marks.length;
  }

  async function walkComparison() {
    await openQuestion('cells');
    let [differ, words] = [0, 0];
    for (const option of all('.compare-with option', drawer).slice(1, 4)) {
      const select = one('.compare-with', drawer);
      select.value = option.value;
      select.dispatchEvent(new Event('change'));
      await soon(() => one('#drawer.wide .columns') && one('.criteria.two li', drawer), 'no two cells');
      differ += all('.diff .new, .diff .gone', drawer).length;
      words += all('del, ins', drawer).length;
    }
    check(differ > 0, 'no diff of contexts');
    check(words > 0, 'no changed word is marked');
    const select = one('.compare-with', drawer);
    select.value = select.options[0].value;
    select.dispatchEvent(new Event('change'));
    await soon(() => !one('#drawer.wide') && one('.criteria li', drawer), 'the other cell stays');
    const before = one('#drawer-title').textContent + one('.where', drawer).textContent;
    key(drawer, 'j');
    await soon(() => one('.criteria li', drawer) && one('#drawer-title').textContent + one('.where', drawer).textContent !== before, 'j does not go on');
    close();
  }

  async function walkAllKinds() {
    let facts = 0;
    for (const option of all('#filter-method option').slice(1, 4)) {
      filter('method', option.value);
      await openQuestion('kinds');
      facts += all('.context mark, .prose mark', drawer).length;
      close();
    }
    filter('method', '');
    check(facts > 0, 'no fact is marked anywhere');
  }

  function filter(name, value) {
    const select = one(`#filter-${name}`);
    select.value = value;
    select.dispatchEvent(new Event('change'));
  }

  /** Each order shows other questions first. */
  function walkOrders() {
    const select = one('#cells .tools select');
    const firsts = ['worst', 'best'].map((order) => {
      select.value = order;
      select.dispatchEvent(new Event('change'));
      return one('#cells tbody th').textContent;
    });
    check(firsts[0] !== firsts[1], `the worst question is the best one: ${firsts}`);
    select.value = select.options[0].value;
    select.dispatchEvent(new Event('change'));
  }

  function walkFilters() {
    const count = () => one('#cells .note[aria-live]').textContent;
    const matrix = () => one('#cells table').textContent;
    const whole = count();
    for (const name of ['method', 'fixture', 'type', 'run']) {
      const before = matrix();
      filter(name, one(`#filter-${name} option:nth-child(2)`).value);
      check(name === 'run' ? location.hash.includes('run=') : matrix() !== before, `${name} filters nothing`);
    }
    one('.filters .quiet-button').click();
    check(count() === whole, 'filters do not clear');
    const search = one('#search');
    search.value = 'no such probe at all';
    search.dispatchEvent(new Event('input'));
    check(all('#cells tbody tr').length === 0, 'finds what is not there');
    search.value = '';
    search.dispatchEvent(new Event('input'));
  }

  /** Words of an answer, and a fact, are found, though no question has them. */
  async function walkSearch() {
    await openQuestion('search');
    const answer = all('.prose', drawer).at(-1).cloneNode(true);
    all('sup, .column-name', answer).forEach((extra) => extra.remove());
    const words = answer.textContent.trim().slice(0, 24).toLowerCase();
    const fact = one('.fact-list .spelling', drawer)?.textContent.split(' | ')[0];
    close();
    const search = one('#search');
    for (const text of [words, fact].filter(Boolean)) {
      search.value = text;
      search.dispatchEvent(new Event('input'));
      await soon(() => all('#cells tbody tr').length > 0, `nothing is found for "${text}"`);
    }
    search.value = '';
    search.dispatchEvent(new Event('input'));
  }

  /** What a link shows that was opened anew: the address is set, and everything follows it. */
  async function walkAddress() {
    const follow = (hash) => {
      location.hash = hash;
      return new Promise((resolve) => { setTimeout(resolve, 30); });
    };
    filter('method', one('#filter-method option:nth-child(2)').value);
    filter('type', one('#filter-type option:nth-child(2)').value);
    await openQuestion('address');
    const [link, title, count] = [location.hash, one('#drawer-title').textContent, one('#cells .note').textContent];
    check(link.includes('method=') && link.includes('type=') && link.includes('cell='), `the address lacks something: ${link}`);
    await follow('#scores');
    check(!drawer.open && one('#filter-method').value === '', 'an address without a cell leaves it open');
    await follow(link);
    await soon(() => one('.criteria li', drawer), 'a link opens no cell');
    check(one('#drawer-title').textContent === title && one('#cells .note').textContent === count, 'a link shows something else');
    history.back();
    await soon(() => !drawer.open, 'Back does not close the cell');
    history.forward();
    await soon(() => drawer.open && one('.criteria li', drawer), 'Forward does not open it again');
    close();
    await follow('#cell=no+such+cell&method=nobody&order=sideways');
    check(!drawer.open && one('#filter-method').value === '', 'an address that names nothing does something');
    await follow(`#${new URLSearchParams({ 'in.method': one('#filter-method option:nth-child(2)').textContent })}`);
    check(drawer.open && one('.cell-row', drawer), 'an address that names a list opens none');
    close();
    await follow('#walk');
  }

  /** On the page of a comparison, each cell stands beside its counterpart. */
  async function walkPairs() {
    if (one('#cells .tools select option').value !== 'changed') return;
    filter('show', 'changed');
    const marks = all('#cells .mark');
    check(marks.length > 0, 'nothing changed');
    check(marks.every((mark) => mark.textContent.includes('→')), 'the questions have no pairs');
    for (let i = 0; i < 3; i += 1) {
      all('#cells .mark')[i].click();
      await soon(() => one('#drawer.wide .columns') && one('.criteria.two li', drawer), 'no cells beside each other');
      check(all('.column-name', drawer).length > 1, 'columns without a name');
      close();
    }
    filter('show', '');
  }

  /** Cells that were answered with a search: what was searched for, and which facts its excerpts have. */
  async function walkSearches() {
    const searched = all('#filter-method option').filter((option) => option.textContent.endsWith(' + search'));
    let [marks, found, beside] = [0, 0, 0];
    for (const { value, textContent: name } of searched.slice(0, 1)) {
      filter('method', value);
      for (let i = 0; i < 4; i += 1) {
        const mark = all('#cells .mark')[i];
        if (!mark) break;
        mark.click();
        if (one('.cells', drawer)) one('.cell-row', drawer).click();
        await walkCell('searches');
        check(one('.searches, .block .note', drawer), `${name}: nothing is said of searches`);
        all('.searches summary', drawer).forEach((summary) => summary.click());
        check(all('.searches li', drawer).every((li) => /\d/.test(one('.sub', li).textContent)), `${name}: a search without a count`);
        check(all('.searches .context', drawer).every((text) => text.textContent.trim()), `${name}: an empty search`);
        marks += all('.searches mark', drawer).length;
        found += all('.fact-list .fate-s, .fact-list .fate-u', drawer).length;
        const select = one('.compare-with', drawer);
        if (select && !beside) {
          select.value = name.replace(' + search', '');
          select.dispatchEvent(new Event('change'));
          await soon(() => one('#drawer.wide .searches') && one('.criteria.two li', drawer), `${name}: no searches beside the closed answer`);
          beside += 1;
        }
        close();
      }
    }
    filter('method', '');
    check(!searched.length || (marks && found && beside), `searches say nothing: ${marks} marks, ${found} facts, ${beside} pairs`);
  }

  async function walkSession() {
    await openQuestion('session');
    const tab = all('.tab', drawer)[1];
    if (tab) {
      tab.click();
      await soon(() => one('.timeline', drawer), 'no timeline');
      check(all('.strip > span', drawer).length === all('.messages li:not(.point)', drawer).length, 'messages are missing');
      check(all('.held', drawer).length > 0, 'no fact is marked in the session');
    }
    check(tab || !one('[id^=sessions-]'), 'no tab for the session');
    close();
  }

  function walkKeys() {
    const table = one('#cells table');
    const first = one('.mark', table);
    first.focus();
    key(first, 'ArrowRight');
    check(document.activeElement !== first && table.contains(document.activeElement), 'arrows do not move in the table');
    const second = document.activeElement;
    key(second, 'ArrowDown');
    check(document.activeElement !== second && document.activeElement.closest('tr') !== second.closest('tr'), 'arrows do not change the row');
    check(all('.mark[tabindex="0"]', table).length === 1, 'the table has several tab stops');
  }

  function walkLayout() {
    check(document.documentElement.scrollWidth <= window.innerWidth + 1, `the page scrolls sideways: ${document.documentElement.scrollWidth}`);
    check(all('#main section').length >= 5, 'sections are missing');
    const [first, third] = [one('#cells'), one('#scores')];
    check(first.compareDocumentPosition(third) & Node.DOCUMENT_POSITION_FOLLOWING, 'the questions stand after the scores');
    const changed = first.compareDocumentPosition(one('#overview')) & Node.DOCUMENT_POSITION_PRECEDING;
    check(Boolean(changed) === Boolean(one('#changes-in-detail')), 'the questions do not stand first, or not after what changed');
    check(first.getBoundingClientRect().top + window.scrollY < 2 * window.innerHeight, 'the questions are not in the first two screens');
    for (const link of all('#bar a')) check(one(link.getAttribute('href')), `no place for ${link.textContent}`);
    check(all('img, iframe, object, [onerror]').length === 0, 'planted elements');
    check(window.planted === undefined, 'a planted script ran');
  }

  async function walk() {
    await soon(() => one('#scores table'), 'no scores');
    walkLayout();
    let marks = 0;
    for (const section of all('#main section[id]')) marks += await walkMarks(section);
    await walkComparison();
    await walkAllKinds();
    await walkPairs();
    await walkSession();
    await walkAddress();
    walkOrders();
    walkFilters();
    await walkSearch();
    walkKeys();
    await walkSearches();
    walkLayout();
    done({ marks });
  }

  if (location.hash === '#count') done({ elements: all('*').length });
  else if (location.hash === '#walk') walk().catch((error) => { problems.push(`broke off: ${error.stack}`); done({}); });
})();
