//! Finds existing names that are close to a mistyped one.
//! An error that names them saves its reader a search.

/// Returns up to `limit` names of `known`, nearest first by edit distance. Leaves out names that are too different
/// for a typing error (more than half of the longer name).
pub fn nearest<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<String> {
    let mut ranked: Vec<(usize, &str)> = known
        .into_iter()
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .filter(|(distance, candidate)| {
            distance * 2 <= name.chars().count().max(candidate.chars().count())
        })
        .collect();
    ranked.sort();
    ranked.into_iter().take(limit).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// The end of an error message that lists the nearest names. Empty without names.
pub fn nearest_hint(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; the nearest are {}", near.join(", ")) }
}

/// Levenshtein distance in characters. Compares at most the first 64 of each, so that a hostile name costs
/// nothing.
fn edit_distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|name| name.chars().take(64).collect::<String>());
    strsim::levenshtein(&a, &b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_the_name() {
        let known = ["af_heart", "af_bella", "bm_fable"];
        assert_eq!(nearest("af_haert", known, 1), ["af_heart"]);
        assert_eq!(nearest("zzzzzzzz", known, 3), Vec::<String>::new());
    }

    #[test]
    fn distance_is_symmetric_and_counts_edits() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("sitting", "kitten"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
    }
}
