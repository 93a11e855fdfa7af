//! Instructions that a program can check: a text on a topic that keeps some rules.
//! The size is the number of rules, or `language`: a text in another language than the prompt. Rules of one item never contradict each other.

use crate::checkers::{CountRule, TextLanguage, TextRule};
use crate::draw::Draw;
use crate::{Checker, Item};

pub const SIZES: &[&str] = &["1", "2", "3", "5", LANGUAGE];

/// The size with a language and a number of sentences as its rules.
const LANGUAGE: &str = "language";

const FAMILY: &str = "instructions";
const TOKENS_MAX: u32 = 512;
/// Groups of rules, of which an item takes one each: the rules of one group could contradict each other.
const GROUPS: usize = 6;

const TOPICS: [&str; 12] = [
    "a morning in a harbor town",
    "how bread is made",
    "why some clocks run slow",
    "a visit to the dentist",
    "moving to a new flat",
    "the first snow of the year",
    "learning to ride a bicycle",
    "a lost umbrella",
    "an old lighthouse",
    "repairing a kitchen chair",
    "a train that is late",
    "growing tomatoes on a balcony",
];
const FORMS: [&str; 5] =
    ["a short story", "a note to a friend", "a short article", "a description", "some advice"];
const WORDS: [&str; 8] =
    ["window", "river", "paper", "yellow", "quiet", "seven", "garden", "mirror"];
const BANNED: [&str; 8] = ["very", "really", "time", "people", "good", "then", "small", "always"];

/// `None` where the size is not a number of groups, and not `language`.
pub fn item(seed: u64, size: &str, index: u32) -> Option<Item> {
    let count: Option<usize> = size.parse().ok().filter(|count| (1..GROUPS).contains(count));
    let mut draw = Draw::new(seed, FAMILY, size, index);
    let (form, topic) = (*draw.pick(&FORMS), *draw.pick(&TOPICS));
    let mut rules: Vec<TextRule> = match count {
        Some(count) => {
            let groups = draw.some(&[0, 1, 2, 3, 4, 5], count);
            groups.into_iter().map(|group| rule(group, &mut draw)).collect()
        }
        None if size == LANGUAGE => language_rules(&mut draw),
        None => return None,
    };
    if rules.contains(&TextRule::Lowercase) {
        for rule in &mut rules {
            if let TextRule::EndsWith { text } = rule {
                *text = text.to_lowercase();
            }
        }
    }
    let lines: Vec<String> = rules.iter().map(|rule| format!("- {}", rule.instruction())).collect();
    let prompt = format!("Write {form} about {topic}. Keep these rules:\n{}", lines.join("\n"));
    Some(Item::new((FAMILY, size, index), prompt, Checker::Constraints { rules }, TOKENS_MAX))
}

fn language_rules(draw: &mut Draw) -> Vec<TextRule> {
    let language = *draw.pick(&[TextLanguage::German, TextLanguage::French, TextLanguage::Spanish]);
    let sentences = draw.between(3, 6) as usize;
    let count = CountRule::AtLeast(sentences);
    vec![TextRule::Language { language }, TextRule::Sentences { count }]
}

