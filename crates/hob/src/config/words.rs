//! Settings whose values are a few words, which other crates define.
//! The error for a wrong word lists the allowed ones, and so does the schema.

use hob_core::chat::Effort;
use hob_core::routing::{Strategy, UnknownStrategy};
use hob_upstream::UpstreamKind;
use hob_upstream::options::UnknownUpstreamKind;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The kind of a server.
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

/// The strategy of an alias.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub(crate) struct StrategyName(pub(crate) Strategy);

impl TryFrom<String> for StrategyName {
    type Error = UnknownStrategy;

    fn try_from(name: String) -> Result<StrategyName, UnknownStrategy> {
        name.parse().map(StrategyName)
    }
}

impl From<StrategyName> for &'static str {
    fn from(StrategyName(strategy): StrategyName) -> &'static str {
        strategy.name()
    }
}

pub(super) fn pick_schema(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "enum": Strategy::ALL.map(Strategy::name) })
}

/// How much a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub(crate) struct EffortName(pub(crate) Effort);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is not a thinking effort (expected {})", Effort::ALL.map(Effort::name).join(", "))]
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
