//! Acronyms: "EHR" and "GPUs" letter by letter, "NASA" as a word, "U.S." by its letters.
//! The letters do not show which acronyms are spoken as words, so a table lists those. The reader of words uses it too.

use super::View;
use crate::reading::Reading;
use crate::word_table::{find, has};

/// Acronyms that are spoken as words, with a spelling that sounds like them.
const WORDS: &str = "
    AIDS aids, ASCII asky, BASIC basic, BIOS bios, CAPTCHA captcha, COVID covid, CRUD crud,
    CUDA cooda, DARPA darpa, DOS doss, DRAM dee-ram, FIFA fifa, GIF gif, GUI gooey, HIPAA hippa,
    IKEA ikea, JPEG jay-peg, JSON jason, LAN lan, LASER laser, LIDAR lidar, MIDI midi, NAFTA nafta,
    NAS nass, NASA nasa, NASDAQ nasdaq, NATO nato, OPEC opec, OSHA osha, PIN pin, POSIX posix,
    RADAR radar, RAID raid, RAM ram, REST rest, ROM rom, SARS sars, SCUBA scuba, SIM sim, SOAP soap,
    SONAR sonar, SWAT swat, TOML tommel, UEFA you-ay-fa, UNESCO unesco, UNICEF unicef, UNIX unix,
    VRAM vee-ram, WAN wan, WASM wozzum, YAML yamel, ZIP zip";

/// Words that are not acronyms although they are in capitals, and the sentence around them is not.
const EMPHASISED: &str = "
    A I AM AN AND ARE AS AT BE BUT BY CAN DO FOR GO HE IF IN IS ME MY NO NOT NOW OF OH ON ONE OR
    OUR OUT SHE SO THE TO TWO UP WE YES YOU ALL ANY BAD BIG DID END GET HAS HER HIM HIS HOW LET
    NEW OFF OLD SEE STOP TOP TRY WAS WHY WAY WIN NEVER ALWAYS VERY MUST ONLY MORE MOST EVER THIS
    THAT WILL WARNING NOTE ERROR ALSO HERE THEN WHEN WHAT WITH FROM HAVE BEEN EVERY BOTH SOME NONE
    READ HELP SAVE FREE SALE OPEN CLOSED EXIT ENTRY PUSH PULL PLEASE THANK LOVE STAY KEEP BEST GOOD
    LIVE LAST NEXT JUST LIKE MAKE TAKE GIVE NEED WANT KNOW COME BACK YOUR THEY WERE START SIZE MAX
    MIN KEY NAME TYPE DATE TIME FILE PATH USER LIST HOST LOG WAIT";

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    dotted(view, out).or_else(|| capitals(view, out))
}

/// Single letters with a full stop after each: "U.S.". Abbreviations such as "e.g." are left to the reader of words.
fn dotted(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let letters: Vec<&str> = word.text.split('.').collect();
    let single = |part: &&str| part.chars().count() == 1 && part.chars().all(char::is_alphabetic);
    if letters.len() < 2
        || !letters.iter().all(single)
        || crate::abbreviations::abbreviation(&word.text).is_some()
    {
        return None;
    }
    out.spell(word.span(), &letters.concat().to_uppercase());
    // The stop after the last letter belongs to the acronym. At the end of a sentence it also ends the sentence.
    Some(1 + usize::from(view.mark_ahead(1) == Some('.') && view.goes_on(2)))
}

/// Two to six capitals, perhaps with a plural or possessive "s": "GPUs".
fn capitals(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let text = word.text.replace('’', "'");
    let stem = text.strip_suffix("'s").or_else(|| text.strip_suffix('s')).unwrap_or(&text);
    let is_acronym = stem.len() >= 2
        && stem.len() <= 6
        && stem.chars().all(|c| c.is_ascii_uppercase())
        && !view.shouted
        && !has(EMPHASISED, stem)
        && (stem.len() <= 4 || !looks_like_word(stem));
    if !is_acronym {
        return None;
    }
    if let Some(said) = as_word(stem) {
        out.say(word.span(), &format!("{said}{}", &text[stem.len()..]));
    } else {
        out.spell(word.span(), &text);
    }
    Some(1)
}

/// The word that an acronym is spoken as. `None`: it is spelled.
pub(super) fn as_word(acronym: &str) -> Option<&'static str> {
    find(WORDS, acronym)
}

/// Whether capitals are a word, as in "HELP".
pub(super) fn is_emphasised(capitals: &str) -> bool {
    has(EMPHASISED, capitals)
}

/// Whether five or six capitals have two vowels or more: then they are more often a shout or a name than an acronym.
fn looks_like_word(letters: &str) -> bool {
    let vowels = letters.chars().filter(|c| matches!(c, 'A' | 'E' | 'I' | 'O' | 'U' | 'Y')).count();
    vowels >= 2
}
