//! Spanish: its number words, and what it says for signs, units, money, dates and abbreviations.
//! One and the hundreds follow the gender of what they count, and are short before it: "veintiún libros".

use super::moment::feminine;
use super::table::*;
use crate::abbreviations::Ending::{BeforeNumber, Never, Sometimes};

const SMALL: [&str; 30] = [
    "cero",
    "uno",
    "dos",
    "tres",
    "cuatro",
    "cinco",
    "seis",
    "siete",
    "ocho",
    "nueve",
    "diez",
    "once",
    "doce",
    "trece",
    "catorce",
    "quince",
    "dieciséis",
    "diecisiete",
    "dieciocho",
    "diecinueve",
    "veinte",
    "veintiuno",
    "veintidós",
    "veintitrés",
    "veinticuatro",
    "veinticinco",
    "veintiséis",
    "veintisiete",
    "veintiocho",
    "veintinueve",
];
const TENS: [&str; 10] =
    ["", "", "", "treinta", "cuarenta", "cincuenta", "sesenta", "setenta", "ochenta", "noventa"];
const HUNDREDS: [&str; 10] = [
    "",
    "ciento",
    "doscientos",
    "trescientos",
    "cuatrocientos",
    "quinientos",
    "seiscientos",
    "setecientos",
    "ochocientos",
    "novecientos",
];

fn cardinal(number: u64, form: Form) -> String {
    let before_thousand = match form {
        Form::Alone => Form::Before(NounGender::Masculine),
        known => known,
    };
    let masculine = Form::Before(NounGender::Masculine);
    let (count, large) = match number {
        0..1_000 => return below_thousand(number, form),
        1_000..1_000_000 => (number / 1_000, 1_000),
        1_000_000..1_000_000_000_000 => (number / 1_000_000, 1_000_000),
        _ => (number / 1_000_000_000_000, 1_000_000_000_000),
    };
    let head = match (count, large) {
        (1, 1_000) => "mil".to_owned(),
        (_, 1_000) => format!("{} mil", cardinal(count, before_thousand)),
        (1, 1_000_000) => "un millón".to_owned(),
        (_, 1_000_000) => format!("{} millones", cardinal(count, masculine)),
        (1, _) => "un billón".to_owned(),
        _ => format!("{} billones", cardinal(count, masculine)),
    };
    match number % large {
        0 => head,
        rest => format!("{head} {}", cardinal(rest, form)),
    }
}

fn below_thousand(number: u64, form: Form) -> String {
    let (hundreds, rest) = ((number / 100) as usize, number % 100);
    if number == 100 {
        return "cien".to_owned();
    }
    let hundred = match form.is_feminine() && hundreds > 1 {
        true => format!("{}as", HUNDREDS[hundreds].trim_end_matches("os")),
        false => HUNDREDS[hundreds].to_owned(),
    };
    match (hundreds, rest) {
        (0, _) => below_hundred(rest, form),
        (_, 0) => hundred,
        _ => format!("{hundred} {}", below_hundred(rest, form)),
    }
}

fn below_hundred(number: u64, form: Form) -> String {
    match (number, form) {
        (1, Form::Before(NounGender::Masculine)) => "un".to_owned(),
        (1, Form::Before(NounGender::Feminine)) => "una".to_owned(),
        (21, Form::Before(NounGender::Masculine)) => "veintiún".to_owned(),
        (21, Form::Before(NounGender::Feminine)) => "veintiuna".to_owned(),
        (0..30, _) => SMALL[number as usize].to_owned(),
        _ => match (TENS[(number / 10) as usize], number % 10) {
            (ten, 0) => ten.to_owned(),
            (ten, one) => format!("{ten} y {}", below_hundred(one, form)),
        },
    }
}

fn ordinal(number: u64, gender: NounGender, is_short: bool) -> String {
    const ONES: [&str; 10] =
        ["", "primer", "segund", "tercer", "cuart", "quint", "sext", "séptim", "octav", "noven"];
    const TENS: [&str; 10] = [
        "",
        "décim",
        "vigésim",
        "trigésim",
        "cuadragésim",
        "quincuagésim",
        "sexagésim",
        "septuagésim",
        "octogésim",
        "nonagésim",
    ];
    let ending = if gender == NounGender::Feminine { "a" } else { "o" };
    let (ten, one) = ((number / 10) as usize, (number % 10) as usize);
    match (ten, one) {
        (0, 1 | 3) if is_short => ONES[one].to_owned(),
        (0, 1..) => format!("{}{ending}", ONES[one]),
        (1, 1) => format!("undécim{ending}"),
        (1, 2) => format!("duodécim{ending}"),
        (1..10, 0) => format!("{}{ending}", TENS[ten]),
        (1..10, _) => format!("{}{ending} {}{ending}", TENS[ten], ONES[one]),
        (10, 0) => format!("centésim{ending}"),
        _ => cardinal(number, Form::Alone),
    }
}

