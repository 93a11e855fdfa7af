//! Chains of units: quantities that are converted, multiplied and added, with a result in a named unit.
//! The size is the number of conversions.

use crate::checkers::Number;
use crate::draw::Draw;
use crate::{Checker, Item};

pub const SIZES: &[&str] = &["1", "2", "3"];

const FAMILY: &str = "units";
const TOKENS_MAX: u32 = 320;
/// Rounding along the way does not count as a mistake.
const TOLERANCE: f64 = 0.005;

/// A kind of question: how many conversions it needs, and how it is made.
type Question = (&'static str, fn(&mut Draw) -> (String, f64, &'static str));

const QUESTIONS: [Question; 12] = [
    ("1", |draw| {
        let (km, minutes) = (draw.between(3, 90), draw.between(2, 12) * 5);
        let speed = km as f64 * 60.0 / minutes as f64;
        (
            format!("A train covers {km} km in {minutes} minutes. What is its mean speed in km/h?"),
            speed,
            "km/h",
        )
    }),
    ("1", |draw| {
        let celsius = draw.between(-30, 45);
        let value = celsius as f64 * 1.8 + 32.0;
        (format!("How many degrees Fahrenheit are {celsius} °C?"), value, "°F")
    }),
    ("1", |draw| {
        let (grams, price) = (draw.between(2, 18) * 50, draw.between(4, 60));
        let value = price as f64 * 1_000.0 / grams as f64;
        (
            format!("{grams} g of tea cost {price} euros. What does 1 kg cost, in euros?"),
            value,
            "euros",
        )
    }),
    ("1", |draw| {
        let (days, hours) = (draw.between(2, 20), draw.between(1, 23));
        let value = (days * 24 + hours) as f64;
        (format!("How many hours are {days} days and {hours} hours?"), value, "hours")
    }),
    ("2", |draw| {
        let (watts, hours, days) =
            (draw.between(4, 90) * 5, draw.between(2, 20), draw.between(3, 30));
        let value = (watts * hours * days) as f64 / 1_000.0;
        (
            format!(
                "A server draws {watts} W for {hours} hours a day. How many kWh does it use in {days} days?"
            ),
            value,
            "kWh",
        )
    }),
    ("2", |draw| {
        let (gigabytes, megabits) = (draw.between(1, 40), draw.between(2, 40) * 5);
        let value = gigabytes as f64 * 8_000.0 / megabits as f64 / 60.0;
        (
            format!(
                "A file has {gigabytes} GB (1 GB = 1000 MB). The line carries {megabits} Mbit/s. How many minutes does the download take?"
            ),
            value,
            "minutes",
        )
    }),
    ("2", |draw| {
        let (length, width, litres) = (draw.between(3, 25), draw.between(2, 9), draw.between(2, 9));
        let value = (length * width * litres) as f64 / 1_000.0;
        (
            format!(
                "A bed of {length} m by {width} m gets {litres} litres of water for each square metre. How many cubic metres are that?"
            ),
            value,
            "m³",
        )
    }),
    ("2", |draw| {
        let (meters, seconds) = (draw.between(4, 60) * 25, draw.between(40, 400));
        let value = meters as f64 / seconds as f64 * 3.6;
        (
            format!(
                "A runner covers {meters} m in {seconds} seconds. What is the mean speed in km/h?"
            ),
            value,
            "km/h",
        )
    }),
    ("3", |draw| {
        let (tokens, rate, watts) =
            (draw.between(2, 40) * 100, draw.between(3, 60), draw.between(2, 40) * 5);
        let value = tokens as f64 / rate as f64 * watts as f64 / 3_600.0;
        (
            format!(
                "A model writes {tokens} tokens at {rate} tokens a second while the machine draws {watts} W. How many Wh does the answer take?"
            ),
            value,
            "Wh",
        )
    }),
    ("3", |draw| {
        let (litres, km, price) =
            (draw.between(4, 11), draw.between(8, 90) * 10, draw.between(120, 210));
        let value = litres as f64 * km as f64 / 100.0 * price as f64 / 100.0;
        (
            format!(
                "A car needs {litres} litres for 100 km. A litre costs {:.2} euros. What does the fuel for {km} km cost, in euros?",
                price as f64 / 100.0
            ),
            value,
            "euros",
        )
    }),
    ("3", |draw| {
        let (inches, count) = (draw.between(2, 40), draw.between(3, 25));
        let value = inches as f64 * 2.54 * count as f64 / 100.0;
        (
            format!(
                "A shelf is {inches} inches wide (1 inch = 2.54 cm). How many metres are {count} of them side by side?"
            ),
            value,
            "m",
        )
    }),
    ("3", |draw| {
        let (channels, seconds, rate) =
            (draw.between(1, 2), draw.between(5, 90) * 4, *draw.pick(&[16_000, 24_000, 48_000]));
        let value = (channels * seconds * rate * 2) as f64 / 1e6;
        let sound = if channels == 1 { "mono" } else { "stereo" };
        (
            format!(
                "Sound in {sound} has {rate} samples a second for each channel, and 2 bytes a sample. How many MB (1 MB = 1,000,000 bytes) do {seconds} seconds take?"
            ),
            value,
            "MB",
        )
    }),
];

/// `None` where the size is not a number of conversions that there are questions for.
pub fn item(seed: u64, size: &str, index: u32) -> Option<Item> {
    let questions: Vec<&Question> = QUESTIONS.iter().filter(|(own, _)| *own == size).collect();
    let mut draw = Draw::new(seed, FAMILY, size, index);
    // In turns, so that few items have many kinds.
    let (_, make) = questions.get(index as usize % questions.len().max(1))?;
    let (question, expected, unit) = make(&mut draw);
    let prompt = format!("{question}\n\nEnd with one line: Answer: NUMBER {unit}");
    Some(Item::new(
        (FAMILY, size, index),
        prompt,
        Checker::Number(Number::with_unit(expected, TOLERANCE, unit)),
        TOKENS_MAX,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_has_a_finite_answer_and_names_its_unit() {
        for size in SIZES {
            for index in 0..60 {
                let item = item(3, size, index).expect("an item");
                let Checker::Number(number) = &item.checker else { panic!("no number") };
                assert!(number.expected.is_finite(), "{}", item.prompt);
                assert!(item.prompt.ends_with(number.unit.as_deref().expect("a unit")));
            }
        }
        assert_eq!(item(3, "4", 0), None);
        assert_eq!(item(3, "2", 5), item(3, "2", 5));
        assert_ne!(item(3, "2", 5), item(3, "2", 9));
    }

    #[test]
    fn questions_by_hand() {
        let expected = |size: &str, start: &str| {
            let found = (0..4).map(|index| item(1, size, index).expect("an item"));
            let item = found.into_iter().find(|item| item.prompt.starts_with(start)).expect(start);
            let Checker::Number(number) = item.checker else { panic!("no number") };
            (item.prompt, number.expected)
        };
        let numbers = |text: &str| -> Vec<f64> {
            let words = text.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
            words.filter_map(|word| word.trim_end_matches('.').parse().ok()).collect()
        };
        let (text, value) = expected("2", "A server");
        let [watts, hours, days] = numbers(&text)[..3] else { panic!("{text}") };
        assert!((value - watts * hours * days / 1e3).abs() < 1e-9, "{text} {value}");
        let (text, value) = expected("3", "A model");
        let [tokens, rate, watts] = numbers(&text)[..3] else { panic!("{text}") };
        assert!((value - tokens / rate * watts / 3_600.0).abs() < 1e-9, "{text} {value}");
    }
}
