//! Katakana → the symbols of the speech model.
//! They are those with which its Japanese voices were trained, so no other transcription is as good.

use crate::word_table::find;

/// Kana of one or two letters, and their symbols.
const SYMBOLS: &str = "
    ァ a, ア a, ィ i, イ i, イェ je, ゥ ɯ, ウ ɯ, ウィ βi, ウェ βe, ウォ βo, ェ e, エ e, ォ o, オ o,
    カ ka, ガ ɡa, キ kʲi, キェ kʲe, キャ kʲa, キュ kʲɨ, キョ kʲo, ギ ɡʲi, ギャ ɡʲa, ギュ ɡʲɨ,
    ギョ ɡʲo, ク kɯ, クァ kᵝa, クィ kᵝi, クェ kᵝe, クォ kᵝo, グ ɡɯ, グァ ɡᵝa, グィ ɡᵝi, グェ ɡᵝe,
    グォ ɡᵝo, ケ ke, ゲ ɡe, コ ko, ゴ ɡo,
    サ sa, ザ ʣa, シ ɕi, シェ ɕe, シャ ɕa, シュ ɕɨ, ショ ɕo, ジ ʥi, ジェ ʥe, ジャ ʥa, ジュ ʥɨ,
    ジョ ʥo, ス sɨ, ズ zɨ, セ se, ゼ ʣe, ソ so, ゾ ʣo,
    タ ta, ダ da, チ ʨi, チェ ʨe, チャ ʨa, チュ ʨɨ, チョ ʨo, ヂ ʥi, ヂャ ʥa, ヂュ ʥɨ, ヂョ ʥo,
    ツ ʦɨ, ツァ ʦa, ツィ ʦʲi, ツェ ʦe, ツォ ʦo, ヅ zɨ, テ te, ティ tʲi, テュ tʲɨ, デ de, ディ dʲi,
    デュ dʲɨ, ト to, トゥ tɯ, ド do, ドゥ dɯ,
    ナ na, ニ ɲi, ニェ ɲe, ニャ ɲa, ニュ ɲɨ, ニョ ɲo, ヌ nɯ, ネ ne, ノ no,
    ハ ha, バ ba, パ pa, ヒ çi, ヒェ çe, ヒャ ça, ヒュ çɨ, ヒョ ço, ビ bʲi, ビャ bʲa, ビュ bʲɨ,
    ビョ bʲo, ピ pʲi, ピャ pʲa, ピュ pʲɨ, ピョ pʲo, フ ɸɯ, ファ ɸa, フィ ɸʲi, フェ ɸe, フォ ɸo,
    フュ ɸʲɨ, フョ ɸʲo, ブ bɯ, プ pɯ, ヘ he, ベ be, ペ pe, ホ ho, ボ bo, ポ po,
    マ ma, ミ mʲi, ミャ mʲa, ミュ mʲɨ, ミョ mʲo, ム mɯ, メ me, モ mo,
    ャ ja, ヤ ja, ュ jɯ, ユ jɯ, ョ jo, ヨ jo,
    ラ ɾa, リ ɾʲi, リャ ɾʲa, リュ ɾʲɨ, リョ ɾʲo, ル ɾɯ, レ ɾe, ロ ɾo,
    ヮ βa, ワ βa, ヰ i, ヱ e, ヲ o, ヴ vɯ, ヴァ va, ヴィ vʲi, ヴェ ve, ヴォ vo, ヴュ bʲɨ, ヴョ bʲo,
    ヵ ka, ヶ ke, ヷ va, ヸ vʲi, ヹ ve, ヺ vo";

/// Small kana that change the one before them.
const SMALL: &str = "ャュョァィゥェォヮ";

/// The symbols of a word in katakana. Other characters have no sound.
pub(crate) fn kana_symbols(word: &str) -> String {
    let kana: Vec<char> = word.chars().collect();
    let mut symbols = String::new();
    let mut at = 0;
    while at < kana.len() {
        if let Some(two) = pair(&kana, at) {
            symbols.push_str(&two);
            at += 2;
            continue;
        }
        match kana[at] {
            'ー' if symbols.is_empty() || symbols.ends_with('ː') => {}
            'ー' => symbols.push('ː'),
            'ッ' => symbols.push('ʔ'),
            'ン' => symbols.push(nasal(&kana, at)),
            one => symbols.push_str(of(one.encode_utf8(&mut [0; 4])).unwrap_or("")),
        }
        at += 1;
    }
    symbols
}

fn of(kana: &str) -> Option<&'static str> {
    find(SYMBOLS, kana)
}

/// Two kana that are one beat. An unusual small kana replaces the vowel before it.
fn pair(kana: &[char], at: usize) -> Option<String> {
    let (first, second) = (*kana.get(at)?, *kana.get(at + 1)?);
    let together: String = [first, second].iter().collect();
    if let Some(symbols) = of(&together) {
        return Some(symbols.to_owned());
    }
    if !SMALL.contains(second) || SMALL.contains(first) || matches!(first, 'ッ' | 'ン' | 'ー') {
        return None;
    }
    let consonant = of(first.encode_utf8(&mut [0; 4]))?;
    let vowel = of(second.encode_utf8(&mut [0; 4]))?;
    let without_vowel = consonant.char_indices().next_back().map_or(0, |(at, _)| at);
    Some(format!("{}{vowel}", &consonant[..without_vowel]))
}

/// ン takes the place of the consonant behind it.
fn nasal(kana: &[char], at: usize) -> char {
    let next = pair(kana, at + 1)
        .or_else(|| of(kana.get(at + 1)?.encode_utf8(&mut [0; 4])).map(str::to_owned));
    match next.as_deref().and_then(|symbols| symbols.chars().next()) {
        Some('m' | 'p' | 'b') => 'm',
        Some('k' | 'ɡ') => 'ŋ',
        Some('ɲ' | 'ʨ' | 'ʥ') => 'ɲ',
        Some('n' | 't' | 'd' | 'ɾ' | 'z') => 'n',
        _ => 'ɴ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kana: &str, expect: &str) {
        assert_eq!(kana_symbols(kana), expect, "{kana}");
    }

    #[test]
    fn kana_have_the_models_symbols() {
        check("コンニチワ", "koɲɲiʨiβa");
        check("トーキョー", "toːkʲoː");
        check("ガッコー", "ɡaʔkoː");
        check("シンブン", "ɕimbɯɴ");
        check("サンカイ", "saŋkai");
        check("ホンヤ", "hoɴja");
        check("ファイル", "ɸaiɾɯ");
        check("ティー", "tʲiː");
        check("ジャジュジョ", "ʥaʥɨʥo");
        check("ツヅズス", "ʦɨzɨzɨsɨ");
        check("ヴァイオリン", "vaioɾʲiɴ");
        check("フィッシュ", "ɸʲiʔɕɨ");
        check("ズィ", "zi");
        check("ーア", "a");
        check("アーー", "aː");
        check("漢?", "");
    }

    #[test]
    fn every_symbol_is_one_of_the_models() {
        for (kana, symbols) in crate::word_table::rows(SYMBOLS) {
            assert!(symbols.chars().all(crate::alphabet::is_phoneme), "{kana}");
        }
    }
}
