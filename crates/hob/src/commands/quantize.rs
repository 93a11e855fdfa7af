//! `hob quantize`: a model in fewer bits, and what that cost. Native code runs in workers of its own.
//! The result gets its name when it is whole, so nothing half-made is ever seen as a model.

mod expected;
mod fit_after;
mod layers;
mod listened;
mod listening;
mod source;
mod speech;
mod tables;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use hob_bench::eval::TaskName;
use hob_engines::quantize::QuantType;
use hob_eval::distance::DistanceReport;
use hob_models::quantized_speech::SpeechForm;
use hob_models::{Gguf, Sha256};
use indicatif::ProgressBar;
use serde::Serialize;
use tempfile::NamedTempFile;

use expected::{ExpectedModel, check_room, files_bytes, prediction};
use fit_after::{FitAfter, speed};
use source::{file_of, hash_of, parts_of};

use super::bench::{ShortEval, short_eval, task};
use crate::app::{App, run_until_stopped};
use crate::bounded_file::read_bytes;
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::machine_args::MachineArgs;
use crate::model_store::ModelStore;
use crate::printer::{Printer, count_text, table};
use crate::settings::Overrides;
use crate::sink::draft_of;
use crate::wire_up::{QUANTIZE_TEXT_BYTES_MAX, QuantizeStep, run_quantize_worker};

/// Texts of this project: one shows which weights matter, and another one measures the distance.
const IMPORTANCE_TEXT: &str = concat!(
    include_str!("../../../../docs/ARCHITECTURE.md"),
    include_str!("../../../../docs/guides/teams.md"),
);
const DISTANCE_TEXT: &str = include_str!("../../../../CHANGELOG.md");
/// Pieces of 512 tokens of each text.
const IMPORTANCE_PIECES: usize = 48;
const DISTANCE_PIECES: usize = 32;
const CONTEXT_TOKENS: usize = 512;
const MB: f64 = 1e6;
pub(crate) const BAR: &str = "{msg} {bar:30} {pos}/{len} {eta}";
/// Eight tasks of two items show a model that has become much worse; `hob eval` shows smaller differences.
const EVAL_ITEMS: u32 = 2;
const EVAL_ITEMS_MAX: i64 = 1_000;
/// Types with so few bits change what a model says.
const LOW_BITS: [&str; 3] = ["Q3", "Q2", "IQ1"];
/// A model that agrees with its source on less than this share of tokens says nothing that makes sense.
const SAME_TOP_MIN: f64 = 0.02;
/// Pieces that are scored to see whether the result is a model at all.
const CHECK_PIECES: usize = 1;

/// Quantize a chat model or the speech model, and measure how much quality that costs
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub(crate) struct QuantizeArgs {
    #[command(subcommand)]
    verb: Option<QuantizeVerb>,
    /// A stored model (also kokoro), a GGUF file (the first of a split model), or its folder
    #[arg(required = true)]
    model: Option<String>,
    /// The type of the weights, such as Q4_K_M; 4-bit or float for speech; `hob quantize types` lists all
    #[arg(long, value_name = "TYPE", required = true)]
    to: Option<String>,
    /// The file to write [default: MODEL-TYPE.gguf in the working folder]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// A text like those that the model will read: it shows which weights matter
    #[arg(long, value_name = "FILE", conflicts_with = "no_importance")]
    importance: Option<PathBuf>,
    /// Treat all weights alike
    #[arg(long)]
    no_importance: bool,
    /// Also take weights that are quantized already; the losses add up
    #[arg(long)]
    force: bool,
    /// Speech: the name of the new model [default: MODEL-4bit and so on]
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    /// Speech: the voice that speaks the sentences [default: speech.default_voice]
    #[arg(long)]
    voice: Option<String>,
    /// Speech: the sentences to compare, one per line [default: twelve of hob's own]
    #[arg(long, value_name = "FILE")]
    sentences: Option<PathBuf>,
    /// Speech: the page for listening [default: NAME-listen.html in the working folder]
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Show what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not measure distance, score and speed afterwards
    #[arg(long, conflicts_with_all = ["text", "pieces", "eval_items", "eval_tasks"])]
    no_report: bool,
    /// Items of each task that both chat models answer afterwards; 0 asks none [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=EVAL_ITEMS_MAX))]
    eval_items: Option<u32>,
    /// Tasks that the items belong to [default: those of `hob eval`]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = task)]
    eval_tasks: Vec<TaskName>,
    #[command(flatten)]
    text: DistanceTextArgs,
    /// Print the report as JSON, or with --dry-run what would be written
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

#[derive(Debug, Subcommand)]
enum QuantizeVerb {
    /// List the types of weights
    Types,
    Distance(DistanceArgs),
    Listened(listened::ListenedArgs),
}

/// Measure how far a model is from another one with the same vocabulary, on a text
#[derive(Debug, Args)]
struct DistanceArgs {
    /// The reference: a stored model, or a GGUF file
    reference: String,
    /// The model that is compared
    model: String,
    #[command(flatten)]
    text: DistanceTextArgs,
    /// Also measure each type of layer alone: the reference with only these weights of the model
    #[arg(long)]
    by_layer_type: bool,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug, Args)]
