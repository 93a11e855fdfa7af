//! What two measurements have to share to be comparable, and what has to be said where they do not.
//! One list for the terminal, the gate and the page: none of them knows a rule of its own.

use serde::Serialize;

use super::{Kept, Pairing};
use crate::record::{Cache, Kind, Record, Status};
use crate::site::hardware;
use crate::terms::Metric;

/// Longer values are not repeated.
const VALUE_CHARS_MAX: usize = 32;

/// Something that is the same of both, or is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Aspect {
    pub what: &'static str,
    /// None: nobody knows, or there is none.
    pub value: Option<String>,
    pub holds: Holds,
}

/// What follows where it is not the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// Nothing is compared.
    All,
    /// No figure that counts tokens is.
    Tokens,
    /// Blocks are no pairs.
    Pairs,
    /// It is said beside the figures.
    Note,
}

/// In the order in which a reader is told.
pub fn aspects(record: &Record) -> Vec<Aspect> {
    let workload = &record.workload;
    let is_sweep = record.kind == Kind::CtxSweep;
    let prompt = workload.prompt_tokens.and_then(|tokens| tokens.target).filter(|_| is_sweep);
    let (tts, stt) = (record.tts.as_ref(), record.stt.as_ref());
    let text = |value: Option<&String>| value.cloned();
    let all = [
        ("kind", Some(record.kind.name().to_owned())),
        ("shape", text(workload.shape.as_ref())),
        ("version of the shape", said(workload.version)),
        ("length of the prompt", said(prompt)),
        ("longest answer", said(workload.max_tokens)),
        ("number of users", said(workload.concurrency)),
        ("rate of requests", said(workload.rate)),
        ("cache", word(workload.cache)),
        ("reasoning", word(workload.reasoning)),
        ("text", text(tts.and_then(|tts| tts.text_sha256.as_ref()))),
        ("format of the sound", text(tts.and_then(|tts| tts.format.as_ref()))),
        ("corpus", text(stt.and_then(|stt| stt.corpus_sha256.as_ref()))),
        ("normaliser", text(stt.and_then(|stt| stt.normaliser.as_ref()))),
    ];
    let mut aspects: Vec<Aspect> =
        all.into_iter().map(|(what, value)| Aspect { what, value, holds: Holds::All }).collect();
    let machine = Some(machine(record));
    let voice = text(tts.and_then(|tts| tts.voice.as_ref()));
    aspects.extend([
        Aspect { what: "count of tokens", value: word(record.count_source), holds: Holds::Tokens },
        Aspect {
            what: "set of prompts",
            value: workload.prompts_sha256.clone(),
            holds: Holds::Pairs,
        },
        Aspect { what: "machine", value: machine, holds: Holds::Note },
        Aspect { what: "voice", value: voice, holds: Holds::Note },
    ]);
    aspects
}

