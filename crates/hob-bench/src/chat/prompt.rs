//! Prompts made here and now: words of no meaning, as many as make the tokens that are wanted.
//! How many tokens a word is, the server says itself; a tokenizer is nowhere downloaded.

use hob_core::statistics::Chance;

use super::shape::Shape;

/// Short and common, so that tokenizers agree about them.
const WORDS: [&str; 64] = [
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world",
    "school", "state", "family", "student", "group", "country", "problem", "hand", "part", "place",
    "case", "week", "company", "system", "program", "question", "work", "night", "point", "home",
    "water", "room", "mother", "area", "money", "story", "fact", "month", "lot", "right", "study",
    "book", "eye", "job", "word", "business", "issue", "side", "kind", "head", "house", "service",
    "friend", "father", "power", "hour", "game", "line", "end", "member", "law", "car", "city",
];
/// A guess for servers that count nothing.
const TOKENS_PER_WORD: f64 = 1.1;

/// What a server makes of so many words, found out by asking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measure {
    pub(crate) tokens_per_word: f64,
    /// Of the template, and of whatever else is in every prompt.
    pub(crate) tokens_before: f64,
    /// The longest prompt whose tokens the server has counted; none where it counts nothing.
    pub(crate) words_counted: u32,
}

impl Measure {
    /// From two prompts whose words and tokens are known.
    pub(crate) fn of_two(few: (u32, u32), many: (u32, u32)) -> Option<Measure> {
        let words = f64::from(many.0.checked_sub(few.0)?);
        let tokens = f64::from(many.1.checked_sub(few.1)?);
        let tokens_per_word = tokens / words;
        let tokens_before = (f64::from(few.1) - tokens_per_word * f64::from(few.0)).max(0.0);
        (words > 0.0 && tokens > 0.0).then_some(Measure {
            tokens_per_word,
            tokens_before,
            words_counted: many.0,
        })
    }

    pub(crate) fn guessed() -> Measure {
        Measure { tokens_per_word: TOKENS_PER_WORD, tokens_before: 0.0, words_counted: 0 }
    }

    /// Tokens of a prompt that are none of its words'.
    pub(crate) fn before(&self, words: u32, tokens: u32) -> u32 {
        (f64::from(tokens) - self.tokens_per_word * f64::from(words)).max(0.0).ceil() as u32
    }

    pub(crate) fn words(&self, tokens: u32) -> u32 {
        let words = (f64::from(tokens) - self.tokens_before) / self.tokens_per_word;
        words.round().max(4.0) as u32
    }
}

/// A system message, whose first word nobody has said before, and what is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) system: String,
    pub(crate) user: String,
}

impl Prompt {
    /// The same seed and number give the same prompt, and others another from the first word on.
    pub(crate) fn new(shape: Shape, measure: Measure, seed: u64, number: u64) -> Prompt {
        let mut chance = Chance::seeded(seed ^ number.wrapping_mul(0xA076_1D64_78BD_642F));
        let nonce = format!("{:06x}", chance.bits() & 0xFF_FFFF);
        if let Some(question) = shape.question {
            return Prompt { system: nonce, user: question.to_owned() };
        }
        Prompt::of_words(measure.words(shape.prompt_tokens), &nonce, &mut chance)
    }

    /// So many words, the nonce not counted.
    pub(crate) fn of_words(words: u32, nonce: &str, chance: &mut Chance) -> Prompt {
        let words: Vec<&str> = (0..words).map(|_| WORDS[chance.below(WORDS.len())]).collect();
        Prompt { system: nonce.to_owned(), user: words.join(" ") }
    }

    pub(crate) fn text(&self) -> String {
        format!("{} {}", self.system, self.user)
    }

    /// So many words, always the same few in the same order: their tokens can be told from those of another length.
    pub(crate) fn of_rounds(words: u32, nonce: &str) -> Prompt {
        let words: Vec<&str> = WORDS.iter().copied().cycle().take(words as usize).collect();
        Prompt { system: nonce.to_owned(), user: words.join(" ") }
    }

    /// Words after which [`Prompt::of_rounds`] begins anew.
    pub(crate) const ROUND: u32 = WORDS.len() as u32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::shape::SHAPES;

    #[test]
    fn tokens_per_word_by_hand() {
        // 40 words are 70 tokens and 240 are 310: 1.2 a word, and 22 before.
        let measure = Measure::of_two((40, 70), (240, 310)).expect("two");
        assert!((measure.tokens_per_word - 1.2).abs() < 1e-9);
        assert!((measure.tokens_before - 22.0).abs() < 1e-9);
        assert_eq!((measure.words(142), measure.words(5)), (100, 4));
        // With a template of 100 tokens more.
        assert_eq!((measure.before(40, 170), measure.before(40, 40)), (122, 0));
        assert_eq!(Measure::of_two((40, 70), (240, 70)), None);
        assert_eq!(Measure::of_two((240, 310), (40, 70)), None);
    }

    #[test]
    fn prompts_repeat_and_differ_from_the_first_word_on() {
        for shape in SHAPES {
            let prompt = |seed, number| Prompt::new(shape, Measure::guessed(), seed, number);
            assert_eq!(prompt(7, 1), prompt(7, 1));
            assert_ne!(prompt(7, 1).system, prompt(7, 2).system);
            assert_ne!(prompt(7, 1).system, prompt(8, 1).system);
        }
        let words = Prompt::new(SHAPES[0], Measure::guessed(), 7, 1).user;
        assert_eq!(words.split(' ').count(), 58);
    }
}
