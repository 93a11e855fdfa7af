//! The same model in other quants or with other KV types, if that is faster, has room for a longer context, or is more exact.
//! A variant is named only if it fits.

use std::cmp::Reverse;

use super::{Assessment, Engine, FitOptions, KV_PAIRS, Model, Plan, assess};
use crate::enum_table;
use crate::footprint::KvTypes;
use crate::machine::Machine;

/// A variant counts as faster if its speed is more than this many times that of the assessed plan.
const FASTER: f64 = 1.1;
/// A variant counts as longer if its longest context is more than this many times that of the assessed plan.
const LONGER: f64 = 1.1;
/// Reading speed, tokens per second. A more exact variant must be at least as fast as this, or as the assessed plan.
const READING_TOK_S: f64 = 10.0;
/// Bits per weight below which answers suffer. Such a variant is named only if no other fits.
const GOOD_BITS: f64 = 4.2;
/// Speeds within this factor count as equal; then the more exact quant wins.
const AS_FAST: f64 = 0.97;

enum_table! {
    /// What the alternative improves.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Toward: name {
        Faster = "faster",
        /// A longer context fits.
        Longer = "longer",
        /// The weights are more exact.
        Better = "better",
        /// The model as requested does not fit, and this does.
        Fits = "fits",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    pub toward: Toward,
    pub quant: String,
    pub plan: Plan,
}

/// One variant with one of its plans.
struct Candidate<'a> {
    model: &'a Model,
    plan: Plan,
}

impl Candidate<'_> {
    /// Bytes of all weights. Variants of one model differ only in how exactly weights are stored.
    fn bytes(&self) -> u64 {
        self.model.shape.weights.bytes()
    }

    fn longest(&self) -> u32 {
        self.plan.longest.context_tokens.unwrap_or(0)
    }

    /// Sort key: the most exact weights first, then the most exact cache.
    fn exactness(&self) -> (u64, Reverse<usize>) {
        let kv = KV_PAIRS.iter().position(|pair| *pair == self.plan.kv);
        (self.bytes(), Reverse(kv.unwrap_or(KV_PAIRS.len())))
    }
}

/// Finds at most one alternative of each kind, and only ones that fit. If the model itself does not fit, it is one
/// alternative: the most exact one.
/// `variants` are the same model in other quants. The KV types of `options` are ignored.
pub fn alternatives(
    machine: &Machine,
    model: &Model,
    variants: &[Model],
    options: &FitOptions,
    assessed: &Assessment,
) -> Vec<Alternative> {
    let plans = |model, kv: KvTypes| {
        let engine = options.engine.or_else(|| same_engine(model, assessed));
        let options = FitOptions { kv: Some(kv), engine, ..options.clone() };
        let plans = assess(machine, model, &options).map_or_else(|_| Vec::new(), |all| all.plans);
        plans.into_iter().filter(Plan::fits).map(move |plan| Candidate { model, plan })
    };
    let in_pairs = |model| KV_PAIRS.into_iter().flat_map(|kv| plans(model, kv)).collect::<Vec<_>>();
    let (good, poor): (Vec<&Model>, Vec<&Model>) = variants.iter().partition(|one| is_good(one));
    let mut all: Vec<Candidate<'_>> = [model].into_iter().chain(good).flat_map(in_pairs).collect();
    if all.is_empty() {
        all = poor.into_iter().flat_map(in_pairs).collect();
    }
    let now = assessed.best().map(|plan| Candidate { model, plan: plan.clone() });
    let best = better(&all, now.as_ref(), options);
    let chosen = match now.is_some() {
        false => vec![(Toward::Fits, best)],
        true => vec![
            (Toward::Faster, faster(&all, now.as_ref())),
            (Toward::Longer, longer(&all, now.as_ref())),
            (Toward::Better, best),
        ],
    };
    let said = |(toward, chosen): (Toward, Option<&Candidate<'_>>)| {
        let Candidate { model, plan } = chosen?;
        Some(Alternative { toward, quant: model.quant.clone(), plan: plan.clone() })
    };
    chosen.into_iter().filter_map(said).collect()
}

/// The engine of the assessed plan, if it reads the variant; `None` lets any engine run it. So no variant is named only
/// because another engine is faster.
fn same_engine(variant: &Model, assessed: &Assessment) -> Option<Engine> {
    let engine = assessed.plans.first()?.engine;
    variant.format.engines().contains(&engine).then_some(engine)
}

fn is_good(model: &Model) -> bool {
    model.shape.weights.text_bits().is_none_or(|bits| bits >= GOOD_BITS)
}

/// The most exact candidate among those about as fast as the fastest.
fn fastest<'c, 'm>(
    all: impl Iterator<Item = &'c Candidate<'m>> + Clone,
) -> Option<&'c Candidate<'m>> {
    let fastest = all.clone().map(|one| one.plan.tok_s()).fold(0.0, f64::max);
    all.filter(|one| one.plan.tok_s() >= AS_FAST * fastest).max_by_key(|one| one.exactness())
}

fn faster<'c, 'm>(
    all: &'c [Candidate<'m>],
    now: Option<&Candidate<'m>>,
) -> Option<&'c Candidate<'m>> {
    let floor = now.map_or(0.0, |now| now.plan.tok_s() * FASTER);
    fastest(all.iter()).filter(|one| one.plan.tok_s() > floor)
}

fn longer<'c, 'm>(
    all: &'c [Candidate<'m>],
    now: Option<&Candidate<'m>>,
) -> Option<&'c Candidate<'m>> {
    let longest = all.iter().map(Candidate::longest).max()?;
    let floor = LONGER * f64::from(now.map_or(0, Candidate::longest));
    let as_long = all.iter().filter(|one| one.longest() == longest);
    fastest(as_long).filter(|_| f64::from(longest) > floor)
}

/// A more exact variant that is fast enough: as fast as requested, or as people read.
fn better<'c, 'm>(
    all: &'c [Candidate<'m>],
    now: Option<&Candidate<'m>>,
    options: &FitOptions,
) -> Option<&'c Candidate<'m>> {
    let usual = now.map_or(0.0, |now| now.plan.tok_s().min(READING_TOK_S));
    let floor = options.tok_s_min.unwrap_or(usual);
    let suits = all.iter().filter(|one| one.plan.tok_s() >= floor);
    let best = suits.max_by(|one, other| {
        let paces = one.plan.tok_s().total_cmp(&other.plan.tok_s());
        one.exactness().cmp(&other.exactness()).then(paces)
    })?;
    (best.bytes() > now.map_or(0, Candidate::bytes)).then_some(best)
}
