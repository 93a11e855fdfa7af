//! Hindi: its number words, and what it says for signs, units, money, dates and abbreviations.
//! Numbers count in lakh and crore, and the first hundred have no pattern.

use super::table::*;
use crate::abbreviations::Ending::{BeforeNumber, Never, Sometimes};

const SMALL: [&str; 100] = [
    "शून्य",
    "एक",
    "दो",
    "तीन",
    "चार",
    "पाँच",
    "छह",
    "सात",
    "आठ",
    "नौ",
    "दस",
    "ग्यारह",
    "बारह",
    "तेरह",
    "चौदह",
    "पंद्रह",
    "सोलह",
    "सत्रह",
    "अठारह",
    "उन्नीस",
    "बीस",
    "इक्कीस",
    "बाईस",
    "तेईस",
    "चौबीस",
    "पच्चीस",
    "छब्बीस",
    "सत्ताईस",
    "अट्ठाईस",
    "उनतीस",
    "तीस",
    "इकतीस",
    "बत्तीस",
    "तैंतीस",
    "चौंतीस",
    "पैंतीस",
    "छत्तीस",
    "सैंतीस",
    "अड़तीस",
    "उनतालीस",
    "चालीस",
    "इकतालीस",
    "बयालीस",
    "तैंतालीस",
    "चौवालीस",
    "पैंतालीस",
    "छियालीस",
    "सैंतालीस",
    "अड़तालीस",
    "उनचास",
    "पचास",
    "इक्यावन",
    "बावन",
    "तिरपन",
    "चौवन",
    "पचपन",
    "छप्पन",
    "सत्तावन",
    "अट्ठावन",
    "उनसठ",
    "साठ",
    "इकसठ",
    "बासठ",
    "तिरसठ",
    "चौंसठ",
    "पैंसठ",
    "छियासठ",
    "सड़सठ",
    "अड़सठ",
    "उनहत्तर",
    "सत्तर",
    "इकहत्तर",
    "बहत्तर",
    "तिहत्तर",
    "चौहत्तर",
    "पचहत्तर",
    "छिहत्तर",
    "सतहत्तर",
    "अठहत्तर",
    "उनासी",
    "अस्सी",
    "इक्यासी",
    "बयासी",
    "तिरासी",
    "चौरासी",
    "पचासी",
    "छियासी",
    "सत्तासी",
    "अट्ठासी",
    "नवासी",
    "नब्बे",
    "इक्यानवे",
    "बानवे",
    "तिरानवे",
    "चौरानवे",
    "पचानवे",
    "छियानवे",
    "सत्तानवे",
    "अट्ठानवे",
    "निन्यानवे",
];

const LARGE: [(u64, &str); 6] = [
    (100_000_000_000, "खरब"),
    (1_000_000_000, "अरब"),
    (10_000_000, "करोड़"),
    (100_000, "लाख"),
    (1_000, "हज़ार"),
    (100, "सौ"),
];

fn cardinal(number: u64) -> String {
    let Some((large, name)) = LARGE.into_iter().find(|(large, _)| number >= *large) else {
        return SMALL[number as usize].to_owned();
    };
    let head = format!("{} {name}", cardinal(number / large));
    match number % large {
        0 => head,
        rest => format!("{head} {}", cardinal(rest)),
    }
}

/// "उन्नीस सौ निन्यानवे", but "दो हज़ार पच्चीस".
fn year(year: u64) -> String {
    if !(1100..2000).contains(&year) {
        return cardinal(year);
    }
    let head = format!("{} सौ", cardinal(year / 100));
    match year % 100 {
        0 => head,
        rest => format!("{head} {}", cardinal(rest)),
    }
}

/// The short form stands before a noun in an oblique case: "पाँचवें".
fn ordinal(number: u64, gender: NounGender, is_short: bool) -> String {
    let (ending, nasal) = match (gender, is_short) {
        (NounGender::Feminine, _) => ("ी", "वीं"),
        (NounGender::Masculine, true) => ("े", "वें"),
        (NounGender::Masculine, false) => ("ा", "वाँ"),
    };
    match number {
        1 => format!("पहल{ending}"),
        2 => format!("दूसर{ending}"),
        3 => format!("तीसर{ending}"),
        4 => format!("चौथ{ending}"),
        6 => format!("छठ{ending}"),
        _ => format!("{}{nasal}", cardinal(number)),
    }
}

fn fraction(above: u64, below: u64) -> Option<String> {
    Some(match (above, below) {
        (1, 2) => "आधा".to_owned(),
        (1, 3) => "एक तिहाई".to_owned(),
        (2, 3) => "दो तिहाई".to_owned(),
        (1, 4) => "एक चौथाई".to_owned(),
        (3, 4) => "तीन चौथाई".to_owned(),
        _ => return None,
    })
}

