// What a reader tells runs apart by, and their figures.

const RUNS = benchmarks.runs;
const RUN_BY_ID = new Map(RUNS.map((run) => [run.record.id, run]));
const SPEECH_KINDS = ["tts", "stream", "voice", "stt"];

const isSpeech = (run) => SPEECH_KINDS.includes(run.record.kind);
const isFailed = (run) => run.label === "failed";
const dayOf = (run) => run.record.time.started?.slice(0, 10);
const usersOf = (run) => run.record.workload.concurrency;
const shapeOf = (run) => run.record.workload.shape ?? "";
const quantOf = (run) => run.record.model.quant ?? "";
const backendOf = (run) => run.record.engine.backend ?? run.record.engine.name ?? "";
const engineOf = (run) => joined([run.record.engine.name, run.record.engine.version], " ");
/** What a plan varies apart from model and server: the name of the label, and its title. */
const SETUP_LABELS = [["creator", "Creator"], ["power_cap_w", "Power limit, W"], ["driver", "Driver"]];
const labelOfRun = (run, name) => run.record.labels?.[name] ?? "";
const setupOf = (run) => SETUP_LABELS.map(([name]) => labelOfRun(run, name));
const manyUsers = (run) => (usersOf(run) > 1 ? `${usersOf(run)} users` : "");

/** The same shape is fast where the server knows the prompt already. */
function promptOf(run) {
  const { cache } = run.record.workload;
  if (cache === "cached") return "known prompt";
  return cache === "cold" && run.record.kind === "ctx_sweep" ? "new prompt" : "";
}

const spreadOf = (run, metric) => run.record.metrics[metric];
const valueOf = (spread) => spread?.p50 ?? spread?.mean;

/** From the least to the greatest: one value is both. */
function rangeOf(spread) {
  const value = valueOf(spread);
  if (value !== undefined) return [value, value];
  const low = spread?.min ?? spread?.max;
  return low === undefined ? null : [low, spread.max ?? spread.min];
}
const figureRange = (run, metric) => rangeOf(spreadOf(run, metric));

/** As measured, or else as published. */
const speedOf = (run) => figureRange(run, "decode_tok_s") ?? figureRange(run, "gen_tok_s");

function overAll(ranges) {
  const known = ranges.filter((range) => range);
  return known.length === 0 ? null : [Math.min(...known.map(([low]) => low)), Math.max(...known.map(([, high]) => high))];
}

/** What runs that differ only in their shape have in common. */
const groupKey = (run) => JSON.stringify([run.record.model.name, run.record.kind, quantOf(run), run.hardware, backendOf(run),
  run.record.engine.name, run.record.engine.version, usersOf(run), promptOf(run), run.origin, setupOf(run)]);

/** The run that counts: one that worked and has a speed, before one that worked, before any other. */
const worth = (run) => (isFailed(run) ? 0 : speedOf(run) ? 2 : 1);

/** Groups of runs that differ only in their shape. Of each shape the newest run that counts is kept: runs come newest first. */
function overShapes(runs) {
  const groups = new Map();
  for (const run of runs) {
    const key = groupKey(run);
    if (!groups.has(key)) groups.set(key, new Map());
    const shapes = groups.get(key);
    const known = shapes.get(shapeOf(run));
    if (!known || worth(run) > worth(known)) shapes.set(shapeOf(run), run);
  }
  return [...groups.values()].map((shapes) => [...shapes.values()].sort((one, other) => (shapeOf(one) < shapeOf(other) ? -1 : 1)));
}

function groupBy(items, key) {
  const groups = new Map();
  for (const item of items) {
    const name = key(item);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(item);
  }
  return groups;
}

/** What tells two runs of one model apart. */
const partsOf = (run) => [shapeOf(run), promptOf(run), quantOf(run), run.hardware, engineOf(run), manyUsers(run), ...setupOf(run)];
const placeOf = (run) => joined(partsOf(run));

/** Of the parts of each list only those that are not the same in all lists, or all parts where nothing differs. */
function differing(own, all) {
  const shown = joined(own.filter((part, at) => all.some((other) => other[at] !== part)));
  return shown || joined(own);
}
const differingOf = (run, among) => differing(partsOf(run), among.map(partsOf));

/** The value of an aspect of comparison, by its name. */
const aspectOf = (run, name) => run.compared_by.aspects[benchmarks.rules.aspects.findIndex(([what]) => what === name)];

/** A word of the file format as a reader's word. */
const word = (value) => value?.replaceAll("_", " ");
