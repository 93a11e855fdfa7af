//! Finds words that cannot be all that a person says: "If it rains tomorrow", "My telephone number is 555".
//! A wrong finding delays an answer, so a sentence is complete in case of doubt. Nothing here knows sound or time.

mod words;

use words::{NEVER_ENOUGH, OpenWords, open_words};

/// Part of the word for a telephone, in all languages of the lists.
const TELEPHONE: [&str; 2] = ["phon", "fon"];
/// Words of a clause that may have no comma. A longer one is likely to contain its main clause.
const CLAUSE_WORDS_MAX: usize = 7;
/// Words of a subject without its verb. A longer one is likely to have a verb that no list names.
const SUBJECT_WORDS_MAX: usize = 10;
/// A number that counts what follows is one of the first words: "The last four letters on the plate are".
const COUNT_WITHIN_WORDS: usize = 5;
/// Words of a sentence that is taken back, with those that take it back. Shorter ones are answers: "No, I'm sorry".
const CORRECTED_WORDS_MIN: usize = 5;
/// Marks after which a question or an exclamation is complete.
const COMPLETE_MARKS: [char; 4] = ['?', '!', '？', '！'];
/// Marks after which more must follow. Without the semicolon, which ends a question in Greek.
const OPEN_MARKS: [char; 10] = [',', ':', '-', '–', '—', '…', '，', '、', '；', '：'];

/// Why more words must follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenEnd {
    /// It ends with a comma, a colon, a dash or an ellipsis.
    Punctuation,
    /// A bracket, a quotation or a Spanish question is not closed.
    Bracket,
    /// It has fewer digits than it announces: "My telephone number is 555".
    Digits,
    /// It names some of several things that it announces, without a word such as "and": "The colours are red".
    Several,
    /// It names one of two: "The difference between a crocodile".
    Pair,
    /// It names fewer things than it counts: "The last four letters are M, X".
    Count,
    /// It takes back what it said: "Book a table for two, no, sorry".
    Correction,
    /// It asks for time: "Let me think".
    Hold,
    /// It only announces: "My name is".
    Announcement,
    /// Its last words cannot end a sentence: "I would like to have the", "animals such as".
    LastWord,
    /// It is the first of several steps: "First, open the window".
    FirstStep,
    /// It is a clause without its main clause: "If it rains tomorrow".
    Clause,
    /// It is a subject without its verb: "The reason why I am calling".
    Subject,
}

/// Why the last sentence of a transcript is not complete. `None`: it may be complete.
///
/// `language` is a code ("en") or an English name ("english"). Without a language that has a table, only punctuation and
/// brackets count.
pub(crate) fn open_end(text: &str, language: Option<&str>) -> Option<OpenEnd> {
    let text = text.replace('’', "'");
    let bare = without_closings(&text);
    let is_question = bare.ends_with(COMPLETE_MARKS);
    if bare.ends_with(OPEN_MARKS) || bare.ends_with("...") {
        return Some(OpenEnd::Punctuation);
    }
    if !is_question && is_unclosed(&text) {
        return Some(OpenEnd::Bracket);
    }
    let sentence = Sentence::last_of(bare);
    let known = open_words(language?)?;
    if sentence.ends_with(known.complete) {
        return None;
    }
    if is_question {
        return sentence.is_cut_question(known).then_some(OpenEnd::LastWord);
    }
    let rules = [
        (OpenEnd::Digits, sentence.lacks_digits(known) || sentence.lacks_characters(known)),
        (OpenEnd::Several, sentence.lacks_others(known)),
        (OpenEnd::Pair, sentence.lacks_partner(known)),
        (OpenEnd::Count, sentence.lacks_counted(known)),
        (OpenEnd::Correction, sentence.ends_in_correction(known)),
        (OpenEnd::Hold, sentence.is_one_of(known.holds, known)),
        (OpenEnd::Announcement, sentence.is_one_of(known.announcements, known)),
        (OpenEnd::Subject, sentence.lacks_verb(known)),
        (OpenEnd::LastWord, sentence.ends_openly(known)),
        (OpenEnd::FirstStep, sentence.is_first_step(known)),
        (OpenEnd::Clause, sentence.lacks_main_clause(known) || sentence.is_bare_clause(known)),
    ];
    rules.into_iter().find(|(_, applies)| *applies).map(|(reason, _)| reason)
}

