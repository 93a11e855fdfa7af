//! French: its number words, and what it says for signs, units, money, dates and abbreviations.
//! Its tens count by twenty from 70 on, and money of a million needs "de": "un million d'euros".

use super::moment::feminine;
use super::table::*;
use crate::abbreviations::Ending::{BeforeNumber, Never, Sometimes};

const SMALL: [&str; 20] = [
    "zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze",
    "douze", "treize", "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf",
];
const TENS: [&str; 7] = ["", "", "vingt", "trente", "quarante", "cinquante", "soixante"];

fn cardinal(number: u64, form: Form) -> String {
    let masculine = Form::Alone;
    let (count, large) = match number {
        0..1_000 => return below_thousand(number, form),
        1_000..1_000_000 => (number / 1_000, 1_000),
        1_000_000..1_000_000_000 => (number / 1_000_000, 1_000_000),
        1_000_000_000..1_000_000_000_000 => (number / 1_000_000_000, 1_000_000_000),
        _ => (number / 1_000_000_000_000, 1_000_000_000_000),
    };
    let head = match (count, large) {
        (1, 1_000) => "mille".to_owned(),
        // "quatre-vingt mille", "deux cent mille": no s before "mille".
        (_, 1_000) => {
            let count = cardinal(count, masculine);
            let bare = ["quatre-vingts", "cents"].iter().any(|end| count.ends_with(end));
            let count = if bare { &count[..count.len() - 1] } else { count.as_str() };
            format!("{count} mille")
        }
        (1, 1_000_000) => "un million".to_owned(),
        (_, 1_000_000) => format!("{} millions", cardinal(count, masculine)),
        (1, 1_000_000_000) => "un milliard".to_owned(),
        (_, 1_000_000_000) => format!("{} milliards", cardinal(count, masculine)),
        (1, _) => "un billion".to_owned(),
        _ => format!("{} billions", cardinal(count, masculine)),
    };
    match number % large {
        0 => head,
        rest => format!("{head} {}", cardinal(rest, form)),
    }
}

fn below_thousand(number: u64, form: Form) -> String {
    let (hundreds, rest) = (number / 100, number % 100);
    let hundred = match (hundreds, rest) {
        (0, _) => return below_hundred(rest, form),
        (1, _) => "cent".to_owned(),
        (_, 0) => format!("{} cents", SMALL[hundreds as usize]),
        _ => format!("{} cent", SMALL[hundreds as usize]),
    };
    if rest == 0 { hundred } else { format!("{hundred} {}", below_hundred(rest, form)) }
}

fn below_hundred(number: u64, form: Form) -> String {
    let one = if form.is_feminine() { "une" } else { "un" };
    let ten = (number / 10) as usize;
    match number {
        1 => one.to_owned(),
        0 | 2..20 => SMALL[number as usize].to_owned(),
        71 => "soixante et onze".to_owned(),
        70 | 72..80 => format!("soixante-{}", SMALL[(number - 60) as usize]),
        80 => "quatre-vingts".to_owned(),
        81 => format!("quatre-vingt-{one}"),
        82..100 => format!("quatre-vingt-{}", SMALL[(number - 80) as usize]),
        _ => match number % 10 {
            0 => TENS[ten].to_owned(),
            1 => format!("{} et {one}", TENS[ten]),
            rest => format!("{}-{}", TENS[ten], SMALL[rest as usize]),
        },
    }
}

fn ordinal(number: u64, gender: NounGender, is_short: bool) -> String {
    match (number, gender) {
        (1, NounGender::Masculine) => return "premier".to_owned(),
        (1, NounGender::Feminine) => return "première".to_owned(),
        // "2nd" and "2nde", but "2e" is the second of many.
        (2, NounGender::Masculine) if is_short => return "second".to_owned(),
        (2, NounGender::Feminine) if is_short => return "seconde".to_owned(),
        _ => {}
    }
    let words = cardinal(number, Form::Alone);
    let bare = ["quatre-vingts", "cents"].iter().any(|end| words.ends_with(end));
    let words = if bare { &words[..words.len() - 1] } else { words.as_str() };
    if let Some(stem) = words.strip_suffix("neuf") {
        return format!("{stem}neuvième");
    }
    if words.ends_with("cinq") {
        return format!("{words}uième");
    }
    format!("{}ième", words.strip_suffix('e').unwrap_or(words))
}

