//! The file format of plans in YAML: these types are the format.
//! Errors are reported with their line before anything is measured.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use hob_core::enum_table;
use hob_eval::report::UseBounds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_saphyr::{budget, options};

use crate::drive::ANSWER_SECONDS_MAX;
use crate::record::{yaml_line, yaml_message};

/// What `schema` says in a file that this program reads.
pub const PLAN_SCHEMA: &str = "bench-plan/1";
const PLAN_BYTES_MAX: u64 = 1 << 20;
const NODES_MAX: usize = 20_000;

/// A list of measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BenchPlan {
    /// `bench-plan/1`
    pub schema: String,
    pub name: String,
    /// Shown with the queued cells, such as the reason for waiting
    #[serde(default)]
    pub note: Option<String>,
    pub targets: Vec<PlanTarget>,
    pub matrix: Matrix,
    /// Leaves out cells that match all fields of an entry
    #[serde(default)]
    pub exclude: Vec<Exclude>,
    #[serde(default)]
    pub runs: PlanRuns,
    #[serde(default)]
    pub budget: PlanBudget,
    #[serde(default)]
    pub on_fail: OnFail,
    #[serde(default)]
    pub order: Order,
    /// Seed of the prompts; without it they are new each time
    #[serde(default)]
    pub seed: Option<u64>,
    /// Limits that answers of `eval` must meet for interactive use and for voice
    #[serde(default)]
    pub bounds: UseBounds,
}

/// A server that is measured, or a way to start one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanTarget {
    pub name: String,
    /// Null: hob starts another hob and measures it
    #[serde(default)]
    pub url: Option<String>,
    #[serde(default)]
    pub api: PlanApi,
    /// The model's name there; `{AXIS}` is filled in for the axes `model`, `quant`, `backend`, `creator`,
    /// `power_cap_w`, `driver` and for labels. Null: `{model}`, and for hob `{model}-{quant}`
    #[serde(default)]
    pub model: Option<String>,
    /// Environment variable with its API key
    #[serde(default)]
    pub key_env: Option<String>,
    /// Command line that starts the server; the same axes and `{ctx}` are filled in
    #[serde(default)]
    pub launch: Option<String>,
    /// Path that answers 200 when the server is ready
    #[serde(default)]
    pub ready: Option<String>,
    /// Value of `{ctx}`
    #[serde(default)]
    pub context: Option<u64>,
    /// File of the weights; the same axes are filled in
    #[serde(default)]
    pub model_file: Option<String>,
}

/// The API of the server; with `auto`, hob finds out which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanApi {
    #[default]
    Auto,
    Openai,
    Ollama,
    Hob,
}

/// Every combination of the axes is a cell. A kind ignores axes that it does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Matrix {
    pub kind: Vec<PlanKind>,
    /// Empty: the server's only model. With several, a target that sets `model` needs `{model}` in `model`, `launch`, `url`
    /// or `model_file`, unless `exclude` leaves it one model
    pub model: Vec<String>,
    /// Each target needs `{quant}` in `model`, `launch`, `url` or `model_file`; the name of a hob's model has it anyway
    pub quant: Vec<String>,
    pub backend: Vec<String>,
    /// Who made the weights' file, such as `bartowski`
    pub creator: Vec<String>,
    /// Watts that the processor or card may draw. hob sets no limit: `launch` has to, with `{power_cap_w}`. Records are
    /// unverified unless the machine reports the same limit
    pub power_cap_w: Vec<u32>,
    /// Version of the graphics driver. A record is invalid if the machine reports another one
    pub driver: Vec<String>,
    /// Empty: the four shapes
    pub shape: Vec<String>,
    /// Users at the same time, at most 1,024. Empty: 1 and 4
    pub concurrency: Vec<u32>,
    /// Tokens of the prompt for `sweep`. Empty: 512, 4096, 16384, 65536 and 131072. For `eval`: the context length to
    /// start the server with, in the place of the target's. Empty: the target's
    pub context: Vec<u32>,
    /// Empty: the server's default
    pub thinking: Vec<PlanThinking>,
    /// Maximum tokens of an answer of `eval`, thinking included. Empty: what each item needs
    pub budget_tokens: Vec<u32>,
    /// Temperatures of the answers of `eval`, 0 to 2. Empty: 0
    pub temperature: Vec<f64>,
    /// Tasks of `eval`, all in one cell: `FAMILY` or `FAMILY:SIZE`. Empty: those of `hob eval`
    pub task: Vec<String>,
    /// Items of each task. Null: 10
    pub items: Option<u32>,
    /// JSONL files with own items for `eval`, relative to the working folder, all in one cell with the tasks; with files, empty `task` means
    /// no tasks
    pub items_file: Vec<String>,
    /// Empty: cold
    pub cache: Vec<PlanCache>,
    /// Texts for speech, all in one cell, because texts are compared. Empty: those of `hob bench`
    pub text: Vec<String>,
    /// Formats of sound: `pcm`, `wav`, `mp3`. Empty: those that the server offers, in one cell
    pub format: Vec<String>,
    /// Empty: the first that the server lists
    pub voice: Vec<String>,
    /// Further axes of any name, such as `room`: `{NAME}` is filled in for each value, and records list it
    pub labels: BTreeMap<String, Vec<String>>,
}

