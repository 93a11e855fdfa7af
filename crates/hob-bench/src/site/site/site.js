// Sorts, filters, folds and explains what is there already. Classic, so that it runs from disk; nothing is fetched.
(function () {
  'use strict';
  var root = document.documentElement;
  var $ = function (selector, within) { return (within || document).querySelector(selector); };
  var $$ = function (selector, within) { return Array.prototype.slice.call((within || document).querySelectorAll(selector)); };

  // Theme: the system's, until somebody chooses.
  var THEMES = ['', 'light', 'dark'];
  var NAMES = { '': 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' };
  var remembered = function () { try { return localStorage.getItem('hob-theme') || ''; } catch (refused) { return ''; } };
  var theme = THEMES.indexOf(remembered()) > 0 ? remembered() : '';
  var button = $('.theme');
  function show() {
    if (theme) { root.setAttribute('data-theme', theme); } else { root.removeAttribute('data-theme'); }
    button.textContent = NAMES[theme];
  }
  show();
  button.hidden = false;
  button.addEventListener('click', function () {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    try { localStorage.setItem('hob-theme', theme); } catch (refused) { /* it holds for this page */ }
    show();
  });

  // Words explain themselves on hover, on focus and on a tap.
  var tip = $('#tip');
  var told = null;
  function explain(word) {
    if (!word.dataset.tip) { word.dataset.tip = word.getAttribute('title'); word.removeAttribute('title'); }
    told = word;
    tip.textContent = word.dataset.tip;
    tip.hidden = false;
    word.setAttribute('aria-describedby', 'tip');
    var at = word.getBoundingClientRect();
    var left = Math.max(8, Math.min(at.left, root.clientWidth - tip.offsetWidth - 8));
    var below = at.bottom + 6;
    var top = below + tip.offsetHeight > innerHeight ? at.top - tip.offsetHeight - 6 : below;
    tip.style.transform = 'translate(' + Math.round(left) + 'px,' + Math.round(Math.max(4, top)) + 'px)';
  }
  function silence() {
    if (told) { told.removeAttribute('aria-describedby'); }
    told = null;
    tip.hidden = true;
  }
  var wordOf = function (event) { return event.target.closest && event.target.closest('[title],[data-tip]'); };
  ['mouseover', 'focusin', 'click'].forEach(function (kind) {
    document.addEventListener(kind, function (event) {
      var word = wordOf(event);
      if (word && word.tagName !== 'OPTION') { explain(word); } else if (told) { silence(); }
    });
  });
  document.addEventListener('keydown', function (event) { if (event.key === 'Escape') { silence(); } });
  document.addEventListener('scroll', silence, true);

  // Copy.
  $$('.command').forEach(function (command) {
    var copy = $('.copy', command);
    if (!navigator.clipboard) { return; }
    copy.hidden = false;
    copy.addEventListener('click', function () {
      navigator.clipboard.writeText($('code', command).textContent).then(function () { copy.textContent = 'Copied'; }, function () { copy.textContent = 'Refused'; });
    });
  });

  // Sorting: blanks last, whichever way.
  var valueOf = function (row, at) {
    var cell = row.cells[at];
    var value = cell.hasAttribute('data-s') ? cell.getAttribute('data-s') : cell.textContent.trim().toLowerCase();
    return value === '' ? null : value;
  };
  function compare(one, other, way) {
    if (one === null || other === null) { return (one === null) - (other === null); }
    var numbers = [Number(one), Number(other)];
    var order = isNaN(numbers[0]) || isNaN(numbers[1]) ? one.localeCompare(other, 'en', { numeric: true }) : numbers[0] - numbers[1];
    return way === 'desc' ? -order : order;
  }
  function sorted(rows, at, way) {
    var keyed = rows.map(function (row) { return { row: row, key: valueOf(row, at) }; });
    keyed.sort(function (one, other) { return compare(one.key, other.key, way); });
    return keyed.map(function (one) { return one.row; });
  }
  // A head becomes a button; what it means stays on it.
  function press(head, act) {
    var button = document.createElement('button');
    button.type = 'button';
    button.className = 'sort';
    var term = $('.term', head);
    var word = document.createElement('span');
    word.textContent = head.textContent;
    if (term) { button.title = term.title; word.className = 'term'; }
    button.append(word);
    head.replaceChildren(button);
    button.addEventListener('click', act);
  }
  function mark(heads, chosen, way) {
    heads.forEach(function (head) {
      if (head === chosen) { head.setAttribute('aria-sort', way === 'desc' ? 'descending' : 'ascending'); } else { head.removeAttribute('aria-sort'); }
    });
  }
  var turned = function (head, is, way) { return is ? (way === 'desc' ? 'asc' : 'desc') : head.dataset.first || 'asc'; };

  $$('table.sortable').forEach(function (table) {
    var heads = $$('thead th', table);
    var now = { head: null, way: '' };
    heads.forEach(function (head, at) {
      press(head, function () {
        now = { way: turned(head, now.head === head, now.way), head: head };
        var body = table.tBodies[0];
        body.replaceChildren.apply(body, sorted($$('tr', body), at, now.way));
        mark(heads, head, now.way);
      });
    });
  });

  // The table of models: what is shown is what the address says.
  var table = $('table.models');
  if (!table) { return; }
  var form = $('form.filters');
  var heads = $$('thead th', table);
  var columns = heads.map(function (head) { return head.dataset.key; });
  var FILTERS = ['hw', 'quant', 'backend', 'conc', 'kind', 'badge'];
  var families = Array.prototype.slice.call(table.tBodies).map(function (body) {
    var head = $('tr.family', body);
    return { name: body.dataset.family, body: body, head: head, count: $('.count', head), rows: $$('tr:not(.family)', body), shaped: [], folded: false };
  });
  $$('tbody', $('#by-shape').content).forEach(function (body) {
    var family = families.find(function (one) { return one.name === body.dataset.family; });
    family.shaped = $$('tr', body);
  });
  families.forEach(function (family) {
    var cell = family.head.cells[0];
    var button = document.createElement('button');
    button.type = 'button';
    button.className = 'fold';
    button.append.apply(button, Array.prototype.slice.call(cell.childNodes));
    cell.replaceChildren(button);
    button.addEventListener('click', function () { family.folded = !family.folded; fold(family); });
    family.button = button;
    fold(family);
  });
  function fold(family) {
    family.button.setAttribute('aria-expanded', String(!family.folded));
    family.body.classList.toggle('folded', family.folded);
  }
  var foldAll = form.elements.fold;
  foldAll.addEventListener('click', function () {
    var all = foldAll.getAttribute('aria-pressed') !== 'true';
    foldAll.setAttribute('aria-pressed', String(all));
    foldAll.textContent = all ? 'Unfold all' : 'Fold all';
    families.forEach(function (family) { family.folded = all; fold(family); });
  });

  var state = {};
  function read() {
    state = {};
    new URLSearchParams(location.hash.slice(1)).forEach(function (value, key) { state[key] = value; });
    Array.prototype.forEach.call(form.elements, function (field) {
      if (field.name && field.name !== 'fold') { field.value = state[field.name] || ''; }
    });
    draw();
  }
  function write() {
    var said = new URLSearchParams();
    Object.keys(state).sort().forEach(function (key) { if (state[key]) { said.set(key, state[key]); } });
    var hash = '#' + said.toString();
    try { history.replaceState(null, '', hash === '#' ? location.pathname + location.search : hash); } catch (refused) { location.hash = hash; }
    draw();
  }
  function fits(row, named) {
    if (state.source && row.dataset.source !== state.source) { return false; }
    for (var i = 0; i < FILTERS.length; i++) {
      var wanted = state[FILTERS[i]];
      if (wanted && valueOf(row, columns.indexOf(FILTERS[i])) !== wanted) { return false; }
    }
    return !state.q || named || row.textContent.toLowerCase().indexOf(state.q.toLowerCase()) >= 0;
  }
  function draw() {
    var at = columns.indexOf(state.sort);
    var way = state.way || (at >= 0 ? heads[at].dataset.first : 'asc');
    var shown = 0;
    families.forEach(function (family) {
      var from = state.shape ? family.shaped.filter(function (row) { return (row.dataset.shape || '').toLowerCase() === state.shape; }) : family.rows;
      var whole = state.q && family.name.toLowerCase().indexOf(state.q.toLowerCase()) >= 0;
      var rows = from.filter(function (row) { return fits(row, whole); });
      if (at >= 0) { rows = sorted(rows, at, way); }
      family.best = at >= 0 && rows.length ? valueOf(rows[0], at) : null;
      family.body.replaceChildren.apply(family.body, [family.head].concat(rows));
      family.body.hidden = rows.length === 0;
      family.count.textContent = rows.length + (rows.length === 1 ? ' row' : ' rows');
      shown += rows.length;
    });
    var order = families.slice();
    if (at >= 0) { order.sort(function (one, other) { return compare(one.best, other.best, way); }); }
    table.append.apply(table, order.map(function (family) { return family.body; }));
    mark(heads, heads[at], way);
    $('output', form).textContent = shown + (shown === 1 ? ' row' : ' rows');
    $('#nothing').hidden = shown > 0;
  }
  heads.forEach(function (head) {
    press(head, function () {
      var key = head.dataset.key;
      state.way = turned(head, state.sort === key, state.way || head.dataset.first);
      state.sort = key;
      form.elements.sort.value = key;
      write();
    });
  });
  form.hidden = false;
  form.addEventListener('input', function (event) {
    state[event.target.name] = event.target.value;
    if (event.target.name === 'sort') { state.way = ''; }
    write();
  });
  form.addEventListener('submit', function (event) { event.preventDefault(); });
  form.addEventListener('reset', function () { state = {}; setTimeout(write, 0); });
  $('#nothing button').addEventListener('click', function () { form.reset(); });
  addEventListener('hashchange', read);
  read();
  root.setAttribute('data-ready', '');
}());