/// Whether more may follow a sentence that is complete: further things or steps ("I need eggs"), the rest of a code
/// ("It is 7-9"), words before the mark that ends it, or after words that seldom end one.
///
/// `language` is as in [`open_end`].
pub(crate) fn may_go_on(text: &str, language: Option<&str>) -> bool {
    let Some(known) = language.and_then(open_words) else { return false };
    let text = text.replace('’', "'");
    let bare = without_closings(&text);
    if bare.ends_with(COMPLETE_MARKS) {
        return false;
    }
    let (sentence, lower) = (Sentence::last_of(bare), bare.to_lowercase());
    let has_last_link = lower.split(is_mark).any(|word| has(known.last_links, word));
    let names_things = || {
        begins_list(&lower, known) || sentence.ends_in_thing(known) || sentence.begins_steps(known)
    };
    sentence.lacks_mark()
        || sentence.ends_in_groups(known)
        || sentence.is_unlikely_end(known)
        || !has_last_link && names_things()
}

/// The last sentence of a text.
#[derive(Debug)]
struct Sentence<'a> {
    /// Without the full stop.
    text: &'a str,
    has_full_stop: bool,
    /// Without punctuation.
    words: Vec<&'a str>,
    lower: Vec<String>,
}

impl Sentence<'_> {
    fn last_of(text: &str) -> Sentence<'_> {
        let body = text.trim_end_matches(['.', '。']);
        let starts = [". ", "? ", "! "].map(|mark| body.rfind(mark).map(|at| at + mark.len()));
        let start = starts.into_iter().flatten().max().unwrap_or_default();
        let words = body[start..].split_whitespace().map(|word| word.trim_matches(is_mark));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        Sentence {
            text: &body[start..],
            has_full_stop: body.len() < text.len(),
            lower: words.iter().map(|word| word.to_lowercase()).collect(),
            words,
        }
    }

    fn ends_with(&self, endings: &str) -> bool {
        let text = format!(" {}", self.lower.join(" "));
        phrases(endings).any(|end| text.ends_with(&format!(" {end}")))
    }

    /// Whether it is one of these phrases, perhaps after words such as "well".
    fn is_one_of(&self, list: &str, known: &OpenWords) -> bool {
        let text = self.without_leads(known).join(" ");
        phrases(list).any(|phrase| phrase == text)
    }

    fn without_leads(&self, known: &OpenWords) -> &[String] {
        let from = self.lower.iter().position(|word| !has(known.leads, word));
        &self.lower[from.unwrap_or_default()..]
    }

    fn lacks_others(&self, known: &OpenWords) -> bool {
        let is_begun = |(words, members): &(&str, &str)| {
            let named = self.lower.iter().rev().take_while(|word| has(members, word)).count();
            let before = format!(" {}", self.lower[..self.lower.len() - named].join(" "));
            named > 0 && before.ends_with(&format!(" {words}"))
        };
        known.several.iter().any(is_begun) && !self.lower.iter().any(|word| has(known.all, word))
    }

    fn lacks_partner(&self, known: &OpenWords) -> bool {
        let text = format!(" {} ", self.lower.join(" "));
        known.pairs.iter().any(|(opening, partners)| {
            let opening = format!(" {opening} ");
            let rest = text.rfind(&opening).map(|at| &text[at + opening.len()..]);
            let is_partner = |word: &str| has(partners, word) || word.contains('@');
            rest.is_some_and(|rest| !rest.split(' ').any(is_partner))
        })
    }

    fn lacks_digits(&self, known: &OpenWords) -> bool {
        let counts = self.lower.iter().rev().map_while(|word| digits_of(word, known));
        let counts: Vec<usize> = counts.collect();
        let (before, numbers) = self.lower.split_at(self.lower.len() - counts.len());
        let before = format!(" {}", before.join(" "));
        let digits: usize = counts.iter().sum();
        let is_service = self.is_service(numbers, known);
        let is_short = |(words, wanted): &(&str, usize)| {
            let is_whole = is_service && is_of_a_telephone(words)
                || *wanted == NEVER_ENOUGH && is_ip_address(numbers);
            digits < *wanted && !is_whole && before.ends_with(&format!(" {words}"))
        };
        digits > 0 && known.announced.iter().any(is_short)
    }

    /// "My postcode is BS8", of which letters count, too.
    fn lacks_characters(&self, known: &OpenWords) -> bool {
        let length_of = |(word, lower): (&&str, &String)| {
            let length =
                word.split('-').map(|part| if is_code(part) { part.len() } else { 0 }).sum();
            digits_of(lower, known).or((length > 0).then_some(length))
        };
        let lengths = self.words.iter().zip(&self.lower).rev().map_while(length_of);
        let lengths: Vec<usize> = lengths.collect();
        let before = format!(" {}", self.lower[..self.lower.len() - lengths.len()].join(" "));
        let characters: usize = lengths.iter().sum();
        let is_short = |(words, wanted): &(&str, usize)| {
            characters < *wanted && before.ends_with(&format!(" {words}"))
        };
        characters > 0 && known.announced_codes.iter().any(is_short)
    }

    /// "The phone number is 112": a known number that is shorter than others. A person's own number is not one of them.
    fn is_service(&self, numbers: &[String], known: &OpenWords) -> bool {
        let number: String = numbers.concat().chars().filter(|c| c.is_ascii_digit()).collect();
        has(known.services, &number) && !self.lower.iter().any(|word| has(known.own, word))
    }

    fn ends_openly(&self, known: &OpenWords) -> bool {
        // Fewer than three words are an exclamation or an answer, such as "Oh my".
        let ([.., last], [first, .., before, _]) = (&self.words[..], &self.lower[..]) else {
            return false;
        };
        // The word is compared as it is written, and the list has "a" and "I'm": "Vitamin A" ends a sentence.
        if has(known.last, last) || self.ends_with(known.last_phrases) {
            return !has(known.mentions, before);
        }
        let is_command = self.is_command(known);
        if is_command && has(known.relative_ends, last) && !has(known.persons, before) {
            return true;
        }
        let is_link = !self.has_full_stop && has(known.links, last)
            || is_command && has(known.command_links, last) && !has(known.persons, before);
        let has_one_of = |list: &str| self.lower.iter().any(|word| has(list, word));
        // A later subject may begin a relative clause: "Play the song I asked for". A verb needs more: "The song I like is".
        let ends_clause = || {
            has_one_of(known.pronouns)
                || self.lower.iter().skip(2).any(|word| has(known.subjects, word))
        };
        let may_be_last = has(known.questions, first)
            || has(known.pronouns, first)
            || [known.subjects, known.pronouns].iter().any(|list| has(list, before))
            || has_one_of(known.relatives)
            // "Bring something heavy to hide under".
            || is_command && self.lower.iter().rev().nth(2).is_some_and(|word| has(known.infinitive, word))
            || !has(known.verbs, last) && ends_clause();
        is_link && !may_be_last
    }

    /// Transcribers write a question mark after the beginning of a question, too: "Can you open the?" Other questions may
    /// end in such a word: "What is it open until?", "Is it tea or?"
    fn is_cut_question(&self, known: &OpenWords) -> bool {
        let words = (self.without_leads(known), self.words.last());
        let ([first, .., before, _], Some(last)) = words else { return false };
        has(known.questions, first)
            && has(known.last, last)
            && !has(known.mentions, before)
            && !has(known.last_links, last)
            && !self.lower.iter().any(|word| has(known.relatives, word))
    }

    /// A transcriber that begins sentences with a capital letter marks their ends, too, but not after every name or number.
    fn lacks_mark(&self) -> bool {
        let is_begun = self.words.first().is_some_and(|word| word.starts_with(char::is_uppercase));
        is_begun && !self.has_full_stop && self.words.len() > 2
    }

    /// Whether its last digits or letters are read one at a time or in groups: "It is 7-9", "B-R-O". Small letters are words.
    fn ends_in_groups(&self, known: &OpenWords) -> bool {
        let groups = self.words.iter().rev().flat_map(|word| word.rsplit('-'));
        let is_letter = |group: &str| matches!(group.as_bytes(), [b'A'..=b'Z']);
        let is_read = |group: &&str| is_letter(group) || digits_of(group, known).is_some();
        groups.take_while(is_read).nth(1).is_some()
    }

    fn is_first_step(&self, known: &OpenWords) -> bool {
        self.begins_steps(known) && !self.lower.iter().any(|word| has(known.further, word))
    }

    fn begins_steps(&self, known: &OpenWords) -> bool {
        let [first, second, _, ..] = &self.lower[..] else { return false };
        let has_comma = self.text.split_whitespace().next().is_some_and(|word| word.ends_with(','));
        let is_marked = has_comma || has(known.commands, second);
        has(known.first, first) || is_marked && has(known.first_marked, first)
    }

    fn lacks_main_clause(&self, known: &OpenWords) -> bool {
        let [first, second, rest @ ..] = &self.lower[..] else { return false };
        let of_main_clauses = [known.main_clause, known.commands, known.questions];
        let is_of_main = |word: &String| of_main_clauses.iter().any(|list| has(list, word));
        !rest.is_empty()
            && self.lower.len() <= CLAUSE_WORDS_MAX
            && has(known.clauses, first)
            && has(known.subjects, second)
            && !self.text.contains(',')
            && !rest.iter().any(|word| has(known.subjects, word))
            // After the verb of the clause: "If it rains call me", which may lack its comma.
            && !rest.iter().skip(1).any(is_of_main)
    }

    /// Whether it is a clause such as "Even though it rained" or "Every time the bins go out".
    fn is_bare_clause(&self, known: &OpenWords) -> bool {
        let words = self.without_leads(known);
        let Some(rest) = words_after(known.long_clauses, words) else { return false };
        let is_subject = |word: &String| has(known.subjects, word);
        let is_of_main = |word: &String| has(known.main_clause, word) || has(known.commands, word);
        (3..SUBJECT_WORDS_MAX).contains(&rest.len())
            && !self.text.contains(',')
            && !rest.iter().skip(1).any(is_subject)
            // After the verb of the clause.
            && !rest.iter().skip(2).any(is_of_main)
    }

    /// Whether it tells someone to do something: "Move the chair".
    fn is_command(&self, known: &OpenWords) -> bool {
        self.without_leads(known).first().is_some_and(|first| has(known.imperatives, first))
    }

    /// "The last four letters are M, X": a number, a verb, and fewer things than that.
    fn lacks_counted(&self, known: &OpenWords) -> bool {
        let count_of = |(at, word): (usize, &String)| {
            let place = known.counts.split(' ').position(|number| number == word);
            Some((at, place.map(|place| place + 2).or_else(|| word.parse().ok())?))
        };
        let first_words = self.lower.iter().enumerate().take(COUNT_WITHIN_WORDS).skip(1);
        let Some((at, count)) = first_words.filter_map(count_of).next() else { return false };
        let is_verb = |word: &String| has(known.counting_verbs, word);
        let Some(verb) = self.lower.iter().skip(at).position(is_verb).map(|place| at + place)
        else {
            return false;
        };
        let named: Vec<&str> = self.text.split_whitespace().skip(verb + 1).collect();
        let commas = named.iter().filter(|word| word.ends_with(',')).count();
        let is_read = self.lower[at..verb].iter().any(|word| has(known.counted, word));
        let things = match commas {
            0 => named.iter().map(|word| things_in(word)).sum(),
            commas => commas + 1,
        };
        // "My two brothers are tall" describes both.
        (commas > 0 || is_read)
            && (1..count).contains(&things)
            && !self.lower[verb..].iter().any(|word| has(known.last_links, word))
    }

    /// "Wake me at six, no, sorry". "I cannot come, no, sorry" is an answer.
    fn ends_in_correction(&self, known: &OpenWords) -> bool {
        let is_person = |first: &String| has(known.subjects, first) || has(known.pronouns, first);
        let is_answer = self.without_leads(known).first().is_none_or(is_person);
        let ends = phrases(known.command_corrections);
        let has_end = |end: &str| self.text.to_lowercase().ends_with(&format!(", {end}"));
        let is_taken_back = !is_answer && self.ends_with(known.corrections)
            || self.is_command(known) && ends.into_iter().any(has_end);
        self.lower.len() >= CORRECTED_WORDS_MIN && is_taken_back
    }

    /// Whether its last words seldom end a sentence, or its first words seldom begin a complete one.
    fn is_unlikely_end(&self, known: &OpenWords) -> bool {
        let words = self.without_leads(known);
        let ([first, .., last], true) = (words, words.len() > 2) else { return false };
        let has_comma = self.text.contains(',');
        let has_relative = || words[1..].iter().any(|word| has(known.relative_subjects, word));
        has(known.prepositions, last)
            || words_after(known.beginnings, words).is_some() && !has_comma
            || has(known.articles, first) && has_relative() && !has_comma
    }

    /// Whether its last thing is named after a comma: "Are carrots, parsnips". A name there may be that of the listener.
    fn ends_in_thing(&self, known: &OpenWords) -> bool {
        let Some((before, thing)) = self.text.rsplit_once(',') else { return false };
        let is_name = thing.trim_start().starts_with(char::is_uppercase);
        let (before, thing) = (before.to_lowercase(), thing.to_lowercase());
        let is_other = |word: &str| {
            [known.leads, known.no_things, known.subjects].iter().any(|list| has(list, word))
        };
        let is_answer = before.split(is_mark).all(|word| has(known.leads, word));
        let is_listener = is_name && before.contains(' ') && !before.contains(',');
        !known.last_links.is_empty()
            && !is_answer
            && !is_listener
            && thing.split_whitespace().count() <= 2
            && !thing.split_whitespace().any(is_other)
    }

    fn lacks_verb(&self, known: &OpenWords) -> bool {
        let words = self.without_leads(known);
        let text = words.join(" ");
        let is_alone = |(opening, first_words): &(&str, &str)| {
            let rest = text.strip_prefix(*opening).and_then(|rest| rest.strip_prefix(' '));
            let mut rest = rest.unwrap_or_default().split(' ');
            let first = rest.next().unwrap_or_default();
            // A verb that ends the sentence needs more, too: "What I want is".
            rest.next_back();
            !first.is_empty()
                && (first_words.is_empty() || has(first_words, first))
                && !rest.any(|word| word.ends_with("'s") || has(known.verbs, word))
        };
        // What follows a mark may be the rest of the sentence: "What we need: eggs".
        let mut pieces = self.text.split_whitespace().rev().take(words.len());
        words.len() <= SUBJECT_WORDS_MAX
            && !pieces.any(|piece| piece.ends_with(OPEN_MARKS))
            && known.long_subjects.iter().any(is_alone)
    }
}

