//! Cuts a sentence into words: of all ways, the one with the lowest sum of costs (Viterbi), as MeCab does.
//! The work grows with the square of the words at one place, and the segmenter bounds the sentence.

use super::dictionary::{Dictionary, Token};

/// The longest unknown word of one class, in characters.
const GROUP_CHARS_MAX: usize = 24;

/// A word of the sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundWord<'a> {
    pub(super) surface: &'a str,
    /// Part of speech, reading and accent, separated by commas.
    pub(super) feature: String,
}

/// A word in the lattice.
struct Node {
    start: usize,
    end: usize,
    token: Token,
    is_known: bool,
    /// The lowest cost of a way that ends with this word, and the word before on it.
    cost: i64,
    before: Option<usize>,
}

/// The words of `text`. Together they spell it.
pub(super) fn words<'a>(dictionary: &Dictionary, text: &'a str) -> Vec<FoundWord<'a>> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut ending: Vec<Vec<usize>> = vec![Vec::new(); text.len() + 1];
    for (start, _) in text.char_indices() {
        if start > 0 && ending[start].is_empty() {
            continue;
        }
        for (end, token, is_known) in candidates(dictionary, text, start) {
            let (cost, before) = best_before(dictionary, &nodes, &ending[start], token.left);
            let cost = cost + i64::from(token.cost);
            ending[end].push(nodes.len());
            nodes.push(Node { start, end, token, is_known, cost, before });
        }
    }
    let (_, mut last) = best_before(dictionary, &nodes, &ending[text.len()], 0);
    let mut found = Vec::new();
    while let Some(node) = last.map(|at| &nodes[at]) {
        let feature = match node.is_known {
            true => dictionary.feature(node.token),
            false => dictionary.unknown_feature(node.token),
        };
        let surface = &text[node.start..node.end];
        found.push(FoundWord { surface, feature });
        last = node.before;
    }
    found.reverse();
    found
}

/// The cheapest of the words that end here, for a word with this left context.
fn best_before(
    dictionary: &Dictionary,
    nodes: &[Node],
    ending: &[usize],
    left: u16,
) -> (i64, Option<usize>) {
    let cost =
        |at: usize| nodes[at].cost + i64::from(dictionary.connection(nodes[at].token.right, left));
    let best = ending.iter().map(|at| (cost(*at), Some(*at))).min_by_key(|(cost, _)| *cost);
    best.unwrap_or((i64::from(dictionary.connection(0, left)), None))
}

/// The words that may begin at `start`: where they end, and whether the dictionary has them. Never empty.
fn candidates(dictionary: &Dictionary, text: &str, start: usize) -> Vec<(usize, Token, bool)> {
    let rest = &text[start..];
    let Some(first) = rest.chars().next() else { return Vec::new() };
    let class = dictionary.class_of(first);
    let mut found: Vec<(usize, Token, bool)> = dictionary
        .words_at(rest)
        .into_iter()
        .map(|(length, token)| (start + length, token, true))
        .collect();
    if !found.is_empty() && !class.is_always {
        return found;
    }
    let is_kin = |c: &char| dictionary.class_of(*c).classes & class.classes != 0;
    let group: Vec<usize> = rest
        .char_indices()
        .take_while(|(at, c)| *at == 0 || is_kin(c))
        .map(|(at, c)| start + at + c.len_utf8())
        .collect();
    let mut ends: Vec<usize> = Vec::new();
    if class.has_groups && group.len() <= GROUP_CHARS_MAX {
        ends.extend(group.last());
    }
    ends.extend(group.iter().take(class.length).filter(|end| Some(*end) != group.last()));
    if ends.is_empty() {
        ends.push(start + first.len_utf8());
    }
    for end in ends {
        let tokens = dictionary.unknown_tokens(class.default_class);
        found.extend(tokens.iter().map(|token| (end, *token, false)));
    }
    if found.is_empty() {
        let nothing = Token::default();
        found.push((start + first.len_utf8(), nothing, false));
    }
    found
}
