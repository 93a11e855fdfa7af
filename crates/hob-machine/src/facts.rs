//! A machine with the source of each fact, as rows for display and for programs.
//! An unknown fact has no row, or a row that says so. It is never zero.

use hob_core::machine::{Basis, Constants, Device, Fact, Gpu, GpuMemory, Machine};
use serde::Serialize;

const GB: f64 = 1e9;

/// Basis and source of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    pub basis: Basis,
    pub source: String,
}

/// Engine version and date of a calibration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub engine_version: String,
    /// Date such as `2026-07-31`.
    pub date: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MachineFacts {
    pub machine: Machine,
    pub cpu: Provenance,
    /// Source of the number of cores and threads, which a quota may limit.
    pub cores: Provenance,
    pub memory: Provenance,
    /// Sources of the graphics cards, in the order of the machine's cards.
    pub gpus: Vec<Provenance>,
    /// Calibration of the CPU, if there is one.
    pub cpu_stamp: Option<Stamp>,
    /// Calibrations of the graphics cards, in the order of the machine's cards.
    pub gpu_stamps: Vec<Option<Stamp>>,
    /// Facts that were not used or not found, and what the user can do.
    pub notes: Vec<String>,
}

/// A fact for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FactRow {
    pub name: String,
    /// `None` means unknown.
    pub value: Option<String>,
    pub basis: Option<Basis>,
    pub source: String,
}

impl Provenance {
    pub fn new(basis: Basis, source: impl Into<String>) -> Provenance {
        Provenance { basis, source: source.into() }
    }
}

impl MachineFacts {
    /// Uses one source for every fact.
    pub(crate) fn all_from(machine: Machine, provenance: &Provenance) -> MachineFacts {
        let gpus = vec![provenance.clone(); machine.gpus.len()];
        let gpu_stamps = vec![None; machine.gpus.len()];
        MachineFacts {
            machine,
            cpu: provenance.clone(),
            cores: provenance.clone(),
            memory: provenance.clone(),
            gpus,
            cpu_stamp: None,
            gpu_stamps,
            notes: Vec::new(),
        }
    }

    /// Sets the bandwidth of the system's memory, and of the graphics that share it.
    pub fn set_bandwidth(&mut self, fact: Fact<f64>) {
        let cpu = &mut self.machine.cpu.device;
        let earlier = cpu.bandwidth.replace(fact);
        for gpu in &mut self.machine.gpus {
            let is_the_system_s = earlier.is_some() && gpu.device.bandwidth == earlier;
            if is_the_system_s && gpu.is_integrated() {
                gpu.device.bandwidth = None;
            }
        }
        self.share_bandwidth();
    }

    /// Gives the system's bandwidth to graphics that share the system's memory. If only the bandwidth of the graphics is
    /// known, the CPU gets it as an upper bound.
    pub(crate) fn share_bandwidth(&mut self) {
        let Machine { cpu, gpus, .. } = &mut self.machine;
        let of_system = cpu.device.bandwidth.clone();
        for gpu in gpus.iter_mut().filter(|gpu| gpu.is_integrated()) {
            gpu.device.bandwidth = gpu.device.bandwidth.take().or_else(|| of_system.clone());
        }
        if of_system.is_none() {
            let mut unified = gpus.iter().filter(|gpu| gpu.is_integrated());
            cpu.device.bandwidth = unified.find_map(|gpu| gpu.device.bandwidth.clone());
        }
    }

    /// Keeps the graphics cards with these numbers, in this order.
    pub fn keep_cards(&mut self, numbers: &[usize]) {
        self.machine.gpus = picked(&self.machine.gpus, numbers);
        self.gpus = picked(&self.gpus, numbers);
        self.gpu_stamps = picked(&self.gpu_stamps, numbers);
    }

