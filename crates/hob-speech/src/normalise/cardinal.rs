//! Whole numbers in words: counts, ordinals, years, or digit by digit.
//! Digits in, words out. The callers decide what kind of number a text means.

use crate::word_table::nth;

const ONES: &str = "
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen";
const TENS: &str = "twenty thirty forty fifty sixty seventy eighty ninety";
const SCALES: [&str; 6] = ["", " thousand", " million", " billion", " trillion", " quadrillion"];

/// The most digits that [`SCALES`] can name. Longer numbers are read digit by digit.
const NAMED_DIGITS_MAX: usize = 18;

/// "1204" → "one thousand two hundred four", in British "… two hundred and four".
pub(super) fn cardinal(digits: &str, british: bool) -> String {
    let significant = digits.trim_start_matches('0');
    if significant.len() > NAMED_DIGITS_MAX {
        return by_digit(digits);
    }
    match significant.parse::<u64>() {
        Ok(number) => in_words(number, british),
        Err(_) => one(0).to_owned(),
    }
}

pub(super) fn in_words(number: u64, british: bool) -> String {
    if number == 0 {
        return one(0).to_owned();
    }
    let mut groups = Vec::new();
    let mut rest = number;
    for scale in SCALES {
        let group = rest % 1000;
        if group > 0 {
            groups.push(format!("{}{scale}", below_thousand(group, british)));
        }
        rest /= 1000;
    }
    groups.reverse();
    let last = number % 1000;
    if british && groups.len() > 1 && last > 0 && last < 100 {
        groups.insert(groups.len() - 1, "and".to_owned());
    }
    groups.join(" ")
}

fn below_thousand(number: u64, british: bool) -> String {
    let (hundreds, rest) = (number / 100, number % 100);
    match (hundreds, rest) {
        (0, _) => below_hundred(rest),
        (_, 0) => format!("{} hundred", one(hundreds)),
        _ if british => format!("{} hundred and {}", one(hundreds), below_hundred(rest)),
        _ => format!("{} hundred {}", one(hundreds), below_hundred(rest)),
    }
}

fn below_hundred(number: u64) -> String {
    let (tens, ones) = (number / 10, number % 10);
    match (number, ones) {
        (0..20, _) => one(number).to_owned(),
        (_, 0) => nth(TENS, tens - 2).to_owned(),
        _ => format!("{} {}", nth(TENS, tens - 2), one(ones)),
    }
}

fn one(number: u64) -> &'static str {
    nth(ONES, number)
}

/// Whether one word is a count of at most a hundred, or an ordinal of at most twelve.
pub(crate) fn is_number_word(word: &str) -> bool {
    let mut counts = ONES.split_whitespace().skip(1).chain(TENS.split_whitespace());
    let mut ordinals = (1..=12).map(|number| ordinal(&number.to_string(), false));
    word.eq_ignore_ascii_case("hundred")
        || counts.any(|count| word.eq_ignore_ascii_case(count))
        || ordinals.any(|ordinal| word.eq_ignore_ascii_case(&ordinal))
}

/// "4" → "fourth", "21" → "twenty first".
pub(super) fn ordinal(digits: &str, british: bool) -> String {
    let words = cardinal(digits, british);
    let (before, last) = words.rsplit_once(' ').map_or(("", &*words), |(b, l)| (b, l));
    let last = match last {
        "one" => "first".to_owned(),
        "two" => "second".to_owned(),
        "three" => "third".to_owned(),
        "five" => "fifth".to_owned(),
        "eight" => "eighth".to_owned(),
        "nine" => "ninth".to_owned(),
        "twelve" => "twelfth".to_owned(),
        tens if tens.ends_with('y') => format!("{}ieth", &tens[..tens.len() - 1]),
        other => format!("{other}th"),
    };
    if before.is_empty() { last } else { format!("{before} {last}") }
}

/// "1969" → "nineteen sixty nine", "2005" → "two thousand five", "1900" → "nineteen hundred".
pub(super) fn year(number: u64, british: bool) -> String {
    let (century, rest) = (number / 100, number % 100);
    match (century, rest) {
        (20, 0..10) | (10, 0..10) => in_words(number, british),
        (11.., 0) => format!("{} hundred", in_words(century, british)),
        (11.., 1..10) => format!("{} oh {}", in_words(century, british), one(rest)),
        (10.., _) => format!("{} {}", in_words(century, british), below_hundred(rest)),
        _ => in_words(number, british),
    }
}

/// "2010" → "twenty tens", "1990" → "nineteen nineties", "90" → "nineties".
pub(super) fn decade(number: u64, british: bool) -> String {
    let words = if number < 100 { below_hundred(number) } else { year(number, british) };
    plural(&words)
}

/// "sixty" → "sixties", "six" → "sixes", "eleven" → "elevens".
pub(super) fn plural(words: &str) -> String {
    match words.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if words.ends_with('x') => format!("{words}es"),
        None => format!("{words}s"),
    }
}

/// "404" → "four zero four".
pub(super) fn by_digit(digits: &str) -> String {
    let words: Vec<&str> = digits
        .bytes()
        .filter(u8::is_ascii_digit)
        .map(|digit| one(u64::from(digit - b'0')))
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn how_many() {
        let check = |digits: &str, us: &str, gb: &str| {
            assert_eq!(cardinal(digits, false), us);
            assert_eq!(cardinal(digits, true), gb);
        };
        check("0", "zero", "zero");
        check("000", "zero", "zero");
        check("19", "nineteen", "nineteen");
        check("42", "forty two", "forty two");
        check("105", "one hundred five", "one hundred and five");
        check("1204", "one thousand two hundred four", "one thousand two hundred and four");
        check("1004", "one thousand four", "one thousand and four");
        check("1000000", "one million", "one million");
        check(
            "12345678901234567890",
            &by_digit("12345678901234567890"),
            &by_digit("12345678901234567890"),
        );
    }

    #[test]
    fn every_number_has_words_of_its_own() {
        let words: BTreeSet<String> = (0..1_000).map(|number| in_words(number, false)).collect();
        assert_eq!(words.len(), 1_000);
        assert!(words.iter().all(|words| words.split(' ').all(|word| !word.is_empty())));
    }

    #[test]
    fn which_one_and_when() {
        assert_eq!(ordinal("4", false), "fourth");
        assert_eq!(ordinal("12", false), "twelfth");
        assert_eq!(ordinal("20", false), "twentieth");
        assert_eq!(ordinal("101", true), "one hundred and first");
        assert_eq!(year(1969, false), "nineteen sixty nine");
        assert_eq!(year(2005, false), "two thousand five");
        assert_eq!(year(2005, true), "two thousand and five");
        assert_eq!(year(2027, false), "twenty twenty seven");
        assert_eq!(year(1905, false), "nineteen oh five");
        assert_eq!(year(1900, false), "nineteen hundred");
        assert_eq!(decade(1990, false), "nineteen nineties");
        assert_eq!(decade(2010, false), "twenty tens");
        assert_eq!(decade(80, false), "eighties");
    }
}
