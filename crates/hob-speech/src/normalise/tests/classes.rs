//! Classes of text that a first run of the wide lists of phrases found wrong: one table a class.
//! The sentences are not those of the lists.

use hob_core::Language;

use super::check;

const AMERICAN: &[(&str, &str)] = &[
    // Moves of chess and chords.
    ("Then Ng5 wins.", "Then knight g five wins."),
    ("Rxd8+ and fxg4", "rook takes d eight check and f takes g four"),
    ("a7-a8 or a8=Q", "a seven a eight or a eight queen"),
    ("Na2 is sodium", "Na two is sodium"),
    ("an Fmaj7 and a D♭m7", "an F major seven and a D flat minor seven"),
    ("a waltz in 3/4 time", "a waltz in three four time"),
    ("3/4 of the time", "three quarters of the time"),
    ("A♭ and G♯", "A flat and G sharp"),
    // Names of several words.
    ("the readLine call", "the read Line call"),
    ("an XMLParser", "an XML Parser"),
    ("#SummerReading", "hashtag Summer Reading"),
    ("LeBron and iPhone", "LeBron and iPhone"),
    ("code FREE15", "code FREE fifteen"),
    ("please STAY, IBM", "please STAY, IBM"),
    // Numbers that are names.
    ("an A340 and KL1203", "an A three forty and KL twelve oh three"),
    ("flight 1482", "flight fourteen eighty two"),
    ("a 403(b) plan", "a four oh three (b) plan"),
    ("a 503 error", "a five oh three error"),
    ("GTX 1080 cards", "GTX one thousand eighty cards"),
    ("USD 4500", "USD four thousand five hundred"),
    ("Runway 09L", "Runway zero nine L"),
    ("the 415 area code", "the four one five area code"),
    ("Ext. 4410", "extension four four one zero"),
    ("ending in 7718", "ending in seven seven one eight"),
    ("Text JOIN to 55512", "Text JOIN to five five five one two"),
    ("Dial *69", "Dial star six nine"),
    // Dates and times of other forms.
    ("Feb. 3-7", "February third to seventh"),
    ("Tue-Thu", "Tuesday to Thursday"),
    ("June–Sept", "June to September"),
    ("due 11/30", "due November thirtieth"),
    ("on 3/4 of them", "on three quarters of them"),
    ("the 9th of June, 1815", "the ninth of June, eighteen fifteen"),
    ("in 1066", "in ten sixty six"),
    ("a 1:25,000 map", "a one to twenty five thousand map"),
    // Parts and attributes of units.
    ("½ tsp salt", "half a teaspoon salt"),
    ("1/8 mi away", "one eighth of a mile away"),
    ("2 1/4 tsp salt", "two and a quarter teaspoons salt"),
    ("a $30 fine", "a thirty dollar fine"),
    ("a 12-oz can", "a twelve ounce can"),
    ("an 8 fl. oz. cup", "an eight fluid ounce cup"),
    ("a 10 m long rope", "a ten meters long rope"),
    ("+4%", "plus four percent"),
    ("at 40 mpg", "at forty miles per gallon"),
    // Short forms and places.
    ("12 Oak St, Boston", "twelve Oak Street, Boston"),
    ("Rm. 14 and Op. 9", "Room fourteen and opus nine"),
    ("on E. 42nd", "on East forty second"),
    ("Lt Gen Ames", "Lieutenant General Ames"),
    ("c/o Ann", "care of Ann"),
    ("Gen Z", "Gen Z"),
    ("WWII and George V's", "World War two and George the fifth's"),
    ("Act II, scene iv", "Act two, scene four"),
    ("Press # now", "Press pound now"),
    ("x³ - 3x", "x cubed minus three x"),
];

const BRITISH: &[(&str, &str)] = &[
    // Dates and times of other forms.
    ("at 7.45pm", "at seven forty five P M"),
    ("the 16.20 train", "the sixteen twenty train"),
    ("on 9/10", "on the ninth of October"),
    ("1.6.2024", "the first of June, twenty twenty four"),
    ("the 2023/24 season", "the twenty twenty three to twenty four season"),
    ("the 16.20 result", "the sixteen point two zero result"),
    // Parts and attributes of units.
    ("11st 6lb", "eleven stone six pounds"),
];

#[test]
fn classes_are_said_as_in_the_tables() {
    check(Language::AmericanEnglish, AMERICAN);
    check(Language::BritishEnglish, BRITISH);
}