fn fraction(above: u64, below: u64) -> Option<String> {
    let part = match below {
        2 => m("medio", "medios"),
        3 => m("tercio", "tercios"),
        4 => m("cuarto", "cuartos"),
        5 => m("quinto", "quintos"),
        8 => m("octavo", "octavos"),
        10 => m("décimo", "décimos"),
        _ => return None,
    };
    parts(cardinal, above, part)
}

fn time(hour: u64, minute: u64) -> String {
    let hour = feminine(cardinal, hour);
    match minute {
        0 => hour,
        1..10 => format!("{hour} y {}", cardinal(minute, Form::Alone)),
        _ => format!("{hour} {}", cardinal(minute, Form::Alone)),
    }
}

fn roman(number: u64, place: RomanPlace) -> String {
    match place {
        RomanPlace::AfterCentury | RomanPlace::Ruler if number <= 10 => {
            ordinal(number, NounGender::Masculine, false)
        }
        _ => cardinal(number, Form::Alone),
    }
}

pub(super) static TABLE: LanguageTable = LanguageTable {
    cardinal,
    ordinal,
    ordinal_marks: &[
        ("º", NounGender::Masculine, false),
        ("ª", NounGender::Feminine, false),
        ("er", NounGender::Masculine, true),
        ("ᵉʳ", NounGender::Masculine, true),
        ("ro", NounGender::Masculine, false),
        ("ra", NounGender::Feminine, false),
        ("do", NounGender::Masculine, false),
        ("da", NounGender::Feminine, false),
        ("to", NounGender::Masculine, false),
        ("ta", NounGender::Feminine, false),
        ("mo", NounGender::Masculine, false),
        ("ma", NounGender::Feminine, false),
        ("vo", NounGender::Masculine, false),
        ("va", NounGender::Feminine, false),
        ("no", NounGender::Masculine, false),
        ("na", NounGender::Feminine, false),
    ],
    fraction,
    thousands: '.',
    decimal: ',',
    has_single_decimals: false,
    has_singular_below_two: false,
    signs: SignWords {
        minus: "menos",
        plus: "más",
        comma: "coma",
        dot: "punto",
        slash: "barra",
        at: "arroba",
        dash: "guion",
        underscore: "guion bajo",
        colon: "dos puntos",
        to: "a",
        score: "a",
        cents: Some("con"),
        foreign_word: "palabra extranjera",
        code_block: "bloque de código",
    },
    dates: Dates {
        months: [
            "enero",
            "febrero",
            "marzo",
            "abril",
            "mayo",
            "junio",
            "julio",
            "agosto",
            "septiembre",
            "octubre",
            "noviembre",
            "diciembre",
        ],
        link: "de ",
        first: None,
        openers: &["el", "del", "al", "día", "fecha"],
        year: |year| cardinal(year, Form::Alone),
        time,
        hour_words: &["h", "hs", "hrs"],
        clock_openers: &["las", "la"],
        duration: [f("hora", "horas"), m("minuto", "minutos"), m("segundo", "segundos")],
    },
    units: &[
        ("%", m("por ciento", "por ciento")),
        ("‰", m("por mil", "por mil")),
        ("km", m("kilómetro", "kilómetros")),
        ("m", m("metro", "metros")),
        ("cm", m("centímetro", "centímetros")),
        ("mm", m("milímetro", "milímetros")),
        ("km²", m("kilómetro cuadrado", "kilómetros cuadrados")),
        ("m²", m("metro cuadrado", "metros cuadrados")),
        ("m2", m("metro cuadrado", "metros cuadrados")),
        ("m³", m("metro cúbico", "metros cúbicos")),
        ("ha", f("hectárea", "hectáreas")),
        ("kg", m("kilo", "kilos")),
        ("g", m("gramo", "gramos")),
        ("gr", m("gramo", "gramos")),
        ("mg", m("miligramo", "miligramos")),
        ("t", f("tonelada", "toneladas")),
        ("l", m("litro", "litros")),
        ("L", m("litro", "litros")),
        ("ml", m("mililitro", "mililitros")),
        ("cl", m("centilitro", "centilitros")),
        ("h", f("hora", "horas")),
        ("min", m("minuto", "minutos")),
        ("s", m("segundo", "segundos")),
        ("seg", m("segundo", "segundos")),
        ("ms", m("milisegundo", "milisegundos")),
        ("km/h", m("kilómetro por hora", "kilómetros por hora")),
        ("m/s", m("metro por segundo", "metros por segundo")),
        ("°", m("grado", "grados")),
        ("°C", m("grado Celsius", "grados Celsius")),
        ("ºC", m("grado Celsius", "grados Celsius")),
        ("°F", m("grado Fahrenheit", "grados Fahrenheit")),
        ("W", m("vatio", "vatios")),
        ("kW", m("kilovatio", "kilovatios")),
        ("kWh", m("kilovatio hora", "kilovatios hora")),
        ("V", m("voltio", "voltios")),
        ("Hz", m("hercio", "hercios")),
        ("MHz", m("megahercio", "megahercios")),
        ("GHz", m("gigahercio", "gigahercios")),
        ("KB", m("kilobyte", "kilobytes")),
        ("MB", m("megabyte", "megabytes")),
        ("GB", m("gigabyte", "gigabytes")),
        ("TB", m("terabyte", "terabytes")),
        ("cal", f("caloría", "calorías")),
        ("kcal", f("kilocaloría", "kilocalorías")),
    ],
    currencies: &[
        Currency {
            signs: &["€", "EUR"], unit: m("euro", "euros"), cent: m("céntimo", "céntimos")
        },
        Currency {
            signs: &["$", "US$", "USD"],
            unit: m("dólar", "dólares"),
            cent: m("centavo", "centavos"),
        },
        Currency {
            signs: &["£", "GBP"],
            unit: f("libra", "libras"),
            cent: m("penique", "peniques"),
        },
        Currency { signs: &["¥", "JPY"], unit: m("yen", "yenes"), cent: m("sen", "sen") },
        Currency { signs: &["₹", "INR"], unit: f("rupia", "rupias"), cent: f("paisa", "paisas") },
        Currency {
            signs: &["R$", "BRL"],
            unit: m("real", "reales"),
            cent: m("centavo", "centavos"),
        },
        Currency { signs: &["MXN"], unit: m("peso", "pesos"), cent: m("centavo", "centavos") },
    ],
    scales: &[
        ("mil", m("mil", "mil"), false),
        ("k", m("mil", "mil"), false),
        ("K", m("mil", "mil"), false),
        ("M", m("millón", "millones"), true),
        ("millón", m("millón", "millones"), true),
        ("millones", m("millón", "millones"), true),
        ("billones", m("billón", "billones"), true),
    ],
    of: |noun| format!("de {noun}"),
    round: 1_000_000,
    short_forms: &[
        ("sr", "señor", Never),
        ("sra", "señora", Never),
        ("srta", "señorita", Never),
        ("sres", "señores", Never),
        ("dr", "doctor", Never),
        ("dra", "doctora", Never),
        ("d", "don", Never),
        ("dña", "doña", Never),
        ("prof", "profesor", Never),
        ("profa", "profesora", Never),
        ("ing", "ingeniero", Never),
        ("lic", "licenciado", Never),
        ("gral", "general", Never),
        ("sto", "santo", Never),
        ("sta", "santa", Never),
        ("ud", "usted", Sometimes),
        ("uds", "ustedes", Sometimes),
        ("vd", "usted", Sometimes),
        ("av", "avenida", Never),
        ("avda", "avenida", Never),
        ("c/", "calle", Never),
        ("pza", "plaza", Never),
        ("p.ej", "por ejemplo", Never),
        ("ej", "ejemplo", Never),
        ("etc", "etcétera", Sometimes),
        ("pág", "página", BeforeNumber),
        ("págs", "páginas", BeforeNumber),
        ("p", "página", BeforeNumber),
        ("pp", "páginas", BeforeNumber),
        ("núm", "número", BeforeNumber),
        ("n.º", "número", BeforeNumber),
        ("nº", "número", BeforeNumber),
        ("n°", "número", BeforeNumber),
        ("art", "artículo", BeforeNumber),
        ("cap", "capítulo", BeforeNumber),
        ("vol", "volumen", BeforeNumber),
        ("fig", "figura", BeforeNumber),
        ("tel", "teléfono", Never),
        ("aprox", "aproximadamente", Sometimes),
        ("máx", "máximo", Sometimes),
        ("mín", "mínimo", Sometimes),
        ("depto", "departamento", Sometimes),
        ("ee.uu", "Estados Unidos", Sometimes),
        ("a.c", "antes de Cristo", Sometimes),
        ("d.c", "después de Cristo", Sometimes),
        ("a.m", "a eme", Sometimes),
        ("p.m", "pe eme", Sometimes),
        ("s.a", "sociedad anónima", Sometimes),
        ("vs", "contra", Never),
        ("cía", "compañía", Sometimes),
    ],
    starters: &[
        "El", "La", "Los", "Las", "Un", "Una", "En", "Es", "No", "Se", "Y", "Pero", "Si", "Sí",
        "Yo", "Él", "Ella", "Esto", "Este", "Esta", "Así", "Por", "Para", "Como", "Cuando", "Hay",
        "Hoy", "Luego", "Después", "También", "Entonces", "Nos", "Me", "Te", "Lo", "Le", "De",
        "Con", "Ya", "Al", "A", "Su", "Mi", "Todo", "Todos", "Son", "Fue", "Era",
    ],
    symbols: &[
        ('&', "y"),
        ('+', "más"),
        ('=', "igual a"),
        ('×', "por"),
        ('÷', "entre"),
        ('<', "menor que"),
        ('>', "mayor que"),
        ('≤', "menor o igual que"),
        ('≥', "mayor o igual que"),
        ('≈', "aproximadamente"),
        ('%', "por ciento"),
        ('@', "arroba"),
        ('#', "almohadilla"),
        ('€', "euros"),
        ('$', "dólares"),
        ('£', "libras"),
        ('°', "grados"),
        ('§', "sección"),
        ('©', "copyright"),
        ('½', "medio"),
        ('¼', "un cuarto"),
        ('¾', "tres cuartos"),
        ('²', "al cuadrado"),
        ('³', "al cubo"),
        ('→', "flecha"),
        ('*', "asterisco"),
        ('~', "aproximadamente"),
    ],
    letters: &[('Y', "i griega")],
    nouns: NounTable {
        feminine: &[
            "mujer",
            "mujeres",
            "vez",
            "veces",
            "noche",
            "noches",
            "tarde",
            "tardes",
            "clase",
            "clases",
            "parte",
            "partes",
            "calle",
            "calles",
            "mano",
            "manos",
            "flor",
            "flores",
            "ley",
            "leyes",
            "llave",
            "llaves",
            "serie",
            "series",
            "red",
            "redes",
            "imagen",
            "imágenes",
            "voz",
            "voces",
        ],
        masculine: &[
            "día",
            "días",
            "mapa",
            "mapas",
            "problema",
            "problemas",
            "sistema",
            "sistemas",
            "programa",
            "programas",
            "tema",
            "temas",
            "idioma",
            "idiomas",
            "planeta",
            "planetas",
            "poema",
            "poemas",
            "artista",
            "artistas",
            "turista",
            "turistas",
            "futbolistas",
            "sofá",
            "sofás",
        ],
        feminine_endings: &["a", "as", "ción", "ciones", "sión", "siones", "dad", "dades", "tud"],
    },
    particles: &[
        "a", "al", "y", "e", "o", "u", "de", "del", "en", "con", "por", "para", "que", "como",
        "es", "son", "está", "están", "fue", "se", "más", "menos", "si", "no", "entre", "hasta",
        "desde", "ni", "mil", "la", "las", "esta", "ya", "pero", "sobre", "era", "será", "ha",
        "han",
    ],
    roman: RomanWords {
        centuries: &["siglo", "siglos"],
        chapters: &["capítulo", "tomo", "volumen", "parte", "acto", "título", "fase", "guerra"],
        said: roman,
    },
    has_pairs: false,
    callers: &["teléfono", "tel", "tfno", "móvil", "celular", "llame", "llama", "fax"],
};
