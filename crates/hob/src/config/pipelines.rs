//! `[server.pipelines]` of hob.toml: teams as Pipelines of Open WebUI.
//! The routes are on the main port too; this table is for clients that expect the port of Pipelines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::listen::Listen;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PipelinesSection {
    /// A second address with the same routes, such as `:9099`, the port of Pipelines. Default: none.
    #[schemars(with = "Option<String>")]
    pub(crate) listen: Option<Listen>,
    /// Accept the key that every installation of Pipelines has by default, for lists and chats only. It is public, so every client that
    /// reaches hob can then chat: an address that other machines can reach also needs `allow_remote`.
    pub(crate) accept_default_key: Option<bool>,
}
