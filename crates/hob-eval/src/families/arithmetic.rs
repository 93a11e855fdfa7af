//! Arithmetic chains: several steps with whole numbers, in symbols or in words, with one exact result.
//! The size is `STEPSxDIGITS`, such as `4x2`.

use crate::checkers::Number;
use crate::draw::Draw;
use crate::{Checker, Item};

pub const SIZES: &[&str] = &["2x1", "4x2", "4x3", "8x3", "12x4"];

const FAMILY: &str = "arithmetic";
const STEPS_MAX: usize = 40;
const DIGITS_MAX: u32 = 9;
/// Working out takes about 25 tokens a step.
const TOKENS_PER_STEP: u32 = 48;
const TOKENS_MIN: u32 = 160;
/// Results stay below this, so that a chain of products does not grow without end.
const RESULT_MAX: i128 = 1_000_000_000_000;

#[derive(Clone, Copy)]
enum Step {
    Add(i64),
    Subtract(i64),
    Multiply(i64),
}

/// `None` where the size is not of this form.
pub fn item(seed: u64, size: &str, index: u32) -> Option<Item> {
    let (steps, digits) = size.split_once('x')?;
    let steps: usize = steps.parse().ok().filter(|steps| (1..=STEPS_MAX).contains(steps))?;
    let digits: u32 = digits.parse().ok().filter(|digits| (1..=DIGITS_MAX).contains(digits))?;
    let mut draw = Draw::new(seed, FAMILY, size, index);
    let start = number(&mut draw, digits);
    let (mut result, mut chain) = (i128::from(start), Vec::new());
    for _ in 0..steps {
        let (step, next) = step(&mut draw, digits, result);
        chain.push(step);
        result = next;
    }
    let in_words = index % 2 == 1;
    let question = if in_words { words(start, &chain) } else { symbols(start, &chain) };
    let prompt = format!("{question}\n\nEnd with one line: Answer: NUMBER");
    Some(Item::new(
        (FAMILY, size, index),
        prompt,
        Checker::Number(Number::exact(result as f64)),
        TOKENS_MIN + TOKENS_PER_STEP * u32::try_from(steps).unwrap_or(u32::MAX),
    ))
}

fn number(draw: &mut Draw, digits: u32) -> i64 {
    let low = 10_i64.pow(digits - 1);
    draw.between(low.max(2), 10 * low - 1)
}

/// A step and the result after it. A product that would be too large becomes a difference.
fn step(draw: &mut Draw, digits: u32, before: i128) -> (Step, i128) {
    let value = number(draw, digits);
    match draw.below(3) {
        0 => (Step::Add(value), before + i128::from(value)),
        1 => {
            let factor = draw.between(2, 9);
            let product = before * i128::from(factor);
            match product.abs() < RESULT_MAX {
                true => (Step::Multiply(factor), product),
                false => (Step::Subtract(value), before - i128::from(value)),
            }
        }
        _ => (Step::Subtract(value), before - i128::from(value)),
    }
}

/// One expression, with parentheses where the order of the steps needs them.
fn symbols(start: i64, chain: &[Step]) -> String {
    let mut text = start.to_string();
    let mut is_sum = false;
    for step in chain {
        (text, is_sum) = match step {
            Step::Add(value) => (format!("{text} + {value}"), true),
            Step::Subtract(value) => (format!("{text} - {value}"), true),
            Step::Multiply(value) if is_sum => (format!("({text}) × {value}"), false),
            Step::Multiply(value) => (format!("{text} × {value}"), false),
        };
    }
    format!("Compute {text}.")
}

fn words(start: i64, chain: &[Step]) -> String {
    let steps = chain.iter().map(|step| match step {
        Step::Add(value) => format!("add {value}"),
        Step::Subtract(value) => format!("subtract {value}"),
        Step::Multiply(value) => format!("multiply the result by {value}"),
    });
    let steps: Vec<String> = steps.collect();
    format!("Start with {start}. Then, in this order: {}. What is the result?", steps.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the chain in words again, step by step.
    fn computed(prompt: &str) -> i128 {
        let (start, steps) = prompt.split_once(". Then, in this order: ").expect("a chain");
        let mut result: i128 =
            start.strip_prefix("Start with ").expect("a start").parse().expect("a number");
        for step in steps.split(". What").next().expect("steps").split("; ") {
            let (word, value) = (step.split(' ').next(), step.rsplit(' ').next());
            let value: i128 = value.expect("a value").parse().expect("a number");
            result = match word {
                Some("add") => result + value,
                Some("subtract") => result - value,
                _ => result * value,
            };
        }
        result
    }

    #[test]
    fn the_expected_number_is_the_result_of_the_steps() {
        for size in SIZES {
            for index in (1..40).step_by(2) {
                let item = item(7, size, index).expect("an item");
                let expected = computed(&item.prompt) as f64;
                assert_eq!(
                    item.checker,
                    Checker::Number(Number::exact(expected)),
                    "{}",
                    item.prompt
                );
            }
        }
    }

    #[test]
    fn parentheses_keep_the_order_of_the_steps() {
        let chain = [Step::Multiply(2), Step::Add(3), Step::Multiply(4), Step::Subtract(5)];
        assert_eq!(symbols(1, &chain), "Compute (1 × 2 + 3) × 4 - 5.");
    }

    #[test]
    fn sizes_are_steps_and_digits() {
        for size in ["", "4", "x", "0x2", "4x0", "4x10", "41x2", "-1x2", "4x2x2"] {
            assert_eq!(item(1, size, 0), None, "{size}");
        }
        assert_eq!(item(1, "4x2", 3), item(1, "4x2", 3));
        assert_ne!(item(1, "4x2", 3), item(1, "4x2", 4));
    }
}
