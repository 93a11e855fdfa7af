//! Expands the matrix of a plan into cells, in the order of measurement.
//! An axis that a kind does not have adds no cells.

use std::collections::{BTreeMap, VecDeque};

use hob_core::count_text;
use serde::Serialize;

use super::file::{
    BenchPlan, Exclude, Matrix, Order, PlanCache, PlanKind, PlanTarget, PlanThinking,
};
use crate::record::{CREATOR, DRIVER, POWER_CAP};

const SHAPES: [&str; 4] = ["short_short", "long_short", "short_long", "agentic"];
const CONCURRENCY: [u32; 2] = [1, 4];
const CONTEXT: [u32; 5] = [512, 4096, 16_384, 65_536, 131_072];

/// More cells would take years.
pub(super) const CELLS_MAX: usize = 10_000;

/// A point of the matrix. None: the plan does not name a value, or the kind does not have the axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlanCell {
    pub target: String,
    pub kind: PlanKind,
    pub model: Option<String>,
    pub quant: Option<String>,
    pub backend: Option<String>,
    pub shape: Option<String>,
    pub concurrency: Option<u32>,
    pub context: Option<u32>,
    pub thinking: Option<PlanThinking>,
    pub cache: Option<PlanCache>,
    // Older cell keys do not have these fields, so they are left out while empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub text: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub task: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items_file: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl PlanCell {
    /// The cell's name in progress lines.
    pub fn name(&self) -> String {
        let said =
            [&self.model, &self.quant, &self.backend, &self.shape, &self.format, &self.voice];
        let labels = self.labels.iter().map(|(name, value)| format!("{name} {value}"));
        let words = said
            .into_iter()
            .flatten()
            .chain(&self.text)
            .chain(&self.task)
            .chain(&self.items_file)
            .cloned()
            .chain(labels);
        let users = self.concurrency.map(|users| format!("× {}", count_text(users, "user")));
        let context = self.context.map(|tokens| match self.kind {
            PlanKind::Eval => format!("{tokens} tokens of context"),
            _ => format!("{tokens} tokens"),
        });
        let thinking = self.thinking.filter(|thinking| *thinking == PlanThinking::Off);
        let thinking = thinking.map(|_| "without thinking".to_owned());
        let cache = self.cache.filter(|cache| *cache == PlanCache::Cached);
        let cache = cache.map(|_| "cached".to_owned());
        let first = [self.target.clone(), self.kind.name().to_owned()];
        let budget = self.budget_tokens.map(|tokens| format!("up to {tokens} tokens"));
        let temperature = self.temperature.map(|value| format!("temperature {value}"));
        let context = context.into_iter().chain(budget).chain(temperature);
        let all =
            first.into_iter().chain(words).chain(context).chain(users).chain(thinking).chain(cache);
        all.collect::<Vec<_>>().join(" ")
    }
}

/// An axis of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    /// One that every kind has.
    Any,
    Shape,
    Concurrency,
    Context,
    /// The context length that the server is started with.
    ServerContext,
    Thinking,
    Cache,
    /// Budget and temperature of an evaluation.
    Answer,
    /// Format and voice.
    Sound,
}

impl PlanKind {
    fn measures_speech(self) -> bool {
        matches!(self, PlanKind::Tts | PlanKind::Stream)
    }

    fn has(self, axis: Axis) -> bool {
        use PlanKind::{Batch, Concurrency, Eval, Llm, Stt, Sweep, Tts, Voice};
        match axis {
            Axis::Any => true,
            Axis::Thinking => matches!(self, Llm | Sweep | Concurrency | Batch | Eval),
            Axis::Shape => matches!(self, Llm | Concurrency | Batch),
            Axis::Concurrency => matches!(self, Llm | Concurrency | Batch | Tts | Stt | Voice),
            Axis::Context => self == Sweep,
            Axis::ServerContext => self == Eval,
            Axis::Cache => self == Llm,
            Axis::Answer => self == Eval,
            Axis::Sound => self.measures_speech(),
        }
    }
}

impl PlanTarget {
    /// Fills a cell's values into a text of this target. Other placeholders stay.
    pub fn filled(text: &str, cell: &PlanCell) -> String {
        let PlanCell { model, quant, backend, .. } = cell;
        let places = [("{model}", model), ("{quant}", quant), ("{backend}", backend)];
        let fill = |text: String, (place, value): (&str, &Option<String>)| match value {
            Some(value) => text.replace(place, value),
            None => text,
        };
        let filled = places.into_iter().fold(text.to_owned(), fill);
        let label = |text: String, (name, value): (&String, &String)| {
            text.replace(&format!("{{{name}}}"), value)
        };
        cell.labels.iter().fold(filled, label)
    }
}