struct DistanceTextArgs {
    /// The text on which models are compared [default: hob's changelog]
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Maximum number of pieces of 512 tokens of that text; the second half of each is scored [default: 32]
    #[arg(long, value_name = "N")]
    pieces: Option<usize>,
}

const AFTER_HELP: &str = "\
The source should have 16 or 32 bits, or be Q8_0. Weights that matter more for a text keep more
precision: the importance matrix is kept next to the result. Afterwards hob measures perplexity,
divergence from the source, how often both expect the same token, the speed of both, and what they
score on a few tasks.

kokoro is stored under a name of its own. Afterwards hob compares what both say, counts the words
that its transcription model hears wrong, and writes a page on which you listen without knowing
which is which.

Examples:
  hob quantize model-F16.gguf --to Q4_K_M
  hob quantize qwen3:8b-q8_0 --to Q5_K_M --importance letters.txt -o small.gguf
  hob quantize model-F16.gguf --to IQ3_M --dry-run
  hob quantize kokoro --to 4-bit
  hob quantize kokoro --to float
  hob quantize listened listening-abx-kokoro-4bit.json
  hob quantize distance model-F16.gguf model-Q4_K_M.gguf";

/// The report of a quantized chat model, also as JSON.
#[derive(Debug, Serialize)]
struct QuantizeReport {
    source: String,
    target: String,
    from: String,
    to: &'static str,
    source_bytes: u64,
    target_bytes: u64,
    sha256: String,
    importance: bool,
    distance: Option<DistanceReport>,
    /// The same few items, answered by both.
    eval: Option<ShortEval>,
    source_tok_s: Option<f64>,
    target_tok_s: Option<f64>,
    /// What `hob fit` predicts of the result.
    fit: Option<FitAfter>,
}

impl QuantizeArgs {
    /// Whether an option was given that a speech model has no use for.
    fn is_about_chat(&self) -> bool {
        let given = [
            self.importance.is_some(),
            self.no_importance,
            self.no_report,
            self.eval_items.is_some(),
            !self.eval_tasks.is_empty(),
            self.text.text.is_some(),
            self.text.pieces.is_some(),
            self.machine.machine.is_some(),
            !self.machine.pool.is_empty(),
        ];
        given.contains(&true)
    }
}

pub(crate) fn run(args: &QuantizeArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    let app = App::open(globals, Overrides::default(), printer)?;
    match &args.verb {
        Some(QuantizeVerb::Types) => types(printer),
        Some(QuantizeVerb::Distance(args)) => report_distance(args, &app),
        Some(QuantizeVerb::Listened(args)) => listened::listened(args, printer),
        None => quantized(args, &app, globals),
    }
}

