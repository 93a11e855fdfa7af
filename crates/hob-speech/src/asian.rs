//! Japanese and Mandarin as they are written → as they are said. Every word knows its bytes in the user's text.
//! Words stand without spaces here, so the text is read character by character, the more specific form first.

mod figures;
mod japanese;
mod mandarin;

use std::ops::Range;

use hob_core::Language;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::compose;

use self::figures::{Amount, currency_name, figures, is_currency};
use crate::accent::Accent;
use crate::ipa::to_misaki;
use crate::japanese::kana_symbols;
use crate::lexicon::{Lexicon, SaidPart};
use crate::markdown::{Visible, visible};
use crate::reading::Reading;
use crate::scripts::{is_vowel_sign, romanised, same_script};
use crate::word_table::{find, forms, rows};

/// The longest word of the user's lexicon that is searched for, in characters.
const OWN_WORD_CHARS_MAX: usize = 64;
/// More capitals than this are a shouted word.
const ACRONYM_CHARS_MAX: usize = 6;

/// A part of what figures are read as.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Saying {
    /// Text of the language.
    Native(String),
    Phonemes(String),
    Pause,
}

/// The wording of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AsianLanguage {
    Japanese,
    Mandarin,
}

impl AsianLanguage {
    /// Chooses between a Japanese and a Mandarin name with a slash between.
    fn name(self, names: &'static str) -> &'static str {
        let (japanese, mandarin) = forms(names);
        if self == AsianLanguage::Japanese { japanese } else { mandarin }
    }
}

/// The characters of a sentence in their compatible form.
struct Text {
    chars: Vec<char>,
    /// The bytes of each in the user's text.
    spans: Vec<Range<usize>>,
}

struct Scanner<'a> {
    asian: AsianLanguage,
    text: Text,
    pronounced: Vec<(Range<usize>, String)>,
    lexicon: &'a Lexicon,
    at: usize,
    /// Behind the last figures that can be the beginning of a range.
    figures_end: Option<usize>,
    out: Reading,
}

/// Whether a language is read by this module.
pub(crate) fn is_asian(language: Language) -> bool {
    matches!(language, Language::Japanese | Language::Mandarin)
}

/// Reads a segment with these pronunciations of the user. Its first byte is byte `offset` of the user's text. Each
/// character of the language is a word of the reading, because only a dictionary knows the words.
pub(crate) fn read(text: &str, offset: usize, language: Language, lexicon: &Lexicon) -> Reading {
    let asian = match language {
        Language::Japanese => AsianLanguage::Japanese,
        _ => AsianLanguage::Mandarin,
    };
    let Visible { chars, pronounced } = visible(text, offset);
    let text = Text::new(chars.into_iter().map(|seen| (seen.c, seen.start..seen.end)));
    let out = Reading::default();
    let mut scanner = Scanner { asian, text, pronounced, lexicon, at: 0, figures_end: None, out };
    while scanner.at < scanner.text.chars.len() {
        scanner.step();
    }
    scanner.out
}

/// Whether text of the language is written with this character.
fn is_native(asian: AsianLanguage, c: char) -> bool {
    let is_ideograph = matches!(u32::from(c),
        0x3005..=0x3007 | 0x3400..=0x9fff | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff);
    let is_kana = matches!(u32::from(c), 0x3041..=0x3096 | 0x309d..=0x309e | 0x30a1..=0x30fa | 0x30fc..=0x30fe);
    is_ideograph || (is_kana && asian == AsianLanguage::Japanese)
}

fn is_latin(c: char) -> bool {
    c.is_ascii_alphabetic()
        || (c.is_alphabetic() && matches!(u32::from(c), 0xc0..=0x24f | 0x1e00..=0x1eff))
}

impl Text {
    fn new(seen: impl Iterator<Item = (char, Range<usize>)>) -> Text {
        let mut text = Text { chars: Vec::new(), spans: Vec::new() };
        for (c, span) in seen {
            match c {
                // These become several marks, or none, in their compatible form.
                '…' | '‥' | '·' | '～' | '〜' => text.push(c, span),
                'ﾞ' | '゛' => text.voice('\u{3099}', span),
                'ﾟ' | '゜' => text.voice('\u{309a}', span),
                _ => std::iter::once(c).nfkc().for_each(|c| text.push(c, span.clone())),
            }
        }
        text
    }

