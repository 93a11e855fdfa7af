//! The constants behind the speeds: what is known about each device, and its basis.
//! An unknown bandwidth is listed as null, because it is the reason for missing speeds.

use hob_core::fit::{self, ComputeSite};
use hob_core::machine::{Basis, Constants, Device, Machine};
use schemars::JsonSchema;
use serde::Serialize;

use super::rate::shortly;

/// A constant behind the speeds.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub(super) struct FitConstant {
    pub(super) name: String,
    /// `CPU`, `GPU 0`.
    device: String,
    value: Option<f64>,
    unit: &'static str,
    basis: Option<&'static str>,
    /// Source of the value, if known.
    source: Option<String>,
    pub(super) engine_version: Option<String>,
    pub(super) date: Option<String>,
}

/// Constants of the sites that compute.
pub(super) fn constants(machine: &Machine, sites: &[ComputeSite]) -> Vec<FitConstant> {
    sites.iter().flat_map(|site| of_site(machine, *site)).collect()
}

/// Bandwidths are measured without an engine and get no stamp.
pub(super) fn stamp(rows: &mut [FitConstant], site: ComputeSite, engine_version: &str, date: &str) {
    let device = site.to_string();
    let is_fitted = |row: &&mut FitConstant| {
        row.device == device && row.basis == Some(Basis::Calibrated.name())
    };
    for row in rows.iter_mut().filter(is_fitted) {
        row.engine_version = Some(engine_version.to_owned());
        row.date = Some(date.to_owned());
    }
}

/// Adds the source of a site's published figures.
pub(super) fn source(rows: &mut [FitConstant], site: ComputeSite, source: &str) {
    let device = site.to_string();
    let is_fitted =
        |row: &&mut FitConstant| row.device == device && row.basis == Some(Basis::Published.name());
    rows.iter_mut().filter(is_fitted).for_each(|row| row.source = Some(source.to_owned()));
}

fn of_site(machine: &Machine, site: ComputeSite) -> Vec<FitConstant> {
    let device = match site {
        ComputeSite::Cpu => Some(&machine.cpu.device),
        ComputeSite::Gpu(number) => machine.gpus.get(number).map(|gpu| &gpu.device),
    };
    let known = fit::constants(machine, site);
    let Constants {
        basis,
        bandwidth_efficiency,
        kv_bandwidth_efficiency,
        layer_us,
        recurrent_us,
        experts_us,
        ..
    } = known;
    let rows = [
        ("bandwidth efficiency", Some(bandwidth_efficiency), "share"),
        ("KV cache bandwidth efficiency", Some(kv_bandwidth_efficiency), "share"),
        ("layer", Some(layer_us), "us"),
        ("recurrent layer", Some(recurrent_us), "us"),
        ("layer of experts", Some(experts_us), "us"),
        ("token", Some(known.token_us), "us"),
        ("prefill", known.prefill_flops, "FLOP/s"),
        ("steadiness", (basis == Basis::Calibrated).then_some(known.steadiness), "share"),
    ];
    let rows = rows.map(|(name, value, unit)| row(name.to_owned(), site, (value, unit), basis));
    let kernels = known.kernels.iter().flat_map(|kernel| {
        let of_core = |what: &str| format!("{} of a core{what}", kernel.quant);
        let flop_s = kernel.flop_s.map(|flop_s| (", prefill", flop_s, "FLOP/s"));
        let both = [Some(("", kernel.bytes_s, "bytes/s")), flop_s].into_iter().flatten();
        both.map(move |(what, value, unit)| row(of_core(what), site, (Some(value), unit), basis))
    });
    [bandwidth(device, site)].into_iter().chain(rows).chain(kernels).collect()
}

fn row(
    name: String,
    site: ComputeSite,
    (value, unit): (Option<f64>, &'static str),
    basis: Basis,
) -> FitConstant {
    FitConstant {
        name,
        device: site.to_string(),
        value: value.map(shortly),
        unit,
        basis: value.map(|_| basis.name()),
        source: None,
        engine_version: None,
        date: None,
    }
}

fn bandwidth(device: Option<&Device>, site: ComputeSite) -> FitConstant {
    let fact = device.and_then(|device| device.bandwidth.as_ref());
    let basis = fact.map_or(Basis::Assumed, |fact| fact.basis);
    let value = fact.map(|fact| fact.value);
    FitConstant {
        source: fact.map(|fact| fact.source.clone()),
        ..row("bandwidth".to_owned(), site, (value, "bytes/s"), basis)
    }
}
