//! Abbreviations that end in a full stop: how to read them, and whether a sentence can end there.
//! The segmenter and the normaliser share this table, so they agree on what is an abbreviation.

/// What a full stop after the abbreviation can mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Text always follows: "Dr.", "e.g.".
    Never,
    /// An abbreviation only before a number: "No. 5", "p. 12". Otherwise it is a word and a full stop.
    BeforeNumber,
    /// Possible in the middle and at the end of a sentence: "etc.", "Inc.", "Jan.".
    Sometimes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Abbreviation {
    pub(crate) said: &'static str,
    pub(crate) ending: Ending,
}

/// Looks up a word with its inner full stops but without the last one, in any case.
pub(crate) fn abbreviation(word: &str) -> Option<Abbreviation> {
    // The longest entry has 7 letters, so longer words are not copied.
    if word.len() > 8 {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let (_, said, ending) = TABLE.iter().find(|(short, ..)| *short == lower)?;
    Some(Abbreviation { said, ending: *ending })
}

use Ending::{BeforeNumber, Never, Sometimes};

const TABLE: &[(&str, &str, Ending)] = &[
    ("dr", "Doctor", Never),
    ("mr", "Mister", Never),
    ("mrs", "Missus", Never),
    ("ms", "Miz", Never),
    ("mx", "Mix", Never),
    ("prof", "Professor", Never),
    ("st", "Saint", Never),
    ("mt", "Mount", Never),
    ("ft", "feet", Sometimes),
    ("gen", "General", Never),
    ("col", "Colonel", Never),
    ("capt", "Captain", Never),
    ("lt", "Lieutenant", Never),
    ("sgt", "Sergeant", Never),
    ("cpl", "Corporal", Never),
    ("cmdr", "Commander", Never),
    ("adm", "Admiral", Never),
    ("maj", "Major", Never),
    ("rev", "Reverend", Never),
    ("hon", "Honorable", Never),
    ("pres", "President", Never),
    ("gov", "Governor", Never),
    ("sen", "Senator", Never),
    ("rep", "Representative", Never),
    ("supt", "Superintendent", Never),
    ("messrs", "Messrs", Never),
    ("e.g", "for example", Never),
    ("eg", "for example", Never),
    ("i.e", "that is", Never),
    ("ie", "that is", Never),
    ("cf", "compare", Never),
    ("viz", "namely", Never),
    ("vs", "versus", Never),
    ("v.s", "versus", Never),
    ("approx", "approximately", Never),
    ("ca", "circa", Never),
    ("est", "established", BeforeNumber),
    ("no", "number", BeforeNumber),
    ("nos", "numbers", BeforeNumber),
    ("nr", "number", BeforeNumber),
    ("p", "page", BeforeNumber),
    ("pp", "pages", BeforeNumber),
    ("pg", "page", BeforeNumber),
    ("vol", "volume", BeforeNumber),
    ("ch", "chapter", BeforeNumber),
    ("chap", "chapter", BeforeNumber),
    ("sec", "section", BeforeNumber),
    ("fig", "figure", BeforeNumber),
    ("figs", "figures", BeforeNumber),
    ("eq", "equation", BeforeNumber),
    ("ed", "edition", BeforeNumber),
    ("art", "article", BeforeNumber),
    ("para", "paragraph", BeforeNumber),
    ("ver", "version", BeforeNumber),
    ("tel", "telephone", BeforeNumber),
    ("ext", "extension", BeforeNumber),
    ("min", "minimum", BeforeNumber),
    ("max", "maximum", BeforeNumber),
    ("etc", "et cetera", Sometimes),
    ("et al", "et al", Sometimes),
    ("al", "al", Sometimes),
    ("inc", "Incorporated", Sometimes),
    ("ltd", "Limited", Sometimes),
    ("corp", "Corporation", Sometimes),
    ("co", "Company", Sometimes),
    ("bros", "Brothers", Sometimes),
    ("dept", "department", Sometimes),
    ("univ", "university", Sometimes),
    ("assn", "association", Sometimes),
    ("govt", "government", Sometimes),
    ("jr", "Junior", Sometimes),
    ("sr", "Senior", Sometimes),
    ("esq", "Esquire", Sometimes),
    ("ave", "Avenue", Sometimes),
    ("blvd", "Boulevard", Sometimes),
    ("rd", "Road", Sometimes),
    ("ln", "Lane", Sometimes),
    ("hwy", "Highway", Sometimes),
    ("apt", "apartment", Sometimes),
    ("bldg", "Building", Sometimes),
    ("ct", "Court", Sometimes),
    ("pl", "Place", Sometimes),
    ("ter", "Terrace", Sometimes),
    ("plz", "Plaza", Sometimes),
    ("pkwy", "Parkway", Sometimes),
    ("attn", "attention", Sometimes),
    ("eds", "editors", Sometimes),
    ("jan", "January", Sometimes),
    ("feb", "February", Sometimes),
    ("mar", "March", Sometimes),
    ("apr", "April", Sometimes),
    ("jun", "June", Sometimes),
    ("jul", "July", Sometimes),
    ("aug", "August", Sometimes),
    ("sep", "September", Sometimes),
    ("sept", "September", Sometimes),
    ("oct", "October", Sometimes),
    ("nov", "November", Sometimes),
    ("dec", "December", Sometimes),
    ("mon", "Monday", Sometimes),
    ("tue", "Tuesday", Sometimes),
    ("tues", "Tuesday", Sometimes),
    ("wed", "Wednesday", Sometimes),
    ("thu", "Thursday", Sometimes),
    ("thur", "Thursday", Sometimes),
    ("thurs", "Thursday", Sometimes),
    ("fri", "Friday", Sometimes),
    ("sat", "Saturday", Sometimes),
    ("sun", "Sunday", Sometimes),
    ("a.m", "A M", Sometimes),
    ("p.m", "P M", Sometimes),
    ("a.d", "A D", Sometimes),
    ("b.c", "B C", Sometimes),
    ("ph.d", "P H D", Sometimes),
    ("m.d", "M D", Sometimes),
    ("b.a", "B A", Sometimes),
    ("m.a", "M A", Sometimes),
    ("b.sc", "B S C", Sometimes),
    ("m.sc", "M S C", Sometimes),
    ("hr", "hour", Sometimes),
    ("hrs", "hours", Sometimes),
    ("mins", "minutes", Sometimes),
    ("secs", "seconds", Sometimes),
    ("lb", "pounds", Sometimes),
    ("lbs", "pounds", Sometimes),
    ("oz", "ounces", Sometimes),
    ("tbsp", "tablespoons", Sometimes),
    ("tsp", "teaspoons", Sometimes),
    ("yd", "yards", Sometimes),
    ("yds", "yards", Sometimes),
    ("sq", "square", Never),
    ("incl", "including", Sometimes),
    ("excl", "excluding", Sometimes),
    ("misc", "miscellaneous", Sometimes),
    ("w.r.t", "with respect to", Sometimes),
    ("a.k.a", "also known as", Sometimes),
    ("p.s", "P S", Sometimes),
    ("r.s.v.p", "R S V P", Sometimes),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_in_any_case_and_nothing_else() {
        let said = |word| abbreviation(word).map(|found| found.said);
        assert_eq!(said("Dr"), Some("Doctor"));
        assert_eq!(said("e.g"), Some("for example"));
        assert_eq!(said("NO"), Some("number"));
        assert_eq!(said("end"), None);
        assert_eq!(said("Mediclinics"), None);
    }

    #[test]
    fn no_entry_is_there_twice() {
        let mut shorts: Vec<&str> = TABLE.iter().map(|(short, ..)| *short).collect();
        shorts.sort_unstable();
        let count = shorts.len();
        shorts.dedup();
        assert_eq!(shorts.len(), count);
        assert!(shorts.iter().all(|short| short.len() <= 8), "abbreviation() looks no further");
    }
}
