//! Finds the mistakes of a plan that its types allow: unknown names, limits, and values that no server would get.
//! A plan is checked as a whole before anything is measured, so no campaign breaks off at its last cell.

use std::collections::BTreeSet;

use hob_eval::report::UseBounds;

use super::cells::{CELLS_MAX, PlanCell, cells, matrix};
use super::file::{BenchPlan, Matrix, PLAN_SCHEMA, PlanApi, PlanKind, PlanRuns, PlanTarget};
use crate::chat::Shape;
use crate::drive::CONNECTIONS_MAX;
use crate::eval::{TEMPERATURE_MAX, TaskName};
use crate::record::{CREATOR, DRIVER, POWER_CAP};
use crate::speech::Text;
use crate::timeline::SoundFormat;

impl BenchPlan {
    /// The first mistake, and a word of the line that has it.
    pub(super) fn flaw(&self) -> Option<(&str, String)> {
        if self.schema != PLAN_SCHEMA {
            let reason = format!("the schema is {} (expected {PLAN_SCHEMA})", self.schema);
            return Some(("schema", reason));
        }
        if self.targets.is_empty() {
            return Some(("targets", "there is no target".to_owned()));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = self.targets.iter().find(|target| !names.insert(&target.name)) {
            return Some((&twice.name, format!("two targets are called {}", twice.name)));
        }
        if let Some(target) = self.targets.iter().find(|t| t.url.is_none() && t.launch.is_some()) {
            let reason = format!("{} has `launch` but no `url`", target.name);
            return Some((&target.name, reason));
        }
        let excluded = self.exclude.iter().filter_map(|exclude| exclude.target.as_ref());
        if let Some(unknown) = excluded.into_iter().find(|name| !names.contains(name)) {
            return Some((unknown, format!("no target is called {unknown}")));
        }
        let PlanRuns { min, max, server_starts, .. } = self.runs;
        if min == 0 || max < min || server_starts == 0 {
            let reason =
                "min and server_starts must be at least 1, and max at least min".to_owned();
            return Some(("runs", reason));
        }
        if self.budget.answer_s == 0 {
            return Some(("budget", "answer_s must be at least 1".to_owned()));
        }
        let UseBounds { interactive_ttfv_ms, interactive_total_ms, voice_ttfv_ms, voice_words } =
            self.bounds;
        let limits =
            [interactive_ttfv_ms, interactive_total_ms, voice_ttfv_ms, f64::from(voice_words)];
        if !limits.iter().all(|limit| limit.is_finite() && *limit > 0.0) {
            return Some(("bounds", "each bound must be above 0".to_owned()));
        }
        if let Some(reason) = self.matrix.flaw() {
            return Some(("matrix", reason));
        }
        if matrix(&self.matrix, "").len() > CELLS_MAX {
            let reason = format!("the matrix has more than {CELLS_MAX} cells for each target");
            return Some(("matrix", reason));
        }
        let cells = cells(self);
        if let Some(flaw) = self.unused_axis(&cells) {
            return Some(flaw);
        }
        match cells.len() {
            0 => Some(("matrix", "the plan has no cells".to_owned())),
            count if count > CELLS_MAX => {
                Some(("matrix", format!("the plan has more than {CELLS_MAX} cells")))
            }
            _ => None,
        }
    }

    /// A target that does not get a value of a cell, so that something else would be measured under its name.
    fn unused_axis(&self, cells: &[PlanCell]) -> Option<(&str, String)> {
        self.targets.iter().find_map(|target| {
            let own: Vec<&PlanCell> =
                cells.iter().filter(|cell| cell.target == target.name).collect();
            let models: BTreeSet<_> = own.iter().map(|cell| &cell.model).collect();
            let reason = own.iter().find_map(|cell| target.unused_axis(cell, models.len()))?;
            Some((target.name.as_str(), reason))
        })
    }
}

impl PlanTarget {
    fn unused_axis(&self, cell: &PlanCell, models: usize) -> Option<String> {
        let name = &self.name;
        let can_take_context = match &self.launch {
            Some(launch) => launch.contains("{ctx}"),
            None => self.url.is_none(),
        };
        // The name of a hob's model has the quant unless the plan names the model itself.
        let is_hob = self.url.is_none() || self.api == PlanApi::Hob;
        let has_usual_name = is_hob && self.model.is_none() && cell.model.is_some();
        let texts = [&self.url, &self.model, &self.launch, &self.model_file];
        let is_filled_in = |axis: &str| {
            texts.into_iter().flatten().any(|text| text.contains(&format!("{{{axis}}}")))
        };
        let lacks_model = models > 1 && self.model.is_some() && !is_filled_in("model");
        let lacks_quant = cell.quant.is_some() && !has_usual_name && !is_filled_in("quant");
        if lacks_model || lacks_quant {
            let axis = if lacks_model { "model" } else { "quant" };
            return Some(format!(
                "{name} does not get the {axis}: put {{{axis}}} into its `model`, `launch`, `url` or `model_file`"
            ));
        }
        let has_context = cell.kind == PlanKind::Eval && cell.context.is_some();
        (has_context && !can_take_context).then(|| {
            format!("{name} is not started with a context: put {{ctx}} into its `launch`, or leave out `context`")
        })
    }
}

impl Matrix {
    fn flaw(&self) -> Option<String> {
        if self.kind.is_empty() {
            let known = PlanKind::ALL.map(PlanKind::name).join(", ");
            return Some(format!("kind is empty (expected some of {known})"));
        }
        if self.context.contains(&0) {
            return Some("a context of 0 tokens is not possible".to_owned());
        }
        if let Some(error) = self.task.iter().find_map(|name| TaskName::parse(name).err()) {
            return Some(error.to_string());
        }
        if self.items == Some(0) || self.budget_tokens.contains(&0) {
            return Some("0 items or a budget of 0 tokens are not possible".to_owned());
        }
        if !self.temperature.iter().all(|value| (0.0..=TEMPERATURE_MAX).contains(value)) {
            return Some(format!("each temperature must be 0 to {TEMPERATURE_MAX}"));
        }
        let possible = 1..=CONNECTIONS_MAX;
        if let Some(users) = self.concurrency.iter().find(|n| !possible.contains(&(**n as usize))) {
            return Some(format!(
                "a concurrency of {users} is not possible (expected 1 to {CONNECTIONS_MAX} users)"
            ));
        }
        let taken = |name: &&String| ["model", "quant", "backend", "ctx"].contains(&name.as_str());
        if let Some(name) = self.labels.keys().find(taken) {
            return Some(format!("a label cannot be called {name}: that is an axis"));
        }
        if self.power_cap_w.contains(&0) {
            return Some("power_cap_w is 0; a power limit is at least 1 W".to_owned());
        }
        let twice = |name: &&&str| self.labels.contains_key(**name);
        let axes = [
            (CREATOR, self.creator.is_empty()),
            (POWER_CAP, self.power_cap_w.is_empty()),
            (DRIVER, self.driver.is_empty()),
        ];
        let used = axes.iter().filter(|(_, is_empty)| !is_empty).map(|(name, _)| name);
        if let Some(name) = used.clone().find(twice) {
            return Some(format!("{name} is both an axis and a label"));
        }
        if let Some((name, _)) = self.labels.iter().find(|(_, values)| values.is_empty()) {
            return Some(format!("the label {name} has no value"));
        }
        let shape = unknown("shape", &self.shape, |name| Shape::by_name(name).is_some());
        let text = unknown("text", &self.text, |name| Text::by_name(name).is_some());
        let is_format = |name: &str| SoundFormat::by_name(name).is_some();
        shape.or(text).or(unknown("format of sound", &self.format, is_format))
    }
}

/// The error for the first unknown name.
fn unknown(what: &str, names: &[String], is_known: impl Fn(&str) -> bool) -> Option<String> {
    let unknown = names.iter().find(|name| !is_known(name));
    unknown.map(|name| format!("no {what} is called {name}"))
}
