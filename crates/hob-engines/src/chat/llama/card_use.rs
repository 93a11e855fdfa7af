//! Which graphics cards a model may use, as the user writes it: `Vulkan0`, `CUDA0,CUDA1`, `cpu` or `all`.
//! Names are ggml's, as `hob doctor` lists them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::has_card_kernels;
use crate::backends;

/// All cards.
const ALL: &str = "all";
/// Both mean that no card computes. hob writes the first one.
const PROCESSOR: [&str; 2] = ["cpu", "none"];

/// Which graphics cards compute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CardUse {
    /// All cards compute: the layers that they hold, and pieces of long prompts for all layers.
    #[default]
    Allowed,
    /// Only these cards compute, by ggml's names. Each is named once, in capital or small letters.
    Only(Vec<String>),
    /// No card computes, or holds a part of the model or its buffers.
    Avoided,
}

/// A processor or a graphics card, as ggml sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineDevice {
    /// ggml's name, such as `CPU`, `Vulkan0` or `CUDA1`.
    pub name: String,
    /// The driver's name for it.
    pub description: String,
    /// The library that computes: `CPU`, `Vulkan`, `CUDA` or `Metal`.
    pub backend: String,
    pub is_card: bool,
    pub free_bytes: u64,
    pub total_bytes: u64,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCardUse {
    #[error(
        "a device has no name; write names that `hob doctor` lists, such as Vulkan0 or CUDA0,CUDA1, or cpu, or all"
    )]
    Empty,
    #[error("the device {0} is named twice; name each device once")]
    Twice(String),
    #[error(
        "'{0}' cannot stand in a list; write it alone, or name only graphics cards: the processor always computes the rest"
    )]
    Mixed(String),
}

/// The engine lists no graphics card of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence(has_card_kernels()))]
pub struct UnknownDevice {
    pub name: String,
    /// The cards that it lists, with the driver's names.
    pub cards: Vec<String>,
}

impl CardUse {
    /// Positions of the named cards in a list of ggml's devices, in the order of the names. `None`: all cards may be used.
    ///
    /// # Errors
    /// The list has no card of one of these names.
    pub fn numbers(&self, devices: &[EngineDevice]) -> Result<Option<Vec<usize>>, UnknownDevice> {
        self.numbers_among(devices, |device| {
            device.is_card.then_some((device.name.as_str(), device.description.as_str()))
        })
    }

    /// `card` gives the names of a device that is a card: ggml's, and the driver's.
    fn numbers_among<D>(
        &self,
        devices: &[D],
        card: impl Fn(&D) -> Option<(&str, &str)>,
    ) -> Result<Option<Vec<usize>>, UnknownDevice> {
        let shown = |(name, description): (&str, &str)| format!("{name} ({description})");
        let number = |name: &String| {
            let is_named =
                |device: &D| card(device).is_some_and(|(own, _)| own.eq_ignore_ascii_case(name));
            devices.iter().position(is_named).ok_or_else(|| UnknownDevice {
                name: name.clone(),
                cards: devices.iter().filter_map(&card).map(shown).collect(),
            })
        };
        match self {
            CardUse::Allowed => Ok(None),
            CardUse::Avoided => Ok(Some(Vec::new())),
            CardUse::Only(names) => names.iter().map(number).collect::<Result<_, _>>().map(Some),
        }
    }

    /// As [`CardUse::numbers`], in the list of this process's devices.
    ///
    /// # Errors
    /// See [`CardUse::numbers`].
    pub(crate) fn numbers_here(&self) -> Result<Option<Vec<usize>>, UnknownDevice> {
        // Listing devices calls their drivers, so hob does it only if a card is named.
        let is_named = matches!(self, CardUse::Only(_));
        let devices = if is_named { backends::devices() } else { Vec::new() };
        self.numbers_among(&devices, |device| {
            device.is_card.then_some((device.name.as_str(), device.description.as_str()))
        })
    }

    /// Whether the model may use a card of this name.
    pub(super) fn allows(&self, card: &str) -> bool {
        match self {
            CardUse::Allowed => true,
            CardUse::Only(names) => names.iter().any(|name| name.eq_ignore_ascii_case(card)),
            CardUse::Avoided => false,
        }
    }

    /// Why a build without kernels for cards cannot use a named one. `None`: no card is named, or the build has kernels.
    pub fn not_built(&self, has_kernels: bool) -> Option<String> {
        let CardUse::Only(names) = self else { return None };
        let name = names.first().cloned().unwrap_or_default();
        (!has_kernels).then(|| UnknownDevice { name, cards: Vec::new() }.sentence(has_kernels))
    }
}

impl UnknownDevice {
    fn sentence(&self, has_kernels: bool) -> String {
        let UnknownDevice { name, cards } = self;
        match cards[..] {
            _ if !has_kernels => format!(
                "there is no device {name}, because this hob was built for the processor only: build one with \
                 `make build FEATURES=vulkan` (or cuda), or set `device` to cpu"
            ),
            [] => format!(
                "there is no device {name}, and no other graphics card: `hob doctor` says what its driver lacks, or \
                 set `device` to cpu"
            ),
            _ => format!(
                "there is no device {name}: set `device` to {}, or to cpu",
                cards.join(" or ")
            ),
        }
    }
}