fn fraction(above: u64, below: u64) -> Option<String> {
    let part = match below {
        2 => m("demi", "demis"),
        3 => m("tiers", "tiers"),
        4 => m("quart", "quarts"),
        5 => m("cinquième", "cinquièmes"),
        8 => m("huitième", "huitièmes"),
        10 => m("dixième", "dixièmes"),
        _ => return None,
    };
    parts(cardinal, above, part)
}

fn time(hour: u64, minute: u64) -> String {
    let name = if hour < 2 { "heure" } else { "heures" };
    let hour = feminine(cardinal, hour);
    match minute {
        0 => format!("{hour} {name}"),
        _ => format!("{hour} {name} {}", cardinal(minute, Form::Alone)),
    }
}

fn roman(number: u64, place: RomanPlace) -> String {
    match place {
        RomanPlace::Ruler if number == 1 => "premier".to_owned(),
        RomanPlace::Ruler | RomanPlace::Chapter | RomanPlace::AfterCentury => {
            cardinal(number, Form::Alone)
        }
        RomanPlace::BeforeCentury => ordinal(number, NounGender::Masculine, false),
    }
}

fn of(noun: &str) -> String {
    let is_elided = noun.starts_with(['a', 'e', 'é', 'i', 'o', 'u', 'h']);
    if is_elided { format!("d'{noun}") } else { format!("de {noun}") }
}

