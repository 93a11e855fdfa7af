//! Headings of real books, and lines that only look like headings.

use super::*;

fn titles(text: &str) -> Vec<String> {
    book_chapters(text, "The Book").into_iter().map(|chapter| chapter.title).collect()
}

#[test]
fn headings_in_words_and_in_markdown_begin_chapters() {
    let rows: [(&str, &[&str]); 14] = [
        ("No heading at all.", &["The Book"]),
        ("", &["The Book"]),
        ("Chapter 1\n\nIt began.\n\nCHAPTER II.\n\nIt went on.", &["Chapter 1", "CHAPTER II."]),
        (
            "By A. Writer\n\nPrologue\n\nDark.\n\nPART ONE\n\nLight.",
            &["The Book", "Prologue", "PART ONE"],
        ),
        ("# Title\n\nText.\n\n## One ##\n\nText.\n\n### Small\n\nText.", &["Title", "One"]),
        ("CHAPTER I.\r\nDown the Hole\r\n\r\nShe fell.", &["CHAPTER I: Down the Hole"]),
        ("Chapter Twenty-One: The End\n\nIt ended.", &["Chapter Twenty-One: The End"]),
        ("BOOK THE FIRST\n\nIt was.", &["BOOK THE FIRST"]),
        ("```\n# a comment\n```\nText.", &["The Book"]),
        ("Chapter 3 — Rain\n\nWet.", &["Chapter 3 — Rain"]),
        ("# The *Best* [Day](day.md) of R&amp;D\n\nSun.", &["The Best Day of R&D"]),
        ("# ***\n\nText.\n\n## 🎉\n\nText.", &["The Book", "🎉"]),
        ("# 第１章！ A | B ★\n\nSun.", &["第１章！ A | B ★"]),
        ("One.\n\n~~~\n\n# Two\n\n~~~\n\nLeft.", &["The Book", "Two"]),
    ];
    for (text, expected) in rows {
        assert_eq!(titles(text), expected, "{text}");
    }
}

#[test]
fn sentences_are_no_headings() {
    let rows = [
        "Part two of the plan failed.\n\nThen it rained.",
        "Part of it.\n\nThen.",
        "He read\nChapter 1\n\nand slept.",
        "Chapter 1 was long\nand so was its second line, which goes on\nfor a third one.",
        "Introduction to a long sentence.\n\nText.",
        "Chapter\n\nText.",
        "#hashtag\n\n#!/bin/sh\n\n#\n\nText.",
    ];
    for text in rows {
        assert_eq!(titles(text), ["The Book"], "{text}");
    }
    let long = format!("Chapter 1 {}\n\nText.", "A".repeat(HEADING_CHARS_MAX));
    assert_eq!(titles(&long), ["The Book"]);
}

#[test]
fn a_table_of_contents_has_no_marks() {
    let spaced =
        "Contents\n\nChapter 1\n\nChapter 2\n\nChapter 1\n\nIt began.\n\nChapter 2\n\nIt ended.";
    assert_eq!(titles(spaced), ["The Book", "Chapter 1", "Chapter 2"]);
    let listed = "Contents\n\nChapter 1\nChapter 2\nChapter 3\n\nChapter 1\n\nIt began.";
    assert_eq!(titles(listed), ["The Book", "Chapter 1"]);
    assert_eq!(titles("Part I\n\nChapter 1\n\nText."), ["Part I", "Chapter 1"]);
}

