//! The puzzle of the five houses with fifteen clues, which is in every collection. Models know it by heart.
//! It is here to be compared with generated puzzles, not to rank models.

use crate::checkers::{GridQuestion, GridSolution};
use crate::{Checker, Item};

const PROMPT: &str = "\
There are five houses in a row, each of another color. In each lives a person of another nationality. \
Each has another drink, another brand of cigarettes and another pet.

1. The Brit lives in the red house.
2. The Swede keeps a dog.
3. The Dane drinks tea.
4. The green house is directly to the left of the white house.
5. The owner of the green house drinks coffee.
6. The person who smokes Pall Mall keeps a bird.
7. The owner of the yellow house smokes Dunhill.
8. The person in the middle house drinks milk.
9. The Norwegian lives in the first house.
10. The person who smokes Blends lives next to the one with the cat.
11. The person with the horse lives next to the one who smokes Dunhill.
12. The person who smokes Bluemaster drinks beer.
13. The German smokes Prince.
14. The Norwegian lives next to the blue house.
15. The person who smokes Blends has a neighbor who drinks water.

Who keeps the fish?";

/// Models answer in the words that they have learned.
const SYNONYMS: [(&str, &[&str]); 6] = [
    ("Norwegian", &["Norway"]),
    ("Dane", &["Danish", "Denmark"]),
    ("Brit", &["British", "Briton", "Englishman", "English"]),
    ("Swede", &["Swedish", "Sweden"]),
    ("German", &["Germany"]),
    ("Bluemaster", &["Blue Master"]),
];

/// Graded by the whole grid where the answer has one, and by the nationality that it gives to the fish otherwise.
pub(super) fn einstein_item(index: u32) -> Item {
    let row = |values: [&str; 5]| values.map(str::to_owned).to_vec();
    let nationalities = ["Norwegian", "Dane", "Brit", "German", "Swede"].map(str::to_owned);
    let synonyms = SYNONYMS.map(|(value, words)| {
        (value.to_owned(), words.iter().map(|word| (*word).to_owned()).collect())
    });
    let solution = GridSolution {
        attributes: row(["color", "nationality", "drink", "cigarette", "pet"]),
        houses: vec![
            row(["yellow", "Norwegian", "water", "Dunhill", "cat"]),
            row(["blue", "Dane", "tea", "Blends", "horse"]),
            row(["red", "Brit", "milk", "Pall Mall", "bird"]),
            row(["green", "German", "coffee", "Prince", "fish"]),
            row(["white", "Swede", "beer", "Bluemaster", "dog"]),
        ],
        synonyms: synonyms.into(),
        question: Some(GridQuestion {
            answer: "German".to_owned(),
            candidates: nationalities.to_vec(),
            about: Some("fish".to_owned()),
        }),
    };
    Item::new(("logic-grid", "einstein", index), PROMPT.to_owned(), Checker::Grid(solution), 1_500)
}
