//! Addresses: URLs and e-mail by their parts, IP addresses, versions, files and paths, @names and
//! #tags.

use super::View;
use super::cardinal::{by_digit, cardinal};
use super::item::Word;
use super::number::dotted;
use super::numeral::is_digits;
use super::symbol::name;
use super::word::say_letters_and_digits;
use crate::reading::Reading;
use crate::word_table::has;

/// With these endings, "word.ending" is a website or a file, not two sentences without a space.
const ENDINGS: &str = "
    com org net io dev ai co edu gov info app uk de fr it es eu us ca au nl ch at jp cn in me tv
    xyz rs py js ts md txt pdf png jpg jpeg gif svg html css json toml yaml yml xml csv exe zip gz
    tar sh cpp hpp h c go java rb php mp3 mp4 wav ogg flac doc docx xls xlsx ppt pptx onnx gguf
    bin lock log conf cfg ini sql db so dll local home lan";

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let done = version(view, word, out)
        || ip(word, out)
        || url(word, out)
        || mail_or_name(word, out)
        || colour_or_tag(word, out)
        || dotted_name(word, out)
        || path(word, out);
    done.then_some(1)
}

/// "v2.10", "2.10.1", and "2.10" after the word "version".
fn version(view: View<'_>, word: &Word, out: &mut Reading) -> bool {
    let number = word.text.strip_prefix(['v', 'V']).unwrap_or(&word.text);
    let called = view.before().is_some_and(|before| {
        matches!(
            &*before.text.to_lowercase(),
            "version" | "v" | "release" | "python" | "rust" | "node"
        )
    });
    let marked = number.len() < word.text.len();
    // "1.2.3-rc1" has a number and a name.
    let core = number.split(['-', '+']).next().unwrap_or(number);
    let has_three_parts = core.matches('.').count() == 2 && !is_date(core);
    if !(marked || called || has_three_parts) {
        return false;
    }
    let Some(said) = dotted(core, view.british) else { return false };
    let end = word.text.len() - number.len() + core.len();
    out.say(word.span_of(0..end), &if marked { format!("version {said}") } else { said });
    say_letters_and_digits(word, end..word.text.len(), out);
    true
}

/// "25.12.2023"
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let [day, month, year] = parts[..] else { return false };
    let is_short = |text: &str| text.parse::<u64>().is_ok_and(|number| (1..=31).contains(&number));
    let is_year = year.parse::<u64>().is_ok_and(|year| (1900..2100).contains(&year));
    is_short(day) && is_short(month) && is_year
}

/// "192.168.0.1", possibly with a port, or with the length of a network: "10.0.0.0/8".
fn ip(word: &Word, out: &mut Reading) -> bool {
    let (address, network) =
        word.text.split_once('/').map_or((&*word.text, None), |(a, n)| (a, Some(n)));
    let (host, port) = address.split_once(':').map_or((address, None), |(h, p)| (h, Some(p)));
    let parts: Vec<&str> = host.split('.').collect();
    let number = |part: &&str| is_digits(part, 1..=3);
    let is_network = network.is_none_or(|bits| is_digits(bits, 1..=2));
    let is_port = port.is_none_or(|port| is_digits(port, 1..));
    if parts.len() != 4 || !parts.iter().all(number) || !is_network || !is_port {
        return false;
    }
    let groups: Vec<String> = parts.iter().map(|part| by_digit(part)).collect();
    let port = port.map(|port| format!(" port {}", by_digit(port))).unwrap_or_default();
    let network = network.map(|bits| format!(" slash {}", cardinal(bits, false)));
    let network = network.unwrap_or_default();
    out.say(word.span(), &format!("{}{port}{network}", groups.join(" dot ")));
    true
}

fn url(word: &Word, out: &mut Reading) -> bool {
    let scheme = word.text.find("://").filter(|at| {
        *at > 0 && word.text[..*at].bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+')
    });
    let start = match scheme {
        Some(at) => at + 3,
        None if word.text.starts_with("www.") => 0,
        None => return false,
    };
    if start > 0 && !word.text.starts_with("http") {
        say_letters_and_digits(word, 0..start - 3, out);
    }
    parts(word, start, out);
    true
}