impl Exclude {
    fn matches(&self, cell: &PlanCell) -> bool {
        fn is<T: PartialEq>(excluded: Option<&T>, value: Option<&T>) -> bool {
            excluded.is_none_or(|excluded| Some(excluded) == value)
        }
        is(self.target.as_ref(), Some(&cell.target))
            && is(self.kind.as_ref(), Some(&cell.kind))
            && is(self.model.as_ref(), cell.model.as_ref())
            && is(self.quant.as_ref(), cell.quant.as_ref())
            && is(self.backend.as_ref(), cell.backend.as_ref())
            && self.is_in_setup(cell)
            && is(self.shape.as_ref(), cell.shape.as_ref())
            && is(self.concurrency.as_ref(), cell.concurrency.as_ref())
            && is(self.context.as_ref(), cell.context.as_ref())
            && is(self.thinking.as_ref(), cell.thinking.as_ref())
            && is(self.cache.as_ref(), cell.cache.as_ref())
            && is(self.temperature.as_ref(), cell.temperature.as_ref())
            && is(self.format.as_ref(), cell.format.as_ref())
            && is(self.voice.as_ref(), cell.voice.as_ref())
            && self.labels.iter().all(|(name, value)| cell.labels.get(name) == Some(value))
    }

    fn is_in_setup(&self, cell: &PlanCell) -> bool {
        let cap = self.power_cap_w.map(|watts| watts.to_string());
        let said = [(CREATOR, &self.creator), (POWER_CAP, &cap), (DRIVER, &self.driver)];
        let mut said = said.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        said.all(|(name, value)| cell.labels.get(name) == Some(value))
    }
}

/// All cells that are not excluded. A plan with more than `CELLS_MAX` is cut after one more.
pub fn cells(plan: &BenchPlan) -> Vec<PlanCell> {
    let is_excluded = |cell: &PlanCell| plan.exclude.iter().any(|exclude| exclude.matches(cell));
    let mut columns: Vec<VecDeque<PlanCell>> = Vec::new();
    let mut left = CELLS_MAX + 1;
    for target in &plan.targets {
        let cells = matrix(&plan.matrix, &target.name).into_iter();
        let column: VecDeque<PlanCell> =
            cells.filter(|cell| !is_excluded(cell)).take(left).collect();
        left -= column.len();
        columns.push(column);
        if left == 0 {
            break;
        }
    }
    let mut cells = Vec::new();
    match plan.order {
        Order::Listed => columns.into_iter().for_each(|column| cells.extend(column)),
        Order::Interleave => {
            while columns.iter().any(|column| !column.is_empty()) {
                cells.extend(columns.iter_mut().filter_map(VecDeque::pop_front));
            }
        }
    }
    cells
}

/// All cells of a target, also those that the plan excludes. A matrix with more than [`CELLS_MAX`] is cut after one more.
pub(super) fn matrix(matrix: &Matrix, target: &str) -> Vec<PlanCell> {
    let blank = PlanCell { target: target.to_owned(), ..PlanCell::default() };
    let of_kind = |kind: &PlanKind| PlanCell { kind: *kind, ..blank.clone() };
    let mut cells: Vec<PlanCell> = matrix.kind.iter().map(of_kind).collect();
    let any = Axis::Any;
    expand(&mut cells, any, &matrix.model, |cell, model| cell.model = Some(model));
    expand(&mut cells, any, &matrix.quant, |cell, quant| cell.quant = Some(quant));
    expand(&mut cells, any, &matrix.backend, |cell, backend| cell.backend = Some(backend));
    let caps: Vec<String> = matrix.power_cap_w.iter().map(u32::to_string).collect();
    let setup = [(CREATOR, &matrix.creator), (POWER_CAP, &caps), (DRIVER, &matrix.driver)];
    let setup = setup.map(|(name, values)| (name.to_owned(), values.clone()));
    // These axes are stored as labels, where earlier plans had them, so that a cell keeps its key.
    let labels: BTreeMap<String, Vec<String>> = setup
        .into_iter()
        .chain(matrix.labels.clone())
        .filter(|(_, values)| !values.is_empty())
        .collect();
    for (name, values) in &labels {
        expand(&mut cells, any, values, |cell, value| {
            cell.labels.insert(name.clone(), value);
        });
    }
    let shapes = or(&matrix.shape, &SHAPES.map(str::to_owned));
    expand(&mut cells, Axis::Shape, &shapes, |cell, shape| cell.shape = Some(shape));
    expand_context(&mut cells, &matrix.context);
    let users = or(&matrix.concurrency, &CONCURRENCY);
    expand(&mut cells, Axis::Concurrency, &users, |cell, users| cell.concurrency = Some(users));
    // A cell of the kind `concurrency` measures one user alternately with its own number, so one user needs no cell.
    // A matrix that was cut keeps all its cells, so that it is refused as too large.
    if cells.len() <= CELLS_MAX {
        cells.retain(|cell| cell.kind != PlanKind::Concurrency || cell.concurrency != Some(1));
    }
    let thinking = or(&matrix.thinking, &[PlanThinking::AsIs]);
    expand(&mut cells, Axis::Thinking, &thinking, |cell, how| cell.thinking = Some(how));
    let cache = or(&matrix.cache, &[PlanCache::Cold]);
    expand(&mut cells, Axis::Cache, &cache, |cell, cache| cell.cache = Some(cache));
    for spoken in cells.iter_mut().filter(|cell| cell.kind.measures_speech()) {
        spoken.text.clone_from(&matrix.text);
    }
    expand_eval(&mut cells, matrix);
    expand(&mut cells, Axis::Sound, &matrix.format, |cell, format| cell.format = Some(format));
    expand(&mut cells, Axis::Sound, &matrix.voice, |cell, voice| cell.voice = Some(voice));
    cells
}

