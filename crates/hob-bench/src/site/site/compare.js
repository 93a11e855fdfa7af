// Two runs that a reader chooses. What may be compared and which rank begins an interval was decided when the page was built.
(function () {
  'use strict';
  var form = document.querySelector('form.chooser');
  if (!form) { return; }
  var data = JSON.parse(document.getElementById('runs').textContent);
  var place = document.getElementById('chosen');
  var runs = {};
  data.runs.forEach(function (run) { runs[run.id] = run; });

  function element(name, text, className) {
    var made = document.createElement(name);
    if (text !== undefined) { made.textContent = text; }
    if (className) { made.className = className; }
    return made;
  }
  function number(value) {
    var size = Math.abs(value);
    var decimals = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3;
    var text = value.toFixed(decimals);
    if (text.indexOf('.') >= 0) { text = text.replace(/0+$/, '').replace(/\.$/, ''); }
    var parts = text.split('.');
    parts[0] = parts[0].replace(/\B(?=(\d{3})+$)/g, ',');
    return parts.join('.');
  }
  function written(value, figure) {
    if (value === undefined) { return ''; }
    if (figure.unit === 'ms' && Math.abs(value) >= 10000) { return number(value / 1000) + ' s'; }
    return number(value) + (figure.unit === '×' ? '×' : figure.unit ? ' ' + figure.unit : '');
  }
  var percent = function (times) { var value = (times - 1) * 100; return (value < 0 ? '' : '+') + value.toFixed(1) + ' %'; };

  // What keeps two runs apart, by the list that the terminal has too.
  function differences(base, new_) {
    var found = { refusals: [], marks: [], counts: '' };
    [base, new_].forEach(function (run) { if (run.unfit) { found.refusals.push(run.id.replace(/-/g, '').slice(-8) + ' ' + run.unfit); } });
    data.aspects.forEach(function (aspect, at) {
      var a = base.aspects[at], b = new_.aspects[at], what = aspect[0], holds = aspect[1];
      if (a === b || holds === 'pairs') { return; }
      if (a === null || b === null) { found.marks.push('the ' + what + ' of one of them is not known'); return; }
      var said = 'another ' + what + (a.length > 32 || b.length > 32 ? '' : ': ' + a + ' and ' + b);
      if (holds === 'all') { found.refusals.push(said); } else if (holds === 'tokens') { found.counts = said; } else { found.marks.push(said); }
    });
    var isSame = base.seed !== null && base.seed === new_.seed;
    if (isSame && (base.is_untold || new_.is_untold)) { found.refusals.push(data.asked_before); }
    return found;
  }

  var middle = function (sorted) { return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2; };
  var ascending = function (a, b) { return a - b; };
  // Each run of one with each of the other, by ranks.
  function ofRuns(a, b, rank) {
    var apart = [];
    a.forEach(function (one) { b.forEach(function (other) { apart.push(Math.log(other / one)); }); });
    apart.sort(ascending);
    return [middle(apart), apart[rank - 1], apart[apart.length - rank]].map(Math.exp);
  }
  function verdict(ratio, isLessBetter) {
    var limit = Math.log(1 + data.threshold_pct / 100);
    var logs = ratio.map(Math.log);
    if (logs[1] > 0 && logs[0] > limit) { return isLessBetter ? 'worse' : 'better'; }
    if (logs[2] < 0 && logs[0] < -limit) { return isLessBetter ? 'better' : 'worse'; }
    return logs[1] > -limit && logs[2] < limit ? 'same' : 'inconclusive';
  }
  function judge(figure, base, new_, counts) {
    var a = base.figures[figure.name], b = new_.figures[figure.name];
    var found = { figure: figure, base: a.median, new_: b.median, verdict: 'inconclusive', reason: '', ratio: null };
    if (counts && figure.counts_tokens) { found.reason = 'not compared: ' + counts; return found; }
    if (a.runs && b.runs) {
      var all = a.runs.concat(b.runs);
      found.base = middle(a.runs.slice().sort(ascending));
      found.new_ = middle(b.runs.slice().sort(ascending));
      if (all.every(function (value) { return value === 0; })) { found.verdict = 'same'; return found; }
      var few = Math.min(a.runs.length, b.runs.length);
      if (few < data.runs_min) { found.reason = few + ' runs are too few; ' + data.runs_min + ' of each decide'; return found; }
      if (Math.min.apply(null, all) <= 0) { found.reason = 'some of it is zero, which has no ratio'; return found; }
      found.ratio = ofRuns(a.runs, b.runs, data.ranks[a.runs.length + ',' + b.runs.length]);
      found.verdict = verdict(found.ratio, figure.is_less_better);
      if (found.verdict === 'inconclusive') { found.reason = 'the interval holds both a difference that matters and none'; }
      return found;
    }
    if (!a.ci95 || !b.ci95) { found.reason = 'only medians are known, and no interval of them'; return found; }
    if (Math.min(a.ci95[0], b.ci95[0], a.median, b.median) <= 0) { found.reason = 'some of it is zero, which has no ratio'; return found; }
    found.ratio = [b.median / a.median, b.ci95[0] / a.ci95[1], b.ci95[1] / a.ci95[0]];
    found.verdict = verdict(found.ratio, figure.is_less_better);
    if (found.verdict === 'same' || found.verdict === 'inconclusive') {
      found.verdict = 'inconclusive';
      var apart = found.ratio[1] > 1 || found.ratio[2] < 1;
      found.reason = 'no run of it is known by itself, and ' + (apart ? 'what lies between the intervals is too little' : 'the intervals overlap');
    }
    return found;
  }
  function word(found) {
    var isSpeed = /ms$|\/s$/.test(found.figure.unit);
    return isSpeed ? { better: 'faster', worse: 'slower' }[found.verdict] || found.verdict : found.verdict;
  }

  function table(all, heading) {
    var wide = element('div', undefined, 'wide');
    wide.setAttribute('role', 'region');
    wide.setAttribute('aria-label', 'Figures of ' + heading);
    wide.tabIndex = 0;
    var made = element('table', undefined, 'compared');
    var head = made.createTHead().insertRow();
    ['figure', 'base', 'new', 'change', '95 % interval', 'matters from', 'finding'].forEach(function (title, at) {
      var cell = element('th', title, at > 0 && at < 6 ? 'number' : '');
      cell.scope = 'col';
      head.append(cell);
    });
    var body = made.createTBody();
    all.forEach(function (found) {
      var row = body.insertRow();
      var name = element('th', found.figure.title);
      name.scope = 'row';
      row.append(name);
      var ratio = found.ratio;
      [written(found.base, found.figure), written(found.new_, found.figure), ratio ? percent(ratio[0]) : '',
        ratio ? percent(ratio[1]) + ' to ' + percent(ratio[2]) : '', number(data.threshold_pct) + ' %'].forEach(function (text) { row.append(element('td', text, 'number')); });
      row.append(element('td', word(found), found.verdict));
    });
    wide.append(made);
    return wide;
  }
  function side(run) {
    var link = element('a', run.id.replace(/-/g, '').slice(-8), 'run');
    link.href = 'run/' + run.id + '.html';
    return [link, ' ' + run.place];
  }
  function compared(base, new_) {
    var parts = [element('h3', new_.name)];
    if (base.name !== new_.name) { parts[0].textContent = base.name + ' → ' + new_.name; }
    var sides = element('p');
    sides.append.apply(sides, side(base).concat([' → '], side(new_)));
    parts.push(sides, element('p', data.banner, 'banner'));
    var found = differences(base, new_);
    if (found.refusals.length + found.marks.length) {
      var list = element('ul', undefined, 'told');
      found.refusals.forEach(function (reason) { list.append(element('li', 'Refused: ' + reason + '.', 'bad')); });
      found.marks.forEach(function (mark) { list.append(element('li', mark + '.')); });
      parts.push(list);
    }
    var figures = data.figures.filter(function (figure) { return base.figures[figure.name] && new_.figures[figure.name]; });
    if (!found.refusals.length && !figures.length) { parts.push(element('p', 'They have no figure in common.', 'none')); }
    if (!found.refusals.length && figures.length) {
      var all = figures.map(function (figure) { return judge(figure, base, new_, found.counts); });
      parts.push(table(all, parts[0].textContent));
      all.filter(function (one) { return one.reason; }).forEach(function (one) {
        parts.push(element('p', one.figure.title + ': ' + one.reason + '.', 'beside reason'));
      });
    }
    return parts;
  }
  // What took turns was compared in pairs when the page was built.
  function paired(base, new_) {
    var said = '.pair[data-pairing="paired"][data-base="' + base.id + '"][data-new="' + new_.id + '"]';
    var made = document.querySelector(said);
    return made ? Array.prototype.map.call(made.children, function (child) { return child.cloneNode(true); }) : null;
  }

  var fields = form.elements;
  function options(select, group, among) {
    var made = element('optgroup');
    made.label = group;
    among.forEach(function (run) {
      var option = element('option', run.name + (run.place ? ' · ' + run.place : '') + ' · ' + run.id.slice(-8));
      option.value = run.id;
      made.append(option);
    });
    if (among.length) { select.append(made); }
  }
  function fill() {
    var base = runs[fields.base.value], chosen = fields.new.value;
    var same = [], other = [];
    data.runs.forEach(function (run) { if (run !== base) { (differences(base, run).refusals.length ? other : same).push(run); } });
    fields.new.replaceChildren();
    options(fields.new, 'Asked the same', same);
    options(fields.new, 'Asked something else', other);
    if (chosen && chosen !== base.id) { fields.new.value = chosen; }
  }
  function draw() {
    var base = runs[fields.base.value], new_ = runs[fields.new.value];
    var parts = paired(base, new_) || compared(base, new_);
    place.replaceChildren.apply(place, [element('h2', 'These two')].concat(parts));
    place.hidden = false;
  }
  function write() {
    var hash = '#base=' + fields.base.value + '&new=' + fields.new.value;
    try { history.replaceState(null, '', hash); } catch (refused) { location.hash = hash; }
    draw();
  }
  // One run alone is held against the first that was asked the same.
  function read() {
    var said = new URLSearchParams(location.hash.slice(1));
    var new_ = runs[said.get('new')], base = runs[said.get('base')];
    if (!base && new_) { base = data.runs.filter(function (run) { return run !== new_ && !differences(run, new_).refusals.length; })[0]; }
    fields.base.value = (base || data.runs.filter(function (run) { return run !== new_; })[0]).id;
    fill();
    if (new_) { fields.new.value = new_.id; }
    if (base || new_) { draw(); }
  }
  options(fields.base, 'Runs', data.runs);
  fields.base.addEventListener('change', function () { fill(); write(); });
  fields.new.addEventListener('change', write);
  fields.turn.addEventListener('click', function () {
    var base = fields.base.value;
    fields.base.value = fields.new.value;
    fill();
    fields.new.value = base;
    write();
  });
  form.addEventListener('submit', function (event) { event.preventDefault(); });
  addEventListener('hashchange', read);
  form.hidden = false;
  read();
  document.documentElement.setAttribute('data-ready', '');
}());
