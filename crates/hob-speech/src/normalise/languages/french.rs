//! French: its number words, and what it says for signs, units, money, dates and abbreviations.
//! Its tens count by twenty from 70 on, and money of a million needs "de": "un million d'euros".

use super::table::*;
use crate::abbreviations::ShortForms;

const SMALL: [&str; 20] = [
    "zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze",
    "douze", "treize", "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf",
];
const TENS: [&str; 7] = ["", "", "vingt", "trente", "quarante", "cinquante", "soixante"];

fn cardinal(number: u64, form: Form) -> String {
    let (large, one, many) = match number {
        0..1_000 => return below_thousand(number, form),
        1_000..1_000_000 => (1_000, "mille", "mille"),
        1_000_000..1_000_000_000 => (1_000_000, "un million", "millions"),
        1_000_000_000..1_000_000_000_000 => (1_000_000_000, "un milliard", "milliards"),
        _ => (1_000_000_000_000, "un billion", "billions"),
    };
    let count = number / large;
    let words = cardinal(count, Form::Alone);
    let head = match large {
        _ if count == 1 => one.to_owned(),
        1_000 => format!("{} {many}", singular(&words)),
        _ => format!("{words} {many}"),
    };
    match number % large {
        0 => head,
        rest => format!("{head} {}", cardinal(rest, form)),
    }
}

/// "quatre-vingt mille", "deux cent mille", "deux centième": no s before "mille" and in an ordinal.
fn singular(words: &str) -> &str {
    let has_s = ["quatre-vingts", "cents"].iter().any(|end| words.ends_with(end));
    if has_s { &words[..words.len() - 1] } else { words }
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
    let words = singular(&words);
    if let Some(stem) = words.strip_suffix("neuf") {
        return format!("{stem}neuvième");
    }
    if words.ends_with("cinq") {
        return format!("{words}uième");
    }
    format!("{}ième", words.strip_suffix('e').unwrap_or(words))
}

fn time(hour: u64, minute: u64) -> String {
    let name = if hour < 2 { "heure" } else { "heures" };
    let hour = cardinal(hour, Form::Before(NounGender::Feminine));
    match minute {
        0 => format!("{hour} {name}"),
        _ => format!("{hour} {name} {}", cardinal(minute, Form::Alone)),
    }
}

fn roman(number: u64, place: RomanPlace, gender: NounGender) -> String {
    match place {
        RomanPlace::Ruler if number > 1 => cardinal(number, Form::Alone),
        RomanPlace::Chapter | RomanPlace::AfterCentury => cardinal(number, Form::Alone),
        _ => ordinal(number, gender, false),
    }
}

fn of(noun: &str) -> String {
    let is_elided = noun.starts_with(['a', 'e', 'é', 'i', 'o', 'u', 'h']);
    if is_elided { format!("d'{noun}") } else { format!("de {noun}") }
}

