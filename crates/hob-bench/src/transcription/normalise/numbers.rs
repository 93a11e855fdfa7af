//! Spelt numbers become digits: "twenty five dollars" and "$25" are the same words.
//! Numbers that follow each other without a common meaning are joined, as in "nineteen ninety nine".

const ONES: &str = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen \
    sixteen seventeen eighteen nineteen";
const TENS: &str = "twenty thirty forty fifty sixty seventy eighty ninety";
/// Each is a thousand times the one before.
const SCALES: &str = "thousand million billion trillion";
/// Ordinals that are not their number with `th`.
const ORDINALS: &str = "first=one=st second=two=nd third=three=rd fifth=five=th eighth=eight=th ninth=nine=th \
    twelfth=twelve=th";

/// What a word adds to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// 0 to 19.
    Ones(u64),
    /// 20 to 90.
    Tens(u64),
    Hundred,
    Scale(u64),
}

/// Replaces spelt numbers, and writes percent and money as signs.
pub(super) fn in_digits(words: &[String]) -> Vec<String> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < words.len() {
        match spoken(&words[at..]) {
            Some((digits, taken)) => {
                found.push(digits);
                at += taken;
            }
            None => {
                found.push(words[at].clone());
                at += 1;
            }
        }
    }
    with_signs(&found)
}

/// The number at the start of these words, and how many of them it takes.
fn spoken(words: &[String]) -> Option<(String, usize)> {
    let mut number = Number::default();
    let mut taken = 0;
    if let Some(digits) = words.first().filter(|word| is_number(word)) {
        // "2.5 million"
        let scale = words.get(1).and_then(|word| part(word)).and_then(Part::scale)?;
        let value = digits.trim_start_matches(is_currency).parse::<f64>().ok()? * scale as f64;
        let sign = digits.chars().next().filter(|c| is_currency(*c)).map(String::from);
        return Some((sign.unwrap_or_default() + &value.to_string(), 2));
    }
    while let Some(word) = words.get(taken) {
        let next = words.get(taken + 1).and_then(|word| part(word).or(ordinal(word).map(|o| o.0)));
        if let Some(part) = part(word) {
            number.push(part);
        } else if let Some((part, ending)) = ordinal(word) {
            number.push(part);
            return Some((number.digits() + &ending, taken + 1));
        } else if word == "point" && taken > 0 && matches!(next, Some(Part::Ones(_))) {
            number.point();
        } else if (word == "and" && number.takes_and() && next.is_some())
            || (word == "oh" && taken > 0 && matches!(next, Some(Part::Ones(1..=9))))
        {
            if word == "oh" {
                number.push(Part::Ones(0));
            }
        } else {
            break;
        }
        taken += 1;
    }
    (taken > 0).then(|| (number.digits(), taken))
}

/// A number while its words are read.
#[derive(Debug, Default)]
struct Number {
    /// Digits before the current value.
    done: String,
    total: u64,
    /// Below 1,000.
    group: u64,
    last: Option<Part>,
}

impl Number {
    fn push(&mut self, part: Part) {
        let joins = match (part, self.last) {
            (_, None) | (Part::Ones(_) | Part::Tens(_), Some(Part::Hundred | Part::Scale(_))) => {
                true
            }
            (Part::Ones(1..=9), Some(Part::Tens(_))) => true,
            (Part::Hundred, Some(Part::Ones(_) | Part::Tens(_))) => (1..100).contains(&self.group),
            (Part::Scale(_), Some(_)) => true,
            _ => false,
        };
        if !joins {
            self.point_free();
        }
        match part {
            Part::Ones(value) | Part::Tens(value) => self.group += value,
            Part::Hundred => self.group = self.group.max(1) * 100,
            Part::Scale(scale) => {
                let group = if self.last.is_none() { 1 } else { self.group };
                self.total = self.total.saturating_add(group.saturating_mul(scale));
                self.group = 0;
            }
        }
        self.last = Some(part);
    }

    /// "three point": what follows are decimals.
    fn point(&mut self) {
        self.point_free();
        self.done.push('.');
    }

    /// Ends the current value; what follows is joined to it.
    fn point_free(&mut self) {
        if self.last.is_some() {
            self.done += &(self.total + self.group).to_string();
        }
        (self.total, self.group, self.last) = (0, 0, None);
    }

    /// "one hundred and one"
    fn takes_and(&self) -> bool {
        matches!(self.last, Some(Part::Hundred | Part::Scale(_)))
    }

    fn digits(&mut self) -> String {
        // "two point five million": the scale applies to all of it.
        if let Some(scale) = self.last.and_then(Part::scale).filter(|_| self.done.contains('.')) {
            let digits = format!("{}{}", self.done, self.total / scale);
            return digits
                .parse::<f64>()
                .map_or(digits, |value| (value * scale as f64).to_string());
        }
        self.point_free();
        std::mem::take(&mut self.done)
    }
}