/// What evaluations ask, and how.
fn expand_eval(cells: &mut Vec<PlanCell>, matrix: &Matrix) {
    for eval in cells.iter_mut().filter(|cell| cell.kind == PlanKind::Eval) {
        eval.task.clone_from(&matrix.task);
        eval.items = matrix.items;
        eval.items_file.clone_from(&matrix.items_file);
    }
    expand(cells, Axis::Answer, &matrix.budget_tokens, |cell, tokens| {
        cell.budget_tokens = Some(tokens);
    });
    expand(cells, Axis::Answer, &matrix.temperature, |cell, value| {
        cell.temperature = Some(value);
    });
}

/// Evaluations keep the context of their target where the plan names none.
fn expand_context(cells: &mut Vec<PlanCell>, named: &[u32]) {
    let set = |cell: &mut PlanCell, tokens| cell.context = Some(tokens);
    expand(cells, Axis::Context, &or(named, &CONTEXT), set);
    expand(cells, Axis::ServerContext, named, set);
}

fn or<T: Clone>(said: &[T], usual: &[T]) -> Vec<T> {
    if said.is_empty() { usual.to_vec() } else { said.to_vec() }
}

/// Repeats each cell for every value, or keeps it if there are no values or its kind does not have the axis.
fn expand<T: Clone>(
    cells: &mut Vec<PlanCell>,
    axis: Axis,
    values: &[T],
    set: impl Fn(&mut PlanCell, T),
) {
    let with = |cell: &PlanCell| {
        if values.is_empty() || !cell.kind.has(axis) {
            return vec![cell.clone()];
        }
        let with = |value: &T| {
            let mut cell = cell.clone();
            set(&mut cell, value.clone());
            cell
        };
        values.iter().map(with).collect()
    };
    *cells = cells.iter().flat_map(with).take(CELLS_MAX + 1).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "\
schema: bench-plan/1
name: two
targets: [{name: a, url: \"http://a\"}, {name: b, url: \"http://b\"}]
matrix: {kind: [llm], shape: [short_short], concurrency: [1, 2], cache: [cold, cached]}
exclude: [{target: b, cache: cached}]
";

    fn names(plan: &str) -> Vec<String> {
        let plan = BenchPlan::parse("p", plan).expect("a plan");
        cells(&plan).iter().map(PlanCell::name).collect()
    }

    #[test]
    fn targets_take_turns_unless_the_order_is_listed() {
        let turns = [
            "a llm short_short × 1 user",
            "b llm short_short × 1 user",
            "a llm short_short × 1 user cached",
            "b llm short_short × 2 users",
            "a llm short_short × 2 users",
            "a llm short_short × 2 users cached",
        ];
        assert_eq!(names(PLAN), turns);
        let listed = names(&format!("{PLAN}order: listed\n"));
        assert_eq!(
            listed[3..5],
            ["a llm short_short × 2 users cached", "b llm short_short × 1 user"]
        );
    }

    #[test]
    fn labels_are_axes_that_are_filled_in() {
        let plan = PLAN.replace("cache: [cold, cached]", "labels: {power_cap_w: [\"15\", \"25\"]}");
        let plan = plan.replace("{target: b, cache: cached}", "{labels: {power_cap_w: \"25\"}}");
        let plan = BenchPlan::parse("p", &plan.replace("[1, 2]", "[1]")).expect("a plan");
        let cells = cells(&plan);
        let names: Vec<String> = cells.iter().map(PlanCell::name).collect();
        let at_15 = "llm short_short power_cap_w 15 × 1 user";
        assert_eq!(names, [format!("a {at_15}"), format!("b {at_15}")]);
        let command = "limit {power_cap_w} serve {model}";
        assert_eq!(PlanTarget::filled(command, &cells[0]), "limit 15 serve {model}");
    }

    #[test]
    fn creator_power_cap_and_driver_are_axes_with_the_keys_of_the_labels_before() {
        let axes = "creator: [ada], power_cap_w: [15, 25], driver: [\"580.95\"]";
        let labels =
            "labels: {creator: [ada], power_cap_w: [\"15\", \"25\"], driver: [\"580.95\"]}";
        let [axes, labels] = [axes, labels].map(|said| {
            let plan = PLAN.replace("cache: [cold, cached]", said).replace("[1, 2]", "[1]");
            let plan = plan.replace("{target: b, cache: cached}", "{target: b, power_cap_w: 25}");
            cells(&BenchPlan::parse("p", &plan).expect("a plan"))
        });
        assert_eq!(axes, labels);
        assert_eq!(axes.len(), 3, "15 and 25 W at a, 15 W at b");
        let filled = PlanTarget::filled("limit {power_cap_w} {creator}-{driver}", &axes[0]);
        assert_eq!(filled, "limit 15 ada-580.95");
        let bad = PLAN.replace("cache: [cold, cached]", "power_cap_w: [0]");
        let error = BenchPlan::parse("p", &bad).expect_err("no limit").to_string();
        assert!(error.contains("at least 1 W"), "{error}");
    }

    #[test]
    fn each_kind_has_its_own_axes() {
        let plan = "schema: bench-plan/1\nname: n\ntargets: [{name: a}]\n\
                    matrix: {kind: [sweep, concurrency, batch, tts, cold, voice], shape: [agentic], context: [512], concurrency: [1, 2],\n  \
                    text: [short, long], format: [pcm, mp3], voice: [ada]}\nexclude: [{concurrency: 2, format: pcm}]\n";
        let expected = [
            "a sweep 512 tokens",
            "a concurrency agentic × 2 users",
            "a batch agentic × 1 user",
            "a batch agentic × 2 users",
            "a tts pcm ada short long × 1 user",
            "a tts mp3 ada short long × 1 user",
            "a tts mp3 ada short long × 2 users",
            "a cold",
            "a voice × 1 user",
            "a voice × 2 users",
        ];
        assert_eq!(names(plan), expected);
    }

    #[test]
    fn evaluations_have_a_cell_for_each_budget_and_temperature() {
        let plan = "schema: bench-plan/1\nname: n\ntargets: [{name: a}]\n\
                    matrix: {kind: [eval, cold], budget_tokens: [500], temperature: [0, 0.7]}\n\
                    exclude: [{kind: cold, temperature: 0.7}]\n";
        let expected = [
            "a eval up to 500 tokens temperature 0",
            "a eval up to 500 tokens temperature 0.7",
            "a cold",
        ];
        assert_eq!(names(plan), expected);
        let without = plan.replace("kind: cold, ", "");
        assert_eq!(names(&without), [expected[0], expected[2]]);
        let cells = cells(&BenchPlan::parse("p", plan).expect("a plan"));
        let words = cells[1].words().join(" ");
        assert!(words.ends_with("--budget-tokens 500 --temperature 0.7"), "{words}");
    }

    #[test]
    fn evaluations_have_a_context_only_where_the_plan_names_one() {
        let plan = "schema: bench-plan/1\nname: n\ntargets: [{name: a}]\nmatrix: {kind: [eval]}\n";
        assert_eq!(names(plan), ["a eval"]);
        let named = plan.replace("[eval]", "[eval], context: [2048, 4096]");
        let expected = ["a eval 2048 tokens of context", "a eval 4096 tokens of context"];
        assert_eq!(names(&named), expected);
        let cells = cells(&BenchPlan::parse("p", &named).expect("a plan"));
        assert_eq!(cells[0].room(), Some(2048));
        assert!(!cells[0].words().contains(&"--context-tokens".to_owned()));
    }

    #[test]
    fn the_number_of_items_is_said_where_there_are_tasks() {
        let plan = "schema: bench-plan/1\nname: n\ntargets: [{name: a}]\n\
                    matrix: {kind: [eval], items: 5, items_file: [own.jsonl]}\n";
        let with_tasks = plan.replace("items: 5", "items: 5, task: [units]");
        for (plan, expected) in [(plan, false), (with_tasks.as_str(), true)] {
            let cells = cells(&BenchPlan::parse("p", plan).expect("a plan"));
            let words = cells[0].words();
            assert_eq!(words.contains(&"--items".to_owned()), expected, "{words:?}");
        }
    }
}