impl FromStr for CardUse {
    type Err = NotCardUse;

    fn from_str(text: &str) -> Result<CardUse, NotCardUse> {
        let names: Vec<&str> = text.split(',').map(str::trim).collect();
        let is_processor =
            |name: &str| PROCESSOR.iter().any(|word| name.eq_ignore_ascii_case(word));
        let is_all = |name: &str| name.eq_ignore_ascii_case(ALL);
        match names[..] {
            [name] if is_processor(name) => return Ok(CardUse::Avoided),
            [name] if is_all(name) => return Ok(CardUse::Allowed),
            _ => {}
        }
        for (at, name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err(NotCardUse::Empty);
            }
            if is_processor(name) || is_all(name) {
                return Err(NotCardUse::Mixed((*name).to_owned()));
            }
            if names[..at].iter().any(|earlier| earlier.eq_ignore_ascii_case(name)) {
                return Err(NotCardUse::Twice((*name).to_owned()));
            }
        }
        Ok(CardUse::Only(names.into_iter().map(str::to_owned).collect()))
    }
}

impl fmt::Display for CardUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CardUse::Allowed => f.write_str(ALL),
            CardUse::Only(names) => f.write_str(&names.join(",")),
            CardUse::Avoided => f.write_str(PROCESSOR[0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, is_card: bool) -> EngineDevice {
        EngineDevice {
            name: name.to_owned(),
            description: format!("the {name}"),
            backend: "Vulkan".to_owned(),
            is_card,
            free_bytes: 0,
            total_bytes: 0,
        }
    }

    fn only(names: &[&str]) -> CardUse {
        CardUse::Only(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn devices_are_read_as_people_write_them_and_written_back() {
        for (text, expected, written) in [
            ("Vulkan0", only(&["Vulkan0"]), "Vulkan0"),
            (" CUDA1, CUDA0 ", only(&["CUDA1", "CUDA0"]), "CUDA1,CUDA0"),
            ("cpu", CardUse::Avoided, "cpu"),
            ("None", CardUse::Avoided, "cpu"),
            ("all", CardUse::Allowed, "all"),
        ] {
            let read: CardUse = text.parse().expect(text);
            assert_eq!((&read, read.to_string().as_str()), (&expected, written), "{text:?}");
            assert_eq!(written.parse(), Ok(read));
        }
    }

    #[test]
    fn lists_without_a_meaning_are_rejected() {
        for (text, expected) in [
            ("", NotCardUse::Empty),
            ("Vulkan0,", NotCardUse::Empty),
            ("Vulkan0,Vulkan1,vulkan0", NotCardUse::Twice("vulkan0".to_owned())),
            ("cpu,cpu", NotCardUse::Mixed("cpu".to_owned())),
            ("Vulkan0,cpu", NotCardUse::Mixed("cpu".to_owned())),
            ("all,Vulkan0", NotCardUse::Mixed("all".to_owned())),
        ] {
            assert_eq!(text.parse::<CardUse>(), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn named_cards_are_found_in_the_engine_s_list_in_their_own_order() {
        let devices = [device("CUDA0", true), device("CPU", false), device("Vulkan0", true)];
        for (cards, expected) in [
            (CardUse::Allowed, Ok(None)),
            (CardUse::Avoided, Ok(Some(Vec::new()))),
            (only(&["cuda0"]), Ok(Some(vec![0]))),
            (only(&["Vulkan0", "CUDA0"]), Ok(Some(vec![2, 0]))),
        ] {
            assert_eq!(cards.numbers(&devices), expected, "{cards}");
        }
        let unknown = only(&["CUDA0", "CUDA7"]).numbers(&devices).expect_err("no such card");
        assert_eq!(unknown.name, "CUDA7");
        assert_eq!(
            unknown.sentence(true),
            "there is no device CUDA7: set `device` to CUDA0 (the CUDA0) or Vulkan0 (the Vulkan0), or to cpu"
        );
        assert!(only(&["CPU"]).numbers(&devices).is_err(), "the processor is no card");
        let without = only(&["CUDA0"]).numbers(&devices[1..2]).expect_err("no card");
        assert!(without.sentence(true).contains("`hob doctor`"), "{without}");
    }

    #[test]
    fn a_model_may_use_only_the_cards_that_are_named() {
        for (cards, expected) in [
            (CardUse::Allowed, [true, true]),
            (only(&["cuda0"]), [true, false]),
            (CardUse::Avoided, [false, false]),
        ] {
            assert_eq!(["CUDA0", "CUDA1"].map(|card| cards.allows(card)), expected, "{cards}");
        }
        // In the list of this process, the processor is no card.
        assert_eq!(only(&["CPU"]).numbers_here().expect_err("no card").name, "CPU");
    }

    #[test]
    fn a_build_without_kernels_says_how_to_get_one_with_them() {
        let said = only(&["Vulkan0"]).not_built(false).expect("a sentence");
        assert!(said.starts_with("there is no device Vulkan0, because "), "{said}");
        assert!(said.contains("FEATURES=vulkan"), "{said}");
        assert_eq!(only(&["Vulkan0"]).not_built(true), None);
        assert_eq!(CardUse::Avoided.not_built(false), None);
    }
}
