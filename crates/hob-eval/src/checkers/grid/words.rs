//! Finds the values, attributes and houses of a grid in words, whatever their case, number and spelling.
//! "House 1", "house1", "first" and "the 1st house" are one house; "Cats" and "cat" are one value.

use std::collections::HashMap;

/// Maximum words of a value that are compared. A value of the user's can be long.
const WORDS_MAX: usize = 8;
/// Maximum bytes of a label or a cell that are read.
const LABEL_BYTES_MAX: usize = 200;

/// The token at the end of a clause. A value never continues after it.
pub(super) const BREAK: &str = ",";

const NUMERALS: [[&str; 2]; 12] = [
    ["first", "one"],
    ["second", "two"],
    ["third", "three"],
    ["fourth", "four"],
    ["fifth", "five"],
    ["sixth", "six"],
    ["seventh", "seven"],
    ["eighth", "eight"],
    ["ninth", "nine"],
    ["tenth", "ten"],
    ["eleventh", "eleven"],
    ["twelfth", "twelve"],
];

/// What the label of a house may have in addition to its number.
const HOUSE_WORDS: [&str; 20] = [
    "house",
    "home",
    "position",
    "pos",
    "place",
    "location",
    "number",
    "no",
    "id",
    "index",
    "h",
    "the",
    "st",
    "nd",
    "rd",
    "th",
    "left",
    "right",
    "leftmost",
    "rightmost",
];

/// After one of these words, a clause denies what it names, or only says what is next to it.
const REVERSING_WORDS: [&str; 14] = [
    "not",
    "t",
    "cannot",
    "never",
    "neither",
    "nor",
    "no",
    "next",
    "adjacent",
    "between",
    "neighbor",
    "neighbour",
    "neighbors",
    "neighbours",
];

/// What stands for a value: attribute and house, counted from 0.
pub(super) type GridValue = (usize, usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mention {
    House(usize),
    Value(GridValue),
}

/// What a cell says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// The value that belongs to this house.
    Value(usize),
    Other(String),
}

pub(super) struct Words {
    houses: usize,
    attributes: Vec<Vec<String>>,
    /// By the first word: the other words, and what they stand for.
    values: HashMap<String, Vec<(Vec<String>, GridValue)>>,
}

impl Words {
    pub(super) fn new(houses: usize, attributes: &[String]) -> Words {
        let attributes = attributes.iter().map(|name| stems(&tokens(name))).collect();
        Words { houses, attributes, values: HashMap::new() }
    }

    pub(super) fn add(&mut self, text: &str, place: GridValue) {
        let mut words = stems(&tokens(text)).into_iter().take(WORDS_MAX);
        if let Some(first) = words.next() {
            self.values.entry(first).or_default().push((words.collect(), place));
        }
    }

    pub(super) fn houses(&self) -> usize {
        self.houses
    }

    pub(super) fn attributes(&self) -> usize {
        self.attributes.len()
    }

    /// The longest value that begins at `at`: its length in words, and each place that it stands for.
    fn value_at(&self, stems: &[String], at: usize) -> Option<(usize, Vec<GridValue>)> {
        let all = self.values.get(&stems[at])?;
        let fits = |rest: &Vec<String>| stems[at + 1..].starts_with(rest);
        let length = all.iter().filter(|(rest, _)| fits(rest)).map(|(rest, _)| rest.len()).max()?;
        let is_it = |(rest, _): &&(Vec<String>, GridValue)| rest.len() == length && fits(rest);
        let places = all.iter().filter(is_it).map(|(_, place)| *place).collect();
        Some((length + 1, places))
    }

