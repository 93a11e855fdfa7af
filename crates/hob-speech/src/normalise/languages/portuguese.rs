//! Brazilian Portuguese: its number words, and what it says for signs, units, money, dates and abbreviations.
//! "E" stands between the parts of a number, and one, two and the hundreds follow the gender of what they count.

use super::moment::feminine;
use super::table::*;
use crate::abbreviations::Ending::{BeforeNumber, Never, Sometimes};

const SMALL: [&str; 20] = [
    "zero",
    "um",
    "dois",
    "três",
    "quatro",
    "cinco",
    "seis",
    "sete",
    "oito",
    "nove",
    "dez",
    "onze",
    "doze",
    "treze",
    "quatorze",
    "quinze",
    "dezesseis",
    "dezessete",
    "dezoito",
    "dezenove",
];
const TENS: [&str; 10] = [
    "",
    "",
    "vinte",
    "trinta",
    "quarenta",
    "cinquenta",
    "sessenta",
    "setenta",
    "oitenta",
    "noventa",
];
const HUNDREDS: [&str; 10] = [
    "",
    "cento",
    "duzentos",
    "trezentos",
    "quatrocentos",
    "quinhentos",
    "seiscentos",
    "setecentos",
    "oitocentos",
    "novecentos",
];

fn cardinal(number: u64, form: Form) -> String {
    let (large, one, many) = match number {
        0..1_000 => return below_thousand(number, form),
        1_000..1_000_000 => (1_000, "mil", "mil"),
        1_000_000..1_000_000_000 => (1_000_000, "um milhão", "milhões"),
        1_000_000_000..1_000_000_000_000 => (1_000_000_000, "um bilhão", "bilhões"),
        _ => (1_000_000_000_000, "um trilhão", "trilhões"),
    };
    let (count, rest) = (number / large, number % large);
    let head_form = if large == 1_000 { form } else { Form::Alone };
    let head = match count {
        1 => one.to_owned(),
        _ => format!("{} {many}", cardinal(count, head_form)),
    };
    match rest {
        0 => head,
        _ if has_and(rest) => format!("{head} e {}", cardinal(rest, form)),
        _ => format!("{head} {}", cardinal(rest, form)),
    }
}

/// Whether "e" stands before the last part: "mil e cem", "dois mil e vinte", but "mil novecentos e noventa".
fn has_and(rest: u64) -> bool {
    match rest {
        0..1_000 => rest < 100 || rest.is_multiple_of(100),
        _ => rest.is_multiple_of(1_000),
    }
}

fn below_thousand(number: u64, form: Form) -> String {
    let (hundreds, rest) = ((number / 100) as usize, number % 100);
    if number == 100 {
        return "cem".to_owned();
    }
    let hundred = match form.is_feminine() && hundreds > 1 {
        true => format!("{}as", HUNDREDS[hundreds].trim_end_matches("os")),
        false => HUNDREDS[hundreds].to_owned(),
    };
    match (hundreds, rest) {
        (0, _) => below_hundred(rest, form),
        (_, 0) => hundred,
        _ => format!("{hundred} e {}", below_hundred(rest, form)),
    }
}

fn below_hundred(number: u64, form: Form) -> String {
    match (number, form.is_feminine()) {
        (1, true) => "uma".to_owned(),
        (2, true) => "duas".to_owned(),
        (0..20, _) => SMALL[number as usize].to_owned(),
        _ => match (TENS[(number / 10) as usize], number % 10) {
            (ten, 0) => ten.to_owned(),
            (ten, one) => format!("{ten} e {}", below_hundred(one, form)),
        },
    }
}