fn types(printer: &Printer) -> CliResult<Exit> {
    let mut table = table(["type", "importance"]);
    for form in SpeechForm::all() {
        table.add_row([format!("{form} (speech)"), "not used".to_owned()]);
    }
    for kind in QuantType::all() {
        let needs = match (kind.needs_importance(), kind.is_float()) {
            (true, _) => "needed",
            (false, true) => "not used",
            (false, false) => "helps",
        };
        table.add_row([kind.name().to_owned(), needs.to_owned()]);
    }
    printer.data(table.trim_fmt())?;
    Ok(Exit::Done)
}

fn report_distance(args: &DistanceArgs, app: &App<'_>) -> CliResult<Exit> {
    let store = ModelStore::open(app);
    let (reference, model) = (file_of(&args.reference, &store)?, file_of(&args.model, &store)?);
    let whole = run_until_stopped(distance(&reference, &model, &args.text, app.printer))?;
    if !args.by_layer_type {
        return app.printer.report(args.json, &whole, || tables::distance_text(&whole));
    }
    let layers = layers::by_layer_type(&reference, &model, &args.text, app.printer);
    let layers = run_until_stopped(layers)?;
    let json = serde_json::json!({ "whole": whole, "layers": layers });
    app.printer.report(args.json, &json, || {
        format!("{}\n\n{}", tables::distance_text(&whole), layers::layer_table(&layers))
    })
}

fn quantized(args: &QuantizeArgs, app: &App<'_>, globals: &Globals) -> CliResult<Exit> {
    let (Some(name), Some(kind)) = (&args.model, &args.to) else {
        return Err(Failure::usage("which model, and to which type?")
            .hint("for example hob quantize model-F16.gguf --to Q4_K_M"));
    };
    let (printer, store) = (app.printer, ModelStore::open(app));
    if let Some(stored) = store.stored_speech(name) {
        return speech::quantized(args, &stored, &store, app);
    }
    let for_speech = [args.name.is_some(), args.voice.is_some(), args.sentences.is_some()];
    if for_speech.contains(&true) || args.page.is_some() {
        return Err(Failure::usage("--as, --voice, --sentences and --page are for speech models")
            .hint("leave them out; --out names the file of a chat model"));
    }
    // The name is checked before the type, so that a speech model that is not stored is the error, and not its type.
    let source = file_of(name, &store)?;
    let kind = quant_type(kind).map_err(Failure::usage)?;
    let named = |error| Failure::usage(format!("{}: {error}", source.display()));
    let header = Gguf::open(&source).map_err(named)?;
    let from = header.quantization().to_owned();
    refuse(&from, kind, args)?;
    let target = target(args, (name, &source), kind);
    if target.exists() {
        return Err(Failure::usage(format!("{} exists already", target.display()))
            .hint("choose another file with --out, or remove it"));
    }
    let present = header.model(name).map_err(named)?;
    // May measure the memory for seconds. After the first `run_until_stopped`, Ctrl-C would not end that.
    let (machine, _) = args.machine.with_published(app)?;
    let expected = run_until_stopped(ExpectedModel::of(header, &source, kind))?;
    printer.note(format_args!("from {}", prediction(&present, &machine)));
    printer.note(format_args!("to {}", prediction(&expected.model, &machine)));
    expected.note_replaced(kind, printer);
    if LOW_BITS.iter().any(|bits| kind.name().contains(bits)) {
        printer.note("below 4 bits a model often says other things: compare it with `hob eval`");
    }
    if args.dry_run {
        let (source_bytes, expected_bytes) = (files_bytes(&source), expected.bytes());
        let plan = serde_json::json!({
            "source": source.display().to_string(), "target": target.display().to_string(),
            "from": from, "to": kind.name(),
            "source_bytes": source_bytes, "expected_bytes": expected_bytes,
        });
        return printer.report(args.json, &plan, || format!("would write {}", target.display()));
    }
    check_room(&target, expected.bytes())?;
    let distance = run_until_stopped(write(args, (&source, &target), kind, printer))?;
    let mut report = measured(args, (&source, &target), (from, kind, distance), (app, globals))?;
    let (is_here, weights) = (args.machine.machine.is_none(), expected.bytes());
    let fit = || FitAfter::of(&target, weights, (&machine, is_here));
    report.fit = (!args.no_report).then(fit);
    printer.report(args.json, &report, || tables::report_text(&report))
}

