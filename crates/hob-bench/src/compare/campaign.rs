//! Whether two records were measured in turns by one campaign: only then is block against block a fair pair.
//! Records name no campaign, so everything that one campaign makes the same has to be the same.

use super::{Kept, Pairing};
use crate::record::Record;

/// Two single records of one command, one machine, one seed and the same prompts, whose times lie within each other's.
pub(super) fn pairing(base: &[Kept], new: &[Kept]) -> Pairing {
    match (base, new) {
        ([base], [new]) if has_runs(base) && has_runs(new) => of_one(&base.record, &new.record),
        _ => Pairing::Unpaired,
    }
}

fn has_runs(kept: &Kept) -> bool {
    !kept.samples.is_empty()
}

fn of_one(base: &Record, new: &Record) -> Pairing {
    let one_command = match (&base.harness, &new.harness) {
        (Some(a), Some(b)) => !a.argv.is_empty() && a.argv == b.argv && a.seed == b.seed,
        _ => false,
    };
    let is_same =
        |a: &Option<String>, b: &Option<String>| a.as_ref().is_some_and(|a| b.as_ref() == Some(a));
    let one_machine = is_same(&base.host.id_hash, &new.host.id_hash);
    let one_question = is_same(&base.workload.prompts_sha256, &new.workload.prompts_sha256);
    match base.id != new.id && one_command && one_machine && one_question && overlap(base, new) {
        true => Pairing::Paired,
        false => Pairing::Unpaired,
    }
}

fn overlap(base: &Record, new: &Record) -> bool {
    let times = base.time.started.zip(base.time.ended).zip(new.time.started.zip(new.time.ended));
    times.is_some_and(|((a_from, a_to), (b_from, b_to))| a_from < b_to && b_from < a_to)
}
