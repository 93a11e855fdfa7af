//! The tones that syllables have in a sentence: 一 and 不, third tones in a row, neutral tones, 儿 at the end of a word.
//! Works on the words between two pauses.

use super::pinyin::{NEUTRAL, Syllable};
use crate::word_table::has;

/// A word of the sentence with its syllables, one for each character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TonedWord {
    pub(super) text: Vec<char>,
    pub(super) syllables: Vec<Syllable>,
    pub(super) is_verb: bool,
}

/// Words of two characters whose second one is neutral, though dictionaries give it its full tone.
const NEUTRAL_SECOND: &str = "\
    爸爸 妈妈 哥哥 弟弟 姐姐 妹妹 爷爷 奶奶 叔叔 舅舅 姑姑 伯伯 婶婶 嫂嫂 宝宝 娃娃 星星 太太 公公 婆婆 \
    东西 朋友 先生 学生 喜欢 漂亮 明白 清楚 告诉 知道 认识 休息 消息 舒服 衣服 意思 时候 地方 关系 事情 \
    故事 头发 眼睛 耳朵 鼻子 嘴巴 脑袋 胳膊 指甲 骨头 石头 木头 馒头 枕头 舌头 拳头 后头 前头 里头 外头 \
    甜头 念头 苦头 镜头 谢谢 客气 麻烦 葡萄 萝卜 豆腐 包子 饺子 老婆 老爷 姑娘 伙计 师傅 丈夫 媳妇 亲戚 \
    大夫 护士 和尚 道士 秀才 窗户 钥匙 扫帚 笤帚 蘑菇 玫瑰 芝麻 棉花 石榴 核桃 庄稼 粮食 点心 云彩 月亮 \
    太阳 早上 晚上 地上 身上 路上 手上 桌上 墙上 街上 床上 家里 心里 手里 屋里 这里 那里 嘴里 夜里 \
    便宜 暖和 凉快 热闹 干净 整齐 老实 聪明 糊涂 马虎 踏实 结实 厉害 利索 利害 大方 小气 和气 规矩 体面 \
    实在 自在 别扭 疙瘩 功夫 工夫 本事 力气 脾气 福气 运气 名字 名堂 行李 招牌 招呼 打听 打扮 打算 打发 \
    打量 商量 琢磨 收拾 应付 对付 吩咐 答应 咳嗽 哆嗦 折腾 唠叨 嘀咕 嘟囔 巴结 佩服 服侍 伺候 使唤 指望 \
    盼望 记得 懂得 觉得 晓得 值得 显得 免得 省得 多么 怎么 那么 这么 要么 什么 算盘 灯笼 帐篷 篱笆 胭脂 \
    苍蝇 蚂蚱 蛤蟆 刺猬 牲口 骆驼 狐狸 喇叭 琵琶 帘子 买卖 生意 学问 见识 教训 主意 心思 动静 动弹 分量 \
    位置 毛病 病人 差事 差使 队伍 父亲 母亲 合同 部分 成分 部份 情形 困难 价钱 钱包 口袋 裁缝 木匠 铁匠";

/// Words that end with 儿 as a syllable of its own: a child or a son.
const CHILD_WORDS: &str = "\
    女儿 婴儿 幼儿 孤儿 少儿 健儿 宠儿 胎儿 男儿 孩儿 生儿 新生儿 混血儿 弃儿 小儿 妻儿 育儿 托儿 低能儿 \
    早产儿 畸形儿 患儿 鸟儿 猪儿 马儿 侄儿 侏儒儿 产儿 拖儿 幸运儿 弄潮儿";

/// Particles that are neutral whenever they stand alone or end a word.
const PARTICLES: &str = "的了着吗呢吧们么";

/// 目的 and 睡着 end with other readings of these characters.
const PARTICLE_SOUNDS: [&str; 8] = ["de", "le", "zhe", "ma", "ne", "ba", "men", "me"];

/// Applies all changes, in the order in which they depend on each other.
pub(super) fn change_tones(words: &mut [TonedWord]) {
    for word in &mut *words {
        make_neutral(word);
    }
    change_yi_and_bu(words);
    for word in &mut *words {
        third_tones_inside(word);
    }
    third_tones_between(words);
}

fn make_neutral(word: &mut TonedWord) {
    let text: String = word.text.iter().collect();
    let Some(last) = word.text.len().checked_sub(1) else { return };
    let is_neutral = match word.text[last] {
        c if PARTICLES.contains(c) => {
            PARTICLE_SOUNDS.contains(&word.syllables[last].letters.as_str())
        }
        '儿' => last > 0 && !has(CHILD_WORDS, &text),
        c => {
            let is_doubled = last == 1 && word.text[0] == c && word.is_verb;
            is_doubled || (last == 1 && has(NEUTRAL_SECOND, &text))
        }
    };
    if is_neutral {
        word.syllables[last].tone = NEUTRAL;
    }
}

/// A character's place: its word, and its position there.
type Place = (usize, usize);

fn places(words: &[TonedWord]) -> Vec<Place> {
    let of_word =
        |(at, word): (usize, &TonedWord)| (0..word.text.len()).map(move |inner| (at, inner));
    words.iter().enumerate().flat_map(of_word).collect()
}