fn ordinal(number: u64, gender: NounGender, _is_short: bool) -> String {
    const ONES: [&str; 10] =
        ["", "primeir", "segund", "terceir", "quart", "quint", "sext", "sétim", "oitav", "non"];
    const TENS: [&str; 10] = [
        "",
        "décim",
        "vigésim",
        "trigésim",
        "quadragésim",
        "quinquagésim",
        "sexagésim",
        "septuagésim",
        "octogésim",
        "nonagésim",
    ];
    let ending = if gender == NounGender::Feminine { "a" } else { "o" };
    match ((number / 10) as usize, (number % 10) as usize) {
        (0, one @ 1..) => format!("{}{ending}", ONES[one]),
        (ten @ 1..10, 0) => format!("{}{ending}", TENS[ten]),
        (ten @ 1..10, one) => format!("{}{ending} {}{ending}", TENS[ten], ONES[one]),
        (10, 0) => format!("centésim{ending}"),
        _ => cardinal(number, Form::Alone),
    }
}

fn fraction(above: u64, below: u64) -> Option<String> {
    let part = match below {
        2 if above == 1 => return Some("meio".to_owned()),
        2 => m("meio", "meios"),
        3 => m("terço", "terços"),
        4 => m("quarto", "quartos"),
        5 => m("quinto", "quintos"),
        8 => m("oitavo", "oitavos"),
        10 => m("décimo", "décimos"),
        _ => return None,
    };
    parts(cardinal, above, part)
}

