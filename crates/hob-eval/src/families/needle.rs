//! Retrieval: a fact in a long text, at a depth of it, between facts that look alike; with hops, a chain of facts.
//! The size is `TOKENS@DEPTH%`, such as `4000@50%`, and `xHOPS` after it, such as `4000@50%x2`.

use crate::checkers::NeedleExpected;
use crate::draw::Draw;
use crate::{Checker, Item};

pub const SIZES: &[&str] = &[
    "1000@10%",
    "1000@50%",
    "1000@90%",
    "4000@50%",
    "8000@50%",
    "32000@50%",
    "4000@50%x2",
    "8000@50%x3",
];

const FAMILY: &str = "needle";
const TOKENS_MIN: usize = 200;
const TOKENS_MAX: usize = 200_000;
const HOPS_MAX: usize = 4;
/// English prose has about four characters a token.
const CHARS_PER_TOKEN: usize = 4;
const ANSWER_TOKENS_MAX: u32 = 160;
const DISTRACTORS: usize = 5;

const TEAMS: [&str; 16] = [
    "Heron", "Lynx", "Otter", "Falcon", "Badger", "Marten", "Swift", "Bison", "Ibex", "Raven",
    "Stoat", "Crane", "Viper", "Moose", "Tapir", "Quail",
];
const SUBJECTS: [&str; 14] = [
    "The gardener",
    "A clerk",
    "The ferry",
    "Our neighbor",
    "The committee",
    "An old map",
    "The baker",
    "A visitor",
    "The museum",
    "The river",
    "A letter",
    "The night watch",
    "The library",
    "A small engine",
];
const DEEDS: [&str; 14] = [
    "moved the chairs before the rain came",
    "was late for the second time that week",
    "kept a list of everything that broke",
    "crossed the square without a sound",
    "asked for a quieter room near the stairs",
    "turned left where the signs pointed right",
    "had been painted twice and still looked grey",
    "left a note under the green lamp",
    "changed its mind after a long discussion",
    "smelled of oranges and warm dust",
    "showed a coast without a name",
    "closed early because of the heat",
    "was repaired with a spoon and some wire",
    "carried more sand than anyone had expected",
];
const TAILS: [&str; 10] = [
    "",
    ", as it did every autumn",
    ", which surprised no one",
    ", although the doors stood open",
    ", and the dog slept through all of it",
    " while the radio played on",
    ", or so the story goes",
    " on the first Monday of the month",
    ", much to the delight of the children",
    " after the lights went out",
];

struct Size {
    tokens: usize,
    depth: f64,
    hops: usize,
}

fn parse(size: &str) -> Option<Size> {
    let (tokens, rest) = size.split_once('@')?;
    let (depth, hops) = rest.split_once('%')?;
    let hops = match hops {
        "" => 1,
        hops => hops.strip_prefix('x')?.parse().ok()?,
    };
    let tokens = tokens.parse().ok().filter(|tokens| (TOKENS_MIN..=TOKENS_MAX).contains(tokens))?;
    let depth: u32 = depth.parse().ok().filter(|depth| *depth <= 100)?;
    (1..=HOPS_MAX).contains(&hops).then_some(Size { tokens, depth: f64::from(depth) / 100.0, hops })
}

