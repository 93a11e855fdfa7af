//! Variables that hide graphics cards from the engine. hob sees all cards of the machine, and its workers do not.
//! Each library has its own variable and numbers its cards in its own way, so the engine's list says which cards remain.

use hob_engines::chat::EngineDevice;

use crate::app::App;

/// How a library's names for its cards begin, and the variable that hides cards from it.
const HIDING: [(&str, &str); 2] =
    [("CUDA", "CUDA_VISIBLE_DEVICES"), ("Vulkan", "GGML_VK_VISIBLE_DEVICES")];

/// How UUIDs of whole cards begin. CUDA takes any beginning that only one card has.
const UUID_START: &str = "GPU-";

/// The variables that are set. Workers inherit them.
#[derive(Clone, Debug, Default)]
pub(crate) struct HiddenCards(Vec<Hiding>);

#[derive(Clone, Debug)]
struct Hiding {
    library: &'static str,
    variable: &'static str,
    value: String,
}

impl HiddenCards {
    pub(crate) fn of(app: &App<'_>) -> HiddenCards {
        let variables = &app.environment.secrets;
        HiddenCards::by(|name| variables.get(name).map(|value| value.expose().to_owned()))
    }

    /// `value` returns the value of a variable that is set. An empty value hides all cards.
    pub(crate) fn by(value: impl Fn(&str) -> Option<String>) -> HiddenCards {
        let hiding = HIDING.into_iter().filter_map(|(library, variable)| {
            Some(Hiding { library, variable, value: value(variable)? })
        });
        HiddenCards(hiding.collect())
    }

    pub(crate) fn is_any(&self) -> bool {
        !self.0.is_empty()
    }

    pub(crate) fn variables(&self) -> String {
        self.0.iter().map(|hiding| hiding.variable).collect::<Vec<_>>().join(" and ")
    }

    /// The engine's names of the cards that remain. `None` if no variable is set, or if a library without such a variable lists
    /// cards: it hides none.
    pub(crate) fn remaining(&self, listed: &[EngineDevice]) -> Option<Vec<String>> {
        let cards = || listed.iter().filter(|device| device.is_card);
        let is_hiding = self.is_any() && cards().all(|card| self.hiding(&card.name).is_some());
        is_hiding.then(|| cards().map(|card| card.name.clone()).collect())
    }

    /// The number that the library would give this card if it saw all cards. `None` if the variable has no number for it, but
    /// for example a UUID.
    pub(super) fn number(&self, device: &str) -> Option<usize> {
        match self.hiding(device) {
            Some(_) => self.entry(device)?.parse().ok(),
            None => place_in_list(device),
        }
    }

    /// The beginning of the card's UUID, if the variable has that.
    pub(super) fn uuid_start(&self, device: &str) -> Option<&str> {
        self.entry(device).filter(|entry| entry.starts_with(UUID_START))
    }

    /// What the variable says of this card.
    fn entry(&self, device: &str) -> Option<&str> {
        Some(self.hiding(device)?.value.split(',').nth(place_in_list(device)?)?.trim())
    }

    fn hiding(&self, device: &str) -> Option<&Hiding> {
        self.0.iter().find(|hiding| device.starts_with(hiding.library))
    }
}

/// The number in the engine's name of a card.
pub(super) fn place_in_list(device: &str) -> Option<usize> {
    device.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_has_the_number_that_the_variable_says() {
        let hidden = HiddenCards::by(|name| {
            (name == "CUDA_VISIBLE_DEVICES").then(|| "3, 1,GPU-8a1b".to_owned())
        });
        assert_eq!(hidden.variables(), "CUDA_VISIBLE_DEVICES");
        let rows = [
            ("CUDA0", Some(3)),
            ("CUDA1", Some(1)),
            ("CUDA2", None),
            ("CUDA3", None),
            ("Vulkan1", Some(1)),
            ("CPU", None),
        ];
        for (device, expected) in rows {
            assert_eq!(hidden.number(device), expected, "{device}");
        }
        assert_eq!(HiddenCards::default().number("CUDA1"), Some(1));
        let uuids = ["CUDA1", "CUDA2", "CUDA3", "Vulkan2"].map(|device| hidden.uuid_start(device));
        assert_eq!(uuids, [None, Some("GPU-8a1b"), None, None]);
    }
}
