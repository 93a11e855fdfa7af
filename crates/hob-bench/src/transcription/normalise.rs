//! Writes a transcript and its reference alike before they are compared, so that spelling and punctuation are not errors.
//! English follows the rules of Whisper's normaliser without its table of British spellings; other languages its basic rules.

mod numbers;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The name in records. A changed rule needs a new number, because figures of different rules are not comparable.
pub const NORMALISER: &str = "english/1, basic/2";

/// Languages without spaces between words: each character counts as a word.
const UNSPACED: [&str; 8] = ["zh", "ja", "th", "lo", "my", "km", "yue", "bo"];

const FILLERS: [&str; 10] = ["hmm", "mm", "mhm", "mmm", "uh", "um", "uhm", "umm", "er", "erm"];

/// Whole words, and what they stand for.
const SHORT_FORMS: &str = "won't=will not,can't=can not,cannot=can not,let's=let us,ain't=aint,y'all=you all,\
    wanna=want to,gotta=got to,gonna=going to,i'ma=i am going to,imma=i am going to,woulda=would have,coulda=could have,\
    shoulda=should have,ma'am=madam,mr=mister,mrs=missus,st=saint,dr=doctor,prof=professor,capt=captain,gov=governor,\
    ald=alderman,gen=general,sen=senator,rep=representative,pres=president,rev=reverend,hon=honorable,asst=assistant,\
    assoc=associate,lt=lieutenant,col=colonel,jr=junior,sr=senior,esq=esquire";
/// Endings of words, and what they stand for.
const ENDINGS: &str = "n't=not,'re=are,'s=is,'d=would,'ll=will,'ve=have,'m=am";

/// The words that are compared. `language` is an ISO 639-1 code.
pub fn normalised_words(text: &str, language: &str) -> Vec<String> {
    let words = if is_english(language) { english(text) } else { basic(text) };
    match is_unspaced(language) {
        true => words.iter().flat_map(|word| word.chars().map(String::from)).collect(),
        false => words,
    }
}

/// The characters that are compared: those of the words, with the spaces that the language has.
pub(super) fn normalised_chars(words: &[String], language: &str) -> Vec<char> {
    words.join(if is_unspaced(language) { "" } else { " " }).chars().collect()
}

fn is_unspaced(language: &str) -> bool {
    UNSPACED.contains(&code(language).as_str())
}

/// Whether the rules for English apply.
pub(crate) fn is_english(language: &str) -> bool {
    code(language) == "en"
}

fn code(language: &str) -> String {
    language.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase()
}

/// Letters, digits and their marks in lower case; everything else separates words.
fn basic(text: &str) -> Vec<String> {
    let text = without_brackets(text);
    let folded = text.nfkc().filter(|c| !is_invisible(*c)).flat_map(char::to_lowercase);
    let kept = folded.map(|c| if c.is_alphanumeric() || is_combining_mark(c) { c } else { ' ' });
    kept.collect::<String>().split_whitespace().map(str::to_owned).collect()
}

/// Whether this separates no words: a soft hyphen, a joiner of letters, or a mark of the direction. The non-joiner does,
/// because it is the half space of Persian.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200d}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn english(text: &str) -> Vec<String> {
    let text: String = without_brackets(text)
        .replace(['’', '‘', '`'], "'")
        .nfkd()
        .filter(|c| !is_combining_mark(*c))
        .flat_map(char::to_lowercase)
        .collect();
    let spaced = separated(&text);
    let words = spaced.split_whitespace().map(|word| word.trim_matches('\''));
    let kept = words.filter(|word| !word.is_empty() && !FILLERS.contains(word));
    let words: Vec<String> = kept.flat_map(expanded).collect();
    numbers::in_digits(&words)
}

/// Notes such as `[music]` and `(laughs)` were not said.
fn without_brackets(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(['[', '(']) {
        let close = if rest[start..].starts_with('[') { ']' } else { ')' };
        kept.push_str(&rest[..start]);
        kept.push(' ');
        let inside = &rest[start + 1..];
        rest = inside.find(close).map_or(inside, |end| &inside[end + close.len_utf8()..]);
    }
    kept + rest
}

/// Keeps signs that belong to a number and apostrophes; other signs become spaces.
fn separated(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let is_digit =
        |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(char::is_ascii_digit);
    let sign = |at: usize, c: char| {
        let between = is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
        match c {
            c if c.is_alphanumeric() || c == '\'' => Some(c),
            '.' if between => Some('.'),
            // A time such as 5:30 is spoken as 530 is.
            ',' | ':' if between => None,
            '$' | '€' | '£' if is_digit(Some(at + 1)) => Some(c),
            '%' => Some('%'),
            _ => Some(' '),
        }
    };
    let kept = chars.iter().enumerate().filter_map(|(at, c)| sign(at, *c));
    kept.collect::<String>().replace('%', " percent ")
}

fn expanded(word: &str) -> Vec<String> {
    let mut pairs = SHORT_FORMS.split(',').filter_map(|pair| pair.split_once('='));
    if let Some((_, long)) = pairs.find(|(short, _)| *short == word) {
        return long.split(' ').map(str::to_owned).collect();
    }
    let mut pairs = ENDINGS.split(',').filter_map(|pair| pair.split_once('='));
    let parts = pairs.find_map(|(ending, long)| Some([word.strip_suffix(ending)?, long]));
    match parts.filter(|[stem, _]| !stem.is_empty()) {
        Some(parts) => parts.map(str::to_owned).into(),
        None => vec![word.replace('\'', "")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_sound_alike_are_written_alike() {
        let rows = [
            ("en", "Hello, World!", "hello world"),
            (
                "en",
                "I won't go; they've gone, and she's late.",
                "i will not go they have gone and she is late",
            ),
            ("en", "Um, Mr. Brown — uh — can't.", "mister brown can not"),
            ("en", "[music] He laughed (loudly) twice.", "he laughed twice"),
            ("en", "The café’s naïve owner", "the cafe is naive owner"),
            ("en", "well-known rock ’n’ roll", "well known rock n roll"),
            ("en", "It costs 1,250 dollars.", "it costs $1250"),
            ("en-US", "20 %", "20%"),
            ("de", "Straße, Größe: 3 Äpfel!", "straße größe 3 äpfel"),
            ("fr", "L'été (rires) n’est pas fini…", "l été n est pas fini"),
            ("hi", "नमस्ते दुनिया।", "नमस्ते दुनिया"),
            ("hi", "क्\u{200d}या \u{200f}डॉ\u{ad}क्टर", "क्या डॉक्टर"),
            ("fa", "می\u{200c}خواهم", "می خواهم"),
            ("ja", "ﾃｽﾄ です。", "テ ス ト で す"),
        ];
        for (language, text, expected) in rows {
            assert_eq!(normalised_words(text, language).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn an_open_bracket_hides_nothing() {
        assert_eq!(normalised_words("a [b c", "en").join(" "), "a b c");
    }
}
