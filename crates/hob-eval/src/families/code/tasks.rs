//! The programming tasks: what is asked, inputs, and the right results.
//! Each task has parameters, so that the same function is asked for in many variants.

use serde_json::{Value, json};

use crate::draw::Draw;

/// A kind of task.
pub(super) struct Task {
    pub(super) size: &'static str,
    pub(super) entry: &'static str,
    pub(super) signature: &'static str,
    pub(super) make: fn(&mut Draw) -> Made,
}

/// Draws the arguments of a call.
type Input = Box<dyn Fn(&mut Draw) -> Vec<Value>>;
/// The right result of a call.
type Reference = Box<dyn Fn(&[Value]) -> Value>;

/// A task with its parameters.
pub(super) struct Made {
    pub(super) specification: String,
    pub(super) input: Input,
    pub(super) answer: Reference,
}

impl Made {
    fn new(
        specification: String,
        input: impl Fn(&mut Draw) -> Vec<Value> + 'static,
        answer: impl Fn(&[Value]) -> Value + 'static,
    ) -> Made {
        Made { specification, input: Box::new(input), answer: Box::new(answer) }
    }
}

const fn task(
    size: &'static str,
    entry: &'static str,
    signature: &'static str,
    make: fn(&mut Draw) -> Made,
) -> Task {
    Task { size, entry, signature, make }
}

pub(super) const TASKS: [Task; 10] = [
    task("easy", "squeeze", "squeeze(text)", squeeze),
    task("easy", "digit_score", "digit_score(n)", digit_score),
    task("easy", "every_nth", "every_nth(items)", every_nth),
    task("easy", "count_pairs", "count_pairs(numbers)", count_pairs),
    task("easy", "shift_letters", "shift_letters(text)", shift_letters),
    task("medium", "merge", "merge(intervals)", merge),
    task("medium", "encode_runs", "encode_runs(text)", encode_runs),
    task("medium", "to_base", "to_base(n)", to_base),
    task("medium", "rotate", "rotate(matrix)", rotate),
    task("medium", "errors_by_service", "errors_by_service(log)", errors_by_service),
];

fn integer(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn letters(draw: &mut Draw, alphabet: &str, length: i64) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    (0..length).map(|_| *draw.pick(&alphabet)).collect()
}

fn numbers(draw: &mut Draw, count: i64, low: i64, high: i64) -> Vec<i64> {
    (0..count).map(|_| draw.between(low, high)).collect()
}

fn squeeze(draw: &mut Draw) -> Made {
    let letter = *draw.pick(&['a', 'e', 'o', 's', 't']);
    Made::new(
        format!(
            "It returns the text in which every run of two or more letters \"{letter}\" is replaced by a single one. All other letters stay as they are."
        ),
        move |draw| {
            let length = draw.between(0, 14);
            vec![json!(letters(draw, &format!("{letter}{letter}{letter}bn "), length))]
        },
        move |arguments| {
            let mut result = String::new();
            for sign in text(&arguments[0]).chars() {
                if !(sign == letter && result.ends_with(letter)) {
                    result.push(sign);
                }
            }
            json!(result)
        },
    )
}

fn digit_score(draw: &mut Draw) -> Made {
    let (digit, bonus) = (draw.between(1, 9), draw.between(5, 30));
    Made::new(
        format!(
            "n is a whole number that is not negative. It returns the sum of the decimal digits of n, plus {bonus} for each digit that is {digit}."
        ),
        |draw| {
            let most = *draw.pick(&[99, 9_999, 99_999_999]);
            vec![json!(draw.between(0, most))]
        },
        move |arguments| {
            let digits = integer(&arguments[0]).to_string();
            let value = |sign: char| i64::from(sign.to_digit(10).unwrap_or_default());
            let score = |sign| value(sign) + if value(sign) == digit { bonus } else { 0 };
            json!(digits.chars().map(score).sum::<i64>())
        },
    )
}

