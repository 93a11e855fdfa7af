//! Turns timings into constants, and decides whether to believe them. Pure: times nothing.
//! On the CPU, kernels give the rates of cores and memory, and models the extra time of layers and caches. On a card,
//! models give all of these.

use hob_core::fit::{
    self, ComputeSite, Engine, EngineProfile, Implausible, Layout, Model, SpeedEstimate, constants,
    fit_constants,
};
use hob_core::footprint::KvTypes;
use hob_core::machine::{Basis, Constants, Fact, Kernel, Machine};
use hob_engines::timing::EngineTiming;
use hob_machine::MachineFacts;
use hob_machine::bandwidth::Measured;
use serde::Serialize;

/// Noise only slows down. If the median is below this share of the best, other programs were active.
const MEDIAN_SHARE_MIN: f64 = 0.7;
/// A kernel with at least this share of the fastest kernel's rate is limited by memory, not by the cores.
const MEMORY_BOUND_SHARE_MIN: f64 = 0.9;
/// All threads together are disturbed below this share of the rate of one thread.
const ONE_THREAD_SHARE_MIN: f64 = 0.9;
/// If a larger share of the kernels was disturbed, the calibration is not kept.
const DISTURBED_SHARE_MAX: f64 = 0.34;
/// Relative error at which a calibration counts as good.
const ERROR_GOOD: f64 = 0.1;

/// All timings.
pub(super) struct CalibrationFigures {
    memory: Measured,
    kernels: Vec<EngineTiming>,
    threads: u32,
    models: Vec<TimedModel>,
}

/// A model's timings on one device.
struct TimedModel {
    site: ComputeSite,
    model: Model,
    timed: Vec<EngineTiming>,
}

/// A model's timed speed, and its prediction with and without this calibration, all in tokens a second.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Checked {
    pub(super) model: String,
    /// `CPU` or `GPU 0`.
    pub(super) device: String,
    pub(super) context_tokens: u32,
    pub(super) timed: f64,
    pub(super) predicted: f64,
    pub(super) before: f64,
}

impl CalibrationFigures {
    pub(super) fn new(
        memory: Measured,
        kernels: Vec<EngineTiming>,
        threads: u32,
    ) -> CalibrationFigures {
        CalibrationFigures { memory, kernels, threads, models: Vec::new() }
    }

    pub(super) fn add(&mut self, site: ComputeSite, model: Model, timed: Vec<EngineTiming>) {
        self.models.push(TimedModel { site, model, timed });
    }

    /// Whether a model was timed on this device.
    pub(super) fn has_model_on(&self, site: ComputeSite) -> bool {
        !self.rows(site).is_empty()
    }

    /// The machine with fitted constants, and how well they predict each model.
    ///
    /// # Errors
    /// The constants are impossible.
    pub(super) fn fitted(
        &self,
        known: &MachineFacts,
    ) -> Result<(MachineFacts, Vec<Checked>), Implausible> {
        let mut known = known.clone();
        if self.fastest() <= 0.0 {
            return Err(Implausible::Nothing);
        }
        self.raise_bandwidth(&mut known);
        let mut before = known.machine.clone();
        before.cpu.device.constants = None;
        before.gpus.iter_mut().for_each(|gpu| gpu.device.constants = None);
        known.machine.cpu.device.constants = Some(self.cpu_constants(&before));
        let mut checked = self.fit_site(ComputeSite::Cpu, &mut known.machine, &before)?;
        for number in 0..before.gpus.len() {
            checked.extend(self.fit_site(ComputeSite::Gpu(number), &mut known.machine, &before)?);
        }
        Ok((known, checked))
    }

    /// Fits the constants of one device to the models that were timed on it, if there are any.
    fn fit_site(
        &self,
        site: ComputeSite,
        machine: &mut Machine,
        before: &Machine,
    ) -> Result<Vec<Checked>, Implausible> {
        let profile = Engine::Hob.profile();
        let rows = self.rows(site);
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let layouts: Vec<Layout> =
            rows.iter().map(|row| Layout::whole(&row.model.shape, site)).collect();
        let both = || rows.iter().zip(&layouts);
        let timed = both().map(|(row, layout)| row.timed(machine, layout, &profile));
        let mut constants = fit_constants(&timed.collect::<Vec<_>>())?;
        let device = match site {
            ComputeSite::Cpu => &mut machine.cpu.device,
            ComputeSite::Gpu(number) => {
                constants.prefill_flops = self.card_flops(site, before).or(constants.prefill_flops);
                &mut machine.gpus[number].device
            }
        };
        device.constants = Some(constants);
        let checked = both().filter_map(|(row, layout)| {
            let rate = |machine| row.estimate(machine, layout, &profile).decode(row.context_tokens);
            Some(Checked {
                model: row.model.name.clone(),
                device: site.to_string(),
                context_tokens: row.context_tokens,
                timed: row.tok_s,
                predicted: rate(machine)?.tok_s,
                before: rate(before)?.tok_s,
            })
        });
        Ok(checked.collect())
    }

