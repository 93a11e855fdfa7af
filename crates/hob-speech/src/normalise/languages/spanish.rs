//! Spanish: its number words, and what it says for signs, units, money, dates and abbreviations.
//! One and the hundreds follow the gender of what they count, and are short before it: "veintiún libros".

use super::table::*;
use crate::abbreviations::ShortForms;
use crate::word_table::nth;

const SMALL: &str = "
    cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince
    dieciséis diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro
    veinticinco veintiséis veintisiete veintiocho veintinueve";
const TENS: [&str; 10] =
    ["", "", "", "treinta", "cuarenta", "cincuenta", "sesenta", "setenta", "ochenta", "noventa"];
const HUNDREDS: &str = "
    ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos
    novecientos";

fn cardinal(number: u64, form: Form) -> String {
    let (large, one, many) = match number {
        0..1_000 => return below_thousand(number, form),
        1_000..1_000_000 => (1_000, "mil", "mil"),
        1_000_000..1_000_000_000_000 => (1_000_000, "un millón", "millones"),
        _ => (1_000_000_000_000, "un billón", "billones"),
    };
    let has_gender = large == 1_000 && form.is_feminine();
    let count_form = if has_gender { form } else { Form::Before(NounGender::Masculine) };
    let head = match number / large {
        1 => one.to_owned(),
        count => format!("{} {many}", cardinal(count, count_form)),
    };
    match number % large {
        0 => head,
        rest => format!("{head} {}", cardinal(rest, form)),
    }
}

fn below_thousand(number: u64, form: Form) -> String {
    let (hundreds, rest) = (number / 100, number % 100);
    match (hundreds, rest) {
        (0, _) => below_hundred(rest, form),
        (1, 0) => "cien".to_owned(),
        (_, 0) => hundred(HUNDREDS, hundreds, form),
        _ => format!("{} {}", hundred(HUNDREDS, hundreds, form), below_hundred(rest, form)),
    }
}

fn below_hundred(number: u64, form: Form) -> String {
    match (number, form) {
        (1, Form::Before(NounGender::Masculine)) => "un".to_owned(),
        (1, Form::Before(NounGender::Feminine)) => "una".to_owned(),
        (21, Form::Before(NounGender::Masculine)) => "veintiún".to_owned(),
        (21, Form::Before(NounGender::Feminine)) => "veintiuna".to_owned(),
        (0..30, _) => nth(SMALL, number).to_owned(),
        _ => match (TENS[(number / 10) as usize], number % 10) {
            (ten, 0) => ten.to_owned(),
            (ten, one) => format!("{ten} y {}", below_hundred(one, form)),
        },
    }
}

fn ordinal(number: u64, gender: NounGender, is_short: bool) -> String {
    const ONES: &str = "primer segund tercer cuart quint sext séptim octav noven";
    const TENS: &str = "
        décim vigésim trigésim cuadragésim quincuagésim sexagésim septuagésim octogésim nonagésim";
    let ending = if gender == NounGender::Feminine { "a" } else { "o" };
    match number {
        1 | 3 if is_short => nth(ONES, number - 1).to_owned(),
        11 => format!("undécim{ending}"),
        12 => format!("duodécim{ending}"),
        1..100 => ordinal_of_stems((ONES, TENS), number, ending),
        100 => format!("centésim{ending}"),
        _ => cardinal(number, Form::Alone),
    }
}

fn time(hour: u64, minute: u64) -> String {
    let hour = cardinal(hour, Form::Before(NounGender::Feminine));
    match minute {
        0 => hour,
        1..10 => format!("{hour} y {}", cardinal(minute, Form::Alone)),
        _ => format!("{hour} {}", cardinal(minute, Form::Alone)),
    }
}

