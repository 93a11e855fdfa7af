//! Detects that an answer repeats itself without an end, as small models do.
//! Used only for answers whose request has no token limit.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;

/// Maximum tokens of a passage that repeats exactly.
const PASSAGE_TOKENS_MAX: usize = 64;
/// Repeated tokens, and repetitions of a passage, before hob ends the answer.
const REPEATED_TOKENS_MIN: u32 = 512;
const TIMES_MIN: u32 = 16;

/// Tokens that are compared together where passages are only alike. Rows of tables and items of lists
/// differ within fewer tokens.
const NGRAM_TOKENS: usize = 16;
/// How often an n-gram came before until it counts as worn. Drafts of one text are fewer.
const NGRAM_TIMES_MIN: u32 = 6;
/// The latest tokens that are judged, and how many of them end a worn n-gram: 90 %.
const JUDGED_TOKENS: usize = 2_048;
const WORN_TOKENS_MIN: u32 = 1_844;
/// Maximum remembered n-grams in each of two halves.
const NGRAMS_MAX: usize = 4_096;

/// Replaces the number of an item of a list. No token has this id.
const ITEM_NUMBER: u32 = u32::MAX;
/// Maximum bytes of a line up to the end of the number that begins its item.
const ITEM_BEGIN_BYTES_MAX: usize = 32;

/// Whether a grammar restricts a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenChoice {
    Free,
    /// A grammar may force passages that are alike, so only exact repetitions count.
    Enforced,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Repetition {
    /// Recent tokens, the latest first.
    recent: VecDeque<u32>,
    /// For each passage length, the number of consecutive tokens that equal the token that long ago.
    equal: Vec<u32>,
    /// N-grams have no numbers of list items: "12. humble" repeats "11. humble". Exact passages have them, because people
    /// want long lists of few different items, such as days or labels. All other numbers count everywhere: they are all that
    /// differs between the rows of many tables, logs and programs.
    numbers: ItemNumbers,
    ngrams: WornNgrams,
}

impl Repetition {
    /// Whether the answer, with this token and its text, repeats itself without an end.
    pub(super) fn push(&mut self, token: u32, text: &[u8], choice: TokenChoice) -> bool {
        self.equal.resize(PASSAGE_TOKENS_MAX, 0);
        let mut is_endless = false;
        for ((equal, before), length) in self.equal.iter_mut().zip(&self.recent).zip(1u32..) {
            *equal = if *before == token { *equal + 1 } else { 0 };
            is_endless |= *equal >= REPEATED_TOKENS_MIN.max(TIMES_MIN * length);
        }
        self.recent.push_front(token);
        self.recent.truncate(PASSAGE_TOKENS_MAX);
        for token in self.numbers.push(token, text) {
            is_endless |= choice == TokenChoice::Free && self.ngrams.push(token);
        }
        is_endless
    }
}

/// Replaces the numbers that begin the items of a list: digits, then `.` or `)`, then a space.
#[derive(Clone, Debug, Default)]
struct ItemNumbers {
    /// The beginning of the current line, as far as it was needed.
    line: Vec<u8>,
    /// Whether the line is known to begin with such a number, or with something else.
    is_line_known: bool,
    /// Tokens that may be such a number.
    held: Vec<u32>,
}

impl ItemNumbers {
    /// Returns the tokens to judge. A token that may be a part of such a number comes with a later one.
    fn push(&mut self, token: u32, text: &[u8]) -> Vec<u32> {
        self.held.push(token);
        if !self.is_line_known && !text.is_empty() {
            self.line.extend_from_slice(text);
            match LineBegin::of(&self.line) {
                LineBegin::Unknown => return Vec::new(),
                LineBegin::ItemNumber => self.held = vec![ITEM_NUMBER, token],
                LineBegin::Other => {}
            }
            self.is_line_known = true;
        }
        if let Some(end) = text.iter().rposition(|byte| *byte == b'\n') {
            self.line = text[end + 1..].to_vec();
            self.is_line_known = false;
        }
        mem::take(&mut self.held)
    }
}

enum LineBegin {
    Unknown,
    ItemNumber,
    Other,
}

