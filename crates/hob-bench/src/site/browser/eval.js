// Eval: quality against the time that a reader waits, for all models that answered the same items.

const percentText = (share) => share !== undefined && `${number(share * 100)} %`;
const percentRange = (share, interval) => share !== undefined && [percentText(share), interval ? [" ", h("span.aside", `${number(interval[0] * 100)}–${number(interval[1] * 100)}`)] : null];
const withInterval = (value, interval) => value !== undefined && [figure(value, ""), interval ? [" ", h("span.aside", `${number(interval[0])}–${number(interval[1])}`)] : null];
const secondsOf = (ms) => ms !== undefined && figure(ms, "ms");

/** What tells two evaluations apart; the report of the set has different names for all. */
const armOf = (run) => benchmarks.evals.find((one) => one.set_sha256 === run.record.eval.set_sha256)?.names[run.record.id] ?? armPartsOf(run);
const armPartsOf = ({ record: { model, workload, engine, eval: { budget_tokens: budget, is_completion, choices_by_logprob, enforced_schemas } } }) => joined([model.name, model.quant,
  workload.reasoning === "enabled" ? "thinking" : workload.reasoning === "disabled" ? "no thinking" : word(workload.reasoning),
  budget === undefined ? "" : `${number(budget)} tokens`, workload.temperature ? `temperature ${workload.temperature}` : "",
  is_completion && "completion", choices_by_logprob && "log-probability", enforced_schemas && "schemas enforced", engine?.name], ", ");
const overallOf = (run) => run.record.eval.overall;

/** The runs that have a place in the chart: a score, and the time of a whole answer. */
const placed = (runs) => runs.filter((run) => overallOf(run).score !== undefined && overallOf(run).total_p50_ms > 0);

/** The placed runs that no other run beats in both time and score. */
function frontierOf(runs) {
  const points = placed(runs);
  const isBetter = (one, other) => one.total_p50_ms <= other.total_p50_ms && one.score >= other.score && (one.total_p50_ms < other.total_p50_ms || one.score > other.score);
  return points.filter((run) => !points.some((other) => isBetter(overallOf(other), overallOf(run))));
}

/** Score from 0 to 1 upwards, and the seconds of a whole answer to the right on a logarithmic scale. */
function frontierChart(runs) {
  const points = placed(runs);
  if (points.length === 0) return null;
  const place = (run) => Math.log10(overallOf(run).total_p50_ms / 1000);
  const first = Math.floor(Math.min(...points.map(place)));
  const last = Math.max(first + 1, Math.ceil(Math.max(...points.map(place))));
  const x = (value) => at(LEFT + ((value - first) / (last - first)) * (WIDTH - LEFT - RIGHT));
  const y = (score) => at(HEIGHT - BOTTOM - score * (HEIGHT - TOP - BOTTOM));
  const best = frontierOf(points).sort((one, other) => place(one) - place(other));
  const decades = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  const dot = (run, index) => {
    const { score, score_ci95: interval } = overallOf(run);
    return h(`g.series.s${index % SERIES_MAX}`,
      interval ? h("path.whisker", { d: `M${x(place(run))} ${y(interval[0])}V${y(interval[1])}` }) : null,
      h("circle", { cx: x(place(run)), cy: y(score), r: best.includes(run) ? 5 : 3.5 }));
  };
  return h("figure.chart",
    h("figcaption", "Score against the seconds of a whole answer; the line joins those that no other beats in both"),
    h("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Score against seconds" },
      [0, 0.25, 0.5, 0.75, 1].map((score) => [
        h("path.rung", { d: `M${LEFT} ${y(score)}H${WIDTH - RIGHT}` }),
        h("text", { x: LEFT - 8, y: Number(y(score)) + 4, "text-anchor": "end" }, number(score))]),
      decades.map((decade) => h("text", { x: x(decade), y: HEIGHT - 12, "text-anchor": "middle" }, `${number(10 ** decade)} s`)),
      best.length > 1 ? h("path.frontier", { d: best.map((run, index) => `${index === 0 ? "M" : "L"}${x(place(run))} ${y(overallOf(run).score)}`).join("") }) : null,
      points.map(dot)),
    h("ul.legend", points.map((run, index) => h(`li.s${index % SERIES_MAX}`, armOf(run)))));
}

const withoutAnswer = ({ verdicts, n }) => (n > 0 ? ((verdicts.budget ?? 0) + (verdicts.no_answer ?? 0)) / n : undefined);

/** Joules of the whole machine, where it reports them. */
const energyColumn = () => numberColumn("J/correct", (run) => overallOf(run).energy_j_per_correct,
  (run) => withInterval(overallOf(run).energy_j_per_correct, overallOf(run).energy_j_per_correct_ci95));