pub(super) static TABLE: LanguageTable = LanguageTable {
    cardinal,
    ordinal,
    ordinal_marks: OrdinalMarks {
        masculine: "º er ᵉʳ ro do to mo vo no",
        feminine: "ª ra da ta ma va na",
        short: "er ᵉʳ",
    },
    fractions: "
        2 medio/medios, 3 tercio/tercios, 4 cuarto/cuartos, 5 quinto/quintos, 8 octavo/octavos,
        1/10 un décimo",
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
        over: "sobre",
        at: "arroba",
        dash: "guion",
        underscore: "guion bajo",
        colon: "dos puntos",
        to: "a",
        per: "por",
        score: "a",
        cents: Some("con"),
        foreign_word: "palabra extranjera",
        code_block: "bloque de código",
    },
    dates: Dates {
        months: "
            enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre
            diciembre",
        link: "de ",
        first: None,
        openers: &["el", "del", "al", "día", "fecha"],
        year: |year| cardinal(year, Form::Alone),
        time,
        hour_words: &["h", "hs", "hrs"],
        contracted: "",
        clock_openers: &["las", "la"],
        duration: [f("hora", "horas"), m("minuto", "minutos"), m("segundo", "segundos")],
    },
    units: "
        % por ciento, ‰ por mil, km kilómetro/kilómetros, m metro/metros,
        cm centímetro/centímetros, mm milímetro/milímetros,
        km² kilómetro cuadrado/kilómetros cuadrados, m² metro cuadrado/metros cuadrados,
        m2 metro cuadrado/metros cuadrados, m³ metro cúbico/metros cúbicos,
        ha hectárea/hectáreas (f), kg kilo/kilos, g gramo/gramos, gr gramo/gramos,
        mg miligramo/miligramos, t tonelada/toneladas (f), l litro/litros, L litro/litros,
        ml mililitro/mililitros, cl centilitro/centilitros, h hora/horas (f), min minuto/minutos,
        s segundo/segundos, seg segundo/segundos, ms milisegundo/milisegundos,
        km/h kilómetro por hora/kilómetros por hora, m/s metro por segundo/metros por segundo,
        ° grado/grados, °C grado Celsius/grados Celsius, ºC grado Celsius/grados Celsius,
        °F grado Fahrenheit/grados Fahrenheit, W vatio/vatios, kW kilovatio/kilovatios,
        kWh kilovatio hora/kilovatios hora, V voltio/voltios, Hz hercio/hercios,
        MHz megahercio/megahercios, GHz gigahercio/gigahercios, KB kilobyte/kilobytes,
        MB megabyte/megabytes, GB gigabyte/gigabytes, TB terabyte/terabytes,
        cal caloría/calorías (f), kcal kilocaloría/kilocalorías (f)",
    currencies: &[
        money("€ EUR", m("euro", "euros"), m("céntimo", "céntimos")),
        money("$ US$ USD", m("dólar", "dólares"), m("centavo", "centavos")),
        money("£ GBP", f("libra", "libras"), m("penique", "peniques")),
        money("¥ JPY", m("yen", "yenes"), m("sen", "sen")),
        money("₹ INR", f("rupia", "rupias"), f("paisa", "paisas")),
        money("R$ BRL", m("real", "reales"), m("centavo", "centavos")),
        money("MXN", m("peso", "pesos"), m("centavo", "centavos")),
    ],
    scales: "mil mil, k mil, K mil",
    scales_with_of: "
        M millón/millones, millón millón/millones, millones millón/millones,
        billones billón/billones",
    of: |noun| format!("de {noun}"),
    short_forms: ShortForms {
        never: "
            sr señor, sra señora, srta señorita, sres señores, dr doctor, dra doctora, d don,
            dña doña, d.ª doña, m.ª María, mª María, prof profesor,
            profa profesora, ing ingeniero, lic licenciado, gral general,
            sto santo, sta santa, av avenida, avda avenida, c/ calle, pza plaza, p.ej por ejemplo,
            ej ejemplo, tel teléfono, vs contra",
        before_number: "
            pág página, págs páginas, p página, pp páginas, núm número, n.º número, nº número,
            n° número, art artículo, cap capítulo, vol volumen, fig figura, s siglo, ss siglos",
        sometimes: "
            ud usted, uds ustedes, vd usted, etc etcétera, aprox aproximadamente, máx máximo,
            mín mínimo, depto departamento, ee.uu Estados Unidos, a.c antes de Cristo,
            d.c después de Cristo, a.m a eme, p.m pe eme, s.a sociedad anónima, cía compañía",
    },
    starters: "
        El La Los Las Un Una En Es No Se Y Pero Si Sí Yo Él Ella Esto Este Esta Así Por Para Como
        Cuando Hay Hoy Luego Después También Entonces Nos Me Te Lo Le De Con Ya Al A Su Mi Todo
        Todos Son Fue Era",
    symbols: "
        & y, + más, = igual a, × por, ÷ entre, < menor que, > mayor que, ≤ menor o igual que,
        ≥ mayor o igual que, ≈ aproximadamente, % por ciento, @ arroba, # almohadilla, € euros,
        $ dólares, £ libras, ° grados, § sección, © copyright, ½ medio, ¼ un cuarto,
        ¾ tres cuartos, ² al cuadrado, ³ al cubo, → flecha, * asterisco, ~ aproximadamente",
    acronyms: "EEUU Estados Unidos, EE Estados, UU Unidos, PSOE pesoe, SUV, VIH",
    letters: &[('Y', "i griega")],
    nouns: NounTable {
        feminine: "
            mujer mujeres vez veces noche noches tarde tardes clase clases parte partes calle
            calles mano manos flor flores ley leyes llave llaves serie series red redes imagen
            imágenes voz voces foto fotos moto motos frase frases base bases fase fases clave
            claves sede sedes nube nubes fuente fuentes torre torres señal señales razón razones
            opinión opiniones reunión reuniones región regiones dosis crisis",
        masculine: "
            día días mapa mapas problema problemas sistema sistemas programa programas tema temas
            idioma idiomas planeta planetas poema poemas artista artistas turista turistas
            futbolistas sofá sofás periodista periodistas atleta atletas síntoma síntomas esquema
            esquemas clima agua águila alma ala arma aula área",
        feminine_endings: "a as ción ciones sión siones dad dades tud",
    },
    elided_one: None,
    particles: "
        a al y e o u de del en con por para que como es son está están fue se más menos si no
        entre hasta desde ni la las esta ya pero sobre era será ha han",
    roman: RomanWords {
        centuries: &["siglo", "siglos"],
        chapters: "
            capítulo tomo volumen parte acto título fase guerra artículo anexo sección libro tipo
            grupo nivel",
        marks: "º ª",
        feminine_articles: "la",
        masculine_articles: "el al del",
        said: |number, place, gender| roman(cardinal, ordinal, number, place, gender),
    },
    has_pairs: false,
    callers: &["teléfono", "tel", "tfno", "móvil", "celular", "llame", "llama", "fax"],
};