/// # Errors
/// The source has too few bits already, or the type cannot be made as asked.
fn refuse(from: &str, kind: QuantType, args: &QuantizeArgs) -> CliResult<()> {
    let is_whole = matches!(from, "F32" | "F16" | "BF16" | "Q8_0");
    if !is_whole && !args.force {
        return Err(Failure::usage(format!(
            "the source is {from}, which has lost precision already; a second loss adds up"
        ))
        .hint(
            "take an F16, BF16 or Q8_0 file of the model (such as `hob pull qwen3:8b-q8_0` fetches), \
             or add --force",
        ));
    }
    if args.no_importance && kind.needs_importance() {
        return Err(Failure::usage(format!(
            "a model of type {} gives senseless answers without an importance matrix",
            kind.name()
        ))
        .hint("leave out --no-importance"));
    }
    Ok(())
}

fn target(args: &QuantizeArgs, source: (&str, &Path), kind: QuantType) -> PathBuf {
    let usual = || PathBuf::from(format!("{}-{}.gguf", stem(source), kind.name()));
    args.out.clone().unwrap_or_else(usual)
}

/// The name of a stored model or of a folder, or of a file without its end, as part of a file name. The folders `.` and
/// `..` have no name, so there it is that of the file in them.
fn stem((name, source): (&str, &Path)) -> String {
    let file = Path::new(name).file_name().or_else(|| source.file_name());
    let file = file.map(|file| file.to_string_lossy().into_owned());
    let stem = file.as_deref().unwrap_or(name);
    stem.strip_suffix(".gguf").unwrap_or(stem).replace(':', "-")
}

/// Writes a draft, compares it with the source, and gives it its name when it is whole, on the disk, and a model.
async fn write(
    args: &QuantizeArgs,
    (source, target): (&Path, &Path),
    kind: QuantType,
    printer: &Printer,
) -> CliResult<Option<DistanceReport>> {
    let failed = |error: std::io::Error| Failure::io("cannot write next to the target", &error);
    // A wrong name and a short text must be found now, and not after hours.
    let compared_on = args.text.text.as_deref().map(WorkerText::of_file).transpose()?;
    // Removed when this function ends early, whatever the reason.
    let draft = draft_of(target).map_err(failed)?.into_temp_path();
    let text = importance_text(args, kind)?;
    let hash = hash_of(parts_of(source)).await?;
    let mut words: Vec<OsString> = vec!["quantize".into()];
    let mut add = |flag: &str, value: OsString| words.extend([flag.into(), value]);
    add("--source", source.into());
    add("--target", draft.as_os_str().to_owned());
    add("--kind", kind.name().into());
    add("--pieces", IMPORTANCE_PIECES.to_string().into());
    if let Some(text) = &text {
        add("--importance", text.path.as_os_str().to_owned());
        add("--keep", importance_path(target, &hash, &text.sha256).into());
    }
    if let Some(text) = compared_on {
        add("--text", text.path.into());
        add("--context", CONTEXT_TOKENS.to_string().into());
    }
    for (key, value) in provenance(&hash, text.as_ref()) {
        add("--header", format!("{key}={value}").into());
    }
    let bar = printer.bar(0, BAR);
    run_quantize_worker(words, |step| show(&bar, &step)).await?;
    bar.finish_and_clear();
    Gguf::open(&draft)
        .map_err(|error| Failure::engine(format!("what was written is not a model: {error}")))?;
    let text = match args.no_report {
        true => DistanceTextArgs { text: None, pieces: Some(CHECK_PIECES) },
        false => args.text.clone(),
    };
    let found = distance(source, &draft, &text, printer).await?;
    refuse_garbage(&found)?;
    std::fs::File::open(&draft).and_then(|file| file.sync_all()).map_err(failed)?;
    draft.persist_noclobber(target).map_err(|error| failed(error.error))?;
    Ok((!args.no_report).then_some(found))
}

