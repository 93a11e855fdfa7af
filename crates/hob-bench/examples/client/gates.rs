//! What the client has to hold before anything that it measures may be believed: one row for each.
//! Expected values come from the mock server's script; errors are relative to its own time stamps.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hob_bench::drive::{Arrivals, Drive, DriveResult, End, Endpoint, Exchange, RequestLimits};
use hob_bench::terms::Metric;
use hob_bench::timeline::{
    Flag, PCM_RATE_HZ, Protocol, RequestFigures, SoundFormat, figures, sound, timeline,
};
use hob_core::statistics::Sample;
use serde_json::{Value, json};

use crate::process::{Allowance, Mock, measured};

/// The first sentence alone, and with others behind it.
const SENTENCE: &str = "The kettle is on the hob.";
const TEXT: &str =
    "The kettle is on the hob. It will not be long now. Sit down by the fire, and wait for it.";
/// A third of a second for each second of sound, so that a text takes long enough to be seen coming.
const SPEECH: &str = "ttft_ms=50,audio_rtf=0.3";
const USERS: usize = 64;

/// What a figure has to keep.
#[derive(Clone, Copy)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// Around a truth.
    Within {
        of: f64,
        by: f64,
    },
}

impl Bound {
    fn holds(self, got: f64) -> bool {
        match self {
            Bound::AtMost(max) => got <= max,
            Bound::AtLeast(min) => got >= min,
            Bound::Within { of, by } => (got - of).abs() <= by,
        }
    }

    fn text(self) -> String {
        match self {
            Bound::AtMost(max) => format!("≤ {max}"),
            Bound::AtLeast(min) => format!("≥ {min}"),
            Bound::Within { of, by } => format!("{of} ± {by}"),
        }
    }
}

/// One figure of one repetition.
struct Row {
    what: &'static str,
    truth: &'static str,
    got: f64,
    bound: Bound,
}

fn row(what: &'static str, truth: &'static str, got: f64, bound: Bound) -> Row {
    Row { what, truth, got, bound }
}

type Gate = fn() -> Result<Vec<Row>>;
const GATES: [Gate; 9] = [pace, fast, most, stall, packed, thinking, open, starved, spoken];

/// Prints all rows, with the median of each.
pub(crate) fn run(n: usize) -> Result<()> {
    let mut out = io::stdout();
    writeln!(
        out,
        "| gate | truth | median of {n} | least–most | bound | |\n|---|---|---|---|---|---|"
    )?;
    let mut missed = 0;
    for gate in GATES {
        let repetitions: Vec<Vec<Row>> = (0..n).map(|_| gate()).collect::<Result<_>>()?;
        let rows = repetitions.first().map_or(0, Vec::len);
        for place in 0..rows {
            let got = Sample::new(repetitions.iter().map(|rows| rows[place].got));
            let Row { what, truth, bound, .. } = repetitions[0][place];
            let middle = got.median().context("a repetition")?;
            let (least, most) = (got.min().unwrap_or(middle), got.max().unwrap_or(middle));
            let verdict = if bound.holds(middle) { "held" } else { "**missed**" };
            missed += usize::from(!bound.holds(middle));
            let bound = bound.text();
            writeln!(
                out,
                "| {what} | {truth} | {middle:.3} | {least:.3}–{most:.3} | {bound} | {verdict} |"
            )?;
        }
    }
    if missed > 0 {
        bail!("{missed} missed");
    }
    Ok(())
}

fn number(said: &Value, name: &str) -> Result<f64> {
    said[name].as_f64().with_context(|| format!("no {name}"))
}

/// A: as many users as a small team has.
fn pace() -> Result<Vec<Row>> {
    let mock = Mock::start("ttft_ms=100,itl_ms=20")?;
    let said = measured(&mock, Allowance::All, &["--users", "64", "--requests", "4"])?;
    let of = |name: &str| number(&said, name);
    Ok(vec![
        row(
            "A: error of the first token, mean, ms",
            "0",
            of("ttft_err_mean_ms")?,
            Bound::AtMost(2.0),
        ),
        row("A: its 99th percentile, ms", "0", of("ttft_err_p99_ms")?, Bound::AtMost(5.0)),
        row("A: CPU of the threads that read, s", "", of("cpu_s")?, Bound::AtMost(3.0)),
        row("A: largest memory, MiB", "", of("peak_rss_mib")?, Bound::AtMost(50.0)),
    ])
}

