//! Figures in Japanese and Mandarin text: dates, times, money, units, ranges, fractions, telephone numbers, versions.
//! Says what they are and not how they are read.

use super::AsianLanguage;
use crate::word_table::{find, rows};

/// Longer numbers are read digit by digit.
const NUMBER_DIGITS_MAX: usize = 16;
/// No group of digits is longer: the rest begins a new one.
const GROUP_DIGITS_MAX: usize = 64;
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 9..=15;

/// What figures stand for. Numbers are ASCII digits with at most one full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    Date {
        year: Option<String>,
        month: String,
        day: String,
    },
    Time {
        hours: String,
        minutes: String,
        seconds: Option<String>,
    },
    Money {
        number: String,
        currency: char,
        scale: String,
        is_negative: bool,
    },
    Range {
        from: String,
        to: String,
        unit: Option<Unit>,
    },
    /// Numbers with a word between them, in the order in which they are said; see [`Between`].
    Joined(Vec<String>, Between),
    Phone(Vec<String>),
    /// A number with a zero before it, or one that is too long to be a count.
    Code(String),
    Plain {
        number: String,
        is_negative: bool,
        unit: Option<Unit>,
        number_length: usize,
    },
}

/// What is said between two numbers, in Japanese and Mandarin, with a slash between.
pub(super) type Between = &'static str;

/// A score or a proportion: "3:2".
const RATIO: Between = "対/比";
/// The parts of an address: "1-2-3".
const CHAIN: Between = "の/杠";
const VERSION: Between = "点/点";
/// What is below the stroke is said first.
const FRACTION: Between = "分の/分之";

/// The names of a unit in Japanese and Mandarin, with a slash between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit(&'static str);

impl Unit {
    /// Mandarin says its name before the number.
    pub(super) const PERCENT: Unit = Unit("パーセント/百分之");

    pub(super) fn name(self, asian: AsianLanguage) -> &'static str {
        asian.name(self.0)
    }
}

/// Units and their names. Longer ones come before those that they begin with.
const UNITS: &str = "
    km/h キロメートル毎時/公里每小时, m/s メートル毎秒/米每秒, km2 平方キロメートル/平方公里,
    m2 平方メートル/平方米, m3 立方メートル/立方米, kWh キロワット時/千瓦时,
    kcal キロカロリー/千卡, kHz キロヘルツ/千赫, MHz メガヘルツ/兆赫, GHz ギガヘルツ/吉赫,
    Mbps メガビーピーエス/兆比特每秒, km キロメートル/公里, cm センチメートル/厘米,
    mm ミリメートル/毫米, μm マイクロメートル/微米, nm ナノメートル/纳米, kg キログラム/公斤,
    mg ミリグラム/毫克, ml ミリリットル/毫升, mL ミリリットル/毫升, ms ミリ秒/毫秒, min 分/分钟,
    ha ヘクタール/公顷, Hz ヘルツ/赫兹, dB デシベル/分贝, kW キロワット/千瓦, MW メガワット/兆瓦,
    kV キロボルト/千伏, mV ミリボルト/毫伏, mA ミリアンペア/毫安, TB テラバイト/, GB ギガバイト/,
    MB メガバイト/, KB キロバイト/, kB キロバイト/, px ピクセル/像素, °C 度/摄氏度, °F 度/华氏度,
    ° 度/度, cal カロリー/卡, Pa パスカル/帕, m メートル/米, g グラム/克, t トン/吨, L リットル/升,
    l リットル/升, W ワット/瓦, V ボルト/伏, A アンペア/安, h 時間/小时";

/// A sign of money, and its names in Japanese and Mandarin.
const CURRENCIES: &str =
    "$ ドル/美元, ¥ 円/元, € ユーロ/欧元, £ ポンド/英镑, ₩ ウォン/韩元, ₹ ルピー/卢比";

/// The figures that begin at `at`, and how many characters they are.
pub(super) fn figures(chars: &[char], at: usize) -> Option<(usize, Amount)> {
    let rest = &chars[at..];
    let before = at.checked_sub(1).map(|at| chars[at]);
    let c = *rest.first()?;
    if !c.is_ascii_digit() && !is_currency(c) && !matches!(c, '-' | '−' | '+') {
        return None;
    }
    if before == Some('〒')
        && let Some((length, groups)) = groups(rest, &['-'])
    {
        return Some((length, Amount::Phone(groups)));
    }
    let readers = [phone, date, day, version, time, ratio, chain, fraction];
    let found = readers.iter().find_map(|reader| reader(rest));
    // "例1：3個" has a heading.
    let is_heading = before.is_some_and(|before| "注例問题題第図图表附".contains(before));
    let found = found.filter(|(length, _)| !is_heading || !rest[..*length].contains(&':'));
    if found.is_some() && !before.is_some_and(|before| before.is_ascii_digit()) {
        return found;
    }
    let is_alone = before.is_none_or(|before| !before.is_ascii_alphanumeric());
    let sign = usize::from(matches!(c, '-' | '−') && is_alone);
    money(&rest[sign..], sign > 0).or_else(|| number_with_unit(rest, sign))
}

