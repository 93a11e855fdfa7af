// Speech: time to speak three texts, in tiers; whether sound streams; how long a voice takes to answer.

/** Characters of the longest short and the longest medium text. */
const [SHORT_CHARS_MAX, MEDIUM_CHARS_MAX] = [30, 120];
/** Seconds from which on the mean of the three texts is in tier 2 and 3. */
const TIERS_S = [3, 7];
const TIER_WORDS = ["under 3 s: fast enough for a conversation", "under 7 s: a noticeable wait", "slower: for reading aloud ahead of time"];

const secondsText = (seconds) => seconds !== undefined && [number(seconds), " ", h("span.unit", "s")];

/** One model on one machine, with the newest run of each text. The mean is computed where it was not published. */
function tierOf(runs) {
  const texts = [undefined, undefined, undefined];
  let mean;
  for (const run of runs) {
    const seconds = valueOf(spreadOf(run, "wall_ms")) / 1000;
    const chars = run.record.tts?.chars;
    if (chars !== undefined) {
      const place = chars <= SHORT_CHARS_MAX ? 0 : chars <= MEDIUM_CHARS_MAX ? 1 : 2;
      texts[place] ??= seconds;
    } else if (shapeOf(run).startsWith("mean")) mean ??= seconds;
  }
  if (mean === undefined && !texts.includes(undefined)) mean = texts.reduce((sum, seconds) => sum + seconds) / texts.length;
  return { run: runs[0], texts, mean, tier: 1 + TIERS_S.filter((limit) => mean >= limit).length };
}

function tierSection(runs) {
  const spoken = runs.filter((run) => !isFailed(run) && run.is_of_tiers && valueOf(spreadOf(run, "wall_ms")) !== undefined);
  const groups = [...groupBy(spoken, (run) => JSON.stringify([run.model_slug, quantOf(run), run.machine_slug, engineOf(run)])).values()];
  const ranked = groups.map(tierOf).filter(({ mean }) => mean !== undefined).sort((one, other) => one.mean - other.mean);
  if (ranked.length === 0) return null;
  const bar = ({ run, mean }) => ({ label: [modelLink(run), " ", h("span.aside", quantOf(run))], value: mean, shown: `${number(mean)} s`, look: run.label });
  const most = longest(ranked.map(bar));
  const failed = runs.filter(isFailed);
  return section(["Three texts, and their ", term("tier", "tiers")],
    TIER_WORDS.map((words, place) => {
      const all = ranked.filter(({ tier }) => tier === place + 1);
      return all.length > 0 ? [h("h3", `Tier ${place + 1} `, h("span.aside", words)), bars(all.map(bar), most)] : null;
    }),
    sortable("Three texts", "tiers", [
      column("model", ({ run }) => modelLink(run)),
      column("quant", ({ run }) => quantOf(run)),
      column("hardware", ({ run }) => machineLink(run)),
      ...["short", "medium", "long"].map((title, place) => numberColumn(title, ({ texts }) => texts[place], ({ texts }) => secondsText(texts[place]))),
      numberColumn("mean", ({ mean }) => mean, ({ mean }) => secondsText(mean)),
      numberColumn("tier", ({ tier }) => tier, ({ tier }) => tier, { term: "tier" }),
      column("verified", ({ run }) => badge(run)),
    ], ranked),
    failed.length > 0 ? h("p", "Failed: ", failed.map((run) => [modelLink(run), ` (${run.record.invalid_reasons.join("; ")}) `])) : null);
}

const VERDICTS = {
  too_short: "too short to tell",
  fake: "no: cut up at the end",
  partial: "in part",
  interrupted: "with gaps: slower than it plays",
  streaming: "yes",
};

