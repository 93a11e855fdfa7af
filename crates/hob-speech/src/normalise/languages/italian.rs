//! Italian: its number words, and what it says for signs, units, money, dates and abbreviations.
//! A number below a million is one word, and drops a vowel before "uno" and "otto": "ventuno".

use super::moment::feminine;
use super::table::*;
use crate::abbreviations::Ending::{BeforeNumber, Never, Sometimes};

const SMALL: [&str; 20] = [
    "zero",
    "uno",
    "due",
    "tre",
    "quattro",
    "cinque",
    "sei",
    "sette",
    "otto",
    "nove",
    "dieci",
    "undici",
    "dodici",
    "tredici",
    "quattordici",
    "quindici",
    "sedici",
    "diciassette",
    "diciotto",
    "diciannove",
];
const TENS: [&str; 10] = [
    "",
    "",
    "venti",
    "trenta",
    "quaranta",
    "cinquanta",
    "sessanta",
    "settanta",
    "ottanta",
    "novanta",
];

fn cardinal(number: u64, form: Form) -> String {
    match (number, form) {
        (1, Form::Before(NounGender::Masculine)) => return "un".to_owned(),
        (1, Form::Before(NounGender::Feminine)) => return "una".to_owned(),
        _ => {}
    }
    let words = joined(number);
    // "ventitré", "centotré", but "tre".
    match words.strip_suffix("tre") {
        Some(stem) if !stem.is_empty() && !stem.ends_with(' ') => format!("{stem}tré"),
        _ => words,
    }
}

fn joined(number: u64) -> String {
    let (count, large, one, many) = match number {
        0..1_000 => return below_thousand(number),
        1_000..1_000_000 => {
            let head = match number / 1_000 {
                1 => "mille".to_owned(),
                count => format!("{}mila", below_thousand(count)),
            };
            let rest = number % 1_000;
            return if rest == 0 { head } else { format!("{head}{}", below_thousand(rest)) };
        }
        1_000_000..1_000_000_000 => (number / 1_000_000, 1_000_000, "un milione", "milioni"),
        1_000_000_000..1_000_000_000_000 => {
            (number / 1_000_000_000, 1_000_000_000, "un miliardo", "miliardi")
        }
        _ => (number / 1_000_000_000_000, 1_000_000_000_000, "un bilione", "bilioni"),
    };
    let head = if count == 1 { one.to_owned() } else { format!("{} {many}", joined(count)) };
    match number % large {
        0 => head,
        rest => format!("{head} {}", joined(rest)),
    }
}

fn below_thousand(number: u64) -> String {
    let (hundreds, rest) = (number / 100, number % 100);
    let hundred = match hundreds {
        0 => return below_hundred(rest),
        1 => "cento".to_owned(),
        count => format!("{}cento", SMALL[count as usize]),
    };
    match rest {
        0 => hundred,
        8 | 80..90 => format!("{}{}", hundred.trim_end_matches('o'), below_hundred(rest)),
        _ => format!("{hundred}{}", below_hundred(rest)),
    }
}

fn below_hundred(number: u64) -> String {
    let (ten, one) = ((number / 10) as usize, (number % 10) as usize);
    match (ten, one) {
        (0 | 1, _) => SMALL[number as usize].to_owned(),
        (_, 0) => TENS[ten].to_owned(),
        (_, 1 | 8) => format!("{}{}", &TENS[ten][..TENS[ten].len() - 1], SMALL[one]),
        _ => format!("{}{}", TENS[ten], SMALL[one]),
    }
}

fn ordinal(number: u64, gender: NounGender, _is_short: bool) -> String {
    const ONES: [&str; 11] = [
        "zeresim", "prim", "second", "terz", "quart", "quint", "sest", "settim", "ottav", "non",
        "decim",
    ];
    let ending = if gender == NounGender::Feminine { "a" } else { "o" };
    if let Some(stem) = ONES.get(number as usize) {
        return format!("{stem}{ending}");
    }
    let words = joined(number);
    // "ventitreesimo" and "ventiseiesimo" keep their vowel.
    let stem = if words.ends_with("tre") || words.ends_with("sei") {
        words.as_str()
    } else {
        words.strip_suffix(['a', 'e', 'i', 'o']).unwrap_or(&words)
    };
    format!("{stem}esim{ending}")
}

fn fraction(above: u64, below: u64) -> Option<String> {
    let part = match below {
        2 => m("mezzo", "mezzi"),
        3 => m("terzo", "terzi"),
        4 => m("quarto", "quarti"),
        5 => m("quinto", "quinti"),
        8 => m("ottavo", "ottavi"),
        10 => m("decimo", "decimi"),
        _ => return None,
    };
    parts(cardinal, above, part)
}

fn time(hour: u64, minute: u64) -> String {
    let hour = feminine(cardinal, hour);
    match minute {
        0 => hour,
        _ => format!("{hour} e {}", cardinal(minute, Form::Alone)),
    }
}

fn roman(number: u64, place: RomanPlace) -> String {
    match place {
        RomanPlace::Chapter => cardinal(number, Form::Alone),
        _ => ordinal(number, NounGender::Masculine, false),
    }
}

