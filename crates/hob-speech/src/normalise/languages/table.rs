//! What one language has to say: its number words, units, money, dates, abbreviations and letters.
//! Tables of words, and a function where the grammar is more than a table.

use crate::abbreviations::ShortForms;
use crate::word_table::{forms, nth};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NounGender {
    Masculine,
    Feminine,
}

/// How a number stands in its sentence: "veintiuno", "veintiún libros", "veintiuna casas".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Alone,
    Before(NounGender),
}

impl Form {
    pub(super) fn is_feminine(self) -> bool {
        self == Form::Before(NounGender::Feminine)
    }
}

/// A word for one and for several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noun {
    pub(super) one: &'static str,
    pub(super) many: &'static str,
    pub(super) gender: NounGender,
}

/// A masculine noun.
pub(super) const fn m(one: &'static str, many: &'static str) -> Noun {
    Noun { one, many, gender: NounGender::Masculine }
}

/// A feminine noun.
pub(super) const fn f(one: &'static str, many: &'static str) -> Noun {
    Noun { one, many, gender: NounGender::Feminine }
}

/// Reads "metro/metros". A feminine noun has its gender behind it: "hora/horas (f)".
pub(super) fn noun(text: &'static str) -> Noun {
    let feminine = text.strip_suffix(" (f)");
    let gender = if feminine.is_some() { NounGender::Feminine } else { NounGender::Masculine };
    let (one, many) = forms(feminine.unwrap_or(text));
    Noun { one, many, gender }
}

/// Money with its signs, and its hundredth.
#[derive(Debug)]
pub(super) struct Currency {
    pub(super) signs: &'static str,
    pub(super) unit: Noun,
    pub(super) cent: Noun,
}

pub(super) const fn money(signs: &'static str, unit: Noun, cent: Noun) -> Currency {
    Currency { signs, unit, cent }
}

/// Endings that make a number an ordinal. Those in `short` are also in one of the other lists.
#[derive(Debug)]
pub(super) struct OrdinalMarks {
    pub(super) masculine: &'static str,
    pub(super) feminine: &'static str,
    pub(super) short: &'static str,
}

/// How the gender of a noun is guessed: by lists first, then by its ending.
#[derive(Debug)]
pub(super) struct NounTable {
    pub(super) feminine: &'static str,
    pub(super) masculine: &'static str,
    pub(super) feminine_endings: &'static str,
}

/// The words of addresses and of signs between numbers.
#[derive(Debug)]
pub(in crate::normalise) struct SignWords {
    pub(super) minus: &'static str,
    pub(super) plus: &'static str,
    /// Between whole and decimals, as this language writes them.
    pub(super) comma: &'static str,
    pub(super) dot: &'static str,
    pub(super) slash: &'static str,
    /// Between the parts of a fraction or a mark, such as "15/20".
    pub(super) over: &'static str,
    pub(super) at: &'static str,
    pub(super) dash: &'static str,
    pub(super) underscore: &'static str,
    pub(super) colon: &'static str,
    /// Between the ends of a range.
    pub(super) to: &'static str,
    /// Between money and what it pays: "5 €/kg".
    pub(super) per: &'static str,
    /// Between the numbers of a score.
    pub(super) score: &'static str,
    /// Between money and its cents. `None`: the number of cents follows without a name.
    pub(super) cents: Option<&'static str>,
    pub(super) foreign_word: &'static str,
    pub(in crate::normalise) code_block: &'static str,
}

#[derive(Debug)]
pub(super) struct Dates {
    pub(super) months: &'static str,
    /// Between day, month and year.
    pub(super) link: &'static str,
    /// The first of a month, where it is not the cardinal.
    pub(super) first: Option<&'static str>,
    /// Words before a date without a year: "el 24/12".
    pub(super) openers: &'static [&'static str],
    pub(super) year: fn(u64) -> String,
    /// Hours and minutes of a clock, and what follows a time and is part of it.
    pub(super) time: fn(u64, u64) -> String,
    pub(super) hour_words: &'static [&'static str],
    /// Words before one o'clock, and how they join it: "alle 1:00" is "all'una".
    pub(super) contracted: &'static str,
    /// Words after which "14.30" is a time.
    pub(super) clock_openers: &'static [&'static str],
    pub(super) duration: [Noun; 3],
}

/// The number that a Roman numeral stands for, in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RomanPlace {
    /// "siglo XIX"
    AfterCentury,
    /// "XIXe siècle", "XIX secolo"
    BeforeCentury,
    /// "la II Guerra Mundial", "la Ve République"
    BeforeNoun,
    /// "Felipe VI"
    Ruler,
    /// "capítulo IV"
    Chapter,
}