/// # Errors
/// What was written does not say anything that makes sense.
fn refuse_garbage(found: &DistanceReport) -> CliResult<()> {
    let percent = found.same_top.value * 100.0;
    let reason = match found {
        DistanceReport { skipped: skipped @ 1.., .. } => {
            format!("no probability for {}", count_text(skipped, "token"))
        }
        DistanceReport { same_top, .. } if same_top.value < SAME_TOP_MIN => {
            format!("it expects what the source expects for {percent:.1} % of the tokens only")
        }
        _ => return Ok(()),
    };
    Err(Failure::engine(format!("the quantized model gives senseless answers: {reason}"))
        .hint("nothing was stored; take more bits, or an importance matrix"))
}

fn show(bar: &ProgressBar, step: &QuantizeStep) {
    let (word, done, all) = match step {
        QuantizeStep::Importance { done, all } => ("reading the text", done, all),
        QuantizeStep::Tensors { done, all } => ("writing tensors", done, all),
        QuantizeStep::Tokens { done, all } => ("comparing tokens", done, all),
        _ => return,
    };
    bar.set_message(word);
    bar.set_length(*all as u64);
    bar.set_position(*done as u64);
}

/// A text in a file, for a worker.
struct WorkerText {
    path: PathBuf,
    sha256: Sha256,
    /// Removes a text that hob itself has written.
    _own: Option<NamedTempFile>,
}

impl WorkerText {
    fn of_file(path: &Path) -> CliResult<WorkerText> {
        let bytes = read_bytes(path, QUANTIZE_TEXT_BYTES_MAX).map_err(Failure::usage)?;
        Ok(WorkerText { path: path.to_owned(), sha256: Sha256::of(&bytes), _own: None })
    }

    fn shipped(text: &str) -> CliResult<WorkerText> {
        let failed = |error: std::io::Error| Failure::io("cannot write a text", &error);
        let mut file = NamedTempFile::new().map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        let (path, sha256) = (file.path().to_owned(), Sha256::of(text.as_bytes()));
        Ok(WorkerText { path, sha256, _own: Some(file) })
    }
}

/// The text that shows which weights matter; none where it would not be used.
fn importance_text(args: &QuantizeArgs, kind: QuantType) -> CliResult<Option<WorkerText>> {
    if args.no_importance || kind.is_float() {
        return Ok(None);
    }
    match &args.importance {
        Some(file) => WorkerText::of_file(file).map(Some),
        None => WorkerText::shipped(IMPORTANCE_TEXT).map(Some),
    }
}

/// The importance matrix stands next to the result, one for each source and text.
fn importance_path(target: &Path, source: &Sha256, text: &Sha256) -> PathBuf {
    let short = |hash: &Sha256| hash.to_string()[..8].to_owned();
    target.with_file_name(format!("{}-{}.importance.json", short(source), short(text)))
}

