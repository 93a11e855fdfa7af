//! Prices of models that other companies serve, so that a budget can have a limit in money.
//! Models of this machine have no price, and cost nothing.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// The price of a model in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// For the prompt, in US dollars per million tokens.
    #[serde(deserialize_with = "dollars")]
    pub input: f64,
    /// For the answer, thinking included, in US dollars per million tokens.
    #[serde(deserialize_with = "dollars")]
    pub output: f64,
}

fn dollars<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(from)?;
    if number.is_finite() && number >= 0.0 {
        return Ok(number);
    }
    Err(serde::de::Error::custom("a price is a number of US dollars, 0 or more"))
}

impl ModelPrice {
    /// The cost of an answer in US dollars.
    pub fn cost(self, prompt_tokens: u64, answer_tokens: u64) -> f64 {
        (self.input * prompt_tokens as f64 + self.output * answer_tokens as f64) / 1e6
    }
}

/// Prices by `UPSTREAM/MODEL`, or `UPSTREAM/*` for all other models of an upstream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(pub BTreeMap<String, ModelPrice>);

impl Prices {
    /// The price of `UPSTREAM/MODEL`: its own, or that of its upstream.
    pub fn of(&self, target: &str) -> Option<ModelPrice> {
        let upstream = || Some(format!("{}/*", target.split_once('/')?.0));
        self.0.get(target).or_else(|| self.0.get(&upstream()?)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_its_own_price_or_that_of_its_upstream() {
        let text = "\"a/m\" = { input = 2.0, output = 8.0 }\n\"a/*\" = { input = 1.0, output = 1 }";
        let prices = Prices(toml::from_str(text).expect("prices"));
        let cost = |target: &str| prices.of(target).map(|price| price.cost(500_000, 250_000));
        assert_eq!(
            [cost("a/m"), cost("a/n"), cost("b/m"), cost("m")],
            [Some(3.0), Some(0.75), None, None]
        );
    }

    #[test]
    fn a_price_is_a_number_that_is_not_negative() {
        for wrong in ["-1.0", "nan", "inf"] {
            let text = format!("input = {wrong}\noutput = 1.0");
            let error = toml::from_str::<ModelPrice>(&text).expect_err("a refusal").to_string();
            assert!(error.contains("0 or more"), "{wrong}: {error}");
        }
    }
}
