//! What `hob quantize` prints: the report on a chat model, and the distance of two models.
//! Figures stand with their standard errors.

use hob_bench::record::{EvalFigures, EvalScore};
use hob_eval::distance::{Deviation, DistanceReport};

use super::fit_after::FitAfter;
use super::{MB, QuantizeReport};
use crate::commands::bench::ShortEval;
use crate::printer::{count_text, table};

pub(super) fn report_text(report: &QuantizeReport) -> String {
    let QuantizeReport { source_bytes, target_bytes, source_tok_s, target_tok_s, .. } = report;
    let share = *target_bytes as f64 / (*source_bytes).max(1) as f64 * 100.0;
    let mut lines = vec![format!(
        "{} ({} → {}): {:.0} MB → {:.0} MB ({share:.0} %)\nsha256 {}",
        report.target,
        report.from,
        report.to,
        *source_bytes as f64 / MB,
        *target_bytes as f64 / MB,
        report.sha256
    )];
    if let Some((before, after)) = source_tok_s.zip(*target_tok_s) {
        let change = (after / before - 1.0) * 100.0;
        let predicted = report.fit.as_ref().and_then(|fit| fit.tok_s);
        let predicted = predicted.map_or(String::new(), |tok_s| {
            format!("; hob fit predicts {tok_s:.1} tok/s on the processor")
        });
        lines.push(format!(
            "speed {before:.1} → {after:.1} tok/s ({change:+.0} %), measured here{predicted}"
        ));
    }
    lines.extend(report.fit.as_ref().map(FitAfter::summary));
    lines.extend(report.distance.as_ref().map(distance_text));
    lines.extend(report.eval.as_ref().map(score_text));
    lines.push(format!("try it: hob chat -m {}", report.target));
    lines.join("\n")
}

/// The correct answers of both, and what the difference rests on.
fn score_text(eval: &ShortEval) -> String {
    let shown = |figures: &EvalFigures| {
        let EvalScore { n, accuracy, accuracy_ci95, .. } = &figures.overall;
        let percent = |share: f64| format!("{:.0}", share * 100.0);
        let interval = accuracy_ci95.map_or(String::new(), |[low, high]| {
            format!(" ({} to {})", percent(low), percent(high))
        });
        accuracy.map(|share| format!("{} %{interval} of {}", percent(share), count_text(n, "item")))
    };
    let [source, target] = [&eval.source, &eval.target]
        .map(|figures| figures.as_ref().and_then(shown).unwrap_or_else(|| "none".to_owned()));
    let sentences = eval.sentences.join("\n");
    format!("correct {source} → {target}\n{sentences}")
}

pub(super) fn distance_text(found: &DistanceReport) -> String {
    let deviation = |name: &str, shown: Deviation, digits: usize| {
        let error = shown.error.map_or(String::new(), |error| format!(" ± {error:.digits$}"));
        (name.to_owned(), format!("{:.digits$}{error}", shown.value))
    };
    let percent = |shown: Deviation| Deviation {
        value: shown.value * 100.0,
        error: shown.error.map(|error| error * 100.0),
    };
    let (median, max) = (found.divergence_median, found.divergence_max);
    let (p99, p99_9) = (found.divergence_p99, found.divergence_p99_9);
    let rows = [
        deviation("perplexity of the reference", found.reference_ppl, 3),
        deviation("perplexity", found.quant_ppl, 3),
        deviation("ln(PPL / PPL of the reference)", found.ln_ppl_ratio, 5),
        deviation("KL divergence", found.divergence, 5),
        (
            "  median, 99 %, 99.9 %, maximum".to_owned(),
            format!("{median:.5}, {p99:.4}, {p99_9:.4}, {max:.3}"),
        ),
        deviation(
            "probability of the right token, RMS change, %",
            percent(found.probability_difference_rms),
            2,
        ),
        deviation("same most likely token, %", percent(found.same_top), 2),
    ];
    let mut table = table([format!("distance on {} tokens", found.tokens), String::new()]);
    for (name, value) in rows {
        table.add_row([name, value]);
    }
    table.trim_fmt()
}