    pub fn rows(&self) -> Vec<FactRow> {
        let MachineFacts { machine, cpu, cores, memory, .. } = self;
        let total = machine.memory.total_bytes;
        let available = machine.memory.available_bytes;
        let ram = format!("{}, {} available", gb(total), gb(available));
        let counted = format!("{} cores, {} threads", machine.cpu.cores, machine.cpu.threads);
        let units = Some(machine.cpu.features.join(" ")).filter(|units| !units.is_empty());
        let mut rows = vec![
            row("system", machine.os.clone(), cpu),
            row("processor", machine.cpu.name.clone(), cpu),
            row("cores", Some(counted).filter(|_| machine.cpu.cores > 0), cores),
            row("vector units", units, cpu),
            row("memory", Some(ram).filter(|_| total > 0), memory),
            bandwidth("memory bandwidth", &machine.cpu.device),
        ];
        rows.extend(constants("processor", &machine.cpu.device, self.cpu_stamp.as_ref()));
        for (number, gpu) in machine.gpus.iter().enumerate() {
            let provenance = self.gpus.get(number).unwrap_or(cpu);
            let stamp = self.gpu_stamps.get(number).and_then(Option::as_ref);
            rows.extend(of_gpu(number, gpu, provenance, stamp));
        }
        if machine.gpus.is_empty() {
            let none = Provenance::new(self.cpu.basis, "no driver reports one");
            rows.push(row("graphics", Some("none".to_owned()), &none));
        }
        rows
    }
}

fn picked<T: Clone>(all: &[T], numbers: &[usize]) -> Vec<T> {
    numbers.iter().filter_map(|number| all.get(*number).cloned()).collect()
}

fn of_gpu(
    number: usize,
    gpu: &Gpu,
    provenance: &Provenance,
    stamp: Option<&Stamp>,
) -> Vec<FactRow> {
    let name = |what: &str| format!("gpu{number} {what}").trim_end().to_owned();
    let kind = format!("{}, {} through {}", gpu.name, gpu.vendor.name(), gpu.api.name());
    let memory = match gpu.memory {
        GpuMemory::Own { total_bytes, free_bytes } => {
            format!("{}, {} free", gb(total_bytes), gb(free_bytes))
        }
        GpuMemory::Unified { limit_bytes } => {
            format!("the system's, up to {}", gb(limit_bytes))
        }
    };
    let capability = gpu.compute_capability.map(|(major, minor)| format!("{major}.{minor}"));
    let mut rows = vec![
        row(&name(""), Some(kind), provenance),
        row(&name("memory"), Some(memory), provenance),
        bandwidth(&name("bandwidth"), &gpu.device),
    ];
    rows.extend(gpu.driver.clone().map(|driver| row(&name("driver"), Some(driver), provenance)));
    rows.extend(capability.map(|pair| row(&name("compute capability"), Some(pair), provenance)));
    rows.extend(gpu.link.as_ref().map(|link| {
        let value = format!("{}, {}/s", link.name, gb_f64(link.bytes_s));
        let provenance = Provenance::new(link.basis, format!("{}, at most", provenance.source));
        row(&name("link"), Some(value), &provenance)
    }));
    rows.extend(constants(&name(""), &gpu.device, stamp));
    rows
}

fn row(name: &str, value: Option<String>, provenance: &Provenance) -> FactRow {
    let Provenance { basis, source } = provenance.clone();
    let basis = value.is_some().then_some(basis);
    FactRow { name: name.to_owned(), value, basis, source }
}

fn bandwidth(name: &str, device: &Device) -> FactRow {
    let fact = device.bandwidth.as_ref();
    FactRow {
        name: name.to_owned(),
        value: fact.map(|fact| format!("{}/s", gb_f64(fact.value))),
        basis: fact.map(|fact| fact.basis),
        source: fact.map_or_else(|| "not measured".to_owned(), |fact| fact.source.clone()),
    }
}