fn every_nth(draw: &mut Draw) -> Made {
    let (step, start) = (draw.between(2, 4), draw.between(0, 2));
    Made::new(
        format!(
            "It returns a list of every {step}. item of the list, beginning with the item at index {start}, in reverse order. It returns an empty list if there is no such item."
        ),
        |draw| {
            let count = draw.between(0, 12);
            vec![json!(numbers(draw, count, -50, 50))]
        },
        move |arguments| {
            let items = list(&arguments[0]).iter().skip(start as usize).step_by(step as usize);
            let mut kept: Vec<Value> = items.cloned().collect();
            kept.reverse();
            json!(kept)
        },
    )
}

fn count_pairs(draw: &mut Draw) -> Made {
    let sum = draw.between(4, 14);
    Made::new(
        format!(
            "It returns how many pairs of positions i < j have numbers[i] + numbers[j] == {sum}."
        ),
        |draw| {
            let count = draw.between(0, 10);
            vec![json!(numbers(draw, count, 0, 9))]
        },
        move |arguments| {
            let all: Vec<i64> = list(&arguments[0]).iter().map(integer).collect();
            let pairs =
                (0..all.len()).flat_map(|one| (one + 1..all.len()).map(move |other| (one, other)));
            json!(pairs.filter(|(one, other)| all[*one] + all[*other] == sum).count())
        },
    )
}

fn shift_letters(draw: &mut Draw) -> Made {
    let shift = draw.between(2, 24);
    Made::new(
        format!(
            "It moves each small letter from a to z {shift} places forward in the alphabet, with a after z. Capital letters and all other characters stay as they are."
        ),
        |draw| {
            let length = draw.between(0, 16);
            vec![json!(letters(draw, "abcmnoxyzABZ 19.", length))]
        },
        move |arguments| {
            let moved = |sign: char| match sign {
                'a'..='z' => char::from(b'a' + ((sign as u8 - b'a') + shift as u8) % 26),
                other => other,
            };
            json!(text(&arguments[0]).chars().map(moved).collect::<String>())
        },
    )
}

fn merge(draw: &mut Draw) -> Made {
    let gap = draw.between(0, 3);
    Made::new(
        format!(
            "intervals is a list of [start, end] with start <= end, in any order. It joins intervals that overlap, or of which one begins at most {gap} after the end of the other, and returns the joined ones as lists [start, end], sorted by their start."
        ),
        |draw| {
            let count = draw.between(0, 6);
            let interval = |draw: &mut Draw| {
                let start = draw.between(0, 40);
                json!([start, start + draw.between(0, 9)])
            };
            vec![Value::Array((0..count).map(|_| interval(draw)).collect())]
        },
        move |arguments| {
            let pair = |value: &Value| (integer(&list(value)[0]), integer(&list(value)[1]));
            let mut all: Vec<(i64, i64)> = list(&arguments[0]).iter().map(pair).collect();
            all.sort_unstable();
            let mut joined: Vec<(i64, i64)> = Vec::new();
            for (start, end) in all {
                match joined.last_mut() {
                    Some((_, last)) if start <= *last + gap => *last = (*last).max(end),
                    _ => joined.push((start, end)),
                }
            }
            joined.into_iter().map(|(start, end)| json!([start, end])).collect()
        },
    )
}

fn encode_runs(draw: &mut Draw) -> Made {
    let least = draw.between(2, 4) as usize;
    Made::new(
        format!(
            "It encodes runs of equal characters: a run of {least} or more becomes the character, then \"*\", then the length in decimal, such as a*{least}. Shorter runs stay as they are. The text has letters only."
        ),
        |draw| {
            let runs = draw.between(0, 6);
            let run = |draw: &mut Draw| {
                let sign = *draw.pick(&['a', 'b', 'c']);
                let length = draw.between(1, 12) as usize;
                sign.to_string().repeat(length)
            };
            vec![json!((0..runs).map(|_| run(draw)).collect::<String>())]
        },
        move |arguments| {
            let signs: Vec<char> = text(&arguments[0]).chars().collect();
            let run = |run: &[char]| match run.len() {
                length if length >= least => format!("{}*{length}", run[0]),
                _ => run.iter().collect(),
            };
            json!(signs.chunk_by(|one, other| one == other).map(run).collect::<String>())
        },
    )
}