/// Without the marks that may follow the end of a sentence.
fn without_closings(text: &str) -> &str {
    text.trim_end_matches(|c: char| c.is_whitespace() || "\"”“»«)]".contains(c))
}

/// The words after the longest of these phrases with which a sentence begins.
fn words_after<'a>(list: &str, words: &'a [String]) -> Option<&'a [String]> {
    let length = |phrase: &str| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        (words.len() >= phrase.len() && words.iter().zip(&phrase).all(|(a, b)| a == b))
            .then_some(phrase.len())
    };
    phrases(list).filter_map(length).max().map(|length| &words[length..])
}

/// Whether a character belongs to no word.
fn is_mark(c: char) -> bool {
    !c.is_alphanumeric() && c != '\''
}

/// Whether a text in lower case ends with a verb that takes several things, and with one or more of them. Transcribers
/// write a comma or a full stop after each.
fn begins_list(text: &str, known: &OpenWords) -> bool {
    let pieces = text.split([',', '.']);
    let pieces = pieces.map(|piece| piece.split_whitespace().collect::<Vec<&str>>());
    let pieces: Vec<Vec<&str>> = pieces.filter(|words| !words.is_empty()).collect();
    let is_command = |words: &[&str]| has(known.list_commands, words[0]);
    let is_head = |words: &Vec<&str>| words.len() > 2 || is_command(words);
    let Some(head) = pieces.iter().rposition(is_head) else { return false };
    let things = match &pieces[head][..] {
        [_, things @ ..] if is_command(&pieces[head]) => things,
        [subject, verb, things @ ..]
            if has(known.subjects, subject) && has(known.list_verbs, verb) =>
        {
            things
        }
        _ => return false,
    };
    let mut named = things.iter().chain(pieces[head + 1..].iter().flatten());
    things.len() <= 2 && !named.any(|word| has(known.no_things, word))
}