    fn push(&mut self, c: char, span: Range<usize>) {
        self.chars.push(c);
        self.spans.push(span);
    }

    /// A mark that voices the kana before it.
    fn voice(&mut self, mark: char, span: Range<usize>) {
        if let (Some(last), Some(bytes)) = (self.chars.last_mut(), self.spans.last_mut())
            && let Some(voiced) = compose(*last, mark)
        {
            *last = voiced;
            bytes.end = span.end;
        }
    }

    fn get(&self, at: usize) -> Option<char> {
        self.chars.get(at).copied()
    }

    fn span(&self, range: Range<usize>) -> Range<usize> {
        match (self.spans.get(range.start), self.spans.get(range.end.saturating_sub(1))) {
            (Some(first), Some(last)) => first.start..last.end.max(first.start),
            _ => 0..0,
        }
    }
}

impl Scanner<'_> {
    fn step(&mut self) {
        let Some(c) = self.text.get(self.at) else { return };
        let length = self
            .given()
            .or_else(|| self.own_word())
            .or_else(|| self.to(c))
            .or_else(|| self.figures())
            .or_else(|| self.latin())
            .or_else(|| self.new_word())
            .or_else(|| self.native(c))
            .or_else(|| self.sign(c))
            .or_else(|| self.mark(c))
            .or_else(|| self.other_script(c));
        self.at += length.unwrap_or(1);
    }

    fn before(&self) -> Option<char> {
        self.at.checked_sub(1).and_then(|at| self.text.get(at))
    }

    fn ahead(&self, distance: usize) -> Option<char> {
        self.text.get(self.at + distance)
    }

    fn span(&self, length: usize) -> Range<usize> {
        self.text.span(self.at..self.at + length)
    }

    /// Words for which the user wrote the phonemes in place.
    fn given(&mut self) -> Option<usize> {
        let start = self.text.spans.get(self.at)?.start;
        let (span, phonemes) = self.pronounced.iter().find(|(span, _)| span.contains(&start))?;
        if span.start == start {
            self.out.pronounce(span.clone(), "名", phonemes);
        }
        Some(1)
    }

    /// The longest word of the user's lexicon that stands here.
    fn own_word(&mut self) -> Option<usize> {
        if self.lexicon.is_empty() {
            return None;
        }
        let rest = &self.text.chars[self.at..];
        let joins = |a: Option<char>, b: Option<char>| {
            a.is_some_and(|a| a.is_ascii_alphanumeric())
                && b.is_some_and(|b| b.is_ascii_alphanumeric())
        };
        if joins(self.before(), rest.first().copied()) {
            return None;
        }
        let longest = rest.len().min(OWN_WORD_CHARS_MAX);
        let found = (1..=longest).rev().find_map(|length| {
            let is_cut = joins(rest.get(length - 1).copied(), rest.get(length).copied());
            let word: String = rest[..length].iter().collect();
            let parts = self.lexicon.get(&word).filter(|_| !is_cut)?;
            Some((length, parts))
        });
        let (length, parts) = found?;
        let span = self.span(length);
        for part in parts {
            match part {
                SaidPart::Words(words) => say_words(self.asian, &span, words, &mut self.out),
                SaidPart::Ipa(ipa) => {
                    self.out.pronounce(span.clone(), "名", &to_misaki(ipa, Accent::American));
                }
            }
        }
        Some(length)
    }

    /// A dash or a tilde between two ends: "9:00-17:00", "1月〜3月", "10%-20%".
    fn to(&mut self, c: char) -> Option<usize> {
        let is_dash = matches!(c, '-' | '–');
        let is_sign = is_dash || matches!(c, '~' | '〜' | '～');
        let goes_on = self.ahead(1).is_some_and(|c| c.is_ascii_digit() || is_currency(c));
        if !is_sign || !goes_on {
            return None;
        }
        let before = &self.text.chars[..self.at];
        let length = before.iter().rev().take_while(|c| RANGE_ENDS.contains(**c)).count();
        let counted = before[..before.len() - length].last();
        // "今日-3度" has a minus.
        let is_counter = length > 0 && (!is_dash || counted.is_some_and(char::is_ascii_digit));
        if self.figures_end != Some(self.at) && !is_counter {
            return None;
        }
        let span = self.span(1);
        self.out.say(span, self.asian.name(TO));
        Some(1)
    }

    fn figures(&mut self) -> Option<usize> {
        let (length, amount) = figures(&self.text.chars, self.at)?;
        let (amount, length) = match amount {
            // A unit without a name in this language is left to the letters behind the number.
            Amount::Plain { number, is_negative, unit: Some(unit), number_length }
                if unit.name(self.asian).is_empty() =>
            {
                let amount = Amount::Plain { number, is_negative, unit: None, number_length };
                (amount, number_length)
            }
            amount => (amount, length),
        };
        let after = [self.ahead(length), self.ahead(length + 1)];
        let said = match self.asian {
            AsianLanguage::Japanese => japanese::said(&amount, after),
            AsianLanguage::Mandarin => mandarin::said(&amount, self.before(), after),
        };
        let is_end = matches!(
            amount,
            Amount::Date { .. }
                | Amount::Time { .. }
                | Amount::Money { .. }
                | Amount::Plain { unit: Some(_), .. }
        );
        self.figures_end = is_end.then_some(self.at + length);
        let span = self.span(length);
        for saying in said {
            match saying {
                Saying::Native(text) => self.out.say(span.clone(), &text),
                Saying::Phonemes(phonemes) => self.out.pronounce(span.clone(), "数", &phonemes),
                Saying::Pause => self.out.mark(','),
            }
        }
        Some(length)
    }

    /// A word in Latin letters. Short ones in capitals are spelled.
    fn latin(&mut self) -> Option<usize> {
        let rest = &self.text.chars[self.at..];
        let is_inner = |at: usize| {
            matches!(rest[at], '\'' | '’') && rest.get(at + 1).copied().is_some_and(is_latin)
        };
        let length = (0..rest.len()).take_while(|at| is_latin(rest[*at]) || is_inner(*at)).count();
        if length == 0 || !is_latin(rest[0]) {
            return None;
        }
        let word: String = rest[..length].iter().collect();
        let is_acronym =
            length <= ACRONYM_CHARS_MAX && word.chars().all(|c| c.is_ascii_uppercase());
        let span = self.span(length);
        match is_acronym {
            true => self.out.spell(span, &word),
            false => self.out.say(span, &word),
        }
        Some(length)
    }

    /// A word that the dictionary does not have.
    fn new_word(&mut self) -> Option<usize> {
        let rest = &self.text.chars[self.at..];
        let is_here = |word: &str| {
            let count = word.chars().count();
            rest.iter().take(count).copied().eq(word.chars())
        };
        let is_japanese = self.asian == AsianLanguage::Japanese;
        let (word, kana) = rows(NEW_WORDS).find(|(word, _)| is_japanese && is_here(word))?;
        let length = word.chars().count();
        let span = self.span(length);
        self.out.pronounce(span, "名", &kana_symbols(kana));
        Some(length)
    }

    fn native(&mut self, c: char) -> Option<usize> {
        if !is_native(self.asian, c) {
            return None;
        }
        let span = self.span(1);
        self.out.say(span, c.encode_utf8(&mut [0; 4]));
        Some(1)
    }

    /// A symbol that is read as a word.
    fn sign(&mut self, c: char) -> Option<usize> {
        let is_ascii = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let is_inside = is_ascii(self.before()) && is_ascii(self.ahead(1));
        if c == ':' && self.ahead(1) == Some('/') && self.ahead(2) == Some('/') {
            let span = self.span(3);
            self.out.say(span, self.asian.name("コロンスラッシュスラッシュ/冒号双斜杠"));
            return Some(3);
        }
        if matches!(c, '-' | '–') && is_inside {
            return Some(1);
        }
        let is_range = |c: Option<char>| c.is_some_and(|c| is_native(self.asian, c));
        if matches!(c, '〜' | '～' | '~') && is_range(self.before()) && is_range(self.ahead(1)) {
            let span = self.span(1);
            self.out.say(span, self.asian.name(TO));
            return Some(1);
        }
        let of_table = || {
            let mut bytes = [0; 4];
            let sign: &str = c.encode_utf8(&mut bytes);
            let inner = find(INNER_SIGNS, sign).filter(|_| is_inside);
            Some(self.asian.name(inner.or_else(|| find(SIGNS, sign))?))
        };
        let said = currency_name(c, self.asian).or_else(of_table)?;
        let span = self.span(1);
        self.out.say(span, said);
        Some(1)
    }

    /// Punctuation, in the model's symbols.
    fn mark(&mut self, c: char) -> Option<usize> {
        let same = self.text.chars[self.at..].iter().take_while(|other| **other == c).count();
        let opens = self.before().is_none_or(|before| before == ' ');
        match c {
            '。' | '.' | '．' | '｡' if same == 1 => self.out.mark('.'),
            '.' | '。' | '…' | '‥' => self.out.mark('…'),
            ',' | '、' | '，' | '､' | '/' | '|' | '→' | '⇒' => self.out.mark(','),
            ';' | '；' => self.out.mark(';'),
            ':' | '：' | '∶' => self.out.mark(':'),
            '!' | '！' => self.out.mark('!'),
            '?' | '？' => self.out.mark('?'),
            '—' | '―' | '─' => self.out.mark('—'),
            '-' | '–' if same > 1 || opens => self.out.mark('—'),
            '(' | '[' | '{' | '【' | '〔' => self.out.open('('),
            ')' | ']' | '}' | '】' | '〕' => self.out.mark(')'),
            '“' | '„' | '«' | '「' | '『' | '《' | '〈' => self.out.open('“'),
            '”' | '»' | '」' | '』' | '》' | '〉' => self.out.mark('”'),
            '"' if opens => self.out.open('“'),
            '"' => self.out.mark('”'),
            _ => return None,
        }
        Some(if matches!(c, '(' | '[' | '{' | '“' | '「' | '『' | '《') { 1 } else { same })
    }

    /// A word of a script that the language is not written in: its English reading, never silence.
    fn other_script(&mut self, c: char) -> Option<usize> {
        if !c.is_alphanumeric() {
            return None;
        }
        let rest = &self.text.chars[self.at..];
        let is_kin = |other: &&char| {
            (other.is_alphanumeric() || is_vowel_sign(**other))
                && !is_latin(**other)
                && !is_native(self.asian, **other)
                && same_script(c, **other)
        };
        let length = rest.iter().take_while(is_kin).count().max(1);
        let word: String = rest[..length].iter().collect();
        let latin = romanised(&word).unwrap_or_else(|| "letter".to_owned());
        let span = self.span(length);
        self.out.say(span, &latin);
        Some(length)
    }
}

