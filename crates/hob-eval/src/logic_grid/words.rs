//! The words of a puzzle: attributes with their values, and the sentence of each clue.
//! Values are words that are not part of each other, so that an answer in prose can be read.

use hob_core::statistics::SeededRandom;
use serde_json::{Map, Value as Json, json};

use super::clue::{Clue, Relation, Value};
use super::generator::shuffled;

/// An attribute: its name, and six values.
const ATTRIBUTES: [(&str, [&str; 6]); 8] = [
    ("name", ["Alice", "Bruno", "Clara", "David", "Elena", "Farid"]),
    ("color", ["red", "green", "blue", "yellow", "white", "purple"]),
    ("drink", ["tea", "coffee", "milk", "juice", "water", "cocoa"]),
    ("pet", ["dog", "cat", "horse", "rabbit", "parrot", "goldfish"]),
    ("job", ["baker", "nurse", "pilot", "teacher", "lawyer", "gardener"]),
    ("instrument", ["piano", "violin", "flute", "drums", "guitar", "trumpet"]),
    ("sport", ["tennis", "rowing", "chess", "judo", "skiing", "cricket"]),
    ("city", ["Lisbon", "Oslo", "Vienna", "Dublin", "Prague", "Athens"]),
];
const CONSONANTS: [&str; 12] = ["b", "d", "f", "g", "k", "l", "m", "n", "r", "s", "t", "z"];
const VOWELS: [&str; 5] = ["a", "e", "i", "o", "u"];

/// The attributes of one puzzle, and the values that occur.
pub(super) struct Names {
    pub(super) attributes: Vec<String>,
    /// By attribute.
    pub(super) values: Vec<Vec<String>>,
}

impl Names {
    pub(super) fn familiar(random: &mut SeededRandom, houses: usize, attributes: usize) -> Names {
        // The name comes first, as in every puzzle of this kind.
        let mut order = shuffled(random, ATTRIBUTES.len() - 1);
        order.iter_mut().for_each(|place| *place += 1);
        order.insert(0, 0);
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for place in order.into_iter().take(attributes) {
            let (name, all) = ATTRIBUTES[place];
            let chosen = shuffled(random, all.len()).into_iter().take(houses);
            names.push(name.to_owned());
            values.push(chosen.map(|value| all[value].to_owned()).collect());
        }
        Names { attributes: names, values }
    }

    /// Words that no text has.
    pub(super) fn invented(random: &mut SeededRandom, houses: usize, attributes: usize) -> Names {
        let mut used: Vec<String> = Vec::new();
        let mut word = |random: &mut SeededRandom| loop {
            let syllable = |random: &mut SeededRandom| {
                let consonant = CONSONANTS[random.below(CONSONANTS.len())];
                format!("{consonant}{}", VOWELS[random.below(VOWELS.len())])
            };
            let word: String = (0..3).map(|_| syllable(random)).collect();
            if !used.contains(&word) {
                used.push(word.clone());
                return word;
            }
        };
        let names: Vec<String> = (0..attributes).map(|_| word(random)).collect();
        let values = (0..attributes).map(|_| (0..houses).map(|_| word(random)).collect()).collect();
        Names { attributes: names, values }
    }

    /// All values by attribute, sorted, so that their order says nothing.
    pub(super) fn lists(&self) -> String {
        let line = |(name, values): (&String, &Vec<String>)| {
            let mut values = values.clone();
            values.sort();
            format!("- {name}: {}", values.join(", "))
        };
        self.attributes.iter().zip(&self.values).map(line).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn form(&self, houses: usize) -> String {
        let fields: Vec<String> =
            self.attributes.iter().map(|name| format!("\"{name}\": \"…\"")).collect();
        let house = |number: usize| format!("\"{number}\": {{{}}}", fields.join(", "));
        let between = if houses > 2 { "…, " } else { "" };
        format!("{{{}, {between}\"{houses}\": {{…}}}}", house(1))
    }

    pub(super) fn schema(&self, houses: usize) -> Json {
        let object = |properties: Map<String, Json>| {
            let required: Vec<String> = properties.keys().cloned().collect();
            json!({
                "type": "object", "properties": properties, "required": required,
                "additionalProperties": false,
            })
        };
        let fields: Map<String, Json> = self
            .attributes
            .iter()
            .zip(&self.values)
            .map(|(name, values)| (name.clone(), json!({ "type": "string", "enum": values })))
            .collect();
        let house = object(fields);
        object((1..=houses).map(|number| (number.to_string(), house.clone())).collect())
    }

    fn house_of(&self, value: Value) -> String {
        let (name, word) =
            (&self.attributes[value.attribute], &self.values[value.attribute][value.value]);
        match name.as_str() {
            "name" => format!("{word}'s house"),
            _ => format!("the house with {name} {word}"),
        }
    }

    pub(super) fn sentence(&self, clue: Clue) -> String {
        let text = match clue {
            Clue::At(value, house) => format!("{} is house {}.", self.house_of(value), house + 1),
            Clue::NotAt(value, house) => {
                format!("{} is not house {}.", self.house_of(value), house + 1)
            }
            Clue::Pair(one, relation, other) => {
                let (one, other) = (self.house_of(one), self.house_of(other));
                match relation {
                    Relation::Same => format!("{one} is {other}."),
                    Relation::Different => format!("{one} is not {other}."),
                    Relation::DirectlyLeft => format!("{one} is directly to the left of {other}."),
                    Relation::DirectlyRight => {
                        format!("{one} is directly to the right of {other}.")
                    }
                    Relation::Left => format!("{one} is somewhere to the left of {other}."),
                    Relation::Right => format!("{one} is somewhere to the right of {other}."),
                    Relation::Next => format!("{one} is directly next to {other}."),
                    Relation::Apart(2) => format!("There is one house between {one} and {other}."),
                    Relation::Apart(houses) => {
                        format!("There are {} houses between {one} and {other}.", houses - 1)
                    }
                }
            }
        };
        let mut letters = text.chars();
        letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
    }
}