function scoreTable(runs) {
  const best = frontierOf(runs);
  return sortable("Quality and time", "evals", [
    column("model", (run) => [modelLink(run), best.includes(run) ? h("span.aside", " on the frontier") : null, h("div.aside", armOf(run).split(", ").slice(1).join(", ")), h("div.aside", machineLink(run))]),
    numberColumn("items", (run) => overallOf(run).n, (run) => number(overallOf(run).n)),
    numberColumn("correct", (run) => overallOf(run).accuracy, (run) => percentRange(overallOf(run).accuracy, overallOf(run).accuracy_ci95), { first: "desc" }),
    numberColumn("score", (run) => overallOf(run).score, (run) => percentRange(overallOf(run).score, overallOf(run).score_ci95), { first: "desc" }),
    numberColumn("no answer", (run) => withoutAnswer(overallOf(run)), (run) => percentRange(withoutAnswer(overallOf(run)), overallOf(run).no_answer_ci95)),
    numberColumn("cut", (run) => run.record.eval.cut_answers, (run) => number(run.record.eval.cut_answers ?? 0)),
    numberColumn("first visible", (run) => overallOf(run).ttfv_p50_ms, (run) => secondsOf(overallOf(run).ttfv_p50_ms)),
    numberColumn("whole", (run) => overallOf(run).total_p50_ms, (run) => secondsOf(overallOf(run).total_p50_ms)),
    numberColumn("thought", (run) => overallOf(run).thought_tokens, (run) => figure(overallOf(run).thought_tokens, "")),
    numberColumn("said", (run) => overallOf(run).said_tokens, (run) => figure(overallOf(run).said_tokens, "")),
    numberColumn("tok/s", (run) => valueOf(spreadOf(run, "decode_tok_s")), (run) => figure(valueOf(spreadOf(run, "decode_tok_s")), ""), { term: "decode_tok_s", first: "desc" }),
    numberColumn("score/min", (run) => overallOf(run).score_per_minute, (run) => withInterval(overallOf(run).score_per_minute, overallOf(run).score_per_minute_ci95), { first: "desc" }),
    numberColumn("s/correct", (run) => overallOf(run).s_per_correct, (run) => withInterval(overallOf(run).s_per_correct, overallOf(run).s_per_correct_ci95)),
    numberColumn("tok/correct", (run) => overallOf(run).tokens_per_correct, (run) => withInterval(overallOf(run).tokens_per_correct, overallOf(run).tokens_per_correct_ci95)),
    ...(runs.some((run) => overallOf(run).energy_j_per_correct !== undefined) ? [energyColumn()] : []),
    numberColumn("not readable", (run) => overallOf(run).verdicts.malformed ?? 0, (run) => number(overallOf(run).verdicts.malformed ?? 0)),
    numberColumn("leaked", (run) => run.record.eval.leaked_thoughts, (run) => number(run.record.eval.leaked_thoughts ?? 0)),
    numberColumn("by hand", (run) => run.record.eval.corrected_by_hand, (run) => number(run.record.eval.corrected_by_hand ?? 0)),
    column("run", (run) => [runLink(run), " ", badge(run)]),
  ], runs);
}

/** One row for each task, one column for each run, up to `SERIES_MAX`. */
function taskTable(runs) {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.record.eval.sizes)))].sort();
  const scoreOf = (run, name) => run.record.eval.sizes[name];
  return sortable("Tasks", "tasks", [
    column("task", (name) => name, { head: true }),
    ...runs.slice(0, SERIES_MAX).map((run) => numberColumn(armOf(run), (name) => scoreOf(run, name)?.accuracy,
      (name) => percentRange(scoreOf(run, name)?.accuracy, scoreOf(run, name)?.accuracy_ci95), { first: "desc" })),
  ], names);
}

/** The best arm for each use. */
const usesTable = (uses) => plain("The best for each use", "arms", [
  column("use", ({ scenario }) => word(scenario), { head: true }),
  column("model", ({ arm }) => arm ?? "none"),
  column("why", ({ why }) => why),
], uses);

function evalSection(set, runs) {
  const [{ record: { eval: figures } }] = runs;
  const report = benchmarks.evals.find((one) => one.set_sha256 === set);
  return section(figures.tasks.join(", "),
    h("p.sub", `${countText(figures.overall.n, "item")}, the same for each run. Answers were graded by programs.`),
    h("div.charts", frontierChart(runs)),
    scoreTable(runs),
    report ? h("ul.uses", report.sentences.map((sentence) => h("li", sentence))) : null,
    report?.uses.length > 0 ? usesTable(report.uses) : null,
    h("h3", "By task, correct answers"),
    taskTable(runs));
}

function evalPage() {
  const runs = RUNS.filter((run) => run.record.eval && !isFailed(run));
  const sets = groupBy(runs, (run) => run.record.eval.set_sha256);
  return [
    titled("Eval", "How good the answers are, and how long you wait for them."),
    sets.size === 0 ? none("Nothing was evaluated yet. ", h("code", "hob eval"), " does that.") : [...sets].map(([set, all]) => evalSection(set, all)),
  ];
}

const VERDICT_WORDS = {
  correct: "correct", wrong: "wrong", no_answer: "no answer", budget: "no visible answer: the budget was spent", refused: "refused", malformed: "not readable", open: "open question, in no score",
};

/** Each item with its prompt, answer, verdict and time. */
const itemsOf = (run) => withDetails(run, (place, { items, items_left_out: leftOut }) => {
  const text = (title, value) => (value ? [h("h4", title), h("pre", { tabindex: 0 }, value)] : null);
  const item = (one) => h("details.item", h("summary",
    h(`span.verdict.${one.verdict}`, VERDICT_WORDS[one.verdict]), " ", one.id, " ", h("span.aside", joined([figure(one.total_ms, "ms"),
      one.ttfv_ms === undefined ? "" : `first visible after ${figure(one.ttfv_ms, "ms")}`, figure(one.tok_s, "tok/s"), one.thought_tokens > 0 ? `${number(one.thought_tokens)} tokens thought` : "",
      one.is_cut ? "cut off at the limit of tokens" : "", one.has_leaked_thought ? "with a thought in the visible text" : "", one.graded_by === "hand" ? "graded by hand" : ""]))),
  h("p", one.why), text("Prompt", one.prompt), text("Answer", one.answer), text("Calls", one.tool_calls?.join("\n")), text("Thought", one.thought));
  place.append(...items.map(item), ...(leftOut > 0 ? [none(`${leftOut} more are in the file.`)] : []));
});

function itemsSection(run) {
  const { record: { eval: figures } } = run;
  if (!figures) return null;
  return run.has_items ? section("Items", itemsOf(run)) : section("Items", none("The file of the answers is not here."));
}
