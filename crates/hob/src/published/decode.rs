//! Decode speeds of `bench/published/decode.csv`: one stream, with the whole model on one device.
//! Each row names its source; the folder's README says how rows were chosen.

use hob_core::fit::{ComputeSite, Engine, EngineProfile, Layout, Model, SpeedEstimate, TimedRun};
use hob_core::footprint::KvTypes;
use hob_core::machine::{Basis, Device, Fact, Gpu, GpuApi, GpuMemory, Machine, Memory, Vendor};
use hob_models::{QuantMix, known};

const DEVICES: &str = include_str!("../../../../bench/published/devices.csv");
const ROWS: &str = include_str!("../../../../bench/published/decode.csv");
const SOURCES: &str = include_str!("../../../../bench/published/sources.csv");

/// More than any published model needs, so that all of them fit.
const PLENTY_BYTES: u64 = 1 << 42;

/// One measurement.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// A machine with only that device.
    pub(crate) machine: Machine,
    pub(crate) model: Model,
    pub(crate) context_tokens: u32,
    pub(crate) tok_s: f64,
    /// Short name of the source; [`sources`] has its address.
    pub(crate) source: &'static str,
    layout: Layout,
    profile: EngineProfile,
}

impl Row {
    pub(crate) fn gpu(&self) -> &Gpu {
        &self.machine.gpus[0]
    }

    /// Every third device: no prior was fitted to it.
    pub(crate) fn is_held_back(&self) -> bool {
        let place =
            lines(DEVICES).position(|line| line.starts_with(&format!("{},", self.gpu().name)));
        place.is_some_and(|place| place % 3 == 2)
    }

    pub(crate) fn timed(&self) -> TimedRun<'_> {
        let Row { machine, model, layout, profile, .. } = self;
        let estimate = SpeedEstimate { model, machine, layout, kv: KvTypes::default(), profile };
        TimedRun { estimate, context_tokens: self.context_tokens, tok_s: self.tok_s }
    }
}

/// All rows, in the order of the devices.
///
/// # Errors
/// The first invalid line; a test checks that all lines are valid.
pub(crate) fn rows() -> Result<Vec<Row>, String> {
    lines(ROWS)
        .map(|line| row(line).ok_or_else(|| format!("'{line}' is not a measurement")))
        .collect()
}

/// Rows of devices with a suitable name.
pub(crate) fn rows_of(suits: impl Fn(&str) -> bool) -> Vec<Row> {
    let is_it = |line: &&'static str| line.split(',').next().is_some_and(&suits);
    lines(ROWS).filter(is_it).filter_map(row).collect()
}

/// Short names of sources, with their addresses.
pub(crate) fn sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    lines(SOURCES).filter_map(|line| line.split_once(','))
}

fn lines(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().skip(1).filter(|line| !line.is_empty())
}

fn row(line: &'static str) -> Option<Row> {
    let fields: Vec<&'static str> = line.split(',').collect();
    let &[device, api, model, quant, context, tok_s, source] = &fields[..] else { return None };
    let (known, context_tokens) = known::find(model).ok()?;
    let model = known.model(QuantMix::named(quant).ok()?, context_tokens).ok()?;
    let machine = machine(device, api)?;
    let layout = Layout::whole(&model.shape, ComputeSite::Gpu(0));
    let (context_tokens, tok_s) = (context.parse().ok()?, tok_s.parse().ok()?);
    let profile = Engine::LlamaCpp.profile();
    Some(Row { machine, model, context_tokens, tok_s, source, layout, profile })
}

fn machine(device: &'static str, api: &str) -> Option<Machine> {
    let fields = lines(DEVICES).map(|line| line.split(',').collect::<Vec<_>>());
    let found = fields.filter_map(|fields| <[&str; 5]>::try_from(fields).ok());
    let [name, vendor, memory, gb_s, capability] =
        found.into_iter().find(|fields| fields[0] == device)?;
    let value = gb_s.parse::<f64>().ok()? * 1e9;
    let capability = capability.split_once('.');
    let vendor = Vendor::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(vendor))?;
    let api = GpuApi::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(api))?;
    let memory = match memory {
        "own" => GpuMemory::Own { total_bytes: PLENTY_BYTES, free_bytes: PLENTY_BYTES },
        _ => GpuMemory::Unified { limit_bytes: PLENTY_BYTES },
    };
    let gpu = Gpu {
        compute_capability: capability
            .and_then(|(one, two)| Some((one.parse().ok()?, two.parse().ok()?))),
        device: Device {
            bandwidth: Some(Fact { value, basis: Basis::Stated, source: "data sheet".to_owned() }),
            constants: None,
        },
        ..Gpu::new(name, vendor, api, memory)
    };
    let memory = Memory { total_bytes: PLENTY_BYTES, available_bytes: PLENTY_BYTES };
    Some(Machine { name: device.to_owned(), memory, gpus: vec![gpu], ..Machine::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_known_model_on_a_known_device_with_its_source() {
        let rows = rows().expect("they are part of the program");
        assert!(rows.len() >= 300, "{}", rows.len());
        for row in &rows {
            assert!(row.tok_s > 0.0 && row.context_tokens > 0, "{row:?}");
            assert!(sources().any(|(name, _)| name == row.source), "{}", row.source);
        }
    }
}
