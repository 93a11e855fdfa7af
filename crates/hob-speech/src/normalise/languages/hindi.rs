//! Hindi: its number words, and what it says for signs, units, money, dates and abbreviations.
//! Numbers count in lakh and crore, and the first hundred have no pattern.

use super::table::*;
use crate::abbreviations::ShortForms;
use crate::word_table::nth;

const SMALL: &str = "
    शून्य एक दो तीन चार पाँच छह सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह सोलह सत्रह अठारह उन्नीस बीस
    इक्कीस बाईस तेईस चौबीस पच्चीस छब्बीस सत्ताईस अट्ठाईस उनतीस तीस इकतीस बत्तीस तैंतीस चौंतीस पैंतीस
    छत्तीस सैंतीस अड़तीस उनतालीस चालीस इकतालीस बयालीस तैंतालीस चौवालीस पैंतालीस छियालीस सैंतालीस
    अड़तालीस उनचास पचास इक्यावन बावन तिरपन चौवन पचपन छप्पन सत्तावन अट्ठावन उनसठ साठ इकसठ बासठ तिरसठ
    चौंसठ पैंसठ छियासठ सड़सठ अड़सठ उनहत्तर सत्तर इकहत्तर बहत्तर तिहत्तर चौहत्तर पचहत्तर छिहत्तर सतहत्तर
    अठहत्तर उनासी अस्सी इक्यासी बयासी तिरासी चौरासी पचासी छियासी सत्तासी अट्ठासी नवासी नब्बे इक्यानवे
    बानवे तिरानवे चौरानवे पचानवे छियानवे सत्तानवे अट्ठानवे निन्यानवे";

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
        return nth(SMALL, number).to_owned();
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

fn time(hour: u64, minute: u64) -> String {
    let hour = cardinal(hour);
    match minute {
        0 => format!("{hour} बजे"),
        _ => format!("{hour} बजकर {} मिनट", cardinal(minute)),
    }
}

pub(super) static TABLE: LanguageTable = LanguageTable {
    cardinal: |number, _| cardinal(number),
    ordinal,
    ordinal_marks: OrdinalMarks {
        masculine: "ला रा था ठा वाँ वां वा वें वे ले रे थे",
        feminine: "ली री थी ठी वीं वी",
        short: "वें वे ले रे थे",
    },
    fractions: "1/2 आधा, 1/3 एक तिहाई, 2/3 दो तिहाई, 1/4 एक चौथाई, 3/4 तीन चौथाई",
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
        over: "बटा",
        at: "ऐट",
        dash: "हाइफ़न",
        underscore: "अंडरस्कोर",
        colon: "कोलन",
        to: "से",
        per: "प्रति",
        score: "",
        cents: Some(""),
        foreign_word: "विदेशी शब्द",
        code_block: "कोड ब्लॉक",
    },
    dates: Dates {
        months: "जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर",
        link: "",
        first: None,
        openers: &["सन", "सन्", "वर्ष", "साल", "दिनांक", "तारीख"],
        year,
        time,
        hour_words: &["बजे"],
        contracted: "",
        clock_openers: &[],
        duration: [m("घंटा", "घंटे"), m("मिनट", "मिनट"), m("सेकंड", "सेकंड")],
    },
    units: "
        % प्रतिशत, km किलोमीटर, किमी किलोमीटर, m मीटर, मी मीटर, cm सेंटीमीटर, सेमी सेंटीमीटर,
        mm मिलीमीटर, km² वर्ग किलोमीटर, m² वर्ग मीटर, kg किलो, किग्रा किलोग्राम, g ग्राम, mg मिलीग्राम,
        t टन, l लीटर, L लीटर, ml मिलीलीटर, h घंटा/घंटे, min मिनट, s सेकंड, km/h किलोमीटर प्रति घंटा,
        किमी/घंटा किलोमीटर प्रति घंटा, m/s मीटर प्रति सेकंड, ° डिग्री, °C डिग्री सेल्सियस,
        ºC डिग्री सेल्सियस, °F डिग्री फ़ारेनहाइट, W वाट, kW किलोवाट, V वोल्ट, Hz हर्ट्ज़, MHz मेगाहर्ट्ज़,
        GHz गीगाहर्ट्ज़, KB किलोबाइट, MB मेगाबाइट, GB गीगाबाइट, TB टेराबाइट",
    currencies: &[
        money("₹ INR Rs रु", m("रुपया", "रुपये"), m("पैसा", "पैसे")),
        money("$ US$ USD", m("डॉलर", "डॉलर"), m("सेंट", "सेंट")),
        money("€ EUR", m("यूरो", "यूरो"), m("सेंट", "सेंट")),
        money("£ GBP", m("पाउंड", "पाउंड"), m("पेंस", "पेंस")),
        money("¥ JPY", m("येन", "येन"), m("सेन", "सेन")),
        money("R$ BRL", m("रियाल", "रियाल"), m("सेंट", "सेंट")),
    ],
    scales: "
        हज़ार हज़ार, हजार हज़ार, लाख लाख, करोड़ करोड़, अरब अरब, k हज़ार, मिलियन मिलियन, बिलियन बिलियन,
        M मिलियन",
    scales_with_of: "",
    of: |noun| noun.to_owned(),
    short_forms: ShortForms {
        never: "
            डॉ डॉक्टर, डा डॉक्टर, प्रो प्रोफ़ेसर, श्री श्री, कु कुमारी, पं पंडित, dr डॉक्टर, mr मिस्टर,
            mrs मिसेज़",
        before_number: "सं संख्या, क्र क्रमांक, पृ पृष्ठ, नं नंबर, rs रुपये",
        sometimes: "
            रु रुपये, ई.पू ईसा पूर्व, इ इत्यादि, कि.मी किलोमीटर, कि.ग्रा किलोग्राम, मि मिनट,
            etc इत्यादि",
    },
    starters: "",
    symbols: "
        & और, + प्लस, = बराबर, × गुणा, ÷ भाग, < से कम, > से ज़्यादा, ≈ लगभग, % प्रतिशत, @ ऐट, # हैश,
        ₹ रुपये, $ डॉलर, € यूरो, £ पाउंड, ° डिग्री, ½ आधा, ¼ एक चौथाई, ¾ तीन चौथाई, ² का वर्ग,
        ³ का घन, * तारा, ~ लगभग",
    acronyms: "",
    letters: &[],
    nouns: NounTable { feminine: "", masculine: "", feminine_endings: "" },
    particles: "में से तक के का की को ई ईस्वी",
    roman: RomanWords {
        centuries: &["सदी", "शताब्दी"],
        chapters: "अध्याय भाग खंड",
        marks: "",
        feminine_articles: "",
        masculine_articles: "",
        said: |number, _, _| cardinal(number),
    },
    elided_one: None,
    has_pairs: false,
    callers: &["फ़ोन", "फोन", "मोबाइल", "नंबर", "हेल्पलाइन", "tel"],
};
