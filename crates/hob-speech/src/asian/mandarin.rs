//! How Mandarin says figures.
//! Numbers are written in characters, with 万 and 亿, 零 for gaps, and 两 before what is counted.

use super::figures::{Amount, Unit, currency_name};
use super::{AsianLanguage, Saying, with_pauses};

const DIGITS: [&str; 10] = ["零", "一", "二", "三", "四", "五", "六", "七", "八", "九"];

/// What is counted with 两 and not with 二.
const MEASURES: &str = "个個位只隻条條张張本件块塊天周年种種次遍场場家名人对對双雙辆輛台座间間把杯瓶碗盒包份小点點倍套部首封棵朵头頭匹片段层門门岁歲句页頁万亿千元角斤公米升克分年秒吨毫厘平英美欧桶颗根支枚批袋";

/// What is said for figures behind this character and before these two.
pub(super) fn said(amount: &Amount, before: Option<char>, after: [Option<char>; 2]) -> Vec<Saying> {
    let native = |text: String| vec![Saying::Native(text)];
    // 第2个 and 2年级 are in order, and not counted.
    let is_grade = matches!(after, [Some('年'), Some('级' | '級')]);
    let is_ordinal = before == Some('第') || is_grade;
    let after = after[0].filter(|_| !is_ordinal);
    match amount {
        Amount::Date { year, month, day } => {
            let year = year.as_ref().map_or_else(String::new, |year| by_digit(year) + "年");
            native(format!("{year}{}月{}日", cardinal(month), cardinal(day)))
        }
        Amount::Time { hours, minutes, seconds } => {
            native(time(hours, minutes, seconds.as_deref()))
        }
        Amount::Money { number, currency, scale, is_negative } => {
            let sign = if *is_negative { "负" } else { "" };
            let scale = scale.replace('億', "亿");
            let name = currency_name(*currency, AsianLanguage::Mandarin).unwrap_or_default();
            native(format!("{sign}{}{scale}{name}", number_before(number, Some('元'))))
        }
        Amount::Range { from, to, unit: Some(Unit::PERCENT) } => {
            native(format!("百分之{}到百分之{}", cardinal(from), cardinal(to)))
        }
        Amount::Range { from, to, unit } => {
            let name = unit.map_or("", |unit| unit.name(AsianLanguage::Mandarin));
            let next = name.chars().next().or(after);
            native(format!("{}到{}{name}", number_before(from, next), number_before(to, next)))
        }
        Amount::Joined(numbers, between) => {
            let numbers: Vec<String> = numbers.iter().map(|number| cardinal(number)).collect();
            native(numbers.join(AsianLanguage::Mandarin.name(between)))
        }
        Amount::Phone(groups) => phone(groups),
        Amount::Code(digits) => native(by_digit(digits)),
        Amount::Plain { number, is_negative, unit: Some(Unit::PERCENT), .. } => {
            let sign = if *is_negative { "负" } else { "" };
            native(format!("{sign}百分之{}", cardinal(number)))
        }
        Amount::Plain { number, is_negative, unit, .. } => {
            let name = unit.map_or("", |unit| unit.name(AsianLanguage::Mandarin));
            let sign = match (*is_negative, name.ends_with('度')) {
                (true, true) => "零下",
                (true, false) => "负",
                (false, _) => "",
            };
            let next = name.chars().next().or(after);
            native(format!("{sign}{}{name}", number_before(number, next)))
        }
    }
}

/// Groups of digits with a pause between them. 一 is 幺 in a telephone number.
fn phone(groups: &[String]) -> Vec<Saying> {
    // 13812345678 is said as 138 1234 5678.
    let cut = |group: &String| match group.len() {
        11 => vec![group[..3].to_owned(), group[3..7].to_owned(), group[7..].to_owned()],
        _ => vec![group.clone()],
    };
    let said = |group: String| Saying::Native(by_digit(&group).replace('一', "幺"));
    with_pauses(groups.iter().flat_map(cut).map(said))
}

