//! Reads a grid from sentences and lists: "House 2 is blue", "House 1: Alice, red, tea", bullets below a house.
//! Denials, comparisons, assumptions and questions state nothing. The last statement about a cell counts.

use super::cells::Cells;
use super::words::{BREAK, GridValue, Mention, Said, Words, tokens};

/// A sentence with one of these words is an assumption, or says that one failed.
const DOUBTS: [&str; 17] = [
    "if",
    "suppose",
    "assume",
    "assuming",
    "could",
    "might",
    "maybe",
    "perhaps",
    "either",
    "or",
    "possible",
    "possibly",
    "would",
    "unless",
    "contradiction",
    "impossible",
    "wrong",
];

/// Bytes of a line that can be a value alone.
const VALUE_BYTES_MAX: usize = 80;

pub(super) fn read(words: &Words, text: &str) -> Cells {
    let mut prose = Prose { words, cells: Cells::none(words), house: None };
    for line in text.lines() {
        if !line.trim().is_empty() && !is_listed(words, line) {
            prose.house = None;
        }
        sentences(line).for_each(|sentence| prose.sentence(sentence));
    }
    prose.cells
}

struct Prose<'a> {
    words: &'a Words,
    cells: Cells,
    /// The house of a heading. The list below belongs to it.
    house: Option<usize>,
}

impl Prose<'_> {
    fn sentence(&mut self, sentence: &str) {
        let mentions: Vec<Mention> =
            self.words.mentions(sentence).into_iter().map(|(_, mention)| mention).collect();
        let mut houses: Vec<usize> = mentions.iter().filter_map(house).collect();
        let starts_with_house = mentions.first().and_then(house).is_some();
        houses.dedup();
        match houses[..] {
            [] => {
                let values = mentions.iter().filter_map(value).collect();
                self.house.into_iter().for_each(|house| self.put(house, &values));
            }
            [house] => {
                self.house = (starts_with_house && self.is_heading(sentence)).then_some(house);
                self.put(house, &mentions.iter().filter_map(value).collect());
            }
            _ => self.several(&mentions, starts_with_house),
        }
    }

    /// "House 1", "House 1: Alice", "## House 1, the home of Alice". "House 1 is red" has nothing below it.
    fn is_heading(&self, sentence: &str) -> bool {
        let label = sentence.split_once(':').map_or(sentence, |(label, _)| label);
        sentence.trim_start().starts_with(['#', '*']) || self.words.house(label).is_some()
    }

    /// "House 1 is red, house 2 is blue", or "Alice lives in house 1, Bruno in house 2".
    fn several(&mut self, mentions: &[Mention], starts_with_house: bool) {
        self.house = None;
        let (mut named, mut values) = (None, Vec::new());
        for mention in mentions {
            match mention {
                Mention::Value(place) => values.push(*place),
                Mention::House(house) if starts_with_house => {
                    let before = std::mem::take(&mut values);
                    named.replace(*house).into_iter().for_each(|house| self.put(house, &before));
                }
                Mention::House(house) => self.put(*house, &std::mem::take(&mut values)),
            }
        }
        named.into_iter().for_each(|house| self.put(house, &values));
    }

    /// Two values of one attribute compare houses and state nothing.
    fn put(&mut self, house: usize, values: &Vec<GridValue>) {
        for (attribute, value) in values {
            let is_other = |(of, other): &GridValue| of == attribute && other != value;
            if !values.iter().any(is_other) {
                self.cells.set(house, *attribute, Said::Value(*value));
            }
        }
    }
}

fn house(mention: &Mention) -> Option<usize> {
    match mention {
        Mention::House(house) => Some(*house),
        Mention::Value(_) => None,
    }
}

fn value(mention: &Mention) -> Option<GridValue> {
    match mention {
        Mention::Value(place) => Some(*place),
        Mention::House(_) => None,
    }
}

/// Whether a line can belong to the heading above: a bullet, an indented line, `Color: red`, or a value alone.
fn is_listed(words: &Words, line: &str) -> bool {
    let is_label = |(label, _): (&str, &str)| words.attribute(label).is_some();
    let is_bullet =
        |rest: &str| rest.starts_with(['-', '*', '•', '+', '–']) && !rest.starts_with("**");
    let is_value = || {
        line.len() <= VALUE_BYTES_MAX && tokens(line).len() <= 3 && words.cell(line, None).is_some()
    };
    line.starts_with([' ', '\t'])
        || is_bullet(line)
        || line.split_once(':').is_some_and(is_label)
        || is_value()
}

/// The sentences of a line, without questions, assumptions and doubts.
pub(super) fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    let pieces = std::iter::from_fn(move || {
        let ends = rest.char_indices().zip(rest.chars().skip(1).chain(Some(' ')));
        let is_end = |(at, sign): (usize, char), next: char| {
            // The "1." of a list ends no sentence.
            let is_number = || rest[..at].trim().chars().all(|sign| sign.is_ascii_digit());
            matches!(sign, '!' | '?' | ';') || sign == '.' && next.is_whitespace() && !is_number()
        };
        let end = ends.into_iter().find(|(sign, next)| is_end(*sign, *next));
        let end = end.map_or(rest.len(), |((at, sign), _)| at + sign.len_utf8());
        let (sentence, after) = rest.split_at(end);
        rest = after;
        (!sentence.is_empty()).then_some(sentence)
    });
    pieces.filter(|sentence| {
        let mut words = sentence.split(|sign: char| !sign.is_alphabetic());
        let is_doubt = |word: &str| DOUBTS.iter().any(|doubt| word.eq_ignore_ascii_case(doubt));
        !sentence.ends_with('?') && !words.any(is_doubt)
    })
}

/// Reads lines such as "1. Alice, red, tea", with a value of each attribute. It is used only if nothing else can be read,
/// because numbered clues look the same. "Colors: red, blue, green" is not read: it would take the question's lists of
/// values for an answer.
pub(super) fn read_numbered(words: &Words, text: &str) -> Cells {
    let mut cells = Cells::none(words);
    for line in text.lines() {
        let values: Vec<GridValue> =
            words.mentions(line).iter().filter_map(|(_, mention)| value(mention)).collect();
        let mut attributes: Vec<usize> = values.iter().map(|(attribute, _)| *attribute).collect();
        attributes.sort_unstable();
        let number = tokens(line).into_iter().find(|word| word != BREAK);
        let house = number.and_then(|word| words.number(&word));
        if let (true, Some(house)) = (attributes.into_iter().eq(0..words.attributes()), house) {
            values.iter().for_each(|(of, value)| cells.set(house, *of, Said::Value(*value)));
        }
    }
    cells
}
