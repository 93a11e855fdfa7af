//! What two measurements must have in common to be compared, and what follows from each difference.
//! The terminal, scripts and the page all use this one list.

use serde::Serialize;

use super::{Pairing, SampledRecord};
use crate::record::{Cache, Record, RecordKind, RunStatus, Stt};
use crate::terms::Metric;
use crate::transcription::is_english;

/// Longer values, such as checksums, are not shown.
const VALUE_CHARS_MAX: usize = 32;

/// One property of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Aspect {
    pub what: &'static str,
    /// None: unknown, or the property does not apply.
    pub value: Option<String>,
    pub if_different: IfDifferent,
}

/// What follows if two measurements differ in a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IfDifferent {
    /// Nothing is compared.
    #[serde(rename = "all")]
    RefuseAll,
    /// No figure that counts tokens is compared.
    #[serde(rename = "tokens")]
    RefuseTokens,
    /// Runs are not paired.
    #[serde(rename = "pairs")]
    RefusePairs,
    /// The report mentions it.
    Note,
}

/// All properties, in the order of a report.
pub fn aspects(record: &Record) -> Vec<Aspect> {
    use IfDifferent::{Note, RefuseAll, RefusePairs, RefuseTokens};
    let workload = &record.workload;
    let is_sweep = record.kind == RecordKind::CtxSweep;
    let prompt = workload.prompt_tokens.and_then(|tokens| tokens.target).filter(|_| is_sweep);
    // Other kinds ask at one temperature, and imported records do not say which.
    let temperature = workload.temperature.filter(|_| record.kind == RecordKind::Eval);
    let (tts, stt) = (record.tts.as_ref(), record.stt.as_ref());
    let all = [
        (RefuseAll, "kind", Some(record.kind.name().to_owned())),
        (RefuseAll, "shape", workload.shape.clone()),
        (RefuseAll, "version of the shape", text_of(workload.version)),
        (RefuseAll, "length of the prompt", text_of(prompt)),
        (RefuseAll, "longest answer", text_of(workload.max_tokens)),
        (RefuseAll, "temperature", text_of(temperature)),
        (RefuseAll, "number of users", text_of(workload.concurrency)),
        (RefuseAll, "rate of requests", text_of(workload.rate)),
        (RefuseAll, "arrival of requests", word(workload.arrival)),
        (RefuseAll, "cache", word(workload.cache)),
        (RefuseAll, "reasoning", word(workload.reasoning)),
        (RefuseAll, "text", tts.and_then(|tts| tts.text_sha256.clone())),
        (RefuseAll, "format of the sound", tts.and_then(|tts| tts.format.clone())),
        (RefuseAll, "corpus", stt.and_then(|stt| stt.corpus_sha256.clone())),
        (RefuseAll, "stream", text_of(stt.and_then(|stt| stt.stream))),
        (RefuseAll, "normaliser", stt.and_then(normaliser)),
        (RefuseTokens, "count of tokens", word(record.count_source)),
        (RefusePairs, "set of prompts", workload.prompts_sha256.clone()),
        (Note, "machine", Some(machine(record))),
        (Note, "voice", tts.and_then(|tts| tts.voice.clone())),
    ];
    all.map(|(if_different, what, value)| Aspect { what, value, if_different }).into()
}

/// The rules for the languages of the set. Those for other languages may have changed.
fn normaliser(stt: &Stt) -> Option<String> {
    let is_used = |rules: &&str| {
        let is_english_rule = rules.starts_with("english/");
        let mut codes = stt.languages.keys();
        stt.languages.is_empty() || codes.any(|code| is_english(code) == is_english_rule)
    };
    let used: Vec<&str> = stt.normaliser.as_ref()?.split(", ").filter(is_used).collect();
    Some(used.join(", "))
}

