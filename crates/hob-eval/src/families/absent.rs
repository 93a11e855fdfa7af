//! Tests whether a model invents facts. It reads a text that does not answer the question, that contradicts itself, that
//! contradicts what the question presumes, or, as a control, that answers it.
//! Always answering "it does not say" scores badly, because it is right for one of these four kinds alone.

use crate::checkers::AbsentExpected;
use crate::draw::Draw;
use crate::{Checker, Item};

pub const SIZES: &[&str] = &["short", "long"];

const FAMILY: &str = "absent";
const TOKENS_MAX: u32 = 160;

const PLACES: [&str; 10] = [
    "Marlow Mill",
    "Hartley Bridge",
    "Saint Orla's Hall",
    "Fenwick Pier",
    "Cobb Tower",
    "Ashgrove Market",
    "Linden Theatre",
    "Brook Station",
    "Redwater Dam",
    "Oakham Chapel",
];
const PEOPLE: [&str; 10] = [
    "Edda Voss",
    "Jonas Pell",
    "Mira Stanek",
    "Oskar Lund",
    "Tilda Brandt",
    "Rafe Conway",
    "Iris Halloran",
    "Paul Denning",
    "Nora Falk",
    "Simon Achter",
];
const EXTRAS: [&str; 8] = [
    "Visitors enter through the garden.",
    "The roof is covered with slate.",
    "A café opened there last spring.",
    "School classes come on Thursdays.",
    "The east side faces the canal.",
    "Bicycles are left at the gate.",
    "A bell rings at noon.",
    "The walls are thick and cool in summer.",
];

