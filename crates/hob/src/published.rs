//! Published measurements, and which of them describe a given machine.
//! A device with published runs gets constants fitted to its own runs instead of its class.

mod decode;
mod runs;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use hob_core::fit::{ComputeSite, TimedRun, error_pct, fit_constants, predicted_by};
use hob_core::machine::{Basis, Constants, Gpu, Machine};
use hob_core::statistics::Sample;

use decode::rows_of;
pub(crate) use decode::{Row, rows, sources};
pub(crate) use runs::{
    MeasuredRate, PublishedRun, RunGroup, engine, machine, model, predictable_runs,
    published_records,
};

/// Fewer rows are not enough for a fit.
const ROWS_MIN: usize = 3;
/// A device whose bandwidth differs more is a different device.
const BANDWIDTH_OFF_MAX: f64 = 0.1;

/// The published runs behind a device's constants.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Used {
    pub(crate) site: ComputeSite,
    /// For people: how many runs, from which sources, and how well they are predicted.
    pub(crate) text: String,
}

/// Fits each uncalibrated card of the machine to published runs of the same card.
pub(crate) fn apply(machine: &mut Machine) -> Vec<Used> {
    let mut used = Vec::new();
    for number in 0..machine.gpus.len() {
        let gpu = &machine.gpus[number];
        if gpu.device.constants.is_some() {
            continue;
        }
        let cpu = machine.cpu.name.as_deref();
        let mut rows = rows_of(|name| bare(name) == bare(&gpu.name));
        rows.retain(|row| is_same(row.gpu(), gpu));
        let of_rows = rows.iter();
        let mut timed: Vec<TimedRun<'_>> = of_rows.clone().map(Row::timed).collect();
        let mut sources: BTreeSet<&str> = of_rows.map(|row| row.source).collect();
        let of_runs =
            RUNS.iter().filter(|run| run.is_of(gpu, cpu)).filter_map(PublishedRun::timed_run);
        let before = timed.len();
        timed.extend(of_runs);
        if timed.len() > before {
            sources.insert("runs.yaml");
        }
        if timed.len() < ROWS_MIN {
            continue;
        }
        let Ok(constants) = fit_constants(&timed) else { continue };
        let constants = Constants { basis: Basis::Published, ..constants };
        let off = timed.iter().filter_map(|one| {
            Some(error_pct(predicted_by(one, &constants)?.tok_s, one.tok_s).abs())
        });
        let off_pct = Sample::new(off).mean().unwrap_or_default();
        let sources = sources.into_iter().collect::<Vec<_>>().join(", ");
        let text = format!(
            "speeds of {} are fitted to {} published runs of it ({sources}), and differ from them by {off_pct:.1} % on \
             average",
            gpu.name,
            timed.len()
        );
        used.push(Used { site: ComputeSite::Gpu(number), text });
        machine.gpus[number].device.constants = Some(constants);
    }
    used
}

/// Drivers differ in how they name the maker.
fn bare(name: &str) -> String {
    let makers = ["NVIDIA ", "GeForce ", "AMD ", "Tesla "];
    makers.iter().fold(name.to_owned(), |name, word| name.replace(word, ""))
}

fn is_same(published: &Gpu, here: &Gpu) -> bool {
    let bandwidth = |gpu: &Gpu| gpu.device.bandwidth.as_ref().map(|fact| fact.value);
    let is_near = |(one, other): (f64, f64)| (one / other - 1.0).abs() <= BANDWIDTH_OFF_MAX;
    bare(&published.name) == bare(&here.name)
        && published.api == here.api
        && bandwidth(published).zip(bandwidth(here)).is_some_and(is_near)
}

/// Runs of `runs.yaml` on one device; parsed once, because the page asks often.
static RUNS: LazyLock<Vec<PublishedRun>> = LazyLock::new(|| {
    let records = published_records().unwrap_or_default();
    let (mut runs, _) = predictable_runs(&records);
    runs.retain(|run| run.group == RunGroup::Decode && run.is_exact());
    runs
});

impl PublishedRun {
    /// Whether the run is of the same card, or of graphics that belong to the same processor.
    fn is_of(&self, gpu: &Gpu, cpu: Option<&str>) -> bool {
        let own = self.machine.gpus.first();
        let shares = gpu.is_integrated()
            && own.is_some_and(|own| own.api == gpu.api)
            && self
                .machine
                .cpu
                .name
                .as_deref()
                .zip(cpu)
                .is_some_and(|(one, here)| here.starts_with(one));
        shares || own.is_some_and(|own| is_same(own, gpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_machine_is_predicted_from_its_own_runs() {
        for (name, least) in [("ryzen-5800u", 8), ("rtx-4070-laptop", 6), ("m4-pro-48gb", 15)] {
            let mut machine = hob_machine::profile::builtin(name).expect("a profile").machine;
            let used = apply(&mut machine);
            let [Used { text, .. }] = &used[..] else { panic!("{name}: {used:?}") };
            let count: usize =
                text.split_whitespace().find_map(|word| word.parse().ok()).expect("a number");
            assert!(count >= least, "{text}");
            let constants = machine.gpus[0].device.constants.as_ref().expect("constants");
            assert_eq!(constants.basis, Basis::Published, "{text}");
        }
    }

    #[test]
    fn a_card_of_another_name_or_calibrated_here_stays_as_it_is() {
        let mut machine = hob_machine::profile::builtin("m4-pro-48gb").expect("one").machine;
        machine.gpus[0].name = "Apple M7".to_owned();
        assert_eq!(apply(&mut machine), []);
        machine.gpus[0].name = "Apple M4 Pro".to_owned();
        let constants = hob_core::fit::of_gpu(&machine.gpus[0]);
        machine.gpus[0].device.constants = Some(constants.clone());
        assert_eq!(apply(&mut machine), []);
        assert_eq!(machine.gpus[0].device.constants, Some(constants));
    }
}