    /// Operations per second of a card with a prompt: the prior, times how much faster the largest model read its
    /// prompt than predicted. Small models do not keep a card busy.
    fn card_flops(&self, site: ComputeSite, before: &Machine) -> Option<f64> {
        let of_site = self.models.iter().filter(|timed| timed.site == site);
        let largest = of_site.max_by_key(|timed| timed.model.shape.weights.bytes())?;
        let (tokens, tok_s) = largest.timed.iter().find_map(|timed| match timed {
            EngineTiming::Prefill { prompt_tokens, tok_s } => Some((*prompt_tokens, *tok_s)),
            _ => None,
        })?;
        let layout = Layout::whole(&largest.model.shape, site);
        let row = Row { model: &largest.model, context_tokens: tokens, tok_s };
        let profile = Engine::Hob.profile();
        let predicted = row.estimate(before, &layout, &profile).prefill(tokens)?.tok_s;
        Some(constants(before, site).prefill_flops? * tok_s / predicted)
    }

    /// Reasons not to keep the result; empty if there are none.
    pub(super) fn doubts(&self, checked: &[Checked]) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.memory.is_noisy() {
            doubts.push(
                "the machine was too busy: other programs disturbed the copies of memory"
                    .to_owned(),
            );
        }
        let (disturbed, count) = self.disturbed();
        if f64::from(disturbed) > DISTURBED_SHARE_MAX * f64::from(count) {
            doubts.push(format!(
                "the machine was too busy: {disturbed} of {count} kernels were disturbed"
            ));
        }
        let mut runs = self.median_shares();
        if runs.any(|share| share < MEDIAN_SHARE_MIN) {
            doubts.push(
                "the machine was too busy: the speeds of a model's runs differ too much".to_owned(),
            );
        }
        let error = |rate: fn(&Checked) -> f64| {
            let errors = checked.iter().map(|row| (rate(row) / row.timed - 1.0).abs());
            errors.sum::<f64>() / checked.len().max(1) as f64
        };
        let (now, before) = (error(|row| row.predicted), error(|row| row.before));
        if now > before && now > ERROR_GOOD {
            doubts.push(
                "the result predicts the models worse than the prior of such machines".to_owned(),
            );
        }
        doubts
    }

    /// Number of disturbed kernels, and of all. All cores are never slower than one, unless other programs use some.
    fn disturbed(&self) -> (u32, u32) {
        let (mut disturbed, mut count) = (0, 0);
        for (name, all) in self.kernels_on(self.threads) {
            let of_name = |timed: &&EngineTiming| matches!(timed, EngineTiming::Kernel { quant, .. } if quant == name);
            let mut shares = self.kernels.iter().filter(of_name).filter_map(median_share);
            let is_slowed =
                self.one_thread_rate(name).is_some_and(|alone| all < ONE_THREAD_SHARE_MIN * alone);
            count += 1;
            disturbed += u32::from(is_slowed || shares.any(|share| share < MEDIAN_SHARE_MIN));
        }
        (disturbed, count)
    }

    /// Rate of one kernel on one thread.
    fn one_thread_rate(&self, name: &str) -> Option<f64> {
        self.kernels_on(1).find(|(quant, _)| *quant == name).map(|(_, rate)| rate)
    }

    /// Highest rate of a kernel on all threads, bytes/s.
    fn fastest(&self) -> f64 {
        self.kernels_on(self.threads).map(|(_, bytes_s)| bytes_s).fold(0.0, f64::max)
    }

    /// The name and the rate in bytes/s of each kernel that was timed on so many threads.
    fn kernels_on(&self, thread_count: u32) -> impl Iterator<Item = (&str, f64)> {
        self.kernels.iter().filter_map(move |timed| match timed {
            EngineTiming::Kernel { quant, threads, bytes_s, .. } if *threads == thread_count => {
                Some((quant.as_str(), *bytes_s))
            }
            _ => None,
        })
    }

    /// If a kernel read memory faster than the copies did, the copies were disturbed, and the kernel's rate counts.
    fn raise_bandwidth(&self, known: &mut MachineFacts) {
        let fastest = self.fastest();
        let of_memory = known.machine.cpu.device.bandwidth.as_ref().map_or(0.0, |fact| fact.value);
        if fastest > of_memory {
            let source = format!("read by a kernel on {} threads", self.threads);
            known.set_bandwidth(Fact { value: fastest, basis: Basis::Measured, source });
        }
    }

    /// The prior, with the kernels' rates.
    fn cpu_constants(&self, machine: &Machine) -> Constants {
        let usual = constants(machine, ComputeSite::Cpu);
        let bandwidth = machine.cpu.device.bandwidth.as_ref().map_or(f64::INFINITY, |f| f.value);
        let cores = f64::from(machine.cpu.cores.max(1));
        let fastest = self.fastest();
        let of_core = |(name, all): (&str, f64)| {
            let name = hob_machine::profile::quant(name)?;
            let is_waiting = all >= MEMORY_BOUND_SHARE_MIN * fastest;
            // Cores that wait for memory could process more.
            let alone = self.one_thread_rate(name).filter(|_| is_waiting).unwrap_or(0.0);
            let flop_s = self.prompt_flop_s(|quant| quant == name).map(|flop_s| flop_s / cores);
            Some(Kernel { quant: name, bytes_s: alone.max(all / cores), flop_s })
        };
        Constants {
            // Without a timed model, layers and cache keep the prior.
            basis: Basis::Prior,
            bandwidth_efficiency: (fastest / bandwidth).min(1.0),
            // The rate of the quant that is timed first, which is the most common one.
            prefill_flops: self.prompt_flop_s(|_| true).or(usual.prefill_flops),
            kernels: self.kernels_on(self.threads).filter_map(of_core).collect(),
            steadiness: self.steadiness(),
            ..usual
        }
    }

    /// Operations per second with a prompt's vectors, on all threads.
    fn prompt_flop_s(&self, is_wanted: impl Fn(&str) -> bool) -> Option<f64> {
        self.kernels.iter().find_map(|timed| match timed {
            EngineTiming::Prompt { quant, flop_s, .. } if is_wanted(quant) => Some(*flop_s),
            _ => None,
        })
    }

    /// Steadiness of the most disturbed model.
    fn steadiness(&self) -> f64 {
        let on_cpu = self.models.iter().filter(|timed| timed.site == ComputeSite::Cpu);
        let runs = on_cpu.flat_map(|model| &model.timed).filter_map(median_share);
        runs.fold(1.0, f64::min)
    }

    /// [`median_share`] of each model's speeds.
    fn median_shares(&self) -> impl Iterator<Item = f64> {
        self.models.iter().flat_map(|model| &model.timed).filter_map(median_share)
    }

    fn rows(&self, site: ComputeSite) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        for TimedModel { model, timed, .. } in self.models.iter().filter(|timed| timed.site == site)
        {
            for timed in timed {
                if let EngineTiming::Decode { context_tokens, tok_s, .. } = timed {
                    rows.push(Row { model, context_tokens: *context_tokens, tok_s: *tok_s });
                }
            }
        }
        rows
    }
}