fn time(hours: &str, minutes: &str, seconds: Option<&str>) -> String {
    let part = |digits: &str, name: &str| {
        let zero = if digits.starts_with('0') && digits != "00" { "零" } else { "" };
        format!("{zero}{}{name}", cardinal(digits))
    };
    let hours = number_before(hours.trim_start_matches('0'), Some('点'));
    let hours = if hours.is_empty() { "零".to_owned() } else { hours };
    let minutes = match (minutes, seconds) {
        ("00", None) => String::new(),
        (minutes, _) => part(minutes, "分"),
    };
    let seconds = seconds.map(|seconds| part(seconds, "秒")).unwrap_or_default();
    format!("{hours}点{minutes}{seconds}")
}

/// A number before what it counts, or before the word for a year.
fn number_before(number: &str, next: Option<char>) -> String {
    match next {
        Some('年') if number.len() == 4 => by_digit(number),
        Some(next) if number == "2" && MEASURES.contains(next) => "两".to_owned(),
        _ => cardinal(number),
    }
}

fn by_digit(digits: &str) -> String {
    let name = |c: char| c.to_digit(10).map_or("点", |digit| DIGITS[digit as usize]);
    digits.chars().map(name).collect()
}

/// Digits with at most one full stop, as a number of up to 16 digits.
fn cardinal(number: &str) -> String {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let mut said = whole_number(whole);
    if !decimals.is_empty() {
        said.push('点');
        said.push_str(&by_digit(decimals));
    }
    said
}

fn whole_number(digits: &str) -> String {
    let digits = digits.trim_start_matches('0');
    let Ok(value) = digits.parse::<u64>() else {
        return if digits.is_empty() { DIGITS[0].to_owned() } else { by_digit(digits) };
    };
    let said = by_scale(value);
    // 十二 and not 一十二, but 一百一十二; 两千 and not 二千, but 一万二千.
    let is_two = ["二千", "二万", "二亿"].iter().any(|two| said.starts_with(two));
    match said.strip_prefix("一十") {
        Some(rest) => format!("十{rest}"),
        None if is_two => said.replacen('二', "两", 1),
        None => said,
    }
}

fn by_scale(value: u64) -> String {
    for (scale, name) in [(100_000_000, "亿"), (10_000, "万")] {
        if value >= scale {
            let (above, below) = (value / scale, value % scale);
            let gap = if below > 0 && below < scale / 10 { "零" } else { "" };
            let below = if below > 0 { by_scale(below) } else { String::new() };
            return format!("{}{name}{gap}{below}", by_scale(above));
        }
    }
    thousands(value)
}

/// A number below 10,000.
fn thousands(value: u64) -> String {
    let mut said = String::new();
    let mut has_gap = false;
    for (scale, name) in [(1000, "千"), (100, "百"), (10, "十"), (1, "")] {
        let digit = value / scale % 10;
        if digit == 0 {
            has_gap = !said.is_empty();
            continue;
        }
        if has_gap {
            said.push('零');
        }
        has_gap = false;
        said.push_str(DIGITS[usize::try_from(digit).unwrap_or(0)]);
        said.push_str(name);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_in_groups_of_four_digits() {
        for (number, expect) in [
            ("0", "零"),
            ("10", "十"),
            ("12", "十二"),
            ("20", "二十"),
            ("2500", "两千五百"),
            ("12000", "一万二千"),
            ("20000", "两万"),
            ("200000", "二十万"),
            ("105", "一百零五"),
            ("112", "一百一十二"),
            ("1000", "一千"),
            ("1001", "一千零一"),
            ("1010", "一千零一十"),
            ("10000", "一万"),
            ("10005", "一万零五"),
            ("123456", "十二万三千四百五十六"),
            ("100000000", "一亿"),
            ("1000000000000", "一万亿"),
            ("3.14", "三点一四"),
            ("0.5", "零点五"),
        ] {
            assert_eq!(cardinal(number), expect, "{number}");
        }
    }

    #[test]
    fn telephone_numbers_have_pauses() {
        let groups = phone(&["13812345678".to_owned()]);
        let said = |text: &str| Saying::Native(text.to_owned());
        let expect =
            [said("幺三八"), Saying::Pause, said("幺二三四"), Saying::Pause, said("五六七八")];
        assert_eq!(groups, expect);
    }
}
