//! Reads unit by unit: lazily, completely, and with the same result wherever the text is cut.

use std::sync::Mutex;

use hob_core::locked;
use proptest::prelude::*;

use super::*;
use crate::alphabet::{UNIT_PHONEMES_MAX, is_phoneme};
use crate::phonemes::PhonemizerOptions;

/// Phonemizers that no test uses now. Each test has a thread of its own, and the dictionaries take a while to load.
static PHONEMIZERS: Mutex<Vec<Phonemizer>> = Mutex::new(Vec::new());

fn with_phonemizer<T>(read: impl FnOnce(&mut Phonemizer) -> T) -> T {
    let unused = || locked(&PHONEMIZERS);
    let kept = unused().pop();
    let mut phonemizer = kept.unwrap_or_else(|| Phonemizer::new(PhonemizerOptions::default()));
    let result = read(&mut phonemizer);
    unused().push(phonemizer);
    result
}

fn rest(reader: &mut Reader) -> Vec<SpokenUnit> {
    with_phonemizer(|phonemizer| std::iter::from_fn(|| reader.next_unit(phonemizer)).collect())
}

fn units_of(text: &str) -> Vec<SpokenUnit> {
    let mut reader = Reader::new(Language::AmericanEnglish);
    reader.push(text);
    reader.finish();
    let units = rest(&mut reader);
    assert!(reader.is_done());
    units
}

/// The units of a text that arrives in pieces ending at these bytes. Units are requested after every piece.
fn units_of_pieces(text: &str, cuts: &[usize]) -> Vec<SpokenUnit> {
    let mut reader = Reader::new(Language::AmericanEnglish);
    let mut units = Vec::new();
    let mut from = 0;
    for &to in cuts.iter().chain([&text.len()]) {
        // An empty piece would mean that the writer pauses.
        if from < to {
            reader.push(&text[from..to]);
        }
        from = to;
        units.extend(rest(&mut reader));
        assert!(!reader.is_done());
    }
    reader.finish();
    units.extend(rest(&mut reader));
    assert!(reader.is_done());
    units
}

fn phonemes(text: &str) -> Vec<String> {
    units_of(text).into_iter().map(|unit| unit.phonemes).collect()
}

/// The user's words, unit by unit.
fn words(text: &str) -> Vec<Vec<&str>> {
    let unit_words =
        |unit: SpokenUnit| unit.words.into_iter().map(|word| &text[word.span]).collect::<Vec<_>>();
    units_of(text).into_iter().map(unit_words).collect()
}

#[test]
fn two_sentences_are_two_units() {
    assert_eq!(phonemes("Hello there. How are you?"), ["həlˈO ðˈɛɹ.", "hˌW ɑɹ ju?"]);
}

/// As `tail -f` writes: the next line may come at any time, or never.
#[test]
fn a_writer_that_pauses_is_not_waited_for() {
    let mut reader = Reader::new(Language::AmericanEnglish);
    let mut heard = Vec::new();
    for line in ["The build is done.\n", "ok\n", "Twelve tests failed\n", "```\nlet a;\n"] {
        reader.push(line);
        let units = rest(&mut reader);
        assert!(units.is_empty(), "more of the line may come: {units:?}");
        reader.push("");
        heard.push(rest(&mut reader).into_iter().map(|unit| unit.phonemes).collect::<Vec<_>>());
    }
    let expect = ["The build is done.", "ok", "Twelve tests failed", "code block"];
    assert_eq!(heard, expect.map(phonemes));
    reader.push("```\nBut that one passed.");
    reader.finish();
    let last: Vec<SpokenUnit> = rest(&mut reader);
    assert_eq!(
        last.iter().map(|unit| &unit.phonemes).collect::<Vec<_>>(),
        [&phonemes("But that one passed.")[0]]
    );
    assert!(reader.is_done());
}