fn to_base(draw: &mut Draw) -> Made {
    let base = draw.between(3, 7);
    let group = draw.between(2, 3) as usize;
    Made::new(
        format!(
            "n is a whole number that is not negative. It returns n in base {base} as a text, with an underscore between groups of {group} digits, counted from the right. 0 is \"0\"."
        ),
        |draw| {
            let most = *draw.pick(&[8, 500, 1_000_000]);
            vec![json!(draw.between(0, most))]
        },
        move |arguments| {
            let (mut rest, mut digits) = (integer(&arguments[0]), String::new());
            loop {
                digits.insert_str(0, &(rest % base).to_string());
                rest /= base;
                if rest == 0 {
                    break;
                }
            }
            let signs: Vec<char> = digits.chars().collect();
            let groups = signs.rchunks(group).rev().map(|part| part.iter().collect::<String>());
            json!(groups.collect::<Vec<_>>().join("_"))
        },
    )
}

fn rotate(draw: &mut Draw) -> Made {
    let (clockwise, factor) = (draw.below(2) == 0, draw.between(2, 5));
    let direction = if clockwise { "clockwise" } else { "counterclockwise" };
    Made::new(
        format!(
            "matrix is a list of rows of equal length, with at least one number. It returns the matrix turned {direction} by 90 degrees, with every number multiplied by {factor}."
        ),
        |draw| {
            let (rows, columns) = (draw.between(1, 4), draw.between(1, 4));
            vec![Value::Array((0..rows).map(|_| json!(numbers(draw, columns, -9, 9))).collect())]
        },
        move |arguments| {
            let rows: Vec<Vec<i64>> = list(&arguments[0])
                .iter()
                .map(|row| list(row).iter().map(integer).collect())
                .collect();
            let (height, width) = (rows.len(), rows.first().map_or(0, Vec::len));
            let cell = |row: usize, column: usize| match clockwise {
                true => rows[height - 1 - column][row],
                false => rows[column][width - 1 - row],
            };
            let turned = (0..width).map(|row| {
                (0..height).map(|column| factor * cell(row, column)).collect::<Vec<_>>()
            });
            json!(turned.collect::<Vec<_>>())
        },
    )
}

fn errors_by_service(draw: &mut Draw) -> Made {
    let level = *draw.pick(&["ERROR", "WARN", "FATAL"]);
    let least = draw.between(1, 2);
    Made::new(
        format!(
            "log is a text with one entry a line: LEVEL SERVICE MESSAGE, separated by single spaces; the message can have spaces. Lines with fewer than three parts are left out. It returns a dict from each service to the number of its entries with the level {level}, only for services with at least {least} of them."
        ),
        |draw| {
            let count = draw.between(0, 8);
            let line = |draw: &mut Draw| match draw.below(8) {
                0 => "broken line".replace(' ', "-"),
                _ => format!(
                    "{} {} {}",
                    draw.pick(&["ERROR", "WARN", "FATAL", "INFO"]),
                    draw.pick(&["api", "db", "mail"]),
                    draw.pick(&["timed out", "ERROR in query", "ok", "retry api"])
                ),
            };
            vec![json!((0..count).map(|_| line(draw)).collect::<Vec<_>>().join("\n"))]
        },
        move |arguments| {
            let mut counts = serde_json::Map::new();
            for line in text(&arguments[0]).lines() {
                let parts: Vec<&str> = line.splitn(3, ' ').collect();
                if let [found, service, _] = parts[..]
                    && found == level
                {
                    let before = counts.get(service).map_or(0, integer);
                    counts.insert(service.to_owned(), json!(before + 1));
                }
            }
            counts.retain(|_, count| integer(count) >= least);
            Value::Object(counts)
        },
    )
}