impl LineBegin {
    fn of(line: &[u8]) -> LineBegin {
        let marks = line.iter().take_while(|byte| b" \t*#".contains(byte)).count();
        let digits = line[marks..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        match (digits, &line[marks + digits..]) {
            _ if line.len() > ITEM_BEGIN_BYTES_MAX => LineBegin::Other,
            (_, []) | (1.., [b'.' | b')']) => LineBegin::Unknown,
            (1.., [b'.' | b')', b' ', ..]) => LineBegin::ItemNumber,
            // A decimal number, a date or an address is part of what differs.
            _ => LineBegin::Other,
        }
    }
}

/// The share of the latest tokens with nothing new: each ends an n-gram that came often before.
#[derive(Clone, Debug, Default)]
struct WornNgrams {
    /// The tokens of the latest n-gram.
    recent: VecDeque<u32>,
    /// How often each n-gram came, by its hash. A full newer half replaces the older one.
    newer: HashMap<u64, u32>,
    older: HashMap<u64, u32>,
    /// For each of the latest tokens, whether its n-gram is worn.
    judged: VecDeque<bool>,
    worn: u32,
}

impl WornNgrams {
    /// Whether almost nothing was new for a long time.
    fn push(&mut self, token: u32) -> bool {
        self.recent.push_front(token);
        self.recent.truncate(NGRAM_TOKENS);
        if self.recent.len() < NGRAM_TOKENS {
            return false;
        }
        let mut hasher = DefaultHasher::new();
        self.recent.iter().for_each(|token| token.hash(&mut hasher));
        let is_worn = self.count(hasher.finish()) >= NGRAM_TIMES_MIN;
        self.judged.push_back(is_worn);
        self.worn += u32::from(is_worn);
        if self.judged.len() > JUDGED_TOKENS && self.judged.pop_front() == Some(true) {
            self.worn -= 1;
        }
        // Fewer judged tokens cannot be as many.
        self.worn >= WORN_TOKENS_MIN
    }

    /// Counts an n-gram. Returns how often it came before.
    fn count(&mut self, ngram: u64) -> u32 {
        let known = self.newer.get(&ngram).or_else(|| self.older.get(&ngram));
        let before = known.copied().unwrap_or(0);
        self.newer.insert(ngram, before + 1);
        if self.newer.len() >= NGRAMS_MAX {
            self.older = mem::take(&mut self.newer);
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many tokens the answer is ended.
    fn ended(tokens: impl IntoIterator<Item = u32>) -> Option<usize> {
        ended_text(tokens.into_iter().map(|token| (token, "")))
    }

    fn ended_text<'t>(tokens: impl IntoIterator<Item = (u32, &'t str)>) -> Option<usize> {
        let mut repetition = Repetition::default();
        let mut push =
            |token, text: &str| repetition.push(token, text.as_bytes(), TokenChoice::Free);
        tokens.into_iter().position(|(token, text)| push(token, text)).map(|at| at + 1)
    }

    /// Words in pieces of up to six letters, and all other characters one by one. Vocabularies of
    /// models have longer tokens, so an answer of theirs has fewer.
    fn tokens(text: &str) -> Vec<(u32, &str)> {
        let (mut ids, mut tokens, mut rest) = (HashMap::new(), Vec::new(), text);
        while let Some(first) = rest.chars().next() {
            let letters = rest.bytes().take(6).take_while(u8::is_ascii_alphabetic).count();
            let (token, behind) = rest.split_at(letters.max(first.len_utf8()));
            let next = ids.len() as u32;
            tokens.push((*ids.entry(token).or_insert(next), token));
            rest = behind;
        }
        tokens
    }

    /// Texts of `count` parts. Each part is made of its number and of a random number.
    fn text(count: u64, part: impl Fn(u64, usize) -> String) -> String {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize
        };
        (1..=count).map(|number| part(number, random())).collect()
    }

    const NAMES: [&str; 6] = ["Ada", "Bo", "Cleo", "Dan", "Eve", "Finn"];

    const DAYS: [&str; 7] =
        ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

    const SENTENCES: [&str; 4] = [
        "He loved his wife very much. ",
        "He loved his family very much. ",
        "He was a kind man. ",
        "They lived happily in the town. ",
    ];

    fn sentences() -> String {
        text(1_500, |_, random| SENTENCES[random % 4].to_owned())
    }

    #[test]
    fn a_passage_that_goes_on_for_ever_is_ended() {
        assert_eq!(ended(vec![7; 2000]), Some(513));
        assert_eq!(ended((0..20_000).map(|at| at % 10)), Some(522));
        assert_eq!(ended((0..20_000).map(|at| at % 64)), Some(64 * 17));
        // Six times 300 tokens, 15 until the first n-gram, and 1,844 worn ones.
        assert_eq!(ended((0..20_000).map(|at| at % 300)), Some(1_800 + 15 + 1_844));
    }