#[test]
fn text_after_the_first_pause_makes_no_longer_sentence_of_what_was_before_it() {
    let mut reader = Reader::new(Language::AmericanEnglish);
    for piece in ["Good morning, my dear friend,", "", " I am", " glad. And you?"] {
        reader.push(piece);
    }
    reader.finish();
    let heard: Vec<String> = rest(&mut reader).into_iter().map(|unit| unit.phonemes).collect();
    let first = phonemes("Good morning, my dear friend,");
    assert_eq!(heard, [first, phonemes("I am glad. And you?")].concat());
    assert!(reader.is_done());
}

#[test]
fn a_unit_that_is_too_short_joins_the_next_one() {
    assert_eq!(words("No. I would rather not."), [["No", "I", "would", "rather", "not"]]);
    assert_eq!(words("I would rather not. No."), [["I", "would", "rather", "not", "No"]]);
    assert_eq!(words("Go! 🎉🎉🎉"), [["Go"]]);
}

#[test]
fn headings_and_items_are_heard_as_sentences() {
    let text = "# A fine title\n- the first item\n- the second item\n\nDone with the list";
    let heard = phonemes(text);
    assert_eq!(heard.len(), 4);
    assert!(heard.iter().all(|unit| unit.ends_with('.')), "{heard:?}");
}

#[test]
fn pauses_grow_with_the_boundary() {
    let text = "The first sentence ends.  The second one does, too.\n\nA new paragraph begins.";
    let pauses: Vec<u32> = units_of(text).iter().map(|unit| unit.pause_after_ms).collect();
    assert_eq!(pauses, [260, 600, 0]);
}

#[test]
fn a_pause_that_the_user_writes_is_heard_between_the_words() {
    let text = "[pause:9s] Wait for it [pause:1.5s]\n[pause:300ms] and now it comes. [pause:20ms] Yes, it does.";
    let units = units_of(text);
    assert_eq!(heard(text, &units), [("", 9000), ("Wait", 1800), ("and", 260), ("Yes", 0)]);
    let cuts: Vec<usize> = (1..text.len()).collect();
    assert_eq!(units_of_pieces(text, &cuts), units);
    assert!(!is_speakable("[pause:1s]"));
    assert!(is_speakable("[pause:1s] [pause:1s] a"));
    assert_eq!(words("See [pause: later] there."), [["See", "pause", "later", "there"]]);
}

/// The first word of each unit, and its pause.
fn heard<'a>(text: &'a str, units: &[SpokenUnit]) -> Vec<(&'a str, u32)> {
    let first = |unit: &SpokenUnit| unit.words.first().map_or("", |word| &text[word.span.clone()]);
    units.iter().map(|unit| (first(unit), unit.pause_after_ms)).collect()
}

#[test]
fn a_pause_at_the_end_is_heard_although_nothing_follows() {
    let rows: [(&str, &[(&str, u32)]); 5] = [
        ("Here it is, then. [pause:2s]", &[("Here", 2000), ("", 0)]),
        ("Here it is, then. [pause:2s]\n[pause:1s] ", &[("Here", 3000), ("", 0)]),
        (
            "Here it is, then. [pause:2s] \u{1f389} [pause:1s]",
            &[("Here", 2000), ("", 1000), ("", 0)],
        ),
        ("Here it is, then.", &[("Here", 0)]),
        ("[pause:1s]", &[("", 1000)]),
    ];
    for (text, expect) in rows {
        let units = units_of(text);
        assert_eq!(heard(text, &units), expect, "{text}");
        let cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).collect();
        assert_eq!(units_of_pieces(text, &cuts), units, "{text}");
    }
}

#[test]
fn words_have_their_positions_in_the_text() {
    let text = "Pay $1,204.50 on 3 March 2027 for **GPUs**, Zoë!";
    assert_eq!(
        words(text),
        [["Pay", "$1,204.50", "on", "3", "March", "2027", "for", "GPUs", "Zoë"]]
    );
    let unit = &units_of("It’s  10:30 now.")[0];
    let heard: Vec<(&str, String)> = unit
        .words
        .iter()
        .map(|word| {
            let sounds = unit.phonemes.chars().skip(word.phonemes.start).take(word.phonemes.len());
            (&"It’s  10:30 now."[word.span.clone()], sounds.collect())
        })
        .collect();
    let expect = [("It’s", "ˌɪts"), ("10:30", "tˈɛn θˈɜɹTi"), ("now", "nˈW")];
    assert_eq!(heard, expect.map(|(word, sounds)| (word, sounds.to_owned())));
}

