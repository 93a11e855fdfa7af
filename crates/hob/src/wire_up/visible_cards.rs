//! Leaves the cards that environment variables such as `CUDA_VISIBLE_DEVICES` hide out of predictions, and says which build
//! would use the cards. The engine says which cards remain. It is asked only if a variable is set.

use hob_core::machine::{Gpu, GpuApi, Machine};
use hob_engines::chat::{CardUse, EngineDevice};
use hob_machine::MachineFacts;

use super::devices::listed_cards;
use super::hidden_cards::HiddenCards;
use super::memory::used_cards;
use super::named_cards::NamedCards;

/// Leaves out the cards of this machine that models cannot use. Returns a note if there are such cards.
pub(crate) fn leave_out_hidden_cards(
    known: &mut MachineFacts,
    hidden: &HiddenCards,
) -> Option<String> {
    let used: Vec<usize> = used_cards(&known.machine.gpus).map(|(number, _)| number).collect();
    leave_out(known, &used, hidden, listed_cards)
}

/// If this build computes on none of these cards: a finding that names them, and what to do.
pub(crate) fn other_build(gpus: &[Gpu], is_used: bool) -> Option<(String, String)> {
    let feature = match gpus.first().filter(|_| !is_used)?.api {
        GpuApi::Cuda => "cuda",
        GpuApi::Rocm | GpuApi::Vulkan => "vulkan",
        GpuApi::Metal => "metal",
    };
    let names: Vec<&str> = gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    let found = format!("{}; this hob uses the processor only", names.join(", "));
    Some((found, format!("build one with `make build FEATURES={feature}`")))
}

/// `used` has the numbers of the cards on which this build computes.
fn leave_out(
    known: &mut MachineFacts,
    used: &[usize],
    hidden: &HiddenCards,
    listed: impl FnOnce() -> Vec<EngineDevice>,
) -> Option<String> {
    if !hidden.is_any() || used.is_empty() {
        return None;
    }
    let listed = listed();
    let names = hidden.remaining(&listed)?;
    let gpus = used.iter().map(|number| known.machine.gpus[*number].clone()).collect();
    let machine = Machine { gpus, ..Machine::default() };
    let (_, cards) = NamedCards::choose(&CardUse::Allowed, hidden, || listed, machine);
    let mut visible: Vec<usize> = cards.numbers().map(|place| used[place]).collect();
    visible.sort_unstable();
    let variables = hidden.variables();
    if visible.is_empty() && !names.is_empty() {
        return Some(format!(
            "{variables} is set, and hob cannot say which graphics cards remain, so it counts all"
        ));
    }
    if visible.len() == used.len() {
        return None;
    }
    known.keep_cards(&visible);
    let (left, all) = (visible.len(), used.len());
    Some(format!(
        "models may use {left} of {all} graphics cards, because {variables} is set; the others are left out"
    ))
}

#[cfg(test)]
mod tests {
    use hob_core::machine::GpuMemory;
    use hob_machine::profile;

    use super::*;

    /// A machine with cards of these names. They have equal sizes.
    fn machine(names: &str) -> MachineFacts {
        let mut known = profile::builtin("rtx-4090").expect("a profile");
        for (number, name) in names.split(' ').enumerate() {
            if number > 0 {
                known.machine.gpus.push(known.machine.gpus[0].clone());
                known.gpus.push(known.gpus[0].clone());
                known.gpu_stamps.push(None);
            }
            name.clone_into(&mut known.machine.gpus[number].name);
        }
        known
    }

    /// The engine's list, such as `CUDA0=A CUDA1=B`, of cards as large as the machine's.
    fn listed(known: &MachineFacts, devices: &str) -> Vec<EngineDevice> {
        let total_bytes = match known.machine.gpus[0].memory {
            GpuMemory::Own { total_bytes, .. } => total_bytes,
            GpuMemory::Unified { limit_bytes } => limit_bytes,
        };
        let device = |(name, description): (&str, &str)| EngineDevice {
            name: name.to_owned(),
            description: description.to_owned(),
            backend: "CUDA".to_owned(),
            is_card: true,
            free_bytes: total_bytes,
            total_bytes,
        };
        devices.split(' ').filter_map(|device| device.split_once('=')).map(device).collect()
    }

    /// The names of the cards that are left, and the note.
    fn left(names: &str, value: Option<&str>, devices: &str) -> (String, Option<String>) {
        let mut known = machine(names);
        let devices = listed(&known, devices);
        let hidden = HiddenCards::by(|name| {
            value.filter(|_| name == "CUDA_VISIBLE_DEVICES").map(str::to_owned)
        });
        let used: Vec<usize> = (0..known.machine.gpus.len()).collect();
        let note = leave_out(&mut known, &used, &hidden, || devices);
        let left: Vec<&str> = known.machine.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
        assert_eq!((known.gpus.len(), known.gpu_stamps.len()), (left.len(), left.len()));
        (left.join(" "), note)
    }

    #[test]
    fn hidden_cards_are_left_out_and_a_note_says_so() {
        let rows = [
            ("A B", Some("1"), "CUDA0=B", "B", Some("models may use 1 of 2 ")),
            ("A A", Some(""), "", "", Some("models may use 0 of 2 ")),
            ("A A", Some("1,0"), "CUDA0=A CUDA1=A", "A A", None),
            ("A B", None, "CUDA0=A", "A B", None),
            ("A B", Some("0"), "Vulkan0=A", "A B", None),
            ("A A", Some("GPU-1"), "CUDA0=A", "A A", Some("CUDA_VISIBLE_DEVICES is set, and ")),
        ];
        for (names, value, devices, expected, says) in rows {
            let (kept, note) = left(names, value, devices);
            assert_eq!(kept, expected, "{value:?}");
            assert_eq!(note.is_some(), says.is_some(), "{note:?}");
            assert!(note.unwrap_or_default().starts_with(says.unwrap_or_default()), "{value:?}");
        }
    }

    #[test]
    fn a_build_that_uses_no_card_says_which_one_would() {
        let mut known = machine("A B");
        let gpus = &known.machine.gpus;
        let (found, to_do) = other_build(gpus, false).expect("a finding");
        assert_eq!(found, "A, B; this hob uses the processor only");
        assert_eq!(to_do, "build one with `make build FEATURES=cuda`");
        assert_eq!(other_build(gpus, true), None);
        known.machine.gpus.clear();
        assert_eq!(other_build(&known.machine.gpus, false), None);
    }

    #[test]
    fn the_engine_is_not_asked_without_a_variable_or_a_card() {
        let asked = || -> Vec<EngineDevice> { panic!("the engine is asked") };
        let hidden = HiddenCards::by(|_| Some("0".to_owned()));
        let mut known = machine("A");
        assert_eq!(leave_out(&mut known, &[0], &HiddenCards::default(), asked), None);
        assert_eq!(leave_out(&mut known, &[], &hidden, asked), None);
    }
}