/// Things that a word of a list without commas stands for: three in "M-X-O" and in "MXO".
fn things_in(word: &str) -> usize {
    if is_code(word) { word.len() } else { word.split('-').count() }
}

/// Whether it has only digits and capital letters.
fn is_code(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

/// Digits that a word stands for. `None`: it is not a number.
fn digits_of(word: &str, known: &OpenWords) -> Option<usize> {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let is_number = digits > 0 && !word.chars().any(char::is_alphabetic);
    if is_number { Some(digits) } else { has(known.digits, word).then_some(1) }
}

/// Whether these words announce a telephone number. A house or a place may have the number of a service.
fn is_of_a_telephone(words: &str) -> bool {
    TELEPHONE.iter().any(|part| words.contains(part))
}

fn is_ip_address(numbers: &[String]) -> bool {
    let [number] = numbers else { return false };
    number.split('.').count() == 4 && number.split('.').all(|part| part.parse::<u8>().is_ok())
}

/// Quotation marks of all kinds come in pairs. One after a digit may mean inches.
fn is_unclosed(text: &str) -> bool {
    let quotes = text.matches(['"', '“', '”', '„']).count();
    let is_inch = |(at, _): (usize, &str)| text[..at].ends_with(|c: char| c.is_ascii_digit());
    let has_inches = text.match_indices('"').any(is_inch);
    let is_open =
        |(open, close): (char, char)| text.matches(open).count() > text.matches(close).count();
    let brackets = [('(', ')'), ('[', ']'), ('«', '»'), ('¿', '?'), ('¡', '!')];
    quotes % 2 == 1 && !has_inches || brackets.into_iter().any(is_open)
}

/// The phrases of a list.
fn phrases(list: &str) -> impl Iterator<Item = &str> {
    list.split(", ").filter(|phrase| !phrase.is_empty())
}

/// Whether a list of words, with spaces between them, contains this one.
fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|one| one == word)
}

#[cfg(test)]
mod tests;
