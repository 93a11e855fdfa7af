//! The graphics cards that a model may use if settings name some or variables hide some: the engine's names, and hob's numbers.
//! Pure: callers pass the engine's list. hob's numbers are those of the pools that all models share.

use hob_core::fit::Pool;
use hob_core::machine::{Gpu, GpuMemory, Machine};
use hob_engines::chat::{CardUse, EngineDevice};

use super::hidden_cards::{HiddenCards, place_in_list};

/// Drivers and system programs report slightly different sizes of one card: by less than a sixteenth.
const SIZE_PARTS: u64 = 16;

/// The numbers of a model's cards among those of the whole machine, if settings name some, variables hide some, or the engine has
/// another order. Otherwise empty: all cards, with their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NamedCards(Vec<usize>);

impl NamedCards {
    /// The machine with the cards that this model may use. It has none if hob cannot say which card a name means: then hob
    /// counts nothing there, as with a card that only the engine sees.
    pub(super) fn choose(
        card_use: &CardUse,
        hidden: &HiddenCards,
        listed: impl FnOnce() -> Vec<EngineDevice>,
        mut machine: Machine,
    ) -> (Machine, NamedCards) {
        let depends_on_list = match card_use {
            CardUse::Allowed => hidden.is_any() || machine.gpus.len() > 1,
            CardUse::Only(_) => true,
            CardUse::Avoided => false,
        };
        let depends_on_list = depends_on_list && !machine.gpus.is_empty();
        let listed = if depends_on_list { listed() } else { Vec::new() };
        let names = match card_use {
            CardUse::Allowed => {
                let remaining = hidden.remaining(&listed).filter(|_| depends_on_list);
                let Some(names) = remaining else {
                    return in_engine_order(&listed, hidden, machine);
                };
                names
            }
            CardUse::Only(names) => names.clone(),
            CardUse::Avoided => Vec::new(),
        };
        let card = |name: String| Some((number_of(&name, &listed, hidden, &machine)?, name));
        let cards: Option<Vec<(usize, String)>> = names.into_iter().map(card).collect();
        let cards = NamedCards::name(cards.unwrap_or_default(), &mut machine);
        machine.gpus = cards.of(&machine);
        (machine, cards)
    }

    /// Gives the cards their names. Each card once: two libraries may list the same one.
    fn name(named: Vec<(usize, String)>, machine: &mut Machine) -> NamedCards {
        let mut cards = NamedCards::default();
        for (number, name) in named {
            if !cards.0.contains(&number) {
                cards.0.push(number);
                machine.gpus[number].engine_name = Some(name);
            }
        }
        cards
    }

    fn of(&self, machine: &Machine) -> Vec<Gpu> {
        self.numbers().map(|number| machine.gpus[number].clone()).collect()
    }

    /// Their numbers among the cards of the whole machine.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied()
    }

    /// The pool that all models share, for a pool of this model's machine.
    pub(super) fn pool(&self, pool: Pool) -> Pool {
        match pool {
            Pool::Ram => Pool::Ram,
            Pool::Vram(place) => Pool::Vram(self.0.get(place).copied().unwrap_or(place)),
        }
    }
}

/// The whole machine, with its cards in the engine's order: layers are divided in that order, and the first card transcribes.
/// hob's order remains if it is the same, or if hob cannot say which card each name means.
fn in_engine_order(
    listed: &[EngineDevice],
    hidden: &HiddenCards,
    mut machine: Machine,
) -> (Machine, NamedCards) {
    let card = |device: &EngineDevice| {
        Some((number_of(&device.name, listed, hidden, &machine)?, device.name.clone()))
    };
    let named = listed.iter().filter_map(card).collect();
    let cards = NamedCards::name(named, &mut machine);
    if cards.0.len() < machine.gpus.len() || cards.0.is_sorted() {
        return (machine, NamedCards::default());
    }
    machine.gpus = cards.of(&machine);
    (machine, cards)
}

