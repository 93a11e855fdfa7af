//! The graphics cards of a model, as `device` in hob.toml names them.
//! The engine's crate reads the names. Which cards there are is only known when a model is loaded.

use hob_engines::chat::{CardUse, NotCardUse};
use serde::{Deserialize, Serialize};

use super::{ConfigFile, quoted};

/// Names such as `Vulkan0` or `CUDA0,CUDA1`, or `cpu`, or `all`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct DeviceText(pub(crate) CardUse);

impl TryFrom<String> for DeviceText {
    type Error = NotCardUse;

    fn try_from(text: String) -> Result<DeviceText, NotCardUse> {
        text.parse().map(DeviceText)
    }
}

impl From<DeviceText> for String {
    fn from(DeviceText(card_use): DeviceText) -> String {
        card_use.to_string()
    }
}

impl ConfigFile {
    /// The tables that name devices, with what they name. A further model that inherits chat's names none.
    pub(crate) fn named_devices(&self) -> impl Iterator<Item = (String, &CardUse)> {
        let models = self.model.iter();
        let models = models.map(|(name, chat)| (format!("model.{}", quoted(name)), &chat.device));
        let others = [
            ("chat".to_owned(), &self.chat.device),
            ("transcription".to_owned(), &self.transcription.device),
        ];
        let tables = others.into_iter().chain(models);
        tables.filter_map(|(table, device)| Some((table, &device.as_ref()?.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_that_names_a_device_is_the_one_to_change() {
        let text = "[chat]\ndevice = \"CUDA0\"\n[model.a]\nmodel = \"a.gguf\"\n\
            [model.\"b.5\"]\nmodel = \"b.gguf\"\ndevice = \"CUDA1\"\n";
        let config: ConfigFile = toml::from_str(text).expect("a configuration");
        let named = config.named_devices().map(|(table, cards)| format!("{table} {cards}"));
        let named: Vec<String> = named.collect();
        assert_eq!(named, ["chat CUDA0", "model.\"b.5\" CUDA1"]);
    }
}
