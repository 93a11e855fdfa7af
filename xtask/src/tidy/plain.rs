//! Finds signs of prose that a reader has to decipher: words and sentence openings that hide the subject.
//! It reads comments, text in string literals, and Markdown. `docs/GLOSSARY.md` defines hob's own nouns.

use crate::tree::File;

/// Words and phrases that hide who does what. Matched as whole words, in any case.
const PHRASES: [&str; 13] = [
    concat!("no", "body"),
    concat!("some", "body"),
    concat!("who", "ever"),
    concat!("an", "ew"),
    concat!("of it", "self"),
    concat!("to", "ld"),
    concat!("asked", " of"),
    concat!("become", " of"),
    concat!("becomes", " of"),
    concat!("is", " none"),
    concat!("be", "side"),
    concat!("does not let it", "self"),
    concat!("lies in", " wait"),
];

/// Openings of a sentence whose subject comes late or never.
const OPENINGS: [&str; 5] = [
    concat!("O", "f "),
    concat!("None", " of "),
    concat!("None", " is "),
    concat!("None", " but "),
    concat!("Who", "se "),
];

pub(crate) fn complaints(files: &[File]) -> Vec<String> {
    files.iter().flat_map(signs).collect()
}

fn signs(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    for (line, number) in file.text.lines().zip(1..) {
        for prose in prose(&file.path, line) {
            if let Some(sign) = sign(prose) {
                found.push(format!("{}:{number}: \"{sign}\" in: {}", file.path, prose.trim()));
            }
        }
    }
    found
}

/// The parts of a line that people read.
fn prose<'a>(path: &str, line: &'a str) -> Vec<&'a str> {
    let is_code = [".rs", ".js", ".mjs"].iter().any(|end| path.ends_with(end));
    if path.ends_with(".md") {
        return vec![line.trim_start_matches(['-', '*', '#', '|', ' '])];
    }
    if !is_code {
        return Vec::new();
    }
    let (code, comment) = match line.find("//").filter(|at| !line[..*at].ends_with(':')) {
        Some(at) => (&line[..at], Some(line[at..].trim_start_matches(['/', '!', ' ']))),
        None => (line, None),
    };
    // A literal with two spaces in it is a sentence; a shorter one is a key. `{{ ` opens an expression of a template.
    let is_prose = |text: &&str| text.matches(' ').count() >= 2 && !text.contains("{{ ");
    let literals = code.split('"').skip(1).step_by(2).filter(is_prose);
    comment.into_iter().chain(literals).collect()
}

fn sign(prose: &str) -> Option<&'static str> {
    let lower = prose.to_lowercase();
    let phrase = PHRASES.into_iter().find(|phrase| has_words(&lower, phrase));
    phrase.or_else(|| OPENINGS.into_iter().find(|opening| opens_a_sentence(prose, opening)))
}

fn has_words(text: &str, phrase: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || c == '_' || c == '`';
    text.match_indices(phrase).any(|(at, _)| {
        !text[..at].ends_with(inner) && !text[at + phrase.len()..].starts_with(inner)
    })
}

fn opens_a_sentence(text: &str, opening: &str) -> bool {
    text.match_indices(opening).any(|(at, _)| at == 0 || text[..at].ends_with(". "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, found: usize) {
        let text = text.replace('!', "");
        assert_eq!(signs(&File::new(path, &text)).len(), found, "{path}: {text}");
    }

    #[test]
    fn each_phrase_and_each_opening_is_found() {
        for phrase in PHRASES {
            check("a.md", &format!("hob {phrase} it."), 1);
        }
        for opening in OPENINGS {
            check("a.md", &format!("Retries. {opening}them all."), 1);
        }
        check("a.md", "One of them. The end of it!self.", 1);
        check("a.md", "Retries the next target when a stream stalls for 30 s.", 0);
    }

    #[test]
    fn comments_and_sentences_are_read_and_code_is_not() {
        check("a.rs", "// no!body", 1);
        check("a.rs", "/// Of! those.", 1);
        check("a.rs", "let no!body = f(\"no!body\");", 0);
        check("a.rs", "error(\"no!body was there\")", 1);
        check("a.rs", "render(\"{{ tools is! none }}\")", 0);
        check("a.rs", "let url = \"http://no!body\";", 0);
        check("a.js", "label(\"it was to!ld twice\"); // fine", 1);
        check("a.toml", "# no!body", 0);
    }
}
