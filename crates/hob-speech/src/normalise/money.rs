//! Money: "$1,204.50", "£3m", "€1.5bn", "¥500", "5€", "$5 million", "$9.99/month".
//! The sign is written before the number and said after it. Cents are said separately.

use super::View;
use super::numeral::Numeral;
use super::quantity::is_attribute;
use super::unit::unit_name;
use crate::reading::Reading;

/// Singular and plural names of a currency and of its hundredth.
struct Currency {
    symbols: &'static [&'static str],
    one: &'static str,
    many: &'static str,
    /// `None` for currencies without a hundredth.
    cent: Option<(&'static str, &'static str)>,
}

const CURRENCIES: &[Currency] = &[
    currency(&["US$", "$"], "dollar", "dollars", Some(("cent", "cents"))),
    currency(&["A$", "AU$"], "Australian dollar", "Australian dollars", Some(("cent", "cents"))),
    currency(&["C$", "CA$"], "Canadian dollar", "Canadian dollars", Some(("cent", "cents"))),
    currency(&["£"], "pound", "pounds", Some(("penny", "pence"))),
    currency(&["€"], "euro", "euros", Some(("cent", "cents"))),
    currency(&["¥"], "yen", "yen", None),
    currency(&["₹"], "rupee", "rupees", Some(("paisa", "paise"))),
    currency(&["₩"], "won", "won", None),
    currency(&["₽"], "ruble", "rubles", Some(("kopeck", "kopecks"))),
    currency(&["₿"], "bitcoin", "bitcoins", None),
    currency(&["¢"], "cent", "cents", None),
];

const fn currency(
    symbols: &'static [&'static str],
    one: &'static str,
    many: &'static str,
    cent: Option<(&'static str, &'static str)>,
) -> Currency {
    Currency { symbols, one, many, cent }
}

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let sum = before(&word.text).or_else(|| behind(&word.text))?;
    let scale = sum.scale.or_else(|| scale_word(view.text_ahead(1)?));
    let used = if sum.scale.is_none() && scale.is_some() { 2 } else { 1 };
    let last = view.ahead(used - 1)?;
    let said = sum.in_words(scale, view.british)?;
    // "a $20 bill" is a twenty dollar bill.
    let said = match said.strip_suffix(sum.currency.many) {
        Some(stem) if is_attribute(view, used) => format!("{stem}{}", sum.currency.one),
        _ => said,
    };
    out.say(word.span().start..last.span().end, &said);
    Some(used)
}

/// A sum as written.
struct Sum<'a> {
    currency: &'static Currency,
    negative: bool,
    number: Numeral,
    /// The upper end of "$5–10".
    upto: Option<Numeral>,
    scale: Option<&'static str>,
    /// The unit after a slash: "$5/month".
    per: Option<&'a str>,
}

/// "$5" and its possible suffix.
fn before(text: &str) -> Option<Sum<'_>> {
    let unsigned = text.strip_prefix(['-', '−']).unwrap_or(text);
    let (currency, symbol) = leading_symbol(unsigned)?;
    let rest = &unsigned[symbol.len()..];
    let (number, length) = Numeral::leading(rest)?;
    let negative = unsigned.len() < text.len() || number.negative;
    let sum = Sum { currency, negative, number, upto: None, scale: None, per: None };
    sum.with_suffix(&rest[length..])
}

/// "5€". Other readers say "5 €": a number and a symbol.
fn behind(text: &str) -> Option<Sum<'_>> {
    let (number, length) = Numeral::leading(text)?;
    let (currency, symbol) = leading_symbol(&text[length..])?;
    let negative = number.negative;
    let sum = Sum { currency, negative, number, upto: None, scale: None, per: None };
    sum.with_suffix(&text[length + symbol.len()..])
}

/// "€5,50": two digits after a comma are not a group of thousands.
fn decimal_comma(suffix: &str) -> Option<&str> {
    let digits = suffix.strip_prefix(',')?;
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    (length == 2).then(|| &digits[..length])
}