/// Groups of digits with a pause between them.
fn with_pauses(groups: impl Iterator<Item = Saying>) -> Vec<Saying> {
    let said = groups.flat_map(|group| [Saying::Pause, group]);
    said.skip(1).collect()
}

/// The user's own words for a word, in the language or in Latin letters.
fn say_words(asian: AsianLanguage, span: &Range<usize>, words: &str, out: &mut Reading) {
    for word in words.split_whitespace() {
        match word.chars().all(|c| is_native(asian, c)) {
            true => out.say(span.clone(), word),
            false => out.say(span.clone(), &romanised(word).unwrap_or_else(|| word.to_owned())),
        }
    }
}

/// Symbols, and their names in Japanese and Mandarin.
const SIGNS: &str = "
    @ アットマーク/艾特, # シャープ/井号, % パーセント/百分号, ‰ パーミル/千分号, & アンド/和,
    + プラス/加, − マイナス/减, = イコール/等于, ≠ ノットイコール/不等于,
    ≈ ニアリーイコール/约等于, < 小なり/小于, > 大なり/大于, ≤ 以下/小于等于, ≥ 以上/大于等于,
    ± プラスマイナス/正负, × かける/乘, ÷ 割る/除以, √ ルート/根号, ∞ 無限大/无穷大, ° 度/度,
    〒 郵便番号/邮编";