/// The name of money by its sign. `None`: the character is not a sign of money.
pub(super) fn currency_name(sign: char, asian: AsianLanguage) -> Option<&'static str> {
    find(CURRENCIES, sign.encode_utf8(&mut [0; 4])).map(|names| asian.name(names))
}

pub(super) fn is_currency(c: char) -> bool {
    find(CURRENCIES, c.encode_utf8(&mut [0; 4])).is_some()
}

fn digits(rest: &[char]) -> usize {
    rest.iter().take(GROUP_DIGITS_MAX).take_while(|c| c.is_ascii_digit()).count()
}

fn text(chars: &[char]) -> String {
    chars.iter().collect()
}

fn is_digit_at(rest: &[char], at: usize) -> bool {
    rest.get(at).is_some_and(char::is_ascii_digit)
}

/// `1,204`, `3.5`: its length, and its digits without commas.
fn number(rest: &[char]) -> Option<(usize, String)> {
    let mut length = digits(rest);
    if length == 0 {
        return None;
    }
    let mut said = text(&rest[..length]);
    if length <= 3 {
        while rest.get(length) == Some(&',') && digits(&rest[length + 1..]) == 3 {
            said.push_str(&text(&rest[length + 1..length + 4]));
            length += 4;
        }
    }
    if rest.get(length) == Some(&'.') && is_digit_at(rest, length + 1) {
        let decimals = digits(&rest[length + 1..]);
        said.push('.');
        said.push_str(&text(&rest[length + 1..length + 1 + decimals]));
        length += 1 + decimals;
    }
    Some((length, said))
}

/// Groups of digits with one of `separators` between them, the same one each time.
fn groups(rest: &[char], separators: &[char]) -> Option<(usize, Vec<String>)> {
    let mut length = digits(rest);
    let mut groups = vec![text(&rest[..length])];
    let separator = *rest.get(length).filter(|c| separators.contains(c))?;
    while rest.get(length) == Some(&separator) && is_digit_at(rest, length + 1) {
        let more = digits(&rest[length + 1..]);
        groups.push(text(&rest[length + 1..length + 1 + more]));
        length += 1 + more;
    }
    (groups.len() > 1 && !groups[0].is_empty()).then_some((length, groups))
}

fn is_between(digits: &str, min: u32, max: u32) -> bool {
    digits.len() <= 2 && digits.parse::<u32>().is_ok_and(|value| (min..=max).contains(&value))
}

fn date(rest: &[char]) -> Option<(usize, Amount)> {
    let (length, groups) = groups(rest, &['-', '/', '.'])?;
    let [year, month, day] = &groups[..] else { return None };
    let is_date = year.len() == 4 && is_between(month, 1, 12) && is_between(day, 1, 31);
    is_date.then(|| (length, date_of(Some(year), month, day)))
}

/// `12/25(水)`: a day with its weekday.
fn day(rest: &[char]) -> Option<(usize, Amount)> {
    let (length, groups) = groups(rest, &['/'])?;
    let [month, day] = &groups[..] else { return None };
    let weekday = rest.get(length + 1).filter(|_| rest.get(length) == Some(&'('))?;
    // "1/2(一半)" is a half.
    let is_alone = rest.get(length + 2) == Some(&')');
    let is_weekday =
        "月火水木金土日祝周".contains(*weekday) || (is_alone && "一二三四五六".contains(*weekday));
    let is_day = is_weekday && is_between(month, 1, 12) && is_between(day, 1, 31);
    is_day.then(|| (length, date_of(None, month, day)))
}

fn date_of(year: Option<&String>, month: &str, day: &str) -> Amount {
    let plain = |digits: &str| digits.trim_start_matches('0').to_owned();
    Amount::Date { year: year.cloned(), month: plain(month), day: plain(day) }
}

/// `16:9`, but `16:09` is a time.
fn ratio(rest: &[char]) -> Option<(usize, Amount)> {
    let (length, groups) = groups(rest, &[':'])?;
    let [left, right] = &groups[..] else { return None };
    let is_small = |digits: &String| digits.len() <= 3 && !digits.starts_with("00");
    (is_small(left) && is_small(right)).then_some((length, Amount::Joined(groups, RATIO)))
}

/// `1-2-3`.
fn chain(rest: &[char]) -> Option<(usize, Amount)> {
    let (length, groups) = groups(rest, &['-'])?;
    let is_short = groups.iter().all(|group| group.len() <= 4 && !group.starts_with('0'));
    (groups.len() > 2 && is_short).then_some((length, Amount::Joined(groups, CHAIN)))
}

fn time(rest: &[char]) -> Option<(usize, Amount)> {
    let (length, groups) = groups(rest, &[':'])?;
    let two = |digits: &String| digits.len() == 2 && is_between(digits, 0, 59);
    let is_time =
        is_between(&groups[0], 0, 24) && groups.len() <= 3 && groups.iter().skip(1).all(two);
    let time = || Amount::Time {
        hours: groups[0].clone(),
        minutes: groups[1].clone(),
        seconds: groups.get(2).cloned(),
    };
    is_time.then(|| (length, time()))
}