/// What the header of the result says about its making.
fn provenance(source: &Sha256, text: Option<&WorkerText>) -> Vec<(String, String)> {
    let mut rows = vec![
        ("hob.quantize.source_sha256".to_owned(), source.to_string()),
        ("hob.quantize.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let text = text.map(|text| ("hob.quantize.text_sha256".to_owned(), text.sha256.to_string()));
    rows.extend(text);
    rows
}

async fn distance(
    reference: &Path,
    model: &Path,
    text: &DistanceTextArgs,
    printer: &Printer,
) -> CliResult<DistanceReport> {
    let file = match &text.text {
        Some(file) => WorkerText::of_file(file)?,
        None => WorkerText::shipped(DISTANCE_TEXT)?,
    };
    let mut words: Vec<OsString> = vec!["distance".into()];
    let mut add = |flag: &str, value: OsString| words.extend([flag.into(), value]);
    add("--reference", reference.into());
    add("--model", model.into());
    add("--text", file.path.into());
    add("--context", CONTEXT_TOKENS.to_string().into());
    add("--pieces", text.pieces.unwrap_or(DISTANCE_PIECES).max(1).to_string().into());
    let (bar, mut found) = (printer.bar(0, BAR), None);
    run_quantize_worker(words, |step| match step {
        QuantizeStep::Distance(report) => found = Some(*report),
        step => show(&bar, &step),
    })
    .await?;
    bar.finish_and_clear();
    found.ok_or_else(|| {
        Failure::engine("the models are infinitely far apart: one of them is broken")
    })
}

/// Speed and score of what was written, next to those of the source.
fn measured(
    args: &QuantizeArgs,
    (source, target): (&Path, &Path),
    (from, kind, distance): (String, QuantType, Option<DistanceReport>),
    (app, globals): (&App<'_>, &Globals),
) -> CliResult<QuantizeReport> {
    let mut report = QuantizeReport {
        source: source.display().to_string(),
        target: target.display().to_string(),
        from,
        to: kind.name(),
        source_bytes: files_bytes(source),
        target_bytes: files_bytes(target),
        sha256: run_until_stopped(hash_of(vec![target.to_owned()]))?.to_string(),
        importance: !args.no_importance && !kind.is_float(),
        distance,
        eval: None,
        source_tok_s: None,
        target_tok_s: None,
        fit: None,
    };
    if args.no_report {
        return Ok(report);
    }
    let spinner = app.printer.spinner("measuring the speed of both");
    report.source_tok_s = run_until_stopped(speed(source))?;
    report.target_tok_s = run_until_stopped(speed(target))?;
    spinner.finish_and_clear();
    let eval_items = args.eval_items.unwrap_or(EVAL_ITEMS);
    if eval_items > 0 {
        let asked = (&args.eval_tasks[..], eval_items);
        report.eval = Some(short_eval([source, target], asked, (globals, app.printer))?);
    }
    Ok(report)
}

fn quant_type(name: &str) -> Result<QuantType, String> {
    QuantType::by_name(name.trim()).ok_or_else(|| {
        let known: Vec<&str> = QuantType::all().map(QuantType::name).collect();
        format!("'{name}' is not a type of weights; there are {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use hob_eval::distance::Distances;

    use super::*;

    #[test]
    fn a_result_is_named_after_its_model_file_or_folder() {
        for (name, source, expected) in [
            ("qwen3:8b", "store/model.gguf", "qwen3-8b"),
            ("a/b-F16.gguf", "a/b-F16.gguf", "b-F16"),
            ("weights/", "weights/b.gguf", "weights"),
            (".", "./b.gguf", "b"),
            ("..", "../b.gguf", "b"),
        ] {
            assert_eq!(stem((name, Path::new(source))), expected, "{name}");
        }
    }

    #[test]
    fn options_of_the_report_need_the_report() {
        let words = ["hob", "quantize", "m", "--to", "Q4_0", "--no-report"];
        for (option, value) in
            [("--text", "a"), ("--pieces", "1"), ("--eval-items", "1"), ("--eval-tasks", "code")]
        {
            let words = [&words[..], &[option, value]].concat();
            let refused = crate::cli::command().try_get_matches_from(words).expect_err(option);
            assert_eq!(refused.kind(), clap::error::ErrorKind::ArgumentConflict, "{refused}");
        }
    }

    #[test]
    fn a_text_is_a_regular_file() {
        let refused = WorkerText::of_file(Path::new("/dev/zero")).err().expect("refused");
        assert_eq!(refused.sentence, "/dev/zero: it is not a regular file");
    }

    #[test]
    fn a_model_without_sense_is_refused_and_a_worse_one_is_not() {
        let likely = |token: usize| -> Vec<f32> {
            (0..100).map(|at| if at == token { 9.0 } else { at as f32 / 100.0 }).collect()
        };
        let of = |others: &[Vec<f32>]| {
            let mut distances = Distances::default();
            others.iter().for_each(|other| distances.push(&likely(3), other, 3));
            refuse_garbage(&distances.finish().expect("tokens")).err().map(|error| error.sentence)
        };
        assert_eq!(of(&[likely(3), likely(4)]), None);
        let other = of(&[likely(5), likely(4)]).expect("garbage");
        assert!(other.contains("for 0.0 % of the tokens"), "{other}");
        let broken = of(&[likely(3), vec![f32::NAN; 100]]).expect("garbage");
        assert!(broken.contains("no probability for 1 token"), "{broken}");
    }
}