/// F: the same at ten times the pace.
fn fast() -> Result<Vec<Row>> {
    let mock = Mock::start("ttft_ms=100,itl_ms=2,tokens=256")?;
    let arguments = ["--users", "64", "--requests", "2", "--tokens", "256", "--itl-ms", "2"];
    let said = measured(&mock, Allowance::All, &arguments)?;
    let followed = number(&said, "chunks_per_s")? / number(&said, "chunks_per_s_true")?;
    let tpot_ms = 2.0 + number(&said, "tpot_err_mean_ms")?;
    Ok(vec![
        row("F: share of 26,836 chunks/s followed", "1", followed, Bound::AtLeast(0.99)),
        row("F: time per token, ms", "2.00", tpot_ms, Bound::Within { of: 2.0, by: 0.01 }),
    ])
}

/// E: answers at once, as many as there can be.
fn most() -> Result<Vec<Row>> {
    let mock = Mock::start("ttft_ms=0,itl_ms=0,tokens=1,role_first=false")?;
    let driven = chat(&mock, 40_000, Arrivals::Closed { users: USERS })?;
    let whole = driven.exchanges.iter().filter(|exchange| exchange.end == End::Whole).count();
    let per_s = whole as f64 / driven.wall.as_secs_f64();
    Ok(vec![row("E: requests/s", "", per_s, Bound::AtLeast(20_000.0))])
}

/// S: half a second in the middle of every answer.
fn stall() -> Result<Vec<Row>> {
    let mock = Mock::start("ttft_ms=100,itl_ms=20,stall_ms=500")?;
    let said = measured(&mock, Allowance::All, &["--users", "64", "--requests", "2"])?;
    Ok(vec![
        row("S: largest gap, ms", "520", number(&said, "gap_max_ms")?, Bound::AtLeast(500.0)),
        row(
            "S: stalls of 128 requests",
            "128",
            number(&said, "stalls")?,
            Bound::Within { of: 128.0, by: 0.0 },
        ),
    ])
}

/// C: four tokens in a chunk, with and without the server's counts.
fn packed() -> Result<Vec<Row>> {
    let tpot_ms = |figures: &RequestFigures| figures.get(Metric::TpotMs).unwrap_or(0.0);
    let counted = answers("tokens_per_chunk=4")?;
    let uncounted = answers("tokens_per_chunk=4,usage=nothing")?;
    let is_flagged = |figures: &&RequestFigures| figures.flags.contains(&Flag::CountsMissing);
    let flagged = uncounted.iter().filter(is_flagged).count() as f64 / uncounted.len() as f64;
    Ok(vec![
        row(
            "C: time per token, 4 in a chunk, ms",
            "20.00",
            median(&counted, tpot_ms)?,
            Bound::Within { of: 20.0, by: 0.1 },
        ),
        row("C: share flagged without counts", "1", flagged, Bound::AtLeast(1.0)),
    ])
}

/// D: half of the answer is thinking, apart or in the text.
fn thinking() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let kinds = [
        (
            "reasoning_tokens=32",
            ["D: first token, ms", "D: first token of the answer, ms", "D: tokens thought, of 64"],
        ),
        (
            "reasoning_tokens=32,think_tags=true",
            ["D: the same in tags", "D: its answer, ms", "D: its tokens thought"],
        ),
    ];
    for (script, [first, answer, tokens]) in kinds {
        let all = answers(script)?;
        let ttfat_ms = median(&all, |figures| figures.get(Metric::TtfatMs).unwrap_or(0.0))?;
        let thought = median(&all, |figures| f64::from(figures.tokens.reasoning))?;
        let ttft_ms = median(&all, |figures| figures.get(Metric::TtftMs).unwrap_or(0.0))?;
        rows.extend([
            row(first, "100", ttft_ms, Bound::Within { of: 100.0, by: 2.0 }),
            row(answer, "740", ttfat_ms, Bound::Within { of: 740.0, by: 2.0 }),
            row(tokens, "32", thought, Bound::Within { of: 32.0, by: 0.0 }),
        ]);
    }
    Ok(rows)
}

