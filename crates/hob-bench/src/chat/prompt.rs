//! Generates prompts of random words with a given number of tokens.
//! The server's own counts show how many tokens a word has, so no tokenizer is downloaded.

use hob_core::statistics::SeededRandom;

use super::shape::Shape;
use crate::runs::BenchError;

/// Short and common words, which most tokenizers treat alike.
const WORDS: [&str; 64] = [
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world",
    "school", "state", "family", "student", "group", "country", "problem", "hand", "part", "place",
    "case", "week", "company", "system", "program", "question", "work", "night", "point", "home",
    "water", "room", "mother", "area", "money", "story", "fact", "month", "lot", "right", "study",
    "book", "eye", "job", "word", "business", "issue", "side", "kind", "head", "house", "service",
    "friend", "father", "power", "hour", "game", "line", "end", "member", "law", "car", "city",
];
/// Assumed for servers that do not count tokens.
const TOKENS_PER_WORD: f64 = 1.1;

/// How many tokens a server counts for words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TokenRate {
    pub(crate) tokens_per_word: f64,
    /// Tokens of the template and of everything else that every prompt has.
    pub(crate) tokens_before: f64,
    /// Words of the longest prompt that the server counted; 0 if it does not count.
    pub(crate) words_counted: u32,
}

impl TokenRate {
    /// Asks for the tokens of two prompts, of few and of many words. None if the server does not count them.
    pub(crate) fn measure(
        [few, many]: [u32; 2],
        mut prompt_tokens: impl FnMut(u32) -> Result<Option<u32>, BenchError>,
    ) -> Result<Option<TokenRate>, BenchError> {
        let both = prompt_tokens(few)?.zip(prompt_tokens(many)?);
        Ok(both.and_then(|tokens| TokenRate::from_two_prompts((few, tokens.0), (many, tokens.1))))
    }

    /// Computes the rate from two prompts, each as (words, tokens).
    fn from_two_prompts(few: (u32, u32), many: (u32, u32)) -> Option<TokenRate> {
        let words = f64::from(many.0.checked_sub(few.0)?);
        let tokens = f64::from(many.1.checked_sub(few.1)?);
        let tokens_per_word = tokens / words;
        let tokens_before = (f64::from(few.1) - tokens_per_word * f64::from(few.0)).max(0.0);
        (words > 0.0 && tokens > 0.0).then_some(TokenRate {
            tokens_per_word,
            tokens_before,
            words_counted: many.0,
        })
    }

    pub(crate) fn estimate() -> TokenRate {
        TokenRate { tokens_per_word: TOKENS_PER_WORD, tokens_before: 0.0, words_counted: 0 }
    }

    /// Tokens of a prompt that do not belong to its words.
    pub(crate) fn template_tokens(&self, words: u32, tokens: u32) -> u32 {
        (f64::from(tokens) - self.tokens_per_word * f64::from(words)).max(0.0).ceil() as u32
    }

    pub(crate) fn words(&self, tokens: u32) -> u32 {
        let words = (f64::from(tokens) - self.tokens_before) / self.tokens_per_word;
        words.round().max(4.0) as u32
    }
}

/// A random first word, which keeps a prompt apart from all others in a server's cache.
pub(crate) fn nonce(random: &mut SeededRandom) -> String {
    format!("{:06x}", random.bits() & 0xFF_FFFF)
}

/// A system message that starts with a new random word, and the user's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) system: String,
    pub(crate) user: String,
}

impl Prompt {
    /// Equal seed and number give the same prompt. Other prompts differ from the first word on.
    pub(crate) fn new(shape: Shape, measure: TokenRate, seed: u64, number: u64) -> Prompt {
        let mut random = SeededRandom::new(seed ^ number.wrapping_mul(0xA076_1D64_78BD_642F));
        let nonce = nonce(&mut random);
        if let Some(question) = shape.question {
            return Prompt { system: nonce, user: question.to_owned() };
        }
        Prompt::of_words(measure.words(shape.prompt_tokens), &nonce, &mut random)
    }

    /// A prompt of this many random words after the nonce.
    pub(crate) fn of_words(words: u32, nonce: &str, random: &mut SeededRandom) -> Prompt {
        let words: Vec<&str> = (0..words).map(|_| WORDS[random.below(WORDS.len())]).collect();
        Prompt { system: nonce.to_owned(), user: words.join(" ") }
    }

    pub(crate) fn text(&self) -> String {
        format!("{} {}", self.system, self.user)
    }

    /// A prompt of this many words in a fixed order, so the tokens of another length can be computed.
    pub(crate) fn of_rounds(words: u32, nonce: &str) -> Prompt {
        let words: Vec<&str> = WORDS.iter().copied().cycle().take(words as usize).collect();
        Prompt { system: nonce.to_owned(), user: words.join(" ") }
    }

    /// Number of words after which [`Prompt::of_rounds`] repeats.
    pub(crate) const ROUND: u32 = WORDS.len() as u32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::shape::SHAPES;

    #[test]
    fn tokens_per_word_by_hand() {
        // 40 words have 70 tokens and 240 have 310: 1.2 per word, and 22 for the template.
        let measure = TokenRate::from_two_prompts((40, 70), (240, 310)).expect("two");
        assert!((measure.tokens_per_word - 1.2).abs() < 1e-9);
        assert!((measure.tokens_before - 22.0).abs() < 1e-9);
        assert_eq!((measure.words(142), measure.words(5)), (100, 4));
        // A template with 100 more tokens.
        assert_eq!((measure.template_tokens(40, 170), measure.template_tokens(40, 40)), (122, 0));
        assert_eq!(TokenRate::from_two_prompts((40, 70), (240, 70)), None);
        assert_eq!(TokenRate::from_two_prompts((240, 310), (40, 70)), None);
    }

    #[test]
    fn prompts_repeat_and_differ_from_the_first_word_on() {
        for shape in SHAPES {
            let prompt = |seed, number| Prompt::new(shape, TokenRate::estimate(), seed, number);
            assert_eq!(prompt(7, 1), prompt(7, 1));
            assert_ne!(prompt(7, 1).system, prompt(7, 2).system);
            assert_ne!(prompt(7, 1).system, prompt(8, 1).system);
        }
        let words = Prompt::new(SHAPES[0], TokenRate::estimate(), 7, 1).user;
        assert_eq!(words.split(' ').count(), 58);
    }
}
