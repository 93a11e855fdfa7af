//! `hob fit`: where a model would live on a machine, and how fast it would be. The answer goes to stdout.
//! This file collects the inputs; `hob_core::fit` computes the answer.

mod assessment_text;
mod calibrate;
mod explain;
mod machine;
mod memory_only;
mod recommend;
mod validate;

use clap::{Args, Subcommand};
use hob_core::fit::{Assessment, Engine, FitOptions, Format, Model, alternatives, assess};
use hob_core::footprint::{KvType, KvTypes};
use hob_models::QuantMix;
use hob_models::find::typed;
use hob_models::known::UseCase;
use hob_wire::FitAnswer;

use crate::app::App;
use crate::arguments::one_of;
use crate::capability::suggest_smaller_model;
use crate::failure::{CliResult, Exit, Failure};
use crate::finding::found;
use crate::globals::Globals;
use crate::machine_args::MachineArgs;
use crate::model_store::ModelStore;
use crate::printer::Printer;
use crate::published::Used;
use crate::settings::Overrides;
use memory_only::{KnownMemory, MemoryFit};

/// Predict where a model runs on this machine, how fast it is at each context, and which flags an engine needs
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub(crate) struct FitArgs {
    /// Name, file, folder, URL or hub repository of a model
    model: Option<String>,
    /// Dimensions instead of a model, such as block_count=32,embedding_length=4096,head_count=32,…
    #[arg(long, value_name = "KEY=N,…", conflicts_with = "model")]
    dimensions: Option<String>,
    /// Quant to assess, for a model without a file
    #[arg(long, value_name = "QUANT", value_parser = quant_mix)]
    quant: Option<QuantMix>,
    #[command(flatten)]
    options: FitOptionArgs,
    #[command(flatten)]
    machine: MachineArgs,
    /// Rank the models that hob knows for this machine
    #[arg(long, conflicts_with_all = ["model", "dimensions", "quant", "require"])]
    recommend: bool,
    /// Rank the models for this purpose
    #[arg(long = "for", value_parser = one_of(PURPOSES), value_name = "PURPOSE", requires = "recommend")]
    purpose: Option<UseCase>,
    /// Exit with 1 if the model does not fit with the requested context and speed
    #[arg(long)]
    require: bool,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    verb: Option<FitVerb>,
}

/// How the model is to be run.
#[derive(Clone, Debug, Args)]
pub(crate) struct FitOptionArgs {
    /// Tokens of each conversation, such as 32768 or 32k [default: 8192, or the trained length if that is less]
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    context: Option<u32>,
    /// KV cache type: f16, q8_0 or q4_0, or two types for keys and values such as q8_0/q4_0
    #[arg(long, value_name = "K[/V]", value_parser = kv)]
    kv: Option<KvTypes>,
    /// Conversations at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    parallel: u32,
    /// Engine: hob, llama.cpp, Ollama, tabbyAPI, vLLM, mlx-lm or transformers
    #[arg(long, value_name = "NAME", value_parser = engine)]
    engine: Option<Engine>,
    /// Minimum useful speed, tokens per second
    #[arg(long, value_name = "TOK/S", value_parser = pace)]
    min_tok_s: Option<f64>,
}

#[derive(Debug, Subcommand)]
enum FitVerb {
    Machine(machine::FitMachineArgs),
    Calibrate(calibrate::CalibrateArgs),
    Explain(explain::ExplainArgs),
    Validate(validate::ValidateArgs),
}

const PURPOSES: [(&str, &str, UseCase); 4] = [
    ("chat", "Chat at a pleasant reading speed", UseCase::Chat),
    ("code", "Writing code", UseCase::Code),
    ("voice", "Spoken conversation, which needs fast answers", UseCase::Voice),
    ("long", "Long documents", UseCase::Long),
];