function firstSoundSection(runs) {
  const found = runs.filter((run) => figureRange(run, "ttfa_ms"));
  if (found.length === 0) return null;
  const tts = (run) => run.record.tts ?? {};
  const text = (run) => joined([tts(run).chars === undefined ? shapeOf(run) : `${tts(run).chars} characters`, tts(run).format, tts(run).stream === false ? "whole" : ""], ", ");
  return section("First sound",
    h("p", "A server can answer in pieces and still make all sound first. Then the first sound arrives together with the last. The ", term("spread", "spread"), " shows this."),
    sortable("First sound", "streams", [
      column("run", runLink),
      column("model", modelLink),
      column("hardware", machineLink),
      column("engine", engineOf),
      column("text", text),
      numberColumn("first sound", (run) => figureRange(run, "ttfa_ms")[0], (run) => rangeText(figureRange(run, "ttfa_ms"), "ms"), { term: "ttfa_ms" }),
      numberColumn("last", (run) => tts(run).last_ms, (run) => figure(tts(run).last_ms, "ms")),
      numberColumn("spread", (run) => tts(run).spread, (run) => tts(run).spread !== undefined && number(tts(run).spread), { term: "spread", first: "desc" }),
      column("streams", (run) => VERDICTS[tts(run).verdict], { term: "verdict" }),
      column("verified", (run) => badge(run)),
    ], found));
}

function voiceSection(runs) {
  const found = runs.map((run) => [run, run.record.voice?.ttfa_ms ?? spreadOf(run, "ttfa_ms")]).filter(([, spread]) => spread);
  if (found.length === 0) return null;
  const stage = ([name, ms]) => ({ label: word(name), value: ms, shown: figure(ms, "ms"), look: "other" });
  return section("Voice",
    h("p", "From the last word of a question to the first sound of the answer. For a conversation, half of the turns should stay under 1.5 s, and the best under 0.8 s."),
    found.map(([run, spread]) => [
      h("p", h("strong", spreadText(spread, "ms")), " median", spread.min !== undefined && spread.max !== undefined ? `, from ${figure(spread.min, "ms")} to ${figure(spread.max, "ms")}` : "",
        ": ", engineOf(run), " on ", machineLink(run), " ", badge(run), " ", runLink(run)),
      bars(Object.entries(run.record.voice?.stages_ms ?? {}).map(stage)),
    ]));
}

function transcriptionSection(runs) {
  if (runs.length === 0) return null;
  const stt = (run) => run.record.stt ?? {};
  const percent = (share) => share !== undefined && `${number(share * 100)} %`;
  const clips = (run) => joined([shapeOf(run), stt(run).synthetic_by && "synthetic", stt(run).stream && "streamed"], ", ");
  const languages = (run) => Object.entries(stt(run).languages ?? {}).map(([code, { wer }]) => `${code} ${percent(wer) || "–"}`).join(", ");
  return section("Transcription", sortable("Transcription", "transcripts", [
    column("run", runLink),
    column("model", modelLink),
    column("hardware", machineLink),
    column("engine", engineOf),
    column("clips", clips),
    numberColumn("users", (run) => run.record.workload.concurrency, (run) => run.record.workload.concurrency),
    numberColumn("word errors", (run) => stt(run).wer, (run) => percent(stt(run).wer), { term: "wer" }),
    column("by language", languages),
    numberColumn("first words", (run) => stt(run).first_partial_ms, (run) => figure(stt(run).first_partial_ms, "ms"), { term: "first_partial_ms" }),
    numberColumn("final text", (run) => stt(run).final_text_ms, (run) => figure(stt(run).final_text_ms, "ms"), { term: "final_text_ms" }),
    numberColumn("real-time factor", (run) => stt(run).rtf, (run) => stt(run).rtf !== undefined && number(stt(run).rtf), { term: "rtf" }),
    numberColumn("utterances", (run) => stt(run).utterances, (run) => stt(run).utterances),
    column("verified", (run) => badge(run)),
  ], runs));
}

function speechPage() {
  const ofKind = (...kinds) => RUNS.filter((run) => kinds.includes(run.record.kind));
  const sections = [tierSection(ofKind("tts")), firstSoundSection(ofKind("tts", "stream")), voiceSection(ofKind("voice")), transcriptionSection(ofKind("stt"))];
  return [titled("Speech", "How long it takes until you hear something."), sections, sections.some((one) => one) ? null : none("Nothing was measured yet.")];
}
