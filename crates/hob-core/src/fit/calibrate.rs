//! Fits the constants of a device to runs that were timed on it. The time of each run is a sum of parts.
//! Each constant is pulled towards its prior, so that one run is enough. Outliers count less.

use std::ops::RangeInclusive;

use super::layout::ComputeSite;
use super::priors;
use super::speed::{SiteFacts, SpeedEstimate};
use crate::machine::{Basis, Constants};
use crate::statistics::Sample;

/// A timed run: a model on one device, with a context of this many tokens.
#[derive(Clone, Copy, Debug)]
pub struct TimedRun<'a> {
    pub estimate: SpeedEstimate<'a>,
    pub context_tokens: u32,
    /// Tokens per second of one stream.
    pub tok_s: f64,
}

/// Why a fit was rejected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Implausible {
    #[error("nothing was timed on one device alone whose bandwidth is known")]
    Nothing,
    #[error(
        "{:.0} % of the bandwidth would be reached, and 20 to 105 % can be: the bandwidth is wrong, or the machine was \
         busy", .bandwidth_efficiency * 100.0
    )]
    BandwidthEfficiency { bandwidth_efficiency: f64 },
}

const PLAUSIBLE: RangeInclusive<f64> = 0.2..=1.05;
/// Expected relative deviation of each constant from its prior: weights, cache, layer, recurrent layer.
/// Recurrent layers deviate most: builds without a fused kernel take five times as long.
const DEVIATIONS: [f64; PARTS] = [0.5, 0.2, 0.5, 5.0];
/// CPU cores differ more than cards in attention and in synchronisation.
const DEVIATIONS_CPU: [f64; PARTS] = [0.5, 0.5, 0.8, 1.0];
/// Expected relative deviation of a constant if kernels were timed alone. On a shared machine, minutes pass between the
/// timing of kernels and that of a model.
const KERNELS_DEVIATION: f64 = 0.15;
const PARTS: usize = 4;
/// Expected relative error of one run.
const RUN_ERROR: f64 = 0.05;
/// Residuals up to this size do not lower a run's weight. Larger ones may come from a busy machine.
const RESIDUAL_TRUSTED: f64 = 0.03;
const OUTLIER_RUNS_MIN: usize = 3;
const ROUNDS: usize = 20;
const SWEEPS: usize = 200;

