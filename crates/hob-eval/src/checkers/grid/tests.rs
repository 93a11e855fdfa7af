//! Answers in every form that models write, and answers that look right and are not.
//! How a person or a model lays out a grid: JSON, tables, lists and sentences.

use proptest::prelude::*;

use super::*;
use crate::Verdict;

fn cats() -> GridSolution {
    let row = |values: [&str; 3]| values.map(str::to_owned).to_vec();
    GridSolution {
        attributes: row(["name", "color", "drink"]),
        houses: vec![
            row(["Alice", "red", "tea"]),
            row(["Bruno", "blue", "milk"]),
            row(["Clara", "green", "water"]),
        ],
        synonyms: BTreeMap::new(),
        question: None,
    }
}

fn check(verdict: Verdict, texts: &[&str]) {
    for text in texts {
        let grade = cats().grade(text);
        assert_eq!(grade.verdict, verdict, "{}\n{text}", grade.why);
    }
}

const JSON: &str = r#"{"1":{"name":"Alice","color":"red","drink":"tea"},"2":{"name":"Bruno","color":"blue","drink":"milk"},"3":{"name":"Clara","color":"green","drink":"water"}}"#;
const TABLE: &str = "| House | Name | Color | Drink |\n|---|---|---|---|\n| 1 | Alice | red | tea |\n| 2 | Bruno | blue | milk |\n| 3 | Clara | green | water |";
const PROSE: &str =
    "House 1: Alice, red, tea\nHouse 2: Bruno, blue, milk\nHouse 3: Clara, green, water";

