//! Whole numbers of a configuration, which writers put under different keys.
//! Both readers of `config.json` use it: for dimensions and for quantization.

use serde_json::{Map, Value};

/// The first of these keys with a whole number.
pub(super) fn number(map: &Map<String, Value>, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| map.get(*name)?.as_u64())
}