#[derive(Debug)]
pub(super) struct RomanWords {
    pub(super) centuries: &'static [&'static str],
    pub(super) chapters: &'static str,
    /// Marks behind an ordinal: "XIXe siècle", "Ier". Longer ones come first.
    pub(super) marks: &'static str,
    /// Words before what is numbered: "la II Guerra Mundial".
    pub(super) feminine_articles: &'static str,
    pub(super) masculine_articles: &'static str,
    pub(super) said: fn(u64, RomanPlace, NounGender) -> String,
}

/// The words of one language. Lists have spaces between their words; tables are read by `word_table`.
#[derive(Debug)]
pub(in crate::normalise) struct LanguageTable {
    pub(super) cardinal: fn(u64, Form) -> String,
    /// With the gender of the ordinal, and whether it is shortened before its noun.
    pub(super) ordinal: fn(u64, NounGender, bool) -> String,
    pub(super) ordinal_marks: OrdinalMarks,
    /// Whole fractions ("1/2"), and the parts of a number ("3"). All others are said with a slash.
    pub(super) fractions: &'static str,
    pub(super) thousands: char,
    pub(super) decimal: char,
    /// Decimals are said digit by digit.
    pub(super) has_single_decimals: bool,
    /// 0 and 1.5 count as one: "1,5 million".
    pub(super) has_singular_below_two: bool,
    pub(in crate::normalise) signs: SignWords,
    pub(super) dates: Dates,
    /// Nouns by their signs.
    pub(super) units: &'static str,
    pub(super) currencies: &'static [Currency],
    /// Large numbers between a number and its money: "5 mil euros".
    pub(super) scales: &'static str,
    /// The large numbers that need "of" before the money: "5 M€", "5 millones de euros".
    pub(super) scales_with_of: &'static str,
    /// "de euros", "d'euros"; before the money of a large round number.
    pub(super) of: fn(&str) -> String,
    pub(super) short_forms: ShortForms,
    /// Words with which a sentence often begins.
    pub(in crate::normalise) starters: &'static str,
    pub(super) symbols: &'static str,
    /// Acronyms that are not said as their letters suggest. Those without words are spelled.
    pub(super) acronyms: &'static str,
    /// Letters that espeak-ng says as words.
    pub(super) letters: &'static [(char, &'static str)],
    pub(super) nouns: NounTable,
    /// One before a feminine noun that begins with a vowel: "un'ora". `None`: it keeps its form.
    pub(super) elided_one: Option<&'static str>,
    /// Words after a number that are not what it counts.
    pub(super) particles: &'static str,
    pub(super) roman: RomanWords,
    /// Telephone numbers are said in pairs.
    pub(super) has_pairs: bool,
    /// Words before a telephone number.
    pub(super) callers: &'static [&'static str],
}

impl LanguageTable {
    /// Whether a noun behind this whole number stands in the singular.
    pub(super) fn counts_as_one(&self, whole: u64) -> bool {
        whole == 1 || (whole == 0 && self.has_singular_below_two)
    }
}

/// "doscientos", "doscientas": the hundreds from a list that begins with 100.
pub(super) fn hundred(list: &'static str, hundreds: u64, form: Form) -> String {
    let masculine = nth(list, hundreds - 1);
    match masculine.strip_suffix("os") {
        Some(stem) if form.is_feminine() => format!("{stem}as"),
        _ => masculine.to_owned(),
    }
}

/// "siglo quinto", "siglo veinte", "Felipe sexto": centuries and rulers of Spanish and Portuguese are ordinals up to ten.
pub(super) fn roman(
    cardinal: fn(u64, Form) -> String,
    ordinal: fn(u64, NounGender, bool) -> String,
    number: u64,
    place: RomanPlace,
    gender: NounGender,
) -> String {
    match place {
        RomanPlace::BeforeNoun => ordinal(number, gender, gender == NounGender::Masculine),
        RomanPlace::AfterCentury | RomanPlace::Ruler if number <= 10 => {
            ordinal(number, gender, false)
        }
        _ => cardinal(number, Form::Alone),
    }
}

/// "vigésimo primero": the ordinal of a number from 1 to 99, from the stems of its ones and tens.
pub(super) fn ordinal_of_stems(
    (ones, tens): (&'static str, &'static str),
    number: u64,
    ending: &str,
) -> String {
    match (number / 10, number % 10) {
        (0, one) => format!("{}{ending}", nth(ones, one - 1)),
        (ten, 0) => format!("{}{ending}", nth(tens, ten - 1)),
        (ten, one) => format!("{}{ending} {}{ending}", nth(tens, ten - 1), nth(ones, one - 1)),
    }
}