    /// Values without regard to what the sentence says of them.
    fn values(&self, text: &str) -> Vec<GridValue> {
        let stems = stems(&tokens(cut(text)));
        let (mut at, mut found) = (0, Vec::new());
        while at < stems.len() {
            let (length, places) = self.value_at(&stems, at).unwrap_or((1, Vec::new()));
            found.extend(places);
            at += length;
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// A cell under a heading, or a cell that says by itself which attribute it is.
    pub(super) fn cell(&self, text: &str, attribute: Option<usize>) -> Option<(usize, Said)> {
        let mut values = self.values(text);
        let Some(attribute) = attribute else {
            let [(attribute, house)] = values[..] else { return None };
            return Some((attribute, Said::Value(house)));
        };
        values.retain(|(of, _)| *of == attribute);
        let words = tokens(cut(text));
        let doubtful =
            words.iter().any(|word| word == "or" || REVERSING_WORDS.contains(&word.as_str()));
        match values[..] {
            [(_, house)] if !doubtful => Some((attribute, Said::Value(house))),
            _ if words.iter().all(|word| word == BREAK) => None,
            _ => Some((attribute, Said::Other(cut(text).trim().to_owned()))),
        }
    }

    /// The only attribute that a heading names: `Colors`, `favourite drink`, `House colour`.
    pub(super) fn attribute(&self, label: &str) -> Option<usize> {
        let words = stems(&tokens(cut(label)));
        let is_named =
            |name: &Vec<String>| !name.is_empty() && name.iter().all(|word| words.contains(word));
        let mut named = (0..self.attributes.len()).filter(|at| is_named(&self.attributes[*at]));
        named.next().filter(|_| named.next().is_none())
    }

    /// The house that a label is, with nothing else in it: `1`, `House 1`, `house_1`, `First`.
    pub(super) fn house(&self, label: &str) -> Option<usize> {
        let words: Vec<String> =
            tokens(cut(label)).into_iter().filter(|word| word != BREAK).collect();
        let mut numbers = words.iter().filter_map(|word| self.number(word));
        let house = numbers.next().filter(|_| numbers.next().is_none())?;
        let is_known =
            |word: &String| self.number(word).is_some() || HOUSE_WORDS.contains(&word.as_str());
        words.iter().all(is_known).then_some(house)
    }

    /// A heading or key whose value is the number of a house.
    pub(super) fn is_house_key(&self, label: &str) -> bool {
        let words = tokens(cut(label));
        !words.is_empty() && words.iter().all(|word| HOUSE_WORDS.contains(&word.as_str()))
    }

    pub(super) fn number(&self, word: &str) -> Option<usize> {
        let spelled = || NUMERALS.iter().position(|words| words.contains(&word)).map(|at| at + 1);
        let number = word.parse::<usize>().ok().or_else(spelled)?;
        (1..=self.houses).contains(&number).then(|| number - 1)
    }

    /// Houses and values in the order of a sentence, without those that it denies or only compares with.
    pub(super) fn mentions(&self, sentence: &str) -> Vec<(usize, Mention)> {
        let tokens = tokens(sentence);
        let stems = stems(&tokens);
        let (mut at, mut is_reversed, mut found) = (0, false, Vec::new());
        while at < tokens.len() {
            is_reversed = tokens[at] != BREAK && (is_reversed || is_reversing(&tokens, at));
            let (length, mention) = match self.house_at(&tokens, at) {
                Some((length, house)) => (length, Some(Mention::House(house))),
                None => match self.value_at(&stems, at) {
                    Some((length, places)) => {
                        let only = places.first().filter(|_| places.len() == 1);
                        (length, only.map(|place| Mention::Value(*place)))
                    }
                    None => (1, None),
                },
            };
            found.extend(mention.filter(|_| !is_reversed).map(|mention| (at, mention)));
            at += length;
        }
        found
    }

    /// "house 1", "house number one", "first house", "h1".
    fn house_at(&self, tokens: &[String], at: usize) -> Option<(usize, usize)> {
        let word = |ahead: usize| tokens.get(at + ahead).map_or("", String::as_str);
        let is_house = |word: &str| matches!(word, "house" | "home" | "position");
        if is_house(word(0)) || word(0) == "h" {
            let skipped = usize::from(matches!(word(1), "number" | "no"));
            return self.number(word(1 + skipped)).map(|house| (2 + skipped, house));
        }
        let is_ordinal = NUMERALS.iter().any(|[ordinal, _]| *ordinal == word(0))
            || matches!(word(1), "st" | "nd" | "rd" | "th");
        let length = 2 + usize::from(matches!(word(1), "st" | "nd" | "rd" | "th"));
        let house = self.number(word(0)).filter(|_| is_ordinal && is_house(word(length - 1)))?;
        Some((length, house))
    }
}

fn is_reversing(tokens: &[String], at: usize) -> bool {
    let word = |at: usize| tokens.get(at).map_or("", String::as_str);
    let is_side = matches!(word(at), "left" | "right");
    let to_the = at > 1 && word(at - 1) == "the" && word(at - 2) == "to";
    // "House no 1" has a number after the "no".
    let is_no = word(at) == "no" && at > 0 && word(at - 1) == "house";
    REVERSING_WORDS.contains(&word(at)) && !is_no || is_side && (word(at + 1) == "of" || to_the)
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LABEL_BYTES_MAX)]
}

/// Words in lower case, with letters and digits apart, and a mark where a clause ends.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut last = ' ';
    for sign in text.chars() {
        if sign.is_alphanumeric() {
            let goes_on = last.is_alphanumeric() && last.is_numeric() == sign.is_numeric();
            match tokens.last_mut().filter(|_| goes_on) {
                Some(word) => word.extend(sign.to_lowercase()),
                None => tokens.push(sign.to_lowercase().collect()),
            }
        } else if matches!(sign, ',' | ';' | '(' | ')' | '|' | '–' | '—' | '{' | '}') {
            tokens.push(BREAK.to_owned());
        }
        last = sign;
    }
    tokens
}

/// Words without the ending of a plural, in American spelling.
fn stems(tokens: &[String]) -> Vec<String> {
    let stem = |token: &String| {
        let is_plural = token.chars().count() > 3 && token.ends_with('s') && !token.ends_with("ss");
        let single = if is_plural { &token[..token.len() - 1] } else { token };
        match single {
            "colour" => "color".to_owned(),
            "grey" => "gray".to_owned(),
            _ => single.to_owned(),
        }
    };
    tokens.iter().map(stem).collect()
}