enum_table! {
    /// What is measured: the verb of `hob bench`, or `eval` for `hob eval`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum PlanKind: name {
        #[default]
        Llm = "llm",
        Sweep = "sweep",
        #[serde(rename = "max-context", alias = "max_context", alias = "ceiling")]
        MaxContext = "max-context",
        #[serde(alias = "degrade")]
        Concurrency = "concurrency",
        Batch = "batch",
        Tts = "tts",
        Stream = "stream",
        /// The built-in sentences, spoken by the server's own speech model
        Stt = "stt",
        /// The same sentences, spoken to the server in conversations
        Voice = "voice",
        Cold = "cold",
        /// Tasks that a program checks
        Eval = "eval",
    }
}

/// Whether the model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanThinking {
    /// As the server's default says
    AsIs,
    /// hob turns it off
    Off,
}

/// What the server knows of the prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanCache {
    /// Each prompt is new
    Cold,
    /// Each prompt was sent before
    Cached,
}

/// Leaves out cells that match all of these fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Exclude {
    pub target: Option<String>,
    pub kind: Option<PlanKind>,
    pub model: Option<String>,
    pub quant: Option<String>,
    pub backend: Option<String>,
    pub creator: Option<String>,
    pub power_cap_w: Option<u32>,
    pub driver: Option<String>,
    pub shape: Option<String>,
    pub concurrency: Option<u32>,
    pub context: Option<u32>,
    pub thinking: Option<PlanThinking>,
    pub cache: Option<PlanCache>,
    pub temperature: Option<f64>,
    pub format: Option<String>,
    pub voice: Option<String>,
    pub labels: BTreeMap<String, String>,
}

/// The stopping rule of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlanRuns {
    pub min: usize,
    pub max: usize,
    /// A cell is done when its half interval is narrower than this
    pub half_width_pct: f64,
    /// Number of starts of a server that hob starts, for each cell
    pub server_starts: u32,
}

impl Default for PlanRuns {
    fn default() -> PlanRuns {
        PlanRuns { min: 6, max: 10, half_width_pct: 2.5, server_starts: 2 }
    }
}

/// Time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlanBudget {
    /// A cell that takes longer after its warm-up ends with its runs so far; an evaluation asks all of its items
    pub cell_s: u64,
    /// No cell starts after this time; null: no limit
    pub total_s: Option<u64>,
    /// An answer that takes longer has failed
    pub answer_s: u64,
}

impl Default for PlanBudget {
    fn default() -> PlanBudget {
        PlanBudget { cell_s: 900, total_s: None, answer_s: ANSWER_SECONDS_MAX }
    }
}

/// What to do after a cell fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFail {
    /// Records the failure and goes on; the next run of the plan tries the cell again
    #[default]
    Record,
    /// Stops the plan
    Stop,
    /// Tries the cell once more
    Retry,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The same cell of all targets one after the other, so that changes of the machine affect all targets. Evaluations
    /// take turns in up to four parts of their items, after all other cells
    #[default]
    Interleave,
    /// One target after the other
    Listed,
}

/// Why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("cannot read {file}: {source}")]
    Io { file: String, source: std::io::Error },
    #[error("{file}: {bytes} bytes (at most {PLAN_BYTES_MAX})")]
    Long { file: String, bytes: u64 },
    #[error("{file}:{line}: {reason}")]
    Wrong { file: String, line: u64, reason: String },
}

impl BenchPlan {
    /// # Errors
    /// The file cannot be read, or the plan is invalid.
    pub fn read(file: &Path) -> Result<BenchPlan, PlanError> {
        let shown = file.display().to_string();
        let failed = |source| PlanError::Io { file: shown.clone(), source };
        let bytes = fs_err::metadata(file).map_err(failed)?.len();
        if bytes > PLAN_BYTES_MAX {
            return Err(PlanError::Long { file: shown, bytes });
        }
        // A device, or a file that grows, has more bytes than the system says.
        let mut text = String::new();
        let opened = fs_err::File::open(file).map_err(failed)?;
        opened.take(PLAN_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
        let bytes = text.len() as u64;
        if bytes > PLAN_BYTES_MAX {
            return Err(PlanError::Long { file: shown, bytes });
        }
        BenchPlan::parse(&shown, &text)
    }

    /// Parses a plan. `file` names it in errors.
    ///
    /// # Errors
    /// The text is not a plan, or the plan is invalid.
    pub fn parse(file: &str, text: &str) -> Result<BenchPlan, PlanError> {
        let wrong = |line, reason| PlanError::Wrong { file: file.to_owned(), line, reason };
        let options = options! { budget: budget! { max_nodes: NODES_MAX }, with_snippet: false };
        let plan: BenchPlan = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| wrong(yaml_line(&error), yaml_message(&error)))?;
        match plan.flaw() {
            None => Ok(plan),
            Some((word, reason)) => Err(wrong(line_of(text, word), reason)),
        }
    }
}