/// Why hob does not count the memory of the cards that the settings name, given the model's machine. If the engine lists other
/// cards only, it has their names. `None`: hob counts it, or the settings name none.
pub(super) fn uncounted(
    card_use: &CardUse,
    machine: &Machine,
    has_kernels: bool,
    listed: impl FnOnce() -> Vec<EngineDevice>,
) -> Option<String> {
    let is_named = matches!(card_use, CardUse::Only(_));
    (is_named && has_kernels && machine.gpus.is_empty()).then(|| match card_use.numbers(&listed()) {
        Err(unknown) if !unknown.cards.is_empty() => unknown.to_string(),
        Ok(_) | Err(_) => format!(
            "hob cannot say which of its cards is {card_use}, so it counts no memory there; `hob doctor` lists the names \
             of all"
        ),
    })
}

/// hob's number of a card that the engine lists. `None` if it may be one of several.
fn number_of(
    name: &str,
    listed: &[EngineDevice],
    hidden: &HiddenCards,
    machine: &Machine,
) -> Option<usize> {
    let cards = || listed.iter().filter(|device| device.is_card);
    let device = cards().find(|device| device.name.eq_ignore_ascii_case(name))?;
    if let Some(start) = hidden.uuid_start(&device.name) {
        let by_uuid = card_with_uuid(start, machine);
        if by_uuid.is_some() {
            return by_uuid;
        }
    }
    let number = hidden.number(&device.name).map_or_else(String::new, |number| number.to_string());
    let by_name = card_named(&format!("{number} ({})", device.description), machine);
    by_name.or_else(|| {
        let is_alike = |number: &usize| match machine.gpus[*number] {
            Gpu { memory: GpuMemory::Own { total_bytes, .. }, is_in_processor: false, .. } => {
                total_bytes.abs_diff(device.total_bytes) <= total_bytes / SIZE_PARTS
            }
            // One card on both sides.
            Gpu { .. } => machine.gpus.len() == 1 && cards().count() == 1,
        };
        let mut alike = (0..machine.gpus.len()).filter(is_alike);
        alike.next().filter(|_| alike.next().is_none())
    })
}

/// The number of the card of which the UUID begins like this.
fn card_with_uuid(start: &str, machine: &Machine) -> Option<usize> {
    let is_named = |number: &usize| {
        let uuid = machine.gpus[*number].uuid.as_deref();
        let beginning = uuid.and_then(|uuid| uuid.get(..start.len()));
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(start))
    };
    let mut named = (0..machine.gpus.len()).filter(is_named);
    named.next().filter(|_| named.next().is_none())
}

