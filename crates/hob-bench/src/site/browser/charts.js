// Charts: bars, curves and dots, with 95 % intervals as whiskers. They show nothing that a table does not say.

const at = (value) => value.toFixed(1);

/** The end of the longest bar, its interval included. */
const longest = (all) => Math.max(0, ...all.map(({ value, interval }) => Math.max(value, interval?.[1] ?? 0)));

/** Bars: `{ label, value, shown, interval, look }`. Several charts can share the scale `most`. */
function bars(all, most = longest(all)) {
  if (most <= 0) return null;
  const x = (value) => at((value / most) * 1000);
  return h("ul.bars", all.map(({ label, value, shown, interval, look }) => h(`li.${look}`,
    h("span.label", label),
    h("svg", { viewBox: "0 0 1000 16", preserveAspectRatio: "none", "aria-hidden": "true" },
      h("rect", { x: 0, y: 2, width: x(value), height: 12 }),
      interval ? h("path.whisker", { d: `M${x(interval[0])} 8H${x(interval[1])}M${x(interval[0])} 4V12M${x(interval[1])} 4V12` }) : null),
    h("span.value", shown))));
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [480, 260, 52, 24, 12, 34];
/** Readers cannot tell more lines apart. */
const SERIES_MAX = 6;

/** One, two or five times a power of ten. */
function niceStep(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return ([1, 2, 5].find((times) => times * power >= step) ?? 10) * power;
}

const tokensText = (tokens) => (tokens >= 1024 ? `${number(Math.round(tokens / 1024))}k` : number(tokens));
const dayText = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);

/** Tokens double to the right, as contexts do, and every point is named. */
const ACROSS_TOKENS = { place: (x) => Math.log2(Math.max(x, 1)), marks: (xs) => xs.map((x) => [x, "middle", tokensText(x)]) };
/** Days lie evenly, and only both ends are named. */
const ACROSS_DAYS = { place: (x) => x, marks: (xs) => [[xs[0], "start", dayText(xs[0])], [xs.at(-1), "end", dayText(xs.at(-1))]] };

/** Lines of points `{ x, y, interval }`, from zero upwards. Nothing is drawn of fewer than two places. */
function curves(title, unit, all, across) {
  const series = all.slice(0, SERIES_MAX);
  const points = series.flatMap((one) => one.points);
  const xs = [...new Set(points.map((point) => point.x))].sort((one, other) => one - other);
  const [first, last] = [across.place(xs[0]), across.place(xs.at(-1))];
  const most = Math.max(0, ...points.map((point) => point.interval?.[1] ?? point.y));
  if (!(first < last) || most <= 0) return null;
  const step = niceStep(most / 4);
  const rungs = Math.ceil(most / step);
  const x = (value) => at(LEFT + ((across.place(value) - first) / (last - first)) * (WIDTH - LEFT - RIGHT));
  const y = (value) => at(HEIGHT - BOTTOM - (value / (rungs * step)) * (HEIGHT - TOP - BOTTOM));
  const rung = (value) => [
    h("path.rung", { d: `M${LEFT} ${y(value)}H${WIDTH - RIGHT}` }),
    h("text", { x: LEFT - 8, y: Number(y(value)) + 4, "text-anchor": "end" }, number(value)),
  ];
  const line = ({ points: own }, index) => h(`g.series.s${index}`,
    h("path.line", { d: own.map((point, place) => `${place === 0 ? "M" : "L"}${x(point.x)} ${y(point.y)}`).join("") }),
    own.map((point) => [
      point.interval ? h("path.whisker", { d: `M${x(point.x)} ${y(point.interval[0])}V${y(point.interval[1])}` }) : null,
      h("circle", { cx: x(point.x), cy: y(point.y), r: 3.5 }),
    ]));
  return h("figure.chart",
    h("figcaption", joined([title, unit], ", ")),
    h("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title },
      Array.from({ length: rungs + 1 }, (_, index) => rung(index * step)),
      across.marks(xs).map(([mark, anchor, name]) => h("text", { x: x(mark), y: HEIGHT - 12, "text-anchor": anchor }, name)),
      series.map(line)),
    h("ul.legend", series.map(({ name }, index) => h(`li.s${index}`, name))),
    all.length > series.length ? none(`${all.length - series.length} more are in the table.`) : null);
}

const DOTS_HEIGHT = 96;

/** Every value as a dot in the order in which it came, the median as a line, its interval as a band. */
function dots(title, values, median, interval) {
  if (values.length === 0) return null;
  const [low, high] = overAll(values.map((value) => [value, value]));
  const margin = Math.max((high - low) * 0.08, Math.abs(high) * 0.01, 1e-6);
  const [bottom, top] = [Math.max(low - margin, Math.min(0, low)), high + margin];
  const y = (value) => 8 + ((top - value) / (top - bottom)) * (DOTS_HEIGHT - 16);
  const step = (WIDTH - LEFT - RIGHT) / values.length;
  const label = (value) => h("text", { x: LEFT - 8, y: at(y(value) + 4), "text-anchor": "end" }, number(value));
  return h("figure.chart.dots",
    h("figcaption", title),
    h("svg", { viewBox: `0 0 ${WIDTH} ${DOTS_HEIGHT}`, role: "img", "aria-label": `${title}: ${values.length} values from ${number(low)} to ${number(high)}` },
      interval ? h("rect.band", { x: LEFT, y: at(y(interval[1])), width: WIDTH - LEFT - RIGHT, height: at(Math.max(y(interval[0]) - y(interval[1]), 1)) }) : null,
      median === undefined ? null : h("path.median", { d: `M${LEFT} ${at(y(median))}H${WIDTH - RIGHT}` }),
      label(high),
      y(low) - y(high) > 16 ? label(low) : null,
      values.map((value, index) => h("circle", { cx: at(LEFT + (index + 0.5) * step), cy: at(y(value)), r: 2.5 }))));
}

/** Bars of speeds. */
const BARS_MAX = 24;
/** Prefill is not among them: next to decode speed it would be read as a speed of writing. */
const SPEEDS = ["decode_tok_s", "gen_tok_s", "throughput_tok_s"];

/** The speed of each run, the fastest first. `label(run)` says what tells the bars apart. */
function speedBars(runs, label) {
  const all = runs.filter((run) => !isFailed(run)).flatMap((run) => {
    const metric = SPEEDS.find((name) => valueOf(spreadOf(run, name)) !== undefined);
    if (!metric) return [];
    const spread = spreadOf(run, metric);
    return [{ label: label(run), value: valueOf(spread), shown: figure(valueOf(spread), unitOf(metric)), interval: spread.ci95, look: run.label }];
  });
  all.sort((one, other) => other.value - one.value);
  return [bars(all.slice(0, BARS_MAX)), all.length > BARS_MAX ? none(`${all.length - BARS_MAX} slower runs are in the table.`) : null];
}