#[test]
fn the_same_letters_are_heard_by_their_part_of_speech() {
    let heard = phonemes("I read it yesterday. I will read it tomorrow.").join(" ");
    assert!(heard.contains("ɹˈɛd") && heard.contains("ɹˈid"), "{heard}");
}

#[test]
fn only_the_first_sentence_is_looked_at() {
    let mut reader = Reader::new(Language::AmericanEnglish);
    reader.push("This is the first sentence. ");
    reader.push(&"And here is one more of them. ".repeat(4_000));
    let first = with_phonemizer(|phonemizer| reader.next_unit(phonemizer));
    assert_eq!(first.map(|unit| unit.words.len()), Some(5));
    assert_eq!(reader.at, "This is the first sentence. ".len());
}

#[test]
fn a_unit_comes_before_the_text_has_ended() {
    let mut reader = Reader::new(Language::AmericanEnglish);
    reader.push("Let me see about that. ");
    assert_eq!(rest(&mut reader), []);
    reader.push("It might be");
    assert_eq!(rest(&mut reader).len(), 1);
    reader.push(" late.");
    assert_eq!(rest(&mut reader), []);
    reader.finish();
    assert_eq!(rest(&mut reader).len(), 1);
}

#[test]
fn a_long_sentence_splits_where_a_reader_would_breathe() {
    let clause = "the old house on the hill was slowly falling apart under the rain and the wind";
    let text = format!("All that year, {clause}; {clause}; {clause}, {clause}.");
    let units = units_of(&text);
    assert!(units.len() > 1);
    for unit in &units {
        assert!(unit.phonemes.ends_with([';', ',', '.']), "{}", unit.phonemes);
        assert!(unit.phonemes.chars().count() <= 260, "{}", unit.phonemes);
    }
}

#[test]
fn a_code_block_is_announced_and_not_read() {
    let text = "Look at this:\n\n```rust\nfn main() {}\n\n// more\n```\n\nThat was the code.";
    let heard = words(text);
    assert_eq!(heard.concat(), ["Look", "at", "this", "```", "That", "was", "the", "code"]);
    assert_eq!(words("```\nnever closed").concat(), ["```"]);
}

#[test]
fn text_without_words_has_no_units() {
    let long = "😀".repeat(25_000);
    for text in
        ["", "  \n\t ", "😀👍🏽", "...", "\u{0}\u{7}", "\u{301}\u{302}", "---", "<br/>", &long]
    {
        assert!(!is_speakable(text), "{text:?}");
        assert_eq!(units_of(text), [], "{text:?}");
    }
    for text in ["a", "7", "😀 ok", "世界", "&", "<speak>Hi</speak>", "```\n```", "½", "\u{e01}"]
    {
        assert!(is_speakable(text), "{text:?}");
        assert_ne!(units_of(text), [], "{text:?}");
    }
}

#[test]
fn extremes_are_read_and_bounded() {
    let letters: String = ('a'..='z').cycle().take(5_000).collect();
    let no_stop = "word after word goes on ".repeat(125);
    let mut texts = vec![letters, no_stop];
    for c in
        ['a', '1', '.', '(', '*', '[', '<', '`', '-', '\'', '"', '&', '世', '\n', '_', '#', '|']
    {
        texts.push(c.to_string().repeat(100_000 / c.len_utf8()));
    }
    for text in texts {
        let units = units_of(&text);
        assert!(units.iter().all(is_sound), "{}", &text[..3]);
    }
}

/// What is true for every unit of every text.
fn is_sound(unit: &SpokenUnit) -> bool {
    let length = unit.phonemes.chars().count();
    let ordered = unit.words.windows(2).all(|pair| {
        pair[0].span.start <= pair[1].span.start && pair[0].phonemes.end <= pair[1].phonemes.start
    });
    (1..=UNIT_PHONEMES_MAX).contains(&length)
        && unit.phonemes.chars().all(is_phoneme)
        && !unit.words.is_empty()
        && ordered
        && unit
            .words
            .iter()
            .all(|word| word.phonemes.start < word.phonemes.end && word.phonemes.end <= length)
}

