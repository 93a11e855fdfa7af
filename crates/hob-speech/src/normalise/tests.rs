//! Written text and spoken text, row by row.

mod classes;
mod phrases;

use super::*;
use crate::reading::Voicing;

fn check(language: Language, cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .map(|(text, expect)| (text, expect, read(text, 0, language).text))
        .filter(|(_, expect, said)| said != *expect)
        .map(|(text, expect, said)| format!("\n{text}\n  said     {said}\n  expected {expect}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

/// Written text and spoken text.
const AMERICAN: &[(&str, &str)] = &[
    // A B behind a number is billions only where it counts something.
    ("221B Baker Street", "two hundred twenty one B Baker Street"),
    ("He lives at 221B.", "He lives at two hundred twenty one B."),
    ("Gate 12B is open", "Gate twelve B is open"),
    ("a 1.5B market", "a one point five billion market"),
    ("7B parameters", "seven billion parameters"),
    ("8B people", "eight billion people"),
    ("$221B", "two hundred twenty one billion dollars"),
    // Plain words are left alone.
    ("Hello, “world”!", "Hello, “world”!"),
    ("It’s well-known.", "It's well-known."),
    ("\"Go,\" she said.", "“Go,” she said."),
    ("Wait... what?!", "Wait… what?!"),
    ("yes -- no—maybe – so", "yes — no — maybe — so"),
    ("He said 'no' to rock 'em", "He said no to rock 'em"),
    ("(see below)", "(see below)"),
    ("the dogs' bowls", "the dogs bowls"),
    ("one,two;three", "one, two; three"),
    // Numbers.
    ("1,204 items", "one thousand two hundred four items"),
    ("3.5", "three point five"),
    ("-7", "minus seven"),
    ("1/2", "one half"),
    ("3/4 of it", "three quarters of it"),
    ("2½ hours", "two and a half hours"),
    ("24/7", "twenty four seven"),
    ("4th", "fourth"),
    ("the 21st", "the twenty first"),
    ("10^6", "ten to the sixth"),
    ("5²", "five squared"),
    ("10⁻³", "ten to the power of minus three"),
    ("007", "zero zero seven"),
    ("#5", "number five"),
    ("~20", "about twenty"),
    ("20+ people", "twenty plus people"),
    ("10k users", "ten thousand users"),
    ("pages 3–7", "pages three to seven"),
    ("5-10 minutes", "five to ten minutes"),
    ("1000000", "one million"),
    ("a 3x gain", "a three times gain"),
    ("1,2,3", "one two three"),
    ("1.000.000", "one million"),
    ("E=mc²", "E equals mc squared"),
    ("~5x faster", "about five times faster"),
    ("(555) 123-4567", "(five five five) one two three, four five six seven"),
    // Times.
    ("at 9:15", "at nine fifteen"),
    ("at 10:30", "at ten thirty"),
    ("17:45", "seventeen forty five"),
    ("9:05", "nine oh five"),
    ("9:00", "nine o'clock"),
    ("7 pm", "seven P M"),
    ("7 p.m. today", "seven P M today"),
    ("at 7 p.m.", "at seven P M."),
    ("7:30am", "seven thirty A M"),
    ("10:00–11:30", "ten o'clock to eleven thirty"),
    ("10 a.m.–5 p.m. today", "ten A M to five P M today"),
    ("Mon.–Fri. only", "Monday to Friday only"),
    ("16:9", "sixteen to nine"),
    ("a 16:10 ratio", "a sixteen to ten ratio"),
    ("odds of 7:10", "odds of seven to ten"),
    ("1h30", "one hour thirty"),
    ("1h30m and 2h 15min", "one hour thirty minutes and two hours fifteen minutes"),
    ("2h 15 times", "two hours fifteen times"),
    ("at 14h30", "at fourteen thirty"),
    ("a 3h drive", "a three hour drive"),
    ("I am", "I am"),
    // Money.
    ("$1,204.50", "one thousand two hundred four dollars and fifty cents"),
    ("$1.05", "one dollar and five cents"),
    ("$0.99", "ninety nine cents"),
    ("$9.99.", "nine dollars and ninety nine cents."),
    ("$1", "one dollar"),
    ("£3m", "three million pounds"),
    ("€1.5bn", "one point five billion euros"),
    ("$5 million deal", "five million dollars deal"),
    ("¥500", "five hundred yen"),
    ("₹200", "two hundred rupees"),
    ("5€", "five euros"),
    ("€5,50", "five euros and fifty cents"),
    ("-$5", "minus five dollars"),
    ("$5–10", "five to ten dollars"),
    ("$5/month", "five dollars per month"),
    ("$10k", "ten thousand dollars"),
    // Units.
    ("5km", "five kilometers"),
    ("5 km away", "five kilometers away"),
    ("1 km", "one kilometer"),
    ("100 km/h", "one hundred kilometers per hour"),
    ("25°C", "twenty five degrees Celsius"),
    ("-3 °C", "minus three degrees Celsius"),
    ("50%", "fifty percent"),
    ("3.5 GB/s", "three point five gigabytes per second"),
    ("20 mA at 5 mV", "twenty milliamps at five millivolts"),
    ("100 Mbit/s", "one hundred megabits per second"),
    ("3 kWh", "three kilowatt hours"),
    ("10–20 kg", "ten to twenty kilograms"),
    ("5 in the box", "five in the box"),
    ("RAM and JSONs", "ram and jasons"),
    ("8GB of RAM", "eight gigabytes of ram"),
    ("a 5-km run", "a five kilometer run"),
    // Addresses.
    ("ann@example.com", "ann at example dot com"),
    ("Mail ann.lee@example.co.uk.", "Mail ann dot lee at example dot co dot uk."),
    ("https://example.com/a-b", "example dot com slash a dash b"),
    ("www.example.com", "www dot example dot com"),
    ("192.168.0.1", "one nine two dot one six eight dot zero dot one"),
    ("v2.10", "version two point ten"),
    ("version 2.10", "version two point ten"),
    ("Node.js", "Node dot js"),
    ("main.rs", "main dot rs"),
    ("@ann said", "at ann said"),
    ("#winning", "hashtag winning"),
    ("555-0199", "five five five, zero one nine nine"),
    ("+44 20 7946 0958", "plus four four, two zero, seven nine four six, zero nine five eight"),
    ("/usr/bin", "slash usr slash bin"),
    // Letters and numbers in one word.
    ("the 18th-century novel", "the eighteenth century novel"),
    ("the mid-1990s", "the mid nineteen nineties"),
    ("GPT-3.5", "GPT three point five"),
    ("a 2x4 plank", "a two by four plank"),
    ("0x1A", "zero x one A"),
    ("ES2022", "ES twenty twenty two"),
    ("macOS and mRNA", "mac OS and m RNA"),
    ("McDonald and MacOS", "McDonald and MacOS"),
    ("a pH of 7", "a p H of seven"),
    ("run npm, hmm", "run npm, hmm"),
    ("2πr", "two pi r"),
    ("CO₂", "CO two"),
    // Formulas.
    ("7 - 3 = 4", "seven minus three equals four"),
    ("we - as always - won", "we — as always — won"),
    ("f(x) = 2x", "f of x equals two x"),
    ("cos(2x)", "cosine of two x"),
    ("a 2x gain", "a two times gain"),
    ("5! = 120", "five factorial equals one hundred twenty"),
    ("Only 5! Great", "Only five! Great"),
    ("n! grows", "n factorial grows"),
    ("Plan B! Go", "Plan B! Go"),
    ("1 1/2 cups", "one and a half cups"),
    ("1e6", "one times ten to the sixth"),
    ("10 / 2 = 5", "ten divided by two equals five"),
    ("3.0×10⁸ m/s", "three point zero times ten to the eighth meters per second"),
    ("a != b", "a is not equal to b"),
    ("NaCl and Ca²⁺", "NA CL and CA two plus"),
    ("IgG, FIFOs", "IGG, FIFOs"),
    // Postal addresses.
    ("15 W. 4th St.", "fifteen West fourth Street."),
    ("a 60 W bulb", "a sixty watt bulb"),
    ("12A High St.", "twelve A High Street."),
    ("a 13A fuse", "a thirteen amp fuse"),
    ("Austin, TX 78701", "Austin, Texas seven eight seven zero one"),
    ("TAKE FIVE OR 12000 COINS", "take five or twelve thousand coins"),
    ("5'10\" tall", "five foot ten tall"),
    ("5 ft 10 in", "five feet ten inches"),
    ("2 in the box", "two in the box"),
    ("5 sq ft", "five square feet"),
    ("a 12\" vinyl", "a twelve inch vinyl"),
    ("It has 27\".", "It has twenty seven inches."),
    ("\"Only 12\" is it", "“Only twelve” is it"),
    ("a 6.1″ screen", "a six point one inch screen"),
    // Files and colours.
    ("src/main.rs", "src slash main dot rs"),
    (".gitignore", "dot gitignore"),
    ("10.0.0.0/8", "one zero dot zero dot zero dot zero slash eight"),
    ("v1.2.0-beta.2", "version one point two point zero beta two"),
    ("#FF8800", "hash F F eight eight zero zero"),
    ("#123456", "number one hundred twenty three thousand four hundred fifty six"),
    ("Mon, Mar 4", "Monday, March fourth"),
    ("3/14/24", "March fourteenth, twenty twenty four"),
    ("Vol. III", "volume three"),
    ("Henry V, Act IV", "Henry the fifth, Act four"),
    // Names before numbers say what these are.
    ("a Boeing 747", "a Boeing seven forty seven"),
    ("Boeing 737-800", "Boeing seven thirty seven eight hundred"),
    ("Boeing 747s", "Boeing seven forty sevens"),
    ("a Peugeot 205", "a Peugeot two oh five"),
    ("Boeing 300 million", "Boeing three hundred million"),
    ("747 people", "seven hundred forty seven people"),
    ("John 3:16", "John three sixteen"),
    ("Genesis 1:1", "Genesis one one"),
    ("Exodus 20:3", "Exodus twenty verse three"),
    ("Psalm 119:105", "Psalm one hundred nineteen verse one hundred five"),
    ("1 Corinthians 13:4-7", "one Corinthians thirteen four to seven"),
    ("Meet John 8:00", "Meet John eight o'clock"),
    ("a 1:1 copy", "a one to one copy"),
    ("120/80 mmHg", "one hundred twenty over eighty millimeters of mercury"),
    // Letters before years are short forms.
    ("c. 1450", "circa fourteen fifty"),
    ("b. 1809", "born eighteen oh nine"),
    ("est. 1845", "established eighteen forty five"),
    ("(Darwin, 1859)", "(Darwin, eighteen fifty nine)"),
    ("Vitamin c. It helps", "Vitamin c. It helps"),
    // Symbols.
    ("R & D", "R and D"),
    ("AT&T", "AT and T"),
    ("2 + 2 = 4", "two plus two equals four"),
    ("A → B", "A to B"),
    ("§ 5", "section five"),
    ("C# and C++", "C sharp and C plus plus"),
    ("and/or", "and slash or"),
    ("100% & more", "one hundred percent and more"),
    ("x <= y", "x less than or equal to y"),
    ("-----", ""),
    ("snake_case", "snake case"),
    // Acronyms and mixtures.
    ("The EHR and GPUs", "The EHR and GPUs"),
    ("gpt-4o", "gpt four o"),
    ("H2O", "H two O"),
    ("the U.S. army", "the US army"),
    ("in the U.S.", "in the US."),
    ("THIS IS VERY LOUD TEXT", "this is very loud text"),
    ("MP3 files", "MP three files"),
    ("two MP3s", "two MP threes"),
    ("4K and 10K", "four K and ten thousand"),
    ("iPhone15", "iPhone fifteen"),
    ("x86", "x eighty six"),
    ("I AM NOT", "I AM NOT"),
    // Abbreviations.
    ("Dr. Smith", "Doctor Smith"),
    ("Elm Dr. is", "Elm Drive is"),
    ("Mr Jones", "Mister Jones"),
    ("e.g. this", "for example this"),
    ("fruit, e.g., apples", "fruit, for example, apples"),
    ("i.e. that", "that is that"),
    ("eggs, etc.", "eggs, et cetera."),
    ("eggs etc. and", "eggs et cetera and"),
    ("cats vs. dogs", "cats versus dogs"),
    ("No. 5", "number five"),
    ("No.", "No."),
    ("5 St. James", "five Saint James"),
    ("Main St. is", "Main Street is"),
    ("a Ph.D. in", "a PHD in"),
    ("p. 12", "page twelve"),
    // Roman numerals.
    ("Henry VIII", "Henry the eighth"),
    ("Chapter IV", "Chapter four"),
    ("World War II", "World War two"),
    ("I think", "I think"),
    ("Vitamin C", "Vitamin C"),
    // Markup and noise.
    ("## A title", "A title"),
    ("**Bold** `code` [link](http://x.y)", "Bold code link"),
    ("😀 👍", ""),
    ("\u{0}\u{1}\u{301}", ""),
    ("Hi <break time=\"1s\"/> you", "Hi you"),
    ("wo\u{200b}rd", "word"),
    // Years and dates.
    ("in 1969", "in nineteen sixty nine"),
    ("1969 items", "one thousand nine hundred sixty nine items"),
    ("In 2005, it was", "In two thousand five, it was"),
    ("the 2010s", "the twenty tens"),
    ("the '90s", "the nineties"),
    ("the 1980s", "the nineteen eighties"),
    ("the 90s", "the nineties"),
    ("a 90s timeout", "a ninety second timeout"),
    ("2020–2024", "twenty twenty to twenty twenty four"),
    ("1500 metres", "one thousand five hundred metres"),
    ("in 1845", "in eighteen forty five"),
    ("3 March 2027", "the third of March twenty twenty seven"),
    ("March 3, 2027", "March third, twenty twenty seven"),
    ("on Jan. 5 we", "on January fifth we"),
    ("Jan. 5", "January fifth"),
    ("May 2024", "May twenty twenty four"),
    ("2024-05-06", "May sixth, twenty twenty four"),
    ("3/4/2027", "March fourth, twenty twenty seven"),
    ("the 4th of July", "the fourth of July"),
    ("I may go", "I may go"),
    // Telephone numbers and codes.
    ("202.555.0143", "two zero two, five five five, zero one four three"),
    ("Call 911 now", "Call nine one one now"),
    ("Call 911 customers", "Call nine hundred eleven customers"),
    ("Phone: 3035550188", "Phone: three zero three five five five zero one eight eight"),
    ("Text 15000 people", "Text fifteen thousand people"),
    ("PIN 4821", "pin four eight two one"),
    ("the code is 482913", "the code is four eight two nine one three"),
    ("100-2000 km", "one hundred to two thousand kilometers"),
    ("+5 points", "plus five points"),
    ("415 555 0110", "four one five, five five five, zero one one zero"),
    (
        "the values 120 340 560",
        "the values one hundred twenty three hundred forty five hundred sixty",
    ),
    (
        "the sizes 220 340 5600",
        "the sizes two hundred twenty three hundred forty five thousand six hundred",
    ),
    ("220 340 5600 7", "two hundred twenty three hundred forty five thousand six hundred seven"),
    ("120 340 5600", "one hundred twenty three hundred forty five thousand six hundred"),
];

const BRITISH: &[(&str, &str)] = &[
    // Years and dates.
    ("2024-05-06", "the sixth of May, twenty twenty four"),
    ("3/4/2027", "the third of April, twenty twenty seven"),
    ("105", "one hundred and five"),
    ("5 km", "five kilometres"),
    // Telephone numbers and codes.
    ("020 7946 0958", "zero two zero, seven nine four six, zero nine five eight"),
    (
        "+44 (0)20 7946 0321",
        "plus four four, zero, two zero, seven nine four six, zero three two one",
    ),
];

#[test]
fn written_text_is_said_as_in_the_tables() {
    check(Language::AmericanEnglish, AMERICAN);
    check(Language::BritishEnglish, BRITISH);
}

#[test]
fn a_bracket_that_is_not_closed_hides_no_digits() {
    let reading = read("+44 (0 20 7946", 0, Language::BritishEnglish);
    assert!(reading.text.contains("twenty"), "{}", reading.text);
}

#[test]
fn six_digits_behind_a_plus_are_no_telephone_number_with_hyphens_either() {
    for text in ["+12 34 56", "+12-34-56"] {
        let reading = read(text, 0, Language::AmericanEnglish);
        assert!(reading.text.contains("thirty four"), "{}", reading.text);
    }
}

#[test]
fn letters_behind_an_ip_address_are_said() {
    let reading = read("10.0.0.1:80udp", 0, Language::AmericanEnglish);
    assert!(reading.text.ends_with("udp"), "{}", reading.text);
}

/// The text is the same in both cases.
#[test]
fn commands_are_spelled_and_sounds_are_not() {
    for (word, is_spelled) in
        [("npm", true), ("rm", true), ("hmm", false), ("hmph", false), ("mhm", false)]
    {
        let reading = read(word, 0, Language::AmericanEnglish);
        assert_eq!(matches!(reading.words[0].voicing, Voicing::Letters), is_spelled, "{word}");
    }
}
