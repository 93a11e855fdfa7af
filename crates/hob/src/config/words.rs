//! Settings that are one of a few words, which some other room knows.
//! A wrong word is refused with the list, and the schema lists them too.

use hob_core::chat::Effort;
use hob_core::routing::{Pick, UnknownPick};
use hob_upstream::UpstreamKind;
use hob_upstream::options::UnknownUpstreamKind;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// What a server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub(crate) struct KindName(pub(crate) UpstreamKind);

impl TryFrom<String> for KindName {
    type Error = UnknownUpstreamKind;

    fn try_from(name: String) -> Result<KindName, UnknownUpstreamKind> {
        name.parse().map(KindName)
    }
}

impl From<KindName> for &'static str {
    fn from(KindName(kind): KindName) -> &'static str {
        kind.name()
    }
}

pub(super) fn kind_schema(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "enum": UpstreamKind::ALL.map(UpstreamKind::name) })
}

/// How an alias chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub(crate) struct PickName(pub(crate) Pick);

impl TryFrom<String> for PickName {
    type Error = UnknownPick;

    fn try_from(name: String) -> Result<PickName, UnknownPick> {
        name.parse().map(PickName)
    }
}

impl From<PickName> for &'static str {
    fn from(PickName(pick): PickName) -> &'static str {
        pick.name()
    }
}

pub(super) fn pick_schema(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "enum": Pick::ALL.map(Pick::name) })
}

/// How much a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub(crate) struct EffortName(pub(crate) Effort);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is no effort; known are {}", Effort::ALL.map(Effort::name).join(", "))]
pub(crate) struct UnknownEffort {
    name: String,
}

impl TryFrom<String> for EffortName {
    type Error = UnknownEffort;

    fn try_from(name: String) -> Result<EffortName, UnknownEffort> {
        let known = Effort::ALL.into_iter().find(|effort| effort.name() == name);
        known.map(EffortName).ok_or(UnknownEffort { name })
    }
}

impl From<EffortName> for &'static str {
    fn from(EffortName(effort): EffortName) -> &'static str {
        effort.name()
    }
}

pub(super) fn effort_schema(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "enum": Effort::ALL.map(Effort::name) })
}