fn constants(name: &str, device: &Device, stamp: Option<&Stamp>) -> Vec<FactRow> {
    let Some(constants) = &device.constants else { return Vec::new() };
    let source = stamp.map_or_else(
        || "profile".to_owned(),
        |Stamp { engine_version, date }| format!("{engine_version}, {date}"),
    );
    let provenance = Provenance::new(constants.basis, source);
    let mut rows = vec![row(&format!("{name} speed"), Some(reached(constants)), &provenance)];
    let figure = |quant: &str, of_core: f64| format!("{quant} {:.1}", of_core / GB);
    let kernels = || constants.kernels.iter();
    let eaten = kernels().map(|kernel| figure(kernel.quant, kernel.bytes_s)).collect::<Vec<_>>();
    let prompt = kernels().filter_map(|kernel| Some(figure(kernel.quant, kernel.flop_s?)));
    let both = [("kernels", eaten, "GB/s"), ("prompts", prompt.collect(), "GFLOP/s")];
    for (what, figures, unit) in both.into_iter().filter(|(_, figures, _)| !figures.is_empty()) {
        let value = format!("{} {unit} a core", figures.join(", "));
        rows.push(row(&format!("{name} {what}"), Some(value), &provenance));
    }
    rows
}

fn reached(constants: &Constants) -> String {
    let Constants { bandwidth_efficiency, kv_bandwidth_efficiency, layer_us, steadiness, .. } =
        constants;
    let (weights, cache) = (100.0 * bandwidth_efficiency, 100.0 * kv_bandwidth_efficiency);
    let parts = format!(
        "{weights:.0} % of it for weights, {cache:.0} % for the cache, {layer_us:.0} µs a layer"
    );
    match 100.0 * (1.0 - steadiness) {
        less if less < 1.0 => parts,
        less => format!("{parts}; {less:.0} % less while other programs run"),
    }
}

fn gb(bytes: u64) -> String {
    gb_f64(bytes as f64)
}

fn gb_f64(bytes: f64) -> String {
    format!("{:.1} GB", bytes / GB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_of_the_system_is_its_graphics_too() {
        let mut known = crate::profile::builtin("n100").expect("a profile");
        let mut apu = crate::profile::builtin("ryzen-5800u").expect("a profile");
        apu.machine.gpus[0].device.bandwidth = apu.machine.cpu.device.bandwidth.clone();
        let fact = Fact { value: 1e9, basis: Basis::Measured, source: "here".to_owned() };
        known.set_bandwidth(fact.clone());
        apu.set_bandwidth(fact.clone());
        assert_eq!(known.machine.cpu.device.bandwidth, Some(fact.clone()));
        assert_eq!(apu.machine.gpus[0].device.bandwidth, Some(fact.clone()));
        // Memory that the firmware reserves for graphics is as fast.
        let gpu = &mut apu.machine.gpus[0];
        gpu.memory = GpuMemory::Own { total_bytes: 96 << 30, free_bytes: 95 << 30 };
        (gpu.is_in_processor, gpu.device.bandwidth) = (true, None);
        apu.share_bandwidth();
        assert_eq!(apu.machine.gpus[0].device.bandwidth, Some(fact));
    }

    #[test]
    fn a_card_is_kept_with_its_source_and_its_calibration() {
        let mut known = crate::profile::builtin("rtx-4090").expect("a profile");
        let mut second = known.machine.gpus[0].clone();
        "B".clone_into(&mut second.name);
        known.machine.gpus.push(second);
        known.gpus.push(Provenance::new(Basis::Measured, "by hand"));
        let stamp = Stamp { engine_version: "b2".to_owned(), date: "2026-07-31".to_owned() };
        known.gpu_stamps.push(Some(stamp.clone()));
        known.keep_cards(&[1, 7]);
        let names: Vec<&str> = known.machine.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
        assert_eq!(names, ["B"]);
        assert_eq!(known.gpus, [Provenance::new(Basis::Measured, "by hand")]);
        assert_eq!(known.gpu_stamps, [Some(stamp)]);
    }

    #[test]
    fn what_nobody_knows_is_no_zero() {
        let provenance = Provenance::new(Basis::Measured, "by hand");
        let known = MachineFacts::all_from(Machine::default(), &provenance);
        for row in known.rows() {
            assert!(row.value.is_none() || row.name == "graphics", "{row:?}");
        }
    }
}
