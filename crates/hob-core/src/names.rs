//! Finds existing names that are close to a mistyped one.
//! An error that names them saves its reader a search.

/// Characters of a name that are compared, so that a hostile name costs nothing.
const COMPARED_CHARS_MAX: usize = 64;

/// Returns up to `limit` names of `known`, nearest first by edit distance. Leaves out names that are too different
/// for a typing error (more than half of the longer name).
pub fn nearest<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<String> {
    let length = |name: &str| name.chars().take(COMPARED_CHARS_MAX).count();
    let mut ranked: Vec<(usize, &str)> = known
        .into_iter()
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .filter(|(distance, candidate)| distance * 2 <= length(name).max(length(candidate)))
        .collect();
    ranked.sort();
    ranked.into_iter().take(limit).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// The end of an error message that lists the nearest names. Empty without names.
pub fn nearest_hint(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; the nearest are {}", near.join(", ")) }
}

/// Levenshtein distance in characters, of which at most the first [`COMPARED_CHARS_MAX`] count.
fn edit_distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|name| name.chars().take(COMPARED_CHARS_MAX).collect::<String>());
    strsim::levenshtein(&a, &b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_the_name() {
        let known = ["af_heart", "af_bella", "bm_fable"];
        assert_eq!(nearest("af_haert", known, 1), ["af_heart"]);
        for far in ["z".repeat(8), "z".repeat(200)] {
            assert_eq!(nearest(&far, known, 3), Vec::<String>::new(), "{far}");
        }
    }

    #[test]
    fn distance_is_symmetric_and_counts_edits() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("sitting", "kitten"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
    }
}