    #[test]
    fn passages_that_are_almost_the_same_for_ever_are_ended() {
        let flight = "The dragon flew to the village by the river, where all people lived in small \
            houses of stone, and it asked whether they had seen the old king who had left the castle \
            many years ago, but none knew where he was, and so it flew on over the hills to ";
        let loops = [
            sentences(),
            text(200, |_, random| format!("{flight}{}. ", NAMES[random % 6])),
            text(200, |_, random| {
                format!("{}{flight}{}. ", NAMES[random % 3], NAMES[random / 3 % 2])
            }),
            text(1_500, |item, random| format!("{item}. {}\n", SENTENCES[random % 4])),
        ];
        for text in loops {
            let ended = ended_text(tokens(&text));
            assert!(ended.is_some_and(|tokens| tokens < 7_000), "{ended:?}: {}", &text[..200]);
        }
    }

    #[test]
    fn a_list_whose_items_differ_only_in_their_number_is_ended() {
        // A line counts as eight tokens. Six lines, 15 tokens until the first n-gram, and 1,844 worn ones: 238 lines and
        // three tokens. The lines from 10 and from 100 on have one digit more.
        let list = text(1_000, |item, _| format!("{item}. humble = humble\n"));
        assert_eq!(ended_text(tokens(&list)), Some(9 * 9 + 90 * 10 + 139 * 11 + 6));
        let marked = text(1_000, |item, _| format!("  **{item}) humble = humble**\n\n"));
        assert!(ended_text(tokens(&marked)).is_some_and(|tokens| tokens < 3_500));
    }

    #[test]
    fn short_repetitions_and_numbered_rows_are_not() {
        assert_eq!(ended(vec![7; 512]), None);
        // Rows that are alike but for a number.
        assert_eq!(ended((0..20_000).map(|at| if at % 10 == 0 { at } else { at % 10 })), None);
    }

    #[test]
    fn long_answers_that_people_want_are_not() {
        let answers = [
            text(200, |row, random| {
                format!("| {row} | {} | active | 2024-01-15 | 0.0 |\n", NAMES[random % 6])
            }),
            text(400, |row, _| format!("| {row} | 0 | 0 | 0 | 0 | 0 | 0 | none | none | none |\n")),
            text(3_000, |number, _| format!("{number}\n")),
            text(600, |row, _| format!("2024-01-01 {:02}:{:02}:00,0.0,OK\n", row / 60, row % 60)),
            text(200, |field, _| {
                format!(
                    "    pub fn field_{field}(&self) -> u32 {{\n        self.field_{field}\n    }}\n\n"
                )
            }),
            text(300, |case, _| {
                format!(
                    "        case {case}:\n            handler.handle(event, context);\n            break;\n"
                )
            }),
            text(200, |id, random| {
                let name = NAMES[random % 6];
                format!(
                    "  {{\n    \"id\": {id},\n    \"name\": \"{name}\",\n    \"active\": true,\n    \
                     \"roles\": [\"user\"],\n    \"address\": {{\"street\": \"Main Street\", \"city\": \
                     \"Rome\"}}\n  }},\n"
                )
            }),
            text(200, |row, random| {
                let class = "px-6 py-4 whitespace-nowrap text-sm text-gray-500";
                format!(
                    "<tr class=\"border-b bg-white\">\n  <td class=\"{class}\">{}</td>\n  <td \
                     class=\"{class}\">{row}</td>\n</tr>\n",
                    NAMES[random % 6]
                )
            }),
            text(365, |day, _| format!("{day}. {}\n", DAYS[day as usize % 7])),
            text(300, |item, _| format!("{item}. positive\n")),
            text(400, |item, random| format!("{item}. {}\n", NAMES[random % 6])),
            text(400, |item, random| format!("{item}. {}\n", random % 100)),
            text(400, |item, _| format!("{item}. 7 x {item} = {}\n", 7 * item)),
            text(400, |item, _| format!("{item}. Chapter {item}\n")),
            text(400, |number, _| format!("{number}.5 kg\n")),
            text(400, |number, _| format!("10.0.0.{number} is up\n")),
            text(400, |number, _| format!("    {number},\n")),
            text(400, |key, _| format!("{key}: null\n")),
            // Six drafts of one file.
            include_str!("answering.rs").repeat(6),
            include_str!("../../../../../docs/ARCHITECTURE.md").to_owned(),
        ];
        for answer in answers {
            let shown: String = answer.chars().take(80).collect();
            assert_eq!(ended_text(tokens(&answer)), None, "{shown}");
        }
    }
}