impl Part {
    fn scale(self) -> Option<u64> {
        match self {
            Part::Scale(scale) => Some(scale),
            Part::Hundred => Some(100),
            Part::Ones(_) | Part::Tens(_) => None,
        }
    }
}

fn part(word: &str) -> Option<Part> {
    let place = |words: &str| words.split(' ').position(|known| known == word);
    let scale = |place: usize| (0..=place).fold(1, |scale, _| scale * 1000);
    place(ONES)
        .map(|ones| Part::Ones(ones as u64))
        .or_else(|| place(TENS).map(|tens| Part::Tens(tens as u64 * 10 + 20)))
        .or_else(|| (word == "hundred").then_some(Part::Hundred))
        .or_else(|| place(SCALES).map(|place| Part::Scale(scale(place))))
}

/// An ordinal or a decade, and the ending that follows its digits.
fn ordinal(word: &str) -> Option<(Part, String)> {
    let mut irregular = ORDINALS.split(' ').filter_map(|row| row.split_once('='));
    if let Some((_, rest)) = irregular.find(|(known, _)| *known == word) {
        let (cardinal, ending) = rest.split_once('=')?;
        return Some((part(cardinal)?, ending.to_owned()));
    }
    let tens = |stem: &str| part(&format!("{stem}y")).filter(|part| matches!(part, Part::Tens(_)));
    let with = |part: Option<Part>, ending: &str| part.map(|part| (part, ending.to_owned()));
    if let Some(stem) = word.strip_suffix("ieth") {
        return with(tens(stem), "th");
    }
    if let Some(stem) = word.strip_suffix("ies") {
        return with(tens(stem), "s");
    }
    with(word.strip_suffix("th").and_then(part), "th")
}

fn is_currency(c: char) -> bool {
    matches!(c, '$' | '€' | '£')
}

/// Digits, perhaps with decimals and a currency.
fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix(is_currency).unwrap_or(word);
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// "20 percent" becomes "20%", and "4 dollars and 50 cents" becomes "$4.50".
fn with_signs(words: &[String]) -> Vec<String> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < words.len() {
        let number = word(at);
        let sign = match word(at + 1) {
            "dollar" | "dollars" => "$",
            "pound" | "pounds" => "£",
            "euro" | "euros" => "€",
            _ => "",
        };
        let (written, taken) = match word(at + 1) {
            _ if !is_number(number) => (number.to_owned(), 1),
            "percent" => (format!("{number}%"), 2),
            "per" if word(at + 2) == "cent" => (format!("{number}%"), 3),
            "cent" | "cents" => (format!("¢{number}"), 2),
            _ if !sign.is_empty() || number.starts_with(is_currency) => {
                let unit = usize::from(!sign.is_empty());
                let (cents, taken) = cents(words, at + 1 + unit);
                (format!("{sign}{number}{cents}"), 1 + unit + taken)
            }
            _ => (number.to_owned(), 1),
        };
        found.push(written);
        at += taken;
    }
    found
}

/// The decimals of an amount of money that follow at `at`, and how many words they take.
fn cents(words: &[String], at: usize) -> (String, usize) {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let start = at + usize::from(word(at) == "and");
    match (word(start).parse::<u8>(), word(start + 1)) {
        (Ok(cents @ 0..=99), "cent" | "cents" | "pence") => {
            (format!(".{cents:02}"), start + 2 - at)
        }
        _ => (String::new(), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_the_same_in_words_and_in_digits() {
        let rows = [
            ("zero", "0"),
            ("twenty five apples", "25 apples"),
            ("one hundred and one", "101"),
            ("one thousand two hundred and fifty", "1250"),
            ("three hundred thousand", "300000"),
            ("two million five hundred thousand and six", "2500006"),
            ("a hundred people and twenty dogs", "a 100 people and 20 dogs"),
            ("nineteen ninety nine", "1999"),
            ("twenty twenty six", "2026"),
            ("nineteen oh five", "1905"),
            ("seven thirty", "730"),
            ("five five five one two", "55512"),
            ("three point one four", "3.14"),
            ("two point five million", "2500000"),
            ("2.5 million", "2500000"),
            ("$3 billion", "$3000000000"),
            ("july fourth", "july 4th"),
            ("the twenty first of march", "the 21st of march"),
            ("the thirtieth", "the 30th"),
            ("the nineteen eighties", "the 1980s"),
            ("second and third", "2nd and 3rd"),
            ("forty percent or 40 per cent", "40% or 40%"),
            ("four dollars and fifty cents", "$4.50"),
            ("$4 and 5 cents", "$4.05"),
            ("twelve euros", "€12"),
            ("fifty cents", "¢50"),
            ("oh no", "oh no"),
            ("the point is clear", "the point is clear"),
        ];
        for (said, expected) in rows {
            let words: Vec<String> = said.split(' ').map(str::to_owned).collect();
            assert_eq!(in_digits(&words).join(" "), expected, "{said}");
        }
    }
}