fn said<T: ToString>(value: Option<T>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// As a file writes it.
fn word<T: Serialize>(value: Option<T>) -> Option<String> {
    let value = serde_json::to_value(value?).ok()?;
    value.as_str().map(|word| word.replace('_', " "))
}

/// Why a record can be compared with nothing at all.
pub fn unfit(record: &Record) -> Option<String> {
    if let Some(reason) = record.invalid_reasons.first() {
        return Some(format!("is no measurement: {reason}"));
    }
    if record.status != Status::Ok {
        return Some("did not end well".to_owned());
    }
    (record.workload.cache == Some(Cache::Mixed))
        .then(|| "had prompts of which some were cached and some were not".to_owned())
}

/// Whether a figure depends on who counted the tokens.
pub fn counts_tokens(metric: Metric) -> bool {
    metric.term().unit.starts_with("tok") || matches!(metric, Metric::TpotMs | Metric::ItlMs)
}

/// What has to be the same of two cells.
pub(super) fn refusing(record: &Record) -> impl Iterator<Item = Option<String>> {
    let holding = aspects(record).into_iter().filter(|aspect| aspect.holds == Holds::All);
    holding.map(|aspect| aspect.value)
}

pub(super) fn is_same_machine(base: &Record, new: &Record) -> bool {
    machine(base) == machine(new)
}

/// By its id, or else by what it is made of.
fn machine(record: &Record) -> String {
    record.host.id_hash.clone().unwrap_or_else(|| hardware(record))
}

/// What keeps two sides apart.
#[derive(Debug, Default)]
pub(super) struct Differences {
    pub(super) refusals: Vec<String>,
    pub(super) marks: Vec<String>,
    /// Why figures of tokens are left out.
    pub(super) counts_differ: Option<String>,
}

pub(super) fn differences(base: &[Kept], new: &[Kept], pairing: Pairing) -> Differences {
    let mut found = Differences::default();
    for side in [base, new] {
        for kept in side {
            let reason = unfit(&kept.record);
            let sentence = |reason| format!("{} {reason}", kept.record.short_id());
            found.refusals.extend(reason.map(sentence));
        }
        found.refusals.extend(mixed(side));
    }
    let (Some(base), Some(new)) = (base.first(), new.first()) else {
        found.refusals.push("there is nothing to compare".to_owned());
        return found;
    };
    for (a, b) in aspects(&base.record).into_iter().zip(aspects(&new.record)) {
        found.hold(&a, &b, pairing);
    }
    found.refusals.extend(asked_before(&base.record, &new.record, pairing));
    found.refusals.dedup();
    found
}

/// Why two runs with one seed are no comparison.
pub const ASKED_BEFORE: &str = "both runs asked the same prompts, and the server does not tell what it had cached: measure again without --seed";

/// The second of two runs with one seed asks what the first asked. Where the server does not tell what it had cached,
/// that alone may have made it faster.
fn asked_before(base: &Record, new: &Record, pairing: Pairing) -> Option<String> {
    let is_same = pairing == Pairing::Unpaired && seed(base).is_some() && seed(base) == seed(new);
    (is_same && (is_untold(base) || is_untold(new))).then(|| ASKED_BEFORE.to_owned())
}

pub fn seed(record: &Record) -> Option<u64> {
    record.harness.as_ref().map(|harness| harness.seed)
}

/// Whether nothing proves that prompts which should be new were new.
pub fn is_untold(record: &Record) -> bool {
    let workload = &record.workload;
    workload.cache == Some(Cache::Cold) && workload.cache_verified == Some(false)
}

impl Differences {
    fn hold(&mut self, base: &Aspect, new: &Aspect, pairing: Pairing) {
        let what = base.what;
        let sentence = match (&base.value, &new.value) {
            (a, b) if a == b => return,
            (Some(a), Some(b)) if is_long(a) || is_long(b) => format!("another {what}"),
            (Some(a), Some(b)) => format!("another {what}: {a} and {b}"),
            // Nobody knows that it differs.
            _ if base.holds == Holds::Pairs => return,
            _ => return self.marks.push(format!("the {what} of one of them is not known")),
        };
        match base.holds {
            Holds::All => self.refusals.push(sentence),
            Holds::Tokens => self.counts_differ = Some(sentence),
            Holds::Pairs if pairing == Pairing::Paired => self.refusals.push(sentence),
            Holds::Pairs => {}
            Holds::Note => self.marks.push(sentence),
        }
    }
}

/// A checksum, which tells a reader nothing.
fn is_long(value: &str) -> bool {
    value.chars().count() > VALUE_CHARS_MAX
}

/// Several records are one side only if they are of one thing.
fn mixed(side: &[Kept]) -> Option<String> {
    let first = side.first()?;
    let alike = |kept: &Kept| {
        let (a, b) = (&first.record, &kept.record);
        a.model.name == b.model.name
            && a.model.quant == b.model.quant
            && a.engine.name == b.engine.name
            && a.engine.version == b.engine.version
            && aspects(a)
                .into_iter()
                .zip(aspects(b))
                .all(|(a, b)| a == b || a.holds == Holds::Pairs)
    };
    let other = side.iter().find(|kept| !alike(kept))?;
    let ids = [first.record.short_id(), other.record.short_id()];
    Some(format!("{} and {} are not of one thing, and stand on one side", ids[0], ids[1]))
}
