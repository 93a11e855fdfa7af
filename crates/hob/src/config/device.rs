//! The graphics cards of a model, as `device` in hob.toml names them.
//! The engine's crate reads the names. Which cards there are is only known when a model is loaded.

use hob_engines::chat::{CardUse, NotCardUse};
use serde::{Deserialize, Serialize};

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