fn change_yi_and_bu(words: &mut [TonedWord]) {
    let places = places(words);
    for at in 0..places.len() {
        let char_at = |at: usize| places.get(at).map(|(word, inner)| words[*word].text[*inner]);
        let (Some(c @ ('一' | '不')), Some(next)) = (char_at(at), char_at(at + 1)) else {
            continue;
        };
        let (word, inner) = places[at];
        let (next_word, next_inner) = places[at + 1];
        let before = at.checked_sub(1).and_then(char_at);
        let next_tone = words[next_word].syllables[next_inner].tone;
        // 看一看, 好不好
        let is_between = before == Some(next) && !is_digit(next);
        let tone = match c {
            _ if is_between => Some(NEUTRAL),
            '不' => (next_tone == 4).then_some(2),
            _ if is_in_number(before, next)
                || is_decimal(next, char_at(at + 2), char_at(at + 3)) =>
            {
                Some(1)
            }
            // The neutral 个 has the fourth tone beneath.
            _ if next_tone == 4 || (next == '个' && next_tone == NEUTRAL) => Some(2),
            _ if next_tone < 4 => Some(4),
            _ => None,
        };
        if let Some(tone) = tone {
            words[word].syllables[inner].tone = tone;
        }
    }
}

fn is_digit(c: char) -> bool {
    "零〇一二三四五六七八九幺两".contains(c)
}

/// 一 keeps its tone as a digit of several, as an ordinal, and before what is counted in order.
fn is_in_number(before: Option<char>, next: char) -> bool {
    let after_number = before.is_some_and(|c| is_digit(c) || "第十初".contains(c));
    after_number && !"百千万亿".contains(next) || is_digit(next) || "月号楼日".contains(next)
}

/// 一点五 is a number, and 一点三十分 a time.
fn is_decimal(next: char, second: Option<char>, third: Option<char>) -> bool {
    let is_time = third.is_some_and(|c| "十刻".contains(c));
    next == '点' && second.is_some_and(is_digit) && !is_time
}

/// 展览馆 is 2-2-3, because its first two characters belong together; 小老虎 is 3-2-3.
fn third_tones_inside(word: &mut TonedWord) {
    let tones: Vec<u8> = word.syllables.iter().map(|syllable| syllable.tone).collect();
    if tones[..] == [3, 3, 3] && !"小老总纸好很有我你".contains(word.text[0]) {
        word.syllables[0].tone = 2;
    }
    for at in (0..tones.len().saturating_sub(1)).rev() {
        if word.syllables[at].tone == 3 && word.syllables[at + 1].tone == 3 {
            word.syllables[at].tone = 2;
        }
    }
}

/// From the end to the beginning: 我也很好 is 2-3-2-3.
fn third_tones_between(words: &mut [TonedWord]) {
    for at in (0..words.len().saturating_sub(1)).rev() {
        let is_third = |syllable: Option<&Syllable>| syllable.is_some_and(|s| s.tone == 3);
        let next = is_third(words[at + 1].syllables.first());
        if next
            && is_third(words[at].syllables.last())
            && let Some(last) = words[at].syllables.last_mut()
        {
            last.tone = 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words as `你好:ni3 hao3`, separated by `|`; a verb has a `*` before it.
    fn changed(written: &str) -> String {
        let word = |word: &str| {
            let (text, pinyin) = word.trim().split_once(':').expect("a word and its pinyin");
            TonedWord {
                is_verb: text.starts_with('*'),
                text: text.trim_start_matches('*').chars().collect(),
                syllables: pinyin.split(' ').map(|s| Syllable::parse(s).expect("pinyin")).collect(),
            }
        };
        let mut words: Vec<TonedWord> = written.split('|').map(word).collect();
        change_tones(&mut words);
        let tones = words.iter().flat_map(|word| &word.syllables);
        tones.map(|syllable| char::from(b'0' + syllable.tone)).collect()
    }

    #[test]
    fn third_tones_in_a_row() {
        assert_eq!(changed("你好:ni3 hao3"), "23");
        assert_eq!(changed("展览馆:zhan3 lan3 guan3"), "223");
        assert_eq!(changed("小老虎:xiao3 lao3 hu3"), "323");
        assert_eq!(changed("我:wo3|也:ye3|很:hen3|好:hao3"), "2323");
        assert_eq!(changed("很:hen3|多:duo1"), "31");
    }

    #[test]
    fn yi_and_bu() {
        assert_eq!(changed("一个:yi1 ge4"), "24");
        assert_eq!(changed("一天:yi1 tian1"), "41");
        assert_eq!(changed("一百:yi1 bai3"), "43");
        assert_eq!(changed("第一:di4 yi1|课:ke4"), "414");
        assert_eq!(changed("二零二一:er4 ling2 er4 yi1|年:nian2"), "42412");
        assert_eq!(changed("一月:yi1 yue4"), "14");
        assert_eq!(changed("一点五:yi1 dian3 wu3"), "123");
        assert_eq!(changed("一点:yi1 dian3|三十:san1 shi2"), "4312");
        assert_eq!(changed("看:kan4|一:yi1|看:kan4"), "454");
        assert_eq!(changed("不:bu4|是:shi4"), "24");
        assert_eq!(changed("不:bu4|好:hao3"), "43");
        assert_eq!(changed("好:hao3|不:bu4|好:hao3"), "353");
        assert_eq!(changed("不:bu4"), "4");
    }

    #[test]
    fn neutral_tones() {
        assert_eq!(changed("妈妈:ma1 ma1"), "15");
        assert_eq!(changed("*看看:kan4 kan4"), "45");
        assert_eq!(changed("东西:dong1 xi1"), "15");
        assert_eq!(changed("我们:wo3 men2"), "35");
        assert_eq!(changed("玩儿:wan2 er2"), "25");
        assert_eq!(changed("女儿:nv3 er2"), "32");
        assert_eq!(changed("来:lai2|了:le5"), "25");
        assert_eq!(changed("了解:liao3 jie3"), "23");
        assert_eq!(changed("目的:mu4 di4"), "44");
    }
}