fn time(hour: u64, minute: u64) -> String {
    let name = if hour < 2 { "hora" } else { "horas" };
    let hour = feminine(cardinal, hour);
    match minute {
        0 => format!("{hour} {name}"),
        _ => format!("{hour} e {}", cardinal(minute, Form::Alone)),
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
        ("o", NounGender::Masculine, false),
        ("a", NounGender::Feminine, false),
    ],
    fraction,
    thousands: '.',
    decimal: ',',
    has_single_decimals: false,
    has_singular_below_two: true,
    signs: SignWords {
        minus: "menos",
        plus: "mais",
        comma: "vírgula",
        dot: "ponto",
        slash: "barra",
        at: "arroba",
        dash: "hífen",
        underscore: "sublinhado",
        colon: "dois pontos",
        to: "a",
        score: "a",
        cents: Some("e"),
        foreign_word: "palavra estrangeira",
        code_block: "bloco de código",
    },
    dates: Dates {
        months: [
            "janeiro",
            "fevereiro",
            "março",
            "abril",
            "maio",
            "junho",
            "julho",
            "agosto",
            "setembro",
            "outubro",
            "novembro",
            "dezembro",
        ],
        link: "de ",
        first: Some("primeiro"),
        openers: &["dia", "em", "no"],
        year: |year| cardinal(year, Form::Alone),
        time,
        hour_words: &["h", "hs", "hrs"],
        clock_openers: &[],
        duration: [f("hora", "horas"), m("minuto", "minutos"), m("segundo", "segundos")],
    },
    units: &[
        ("%", m("por cento", "por cento")),
        ("‰", m("por mil", "por mil")),
        ("km", m("quilômetro", "quilômetros")),
        ("m", m("metro", "metros")),
        ("cm", m("centímetro", "centímetros")),
        ("mm", m("milímetro", "milímetros")),
        ("km²", m("quilômetro quadrado", "quilômetros quadrados")),
        ("m²", m("metro quadrado", "metros quadrados")),
        ("m2", m("metro quadrado", "metros quadrados")),
        ("m³", m("metro cúbico", "metros cúbicos")),
        ("ha", m("hectare", "hectares")),
        ("kg", m("quilo", "quilos")),
        ("g", m("grama", "gramas")),
        ("mg", m("miligrama", "miligramas")),
        ("t", f("tonelada", "toneladas")),
        ("l", m("litro", "litros")),
        ("L", m("litro", "litros")),
        ("ml", m("mililitro", "mililitros")),
        ("h", f("hora", "horas")),
        ("hs", f("hora", "horas")),
        ("min", m("minuto", "minutos")),
        ("s", m("segundo", "segundos")),
        ("seg", m("segundo", "segundos")),
        ("ms", m("milissegundo", "milissegundos")),
        ("km/h", m("quilômetro por hora", "quilômetros por hora")),
        ("m/s", m("metro por segundo", "metros por segundo")),
        ("°", m("grau", "graus")),
        ("°C", m("grau Celsius", "graus Celsius")),
        ("ºC", m("grau Celsius", "graus Celsius")),
        ("°F", m("grau Fahrenheit", "graus Fahrenheit")),
        ("W", m("watt", "watts")),
        ("kW", m("quilowatt", "quilowatts")),
        ("kWh", m("quilowatt-hora", "quilowatts-hora")),
        ("V", m("volt", "volts")),
        ("Hz", m("hertz", "hertz")),
        ("MHz", m("mega-hertz", "mega-hertz")),
        ("GHz", m("giga-hertz", "giga-hertz")),
        ("KB", m("quilobyte", "quilobytes")),
        ("MB", m("megabyte", "megabytes")),
        ("GB", m("gigabyte", "gigabytes")),
        ("TB", m("terabyte", "terabytes")),
        ("kcal", f("quilocaloria", "quilocalorias")),
    ],
    currencies: &[
        Currency {
            signs: &["R$", "BRL"],
            unit: m("real", "reais"),
            cent: m("centavo", "centavos"),
        },
        Currency {
            signs: &["€", "EUR"], unit: m("euro", "euros"), cent: m("centavo", "centavos")
        },
        Currency {
            signs: &["$", "US$", "USD"],
            unit: m("dólar", "dólares"),
            cent: m("centavo", "centavos"),
        },
        Currency { signs: &["£", "GBP"], unit: f("libra", "libras"), cent: m("pêni", "pence") },
        Currency { signs: &["¥", "JPY"], unit: m("iene", "ienes"), cent: m("sen", "sen") },
        Currency {
            signs: &["₹", "INR"], unit: f("rúpia", "rúpias"), cent: f("paisa", "paisas")
        },
    ],
    scales: &[
        ("mil", m("mil", "mil"), false),
        ("k", m("mil", "mil"), false),
        ("mi", m("milhão", "milhões"), true),
        ("M", m("milhão", "milhões"), true),
        ("bi", m("bilhão", "bilhões"), true),
        ("milhão", m("milhão", "milhões"), true),
        ("milhões", m("milhão", "milhões"), true),
        ("bilhão", m("bilhão", "bilhões"), true),
        ("bilhões", m("bilhão", "bilhões"), true),
        ("trilhão", m("trilhão", "trilhões"), true),
        ("trilhões", m("trilhão", "trilhões"), true),
    ],
    of: |noun| format!("de {noun}"),
    round: 1_000_000,
    short_forms: &[
        ("sr", "senhor", Never),
        ("sra", "senhora", Never),
        ("srs", "senhores", Never),
        ("srta", "senhorita", Never),
        ("dr", "doutor", Never),
        ("dra", "doutora", Never),
        ("d", "dom", Never),
        ("prof", "professor", Never),
        ("profa", "professora", Never),
        ("eng", "engenheiro", Never),
        ("gen", "general", Never),
        ("cel", "coronel", Never),
        ("sto", "santo", Never),
        ("sta", "santa", Never),
        ("av", "avenida", Never),
        ("r", "rua", Never),
        ("al", "alameda", Never),
        ("pça", "praça", Never),
        ("p.ex", "por exemplo", Never),
        ("ex", "exemplo", Never),
        ("etc", "etcétera", Sometimes),
        ("pág", "página", BeforeNumber),
        ("págs", "páginas", BeforeNumber),
        ("p", "página", BeforeNumber),
        ("pp", "páginas", BeforeNumber),
        ("núm", "número", BeforeNumber),
        ("n.º", "número", BeforeNumber),
        ("nº", "número", BeforeNumber),
        ("n°", "número", BeforeNumber),
        ("art", "artigo", BeforeNumber),
        ("cap", "capítulo", BeforeNumber),
        ("vol", "volume", BeforeNumber),
        ("fig", "figura", BeforeNumber),
        ("tel", "telefone", Never),
        ("apto", "apartamento", BeforeNumber),
        ("aprox", "aproximadamente", Sometimes),
        ("máx", "máximo", Sometimes),
        ("mín", "mínimo", Sometimes),
        ("ltda", "limitada", Sometimes),
        ("cia", "companhia", Sometimes),
        ("a.c", "antes de Cristo", Sometimes),
        ("d.c", "depois de Cristo", Sometimes),
        ("s.a", "sociedade anônima", Sometimes),
        ("obs", "observação", Sometimes),
        ("vs", "contra", Never),
    ],
    starters: &[
        "O", "A", "Os", "As", "Um", "Uma", "É", "E", "Mas", "Ou", "Se", "Não", "Sim", "Eu", "Você",
        "Ele", "Ela", "Nós", "Eles", "Elas", "Este", "Esta", "Esse", "Essa", "Isso", "Isto", "Em",
        "No", "Na", "Nos", "Nas", "Por", "Para", "Com", "De", "Do", "Da", "Que", "Quem", "Como",
        "Quando", "Depois", "Antes", "Então", "Também", "Agora", "Hoje", "Ontem", "Já", "Há",
        "Foi", "Era", "São", "Ao",
    ],
    symbols: &[
        ('&', "e"),
        ('+', "mais"),
        ('=', "igual a"),
        ('×', "vezes"),
        ('÷', "dividido por"),
        ('<', "menor que"),
        ('>', "maior que"),
        ('≤', "menor ou igual a"),
        ('≥', "maior ou igual a"),
        ('≈', "aproximadamente"),
        ('%', "por cento"),
        ('@', "arroba"),
        ('#', "cerquilha"),
        ('€', "euros"),
        ('$', "dólares"),
        ('£', "libras"),
        ('°', "graus"),
        ('§', "parágrafo"),
        ('©', "copyright"),
        ('½', "meio"),
        ('¼', "um quarto"),
        ('¾', "três quartos"),
        ('²', "ao quadrado"),
        ('³', "ao cubo"),
        ('→', "seta"),
        ('*', "asterisco"),
        ('~', "aproximadamente"),
    ],
    letters: &[('A', "á"), ('E', "é"), ('O', "ó")],
    nouns: NounTable {
        feminine: &[
            "noite", "noites", "tarde", "tardes", "vez", "vezes", "mulher", "mulheres", "parte",
            "partes", "mão", "mãos", "classe", "classes", "cidade", "flor", "flores", "lei",
            "leis", "chave", "chaves", "voz", "vozes", "rede", "redes", "fase", "fases", "imagem",
            "imagens", "viagem", "viagens",
        ],
        masculine: &[
            "dia",
            "dias",
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
            "clima",
            "planeta",
            "planetas",
            "grama",
            "gramas",
            "artista",
            "artistas",
            "poema",
            "poemas",
            "sofá",
            "sofás",
        ],
        feminine_endings: &[
            "a", "as", "ção", "ções", "são", "sões", "dade", "dades", "agem", "agens",
        ],
    },
    particles: &[
        "a", "à", "às", "ao", "e", "o", "os", "as", "ou", "de", "do", "da", "dos", "das", "em",
        "no", "na", "com", "por", "para", "que", "como", "é", "são", "foi", "está", "se", "mas",
        "não", "mais", "menos", "até", "entre", "mil", "era", "tem", "têm", "esta", "essa",
    ],
    roman: RomanWords {
        centuries: &["século", "séculos"],
        chapters: &["capítulo", "tomo", "volume", "parte", "ato", "título", "fase", "guerra"],
        said: roman,
    },
    has_pairs: false,
    callers: &["telefone", "tel", "celular", "ligue", "whatsapp", "fax"],
};
