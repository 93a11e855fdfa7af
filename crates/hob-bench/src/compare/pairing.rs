//! Decides whether one campaign measured two records alternately; only then are their runs pairs.
//! Records do not name their campaign, so everything that a campaign sets must be equal.

use super::{Pairing, SampledRecord};
use crate::record::Record;

/// `Paired` for two single records of one command, machine and seed with the same prompts, measured at overlapping times.
pub(super) fn pairing(base: &[SampledRecord], new: &[SampledRecord]) -> Pairing {
    match (base, new) {
        ([base], [new]) if has_runs(base) && has_runs(new) => of_records(&base.record, &new.record),
        _ => Pairing::Unpaired,
    }
}

fn has_runs(record: &SampledRecord) -> bool {
    !record.samples.is_empty()
}

fn of_records(base: &Record, new: &Record) -> Pairing {
    let one_command = match (&base.harness, &new.harness) {
        (Some(a), Some(b)) => !a.argv.is_empty() && a.argv == b.argv && a.seed == b.seed,
        _ => false,
    };
    let is_same =
        |a: &Option<String>, b: &Option<String>| a.as_ref().is_some_and(|a| b.as_ref() == Some(a));
    let one_machine = is_same(&base.host.id_hash, &new.host.id_hash);
    let one_prompt_set = is_same(&base.workload.prompts_sha256, &new.workload.prompts_sha256);
    match base.id != new.id && one_command && one_machine && one_prompt_set && overlap(base, new) {
        true => Pairing::Paired,
        false => Pairing::Unpaired,
    }
}

fn overlap(base: &Record, new: &Record) -> bool {
    let times = base.time.started.zip(base.time.ended).zip(new.time.started.zip(new.time.ended));
    times.is_some_and(|((a_from, a_to), (b_from, b_to))| a_from < b_to && b_from < a_to)
}