pub(super) static TABLE: LanguageTable = LanguageTable {
    cardinal,
    ordinal,
    ordinal_marks: &[
        ("º", NounGender::Masculine, false),
        ("°", NounGender::Masculine, false),
        ("ª", NounGender::Feminine, false),
        ("o", NounGender::Masculine, false),
    ],
    fraction,
    thousands: '.',
    decimal: ',',
    has_single_decimals: false,
    has_singular_below_two: false,
    signs: SignWords {
        minus: "meno",
        plus: "più",
        comma: "virgola",
        dot: "punto",
        slash: "barra",
        at: "chiocciola",
        dash: "trattino",
        underscore: "trattino basso",
        colon: "due punti",
        to: "a",
        score: "a",
        cents: Some("e"),
        foreign_word: "parola straniera",
        code_block: "blocco di codice",
    },
    dates: Dates {
        months: [
            "gennaio",
            "febbraio",
            "marzo",
            "aprile",
            "maggio",
            "giugno",
            "luglio",
            "agosto",
            "settembre",
            "ottobre",
            "novembre",
            "dicembre",
        ],
        link: "",
        first: Some("primo"),
        openers: &["il", "del", "dal", "al"],
        year: |year| cardinal(year, Form::Alone),
        time,
        hour_words: &["h"],
        clock_openers: &["ore", "alle", "dalle", "le"],
        duration: [f("ora", "ore"), m("minuto", "minuti"), m("secondo", "secondi")],
    },
    units: &[
        ("%", m("per cento", "per cento")),
        ("‰", m("per mille", "per mille")),
        ("km", m("chilometro", "chilometri")),
        ("m", m("metro", "metri")),
        ("cm", m("centimetro", "centimetri")),
        ("mm", m("millimetro", "millimetri")),
        ("km²", m("chilometro quadrato", "chilometri quadrati")),
        ("m²", m("metro quadrato", "metri quadrati")),
        ("m2", m("metro quadrato", "metri quadrati")),
        ("mq", m("metro quadrato", "metri quadrati")),
        ("m³", m("metro cubo", "metri cubi")),
        ("ha", m("ettaro", "ettari")),
        ("kg", m("chilo", "chili")),
        ("g", m("grammo", "grammi")),
        ("gr", m("grammo", "grammi")),
        ("mg", m("milligrammo", "milligrammi")),
        ("t", f("tonnellata", "tonnellate")),
        ("l", m("litro", "litri")),
        ("L", m("litro", "litri")),
        ("ml", m("millilitro", "millilitri")),
        ("cl", m("centilitro", "centilitri")),
        ("h", f("ora", "ore")),
        ("min", m("minuto", "minuti")),
        ("s", m("secondo", "secondi")),
        ("sec", m("secondo", "secondi")),
        ("ms", m("millisecondo", "millisecondi")),
        ("km/h", m("chilometro orario", "chilometri orari")),
        ("m/s", m("metro al secondo", "metri al secondo")),
        ("°C", m("grado Celsius", "gradi Celsius")),
        ("ºC", m("grado Celsius", "gradi Celsius")),
        ("°F", m("grado Fahrenheit", "gradi Fahrenheit")),
        ("W", m("watt", "watt")),
        ("kW", m("chilowatt", "chilowatt")),
        ("kWh", m("chilowattora", "chilowattora")),
        ("V", m("volt", "volt")),
        ("Hz", m("hertz", "hertz")),
        ("MHz", m("megahertz", "megahertz")),
        ("GHz", m("gigahertz", "gigahertz")),
        ("KB", m("kilobyte", "kilobyte")),
        ("MB", m("megabyte", "megabyte")),
        ("GB", m("gigabyte", "gigabyte")),
        ("TB", m("terabyte", "terabyte")),
        ("kcal", f("chilocaloria", "chilocalorie")),
    ],
    currencies: &[
        Currency {
            signs: &["€", "EUR"],
            unit: m("euro", "euro"),
            cent: m("centesimo", "centesimi"),
        },
        Currency {
            signs: &["$", "US$", "USD"],
            unit: m("dollaro", "dollari"),
            cent: m("centesimo", "centesimi"),
        },
        Currency {
            signs: &["£", "GBP"],
            unit: f("sterlina", "sterline"),
            cent: m("penny", "penny"),
        },
        Currency { signs: &["¥", "JPY"], unit: m("yen", "yen"), cent: m("sen", "sen") },
        Currency { signs: &["₹", "INR"], unit: f("rupia", "rupie"), cent: f("paisa", "paise") },
        Currency {
            signs: &["R$", "BRL"],
            unit: m("real", "real"),
            cent: m("centesimo", "centesimi"),
        },
        Currency {
            signs: &["CHF"],
            unit: m("franco svizzero", "franchi svizzeri"),
            cent: m("centesimo", "centesimi"),
        },
    ],
    scales: &[
        ("mila", m("mila", "mila"), false),
        ("k", m("mila", "mila"), false),
        ("M", m("milione", "milioni"), true),
        ("mln", m("milione", "milioni"), true),
        ("mld", m("miliardo", "miliardi"), true),
        ("milione", m("milione", "milioni"), true),
        ("milioni", m("milione", "milioni"), true),
        ("miliardo", m("miliardo", "miliardi"), true),
        ("miliardi", m("miliardo", "miliardi"), true),
    ],
    of: |noun| format!("di {noun}"),
    round: 1_000_000,
    short_forms: &[
        ("sig", "signor", Never),
        ("sig.ra", "signora", Never),
        ("sigg", "signori", Never),
        ("sig.na", "signorina", Never),
        ("dott", "dottor", Never),
        ("dott.ssa", "dottoressa", Never),
        ("dr", "dottor", Never),
        ("prof", "professor", Never),
        ("prof.ssa", "professoressa", Never),
        ("ing", "ingegner", Never),
        ("avv", "avvocato", Never),
        ("arch", "architetto", Never),
        ("geom", "geometra", Never),
        ("on", "onorevole", Never),
        ("gen", "generale", Never),
        ("s", "san", Never),
        ("v.le", "viale", Never),
        ("p.za", "piazza", Never),
        ("p.zza", "piazza", Never),
        ("c.so", "corso", Never),
        ("p.es", "per esempio", Never),
        ("es", "esempio", Never),
        ("ecc", "eccetera", Sometimes),
        ("cfr", "confronta", Never),
        ("pag", "pagina", BeforeNumber),
        ("pagg", "pagine", BeforeNumber),
        ("p", "pagina", BeforeNumber),
        ("pp", "pagine", BeforeNumber),
        ("n", "numero", BeforeNumber),
        ("n°", "numero", BeforeNumber),
        ("nº", "numero", BeforeNumber),
        ("art", "articolo", BeforeNumber),
        ("cap", "capitolo", BeforeNumber),
        ("vol", "volume", BeforeNumber),
        ("fig", "figura", BeforeNumber),
        ("tel", "telefono", Never),
        ("ca", "circa", Sometimes),
        ("max", "massimo", Sometimes),
        ("min", "minimo", Sometimes),
        ("a.c", "avanti Cristo", Sometimes),
        ("d.c", "dopo Cristo", Sometimes),
        ("s.p.a", "esse pi a", Sometimes),
        ("s.r.l", "esse erre elle", Sometimes),
        ("u.s.a", "USA", Sometimes),
        ("vs", "contro", Never),
        ("gen.le", "gentile", Never),
    ],
    starters: &[
        "Il", "Lo", "La", "I", "Gli", "Le", "Un", "Uno", "Una", "È", "E", "Ma", "O", "Se", "Non",
        "Si", "Sì", "No", "Io", "Tu", "Lui", "Lei", "Noi", "Voi", "Loro", "Questo", "Questa",
        "Quello", "In", "Per", "Con", "Da", "Di", "A", "Al", "Nel", "Nella", "Che", "Chi", "Come",
        "Quando", "Poi", "Dopo", "Prima", "Così", "Anche", "Ora", "Oggi", "Ieri", "Allora",
        "Quindi", "Sono", "Era", "Ci", "Mi", "Ti",
    ],
    symbols: &[
        ('&', "e"),
        ('+', "più"),
        ('=', "uguale"),
        ('×', "per"),
        ('÷', "diviso"),
        ('<', "minore di"),
        ('>', "maggiore di"),
        ('≤', "minore o uguale a"),
        ('≥', "maggiore o uguale a"),
        ('≈', "circa"),
        ('%', "per cento"),
        ('@', "chiocciola"),
        ('#', "cancelletto"),
        ('€', "euro"),
        ('$', "dollari"),
        ('£', "sterline"),
        ('°', "gradi"),
        ('§', "paragrafo"),
        ('©', "copyright"),
        ('½', "mezzo"),
        ('¼', "un quarto"),
        ('¾', "tre quarti"),
        ('²', "al quadrato"),
        ('³', "al cubo"),
        ('→', "freccia"),
        ('*', "asterisco"),
        ('~', "circa"),
    ],
    letters: &[],
    nouns: NounTable {
        feminine: &[
            "notte", "parte", "volte", "mano", "chiave", "classe", "legge", "voce", "luce", "rete",
        ],
        masculine: &[
            "problema",
            "sistema",
            "programma",
            "tema",
            "clima",
            "pianeta",
            "poema",
            "artista",
        ],
        feminine_endings: &["a", "ione", "tà", "tù", "trice"],
    },
    particles: &[
        "a", "e", "o", "ed", "di", "del", "della", "da", "dal", "in", "con", "per", "su", "tra",
        "fra", "che", "come", "è", "sono", "era", "si", "se", "ma", "non", "più", "meno", "al",
        "alla", "la", "le", "il", "i", "mila", "ha", "hanno",
    ],
    roman: RomanWords {
        centuries: &["secolo", "secoli"],
        chapters: &["capitolo", "tomo", "volume", "parte", "atto", "titolo", "fase", "scena"],
        said: roman,
    },
    has_pairs: false,
    callers: &["telefono", "tel", "cell", "cellulare", "chiama", "chiamate", "fax"],
};