/// Fits the constants of the one device on which all runs took place. Runs with other layouts are left out.
///
/// # Errors
/// No run can be used, or the bandwidth efficiency is outside 20 to 105 %.
pub fn fit_constants(rows: &[TimedRun<'_>]) -> Result<Constants, Implausible> {
    let parts: Vec<Parts> = rows.iter().filter_map(Parts::from_run).collect();
    let first = rows.first().ok_or(Implausible::Nothing)?;
    let site = first.estimate.layout.sites().first().copied();
    let site = site.filter(|_| !parts.is_empty()).ok_or(Implausible::Nothing)?;
    let usual = usual(first, site);
    let mut deviations = if site == ComputeSite::Cpu { DEVIATIONS_CPU } else { DEVIATIONS };
    if !usual.kernels.is_empty() {
        deviations[0] = KERNELS_DEVIATION;
    }
    let scale = [
        1.0 / usual.bandwidth_efficiency,
        1.0 / usual.kv_bandwidth_efficiency,
        usual.layer_us,
        usual.recurrent_us,
    ];
    let times = robust(&parts, &scale, &deviations);
    let bandwidth_efficiency = usual.bandwidth_efficiency / times[0];
    // Kernel rates were measured, and one of them has read at the full bandwidth.
    let bandwidth_efficiency =
        if usual.kernels.is_empty() { bandwidth_efficiency } else { bandwidth_efficiency.min(1.0) };
    if !PLAUSIBLE.contains(&bandwidth_efficiency) {
        return Err(Implausible::BandwidthEfficiency { bandwidth_efficiency });
    }
    let mut kernels = usual.kernels.clone();
    kernels.iter_mut().for_each(|kernel| kernel.bytes_s /= times[0]);
    Ok(Constants {
        basis: Basis::Calibrated,
        bandwidth_efficiency,
        kernels,
        kv_bandwidth_efficiency: usual.kv_bandwidth_efficiency / times[1],
        layer_us: usual.layer_us * times[2],
        recurrent_us: usual.recurrent_us * times[3],
        ..usual
    })
}

/// The prior of the device, without an earlier calibration. Timed kernels are kept.
fn usual(row: &TimedRun<'_>, site: ComputeSite) -> Constants {
    let prior = priors::constants(row.estimate.machine, site);
    let mut machine = row.estimate.machine.clone();
    machine.cpu.device.constants = None;
    machine.gpus.iter_mut().for_each(|gpu| gpu.device.constants = None);
    let usual = priors::constants(&machine, site);
    if prior.kernels.is_empty() {
        return usual;
    }
    let Constants { bandwidth_efficiency, prefill_flops, kernels, steadiness, .. } = prior;
    Constants { bandwidth_efficiency, prefill_flops, kernels, steadiness, ..usual }
}

/// How much of each constant a run's time contains (1/η s, 1/η_kv s, µs, µs), the time left for them, and its whole
/// time.
struct Parts {
    of: [f64; PARTS],
    us: f64,
    all_us: f64,
}

impl Parts {
    fn from_run(row: &TimedRun<'_>) -> Option<Parts> {
        let estimate = &row.estimate;
        let known = estimate.site_facts()?;
        let [one @ SiteFacts { site, bandwidth, constants, .. }] = &known[..] else { return None };
        let layers = estimate.sum(*site, |_| 1.0);
        // With timed kernels the time of the weights is nearly known; otherwise their bytes are.
        let read_s = match constants.kernels.is_empty() {
            true => estimate.read_bytes(*site) / bandwidth,
            false => {
                estimate.weights_s(one) * constants.bandwidth_efficiency
                    + estimate.state_bytes(*site) / bandwidth
            }
        };
        let kv_us = estimate.kv_bytes(*site, row.context_tokens) / bandwidth * 1e6;
        let of = [read_s * 1e6, kv_us, layers, estimate.recurrent_layers(*site)];
        let all_us = 1e6 / row.tok_s;
        let experts_us = estimate.expert_layers(*site) * constants.experts_us;
        let engine_us = estimate.profile.token_us + estimate.unfused_recurrent_us(*site);
        let us = all_us - experts_us - constants.token_us - engine_us;
        (us > 0.0 && us.is_finite()).then_some(Parts { of, us, all_us })
    }

    fn predicted_us(&self, scale: &[f64; PARTS], times: &[f64; PARTS]) -> f64 {
        (0..PARTS).map(|part| self.of[part] * scale[part] * times[part]).sum()
    }
}

/// Fits the factor by which each constant differs from its prior, with less weight for outliers.
fn robust(rows: &[Parts], scale: &[f64; PARTS], deviations: &[f64; PARTS]) -> [f64; PARTS] {
    let mut times = [1.0; PARTS];
    let mut trust = vec![1.0; rows.len()];
    // With fewer runs an outlier cannot be recognised.
    let rounds = if rows.len() < OUTLIER_RUNS_MIN { 1 } else { ROUNDS };
    for _ in 0..rounds {
        times = least_squares(rows, scale, deviations, &trust);
        let off = |row: &Parts| ((row.predicted_us(scale, &times) - row.us) / row.all_us).abs();
        // If all residuals are large, no single run is the outlier.
        let usual = Sample::new(rows.iter().map(off)).median().unwrap_or(0.0).max(RESIDUAL_TRUSTED);
        trust = rows.iter().map(|row| 1.0 / (off(row) / usual).max(1.0)).collect();
    }
    times
}

/// Least squares with factors of at least 0, by coordinate descent.
fn least_squares(
    rows: &[Parts],
    scale: &[f64; PARTS],
    deviations: &[f64; PARTS],
    trust: &[f64],
) -> [f64; PARTS] {
    let mut times = [1.0; PARTS];
    for _ in 0..SWEEPS {
        for part in 0..PARTS {
            let pull = deviations[part].powi(-2);
            let (mut above, mut below) = (pull, pull);
            for (row, trust) in rows.iter().zip(trust) {
                let share = row.of[part] * scale[part] / row.all_us;
                let others = row.predicted_us(scale, &times) / row.all_us - share * times[part];
                let weight = trust / RUN_ERROR.powi(2);
                above += weight * share * (row.us / row.all_us - others);
                below += weight * share * share;
            }
            times[part] = (above / below).max(0.0);
        }
    }
    times
}
