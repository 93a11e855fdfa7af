//! Where sentences end, and where they do not end.

use super::*;

fn segments(text: &str) -> Vec<(&str, End)> {
    let mut at = 0;
    let mut found = Vec::new();
    while let Ok(Some(segment)) = next_segment((text, Language::AmericanEnglish), at, true) {
        at = segment.range.end;
        found.push((text[segment.range].trim(), segment.end));
    }
    found
}

fn check(text: &str, expect: &[&str]) {
    let found: Vec<&str> = segments(text).into_iter().map(|(sentence, _)| sentence).collect();
    assert_eq!(found, expect, "{text}");
}

#[test]
fn plain_sentences() {
    check("", &[]);
    check(" \n ", &[]);
    check("Hello there. How are you?", &["Hello there.", "How are you?"]);
    check("Stop! Now. Really?! Yes", &["Stop!", "Now.", "Really?!", "Yes"]);
    check("Since 5! = 120, yes. Now", &["Since 5! = 120, yes.", "Now"]);
    check("How n! grows! now", &["How n! grows!", "now"]);
    check("i went home. it was late. ok", &["i went home.", "it was late.", "ok"]);
}

#[test]
fn abbreviations_and_initials() {
    check("Dr. Smith met Mrs. Jones. They left.", &["Dr. Smith met Mrs. Jones.", "They left."]);
    check("Fruit, e.g. Apples, is good.", &["Fruit, e.g. Apples, is good."]);
    check("J. R. R. Tolkien wrote it.", &["J. R. R. Tolkien wrote it."]);
    check("J.R.R. Tolkien wrote it. Yes.", &["J.R.R. Tolkien wrote it.", "Yes."]);
    check("He lives in the U.S. The end.", &["He lives in the U.S.", "The end."]);
    check("The U.S. Army came.", &["The U.S. Army came."]);
    check("We met at 7 p.m. It rained.", &["We met at 7 p.m.", "It rained."]);
    check("Eggs, milk, etc. But no bread.", &["Eggs, milk, etc.", "But no bread."]);
    check("See No. 5 there. No. Never.", &["See No. 5 there.", "No.", "Never."]);
    check("On Jan. 5 it snowed.", &["On Jan. 5 it snowed."]);
    check("Take vitamin C. The rest is easy.", &["Take vitamin C.", "The rest is easy."]);
    check("So am I. We agree.", &["So am I.", "We agree."]);
    check("It was built c. 1450. Later it fell.", &["It was built c. 1450.", "Later it fell."]);
    check("Choose a, b or c. 12 did.", &["Choose a, b or c.", "12 did."]);
    check("Acme Inc. Chairman Bob spoke.", &["Acme Inc. Chairman Bob spoke."]);
}

#[test]
fn a_full_stop_ends_a_sentence_or_belongs_to_a_word() {
    for (before, after, expected) in [
        (" We met at 7 p.m.", " on Monday.", false),
        (" We met at 7 p.m.", " Monday morning.", false),
        (" We met at 7 p.m.", " Then it rained.", true),
        (" I saw Mr.", " Fox.", false),
        (" He left at noon.", " She stayed.", true),
        (" So I wait...", " and wait.", false),
        (" So I wait...", " It rains.", true),
        (" He left.", "", true),
        (" He left", " She stayed.", false),
    ] {
        let is_end = is_sentence_end(before, after, Language::AmericanEnglish);
        assert_eq!(is_end, expected, "{before:?} {after:?}");
    }
    assert!(!is_sentence_end(" Frutas, p. ej.", " Manzanas", Language::Spanish));
}

#[test]
fn a_segment_ends_before_a_pause() {
    assert_eq!(segments("Wait for it [pause:2s] now")[0], ("Wait for it", End::Sentence));
    check("See [note:2s] there", &["See [note:2s] there"]);
}

#[test]
fn numbers_addresses_and_dots() {
    check("It is 3.5 or v2.10.1. Good.", &["It is 3.5 or v2.10.1.", "Good."]);
    check("Go to example.com/a?b=c. Then stop.", &["Go to example.com/a?b=c.", "Then stop."]);
    check("It costs $9.99. Cheap!", &["It costs $9.99.", "Cheap!"]);
    check("Wait... what? Oh... Fine.", &["Wait... what?", "Oh...", "Fine."]);
    check("Hm… Yes. Hm… no.", &["Hm…", "Yes.", "Hm… no."]);
    check("It works.[12] Next one.", &["It works.[12]", "Next one."]);
}