const AFTER_HELP: &str = "\
hob predicts memory as a sum of terms and speed as a range, each with its source (`hob fit explain
basis`).

Examples:
  hob fit smollm2                      a model that hob has
  hob fit qwen3:30b-a3b --quant Q4_K_M one that it knows the dimensions of
  hob fit model.gguf --context 32768 --kv q8_0
  hob fit whisper-small --parallel 2   the memory of a transcription model
  hob fit kokoro                       the memory of the stored speech model
  hob fit owner/name:Q4_K_M            of Hugging Face: only its header is fetched
  hob fit --recommend --for code
  hob fit explain \"KV cache\"";

fn quant_mix(name: &str) -> Result<QuantMix, String> {
    QuantMix::named(name).map_err(|error| error.to_string())
}

/// A `k` is 1,024 tokens, as in model names.
fn tokens(text: &str) -> Result<u32, String> {
    let (number, of_unit) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1024),
        None => (text, 1),
    };
    let tokens = number.parse::<u32>().ok().and_then(|number| number.checked_mul(of_unit));
    tokens.filter(|tokens| *tokens > 0).ok_or_else(|| {
        format!("'{text}' is not a number of tokens (expected for example 32768 or 32k)")
    })
}

/// A finite speed above 0.
fn pace(text: &str) -> Result<f64, String> {
    let pace = text.trim().parse::<f64>().ok().filter(|pace| pace.is_finite() && *pace > 0.0);
    pace.ok_or_else(|| {
        format!("'{text}' is not a speed (expected tokens per second, such as 10 or 2.5)")
    })
}

fn kv(name: &str) -> Result<KvTypes, String> {
    let (keys, values) = name.split_once('/').unwrap_or((name, name));
    let one = |name: &str| name.trim().parse::<KvType>().map_err(|error| error.to_string());
    Ok(KvTypes { keys: one(keys)?, values: one(values)? })
}

fn engine(name: &str) -> Result<Engine, String> {
    let known = Engine::ALL.map(Engine::name).join(", ");
    Engine::by_name(name.trim())
        .ok_or_else(|| format!("hob knows no such engine (expected one of {known})"))
}

impl FitOptionArgs {
    pub(crate) fn options(&self) -> FitOptions {
        FitOptions {
            context_tokens: self.context,
            kv: self.kv,
            sequences: self.parallel,
            engine: self.engine,
            tok_s_min: self.min_tok_s,
        }
    }
}

pub(crate) fn run(args: &FitArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    match &args.verb {
        Some(FitVerb::Explain(terms)) => return explain::run(terms, printer),
        Some(FitVerb::Machine(machine)) => return machine::run(machine, globals, printer),
        Some(FitVerb::Calibrate(calibrate)) => return calibrate::run(calibrate, globals, printer),
        Some(FitVerb::Validate(validate)) => return validate::run(validate, printer),
        None if args.recommend => return recommended(args, globals, printer),
        None => (),
    }
    let app = App::open(globals, Overrides::default(), printer)?;
    if let Some(exit) = memory_only(args, &app)? {
        return Ok(exit);
    }
    let (machine, used) = args.machine.with_published(&app)?;
    let (model, variants) = model(args, &app, printer)?;
    let options = args.options.options();
    let mut assessed = assess(&machine, &model, &options).map_err(Failure::usage)?;
    assessed.alternatives = alternatives(&machine, &model, &variants, &options, &assessed);
    suggest_smaller_model(&machine, &variants, &options, &mut assessed);
    let answer = sourced(FitAnswer::of(&machine, &model, &assessed, &options), &used);
    let answer = match args.json {
        true => answer.to_json(),
        false => {
            let details = assessment_text::assessment(&machine, &model, &options, &assessed);
            format!("{}\n\n{details}", answer.verdict)
        }
    };
    printer.data(answer)?;
    Ok(if args.require && !holds(&options, &assessed) { Exit::Regressed } else { Exit::Done })
}

/// Prints the answer for a model of which only the memory is predicted. `None` for other models.
fn memory_only(args: &FitArgs, app: &App<'_>) -> CliResult<Option<Exit>> {
    let Some(name) = args.model.as_deref() else { return Ok(None) };
    let Some(memory) = KnownMemory::of(name, &ModelStore::open(app))? else { return Ok(None) };
    let options = &args.options;
    let is_speech = matches!(memory, KnownMemory::Speech { .. });
    let unused = [
        (args.quant.is_some(), "--quant"),
        (options.context.is_some(), "--context"),
        (options.kv.is_some(), "--kv"),
        (options.engine.is_some(), "--engine"),
        (options.min_tok_s.is_some(), "--min-tok-s"),
        (is_speech && options.parallel > 1, "--parallel"),
    ];
    if let Some((_, name)) = unused.into_iter().find(|(is_given, _)| *is_given) {
        let sentence = format!("{name} has no effect: hob predicts only the memory of this model");
        return Err(Failure::usage(sentence).hint("leave it out"));
    }
    let available_bytes = args.machine.known(app)?.machine.memory.available_bytes;
    let fit = MemoryFit::of(name, memory, options.parallel, available_bytes);
    app.printer.report(args.json, &fit, || fit.verdict_text())?;
    Ok(Some(if args.require && !fit.fits { Exit::Regressed } else { Exit::Done }))
}

fn sourced(answer: FitAnswer, used: &[Used]) -> FitAnswer {
    used.iter().fold(answer, |answer, used| answer.sourced(used.site, &used.text))
}

/// Whether the best plan has the requested context and speed.
fn holds(options: &FitOptions, assessed: &Assessment) -> bool {
    assessed.best().is_some_and(|plan| {
        let tok_s = plan.decode_requested.as_ref().map_or(0.0, |rate| rate.tok_s);
        let is_long =
            options.context_tokens.is_none_or(|requested| plan.context_tokens >= requested);
        is_long && options.tok_s_min.is_none_or(|least| tok_s >= least)
    })
}

fn recommended(args: &FitArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    let options = args.options.options();
    if let Some(engine) = options.engine {
        // All known models are in this format.
        engine.runs(Format::Gguf, None).map_err(Failure::usage)?;
        options.kv.map_or(Ok(()), |kv| engine.takes(kv)).map_err(Failure::usage)?;
    }
    let app = App::open(globals, Overrides::default(), printer)?;
    let (machine, used) = args.machine.with_published(&app)?;
    let ranked = recommend::ranked(&machine, &options, args.purpose);
    printer.data(match args.json {
        true => recommend::json(&ranked, &machine, &options, |answer| sourced(answer, &used))?,
        false => {
            recommend::recommendation_table(&ranked, recommend::Need::of(args.purpose, &options))
        }
    })?;
    Ok(Exit::Done)
}

/// The model by name or typed dimensions, and the same in other quants.
fn model(args: &FitArgs, app: &App<'_>, printer: &Printer) -> CliResult<(Model, Vec<Model>)> {
    if let Some(dimensions) = &args.dimensions {
        return typed(dimensions, args.quant).map_err(Failure::usage);
    }
    let name = args.model.as_deref().ok_or_else(|| {
        Failure::usage("which model?")
            .hint("name a model or a file, such as hob fit qwen3:8b, or add --recommend")
    })?;
    let found = found(name, args.quant, app)?;
    let fetched = match found.requests {
        0 => String::new(),
        requests => format!(", {} kB in {requests} requests", found.fetched_bytes.div_ceil(1000)),
    };
    printer.faint(format_args!("{}{fetched}", found.source));
    found.notes.iter().for_each(|note| printer.note(note));
    Ok((found.model, found.variants))
}
