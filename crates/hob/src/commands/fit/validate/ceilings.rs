//! Published longest contexts, compared with the computed ones.
//! A page is 256 tokens, which engines allocate at a time.

use hob_bench::record::{Record, RecordKind};
use hob_core::fit::{ContextLimit, FitOptions, assess};
use hob_core::footprint::{KvType, KvTypes};
use serde::Serialize;

use crate::published::{engine, machine, model};

const PAGE_TOKENS: i64 = 256;

#[derive(Clone, Debug, Serialize)]
pub(super) struct Ceiling {
    pub(super) machine: String,
    pub(super) what: String,
    pub(super) measured: u64,
    pub(super) predicted: Option<u32>,
    pub(super) pages_off: Option<i64>,
}

/// Also returns what cannot be predicted, and why.
pub(super) fn ceilings(records: &[Record]) -> (Vec<Ceiling>, Vec<String>) {
    let (mut predicted, mut unpredicted) = (Vec::new(), Vec::new());
    for record in records.iter().filter(|record| record.kind == RecordKind::MaxContext) {
        // Only a search that ended with a failure found the maximum.
        let found = record.max_context.as_ref();
        let Some(measured) =
            found.and_then(|found| found.lo_ok.filter(|_| found.hi_fail.is_some()))
        else {
            continue;
        };
        match ceiling(record, measured) {
            Ok(ceiling) => predicted.push(ceiling),
            Err(why) => unpredicted.push(format!("{}, longest context: {why}", record.model.name)),
        }
    }
    (predicted, unpredicted)
}

fn ceiling(record: &Record, measured: u64) -> Result<Ceiling, String> {
    let machine = machine(record)?;
    let engine = record.engine.name.as_deref().and_then(engine);
    let model = model(record, engine)?;
    let kv = bits(record).ok_or("the types of its cache were not published")?;
    let options = FitOptions { kv: Some(kv), engine, sequences: 1, ..FitOptions::default() };
    let assessed = assess(&machine, &model, &options).map_err(|error| error.to_string())?;
    let plan = assessed.best().ok_or("it would not fit")?;
    let predicted =
        plan.longest.context_tokens.filter(|_| plan.longest.limit != ContextLimit::Trained);
    let pages = |tokens: u32| (i64::from(tokens) - measured as i64) / PAGE_TOKENS;
    Ok(Ceiling {
        machine: machine.name.clone(),
        what: format!("{}, {}, K {} V {}", model.name, model.quant, kv.keys, kv.values),
        measured,
        predicted,
        pages_off: predicted.map(pages),
    })
}

/// Parses `K,V bits 8,4`.
fn bits(record: &Record) -> Option<KvTypes> {
    let said = record.source.lossy.iter().find_map(|said| said.split("K,V bits ").nth(1))?;
    let (keys, rest) = said.split_once(',')?;
    let values = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    let kind = |bits: &str| match bits.trim() {
        "16" => Some(KvType::F16),
        "8" => Some(KvType::Q8_0),
        "4" => Some(KvType::Q4_0),
        _ => None,
    };
    Some(KvTypes { keys: kind(keys)?, values: kind(values)? })
}
