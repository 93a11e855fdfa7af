// Two runs side by side. What may be compared, and which rank begins an interval, comes from Rust as `benchmarks.rules`.

const { rules: RULES } = benchmarks;
const middle = (sorted) => (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
const ascending = (one, other) => one - other;
const percent = (value) => `${value < 0 ? "" : "+"}${value.toFixed(1)} %`;
/** Longer values, such as checksums, tell a reader nothing. */
const VALUE_CHARS_MAX = 32;

/** Reasons against a comparison, differences to know of, and why figures of tokens are left out. */
function differences(base, new_) {
  const found = { refusals: [], marks: [], counts: "" };
  for (const run of [base, new_]) if (run.compared_by.not_comparable) found.refusals.push(`${run.short_id} ${run.compared_by.not_comparable}`);
  RULES.aspects.forEach(([what, holds], place) => {
    const [one, other] = [base.compared_by.aspects[place], new_.compared_by.aspects[place]];
    if (one === other || holds === "pairs") return;
    if (one === null || other === null) {
      found.marks.push(`the ${what} of one side is unknown`);
      return;
    }
    const sentence = `different ${what}${Math.max(one.length, other.length) > VALUE_CHARS_MAX ? "" : `: ${one} and ${other}`}`;
    if (holds === "all") found.refusals.push(sentence);
    else if (holds === "tokens") found.counts = sentence;
    else found.marks.push(sentence);
  });
  const { seed, is_cache_unknown: isUnknown } = base.compared_by;
  const isSameSeed = seed !== undefined && seed === new_.compared_by.seed;
  if (isSameSeed && (isUnknown || new_.compared_by.is_cache_unknown)) found.refusals.push(RULES.same_prompts);
  return found;
}

/** The median ratio of each run of one side to each run of the other, with its 95 % interval by ranks. */
function ratioOfRuns(base, new_) {
  const logs = base.flatMap((one) => new_.map((other) => Math.log(other / one))).sort(ascending);
  const rank = RULES.ranks[`${base.length},${new_.length}`];
  return [middle(logs), logs[rank - 1], logs[logs.length - rank]].map(Math.exp);
}

/** Whether the ratio matters: `better`, `worse`, `same` or `inconclusive`. */
function verdictOf(ratio, metric) {
  const limit = Math.log(1 + RULES.threshold_pct / 100);
  const [median, low, high] = ratio.map(Math.log);
  if (low > 0 && median > limit) return isMoreBetter(metric) ? "better" : "worse";
  if (high < 0 && median < -limit) return isMoreBetter(metric) ? "worse" : "better";
  return low > -limit && high < limit ? "same" : "inconclusive";
}

/** One figure of two runs, in the form in which Rust writes it. */
function comparedFigure(metric, base, new_, counts) {
  const [one, other] = [base, new_].map((run) => run.compared_by.values[metric]);
  const found = { metric, base: one.median, new: other.median, threshold_pct: RULES.threshold_pct, verdict: "inconclusive" };
  const undecided = (reason) => ({ ...found, finding: "inconclusive", reason });
  const decided = (ratio, verdict, reason) => {
    const isSpeed = /ms$|\/s$/.test(unitOf(metric));
    const finding = (isSpeed && { better: "faster", worse: "slower" }[verdict]) || verdict;
    const [change, low, high] = ratio.map((times) => (times - 1) * 100);
    return { ...found, change_pct: change, change_ci95_pct: [low, high], verdict, finding, reason };
  };
  if (counts && RULES.counts_tokens.includes(metric)) return undecided(`not compared: ${counts}`);
  if (one.runs.length > 0 && other.runs.length > 0) {
    const all = [...one.runs, ...other.runs];
    found.base = middle(one.runs.toSorted(ascending));
    found.new = middle(other.runs.toSorted(ascending));
    if (all.every((value) => value === 0)) return { ...found, verdict: "same", finding: "same" };
    const few = Math.min(one.runs.length, other.runs.length);
    if (few < RULES.runs_min) return undecided(`${few} runs are too few (at least ${RULES.runs_min} of each)`);
    if (Math.min(...all) <= 0) return undecided("one value is 0, so there is no ratio");
    const ratio = ratioOfRuns(one.runs, other.runs);
    const verdict = verdictOf(ratio, metric);
    return decided(ratio, verdict, verdict === "inconclusive" ? "the interval includes both a difference that matters and no difference" : undefined);
  }
  if (!one.ci95 || !other.ci95) return undecided("only medians are known, and no interval of them");
  if (Math.min(one.ci95[0], other.ci95[0], one.median, other.median) <= 0) return undecided("one value is 0, so there is no ratio");
  const ratio = [other.median / one.median, other.ci95[0] / one.ci95[1], other.ci95[1] / one.ci95[0]];
  const verdict = verdictOf(ratio, metric);
  if (verdict === "better" || verdict === "worse") return decided(ratio, verdict);
  const isApart = ratio[1] > 1 || ratio[2] < 1;
  return decided(ratio, "inconclusive", `the individual runs are unknown, and ${isApart ? "the gap between the intervals is too small" : "the intervals overlap"}`);
}

/** The comparison of two runs that were measured apart, in the form in which Rust writes it. */
function comparison(base, new_) {
  const { refusals, marks, counts } = differences(base, new_);
  const shared = RULES.figures.filter((metric) => base.compared_by.values[metric] && new_.compared_by.values[metric]);
  const figures = refusals.length > 0 ? [] : shared.map((metric) => comparedFigure(metric, base, new_, counts));
  return { pairing: "unpaired", refusals, marks, figures };
}

const nameOf = (run) => joined([run.record.model.name, quantOf(run), run.record.kind, shapeOf(run), promptOf(run), usersOf(run) && countText(usersOf(run), "user"), run.hardware]);
const sideOf = (run) => [runLink(run), " ", joined([engineOf(run), dayOf(run)], ", ")];

function comparedTable(figures, heading) {
  const numbers = (title, show) => numberColumn(title, () => undefined, show);
  return plain(`Figures of ${heading}`, "compared", [
    column("figure", ({ metric }) => term(metric), { head: true }),
    numbers("base", ({ metric, base }) => figure(base, unitOf(metric))),
    numbers("new", ({ metric, new: value }) => figure(value, unitOf(metric))),
    numbers("change", ({ change_pct: change }) => change !== undefined && percent(change)),
    numbers("95 % interval", ({ change_ci95_pct: interval }) => interval && `${percent(interval[0])} to ${percent(interval[1])}`),
    numbers("matters from", ({ threshold_pct: threshold }) => `${number(threshold)} %`),
    column("finding", ({ finding }) => finding, { look: ({ verdict }) => verdict }),
  ], figures);
}

function comparedParts(base, new_, { pairing, refusals, marks, figures }) {
  const heading = nameOf(base) === nameOf(new_) ? nameOf(new_) : `${nameOf(base)} → ${nameOf(new_)}`;
  const reasons = groupBy(figures.filter(({ reason }) => reason), ({ reason }) => reason);
  return [
    h("h3", heading),
    h("p", sideOf(base), " → ", sideOf(new_)),
    h("p.banner", RULES.banner[pairing]),
    refusals.length + marks.length > 0 ? h("ul.told", refusals.map((refusal) => h("li.bad", `Refused: ${refusal}.`)), marks.map((mark) => h("li", `${mark}.`))) : null,
    figures.length > 0 ? comparedTable(figures, heading) : refusals.length === 0 ? none("They have no figure in common.") : null,
    [...reasons].sort(([one], [other]) => (one < other ? -1 : 1)).map(([reason, all]) => h("p.aside.reason", `${all.map(({ metric }) => titleOf(metric)).join(", ")}: ${reason}.`)),
  ];
}

const idsOf = (pair) => [pair.base.ids[0], pair.new.ids[0]];

/** What took turns was compared in pairs when the page was built. */
function comparisonOf(base, new_) {
  const ids = [base.record.id, new_.record.id];
  return RULES.pairs.find((pair) => pair.pairing === "paired" && isSame(idsOf(pair), ids)) ?? comparison(base, new_);
}

function chooser() {
  const form = h("form.chooser", { "aria-label": "Two runs" },
    h("label", h("span", "Base"), h("select", { name: "base" })),
    h("label", h("span", "Compared with it"), h("select", { name: "new" })),
    h("button", { type: "button", name: "turn" }, "Swap"));
  const chosen = h("section", { id: "chosen", "aria-live": "polite", hidden: true });
  const { base: baseField, new: newField, turn } = form.elements;
  const option = (run) => h("option", { value: run.record.id }, joined([nameOf(run), joined([engineOf(run), dayOf(run)], ", "), run.short_id]));
  const group = (label, runs) => (runs.length > 0 ? [h("optgroup", { label }, runs.map(option))] : []);
  const fill = () => {
    const { value } = newField;
    const base = RUN_BY_ID.get(baseField.value);
    const others = RUNS.filter((run) => run !== base).map((run) => [differences(base, run).refusals.length === 0, run]);
    const runsOf = (isSameWorkload) => others.filter(([isAlike]) => isAlike === isSameWorkload).map(([, run]) => run);
    newField.replaceChildren(...group("Same workload", runsOf(true)), ...group("Another workload", runsOf(false)));
    if (value && value !== baseField.value) newField.value = value;
  };
  const draw = () => {
    const [base, new_] = [RUN_BY_ID.get(baseField.value), RUN_BY_ID.get(newField.value)];
    chosen.replaceChildren(h("h2", "These two"), ...h("div", comparedParts(base, new_, comparisonOf(base, new_))).childNodes);
    chosen.hidden = false;
  };
  const change = () => {
    writeAddress({ base: baseField.value, new: newField.value });
    draw();
  };
  // A run alone is compared with the newest run of the same workload.
  const read = () => {
    const address = readAddress();
    const new_ = RUN_BY_ID.get(address.new);
    const base = RUN_BY_ID.get(address.base) ?? (new_ && RUNS.find((run) => run !== new_ && differences(run, new_).refusals.length === 0));
    baseField.value = (base ?? RUNS.find((run) => run !== new_)).record.id;
    fill();
    if (new_) newField.value = new_.record.id;
    if (base || new_) draw();
  };
  baseField.append(...group("Runs", RUNS));
  baseField.addEventListener("change", () => { fill(); change(); });
  newField.addEventListener("change", change);
  turn.addEventListener("click", () => {
    const { value } = baseField;
    baseField.value = newField.value;
    fill();
    newField.value = value;
    change();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", read);
  read();
  return [form, chosen];
}

function comparePage() {
  const pairs = RULES.pairs.map((pair) => {
    const [base, new_] = idsOf(pair).map((id) => RUN_BY_ID.get(id));
    return h("div.pair", { "data-base": base.record.id, "data-new": new_.record.id }, comparedParts(base, new_, pair));
  });
  return [
    titled("Compare", "Whether one run is faster than another, and how certain that is."),
    RUNS.length > 1 ? chooser() : null,
    section("The latest run of each cell, and the one before",
      pairs.length === 0 ? none("Nothing was measured twice yet with the same workload on the same machine.") : pairs,
      RULES.pairs_left_out > 0 ? none(`You can choose ${RULES.pairs_left_out} more above. Each run's page has a link to the run before.`) : null),
  ];
}