pub(super) static TABLE: LanguageTable = LanguageTable {
    cardinal,
    ordinal,
    ordinal_marks: OrdinalMarks {
        masculine: "er ᵉʳ e ᵉ ème eme ième nd",
        feminine: "re ère nde",
        short: "nd nde",
    },
    fractions: "
        2 demi/demis, 3 tiers, 4 quart/quarts, 5 cinquième/cinquièmes, 8 huitième/huitièmes,
        1/10 un dixième",
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
        over: "sur",
        at: "arobase",
        dash: "tiret",
        underscore: "tiret bas",
        colon: "deux points",
        to: "à",
        per: "par",
        score: "à",
        cents: None,
        foreign_word: "mot étranger",
        code_block: "bloc de code",
    },
    dates: Dates {
        months: "
            janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        link: "",
        first: Some("premier"),
        openers: &["le", "du", "au"],
        year: |year| cardinal(year, Form::Alone),
        time,
        hour_words: &["h"],
        contracted: "",
        clock_openers: &[],
        duration: [f("heure", "heures"), f("minute", "minutes"), f("seconde", "secondes")],
    },
    units: "
        % pour cent, ‰ pour mille, km kilomètre/kilomètres, m mètre/mètres,
        cm centimètre/centimètres, mm millimètre/millimètres,
        km² kilomètre carré/kilomètres carrés, m² mètre carré/mètres carrés,
        m2 mètre carré/mètres carrés, m³ mètre cube/mètres cubes, ha hectare/hectares,
        kg kilo/kilos, g gramme/grammes, mg milligramme/milligrammes, t tonne/tonnes (f),
        l litre/litres, L litre/litres, ml millilitre/millilitres, cl centilitre/centilitres,
        h heure/heures (f), min minute/minutes (f), mn minute/minutes (f), s seconde/secondes (f),
        sec seconde/secondes (f), ms milliseconde/millisecondes (f),
        km/h kilomètre heure/kilomètres heure, m/s mètre par seconde/mètres par seconde,
        ° degré/degrés, °C degré Celsius/degrés Celsius, ºC degré Celsius/degrés Celsius,
        °F degré Fahrenheit/degrés Fahrenheit, W watt/watts, kW kilowatt/kilowatts,
        kWh kilowattheure/kilowattheures, V volt/volts, Hz hertz, MHz mégahertz, GHz gigahertz,
        Ko kilooctet/kilooctets, Mo mégaoctet/mégaoctets, Go gigaoctet/gigaoctets,
        To téraoctet/téraoctets, MB mégaoctet/mégaoctets, GB gigaoctet/gigaoctets,
        kcal kilocalorie/kilocalories (f)",
    currencies: &[
        money("€ EUR", m("euro", "euros"), m("centime", "centimes")),
        money("$ US$ USD", m("dollar", "dollars"), m("cent", "cents")),
        money("£ GBP", f("livre", "livres"), m("penny", "pence")),
        money("¥ JPY", m("yen", "yens"), m("sen", "sens")),
        money("₹ INR", f("roupie", "roupies"), m("paisa", "paisas")),
        money("R$ BRL", m("réal", "réaux"), m("centavo", "centavos")),
        money("CHF", m("franc suisse", "francs suisses"), m("centime", "centimes")),
    ],
    scales: "mille mille, k mille",
    scales_with_of: "
        M million/millions, Md milliard/milliards, Mds milliard/milliards,
        million million/millions, millions million/millions, milliard milliard/milliards,
        milliards milliard/milliards",
    of,
    short_forms: ShortForms {
        never: "
            m monsieur, mm messieurs, mr monsieur, mme madame, mmes mesdames, mlle mademoiselle,
            dr docteur, pr professeur, me maître, mgr monseigneur, st saint, ste sainte, av avenue,
            bd boulevard, boul boulevard, pl place, p.ex par exemple, ex exemple, cf confer,
            c.-à-d c'est-à-dire, tél téléphone, sept septembre, vs contre",
        before_number: "
            p page, pp pages, n° numéro, nº numéro, art article, chap chapitre, vol volume, fig figure,
            éd édition",
        sometimes: "
            etc et cetera, env environ, max maximum, min minimum, janv janvier, févr février,
            juill juillet, oct octobre, nov novembre, déc décembre, av.j.-c avant Jésus-Christ,
            j.-c Jésus-Christ, s.a S A",
    },
    starters: "
        Le La Les L Un Une Des Il Elle Ils Elles On Nous Vous Je Tu C Ce Cette Ces Et Mais Ou Donc
        Car En Dans Pour Par Avec Sans Si Quand Comme Puis Ensuite Après Avant Aussi Alors Oui Non
        Qui Que De Du À Au Aux Son Sa Ses Notre",
    symbols: "
        & et, + plus, = égale, × fois, ÷ divisé par, < inférieur à, > supérieur à,
        ≤ inférieur ou égal à, ≥ supérieur ou égal à, ≈ environ, % pour cent, @ arobase, # dièse,
        € euros, $ dollars, £ livres, ° degrés, § paragraphe, © copyright, ½ demi, ¼ un quart,
        ¾ trois quarts, ² au carré, ³ au cube, → flèche, * astérisque, ~ environ",
    acronyms: "
        API, BEP, CAP, CEO, HEC, IUT, PACS pacs, PIB, RER, SAV, SMIC smic, SUV, TER, USA, VIH, VIP,
        VOD",
    letters: &[('Y', "i grec"), ('E', "e"), ('A', "a")],
    nouns: NounTable {
        feminine: "
            heure heures minute minutes seconde secondes fois personne personnes page pages année
            années semaine semaines journée journées nuit nuits maison maisons table tables
            voiture voitures femme femmes fille filles chambre chambres place places porte portes
            pièce pièces bouteille bouteilles livres ville villes rue rues école écoles famille
            familles ligne lignes étoile étoiles part parts partie parties étape étapes carte
            cartes lettre lettres image images chose choses question questions tonne tonnes",
        masculine: "été musée lycée comité côté",
        feminine_endings: "tion tions sion sions ette ettes ée ées té tés ance ances ence ences",
    },
    elided_one: None,
    particles: "
        à au aux et ou de du des en avec par pour que qui est sont était dans sur sous plus moins
        pas ne le la les il elle ce mille ans",
    roman: RomanWords {
        centuries: &["siècle", "siècles"],
        chapters: "
            chapitre tome volume partie acte titre phase scène article annexe section livre type
            groupe niveau",
        marks: "ème ère er re e ᵉʳ ʳᵉ ᵉ",
        feminine_articles: "la",
        masculine_articles: "le au du",
        said: roman,
    },
    has_pairs: true,
    callers: &["téléphone", "tél", "tel", "portable", "appelez", "appeler", "composez", "fax"],
};
