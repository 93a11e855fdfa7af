//! Explains each term in an answer of `hob fit`: what it means and where its figure comes from.
//! A term has the name that the answer shows.

/// A term and its explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub term: &'static str,
    pub text: &'static str,
}

/// All terms and their explanations, from the lines `term: text` of `explanations.txt`.
pub fn explanations() -> impl Iterator<Item = Explanation> {
    let lines = include_str!("explanations.txt").lines();
    lines.filter_map(|line| line.split_once(": ").map(|(term, text)| Explanation { term, text }))
}

/// Other names of terms, each with the name in `explanations.txt`.
const ALSO: [(&str, &str); 9] = [
    ("kv", "KV cache"),
    ("state", "recurrent state"),
    ("process", "process and vocabulary"),
    ("faster", "instead"),
    ("longer", "instead"),
    ("better", "instead"),
    ("longest context", "ceiling"),
    ("prompt", "prefill"),
    ("experts", "experts offloaded"),
];

/// Finds an explanation by name, in any case.
pub fn explain(term: &str) -> Option<Explanation> {
    let is = |name: &str| name.eq_ignore_ascii_case(term.trim());
    let also = ALSO.into_iter().find(|(name, _)| is(name)).map(|(_, term)| term);
    explanations().find(|known| is(known.term) || also == Some(known.term))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_line_is_a_term_and_every_other_name_finds_one() {
        let terms: BTreeSet<&str> = explanations().map(|known| known.term).collect();
        assert_eq!(terms.len(), include_str!("explanations.txt").lines().count());
        for known in explanations() {
            assert!(!known.term.is_empty() && known.text.ends_with('.'), "{}", known.term);
            assert_eq!(explain(known.term), Some(known));
        }
        for (name, term) in ALSO {
            assert_eq!(explain(name).map(|known| known.term), Some(term), "{name}");
        }
    }
}