fn text_of<T: ToString>(value: Option<T>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// The value as in a record file, with spaces.
fn word<T: Serialize>(value: Option<T>) -> Option<String> {
    let value = serde_json::to_value(value?).ok()?;
    value.as_str().map(|word| word.replace('_', " "))
}

/// Why a record can be compared with no other.
pub fn why_not_comparable(record: &Record) -> Option<String> {
    if let Some(reason) = record.invalid_reasons.first() {
        return Some(format!("is not a valid measurement: {reason}"));
    }
    if record.status != RunStatus::Ok {
        return Some("did not complete".to_owned());
    }
    (record.workload.cache == Some(Cache::Mixed))
        .then(|| "mixed cached and uncached prompts".to_owned())
}

/// Whether a figure depends on who counted the tokens, server or client.
pub fn counts_tokens(metric: Metric) -> bool {
    metric.definition().unit.starts_with("tok") || matches!(metric, Metric::TpotMs | Metric::ItlMs)
}

/// The values that must be equal in two records of one cell.
pub(super) fn required_equal(record: &Record) -> impl Iterator<Item = Option<String>> {
    let required =
        aspects(record).into_iter().filter(|aspect| aspect.if_different == IfDifferent::RefuseAll);
    required.map(|aspect| aspect.value)
}

pub(super) fn is_same_machine(base: &Record, new: &Record) -> bool {
    machine(base) == machine(new)
}

/// The machine's id, or its hardware if the id is unknown.
fn machine(record: &Record) -> String {
    record.host.id_hash.clone().unwrap_or_else(|| record.hardware())
}

/// The differences between two sides.
#[derive(Debug, Default)]
pub(super) struct Differences {
    pub(super) refusals: Vec<String>,
    pub(super) marks: Vec<String>,
    /// Why figures that count tokens are left out.
    pub(super) counts_differ: Option<String>,
}

pub(super) fn differences(
    base: &[SampledRecord],
    new: &[SampledRecord],
    pairing: Pairing,
) -> Differences {
    let mut found = Differences::default();
    for side in [base, new] {
        for record in side {
            let reason = why_not_comparable(&record.record);
            let sentence = |reason| format!("{} {reason}", record.record.short_id());
            found.refusals.extend(reason.map(sentence));
        }
        found.refusals.extend(mixed(side));
    }
    let (Some(base), Some(new)) = (base.first(), new.first()) else {
        found.refusals.push("there are no records to compare".to_owned());
        return found;
    };
    for (a, b) in aspects(&base.record).into_iter().zip(aspects(&new.record)) {
        found.add(&a, &b);
    }
    found.refusals.extend(same_prompts(&base.record, &new.record, pairing));
    found.refusals.dedup();
    found
}

/// Why two runs with one seed must not be compared.
pub const SAME_PROMPTS: &str = "both runs sent the same prompts, and the server does not report what it had cached: measure again without --seed";

/// The second of two runs with one seed repeats the prompts of the first. If the server does not report what it had cached,
/// the cache alone may have made it faster.
fn same_prompts(base: &Record, new: &Record, pairing: Pairing) -> Option<String> {
    let is_same = pairing == Pairing::Unpaired && seed(base).is_some() && seed(base) == seed(new);
    (is_same && (is_cache_unknown(base) || is_cache_unknown(new))).then(|| SAME_PROMPTS.to_owned())
}

pub fn seed(record: &Record) -> Option<u64> {
    record.harness.as_ref().map(|harness| harness.seed)
}

/// Whether it is unknown that prompts meant to be new were not cached.
pub fn is_cache_unknown(record: &Record) -> bool {
    let workload = &record.workload;
    workload.cache == Some(Cache::Cold) && workload.cache_verified == Some(false)
}

impl Differences {
    fn add(&mut self, base: &Aspect, new: &Aspect) {
        let what = base.what;
        let sentence = match (&base.value, &new.value) {
            (a, b) if a == b => return,
            (Some(a), Some(b)) if is_long(a) || is_long(b) => format!("different {what}"),
            (Some(a), Some(b)) => format!("different {what}: {a} and {b}"),
            // An unknown set of prompts may be the same.
            _ if base.if_different == IfDifferent::RefusePairs => return,
            _ => return self.marks.push(format!("the {what} of one side is unknown")),
        };
        match base.if_different {
            IfDifferent::RefuseAll => self.refusals.push(sentence),
            IfDifferent::RefuseTokens => self.counts_differ = Some(sentence),
            // Only records with the same set of prompts are paired: see `pairing`.
            IfDifferent::RefusePairs => {}
            IfDifferent::Note => self.marks.push(sentence),
        }
    }
}

/// Probably a checksum.
fn is_long(value: &str) -> bool {
    value.chars().count() > VALUE_CHARS_MAX
}

/// Why several records are not one side.
fn mixed(side: &[SampledRecord]) -> Option<String> {
    let first = side.first()?;
    let alike = |record: &SampledRecord| {
        let (a, b) = (&first.record, &record.record);
        a.model.name == b.model.name
            && a.model.quant == b.model.quant
            && a.engine.name == b.engine.name
            && a.engine.version == b.engine.version
            && aspects(a)
                .into_iter()
                .zip(aspects(b))
                .all(|(a, b)| a == b || a.if_different == IfDifferent::RefusePairs)
    };
    let other = side.iter().find(|record| !alike(record))?;
    let ids = [first.record.short_id(), other.record.short_id()];
    Some(format!("{} and {} are on one side and measure different things", ids[0], ids[1]))
}
