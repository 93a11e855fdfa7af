//! What is rendered has the names, types and labels of the table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hob_core::scripted::{FixedChat, FixedTranscript};
use hob_core::task::{Chat, Transcription};
use hob_core::{Admission, FailedAttempt, RegisteredModel};

use super::*;

/// Labels that Prometheus's format adds to histograms.
const BUCKET: &str = "le";

/// The metrics of a text in Prometheus's format: name, type, and the labels of all samples.
fn metrics_of(text: &str) -> BTreeMap<&str, (&str, BTreeSet<&str>)> {
    let mut found: BTreeMap<&str, (&str, BTreeSet<&str>)> = BTreeMap::new();
    let mut last = "";
    for line in text.lines() {
        if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            (found.entry(name).or_default().0, last) = (kind, name);
        } else if let Some((_, labels)) = line.split_once('{')
            && !line.starts_with('#')
        {
            let labels =
                labels.split("\",").filter_map(|label| label.split_once('=').map(|(name, _)| name));
            found.entry(last).or_default().1.extend(labels.filter(|label| *label != BUCKET));
        }
    }
    found
}

#[test]
fn what_is_rendered_is_in_the_table() {
    let metrics = Metrics::new();
    let moment = Duration::from_millis(1);
    metrics.request("/x", 200);
    metrics.key_refused("k", "rate");
    metrics.first_audio("m", moment);
    metrics.speech_answer("m", Outcome::Complete, 1.0);
    metrics.first_token("m", moment);
    metrics.chat_answer("m", Outcome::Complete, &Usage::default(), GuessedTokens::default());
    metrics.transcript("m", Outcome::Complete, 1.0);
    let attempt = |target: &str| FailedAttempt {
        target: target.to_owned(),
        kind: "overloaded",
        message: String::new(),
        took: moment,
    };
    let trace = TraceData {
        failed: vec![attempt("a"), attempt("a"), attempt("b")],
        repaired: vec!["usage"],
        ..TraceData::default()
    };
    metrics.fallbacks("alias", &trace);
    metrics.turn_stage("stt", Duration::from_millis(120));
    let mut registry = Registry::default();
    let chat = Arc::new(FixedChat::default());
    registry.add(RegisteredModel::<Chat>::new("c", chat, Admission::new(1, 1.0)));
    let transcript = Arc::new(FixedTranscript);
    registry.add(RegisteredModel::<Transcription>::new("t", transcript, Admission::new(1, 1.0)));
    let text = metrics.render(&registry, None);
    let rendered = metrics_of(&text);
    for (name, (kind, labels)) in &rendered {
        let metric = METRICS.iter().find(|metric| metric.name == *name);
        let metric = metric.unwrap_or_else(|| panic!("{name} is not in the table"));
        assert_eq!(*kind, metric.kind.name(), "{name}");
        assert_eq!(*labels, metric.labels.iter().copied().collect(), "{name}");
        assert!(text.contains(&format!("# HELP {name} {}", metric.meaning)), "{name}");
    }
    // Speech's gauges are those of the other kinds, and a target needs an upstream.
    let missing =
        METRICS.iter().map(|metric| metric.name).filter(|name| !rendered.contains_key(name));
    assert_eq!(missing.collect::<Vec<_>>(), [IN_FLIGHT, IN_FLIGHT_MAX, BACKLOG, COOL_DOWN]);
}

#[test]
fn a_model_that_has_left_the_configuration_has_no_gauges() {
    let metrics = Metrics::new();
    let mut before = Registry::default();
    let chat = Arc::new(FixedChat::default());
    before.add(RegisteredModel::<Chat>::new("gone", chat, Admission::new(1, 1.0)));
    assert!(metrics.render(&before, None).contains("gone"));
    let text = metrics.render(&Registry::default(), None);
    assert!(!text.contains("gone"), "{text}");
}

#[test]
fn guessed_tokens_are_sums_over_answers() {
    let metrics = Metrics::new();
    let answer = |model: &str, drafted: u32, accepted: u32| {
        let guessed = GuessedTokens { drafted, accepted };
        metrics.chat_answer(model, Outcome::Complete, &Usage::default(), guessed);
    };
    answer("m", 84, 71);
    answer("m", 6, 0);
    answer("other", 0, 0);
    let text = metrics.render(&Registry::default(), None);
    for line in [
        r#"hob_spec_decode_num_draft_tokens_total{model="m"} 90"#,
        r#"hob_spec_decode_num_accepted_tokens_total{model="m"} 71"#,
        r#"hob_spec_decode_num_draft_tokens_total{model="other"} 0"#,
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
}