#[test]
fn every_word_is_in_one_part() {
    let paragraph = "A sentence of a book. ".repeat(50);
    let text = format!(
        "{}\n\nChapter 1\n\n{}\n\n{}\n\nChapter 2\n\nShort.\n\n",
        "word ".repeat(3_000),
        [&*paragraph; 9].join("\n\n"),
        "é".repeat(PART_BYTES_MAX),
    );
    let chapters = book_chapters(&text, "The Book");
    let parts = book_parts(&text, &chapters);
    let spoken: String = parts.iter().map(|part| &text[part.range.clone()]).collect();
    let letters = |text: &str| -> String { text.split_whitespace().collect() };
    assert_eq!(letters(&spoken), letters(&text));
    assert!(parts.iter().all(|part| part.range.len() <= PART_BYTES_MAX));
    for (number, chapter) in chapters.iter().enumerate() {
        let own: Vec<&BookPart> = parts.iter().filter(|part| part.chapter == number).collect();
        assert_eq!(own.last().map(|part| part.end), Some(PartEnd::Chapter), "{}", chapter.title);
        assert_eq!(own.first().map(|part| part.range.start), Some(chapter.range.start));
    }
    let ends: Vec<PartEnd> = parts.iter().map(|part| part.end).collect();
    assert!(ends.contains(&PartEnd::Paragraph) && ends.contains(&PartEnd::Sentence), "{ends:?}");
    assert!(book_parts(" \n\n ", &book_chapters(" \n\n ", "")).is_empty());
}

#[test]
fn a_long_paragraph_is_divided_between_sentences() {
    for sentence in ["Mr. Fox met Prof. Hare in the town. ", "वह आज घर गया। ", "彼は帰った。"]
    {
        let text = sentence.repeat(2 * PART_BYTES_MAX / sentence.len());
        let parts = book_parts(&text, &book_chapters(&text, "The Book"));
        assert!(parts.len() > 1, "{sentence}");
        for part in parts {
            let spoken = text[part.range].trim_end();
            assert!(spoken.ends_with(sentence.trim_end()), "{spoken}");
        }
    }
}

#[test]
fn a_code_block_is_in_one_part_and_has_no_chapters() {
    for fence in ["```", "~~~~"] {
        let code = format!("{fence}rust\n{}{fence}", "# one\n\n".repeat(PART_BYTES_MAX / 4));
        let text = format!("Before.\n\n{code}\n\nAfter.\n\n{code}\n");
        let parts = book_parts(&text, &book_chapters(&text, "The Book"));
        let spoken: Vec<&str> = parts.iter().map(|part| text[part.range.clone()].trim()).collect();
        assert_eq!(spoken, ["Before.", &*code, "After.", &*code]);
        assert!(parts.iter().all(|part| part.chapter == 0));
        assert_eq!(parts[3].end, PartEnd::Chapter);
    }
}

#[test]
fn a_code_block_without_an_end_hides_nothing() {
    let long = format!("```\n{}```", "word\n".repeat(CODE_BYTES_MAX / 4));
    for opened in ["```\nCode.", &*long] {
        let text = format!("{opened}\n\n# Two\n\n{}", "word ".repeat(PART_BYTES_MAX));
        assert_eq!(titles(&text), ["The Book", "Two"]);
        let parts = book_parts(&text, &book_chapters(&text, "The Book"));
        assert!(parts.iter().all(|part| part.range.len() <= PART_BYTES_MAX));
    }
}

#[test]
fn a_book_of_ten_megabytes_is_divided_whatever_it_is_made_of() {
    let prose = "A sentence of a book. It goes on, and on!\n\n";
    for (piece, megabytes) in [(prose, 10), ("word ", 1), ("é", 1), ("字。", 1)] {
        let text = piece.repeat((megabytes << 20) / piece.len());
        let parts = book_parts(&text, &book_chapters(&text, "The Book"));
        let mut end = 0;
        for part in &parts {
            assert!((1..=PART_BYTES_MAX).contains(&part.range.len()), "{piece:?}: {part:?}");
            assert!(text[end..part.range.start].trim().is_empty(), "{piece:?}: {part:?}");
            end = part.range.end;
        }
        assert!(text[end..].trim().is_empty(), "{piece:?}");
    }
}

#[test]
fn many_headings_are_limited() {
    let text = "# A\n\nText.\n\n".repeat(CHAPTERS_MAX + 1);
    let chapters = book_chapters(&text, "The Book");
    assert_eq!(chapters.len(), CHAPTERS_MAX);
    assert_eq!(chapters.last().map(|chapter| chapter.range.end), Some(text.len()));
}
