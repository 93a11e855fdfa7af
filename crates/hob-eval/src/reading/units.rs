//! Names of units as people write them, so that a wrong unit is distinguished from a word.
//! Units are not converted: the prompt asks for one.

use super::StatedNumber;

/// Each row is one unit. The first name is hob's. Names with capitals that matter are compared exactly.
const UNITS: [&[&str]; 47] = [
    &["%", "percent", "per cent"],
    &["USD", "$", "dollar", "dollars", "US dollars"],
    &["EUR", "€", "euro", "euros"],
    &["GBP", "£", "pound sterling", "pounds sterling"],
    &["JPY", "¥", "yen"],
    &["ct", "cent", "cents"],
    &["mm", "millimetre", "millimetres", "millimeter", "millimeters"],
    &["cm", "centimetre", "centimetres", "centimeter", "centimeters"],
    &["m", "metre", "metres", "meter", "meters"],
    &["km", "kilometre", "kilometres", "kilometer", "kilometers"],
    &["mi", "mile", "miles"],
    &["ft", "foot", "feet"],
    &["in", "inch", "inches"],
    &["yd", "yard", "yards"],
    &["ms", "millisecond", "milliseconds"],
    &["s", "sec", "secs", "second", "seconds"],
    &["min", "mins", "minute", "minutes"],
    &["h", "hr", "hrs", "hour", "hours"],
    &["d", "day", "days"],
    &["km/h", "kmh", "kph", "km per hour", "kilometres per hour", "kilometers per hour"],
    &["mph", "miles per hour", "mi/h"],
    &["m/s", "metres per second", "meters per second"],
    &["g", "gram", "grams"],
    &["kg", "kilogram", "kilograms", "kilo", "kilos"],
    &["lb", "lbs", "pounds"],
    &["oz", "ounce", "ounces"],
    &["t", "tonne", "tonnes"],
    &["ml", "mL", "millilitre", "millilitres", "milliliter", "milliliters"],
    &["l", "L", "litre", "litres", "liter", "liters"],
    &["W", "watt", "watts"],
    &["kW", "kilowatt", "kilowatts"],
    &["MW", "megawatt", "megawatts"],
    &["Wh", "watt-hour", "watt-hours", "watt hours"],
    &["kWh", "kilowatt-hour", "kilowatt-hours", "kilowatt hour", "kilowatt hours"],
    &["J", "joule", "joules"],
    &["kJ", "kilojoule", "kilojoules"],
    &["MJ", "megajoule", "megajoules"],
    &["°C", "degrees Celsius", "degree Celsius", "celsius"],
    &["°F", "degrees Fahrenheit", "degree Fahrenheit", "fahrenheit"],
    &["K", "kelvin", "kelvins"],
    &["B", "byte", "bytes"],
    &["kB", "KB", "kilobyte", "kilobytes"],
    &["MB", "megabyte", "megabytes"],
    &["GB", "gigabyte", "gigabytes"],
    &["TB", "terabyte", "terabytes"],
    &["Mbit", "Mb", "megabit", "megabits"],
    &["Gbit", "Gb", "gigabit", "gigabits"],
];

/// The unit that stands with a number. `None`: no known unit is stated.
pub(crate) fn stated_unit(number: &StatedNumber) -> Option<&'static str> {
    let after = number.after.trim_start_matches([' ', '-', '\u{a0}', '\u{2009}', '\u{202f}']);
    // `10 in 3 steps` states no inches: this short name is also a word.
    let is_word = |name: &str| name == "in" && after.len() > 2 && after.starts_with("in ");
    let mut best: Option<(usize, &'static str)> = None;
    for unit in UNITS {
        for name in unit.iter().filter(|name| begins(after, name) && !is_word(name)) {
            if best.is_none_or(|(length, _)| name.len() > length) {
                best = Some((name.len(), unit[0]));
            }
        }
    }
    let currency = number.currency.and_then(|sign| unit_named(sign.encode_utf8(&mut [0; 4])));
    best.map(|(_, unit)| unit).or(currency)
}

/// hob's name of a unit.
pub(crate) fn unit_named(name: &str) -> Option<&'static str> {
    let name = name.trim();
    UNITS.iter().find(|unit| unit.iter().any(|known| same(known, name))).map(|unit| unit[0])
}

fn begins(text: &str, name: &str) -> bool {
    let Some(start) = text.get(..name.len()) else { return false };
    let rest = text[name.len()..].chars().next();
    let goes_on =
        rest.is_some_and(|sign| sign.is_alphanumeric() || matches!(sign, '/' | '²' | '³'));
    same(name, start) && (!goes_on || !name.ends_with(char::is_alphabetic))
}

/// Short names differ by case: `mW`, `MW`. Words do not.
fn same(known: &str, name: &str) -> bool {
    if known.len() > 3 { known.eq_ignore_ascii_case(name) } else { known == name }
}
