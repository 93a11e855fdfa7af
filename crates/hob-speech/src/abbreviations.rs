//! Abbreviations that end in a full stop: how to read them, and whether a sentence can end there.
//! The segmenter and the normaliser share this table, so they agree on what is an abbreviation.

use crate::word_table::find;

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

/// Short forms and what is said for them, by what a full stop behind them can mean.
#[derive(Debug)]
pub(crate) struct ShortForms {
    pub(crate) never: &'static str,
    pub(crate) before_number: &'static str,
    pub(crate) sometimes: &'static str,
}

impl ShortForms {
    /// Looks up a short form in small letters.
    pub(crate) fn find(&self, lower: &str) -> Option<Abbreviation> {
        [
            (self.never, Ending::Never),
            (self.before_number, Ending::BeforeNumber),
            (self.sometimes, Ending::Sometimes),
        ]
        .into_iter()
        .find_map(|(table, ending)| Some(Abbreviation { said: find(table, lower)?, ending }))
    }
}

/// Looks up a word with its inner full stops but without the last one, in any case.
pub(crate) fn abbreviation(word: &str) -> Option<Abbreviation> {
    // No entry is longer, so longer words are not copied.
    if word.len() > 8 {
        return None;
    }
    ENGLISH.find(&word.to_ascii_lowercase())
}

const ENGLISH: ShortForms = ShortForms {
    never: "
        dr Doctor, mr Mister, mrs Missus, ms Miz, mx Mix, prof Professor, st Saint, mt Mount,
        gen General, col Colonel, capt Captain, lt Lieutenant, sgt Sergeant, cpl Corporal,
        cmdr Commander, adm Admiral, maj Major, rev Reverend, hon Honorable, pres President,
        gov Governor, sen Senator, rep Representative, supt Superintendent, messrs Messrs,
        e.g for example, eg for example, i.e that is, ie that is, cf compare, viz namely,
        vs versus, v.s versus, approx approximately, ca circa, sq square, cllr Councillor,
        rte Route, mvt movement",
    before_number: "
        est established, no number, nos numbers, nr number, p page, pp pages, pg page, vol volume,
        ch chapter, chap chapter, sec section, fig figure, figs figures, eq equation, ed edition,
        art article, para paragraph, ver version, tel telephone, ext extension, min minimum,
        max maximum, op opus, reg regulation, lic license, edn edition, s section",
    sometimes: "
        ft feet, etc et cetera, al al, inc Incorporated, ltd Limited, corp Corporation, co Company,
        bros Brothers, dept department, univ university, assn association, govt government,
        jr Junior, sr Senior, esq Esquire, ave Avenue, blvd Boulevard, rd Road, ln Lane,
        hwy Highway, apt apartment, bldg Building, ct Court, pl Place, ter Terrace, plz Plaza,
        pkwy Parkway, attn attention, eds editors, jan January, feb February, mar March, apr April,
        jun June, jul July, aug August, sep September, sept September, oct October, nov November,
        dec December, mon Monday, tue Tuesday, tues Tuesday, wed Wednesday, thu Thursday,
        thur Thursday, thurs Thursday, fri Friday, sat Saturday, sun Sunday, a.m A M, p.m P M,
        a.d A D, b.c B C, ph.d P H D, m.d M D, b.a B A, m.a M A, b.sc B S C, m.sc M S C, hr hour,
        hrs hours, mins minutes, secs seconds, lb pounds, lbs pounds, oz ounces, tbsp tablespoons,
        tsp teaspoons, yd yards, yds yards, incl including, excl excluding, misc miscellaneous,
        wkts wickets, wkt wicket, w.r.t with respect to, cres Crescent, a.k.a also known as, p.s P S,
        r.s.v.p R S V P",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word_table::{assert_keys_differ, rows};

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
        let tables = [ENGLISH.never, ENGLISH.before_number, ENGLISH.sometimes];
        assert_keys_differ(&tables);
        let mut shorts = tables.into_iter().flat_map(rows);
        assert!(shorts.all(|(short, _)| short.len() <= 8), "abbreviation() looks no further");
    }
}
