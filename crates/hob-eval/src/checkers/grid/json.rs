//! Reads the answer to a logic grid from JSON: houses by number or in order, or attributes with their values by house.
//! Wrappers such as `{"solution": …}` are opened.

use serde_json::{Map, Value};

use super::cells::Cells;
use super::table;
use super::words::{Said, Words};

pub(super) fn read(words: &Words, value: &Value) -> Cells {
    let mut cells = Cells::none(words);
    walk(words, value, &mut cells);
    cells
}

fn walk(words: &Words, value: &Value, cells: &mut Cells) {
    match value {
        Value::Object(fields) => object(words, fields, cells),
        Value::Array(items) => array(words, items, cells),
        _ => {}
    }
}

fn object(words: &Words, fields: &Map<String, Value>, cells: &mut Cells) {
    if let Some(house) = own_house(words, fields) {
        return fill(words, house, fields, cells);
    }
    for (name, value) in fields {
        match (words.house(name), words.attribute(name)) {
            (Some(house), _) => place(words, house, value, cells),
            (None, Some(attribute)) => column(words, attribute, value, cells),
            (None, None) => {
                // `{"Alice": {"house": 1, …}}`
                if let Some(house) = value.as_object().and_then(|inner| own_house(words, inner)) {
                    put(words, (house, None), &name.as_str().into(), cells);
                }
                walk(words, value, cells);
            }
        }
    }
}

/// The field `house` or `position`.
fn own_house(words: &Words, fields: &Map<String, Value>) -> Option<usize> {
    let mut own = fields.iter().filter(|(name, _)| words.is_house_key(name));
    own.find_map(|(_, value)| words.house(&scalar(value)?))
}

fn array(words: &Words, items: &[Value], cells: &mut Cells) {
    let row = |item: &Value| item.as_array().map(|row| row.iter().filter_map(scalar).collect());
    if let Some(rows) = items.iter().map(row).collect::<Option<Vec<Vec<String>>>>() {
        // A list may have no house, such as `"notes": []`, and must not remove those that were read before.
        cells.lay(table::read(words, &rows));
        return;
    }
    for (place_in_list, item) in items.iter().enumerate() {
        let own = item.as_object().and_then(|fields| own_house(words, fields));
        let by_order = (items.len() == words.houses()).then_some(place_in_list);
        match own.or(by_order) {
            Some(house) => place(words, house, item, cells),
            None => walk(words, item, cells),
        }
    }
}

/// All that one value says of a house.
fn place(words: &Words, house: usize, value: &Value, cells: &mut Cells) {
    match value {
        Value::Object(fields) => fill(words, house, fields, cells),
        Value::Array(items) => {
            items.iter().for_each(|item| put(words, (house, None), item, cells));
        }
        Value::String(text) => {
            text.split(',').for_each(|part| put(words, (house, None), &part.into(), cells));
        }
        _ => {}
    }
}

fn fill(words: &Words, house: usize, fields: &Map<String, Value>, cells: &mut Cells) {
    for (name, value) in fields.iter().filter(|(name, _)| !words.is_house_key(name)) {
        match value {
            Value::Object(inner) => fill(words, house, inner, cells),
            _ => put(words, (house, words.attribute(name)), value, cells),
        }
    }
}

/// `"color": ["red", …]`, `"color": {"1": "red", …}` or `"color": {"red": 1, …}`.
fn column(words: &Words, attribute: usize, value: &Value, cells: &mut Cells) {
    match value {
        Value::Array(values) if values.len() == words.houses() => {
            for (house, value) in values.iter().enumerate() {
                put(words, (house, Some(attribute)), value, cells);
            }
        }
        Value::Object(entries) => {
            for (name, value) in entries {
                let by_value = || words.house(&scalar(value)?);
                match (words.house(name), by_value()) {
                    (Some(house), _) => put(words, (house, Some(attribute)), value, cells),
                    (None, Some(house)) => {
                        put(words, (house, Some(attribute)), &name.as_str().into(), cells);
                    }
                    (None, None) => {}
                }
            }
        }
        _ => {}
    }
}

/// `place` is a house and, if it is known, an attribute. A value without a known attribute replaces no other value.
fn put(words: &Words, place: (usize, Option<usize>), value: &Value, cells: &mut Cells) {
    let said = scalar(value).and_then(|text| words.cell(&text, place.1));
    if let Some((attribute, said)) = said {
        let is_new = !matches!(cells.get(place.0, attribute), Some(Said::Value(_)));
        if place.1.is_some() || is_new {
            cells.set(place.0, attribute, said);
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