/// The number of the first line with this word.
fn line_of(text: &str, word: &str) -> u64 {
    let line = text.lines().position(|line| line.contains(word));
    line.map_or(1, |line| line as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::super::cells::cells;
    use super::*;

    pub(in crate::plan) const PLAN: &str = "\
schema: bench-plan/1
name: nightly
targets:
  - {name: here, url: \"http://127.0.0.1:8484\", api: hob}
  - {name: other, url: \"http://127.0.0.1:11434\"}
matrix: {kind: [llm], model: [a, b], shape: [short_short, agentic], concurrency: [1, 4]}
exclude: [{target: other, concurrency: 4}]
";

    #[test]
    fn a_plan_is_read_without_the_excluded_cells() {
        let plan = BenchPlan::parse("p.yaml", PLAN).expect("a plan");
        assert_eq!(plan.runs, PlanRuns::default());
        assert_eq!((plan.on_fail, plan.order), (OnFail::Record, Order::Interleave));
        assert_eq!(cells(&plan).len(), 8 + 4);
    }

    #[test]
    fn a_target_with_one_model_is_taken_if_the_plan_excludes_the_others() {
        let fixed = PLAN.replacen("11434\"}", "11434\", model: a}", 1);
        let plan = fixed.replacen("concurrency: 4}", "model: b}", 1);
        let plan = BenchPlan::parse("p.yaml", &plan).expect("a plan");
        assert_eq!(cells(&plan).len(), 8 + 4);
    }

    #[test]
    fn errors_name_their_line() {
        let rows = [
            ("bench-plan/1", "bench-plan/2", "p.yaml:1: the schema is bench-plan/2"),
            ("other,", "here,", "p.yaml:4: two targets are called here"),
            ("target: other", "target: third", "p.yaml:7: no target is called third"),
            ("[llm]", "[]", "p.yaml:6: kind is empty"),
            ("agentic", "agent", "p.yaml:6: no shape is called agent"),
            ("shape:", "text: [novel], shape:", "p.yaml:6: no text is called novel"),
            ("shape:", "format: [ogg], shape:", "p.yaml:6: no format of sound is called ogg"),
            ("[1, 4]", "[0]", "p.yaml:6: a concurrency of 0"),
            ("[1, 4]", "[1, 1025]", "p.yaml:6: a concurrency of 1025 is not possible"),
            ("shape:", "temperature: [3], shape:", "p.yaml:6: each temperature must be 0 to 2"),
            ("shape:", "labels: {quant: [a]}, shape:", "p.yaml:6: a label cannot be called quant"),
            ("shape:", "labels: {driver: []}, shape:", "p.yaml:6: the label driver has no value"),
            (
                "name: nightly",
                "name: nightly\nruns: {min: 3, max: 2}",
                "p.yaml:3: min and server_starts must be",
            ),
            (
                "name: nightly",
                "name: nightly\nbounds: {voice_words: 0}",
                "p.yaml:3: each bound must be above 0",
            ),
            ("name: nightly", "name: nightly\ncolour: red", "p.yaml:3: unknown field"),
            ("{target: other, concurrency: 4}", "{kind: llm}", "p.yaml:6: the plan has no cells"),
            ("shape:", "quant: [Q4_0], shape:", "p.yaml:5: other does not get the quant"),
            ("11434\"}", "11434\", model: a}", "p.yaml:5: other does not get the model: put"),
            (
                "[llm]",
                "[eval], context: [2048]",
                "p.yaml:4: here is not started with a context: put {ctx} into its `launch`",
            ),
        ];
        for (said, instead, expected) in rows {
            let error =
                BenchPlan::parse("p.yaml", &PLAN.replacen(said, instead, 1)).expect_err(expected);
            assert!(error.to_string().starts_with(expected), "{error} and not {expected}");
        }
    }

    #[test]
    fn too_many_cells_are_refused_before_they_fill_the_memory() {
        let values = vec!["x"; 1_000].join(",");
        let three = format!("backend: [{values}], creator: [{values}], driver: [{values}], shape:");
        let one = format!("backend: [{values}], shape:");
        let rows = [
            (three, "p.yaml:6: the matrix has more than 10000 cells for each target"),
            (one, "p.yaml:6: the plan has more than 10000 cells"),
        ];
        for (axes, expected) in rows {
            let error = BenchPlan::parse("p.yaml", &PLAN.replacen("shape:", &axes, 1));
            assert_eq!(error.expect_err(expected).to_string(), expected);
        }
    }

    #[test]
    fn a_plan_that_is_longer_than_its_file_says_is_refused() {
        let error = BenchPlan::read(Path::new("/dev/zero")).expect_err("an endless file");
        assert!(matches!(error, PlanError::Long { bytes: 1_048_577, .. }), "{error}");
    }
}