/// `None` where the size is not of this form.
pub fn item(seed: u64, size: &str, index: u32) -> Option<Item> {
    let Size { tokens, depth, hops } = parse(size)?;
    let mut draw = Draw::new(seed, FAMILY, size, index);
    let teams = draw.some(&TEAMS, hops + DISTRACTORS);
    let code = |draw: &mut Draw| {
        let letter = |draw: &mut Draw| char::from(b'A' + draw.below(26) as u8);
        format!("{}{}-{}", letter(draw), letter(draw), draw.between(1_000, 9_999))
    };
    let mut codes: Vec<String> = Vec::new();
    while codes.len() <= DISTRACTORS {
        let code = code(&mut draw);
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    let expected = codes.remove(0);
    // Team 0 is asked for; each team of the chain uses the locker of the next, and the last one has the code.
    let mut facts: Vec<String> = (1..hops)
        .map(|hop| {
            format!("The team {} uses the locker of the team {}.", teams[hop - 1], teams[hop])
        })
        .collect();
    facts.push(format!(
        "The locker of the team {} opens with the code {expected}.",
        teams[hops - 1]
    ));
    let others = teams[hops..].iter().zip(&codes);
    let distractors: Vec<String> = others
        .map(|(team, code)| format!("The locker of the team {team} opens with the code {code}."))
        .collect();
    let text = stuffed(&mut draw, tokens * CHARS_PER_TOKEN, depth, (&facts, &distractors));
    let team = teams[0];
    let prompt = format!(
        "Read this text, and answer the question after it.\n\n{text}\n\nWith which code does the team {team} open the locker that it uses? Answer with the code."
    );
    Some(Item::new(
        (FAMILY, size, index),
        prompt,
        Checker::Needle(NeedleExpected { expected, others: codes }),
        ANSWER_TOKENS_MAX,
    ))
}

/// Prose of this length. The first fact stands at the depth, the others and the distractors anywhere.
fn stuffed(
    draw: &mut Draw,
    chars: usize,
    depth: f64,
    (facts, distractors): (&[String], &[String]),
) -> String {
    let mut sentences: Vec<String> = Vec::new();
    let mut length = 0;
    while length < chars {
        let sentence =
            format!("{} {}{}.", draw.pick(&SUBJECTS), draw.pick(&DEEDS), draw.pick(&TAILS));
        length += sentence.len() + 1;
        sentences.push(sentence);
    }
    for other in facts[1..].iter().chain(distractors) {
        let at = draw.below(sentences.len() + 1);
        sentences.insert(at, other.clone());
    }
    let at = (depth * sentences.len() as f64) as usize;
    sentences.insert(at.min(sentences.len()), facts[0].clone());
    let paragraphs = sentences.chunks(8).map(|part| part.join(" "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Verdict, grade};

    fn expected(item: &Item) -> &NeedleExpected {
        let Checker::Needle(expected) = &item.checker else { panic!("a needle") };
        expected
    }

    #[test]
    fn the_fact_stands_at_its_depth_in_a_text_of_its_length() {
        for (size, tokens, depth) in
            [("1000@10%", 1_000, 0.1), ("4000@50%", 4_000, 0.5), ("8000@90%", 8_000, 0.9)]
        {
            for index in 0..5 {
                let item = item(2, size, index).expect("an item");
                let chars = tokens * CHARS_PER_TOKEN;
                assert!(
                    (chars..chars + 1_400).contains(&item.prompt.len()),
                    "{}",
                    item.prompt.len()
                );
                let at = item.prompt.find(&expected(&item).expected).expect("the fact") as f64;
                assert!((at / item.prompt.len() as f64 - depth).abs() < 0.12, "{size}: {at}");
                assert_eq!(item.prompt.matches(&expected(&item).expected).count(), 1);
                for other in &expected(&item).others {
                    assert!(item.prompt.contains(other));
                }
            }
        }
    }

    #[test]
    fn hops_lead_from_the_asked_team_to_the_code() {
        let item = item(2, "1000@50%x3", 1).expect("an item");
        let question = item.prompt.rsplit("does the team ").next().expect("a question");
        let mut team = question.split(' ').next().expect("a team").to_owned();
        for _ in 0..2 {
            let start = format!("The team {team} uses the locker of the team ");
            let rest = item.prompt.split(&start).nth(1).expect("a hop");
            team = rest.split('.').next().expect("a team").to_owned();
        }
        let fact = format!(
            "The locker of the team {team} opens with the code {}.",
            expected(&item).expected
        );
        assert!(item.prompt.contains(&fact), "{fact}");
    }

    #[test]
    fn the_last_statement_counts() {
        let item = item(2, "1000@50%", 0).expect("an item");
        let NeedleExpected { expected, others } = expected(&item).clone();
        let other = &others[0];
        let rows = [
            (expected.clone(), Verdict::Correct),
            (format!("The code is **{expected}**."), Verdict::Correct),
            (format!("At first I thought of {other}. But it is {expected}."), Verdict::Correct),
            (format!("It is {expected}, not {other}."), Verdict::Correct),
            (other.clone(), Verdict::Wrong),
            (format!("It is {expected}. No, it is {other}."), Verdict::Wrong),
            (format!("{expected} or {other}"), Verdict::Wrong),
            ("I cannot find it in the text.".to_owned(), Verdict::Wrong),
        ];
        for (content, verdict) in rows {
            let answer = Answer { content: content.clone(), ..Answer::default() };
            assert_eq!(grade(&item, &answer, None).verdict, verdict, "{content}");
        }
    }

    #[test]
    fn sizes_are_parsed() {
        for size in [
            "",
            "1000",
            "1000@",
            "1000@50",
            "100@50%",
            "1000@101%",
            "1000@50%x0",
            "1000@50%x5",
            "300000@1%",
        ] {
            assert_eq!(item(1, size, 0), None, "{size}");
        }
        assert!(item(1, "200@0%", 0).is_some() && item(1, "200@100%x4", 0).is_some());
    }
}
