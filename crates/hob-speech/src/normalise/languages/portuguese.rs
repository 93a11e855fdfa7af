//! Brazilian Portuguese: its number words, and what it says for signs, units, money, dates and abbreviations.
//! "E" stands between the parts of a number, and one, two and the hundreds follow the gender of what they count.

use super::table::*;
use crate::abbreviations::ShortForms;
use crate::word_table::nth;

const SMALL: &str = "
    zero um dois três quatro cinco seis sete oito nove dez onze doze treze quatorze quinze
    dezesseis dezessete dezoito dezenove";
const TENS: &str = "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa";
const HUNDREDS: &str = "
    cento duzentos trezentos quatrocentos quinhentos seiscentos setecentos oitocentos novecentos";

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
    let (hundreds, rest) = (number / 100, number % 100);
    match (hundreds, rest) {
        (0, _) => below_hundred(rest, form),
        (1, 0) => "cem".to_owned(),
        (_, 0) => hundred(HUNDREDS, hundreds, form),
        _ => format!("{} e {}", hundred(HUNDREDS, hundreds, form), below_hundred(rest, form)),
    }
}

fn below_hundred(number: u64, form: Form) -> String {
    match (number, form.is_feminine()) {
        (1, true) => "uma".to_owned(),
        (2, true) => "duas".to_owned(),
        (0..20, _) => nth(SMALL, number).to_owned(),
        _ => match (nth(TENS, number / 10 - 2), number % 10) {
            (ten, 0) => ten.to_owned(),
            (ten, one) => format!("{ten} e {}", below_hundred(one, form)),
        },
    }
}

fn ordinal(number: u64, gender: NounGender, _is_short: bool) -> String {
    const ONES: &str = "primeir segund terceir quart quint sext sétim oitav non";
    const TENS: &str = "
        décim vigésim trigésim quadragésim quinquagésim sexagésim septuagésim octogésim nonagésim";
    let ending = if gender == NounGender::Feminine { "a" } else { "o" };
    match number {
        1..100 => ordinal_of_stems((ONES, TENS), number, ending),
        100 => format!("centésim{ending}"),
        _ => cardinal(number, Form::Alone),
    }
}

fn time(hour: u64, minute: u64) -> String {
    let name = if hour < 2 { "hora" } else { "horas" };
    let hour = cardinal(hour, Form::Before(NounGender::Feminine));
    match minute {
        0 => format!("{hour} {name}"),
        _ => format!("{hour} e {}", cardinal(minute, Form::Alone)),
    }
}

