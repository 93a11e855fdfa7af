//! The figures of a record by the names of `terms`, with their distribution.
//! Serde is implemented by hand, so that an error names the line of the figure.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::terms::{Metric, known, look_up};

/// One entry per measured figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    pub spreads: BTreeMap<Metric, Spread>,
    pub stall: Option<Stall>,
    pub goodput: Option<Goodput>,
    pub no_answer: Option<u64>,
    pub errors: Option<u64>,
}

/// The distribution of values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Null if not published
    pub n: Option<u64>,
    pub min: Option<f64>,
    /// The figure; null if only a range or a mean is known
    pub p50: Option<f64>,
    /// Null with fewer than 72 values
    pub p95: Option<f64>,
    /// Null with fewer than 368 values
    pub p99: Option<f64>,
    pub max: Option<f64>,
    pub mean: Option<f64>,
    /// 95 % interval of the median; null with fewer than 6 runs
    pub ci95: Option<[f64; 2]>,
    /// How it was computed, if there are several ways: `engine`, `client_estimate`
    pub method: Option<String>,
}

impl Spread {
    /// The one figure to show: the median, or else the mean.
    pub fn figure(&self) -> Option<f64> {
        self.p50.or(self.mean)
    }

    /// Every number in it.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        let ends = self.ci95.into_iter().flatten();
        let single = [self.min, self.p50, self.p95, self.p99, self.max, self.mean];
        single.into_iter().flatten().chain(ends)
    }
}

/// Pauses that a reader notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    pub count: u64,
    /// The longest
    pub worst_ms: f64,
}

/// Share of requests that met every limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Goodput {
    /// By metric, its limit
    pub slo: BTreeMap<Metric, f64>,
    /// The share
    pub value: f64,
    /// Its 95 % interval, by Wilson
    pub wilson95: [f64; 2],
}

impl Metrics {
    pub fn get(&self, metric: Metric) -> Option<&Spread> {
        self.spreads.get(&metric)
    }

    /// Adds the figures that are known.
    pub(crate) fn extend(&mut self, rows: impl IntoIterator<Item = (Metric, Option<Spread>)>) {
        self.spreads.extend(known(rows));
    }

    /// The median of a metric, or its mean if there is no median.
    pub fn figure(&self, metric: Metric) -> Option<f64> {
        self.get(metric).and_then(Spread::figure)
    }
}

impl Serialize for Metrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (metric, spread) in &self.spreads {
            map.serialize_entry(metric, spread)?;
        }
        let Metrics { spreads: _, stall, goodput, no_answer, errors } = self;
        entry(&mut map, "stall", stall.as_ref())?;
        entry(&mut map, "goodput", goodput.as_ref())?;
        entry(&mut map, "no_answer", no_answer.as_ref())?;
        entry(&mut map, "errors", errors.as_ref())?;
        map.end()
    }
}

fn entry<M: serde::ser::SerializeMap, T: Serialize>(
    map: &mut M,
    name: &'static str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}

impl<'de> Deserialize<'de> for Metrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Metrics, D::Error> {
        deserializer.deserialize_map(Entries)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Metrics;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("figures by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metrics, A::Error> {
        let mut metrics = Metrics::default();
        while let Some(name) = map.next_key::<Name>()? {
            match name {
                Name::Stall => metrics.stall = map.next_value()?,
                Name::Goodput => metrics.goodput = map.next_value()?,
                Name::NoAnswer => metrics.no_answer = map.next_value()?,
                Name::Errors => metrics.errors = map.next_value()?,
                Name::Metric(metric) => {
                    if let Some(spread) = map.next_value()? {
                        metrics.spreads.insert(metric, spread);
                    }
                }
            }
        }
        Ok(metrics)
    }
}

/// The name of an entry.
enum Name {
    Metric(Metric),
    Stall,
    Goodput,
    NoAnswer,
    Errors,
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "stall" => Ok(Name::Stall),
            "goodput" => Ok(Name::Goodput),
            "no_answer" => Ok(Name::NoAnswer),
            "errors" => Ok(Name::Errors),
            name => Metric::from_name(name)
                .map(Name::Metric)
                .ok_or_else(|| D::Error::custom(format_args!("no figure is called `{name}`"))),
        }
    }
}

impl JsonSchema for Metrics {
    fn schema_name() -> Cow<'static, str> {
        "Metrics".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut properties = serde_json::Map::new();
        for metric in Metric::ALL {
            properties.insert(
                metric.name().to_owned(),
                described(generator.subschema_for::<Option<Spread>>(), metric.name()),
            );
        }
        let others = [
            ("stall", generator.subschema_for::<Option<Stall>>()),
            ("goodput", generator.subschema_for::<Option<Goodput>>()),
            ("no_answer", generator.subschema_for::<Option<u64>>()),
            ("errors", generator.subschema_for::<Option<u64>>()),
        ];
        for (name, schema) in others {
            properties.insert(name.to_owned(), described(schema, name));
        }
        json_schema!({
            "description": "One entry per name; a figure that was not measured has none.",
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}

fn described(mut schema: Schema, name: &str) -> serde_json::Value {
    if let Some(term) = look_up(name) {
        schema.insert("description".to_owned(), term.meaning.into());
    }
    schema.into()
}
