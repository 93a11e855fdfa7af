//! The table of one comparison.
//! Percent is relative to the base: more milliseconds are slower, more tokens per second are faster.

use hob_bench::compare::{ComparedMetric, Comparison, MetricVerdict};
use hob_bench::display;

use super::tables::NOTHING;
use crate::printer::table;

/// Both sides, how they were measured, and every figure.
pub(crate) fn comparison_text(comparison: &Comparison) -> String {
    let Comparison { base, new, pairing, refusals, marks, figures } = comparison;
    let mut lines = vec![format!("base  {}", base.name()), format!("new   {}", new.name())];
    if refusals.is_empty() {
        lines.push(pairing.banner().to_owned());
    }
    lines.extend(refusals.iter().map(|reason| format!("refused: {reason}")));
    lines.extend(marks.iter().map(|mark| format!("note: {mark}")));
    if !figures.is_empty() {
        lines.push(format!("\n{}", figures_table(figures)));
    }
    lines.extend(undecided(figures));
    lines.join("\n")
}

fn figures_table(figures: &[ComparedMetric]) -> String {
    let mut table =
        table(["figure", "base", "new", "change", "95 % interval", "matters from", "finding"]);
    for figure in figures {
        let definition = figure.metric.definition();
        let median = |value: Option<f64>| {
            value.map_or_else(|| NOTHING.to_owned(), |value| display::figure(value, definition))
        };
        let change = figure.change_pct.map_or_else(|| NOTHING.to_owned(), percent);
        let interval = figure.change_ci95_pct.map_or_else(
            || NOTHING.to_owned(),
            |[low, high]| format!("{} to {}", percent(low), percent(high)),
        );
        let least = format!("{} %", display::number(figure.threshold_pct));
        let medians = [median(figure.base), median(figure.new)];
        let [base, new] = medians;
        table.add_row([definition.title, &base, &new, &change, &interval, &least, figure.finding]);
    }
    table.trim_fmt()
}

fn percent(value: f64) -> String {
    format!("{value:+.1} %")
}

/// Each reason once, with its figures.
fn undecided(figures: &[ComparedMetric]) -> Vec<String> {
    let mut by_reason: Vec<(&String, Vec<&str>)> = Vec::new();
    for figure in figures.iter().filter(|figure| figure.verdict == MetricVerdict::Inconclusive) {
        let Some(reason) = &figure.reason else { continue };
        let title = figure.metric.definition().title;
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, titles)) => titles.push(title),
            None => by_reason.push((reason, vec![title])),
        }
    }
    by_reason.iter().map(|(reason, titles)| format!("{}: {reason}", titles.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use hob_bench::compare::{CompareOptions, Pairing, Rule, compare_pairs};
    use hob_bench::terms::Metric;

    use super::*;

    #[test]
    fn a_reason_is_printed_once_with_all_its_figures() {
        let rule = Rule::for_pairing(Pairing::Paired, &CompareOptions::default());
        let few = [Metric::TtftMs, Metric::TpotMs]
            .map(|metric| compare_pairs(metric, &[(1.0, 2.0)], &rule));
        let [line] = &undecided(&few)[..] else { panic!("one line") };
        let titles =
            format!("{}, {}: ", few[0].metric.definition().title, few[1].metric.definition().title);
        assert!(line.starts_with(&titles), "{line}");
    }
}
