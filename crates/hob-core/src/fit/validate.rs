//! Prediction errors on measured runs: each run is predicted from constants that were fitted to other runs.
//! All runs must be of one device.

use super::calibrate::{TimedRun, fit_constants};
use super::layout::ComputeSite;
use super::speed::{Rate, SpeedEstimate};
use crate::machine::{Constants, Machine};
use crate::statistics::Sample;

/// Predicts each run from all the others.
pub fn left_out(rows: &[TimedRun<'_>]) -> Vec<Option<Rate>> {
    let predicted = |index: usize| {
        let mut others = rows.to_vec();
        let row = others.remove(index);
        predicted_by(&row, &fit_constants(&others).ok()?)
    };
    (0..rows.len()).map(predicted).collect()
}

/// For each run: the mean error, in percent, of all others if only that run is known.
pub fn from_one(rows: &[TimedRun<'_>]) -> Vec<Option<f64>> {
    let error = |index: usize| {
        let constants = fit_constants(&rows[index..=index]).ok()?;
        let others = rows.iter().enumerate().filter(|(other, _)| *other != index);
        let errors = others.filter_map(|(_, row)| {
            Some(error_pct(predicted_by(row, &constants)?.tok_s, row.tok_s).abs())
        });
        Sample::new(errors).mean()
    };
    (0..rows.len()).map(error).collect()
}

/// Speed with these constants on the device that holds the output. Other devices keep theirs.
pub fn predicted_by(row: &TimedRun<'_>, constants: &Constants) -> Option<Rate> {
    let machine = with_constants(row.estimate.machine, row.estimate.layout.output, constants);
    SpeedEstimate { machine: &machine, ..row.estimate }.decode(row.context_tokens)
}

fn with_constants(machine: &Machine, site: ComputeSite, constants: &Constants) -> Machine {
    let mut machine = machine.clone();
    let device = match site {
        ComputeSite::Cpu => Some(&mut machine.cpu.device),
        ComputeSite::Gpu(number) => machine.gpus.get_mut(number).map(|gpu| &mut gpu.device),
    };
    if let Some(device) = device {
        device.constants = Some(constants.clone());
    }
    machine
}

/// Prediction error in percent; above 0 is too fast.
pub fn error_pct(predicted: f64, measured: f64) -> f64 {
    (predicted / measured - 1.0) * 100.0
}