/// One speed of a model.
struct Row<'a> {
    model: &'a Model,
    context_tokens: u32,
    tok_s: f64,
}

impl Row<'_> {
    fn estimate<'c>(
        &'c self,
        machine: &'c Machine,
        layout: &'c Layout,
        profile: &'c EngineProfile,
    ) -> SpeedEstimate<'c> {
        SpeedEstimate { model: self.model, machine, layout, kv: KvTypes::default(), profile }
    }

    fn timed<'c>(
        &'c self,
        machine: &'c Machine,
        layout: &'c Layout,
        profile: &'c EngineProfile,
    ) -> fit::TimedRun<'c> {
        let Row { context_tokens, tok_s, .. } = *self;
        fit::TimedRun { estimate: self.estimate(machine, layout, profile), context_tokens, tok_s }
    }
}

/// The median as a share of the best run: 1 without any noise.
fn median_share(timed: &EngineTiming) -> Option<f64> {
    match timed {
        EngineTiming::Kernel { bytes_s, median_bytes_s, .. } => Some(median_bytes_s / bytes_s),
        EngineTiming::Decode { tok_s, median_tok_s, .. } => Some(median_tok_s / tok_s),
        EngineTiming::Prompt { .. } | EngineTiming::Prefill { .. } => None,
    }
}

#[cfg(test)]
mod tests;