/// Between the ends of a range.
const TO: &str = "から/到";

/// Characters with which the beginning of a range ends before a dash.
const RANGE_ENDS: &str = "年月日号號时時点點分周週度円元万萬億亿回人歳岁楼階级級";

/// Japanese words that are younger than the dictionary, or said in full, and their kana.
const NEW_WORDS: &str = "令和 レーワ, (株) カブシキガイシャ, (有) ユーゲンガイシャ";

/// Symbols that are only read between letters or digits.
const INNER_SIGNS: &str = ". ドット/点, / スラッシュ/斜杠, _ アンダーバー/下划线";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: Language, text: &str, expect: &str) {
        let reading = read(text, 0, language, &Lexicon::default());
        // The spaces between the characters say nothing.
        assert_eq!(reading.text.replace(' ', ""), expect.replace(' ', ""), "{text}");
        for word in &reading.words {
            assert!(text.get(word.span.clone()).is_some(), "{text}: {:?}", word.span);
        }
    }

    #[test]
    fn japanese_is_written_out() {
        let japanese = |text, expect| check(Language::Japanese, text, expect);
        japanese("2024/05/06に来た。", "２０２４年５月６日に来た.");
        japanese("会議は9:05から。", "会議は９時５分から.");
        japanese("午前0時、0:30、00:05", "午前零時,零時３０分,零時５分");
        japanese("2024年05月06日09時00分", "２０２４年５月６日９時０分");
        japanese("0時間、007、05", "０時間,数,数");
        japanese("令和6年", "名６年");
        japanese("¥1,200と$3.50", "１２００円と３．５０ドル");
        japanese("€と₩", "ユーロとウォン");
        japanese("5kgと10km", "５キログラムと１０キロメートル");
        japanese("-3°C", "マイナス３度");
        japanese("1/2", "２分の１");
        japanese("10〜20人", "１０から２０人");
        japanese("ﾊﾞｽとｶﾞﾑ", "バスとガム");
        japanese("「はい」😀、と！！", "“はい”,と!");
        japanese("家族👨\u{200d}👩\u{200d}👧と🇯🇵の1\u{fe0f}\u{20e3}と", "家族との１と");
        japanese("שלום、مرحبا", "Hebrew word,Arabic word");
        japanese("नमस्ते、ที่นี่", "Hindi word,Thai word");
        japanese("\u{2139}\u{fe0f}情報", "情報");
        japanese("a@b.co", "aアットマークbドットco");
        japanese("①と㎏", "１とkg");
        japanese("Привет、안녕", "privet,annyeong");
        japanese("10:00〜18:00", "１０時から１８時");
        japanese("1月-3月、-3月", "１月から３月,マイナス３月");
        japanese("今日-3度、1万円-2万円", "今日マイナス３度,１万円から２万円");
        japanese("¥1,000～¥2,000", "１０００円から２０００円");
        japanese("3:2と16:9", "３対２と１６対９");
        japanese("丸の内1-2-3", "丸の内１の２の３");
        japanese("5-10%", "５から１０パーセント");
        japanese("㈱山田", "名山田");
        japanese("12/25(水)、例1：30個", "１２月２５日(水),例１:３０個");
    }

    #[test]
    fn mandarin_is_written_out() {
        let mandarin = |text, expect| check(Language::Mandarin, text, expect);
        mandarin("2024年5月6日", "二零二四年五月六日");
        mandarin("2024-05-06", "二零二四年五月六日");
        mandarin("9:05开会。", "九点零五分开会.");
        mandarin("¥1,200和$3.5", "一千二百元和三点五美元");
        mandarin("50%的人", "百分之五十的人");
        mandarin("2个和2月", "两个和二月");
        mandarin("-5°C", "零下五摄氏度");
        mandarin("1/2", "二分之一");
        mandarin("5-10公里", "五到十公里");
        mandarin("10005", "一万零五");
        mandarin("あ、한", "a,han");
        mandarin("9:00-17:00", "九点到十七点");
        mandarin("10%-20%和5-10%", "百分之十到百分之二十和百分之五到百分之十");
        mandarin("15℃~20℃", "十五摄氏度到二十摄氏度");
        mandarin("1月-3月", "一月到三月");
        mandarin("以2:1获胜", "以二比一获胜");
        mandarin("第2个、2个、2年级、2年", "第二个,两个,二年级,两年");
        mandarin("2-1-502", "二杠一杠五百零二");
        mandarin("400-123-4567", "四零零,幺二三,四五六七");
        mandarin("20 %", "百分之二十");
        mandarin("1/2(一半)和12/25(三)", "二分之一(一半)和十二月二十五日(三)");
    }

    #[test]
    fn own_words_come_first() {
        let rows =
            [("東京".to_owned(), "トウケイ".to_owned()), ("SQL".to_owned(), "/ˈɛs/".to_owned())];
        let lexicon = Lexicon::new(rows.into()).expect("a lexicon");
        let reading = read("東京のSQL", 0, Language::Japanese, &lexicon);
        assert_eq!(reading.text, "トウケイ の 名");
        assert_eq!(reading.words[0].span, 0..6);
        assert_eq!(reading.words[2].span, 9..12);
    }
}