pub(super) static TABLE: LanguageTable = LanguageTable {
    cardinal,
    ordinal,
    ordinal_marks: OrdinalMarks { masculine: "º o", feminine: "ª a", short: "" },
    fractions: "
        1/2 meio, 2 meio/meios, 3 terço/terços, 4 quarto/quartos, 5 quinto/quintos,
        8 oitavo/oitavos, 1/10 um décimo",
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
        over: "sobre",
        at: "arroba",
        dash: "hífen",
        underscore: "sublinhado",
        colon: "dois pontos",
        to: "a",
        per: "por",
        score: "a",
        cents: Some("e"),
        foreign_word: "palavra estrangeira",
        code_block: "bloco de código",
    },
    dates: Dates {
        months: "
            janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro
            dezembro",
        link: "de ",
        first: Some("primeiro"),
        openers: &["dia", "em", "no"],
        year: |year| cardinal(year, Form::Alone),
        time,
        hour_words: &["h", "hs", "hrs"],
        contracted: "",
        clock_openers: &["à", "as", "às", "Às", "da", "das", "Das"],
        duration: [f("hora", "horas"), m("minuto", "minutos"), m("segundo", "segundos")],
    },
    units: "
        % por cento, ‰ por mil, km quilômetro/quilômetros, m metro/metros,
        cm centímetro/centímetros, mm milímetro/milímetros,
        km² quilômetro quadrado/quilômetros quadrados, m² metro quadrado/metros quadrados,
        m2 metro quadrado/metros quadrados, m³ metro cúbico/metros cúbicos, ha hectare/hectares,
        kg quilo/quilos, g grama/gramas, mg miligrama/miligramas, t tonelada/toneladas (f),
        l litro/litros, L litro/litros, ml mililitro/mililitros, h hora/horas (f),
        hs hora/horas (f), min minuto/minutos, s segundo/segundos, seg segundo/segundos,
        ms milissegundo/milissegundos, km/h quilômetro por hora/quilômetros por hora,
        m/s metro por segundo/metros por segundo, ° grau/graus, °C grau Celsius/graus Celsius,
        ºC grau Celsius/graus Celsius, °F grau Fahrenheit/graus Fahrenheit, W watt/watts,
        kW quilowatt/quilowatts, kWh quilowatt-hora/quilowatts-hora, V volt/volts, Hz hertz,
        MHz mega-hertz, GHz giga-hertz, KB quilobyte/quilobytes, MB megabyte/megabytes,
        GB gigabyte/gigabytes, TB terabyte/terabytes, kcal quilocaloria/quilocalorias (f)",
    currencies: &[
        money("R$ BRL", m("real", "reais"), m("centavo", "centavos")),
        money("€ EUR", m("euro", "euros"), m("centavo", "centavos")),
        money("$ US$ USD", m("dólar", "dólares"), m("centavo", "centavos")),
        money("£ GBP", f("libra", "libras"), m("pêni", "pence")),
        money("¥ JPY", m("iene", "ienes"), m("sen", "sen")),
        money("₹ INR", f("rúpia", "rúpias"), f("paisa", "paisas")),
    ],
    scales: "mil mil, k mil",
    scales_with_of: "
        mi milhão/milhões, M milhão/milhões, bi bilhão/bilhões, milhão milhão/milhões,
        milhões milhão/milhões, bilhão bilhão/bilhões, bilhões bilhão/bilhões,
        trilhão trilhão/trilhões, trilhões trilhão/trilhões",
    of: |noun| format!("de {noun}"),
    short_forms: ShortForms {
        never: "
            sr senhor, sra senhora, srs senhores, srta senhorita, dr doutor, dra doutora, d dom,
            prof professor, profa professora, eng engenheiro, gen general, cel coronel, sto santo,
            sta santa, av avenida, r rua, al alameda, pça praça, p.ex por exemplo, ex exemplo,
            tel telefone, vs contra",
        before_number: "
            pág página, págs páginas, p página, pp páginas, núm número, n.º número, nº número,
            n° número, art artigo, cap capítulo, vol volume, fig figura, apto apartamento,
            séc século, sécs séculos",
        sometimes: "
            etc etcétera, aprox aproximadamente, máx máximo, mín mínimo, ltda limitada,
            cia companhia, a.c antes de Cristo, d.c depois de Cristo, s.a sociedade anônima,
            obs observação",
    },
    starters: "
        O A Os As Um Uma É E Mas Ou Se Não Sim Eu Você Ele Ela Nós Eles Elas Este Esta Esse Essa
        Isso Isto Em No Na Nos Nas Por Para Com De Do Da Que Quem Como Quando Depois Antes Então
        Também Agora Hoje Ontem Já Há Foi Era São Ao",
    symbols: "
        & e, + mais, = igual a, × vezes, ÷ dividido por, < menor que, > maior que,
        ≤ menor ou igual a, ≥ maior ou igual a, ≈ aproximadamente, % por cento, @ arroba,
        # cerquilha, € euros, $ dólares, £ libras, ° graus, § parágrafo, © copyright, ½ meio,
        ¼ um quarto, ¾ três quartos, ² ao quadrado, ³ ao cubo, → seta, * asterisco,
        ~ aproximadamente",
    acronyms: "AIDS aids, API, EUA Estados Unidos, HIV, IBGE, IOF, IPTU, IPVA, OAB, USP usp, UTI",
    letters: &[('A', "á"), ('E', "é"), ('O', "ó")],
    nouns: NounTable {
        feminine: "
            noite noites tarde tardes vez vezes mulher mulheres parte partes mão mãos classe
            classes cidade flor flores lei leis chave chaves voz vozes rede redes fase fases
            imagem imagens viagem viagens colher colheres mãe mães cor cores dor dores árvore
            árvores equipe equipes foto fotos moto motos frase frases base bases série séries
            espécie espécies ponte pontes fonte fontes torre torres análise análises dose doses
            chance chances semente sementes arte artes região regiões reunião reuniões opinião
            opiniões ordem ordens origem origens",
        masculine: "
            dia dias mapa mapas problema problemas sistema sistemas programa programas tema temas
            clima planeta planetas grama gramas artista artistas poema poemas sofá sofás turista
            turistas jornalista jornalistas motorista motoristas poeta poetas atleta atletas
            cinema cinemas fã fãs",
        feminine_endings: "a as ã ãs ção ções são sões ade ades agem agens",
    },
    elided_one: None,
    particles: "
        a à às ao e o os as ou de do da dos das em no na com por para que como é são foi está se
        mas não mais menos até entre mil era tem têm esta essa",
    roman: RomanWords {
        centuries: &["século", "séculos"],
        chapters: "
            capítulo tomo volume parte ato título fase guerra artigo anexo seção livro tipo grupo
            nível",
        marks: "º ª",
        feminine_articles: "a à da na",
        masculine_articles: "o ao do no",
        said: |number, place, gender| roman(cardinal, ordinal, number, place, gender),
    },
    has_pairs: false,
    callers: &["telefone", "tel", "celular", "ligue", "whatsapp", "fax"],
};