#[test]
fn quotes_and_brackets_close_after_the_stop() {
    check("“Go.” He went.", &["“Go.”", "He went."]);
    check("\"Really?\" she asked. \"Yes!\"", &["\"Really?\" she asked.", "\"Yes!\""]);
    check("(It was late.) We slept.", &["(It was late.)", "We slept."]);
    check("**Bold.** Then plain.", &["**Bold.**", "Then plain."]);
}

#[test]
fn other_scripts() {
    check("你好。再见！「好。」走", &["你好。", "再见！", "「好。」", "走"]);
    check("नमस्ते। फिर मिलेंगे।", &["नमस्ते।", "फिर मिलेंगे।"]);
}

#[test]
fn lines_and_paragraphs() {
    use End::{Line, Paragraph, Sentence};
    let check = |text: &str, expect: &[(&str, End)]| assert_eq!(segments(text), expect, "{text}");
    check(
        "One\n\nTwo.\r\n\r\nThree",
        &[("One", Paragraph), ("Two.", Paragraph), ("Three", Paragraph)],
    );
    check(
        "# Title\nText here. More.",
        &[("# Title", Paragraph), ("Text here.", Sentence), ("More.", Sentence)],
    );
    check("- one\n- two\n3. three", &[("- one", Line), ("- two", Line), ("3. three", Paragraph)]);
    check("1. Wash. 2. Dry.", &[("1. Wash.", Sentence), ("2. Dry.", Sentence)]);
    check(
        "a long line that was wrapped at a column\nand goes on here.",
        &[("a long line that was wrapped at a column\nand goes on here.", Sentence)],
    );
    check(
        "The temperature in the room fell to about\n–5 degrees.",
        &[("The temperature in the room fell to about\n–5 degrees.", Sentence)],
    );
    check(
        "Roses are red\nViolets are blue",
        &[("Roses are red", Line), ("Violets are blue", Paragraph)],
    );
}

#[test]
fn text_without_a_boundary_is_cut_at_the_best_position() {
    let comma = format!("{}, {}", "word ".repeat(60).trim_end(), "word ".repeat(140));
    let found = segments(&comma);
    assert_eq!(found[0].1, End::Comma);
    assert!(found[0].0.ends_with(','));
    let words = "word ".repeat(600);
    assert!(segments(&words).iter().all(|(part, _)| part.len() <= SENTENCE_BYTES_MAX));
    let one = "é".repeat(5_000);
    let parts: Vec<&str> = segments(&one).into_iter().map(|(part, _)| part).collect();
    assert_eq!(parts.concat(), one);
}

#[test]
fn nothing_is_decided_before_it_is_known() {
    for (text, known) in [
        ("Hello there.", false),
        ("Hello there. ", false),
        ("Hello there. H", true),
        ("Dr. S", false),
        ("One\n", false),
        ("One\n\n", true),
    ] {
        let segment = next_segment((text, Language::AmericanEnglish), 0, false);
        assert_eq!(segment.is_ok(), known, "{text:?}");
    }
}

#[test]
fn abbreviations_and_sentences_are_those_of_the_language() {
    let count = |language: Language, text: &str| {
        let (mut at, mut count) = (0, 0);
        while let Ok(Some(segment)) = next_segment((text, language), at, true) {
            (at, count) = (segment.range.end, count + 1);
        }
        count
    };
    for (language, text, expect) in [
        (Language::Spanish, "La Sra. García vive en la Av. Reforma.", 1),
        (Language::Spanish, "Hay pan, etc. Los niños comen.", 2),
        (Language::Spanish, "Frutas, p. ej. manzanas. Y peras.", 2),
        (Language::Spanish, "Es del s. XIX. Vale mucho.", 2),
        (Language::Spanish, "Llegó P. Pérez. Se fue.", 2),
        (Language::Italian, "Vedi il cap. IV e la pag. Vediamo.", 2),
        (Language::French, "M. Dupont et Mme. Durand arrivent.", 1),
        (Language::French, "Il dort. Elle lit.", 2),
        (Language::Italian, "Il dott. Rossi e l'avv. Bianchi parlano.", 1),
        (Language::BrazilianPortuguese, "O Sr. Silva mora na pág. 12 do livro.", 1),
        (Language::Hindi, "डॉ. शर्मा आए। वे चले गए।", 2),
    ] {
        assert_eq!(count(language, text), expect, "{text}");
    }
}
