//! Tables of words as text: `dr Doctor, mr Mister`, and lists of words with spaces between them.
//! A row ends with a comma or with its line. Its key ends with the first space; the rest is its value.

/// The rows of a table in their order: key and value.
pub(crate) fn rows(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = table.split([',', '\n']).map(str::trim).filter(|row| !row.is_empty());
    rows.map(|row| row.split_once(' ').unwrap_or((row, "")))
}

/// The value of the row with this key.
pub(crate) fn find(table: &'static str, key: &str) -> Option<&'static str> {
    rows(table).find(|(known, _)| *known == key).map(|(_, value)| value)
}

/// A value of two forms, such as "foot/feet". One form stands for both.
pub(crate) fn forms(value: &'static str) -> (&'static str, &'static str) {
    value.split_once('/').unwrap_or((value, value))
}

/// Whether a list has this word.
pub(crate) fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

/// The word at this place of a list, from 0. Empty behind the end.
pub(crate) fn nth(list: &'static str, place: u64) -> &'static str {
    list.split_whitespace().nth(place as usize).unwrap_or_default()
}

#[cfg(test)]
pub(crate) fn assert_keys_differ(tables: &[&'static str]) {
    let rows = tables.iter().copied().flat_map(rows);
    let mut keys: Vec<&str> = rows.map(|(key, _)| key).collect();
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count);
}