fn time(hour: u64, minute: u64) -> String {
    let hour = cardinal(hour);
    match minute {
        0 => format!("{hour} बजे"),
        _ => format!("{hour} बजकर {} मिनट", cardinal(minute)),
    }
}

fn of(noun: &str) -> String {
    noun.to_owned()
}

fn roman(number: u64, _place: RomanPlace) -> String {
    cardinal(number)
}

pub(super) static TABLE: LanguageTable = LanguageTable {
    cardinal: |number, _| cardinal(number),
    ordinal,
    ordinal_marks: &[
        ("ला", NounGender::Masculine, false),
        ("ली", NounGender::Feminine, false),
        ("रा", NounGender::Masculine, false),
        ("री", NounGender::Feminine, false),
        ("था", NounGender::Masculine, false),
        ("थी", NounGender::Feminine, false),
        ("वाँ", NounGender::Masculine, false),
        ("वां", NounGender::Masculine, false),
        ("वा", NounGender::Masculine, false),
        ("वीं", NounGender::Feminine, false),
        ("वी", NounGender::Feminine, false),
        ("वें", NounGender::Masculine, true),
        ("वे", NounGender::Masculine, true),
        ("ले", NounGender::Masculine, true),
        ("रे", NounGender::Masculine, true),
        ("थे", NounGender::Masculine, true),
    ],
    fraction,
    thousands: ',',
    decimal: '.',
    has_single_decimals: true,
    has_singular_below_two: false,
    signs: SignWords {
        minus: "माइनस",
        plus: "प्लस",
        comma: "दशमलव",
        dot: "डॉट",
        slash: "स्लैश",
        at: "ऐट",
        dash: "हाइफ़न",
        underscore: "अंडरस्कोर",
        colon: "कोलन",
        to: "से",
        score: "",
        cents: Some(""),
        foreign_word: "विदेशी शब्द",
        code_block: "कोड ब्लॉक",
    },
    dates: Dates {
        months: [
            "जनवरी",
            "फ़रवरी",
            "मार्च",
            "अप्रैल",
            "मई",
            "जून",
            "जुलाई",
            "अगस्त",
            "सितंबर",
            "अक्टूबर",
            "नवंबर",
            "दिसंबर",
        ],
        link: "",
        first: None,
        openers: &["सन", "सन्", "वर्ष", "साल", "दिनांक", "तारीख"],
        year,
        time,
        hour_words: &["बजे"],
        clock_openers: &[],
        duration: [m("घंटा", "घंटे"), m("मिनट", "मिनट"), m("सेकंड", "सेकंड")],
    },
    units: &[
        ("%", m("प्रतिशत", "प्रतिशत")),
        ("km", m("किलोमीटर", "किलोमीटर")),
        ("किमी", m("किलोमीटर", "किलोमीटर")),
        ("m", m("मीटर", "मीटर")),
        ("मी", m("मीटर", "मीटर")),
        ("cm", m("सेंटीमीटर", "सेंटीमीटर")),
        ("सेमी", m("सेंटीमीटर", "सेंटीमीटर")),
        ("mm", m("मिलीमीटर", "मिलीमीटर")),
        ("km²", m("वर्ग किलोमीटर", "वर्ग किलोमीटर")),
        ("m²", m("वर्ग मीटर", "वर्ग मीटर")),
        ("kg", m("किलो", "किलो")),
        ("किग्रा", m("किलोग्राम", "किलोग्राम")),
        ("g", m("ग्राम", "ग्राम")),
        ("mg", m("मिलीग्राम", "मिलीग्राम")),
        ("t", m("टन", "टन")),
        ("l", m("लीटर", "लीटर")),
        ("L", m("लीटर", "लीटर")),
        ("ml", m("मिलीलीटर", "मिलीलीटर")),
        ("h", m("घंटा", "घंटे")),
        ("min", m("मिनट", "मिनट")),
        ("s", m("सेकंड", "सेकंड")),
        ("km/h", m("किलोमीटर प्रति घंटा", "किलोमीटर प्रति घंटा")),
        ("किमी/घंटा", m("किलोमीटर प्रति घंटा", "किलोमीटर प्रति घंटा")),
        ("m/s", m("मीटर प्रति सेकंड", "मीटर प्रति सेकंड")),
        ("°", m("डिग्री", "डिग्री")),
        ("°C", m("डिग्री सेल्सियस", "डिग्री सेल्सियस")),
        ("ºC", m("डिग्री सेल्सियस", "डिग्री सेल्सियस")),
        ("°F", m("डिग्री फ़ारेनहाइट", "डिग्री फ़ारेनहाइट")),
        ("W", m("वाट", "वाट")),
        ("kW", m("किलोवाट", "किलोवाट")),
        ("V", m("वोल्ट", "वोल्ट")),
        ("Hz", m("हर्ट्ज़", "हर्ट्ज़")),
        ("MHz", m("मेगाहर्ट्ज़", "मेगाहर्ट्ज़")),
        ("GHz", m("गीगाहर्ट्ज़", "गीगाहर्ट्ज़")),
        ("KB", m("किलोबाइट", "किलोबाइट")),
        ("MB", m("मेगाबाइट", "मेगाबाइट")),
        ("GB", m("गीगाबाइट", "गीगाबाइट")),
        ("TB", m("टेराबाइट", "टेराबाइट")),
    ],
    currencies: &[
        Currency {
            signs: &["₹", "INR", "Rs", "रु"], unit: m("रुपया", "रुपये"), cent: m("पैसा", "पैसे")
        },
        Currency {
            signs: &["$", "US$", "USD"], unit: m("डॉलर", "डॉलर"), cent: m("सेंट", "सेंट")
        },
        Currency {
            signs: &["€", "EUR"], unit: m("यूरो", "यूरो"), cent: m("सेंट", "सेंट")
        },
        Currency {
            signs: &["£", "GBP"], unit: m("पाउंड", "पाउंड"), cent: m("पेंस", "पेंस")
        },
        Currency {
            signs: &["¥", "JPY"], unit: m("येन", "येन"), cent: m("सेन", "सेन")
        },
        Currency {
            signs: &["R$", "BRL"], unit: m("रियाल", "रियाल"), cent: m("सेंट", "सेंट")
        },
    ],
    scales: &[
        ("हज़ार", m("हज़ार", "हज़ार"), false),
        ("हजार", m("हज़ार", "हज़ार"), false),
        ("लाख", m("लाख", "लाख"), false),
        ("करोड़", m("करोड़", "करोड़"), false),
        ("अरब", m("अरब", "अरब"), false),
        ("k", m("हज़ार", "हज़ार"), false),
        ("मिलियन", m("मिलियन", "मिलियन"), false),
        ("बिलियन", m("बिलियन", "बिलियन"), false),
        ("M", m("मिलियन", "मिलियन"), false),
    ],
    of,
    round: 1_000_000,
    short_forms: &[
        ("डॉ", "डॉक्टर", Never),
        ("डा", "डॉक्टर", Never),
        ("प्रो", "प्रोफ़ेसर", Never),
        ("श्री", "श्री", Never),
        ("कु", "कुमारी", Never),
        ("पं", "पंडित", Never),
        ("सं", "संख्या", BeforeNumber),
        ("क्र", "क्रमांक", BeforeNumber),
        ("पृ", "पृष्ठ", BeforeNumber),
        ("रु", "रुपये", Sometimes),
        ("ई.पू", "ईसा पूर्व", Sometimes),
        ("इ", "इत्यादि", Sometimes),
        ("कि.मी", "किलोमीटर", Sometimes),
        ("कि.ग्रा", "किलोग्राम", Sometimes),
        ("मि", "मिनट", Sometimes),
        ("dr", "डॉक्टर", Never),
        ("mr", "मिस्टर", Never),
        ("mrs", "मिसेज़", Never),
        ("etc", "इत्यादि", Sometimes),
    ],
    starters: &[],
    symbols: &[
        ('&', "और"),
        ('+', "प्लस"),
        ('=', "बराबर"),
        ('×', "गुणा"),
        ('÷', "भाग"),
        ('<', "से कम"),
        ('>', "से ज़्यादा"),
        ('≈', "लगभग"),
        ('%', "प्रतिशत"),
        ('@', "ऐट"),
        ('#', "हैश"),
        ('₹', "रुपये"),
        ('$', "डॉलर"),
        ('€', "यूरो"),
        ('£', "पाउंड"),
        ('°', "डिग्री"),
        ('½', "आधा"),
        ('¼', "एक चौथाई"),
        ('¾', "तीन चौथाई"),
        ('²', "का वर्ग"),
        ('³', "का घन"),
        ('*', "तारा"),
        ('~', "लगभग"),
    ],
    letters: &[],
    nouns: NounTable { feminine: &[], masculine: &[], feminine_endings: &[] },
    particles: &["में", "से", "तक", "के", "का", "की", "को", "ई", "ईस्वी"],
    roman: RomanWords {
        centuries: &["सदी", "शताब्दी"],
        chapters: &["अध्याय", "भाग", "खंड"],
        said: roman,
    },
    has_pairs: false,
    callers: &["फ़ोन", "फोन", "मोबाइल", "नंबर", "हेल्पलाइन", "tel"],
};