/// The number of the card that a driver names, such as `CUDA1 (NVIDIA GeForce RTX 3090)`. `None` if it may be one of several.
pub(super) fn card_named(device: &str, machine: &Machine) -> Option<usize> {
    let (engine_name, name) = device.strip_suffix(')')?.split_once(" (")?;
    let is_named = |gpu: &Gpu| {
        gpu.engine_name.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(engine_name))
    };
    if let Some(number) = machine.gpus.iter().position(is_named) {
        return Some(number);
    }
    let is_alike = |number: &usize| machine.gpus[*number].name == name;
    let alike: Vec<usize> = (0..machine.gpus.len()).filter(is_alike).collect();
    match alike[..] {
        [only] => Some(only),
        // Equal cards have the same order here and there: that of their slots.
        _ if alike.len() == machine.gpus.len() => alike.get(place_in_list(engine_name)?).copied(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hob_machine::profile;

    use super::*;

    const GB: u64 = 1_000_000_000;

    /// A machine with cards of these names and sizes.
    fn machine(cards: &[(&str, u64)]) -> Machine {
        let mut machine = profile::builtin("rtx-4090").expect("a profile").machine;
        let gpu = machine.gpus.remove(0);
        machine.gpus = cards
            .iter()
            .map(|(name, total_bytes)| {
                let mut gpu = gpu.clone();
                (*name).clone_into(&mut gpu.name);
                gpu.memory = GpuMemory::Own { total_bytes: *total_bytes, free_bytes: *total_bytes };
                gpu
            })
            .collect();
        machine
    }

    fn listed(name: &str, description: &str, total_bytes: u64) -> EngineDevice {
        EngineDevice {
            name: name.to_owned(),
            description: description.to_owned(),
            backend: "CUDA".to_owned(),
            is_card: name != "CPU",
            free_bytes: total_bytes,
            total_bytes,
        }
    }

    /// Numbers of the chosen cards, and the names of the cards that the model's machine has.
    fn chosen(text: &str, devices: &[EngineDevice], whole: &Machine) -> (Vec<usize>, Vec<String>) {
        chosen_with(&HiddenCards::default(), text, devices, whole)
    }

    fn chosen_with(
        hidden: &HiddenCards,
        text: &str,
        devices: &[EngineDevice],
        whole: &Machine,
    ) -> (Vec<usize>, Vec<String>) {
        let card_use: CardUse = text.parse().expect("devices");
        let listed = || devices.to_vec();
        let (machine, cards) = NamedCards::choose(&card_use, hidden, listed, whole.clone());
        let names = machine.gpus.into_iter().map(|gpu| gpu.name).collect();
        (cards.0, names)
    }

    #[test]
    fn a_model_sees_the_cards_that_are_named_and_counts_them_under_their_own_numbers() {
        let whole = machine(&[("A", 24 * GB), ("B", 8 * GB), ("B", 8 * GB)]);
        // The driver has its own order, and its own name for A.
        let devices = [
            listed("CUDA0", "B", 8 * GB),
            listed("CUDA2", "A (rev 1)", 24 * GB + GB / 2),
            listed("CPU", "a processor", 64 * GB),
        ];
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(chosen("CUDA2", &devices, &whole), (vec![0], named(&["A"])));
        assert_eq!(chosen("cpu", &devices, &whole), (Vec::new(), Vec::new()));
        assert_eq!(chosen("all", &devices, &whole), (Vec::new(), named(&["A", "B", "B"])));
        // It may be one of two, so hob counts nothing.
        assert_eq!(chosen("CUDA0", &devices, &whole), (Vec::new(), Vec::new()));
        assert_eq!(chosen("CUDA7", &devices, &whole), (Vec::new(), Vec::new()));
    }

    #[test]
    fn cards_that_a_variable_hides_do_not_count() {
        let chosen_hiding = |value: &str, text, devices: &[EngineDevice], whole: &Machine| {
            let hidden =
                HiddenCards::by(|name| (name == "CUDA_VISIBLE_DEVICES").then(|| value.to_owned()));
            chosen_with(&hidden, text, devices, whole)
        };
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let (two, equal) =
            (machine(&[("A", 24 * GB), ("B", 8 * GB)]), machine(&[("B", 8 * GB), ("B", 8 * GB)]));
        let b = [listed("CUDA0", "B", 8 * GB), listed("CPU", "a processor", 64 * GB)];
        assert_eq!(chosen_hiding("1", "all", &b, &two), (vec![1], named(&["B"])));
        // The engine's first card is the second one of the machine.
        for text in ["all", "CUDA0"] {
            assert_eq!(chosen_hiding("1", text, &b, &equal), (vec![1], named(&["B"])), "{text}");
        }
        // It may be either of two, so hob counts nothing.
        assert_eq!(chosen_hiding("GPU-8a1b", "all", &b, &equal), (Vec::new(), Vec::new()));
        let mut with_uuids = equal.clone();
        for (gpu, uuid) in with_uuids.gpus.iter_mut().zip(["GPU-8a00d3", "GPU-8a1bf7"]) {
            gpu.uuid = Some(uuid.to_owned());
        }
        for value in ["GPU-8a1b", " GPU-8A1BF7,GPU-8a00"] {
            let found = chosen_hiding(value, "all", &b, &with_uuids);
            assert_eq!(found, (vec![1], named(&["B"])), "{value}");
        }
        for value in ["GPU-8a", "GPU-9c", "MIG-8a1bf7"] {
            let found = chosen_hiding(value, "all", &b, &with_uuids);
            assert_eq!(found, (Vec::new(), Vec::new()), "{value}");
        }
        assert_eq!(chosen_hiding("", "all", &b[1..], &two), (Vec::new(), Vec::new()));
        // The variable says nothing to Vulkan.
        let both = [listed("Vulkan0", "A", 24 * GB), listed("Vulkan1", "B", 8 * GB)];
        assert_eq!(chosen_hiding("1", "all", &both, &two), (Vec::new(), named(&["A", "B"])));
    }

    #[test]
    fn a_named_card_that_hob_does_not_know_is_said_to_be_uncounted() {
        let whole = machine(&[("A", 24 * GB)]);
        let said = |text: &str, machine: &Machine, has_kernels| {
            let card_use: CardUse = text.parse().expect("devices");
            uncounted(&card_use, machine, has_kernels, || vec![listed("CUDA7", "B", GB)])
        };
        let note = said("CUDA7", &Machine::default(), true).expect("a note");
        assert!(note.starts_with("hob cannot say which of its cards is CUDA7, "), "{note}");
        // The driver's names have changed.
        let note = said("Vulkan0", &Machine::default(), true).expect("a note");
        assert!(note.starts_with("there is no device Vulkan0"), "{note}");
        assert_eq!(said("CUDA0", &whole, true), None);
        assert_eq!(said("CUDA7", &Machine::default(), false), None);
        for text in ["cpu", "all"] {
            assert_eq!(said(text, &Machine::default(), true), None, "{text}");
        }
    }

    #[test]
    fn equal_cards_have_the_order_of_their_numbers() {
        let whole = machine(&[("B", 8 * GB), ("B", 8 * GB), ("B", 8 * GB)]);
        let devices = ["CUDA0", "CUDA1", "CUDA2"].map(|name| listed(name, "B", 8 * GB));
        let card_use: CardUse = "CUDA2,cuda1".parse().expect("devices");
        let hidden = HiddenCards::default();
        let (machine, cards) = NamedCards::choose(&card_use, &hidden, || devices.to_vec(), whole);
        assert_eq!(machine.gpus.len(), 2);
        let pools = [Pool::Ram, Pool::Vram(0), Pool::Vram(1)].map(|pool| cards.pool(pool));
        assert_eq!(pools, [Pool::Ram, Pool::Vram(2), Pool::Vram(1)]);
        assert_eq!(card_named("CUDA1 (B)", &machine), Some(1));
        assert_eq!(card_named("CUDA2 (B)", &machine), Some(0));
    }

    #[test]
    fn a_card_that_two_libraries_list_counts_once() {
        let whole = machine(&[("A", 24 * GB), ("B", 8 * GB)]);
        let devices = [listed("CUDA0", "A", 24 * GB), listed("Vulkan1", "A", 24 * GB)];
        assert_eq!(chosen("CUDA0,Vulkan1", &devices, &whole).0, [0]);
    }

    #[test]
    fn all_cards_are_filled_in_the_engine_s_order() {
        let whole = machine(&[("A", 24 * GB), ("B", 8 * GB)]);
        let [a, b] = [listed("CUDA1", "A", 24 * GB), listed("CUDA0", "B", 8 * GB)];
        let inside = listed("Vulkan0", "inside the processor", 5 * GB);
        let again = listed("Vulkan1", "A", 24 * GB);
        let named = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let same = (Vec::new(), named(["A", "B"]));
        let other = [b.clone(), a.clone(), inside, again];
        assert_eq!(chosen("all", &other, &whole), (vec![1, 0], named(["B", "A"])));
        assert_eq!(chosen("all", &[a, b.clone()], &whole), same);
        // hob knows only one of them.
        assert_eq!(chosen("all", &[b, listed("CUDA1", "C", GB)], &whole), same);
        let alone = machine(&[("A", 24 * GB)]);
        let unasked = || -> Vec<EngineDevice> { panic!("the engine is asked") };
        let hidden = HiddenCards::default();
        let (machine, _) = NamedCards::choose(&CardUse::Allowed, &hidden, unasked, alone.clone());
        assert_eq!(machine, alone);
    }

    /// Vulkan adds what they may borrow to the memory that the firmware reserves for them.
    #[test]
    fn graphics_of_the_processor_are_known_if_they_are_the_only_card() {
        let mut whole = machine(&[("A", 96 * GB)]);
        whole.gpus[0].is_in_processor = true;
        let devices = [listed("Vulkan0", "A (RADV)", 112 * GB)];
        assert_eq!(chosen("Vulkan0", &devices, &whole).0, [0]);
    }

    #[test]
    fn all_cards_keep_their_numbers() {
        let cards = NamedCards::default();
        assert_eq!(cards.pool(Pool::Vram(3)), Pool::Vram(3));
        let whole = machine(&[("A", 24 * GB)]);
        assert_eq!(card_named("Vulkan0 (A)", &whole), Some(0));
        assert_eq!(card_named("Vulkan0 (B)", &whole), None);
    }
}