/// An open loop: 200 requests a second for five seconds, however slow the answers are.
fn open() -> Result<Vec<Row>> {
    let mock = Mock::start("ttft_ms=100,itl_ms=20,tokens=16")?;
    let arrivals = Arrivals::Constant { per_second: 200.0, connections: 160 };
    let driven = chat(&mock, 1000, arrivals)?;
    let sent = Sample::new(driven.exchanges.iter().map(|exchange| exchange.sent.as_secs_f64()));
    let span_s = sent.max().zip(sent.min()).map(|(last, first)| last - first).context("sent")?;
    let late = driven.exchanges.iter().map(|exchange| exchange.sent - exchange.sched);
    let late = Sample::new(late.map(|late| late.as_secs_f64() * 1e3));
    let late_ms = late.percentile(0.95).context("enough of them")?.value;
    Ok(vec![
        row("open: requests/s", "200", 999.0 / span_s, Bound::AtLeast(199.0)),
        row("open: sent late, 95th percentile, ms", "0", late_ms, Bound::AtMost(5.0)),
    ])
}

/// A client that may run a tenth of the time must not believe itself.
fn starved() -> Result<Vec<Row>> {
    let mock = Mock::start("ttft_ms=100,itl_ms=20")?;
    let said = measured(&mock, Allowance::ATenth, &["--users", "16", "--requests", "2"])?;
    let reasons = said["limits"].as_array().map_or(0, Vec::len) as f64;
    Ok(vec![row("starved: reasons to refuse", "", reasons, Bound::AtLeast(1.0))])
}

/// Sound that comes when all of it is made, and sound that comes sentence by sentence.
fn spoken() -> Result<Vec<Row>> {
    let spread = |audio: &str| -> Result<(f64, f64)> {
        let mock = Mock::start(&format!("{SPEECH},audio={audio}"))?;
        let (one, all) = (speech(&mock, SENTENCE)?, speech(&mock, TEXT)?);
        Ok((all.spread(), all.ttfa_ms / one.ttfa_ms))
    };
    let (held, held_times) = spread("hold_all")?;
    let (by_sentence, by_sentence_times) = spread("per_sentence")?;
    Ok(vec![
        row("hold_all: spread (below 0.10 is fake)", "0", held, Bound::AtMost(0.10)),
        row(
            "hold_all: first sound of a text / of its first sentence",
            "",
            held_times,
            Bound::AtLeast(2.0),
        ),
        row("per_sentence: spread", "0.67", by_sentence, Bound::AtLeast(0.10)),
        row(
            "per_sentence: first sound of a text / of its first sentence",
            "1",
            by_sentence_times,
            Bound::AtMost(2.0),
        ),
    ])
}

fn speech(mock: &Mock, text: &str) -> Result<hob_bench::timeline::SoundTimeline> {
    let body = json!({ "model": "mock", "input": text, "response_format": "pcm" }).to_string();
    let driven = drive(mock, "/v1/audio/speech", &body, 1, Arrivals::Closed { users: 1 })?;
    let exchange: &Exchange = driven.exchanges.first().context("an answer")?;
    Ok(sound(exchange, SoundFormat::Pcm, PCM_RATE_HZ)?)
}

/// Figures of 16 answers to four users.
fn answers(script: &str) -> Result<Vec<RequestFigures>> {
    let mock = Mock::start(&format!("ttft_ms=100,itl_ms=20,{script}"))?;
    let driven = chat(&mock, 16, Arrivals::Closed { users: 4 })?;
    let figures = |exchange: &Exchange| figures(&timeline(exchange, Protocol::OpenAi), None);
    let all: Option<Vec<RequestFigures>> = driven.exchanges.iter().map(figures).collect();
    all.context("an answer is broken")
}

fn median(all: &[RequestFigures], of: impl Fn(&RequestFigures) -> f64) -> Result<f64> {
    Sample::new(all.iter().map(of)).median().context("answers")
}

fn chat(mock: &Mock, count: usize, arrivals: Arrivals) -> Result<DriveResult> {
    let body = r#"{"model":"mock","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Say hello."}]}"#;
    drive(mock, "/v1/chat/completions", body, count, arrivals)
}

fn drive(
    mock: &Mock,
    path: &str,
    body: &str,
    count: usize,
    arrivals: Arrivals,
) -> Result<DriveResult> {
    let endpoint = Endpoint::parse(&mock.url)?;
    let job = endpoint.post(path, "", body);
    let limits = RequestLimits { total: Duration::from_secs(60), ..RequestLimits::default() };
    // Room for an answer is little where there are many.
    let answer_bytes = if count > 10_000 { 1 << 10 } else { 1 << 15 };
    let drive = Drive { endpoint, jobs: vec![job; count], arrivals, seed: 7, limits, answer_bytes };
    Ok(drive.run(&AtomicBool::new(false))?)
}