/// `2.10.1`, or the address of a machine.
fn version(rest: &[char]) -> Option<(usize, Amount)> {
    let (length, groups) = groups(rest, &['.'])?;
    (groups.len() > 2).then_some((length, Amount::Joined(groups, VERSION)))
}

fn fraction(rest: &[char]) -> Option<(usize, Amount)> {
    let slashes = ['/', '\u{2044}'];
    let (length, groups) = groups(rest, &slashes)?;
    let [above, below] = &groups[..] else { return None };
    let is_small = above.len() <= 3 && below.len() <= 3 && !below.starts_with('0');
    let said = || vec![below.clone(), above.clone()];
    is_small.then(|| (length, Amount::Joined(said(), FRACTION)))
}

/// `03-1234-5678`, `+81 90 1234 5678`, `13812345678`.
fn phone(rest: &[char]) -> Option<(usize, Amount)> {
    let is_international = rest.first() == Some(&'+');
    let start = usize::from(is_international);
    let (length, groups) = groups(&rest[start..], &['-', ' ']).or_else(|| {
        let length = digits(&rest[start..]);
        Some((length, vec![text(&rest[start..start + length])]))
    })?;
    let count: usize = groups.iter().map(String::len).sum();
    // 0120-444-444 and 400-123-4567 are free of charge.
    let is_free = groups.len() == 3 && rest.get(groups[0].len()) == Some(&'-');
    let is_grouped = is_free || (groups.len() > 1 && groups[0].starts_with('0'));
    let is_mobile = groups.len() == 1 && count == 11 && groups[0].starts_with('1');
    let is_domestic = groups.len() == 1 && groups[0].starts_with('0') && count >= 10;
    let is_phone = is_international || is_grouped || is_mobile || is_domestic;
    (is_phone && PHONE_DIGITS.contains(&count)).then_some((start + length, Amount::Phone(groups)))
}

/// `$5`, `¥1.5億`, `€3m`.
fn money(rest: &[char], is_negative: bool) -> Option<(usize, Amount)> {
    let currency = *rest.first().filter(|c| is_currency(**c))?;
    let space = usize::from(rest.get(1) == Some(&' '));
    let (digits, number) = number(&rest[1 + space..])?;
    let mut length = 1 + space + digits;
    let native =
        rest[length..].iter().take(3).take_while(|c| "万萬億亿兆千百".contains(**c)).count();
    let mut scale = text(&rest[length..length + native]);
    length += native;
    let letters =
        [("bn", "十億"), ("k", "千"), ("K", "千"), ("m", "百万"), ("M", "百万"), ("B", "十億")];
    for (letters, said) in letters {
        let count = letters.chars().count();
        let is_here = rest[length..].iter().take(count).copied().eq(letters.chars());
        let is_end = !rest.get(length + count).is_some_and(char::is_ascii_alphanumeric);
        if scale.is_empty() && is_here && is_end {
            said.clone_into(&mut scale);
            length += count;
        }
    }
    Some((
        length + usize::from(is_negative),
        Amount::Money { number, currency, scale, is_negative },
    ))
}

/// A number with what belongs to it: a second one, a unit.
fn number_with_unit(rest: &[char], sign: usize) -> Option<(usize, Amount)> {
    let is_negative = sign > 0;
    let (digits, number) = self::number(&rest[sign..])?;
    let length = sign + digits;
    let whole = number.split('.').next().unwrap_or("");
    let is_code = (whole.len() > 1 && whole.starts_with('0')) || whole.len() > NUMBER_DIGITS_MAX;
    if is_code {
        return Some((length, Amount::Code(number)));
    }
    let is_range =
        rest.get(length).is_some_and(|c| matches!(c, '-' | '–' | '~' | '〜' | '～' | '—'));
    if is_range
        && !is_negative
        && let Some((more, to)) = self::number(&rest[length + 1..])
        && !rest.get(length + 1 + more).is_some_and(|c| matches!(c, '-' | '–'))
    {
        let end = length + 1 + more;
        let (unit_length, unit) = unit(&rest[end..]);
        return Some((end + unit_length, Amount::Range { from: number, to, unit }));
    }
    let (unit_length, unit) = unit(&rest[length..]);
    let amount = Amount::Plain { number, is_negative, unit, number_length: length };
    Some((length + unit_length, amount))
}

/// A unit or a percent sign behind a number, perhaps with a space before it.
fn unit(rest: &[char]) -> (usize, Option<Unit>) {
    let space = usize::from(rest.first() == Some(&' '));
    if rest.get(space) == Some(&'%') {
        return (space + 1, Some(Unit::PERCENT));
    }
    for (written, names) in rows(UNITS) {
        let count = written.chars().count();
        let is_here = rest[space..].iter().take(count).copied().eq(written.chars());
        let is_end = !rest.get(space + count).is_some_and(char::is_ascii_alphanumeric);
        if is_here && is_end && (space == 0 || count > 1) {
            return (space + count, Some(Unit(names)));
        }
    }
    (0, None)
}
