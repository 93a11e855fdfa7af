//! Counts the values of a JSON text and checks its syntax, without building any of them in memory.
//! A body of 28 MiB can hold ten million values, and each would take a hundred bytes or more.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Names of members count too.
#[derive(Debug)]
pub(crate) struct Census<'a>(&'a mut usize);

impl Census<'_> {
    /// The values in `text`.
    ///
    /// # Errors
    /// The text is not valid JSON, with the parser's own words and place.
    pub(crate) fn of(text: &str) -> Result<usize, serde_json::Error> {
        let mut values = 0;
        let mut parser = serde_json::Deserializer::from_str(text);
        Census(&mut values).deserialize(&mut parser)?;
        parser.end()?;
        Ok(values)
    }
}

impl<'de> DeserializeSeed<'de> for Census<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        *self.0 += 1;
        deserializer.deserialize_any(self)
    }
}

macro_rules! visit_scalars {
    ($($visit:ident: $of:ty),*) => {
        $(fn $visit<E: Error>(self, _: $of) -> Result<(), E> {
            Ok(())
        })*
    };
}

impl<'de> Visitor<'de> for Census<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    visit_scalars!(
        visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str
    );

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Census(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while object.next_key_seed(Census(&mut *self.0))?.is_some() {
            object.next_value_seed(Census(&mut *self.0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_and_every_name_counts() {
        for (text, values) in [
            ("1", 1),
            ("[]", 1),
            ("[1, 2.5, -3]", 4),
            (r#"{"a": [null, true], "b": {"c": "d"}}"#, 9),
            ("[{},{},{}]", 4),
        ] {
            assert_eq!(Census::of(text).expect(text), values, "{text}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused_as_the_parser_does() {
        for text in ["", "{", "[1,]", r#"{"a":1e999}"#, r#""\ud800""#, "[1] 2", &"[".repeat(200)] {
            let parsed = serde_json::from_str::<serde_json::Value>(text).expect_err("an error");
            let counted = Census::of(text).expect_err("an error");
            assert_eq!(counted.to_string(), parsed.to_string(), "{text}");
        }
    }
}