/// A rule of a group: length, form, a word, a word that is not allowed, letters, an end.
fn rule(group: usize, draw: &mut Draw) -> TextRule {
    let number = |draw: &mut Draw, low: i64, high: i64| draw.between(low, high) as usize;
    match (group, draw.below(3)) {
        (0, 0) => TextRule::Words { count: CountRule::AtMost(number(draw, 6, 12) * 10) },
        (0, 1) => TextRule::Words { count: CountRule::AtLeast(number(draw, 4, 9) * 10) },
        (0, _) => TextRule::Sentences { count: CountRule::AtLeast(number(draw, 4, 7)) },
        (1, 0) => TextRule::Paragraphs { count: CountRule::Exactly(number(draw, 2, 4)) },
        (1, 1) => TextRule::Bullets { count: CountRule::Exactly(number(draw, 2, 5)) },
        (1, _) => TextRule::Title,
        (2, 0) => TextRule::Word {
            word: (*draw.pick(&WORDS)).to_owned(),
            count: CountRule::AtLeast(number(draw, 2, 3)),
        },
        (2, 1) => {
            TextRule::Order { words: draw.some(&WORDS, 3).into_iter().map(str::to_owned).collect() }
        }
        (2, _) => TextRule::Placeholders { count: CountRule::AtLeast(number(draw, 2, 3)) },
        (3, _) => TextRule::NoWord { word: (*draw.pick(&BANNED)).to_owned() },
        (4, 0) => TextRule::NoCommas,
        (4, 1) => TextRule::Lowercase,
        // No word that another rule may ask for has one of these.
        (4, _) => TextRule::NoLetter { letter: *draw.pick(&['x', 'z', 'j']) },
        (_, 0) => TextRule::EndsWith { text: "That is all.".to_owned() },
        (_, 1) => TextRule::EndsWith { text: "Any questions?".to_owned() },
        (_, _) => TextRule::EndsWith { text: "Ask me again.".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Verdict, grade};

    /// A text that keeps any rules of this family: built part by part.
    fn text_for(rules: &[TextRule]) -> String {
        if let [TextRule::Language { language }, ..] = rules {
            let sentence = match language {
                TextLanguage::English => "It is an old tower. ",
                TextLanguage::German => "Es ist ein alter Turm. ",
                TextLanguage::French => "C'est une vieille tour. ",
                TextLanguage::Spanish => "Es una torre muy vieja. ",
            };
            return sentence.repeat(6);
        }
        let has = |is_it: fn(&TextRule) -> bool| rules.iter().any(is_it);
        let is_short = has(|rule| matches!(rule, TextRule::Words { count: CountRule::AtMost(_) }));
        let (mut parts, mut bullets) = (1, 0);
        let mut words: Vec<String> = Vec::new();
        for rule in rules {
            match rule {
                TextRule::Paragraphs { count: CountRule::Exactly(count) } => parts = *count,
                TextRule::Bullets { count: CountRule::Exactly(count) } => bullets = *count,
                TextRule::Word { word, .. } => {
                    words.extend([word.clone(), word.clone(), word.clone()])
                }
                TextRule::Order { words: order } => words.extend(order.iter().cloned()),
                TextRule::Placeholders { .. } => {
                    words.extend(["[a]", "[b]", "[c]"].map(str::to_owned))
                }
                TextRule::Title => words.insert(0, "<<a title>>".to_owned()),
                _ => {}
            }
        }
        let filler = if is_short { 0 } else { 95 };
        let mut sentences: Vec<String> =
            (0..filler / 5).map(|_| "we saw a blue door.".to_owned()).collect();
        sentences.insert(0, format!("{}.", words.join(" ")));
        let mut paragraphs: Vec<String> = vec![sentences.join(" ")];
        paragraphs.extend((1..parts).map(|_| "more of it.".to_owned()));
        let mut text = paragraphs.join("\n\n");
        for _ in 0..bullets {
            text += "\n- a point";
        }
        for rule in rules {
            if let TextRule::EndsWith { text: end } = rule {
                text += &format!("\n{end}");
            }
        }
        match has(|rule| matches!(rule, TextRule::Lowercase)) {
            true => text.to_lowercase(),
            false => text,
        }
    }

    #[test]
    fn no_rules_of_an_item_contradict_each_other() {
        for size in SIZES {
            for index in 0..300 {
                let item = item(1, size, index).expect("an item");
                let Checker::Constraints { rules } = &item.checker else { panic!("rules") };
                let count = if *size == LANGUAGE { "2" } else { *size };
                assert_eq!(rules.len().to_string(), count);
                let content = text_for(rules);
                let answer = Answer { content: content.clone(), ..Answer::default() };
                let found = grade(&item, &answer, None);
                assert_eq!(
                    found.verdict,
                    Verdict::Correct,
                    "{}\n{}\n{content}",
                    item.prompt,
                    found.why
                );
                // The checker of an end takes any case; a person who reads the prompt does not.
                for rule in rules {
                    if let TextRule::EndsWith { text } = rule {
                        assert!(content.ends_with(text.as_str()), "{}", item.prompt);
                    }
                }
            }
        }
    }

    #[test]
    fn sizes_are_numbers_of_rules() {
        for size in ["0", "6", "", "x", "languages"] {
            assert_eq!(item(1, size, 0), None, "{size}");
        }
        assert_eq!(item(1, "3", 4), item(1, "3", 4));
        assert_ne!(item(1, "3", 4), item(1, "3", 5));
    }
}