/// "ann@example.com" and "@ann".
fn mail_or_name(word: &Word, out: &mut Reading) -> bool {
    let found = match word.text.split_once('@') {
        Some(("", name)) => is_name(name),
        Some((user, host)) => is_name(user) && host.contains('.') && is_name(host),
        None => false,
    };
    if found {
        parts(word, 0, out);
    }
    found
}

/// "#FF8800" and "#WorldBookDay".
fn colour_or_tag(word: &Word, out: &mut Reading) -> bool {
    if is_colour(&word.text) {
        out.say(word.span_of(0..1), "hash");
        for (at, digit) in word.text.char_indices().skip(1) {
            let span = word.span_of(at..at + 1);
            match digit {
                '0'..='9' => out.say(span, &by_digit(&digit.to_string())),
                _ => out.spell(span, &digit.to_string()),
            }
        }
        return true;
    }
    let Some(tag) = word.text.strip_prefix('#') else { return false };
    let is_tag = tag.starts_with(char::is_alphabetic) && is_name(tag);
    if is_tag {
        out.say(word.span_of(0..1), "hashtag");
        parts(word, 1, out);
    }
    is_tag
}

/// "#FF8800": six hexadecimal digits, letters and numbers among them, or numbers that begin with a zero.
fn is_colour(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or_default();
    let has_letter = digits.bytes().any(|b| b.is_ascii_alphabetic());
    digits.len() == 6
        && digits.bytes().all(|b| b.is_ascii_hexdigit())
        && digits.bytes().any(|b| b.is_ascii_digit())
        && (has_letter || digits.starts_with('0'))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+'))
}

/// "example.com/a", "main.rs", "Node.js".
fn dotted_name(word: &Word, out: &mut Reading) -> bool {
    let host = word.text.split(['/', ':', '?']).next().unwrap_or_default();
    let Some((name, ending)) = host.rsplit_once('.') else { return false };
    let known = has(ENDINGS, &ending.to_ascii_lowercase());
    let letters = name.chars().any(char::is_alphabetic) || ending.len() > 2;
    // "U.S.C." has letters, not a name and its ending.
    let single = host.split('.').all(|part| part.chars().count() == 1);
    if !known || !letters || single || !(name.is_empty() || is_name(name)) {
        return false;
    }
    parts(word, 0, out);
    true
}

/// "/usr/bin", "~/notes", "../a", "src/main.rs", ".gitignore", "C:\\Users".
fn path(word: &Word, out: &mut Reading) -> bool {
    let text = &word.text;
    let rooted = ["/", "~/", "./", "../"].into_iter().any(|root| text.starts_with(root));
    let drive = text.len() > 3 && text.get(1..).is_some_and(|rest| rest.starts_with(":\\"));
    let named = rooted && text.chars().any(char::is_alphanumeric);
    if !(drive || named || is_file(text) || is_hidden(text)) {
        return false;
    }
    parts(word, 0, out);
    true
}

/// A file in a folder, by its ending: "src/main.rs".
fn is_file(text: &str) -> bool {
    let Some((folder, file)) = text.rsplit_once('/') else { return false };
    let Some((name, ending)) = file.rsplit_once('.') else { return false };
    let known = has(ENDINGS, &ending.to_ascii_lowercase());
    known && is_name(name) && folder.split('/').all(is_name)
}

/// ".gitignore" and ".NET".
fn is_hidden(text: &str) -> bool {
    let name = text.strip_prefix('.').unwrap_or_default();
    (name.starts_with(|c: char| c.is_ascii_lowercase()) || name == "NET") && is_name(name)
}

/// Names with the words for the symbols between them: "dot", "slash", "at".
fn parts(word: &Word, start: usize, out: &mut Reading) {
    let end = word.text.trim_end_matches('/').len();
    let mut from = start;
    for (at, symbol) in
        word.text[..end].char_indices().filter(|(at, c)| *at >= start && !c.is_alphanumeric())
    {
        say_letters_and_digits(word, from..at, out);
        let called = match symbol {
            '.' => "dot",
            '-' | '–' => "dash",
            '_' => "underscore",
            ':' => "colon",
            '?' => "question mark",
            '~' => "tilde",
            '#' => "hash",
            ',' => "comma",
            _ => name(symbol).unwrap_or_default(),
        };
        out.say(word.span_of(at..at + symbol.len_utf8()), called);
        from = at + symbol.len_utf8();
    }
    say_letters_and_digits(word, from.min(end)..end, out);
}
