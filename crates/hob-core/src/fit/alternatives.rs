//! What would be faster, would hold a longer context or would answer better than what was asked about: the same model in
//! other quants, and with other types of the cache.

use std::cmp::Reverse;

use super::{Assessment, KV_PAIRS, Model, Plan, Wish, assess};
use crate::footprint::KvTypes;
use crate::machine::Machine;

/// Less is not felt.
const FASTER: f64 = 1.1;
/// Speeds that lie as close as that are the same, and the better quant is taken.
const AS_FAST: f64 = 0.97;

/// In what it is more than what was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    Faster,
    Longer,
    Better,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    pub toward: Toward,
    pub quant: String,
    pub plan: Plan,
}

/// One way to run one variant.
struct Candidate<'a> {
    model: &'a Model,
    plan: Plan,
}

impl Candidate<'_> {
    /// Of all weights: variants of one model differ in nothing but how exactly these are stored.
    fn bytes(&self) -> u64 {
        self.model.shape.weights.bytes()
    }

    fn longest(&self) -> u32 {
        self.plan.longest.context_tokens.unwrap_or(0)
    }

    /// The most exact weights first, then the most exact cache.
    fn exactness(&self) -> (u64, Reverse<usize>) {
        let kv = KV_PAIRS.iter().position(|pair| *pair == self.plan.kv);
        (self.bytes(), Reverse(kv.unwrap_or(KV_PAIRS.len())))
    }
}

impl Toward {
    pub fn name(self) -> &'static str {
        match self {
            Toward::Faster => "faster",
            Toward::Longer => "longer",
            Toward::Better => "better",
        }
    }
}

/// At most one of each; none of what does not fit. `variants` are the same model in other quants.
pub fn alternatives(
    machine: &Machine,
    model: &Model,
    variants: &[Model],
    wish: &Wish,
    assessed: &Assessment,
) -> Vec<Alternative> {
    let pairs = wish.kv.map_or_else(|| KV_PAIRS.to_vec(), |kv| vec![kv]);
    let fitting = |model, kv: KvTypes| {
        let wish = Wish { kv: Some(kv), ..wish.clone() };
        let plan = assess(machine, model, &wish).ok()?.best().cloned()?;
        Some(Candidate { model, plan })
    };
    let variants = || std::iter::once(model).chain(variants);
    let all: Vec<Candidate<'_>> = variants()
        .flat_map(|model| pairs.iter().filter_map(move |kv| fitting(model, *kv)))
        .collect();
    let now = assessed.best().map(|plan| Candidate { model, plan: plan.clone() });
    let chosen = [
        (Toward::Faster, faster(&all, now.as_ref())),
        (Toward::Longer, longer(&all, now.as_ref())),
        (Toward::Better, better(&all, now.as_ref(), wish)),
    ];
    let said = |(toward, chosen): (Toward, Option<&Candidate<'_>>)| {
        let Candidate { model, plan } = chosen?;
        Some(Alternative { toward, quant: model.quant.clone(), plan: plan.clone() })
    };
    chosen.into_iter().filter_map(said).collect()
}

fn faster<'c, 'm>(
    all: &'c [Candidate<'m>],
    now: Option<&Candidate<'m>>,
) -> Option<&'c Candidate<'m>> {
    let floor = now.map_or(0.0, |now| now.plan.tok_s() * FASTER);
    let fastest = all.iter().map(|one| one.plan.tok_s()).fold(0.0, f64::max);
    let fast = all.iter().filter(|one| one.plan.tok_s() >= AS_FAST * fastest);
    fast.max_by_key(|one| one.exactness()).filter(|one| one.plan.tok_s() > floor)
}

fn longer<'c, 'm>(
    all: &'c [Candidate<'m>],
    now: Option<&Candidate<'m>>,
) -> Option<&'c Candidate<'m>> {
    let longest = all.iter().max_by_key(|one| (one.longest(), one.exactness()))?;
    (longest.longest() > now.map_or(0, Candidate::longest)).then_some(longest)
}

/// Fast enough, as far as somebody said what is.
fn better<'c, 'm>(
    all: &'c [Candidate<'m>],
    now: Option<&Candidate<'m>>,
    wish: &Wish,
) -> Option<&'c Candidate<'m>> {
    let floor = wish.tok_s_min.unwrap_or(0.0);
    let suits = all.iter().filter(|one| one.plan.tok_s() >= floor);
    let best = suits.max_by_key(|one| one.exactness())?;
    (best.bytes() > now.map_or(0, Candidate::bytes)).then_some(best)
}
