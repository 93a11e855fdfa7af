//! Italian: its number words, and what it says for signs, units, money, dates and abbreviations.
//! A number below a million is one word, and drops a vowel before "uno" and "otto": "ventuno".

use super::table::*;
use crate::abbreviations::ShortForms;
use crate::word_table::nth;

const SMALL: &str = "
    zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici
    quindici sedici diciassette diciotto diciannove";
const TENS: &str = "venti trenta quaranta cinquanta sessanta settanta ottanta novanta";

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
        count => format!("{}cento", nth(SMALL, count)),
    };
    match rest {
        0 => hundred,
        8 | 80..90 => format!("{}{}", hundred.trim_end_matches('o'), below_hundred(rest)),
        _ => format!("{hundred}{}", below_hundred(rest)),
    }
}

fn below_hundred(number: u64) -> String {
    if number < 20 {
        return nth(SMALL, number).to_owned();
    }
    let ten = nth(TENS, number / 10 - 2);
    match number % 10 {
        0 => ten.to_owned(),
        one @ (1 | 8) => format!("{}{}", &ten[..ten.len() - 1], nth(SMALL, one)),
        one => format!("{ten}{}", nth(SMALL, one)),
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

fn time(hour: u64, minute: u64) -> String {
    let hour = cardinal(hour, Form::Before(NounGender::Feminine));
    match minute {
        0 => hour,
        _ => format!("{hour} e {}", cardinal(minute, Form::Alone)),
    }
}

fn roman(number: u64, place: RomanPlace, gender: NounGender) -> String {
    match place {
        RomanPlace::Chapter => cardinal(number, Form::Alone),
        _ => ordinal(number, gender, false),
    }
}

pub(super) static TABLE: LanguageTable = LanguageTable {
    cardinal,
    ordinal,
    ordinal_marks: OrdinalMarks { masculine: "º ° o", feminine: "ª", short: "" },
    fractions: "
        2 mezzo/mezzi, 3 terzo/terzi, 4 quarto/quarti, 5 quinto/quinti, 8 ottavo/ottavi,
        1/10 un decimo",
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
        over: "su",
        at: "chiocciola",
        dash: "trattino",
        underscore: "trattino basso",
        colon: "due punti",
        to: "a",
        per: "per",
        score: "a",
        cents: Some("e"),
        foreign_word: "parola straniera",
        code_block: "blocco di codice",
    },
    dates: Dates {
        months: "
            gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre
            dicembre",
        link: "",
        first: Some("primo"),
        openers: &["il", "del", "dal", "al"],
        year: |year| cardinal(year, Form::Alone),
        time,
        hour_words: &["h"],
        contracted: "
            alle all', dalle dall', le l', delle dell', nelle nell', sulle sull', all all',
            dall dall', l l', dell dell', nell nell', sull sull'",
        clock_openers: &["ore", "alle", "dalle", "le"],
        duration: [f("ora", "ore"), m("minuto", "minuti"), m("secondo", "secondi")],
    },
    units: "
        % per cento, ‰ per mille, km chilometro/chilometri, m metro/metri,
        cm centimetro/centimetri, mm millimetro/millimetri,
        km² chilometro quadrato/chilometri quadrati, m² metro quadrato/metri quadrati,
        m2 metro quadrato/metri quadrati, mq metro quadrato/metri quadrati,
        m³ metro cubo/metri cubi, ha ettaro/ettari, kg chilo/chili, g grammo/grammi,
        gr grammo/grammi, mg milligrammo/milligrammi, t tonnellata/tonnellate (f), l litro/litri,
        L litro/litri, ml millilitro/millilitri, cl centilitro/centilitri, h ora/ore (f),
        ora ora/ore (f),
        min minuto/minuti, s secondo/secondi, sec secondo/secondi, ms millisecondo/millisecondi,
        km/h chilometro orario/chilometri orari, m/s metro al secondo/metri al secondo,
        °C grado Celsius/gradi Celsius, ºC grado Celsius/gradi Celsius,
        °F grado Fahrenheit/gradi Fahrenheit, W watt, kW chilowatt, kWh chilowattora, V volt,
        Hz hertz, MHz megahertz, GHz gigahertz, KB kilobyte, MB megabyte, GB gigabyte, TB terabyte,
        kcal chilocaloria/chilocalorie (f)",
    currencies: &[
        money("€ EUR", m("euro", "euro"), m("centesimo", "centesimi")),
        money("$ US$ USD", m("dollaro", "dollari"), m("centesimo", "centesimi")),
        money("£ GBP", f("sterlina", "sterline"), m("penny", "penny")),
        money("¥ JPY", m("yen", "yen"), m("sen", "sen")),
        money("₹ INR", f("rupia", "rupie"), f("paisa", "paise")),
        money("R$ BRL", m("real", "real"), m("centesimo", "centesimi")),
        money("CHF", m("franco svizzero", "franchi svizzeri"), m("centesimo", "centesimi")),
    ],
    scales: "mila mila, k mila",
    scales_with_of: "
        M milione/milioni, mln milione/milioni, mld miliardo/miliardi, milione milione/milioni,
        milioni milione/milioni, miliardo miliardo/miliardi, miliardi miliardo/miliardi",
    of: |noun| format!("di {noun}"),
    short_forms: ShortForms {
        never: "
            sig signor, sig.ra signora, sigg signori, sig.na signorina, dott dottor,
            dott.ssa dottoressa, dr dottor, prof professor, prof.ssa professoressa, ing ingegner,
            avv avvocato, arch architetto, geom geometra, on onorevole, gen generale, s san,
            v.le viale, p.za piazza, p.zza piazza, c.so corso, p.es per esempio, es esempio,
            cfr confronta, tel telefono, vs contro, gen.le gentile",
        before_number: "
            pag pagina, pagg pagine, p pagina, pp pagine, n numero, n° numero, nº numero,
            art articolo, cap capitolo, vol volume, fig figura, sec secolo",
        sometimes: "
            ecc eccetera, ca circa, max massimo, min minimo, a.c avanti Cristo, d.c dopo Cristo,
            s.p.a esse pi a, s.r.l esse erre elle, u.s.a USA",
    },
    starters: "
        Il Lo La I Gli Le Un Uno Una È E Ma O Se Non Si Sì No Io Tu Lui Lei Noi Voi Loro Questo
        Questa Quello In Per Con Da Di A Al Nel Nella Che Chi Come Quando Poi Dopo Prima Così
        Anche Ora Oggi Ieri Allora Quindi Sono Era Ci Mi Ti",
    symbols: "
        & e, + più, = uguale, × per, ÷ diviso, < minore di, > maggiore di, ≤ minore o uguale a,
        ≥ maggiore o uguale a, ≈ circa, % per cento, @ chiocciola, # cancelletto, € euro,
        $ dollari, £ sterline, ° gradi, § paragrafo, © copyright, ½ mezzo, ¼ un quarto,
        ¾ tre quarti, ² al quadrato, ³ al cubo, → freccia, * asterisco, ~ circa",
    acronyms: "HIV, INPS inps, SPID spid",
    letters: &[],
    nouns: NounTable {
        feminine: "notte parte volte mano chiave classe legge voce luce rete",
        masculine: "problema sistema programma tema clima pianeta poema artista",
        feminine_endings: "a ione tà tù trice",
    },
    elided_one: Some("un'"),
    particles: "
        a e o ed di del della da dal in con per su tra fra che come è sono era si se ma non più
        meno al alla la le il i mila ha hanno",
    roman: RomanWords {
        centuries: &["secolo", "secoli"],
        chapters: "
            capitolo tomo volume parte atto titolo fase scena articolo allegato sezione libro tipo
            gruppo livello",
        marks: "º ° ª",
        feminine_articles: "la alla dalla della nella",
        masculine_articles: "il al dal del nel",
        said: roman,
    },
    has_pairs: false,
    callers: &["telefono", "tel", "cell", "cellulare", "chiama", "chiamate", "fax"],
};