/// Text as people and machines write it: words, numbers, marks, other scripts, noise.
fn any_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-z]{1,9}",
        2 => "[A-Z][a-z]{0,8}",
        1 => "[A-Z]{2,6}s?",
        1 => "[0-9]{1,5}([.,:/–-][0-9]{1,4}){0,2}(km|%|°C|th|s)?",
        1 => "[$£€][0-9]{1,4}(\\.[0-9]{2})?(m|bn|k)?",
        1 => "(Dr|Mr|St|No|Jan|e\\.g|U\\.S|a\\.m|etc|vs)\\.",
        1 => "[a-z]{2,5}@[a-z]{2,5}\\.com|https://[a-z]{2,6}\\.org/[a-z0-9_]{1,6}",
        1 => "[a-zA-Z0-9'’_.-]{1,12}",
        1 => "[а-яё]{1,6}|[ぁ-ん]{1,4}|[가-힣]{1,3}|[一-龥]{1,4}|[ऀ-ॿ]{1,5}|[é-ÿ]{1,4}",
        1 => "[*_`#>\\[\\]()<!|~&\\\\\"“”‘’{}]{1,3}",
        1 => any::<char>().prop_map(String::from),
    ];
    let gap = prop_oneof![
        8 => Just(" "), 2 => Just(", "), 2 => Just(". "), 1 => Just("\n"), 1 => Just("\n\n"),
        1 => Just("? "), 1 => Just("…"), 1 => Just("; "), 1 => Just(""), 1 => Just(" — "),
    ];
    proptest::collection::vec((part, gap), 0..40)
        .prop_map(|parts| parts.into_iter().map(|(part, gap)| part + gap).collect())
}

/// Plain prose without markup. Every word must be heard.
fn prose() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        6 => "[a-z]{1,12}",
        2 => "[A-Z][a-z]{0,9}",
        1 => "[A-Z]{2,5}",
        1 => "[0-9]{1,6}",
        1 => "[a-z]{1,4}[0-9]{1,3}|[0-9]{1,3}[a-z]{1,4}",
        1 => "[а-я]{1,7}|[α-ω]{2,6}|[一-龥]{1,3}|[א-ת]{2,5}",
        1 => "[a-z]{1,6}['’-][a-z]{1,6}",
    ];
    let gap = prop_oneof![
        8 => Just(" "), 2 => Just(", "), 2 => Just(". "), 1 => Just("\n"), 1 => Just("! "),
    ];
    proptest::collection::vec((word, gap), 1..40)
        .prop_map(|parts| parts.into_iter().map(|(word, gap)| word + gap).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn units_are_sound_and_in_order(text in any_text()) {
        let units = units_of(&text);
        let mut last = 0;
        for unit in &units {
            prop_assert!(is_sound(unit), "{unit:?}");
            for word in &unit.words {
                prop_assert!(text.get(word.span.clone()).is_some(), "{word:?} cuts a character");
                prop_assert!(word.span.start >= last, "{word:?} goes back");
                last = word.span.start;
            }
        }
        prop_assert_eq!(is_speakable(&text), !units.is_empty());
    }

    #[test]
    fn where_the_text_is_cut_cannot_be_heard(
        text in any_text(),
        places in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let mut cuts: Vec<usize> = places.iter().map(|place| ends[place.index(ends.len())]).collect();
        cuts.sort_unstable();
        prop_assert_eq!(units_of_pieces(&text, &cuts), units_of(&text));
    }

    #[test]
    fn no_word_is_left_out(text in prose()) {
        let units = units_of(&text);
        let heard = |at: usize| {
            units.iter().flat_map(|unit| &unit.words).any(|word| word.span.contains(&at))
        };
        for (at, c) in text.char_indices().filter(|(_, c)| c.is_alphanumeric()) {
            prop_assert!(heard(at), "{c:?} at {at} of {text:?}");
        }
    }
}