pub(super) static TABLE: LanguageTable = LanguageTable {
    cardinal,
    ordinal,
    ordinal_marks: &[
        ("er", NounGender::Masculine, false),
        ("ᵉʳ", NounGender::Masculine, false),
        ("re", NounGender::Feminine, false),
        ("ère", NounGender::Feminine, false),
        ("e", NounGender::Masculine, false),
        ("ᵉ", NounGender::Masculine, false),
        ("ème", NounGender::Masculine, false),
        ("eme", NounGender::Masculine, false),
        ("ième", NounGender::Masculine, false),
        ("nd", NounGender::Masculine, true),
        ("nde", NounGender::Feminine, true),
    ],
    fraction,
    thousands: '.',
    decimal: ',',
    has_single_decimals: false,
    has_singular_below_two: true,
    signs: SignWords {
        minus: "moins",
        plus: "plus",
        comma: "virgule",
        dot: "point",
        slash: "barre oblique",
        at: "arobase",
        dash: "tiret",
        underscore: "tiret bas",
        colon: "deux points",
        to: "à",
        score: "à",
        cents: None,
        foreign_word: "mot étranger",
        code_block: "bloc de code",
    },
    dates: Dates {
        months: [
            "janvier",
            "février",
            "mars",
            "avril",
            "mai",
            "juin",
            "juillet",
            "août",
            "septembre",
            "octobre",
            "novembre",
            "décembre",
        ],
        link: "",
        first: Some("premier"),
        openers: &["le", "du", "au"],
        year: |year| cardinal(year, Form::Alone),
        time,
        hour_words: &["h"],
        clock_openers: &[],
        duration: [f("heure", "heures"), f("minute", "minutes"), f("seconde", "secondes")],
    },
    units: &[
        ("%", m("pour cent", "pour cent")),
        ("‰", m("pour mille", "pour mille")),
        ("km", m("kilomètre", "kilomètres")),
        ("m", m("mètre", "mètres")),
        ("cm", m("centimètre", "centimètres")),
        ("mm", m("millimètre", "millimètres")),
        ("km²", m("kilomètre carré", "kilomètres carrés")),
        ("m²", m("mètre carré", "mètres carrés")),
        ("m2", m("mètre carré", "mètres carrés")),
        ("m³", m("mètre cube", "mètres cubes")),
        ("ha", m("hectare", "hectares")),
        ("kg", m("kilo", "kilos")),
        ("g", m("gramme", "grammes")),
        ("mg", m("milligramme", "milligrammes")),
        ("t", f("tonne", "tonnes")),
        ("l", m("litre", "litres")),
        ("L", m("litre", "litres")),
        ("ml", m("millilitre", "millilitres")),
        ("cl", m("centilitre", "centilitres")),
        ("h", f("heure", "heures")),
        ("min", f("minute", "minutes")),
        ("mn", f("minute", "minutes")),
        ("s", f("seconde", "secondes")),
        ("sec", f("seconde", "secondes")),
        ("ms", f("milliseconde", "millisecondes")),
        ("km/h", m("kilomètre heure", "kilomètres heure")),
        ("m/s", m("mètre par seconde", "mètres par seconde")),
        ("°", m("degré", "degrés")),
        ("°C", m("degré Celsius", "degrés Celsius")),
        ("ºC", m("degré Celsius", "degrés Celsius")),
        ("°F", m("degré Fahrenheit", "degrés Fahrenheit")),
        ("W", m("watt", "watts")),
        ("kW", m("kilowatt", "kilowatts")),
        ("kWh", m("kilowattheure", "kilowattheures")),
        ("V", m("volt", "volts")),
        ("Hz", m("hertz", "hertz")),
        ("MHz", m("mégahertz", "mégahertz")),
        ("GHz", m("gigahertz", "gigahertz")),
        ("Ko", m("kilooctet", "kilooctets")),
        ("Mo", m("mégaoctet", "mégaoctets")),
        ("Go", m("gigaoctet", "gigaoctets")),
        ("To", m("téraoctet", "téraoctets")),
        ("MB", m("mégaoctet", "mégaoctets")),
        ("GB", m("gigaoctet", "gigaoctets")),
        ("kcal", f("kilocalorie", "kilocalories")),
    ],
    currencies: &[
        Currency {
            signs: &["€", "EUR"], unit: m("euro", "euros"), cent: m("centime", "centimes")
        },
        Currency {
            signs: &["$", "US$", "USD"],
            unit: m("dollar", "dollars"),
            cent: m("cent", "cents"),
        },
        Currency { signs: &["£", "GBP"], unit: f("livre", "livres"), cent: m("penny", "pence") },
        Currency { signs: &["¥", "JPY"], unit: m("yen", "yens"), cent: m("sen", "sens") },
        Currency {
            signs: &["₹", "INR"], unit: f("roupie", "roupies"), cent: m("paisa", "paisas")
        },
        Currency {
            signs: &["R$", "BRL"],
            unit: m("réal", "réaux"),
            cent: m("centavo", "centavos"),
        },
        Currency {
            signs: &["CHF"],
            unit: m("franc suisse", "francs suisses"),
            cent: m("centime", "centimes"),
        },
    ],
    scales: &[
        ("mille", m("mille", "mille"), false),
        ("k", m("mille", "mille"), false),
        ("M", m("million", "millions"), true),
        ("Md", m("milliard", "milliards"), true),
        ("Mds", m("milliard", "milliards"), true),
        ("million", m("million", "millions"), true),
        ("millions", m("million", "millions"), true),
        ("milliard", m("milliard", "milliards"), true),
        ("milliards", m("milliard", "milliards"), true),
    ],
    of,
    round: 1_000_000,
    short_forms: &[
        ("m", "monsieur", Never),
        ("mm", "messieurs", Never),
        ("mr", "monsieur", Never),
        ("mme", "madame", Never),
        ("mmes", "mesdames", Never),
        ("mlle", "mademoiselle", Never),
        ("dr", "docteur", Never),
        ("pr", "professeur", Never),
        ("me", "maître", Never),
        ("mgr", "monseigneur", Never),
        ("st", "saint", Never),
        ("ste", "sainte", Never),
        ("av", "avenue", Never),
        ("bd", "boulevard", Never),
        ("boul", "boulevard", Never),
        ("pl", "place", Never),
        ("p.ex", "par exemple", Never),
        ("ex", "exemple", Never),
        ("etc", "et cetera", Sometimes),
        ("cf", "confer", Never),
        ("c.-à-d", "c'est-à-dire", Never),
        ("p", "page", BeforeNumber),
        ("pp", "pages", BeforeNumber),
        ("n°", "numéro", BeforeNumber),
        ("art", "article", BeforeNumber),
        ("chap", "chapitre", BeforeNumber),
        ("vol", "volume", BeforeNumber),
        ("fig", "figure", BeforeNumber),
        ("éd", "édition", BeforeNumber),
        ("tél", "téléphone", Never),
        ("env", "environ", Sometimes),
        ("max", "maximum", Sometimes),
        ("min", "minimum", Sometimes),
        ("janv", "janvier", Sometimes),
        ("févr", "février", Sometimes),
        ("juill", "juillet", Sometimes),
        ("sept", "septembre", Never),
        ("oct", "octobre", Sometimes),
        ("nov", "novembre", Sometimes),
        ("déc", "décembre", Sometimes),
        ("av.j.-c", "avant Jésus-Christ", Sometimes),
        ("j.-c", "Jésus-Christ", Sometimes),
        ("s.a", "S A", Sometimes),
        ("vs", "contre", Never),
    ],
    starters: &[
        "Le", "La", "Les", "L", "Un", "Une", "Des", "Il", "Elle", "Ils", "Elles", "On", "Nous",
        "Vous", "Je", "Tu", "C", "Ce", "Cette", "Ces", "Et", "Mais", "Ou", "Donc", "Car", "En",
        "Dans", "Pour", "Par", "Avec", "Sans", "Si", "Quand", "Comme", "Puis", "Ensuite", "Après",
        "Avant", "Aussi", "Alors", "Oui", "Non", "Qui", "Que", "De", "Du", "À", "Au", "Aux", "Son",
        "Sa", "Ses", "Notre",
    ],
    symbols: &[
        ('&', "et"),
        ('+', "plus"),
        ('=', "égale"),
        ('×', "fois"),
        ('÷', "divisé par"),
        ('<', "inférieur à"),
        ('>', "supérieur à"),
        ('≤', "inférieur ou égal à"),
        ('≥', "supérieur ou égal à"),
        ('≈', "environ"),
        ('%', "pour cent"),
        ('@', "arobase"),
        ('#', "dièse"),
        ('€', "euros"),
        ('$', "dollars"),
        ('£', "livres"),
        ('°', "degrés"),
        ('§', "paragraphe"),
        ('©', "copyright"),
        ('½', "demi"),
        ('¼', "un quart"),
        ('¾', "trois quarts"),
        ('²', "au carré"),
        ('³', "au cube"),
        ('→', "flèche"),
        ('*', "astérisque"),
        ('~', "environ"),
    ],
    letters: &[('Y', "i grec"), ('E', "e"), ('A', "a")],
    nouns: NounTable {
        feminine: &[
            "heure",
            "heures",
            "minute",
            "minutes",
            "seconde",
            "secondes",
            "fois",
            "personne",
            "personnes",
            "page",
            "pages",
            "année",
            "années",
            "semaine",
            "semaines",
            "journée",
            "journées",
            "nuit",
            "nuits",
            "maison",
            "maisons",
            "table",
            "tables",
            "voiture",
            "voitures",
            "femme",
            "femmes",
            "fille",
            "filles",
            "chambre",
            "chambres",
            "place",
            "places",
            "porte",
            "portes",
            "pièce",
            "pièces",
            "bouteille",
            "bouteilles",
            "livres",
            "ville",
            "villes",
            "rue",
            "rues",
            "école",
            "écoles",
            "famille",
            "familles",
            "ligne",
            "lignes",
            "étoile",
            "étoiles",
            "part",
            "parts",
            "partie",
            "parties",
            "étape",
            "étapes",
            "carte",
            "cartes",
            "lettre",
            "lettres",
            "image",
            "images",
            "chose",
            "choses",
            "question",
            "questions",
            "tonne",
            "tonnes",
        ],
        masculine: &["été", "musée", "lycée", "comité", "côté"],
        feminine_endings: &[
            "tion", "tions", "sion", "sions", "ette", "ettes", "ée", "ées", "té", "tés", "ance",
            "ances", "ence", "ences",
        ],
    },
    particles: &[
        "à", "au", "aux", "et", "ou", "de", "du", "des", "en", "avec", "par", "pour", "que", "qui",
        "est", "sont", "était", "dans", "sur", "sous", "plus", "moins", "pas", "ne", "le", "la",
        "les", "il", "elle", "ce", "mille", "ans",
    ],
    roman: RomanWords {
        centuries: &["siècle", "siècles"],
        chapters: &["chapitre", "tome", "volume", "partie", "acte", "titre", "phase", "scène"],
        said: roman,
    },
    has_pairs: true,
    callers: &["téléphone", "tél", "tel", "portable", "appelez", "appeler", "composez", "fax"],
};