/// `None` where the size is not one of [`SIZES`].
pub fn item(seed: u64, size: &str, index: u32) -> Option<Item> {
    let extras = match size {
        "short" => 2,
        "long" => EXTRAS.len(),
        _ => return None,
    };
    let mut draw = Draw::new(seed, FAMILY, size, index);
    let (place, seats) = (*draw.pick(&PLACES), draw.between(40, 900));
    let people = draw.some(&PEOPLE, 2);
    let (built, restored) = (draw.between(1790, 1890), draw.between(1950, 2015));
    let mut sentences = vec![
        format!("{place} was built in {built} by {}.", people[0]),
        format!("It was restored in {restored}."),
        format!("The main room has {seats} seats."),
    ];
    // The four kinds take turns. With seeds such as 1, the default, they begin with the second kind. A change of this would
    // change the items of stored records.
    let (question, expected) = match (index + u32::from(seed % 4 == 1)) % 4 {
        0 => {
            let (question, invented) = match draw.below(3) {
                0 => ("How much did the restoration cost?", vec![seats.to_string()]),
                1 => (
                    "Who paid for the restoration?",
                    people.iter().map(|one| (*one).to_owned()).collect(),
                ),
                _ => ("How many people visit it in a year?", vec![seats.to_string()]),
            };
            let known = [built, restored, seats].map(|number| number.to_string()).to_vec();
            (question.to_owned(), AbsentExpected::NotSaid { invented, known })
        }
        1 => {
            let second = built + draw.between(5, 40);
            sentences.push(format!(
                "When it was finished in {second}, the whole town came to see it built."
            ));
            sentences.push(format!("A plaque says that the year of construction is {second}."));
            let values = [built.to_string(), second.to_string()];
            ("In which year was it built?".to_owned(), AbsentExpected::Contradicts { values })
        }
        2 => {
            let question = format!("Why did {} build it?", people[1]);
            let (presumed, right) = (people[1].to_owned(), people[0].to_owned());
            (question, AbsentExpected::WrongPremise { presumed, right })
        }
        _ => {
            let (question, value) = match draw.below(3) {
                0 => ("In which year was it restored?", restored.to_string()),
                1 => ("How many seats does the main room have?", seats.to_string()),
                _ => ("Who built it?", people[0].to_owned()),
            };
            (question.to_owned(), AbsentExpected::Said { value })
        }
    };
    sentences.extend(draw.some(&EXTRAS, extras).into_iter().map(str::to_owned));
    draw.shuffle(&mut sentences[1..]);
    let prompt = format!(
        "{}\n\nAnswer from this text alone. If it does not say, contradicts itself, or if the question presumes something wrong, say so.\n\nQuestion: {question}",
        sentences.join(" ")
    );
    Some(Item::new((FAMILY, size, index), prompt, Checker::Absent(expected), TOKENS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Verdict, grade};

    #[test]
    fn each_case_has_its_right_answer() {
        let not_said = AbsentExpected::NotSaid {
            invented: vec!["420".to_owned()],
            known: vec!["1984".to_owned()],
        };
        let both = AbsentExpected::Contradicts { values: ["1820".to_owned(), "1835".to_owned()] };
        let premise = AbsentExpected::WrongPremise {
            presumed: "Jonas Pell".to_owned(),
            right: "Edda Voss".to_owned(),
        };
        let said = AbsentExpected::Said { value: "1984".to_owned() };
        let rows = [
            (&not_said, "The text does not say.", Verdict::Correct),
            (&not_said, "The cost isn't mentioned.", Verdict::Correct),
            (&not_said, "I cannot determine this from the text.", Verdict::Correct),
            (&not_said, "It cost 2 million.", Verdict::Wrong),
            (&not_said, "The text gives no details on the cost.", Verdict::Correct),
            (&not_said, "No, nothing about the cost is written there.", Verdict::Correct),
            (&not_said, "The text doesn't give it; it was restored in 1984.", Verdict::Correct),
            (&not_said, "1. The text lacks this information.", Verdict::Correct),
            (&not_said, "The text does not say, but probably 2,000,000.", Verdict::Wrong),
            (&not_said, "No, it cost 420, as stated.", Verdict::Wrong),
            (&both, "There's a discrepancy: 1820 vs. 1835.", Verdict::Correct),
            (&both, "It is not clear whether 1820 or 1835.", Verdict::Correct),
            (&both, "It was built between 1820 and 1835, but well.", Verdict::Wrong),
            (&both, "There is no contradiction: from 1820 to 1835.", Verdict::Wrong),
            (&premise, "Jonas Pell did not build it.", Verdict::Correct),
            (&premise, "The premise is wrong.", Verdict::Correct),
            (&premise, "The text states that Edda Voss built it.", Verdict::Correct),
            (&premise, "Jonas Pell and Edda Voss built it for another town.", Verdict::Wrong),
            (&premise, "Jonas Pell built it, not Edda Voss.", Verdict::Wrong),
            (&both, "It says 1820, but the plaque says 1835.", Verdict::Correct),
            (&both, "The text contradicts itself: 1820 and 1835.", Verdict::Correct),
            (&both, "1820", Verdict::Wrong),
            (&premise, "Edda Voss built it, not Jonas Pell.", Verdict::Correct),
            (&premise, "The text doesn't say why Jonas Pell built it.", Verdict::Wrong),
            (&premise, "Because Jonas Pell loved bridges.", Verdict::Wrong),
            (&said, "It was restored in 1984.", Verdict::Correct),
            (&said, "The text does not say.", Verdict::Wrong),
        ];
        for (expected, text, verdict) in rows {
            assert_eq!(expected.grade(text).verdict, verdict, "{expected:?}: {text}");
        }
    }

    #[test]
    fn one_answer_for_all_items_scores_badly() {
        for constant in ["The text does not say.", "It says so in the text.", "1850"] {
            let mut correct = 0;
            for index in 0..200 {
                let item = item(9, "short", index).expect("an item");
                let answer = Answer { content: constant.to_owned(), ..Answer::default() };
                correct += u32::from(grade(&item, &answer, None).verdict == Verdict::Correct);
            }
            assert!(correct <= 55, "{constant}: {correct}");
        }
    }

    #[test]
    fn the_text_has_what_the_checker_expects() {
        for size in SIZES {
            for index in 0..100 {
                let item = item(4, size, index).expect("an item");
                let Checker::Absent(expected) = &item.checker else { panic!("a probe") };
                let values: Vec<&String> = match expected {
                    AbsentExpected::NotSaid { .. } => Vec::new(),
                    AbsentExpected::Contradicts { values } => values.iter().collect(),
                    AbsentExpected::WrongPremise { presumed, right } => vec![presumed, right],
                    AbsentExpected::Said { value } => vec![value],
                };
                for value in values {
                    assert!(item.prompt.contains(value.as_str()), "{value}: {}", item.prompt);
                }
            }
        }
        assert_eq!(item(4, "huge", 0), None);
        assert_eq!(item(4, "long", 7), item(4, "long", 7));
    }
}