#[test]
fn json_is_read() {
    check(
        Verdict::Correct,
        &[
            r#"{"house1":{"name":"Alice","color":"red","drink":"tea"},"house2":{"name":"Bruno","color":"blue","drink":"milk"},"house3":{"name":"Clara","color":"green","drink":"water""#,
            r#"{"grid":{"Alice":{"house":1,"color":"red","drink":"tea"},"Bruno":{"house":2,"color":"blue","drink":"milk"},"Clara":{"house":3,"color":"green","drink":"water"}}}"#,
            r#"["Alice, red, tea","Bruno, blue, milk","Clara, green, water"]"#,
            &format!(r#"{{"solution":{JSON},"notes":[],"checks":[["clue","holds"]]}}"#),
        ],
    );
}

#[test]
fn tables_are_read() {
    check(
        Verdict::Correct,
        &[
            "| Position | Person | Hue | Beverage |\n|---|---|---|---|\n| 1 | Alice | red | tea |\n| 2 | Bruno | blue | milk |\n| 3 | Clara | green | water |",
            "+-------+-------+-------+-------+\n| House | Name  | Color | Drink |\n+-------+-------+-------+-------+\n| 1     | Alice | red   | tea   |\n| 2     | Bruno | blue  | milk  |\n| 3     | Clara | green | water |\n+-------+-------+-------+-------+",
            "$$\\boxed{\\text{House 1: Alice, red, tea; House 2: Bruno, blue, milk; House 3: Clara, green, water}}$$",
            "House,Name,Color,Drink\n1,Alice,red,tea\n2,Bruno,blue,milk\n3,Clara,green,water",
            "House\tName\tColor\tDrink\n1\tAlice\tred\ttea\n2\tBruno\tblue\tmilk\n3\tClara\tgreen\twater",
        ],
    );
}

#[test]
fn sentences_and_lists_are_read() {
    check(
        Verdict::Correct,
        &[
            "1️⃣ Alice, red, tea\n2️⃣ Bruno, blue, milk\n3️⃣ Clara, green, water",
            "### House 1\nName: Alice\nColor: red\nDrink: tea\n\n### House 2\nName: Bruno\nColor: blue\nDrink: milk\n\n### House 3\nName: Clara\nColor: green\nDrink: water",
            "house1:\n  name: Alice\n  color: red\n  drink: tea\nhouse2:\n  name: Bruno\n  color: blue\n  drink: milk\nhouse3:\n  name: Clara\n  color: green\n  drink: water\n",
            "House 1 (leftmost): Alice, red, tea\nHouse 2 (middle): Bruno, blue, milk\nHouse 3 (rightmost): Clara, green, water",
            "- Alice: house 1, red, tea\n- Bruno: house 2, blue, milk\n- Clara: house 3, green, water",
            "Step 1: Alice is in house 1 or house 2.\nStep 2: If Bruno were in house 1, tea would be in house 3. Contradiction.\nHouse 3 is green. Bruno drinks milk.\n\nHouse 1: Alice, red, tea\nHouse 2: Bruno, blue, milk\nHouse 3: Clara, green, water\n\nVerify: Clue 1: Bruno lives directly to the right of Alice: house 2 is to the right of house 1. Clue 2: the person in the blue house drinks milk.",
            "House 1 -> Alice, red, tea\nHouse 2 -> Bruno, blue, milk\nHouse 3 -> Clara, green, water",
        ],
    );
}

fn swapped(text: &str) -> String {
    text.replace("tea", "?").replace("milk", "tea").replace('?', "milk")
}

#[test]
fn a_right_grid_is_read_in_every_form() {
    let fenced = format!("Let me see.\n```json\n{JSON}\n```\nDone.");
    let named = JSON.replace("\"1\"", "\"House 1\"").replace("\"2\"", "\"house_2\"");
    let nested = format!(r#"{{"solution": {JSON}}}"#);
    let loose = JSON.replace("color", "Colour").replace("\"red\"", "\"RED\"");
    let twice = format!("{}\nNo, that is wrong.\n{JSON}", JSON.replace("tea", "milk"));
    let thought = format!("<think>{{\"1\":{{\"name\":\"Clara\"}}}}</think>{JSON}");
    let list = r#"[{"name":"Alice","color":"red","drink":"tea"},{"name":"Bruno","color":"blue","drink":"milk"},{"name":"Clara","color":"green","drink":"water"}]"#;
    let numbered = r#"{"houses":[{"house":3,"name":"Clara","color":"green","drink":"water"},{"house":1,"name":"Alice","color":"red","drink":"tea"},{"house":2,"name":"Bruno","color":"blue","drink":"milk"}]}"#;
    let columns = r#"{"name":["Alice","Bruno","Clara"],"color":["red","blue","green"],"drink":["tea","milk","water"]}"#;
    let table = TABLE.replace("red", "**red**");
    let turned = "| | House 1 | House 2 | House 3 |\n|---|---|---|---|\n| Name | Alice | Bruno | Clara |\n| Color | red | blue | green |\n| Drink | tea | milk | water |";
    let latex = "\\begin{tabular}{l}\nHouse & Name & Color & Drink \\\\\n1 & Alice & red & tea \\\\\n2 & Bruno & blue & milk \\\\\n3 & Clara & green & water \\\\\n\\end{tabular}";
    let prose = "So:\n- **House 1**: Alice, red, tea\n- **House 2**: Bruno, blue, milk\n- House 3: Clara, green, water";
    let bullets = "House 1\n* Name: Alice\n* Color: red\n* Drink: tea\n\nHouse 2\n* Name: Bruno\n* Color: blue\n* Drink: milk\n\nHouse 3\n* Name: Clara\n* Color: green\n* Drink: water";
    check(
        Verdict::Correct,
        &[
            JSON, &fenced, &named, &nested, &loose, &twice, &thought, list, numbered, columns,
            &table, turned, latex, prose, bullets,
        ],
    );
}

#[test]
fn a_part_counts_as_far_as_it_is_better_than_chance() {
    let grade = cats().grade(&swapped(JSON));
    assert_eq!(grade.verdict, Verdict::Wrong);
    // 7 of 9 cells, and a third by chance.
    assert!((grade.score - (7.0 / 9.0 - 1.0 / 3.0) / (2.0 / 3.0)).abs() < 1e-9, "{}", grade.score);
    assert!(
        grade.why.starts_with("house 1, drink: 'tea' was expected, 'milk' was read"),
        "{}",
        grade.why
    );
    assert_eq!(cats().grade(r#"{"1":{"name":"Alice"}}"#).score, 0.0, "worse than chance");
}

#[test]
fn the_last_complete_grid_counts() {
    let forms = [JSON, TABLE, PROSE];
    for first in forms {
        for last in forms {
            check(Verdict::Correct, &[&format!("{}\n\nNo. Correct:\n{last}", swapped(first))]);
            check(Verdict::Wrong, &[&format!("{first}\n\nNo, wait. Final:\n{}", swapped(last))]);
        }
        let later =
            "If house 2 were red, clue 3 would fail. House 1 is not blue. Alice drinks tea.";
        check(Verdict::Correct, &[&format!("House 1 is Clara's.\n\n{first}\n\n{later}")]);
    }
}

#[test]
fn a_grid_with_a_wrong_or_missing_cell_is_wrong() {
    check(
        Verdict::Wrong,
        &[
            "| House | Name | Color | Drink |\n|---|---|---|---|\n| 1 | Alice | tea | red |\n| 2 | Bruno | blue | milk |\n| 3 | Clara | green | water |",
            "House 1: Alice, red\nHouse 2: Bruno, blue, milk\nHouse 3: Clara, green, water\n\nThe rest I could not find.",
            r#"{"1":{"name":"Alice","color":"red","drink":"tea"},"2":{"name":"Bruno","color":"blue","drink":"milk"},"#,
            r#"{"1":{"name":"Alice","color":"red","drink":"tea"},"2":{"name":"Bruno","color":"blue","drink":"milk"},"3":{"name":"Clara","color":"green","drink":"not water"}}"#,
            r#"{"1":{"name":"Alice","color":"red","drink":["tea","milk"]},"2":{"name":"Bruno","color":"blue","drink":"milk"},"3":{"name":"Clara","color":"green","drink":"water"}}"#,
            "| House | Name | Color | Drink |\n|---|---|---|---|\n| 1 | Alice | red | |\n| 2 | Bruno | blue | milk |\n| 3 | Clara | green | water |",
            "House 1: Alice, red or blue, tea\nHouse 2: Bruno, blue, milk\nHouse 3: Clara, green, water",
        ],
    );
}

#[test]
fn guesses_and_denials_are_no_answer() {
    check(
        Verdict::Malformed,
        &[
            "The red house might be house 1 or house 2.",
            "House 1 is not red.",
            "The red house is directly to the left of house 3.",
            "Does Alice live in house 1?",
            "Names: Alice, Bruno, Clara\nColors: red, blue, green\nDrinks: tea, milk, water",
            "[1, 2, 3] {}",
            "",
            "I do not know.",
            "{}",
            "The houses are nice.",
        ],
    );
}

fn houses() -> GridSolution {
    match crate::logic_grid::item(0, "einstein", 0).map(|item| item.checker) {
        Some(crate::Checker::Grid(solution)) => solution,
        other => panic!("{other:?}"),
    }
}

const FIVE: &str = "| House | Nationality | Colour | Drink | Cigarette | Pet |\n|---|---|---|---|---|---|\n| 1 | Norwegian | Yellow | Water | Dunhill | Cat |\n| 2 | Dane | Blue | Tea | Blends | Horse |\n| 3 | Brit | Red | Milk | Pall Mall | Bird |\n| 4 | German | Green | Coffee | Prince | Fish |\n| 5 | Swede | White | Beer | Bluemaster | Dog |\n";

#[test]
fn the_grid_of_five_houses_is_read_in_other_words() {
    let rows: [&[(&str, &str)]; 5] = [
        &[],
        &[("Cat ", "Cats "), ("Horse", "Horses"), ("Bird", "birds"), ("Bluemaster", "BlueMasters")],
        &[("Brit", "British"), ("Dane", "Danish"), ("Swede", "Swedish")],
        &[("Cigarette", "Smokes")],
        &[("Nationality", "Owner")],
    ];
    for row in rows {
        let text = row.iter().fold(FIVE.to_owned(), |text, (from, to)| text.replace(from, to));
        let grade = houses().grade(&text);
        assert_eq!(grade.verdict, Verdict::Correct, "{}\n{text}", grade.why);
    }
    let wrong = FIVE.replace("Water", "?").replace("Tea", "Water").replace('?', "Tea");
    let grade = houses().grade(&format!("{wrong}\nThe German keeps the fish."));
    assert_eq!(grade.verdict, Verdict::Wrong);
    assert_eq!(
        grade.why,
        "house 1, drink: 'water' was expected, 'tea' was read; 23 of 25 cells are right"
    );
}

#[test]
fn who_keeps_the_fish_is_read_from_the_sentence_about_the_fish() {
    let rows = [
        ("The Swede keeps the fish. The German keeps the dog.", Verdict::Wrong),
        ("House 4 is green. The Norwegian keeps the fish, not the German.", Verdict::Wrong),
        ("House 1: Norwegian. House 4: German. The Dane owns the fish.", Verdict::Wrong),
        ("Who keeps the fish? That cannot be found.", Verdict::Malformed),
    ];
    for (text, verdict) in rows {
        let grade = houses().grade(text);
        assert_eq!(grade.verdict, verdict, "{}\n{text}", grade.why);
    }
}

#[test]
fn a_file_can_hold_no_grid() {
    let mut ragged = cats();
    ragged.houses[1].pop();
    let mut large = cats();
    large.houses = vec![large.houses[0].clone(); 13];
    let empty = GridSolution { houses: Vec::new(), ..cats() };
    let no_words = GridSolution {
        attributes: vec![String::new(); 3],
        houses: vec![vec![String::new(); 3]; 3],
        ..cats()
    };
    for solution in [ragged, large, empty, no_words] {
        assert_eq!(solution.grade(JSON).verdict, Verdict::Malformed, "{solution:?}");
    }
}

#[test]
fn garbage_is_read_quickly() {
    let pieces = ["[1,", "{'a':", "|", "a & b \\\\", "House 1: red\n"];
    for piece in pieces {
        let began = std::time::Instant::now();
        let grade = houses().grade(&piece.repeat((1 << 18) / piece.len()));
        assert!(grade.verdict != Verdict::Correct, "{piece:?}");
        let seconds = began.elapsed().as_secs_f64();
        // Reading that takes quadratic time would need minutes.
        assert!(seconds < 60.0, "{piece:?}: {seconds} s");
    }
}

proptest! {
    #[test]
    fn any_text_is_graded(text in "(?s).{0,400}") {
        let grade = cats().grade(&text);
        prop_assert!((0.0..=1.0).contains(&grade.score));
        prop_assert!(grade.verdict != Verdict::Correct);
    }

    /// A right answer in which a piece was replaced is right only if every cell still is.
    #[test]
    fn a_changed_answer_is_never_taken_for_a_right_one(at in 0_usize..150, piece in "[a-z{}\",: ]{0,5}") {
        let at = at.min(JSON.len());
        let mut text = JSON.to_owned();
        text.replace_range(at..(at + piece.len()).min(JSON.len()), &piece);
        let grade = cats().grade(&text);
        prop_assert!((0.0..=1.0).contains(&grade.score));
        if grade.verdict == Verdict::Correct {
            let kept = ["Alice", "red", "tea", "Bruno", "blue", "milk", "Clara", "green", "water"];
            prop_assert!(kept.iter().all(|word| text.to_lowercase().contains(&word.to_lowercase())), "{}", text);
        }
    }

    /// Words in place of words: right only while no value was replaced.
    #[test]
    fn a_grid_with_another_value_is_never_right(
        form in 0_usize..3,
        from in 0_usize..9,
        to in 0_usize..9,
        before in "[a-z .\n|{}]{0,20}",
    ) {
        let values = cats().houses.concat();
        let text = [JSON, TABLE, PROSE][form].replace(&values[from], &values[to]);
        let grade = cats().grade(&format!("{before}\n{text}"));
        prop_assert!((0.0..=1.0).contains(&grade.score));
        prop_assert_eq!(grade.verdict == Verdict::Correct, from == to, "{}", text);
    }

    #[test]
    fn any_words_are_graded(words in prop::collection::vec(
        prop::sample::select(vec![
            "house", "1", "2", "first", "Alice", "red", "tea", "color", "not", "or", ":", ".", "\n", "|", "- ", "{", "}",
            "\"", ",", "[", "]", "&", "\\\\", "?", "#", "é", "İ",
        ]), 0..60)
    ) {
        let grade = cats().grade(&words.join(" "));
        prop_assert!((0.0..1.0).contains(&grade.score), "{:?}", grade);
        prop_assert!(grade.verdict != Verdict::Correct);
        cats().grade(&words.concat());
    }
}