fn leading_symbol(text: &str) -> Option<(&'static Currency, &'static str)> {
    let all = CURRENCIES.iter().flat_map(|c| c.symbols.iter().map(move |symbol| (c, *symbol)));
    all.into_iter().find(|(_, symbol)| text.starts_with(symbol))
}

impl<'a> Sum<'a> {
    fn with_suffix(mut self, mut suffix: &'a str) -> Option<Sum<'a>> {
        if let Some(cents) = decimal_comma(suffix)
            && self.number.fraction.is_none()
        {
            self.number.fraction = Some(cents.to_owned());
            suffix = &suffix[1 + cents.len()..];
        }
        if let Some(rest) = suffix.strip_prefix(['-', '–']) {
            let rest = leading_symbol(rest).map_or(rest, |(_, symbol)| &rest[symbol.len()..]);
            let (number, length) = Numeral::leading(rest)?;
            self.upto = Some(number);
            suffix = &rest[length..];
        }
        let (scale, per) = suffix.split_once('/').map_or((suffix, None), |(s, p)| (s, Some(p)));
        self.scale = if scale.is_empty() { None } else { Some(scale_suffix(scale)?) };
        self.per = per;
        Some(self)
    }

    fn in_words(&self, scale: Option<&str>, british: bool) -> Option<String> {
        let mut said = String::new();
        if self.negative {
            said.push_str("minus ");
        }
        let number = Numeral { negative: false, ..self.number.clone() };
        said.push_str(&self.amount(&number, scale, british));
        if let Some(per) = self.per {
            said.push_str(&per_name(per, british)?);
        }
        Some(said)
    }

    fn amount(&self, number: &Numeral, scale: Option<&str>, british: bool) -> String {
        let Currency { one, many, cent, .. } = self.currency;
        if let Some(upto) = &self.upto {
            let scale = scale.map(|scale| format!(" {scale}")).unwrap_or_default();
            return format!(
                "{} to {}{scale} {many}",
                number.in_words(british),
                upto.in_words(british)
            );
        }
        if let Some(scale) = scale {
            return format!("{} {scale} {many}", number.in_words(british));
        }
        let fraction = number.fraction.as_deref().filter(|digits| digits.len() <= 2);
        if let (Some(digits), Some(cent)) = (fraction, cent) {
            return coins(self.currency, number, &format!("{digits:0<2}"), *cent, british);
        }
        let name = if number.is_one() { one } else { many };
        format!("{} {name}", number.in_words(british))
    }
}

/// "1", "05" → "one dollar and five cents". A part that is zero is not said.
fn coins(
    currency: &Currency,
    number: &Numeral,
    hundredths: &str,
    cent: (&str, &str),
    british: bool,
) -> String {
    let whole = Numeral { fraction: None, ..number.clone() };
    let major = format!(
        "{} {}",
        whole.in_words(british),
        if whole.is_one() { currency.one } else { currency.many }
    );
    let is_nothing = |digits: &str| digits.bytes().all(|digit| digit == b'0');
    if is_nothing(hundredths) {
        return major;
    }
    let name = if hundredths == "01" { cent.0 } else { cent.1 };
    let minor = format!("{} {name}", super::cardinal::cardinal(hundredths, british));
    if is_nothing(&whole.whole) { minor } else { format!("{major} and {minor}") }
}

fn scale_suffix(suffix: &str) -> Option<&'static str> {
    Some(match suffix {
        "k" | "K" => "thousand",
        "m" | "M" | "mn" | "mm" | "MM" => "million",
        "b" | "B" | "bn" => "billion",
        "t" | "T" | "tn" | "trn" => "trillion",
        _ => return None,
    })
}

fn scale_word(word: &str) -> Option<&'static str> {
    let known = ["hundred", "thousand", "million", "billion", "trillion"];
    known.into_iter().find(|scale| *scale == word).or(match word {
        "m" | "mn" => Some("million"),
        "bn" => Some("billion"),
        _ => None,
    })
}

fn per_name(per: &str, british: bool) -> Option<String> {
    let name = unit_name(&format!("/{per}"), true, british);
    if let Some(name) = name {
        return Some(format!(" {name}"));
    }
    per.bytes().all(|b| b.is_ascii_alphabetic()).then(|| format!(" per {per}"))
}
