//! Mandarin text → words with their pinyin: jieba cuts the words, a table gives their readings.
//! The tables are files that hob fetches like a model. Nothing of them is in the program.

mod pinyin;
mod sandhi;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use jieba_rs::Jieba;

pub(crate) use self::pinyin::Syllable;
use self::sandhi::{TonedWord, change_tones};
use crate::dictionary_error::DictionaryError;

/// Words with their frequencies and parts of speech, as jieba publishes them.
const WORDS: &str = "words.txt";
/// A character or a phrase on each line, and the pinyin of each of its characters with a number for the tone.
const READINGS: &str = "readings.txt";

/// Five times the size of the published files.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// The longest phrase of the table that is looked up, in characters.
const PHRASE_CHARS_MAX: usize = 16;

/// The tables in memory. They take a fifth of a second to load.
pub(crate) struct Mandarin {
    jieba: Jieba,
    readings: HashMap<Box<str>, Box<str>>,
}

hob_core::debug_fields!(Mandarin: readings.len());

impl Mandarin {
    pub(crate) fn load(folder: &Path) -> Result<Mandarin, DictionaryError> {
        let path = folder.join(WORDS);
        let jieba = Jieba::with_dict(&mut opened(&path)?).map_err(|error| {
            DictionaryError::Unreadable { path: path.clone(), detail: error.to_string() }
        })?;
        let path = folder.join(READINGS);
        let mut readings = HashMap::new();
        for line in opened(&path)?.lines() {
            let line = line.map_err(DictionaryError::at(&path))?;
            if let Some((text, pinyin)) = line.split_once(' ') {
                readings.insert(text.into(), pinyin.into());
            }
        }
        if readings.is_empty() {
            return Err(DictionaryError::malformed(&path, "it has no words"));
        }
        Ok(Mandarin { jieba, readings })
    }

    /// The words of a text of Chinese characters without marks: a syllable for each character, with the tone that it has
    /// in this sentence.
    pub(crate) fn words(&self, text: &str) -> Vec<Vec<Syllable>> {
        // Without jieba's model for unknown words, which joins known ones too: "很漂亮" would be one word.
        let tags = self.jieba.tag(text, false);
        let mut words = Vec::with_capacity(tags.len());
        for (at, tag) in tags.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| (tags[at].word, tags[at].tag));
            let after = tags.get(at + 1).map(|tag| tag.word);
            let syllables = self.contextual_reading(tag.word, before, after);
            let syllables = syllables.unwrap_or_else(|| self.syllables(tag.word));
            let is_verb = tag.tag.starts_with('v');
            let text: Vec<char> = tag.word.chars().collect();
            words.push(TonedWord {
                text,
                syllables: with_measure_word(tag.word, syllables),
                is_verb,
            });
        }
        change_tones(&mut words);
        words.into_iter().map(|word| word.syllables).collect()
    }

    /// The reading of a single character, if it depends on the words next to it.
    fn contextual_reading(
        &self,
        word: &str,
        before: Option<(&str, &str)>,
        after: Option<&str>,
    ) -> Option<Vec<Syllable>> {
        let tag = before.map_or("", |(_, tag)| tag);
        let is_before = |words: &[&str]| before.is_some_and(|(before, _)| words.contains(&before));
        let is_after = |words: &[&str]| after.is_some_and(|after| words.contains(&after));
        let is_long = before.is_some_and(|(word, _)| word.chars().count() > 1);
        let is_last = before.is_some() && after.is_none();
        let pinyin = match word {
            // Place names and nouns make a compound with it: 草地.
            "地" if is_long && !tag.starts_with(['n', 'r', 'm', 's', 't']) && after.is_some() => {
                "de5"
            }
            "得" if tag.starts_with(['v', 'a']) => "de5",
            "得" if tag.starts_with(['r', 'n', 'd']) && after.is_some() => "dei3",
            "还" if is_after(&["钱", "给", "书", "债", "款", "清"]) || is_last => "huan2",
            "长" if tag.starts_with('m') || is_after(&["的"]) => "chang2",
            "长" if tag.starts_with('d') => "chang2",
            "只" if tag.starts_with('m') || is_before(&["这", "那", "哪", "每", "几"]) => {
                "zhi1"
            }
            "重" if tag.starts_with('d') => "zhong4",
            "种" if tag.starts_with(['d', 'r']) && is_after(&["树", "花", "菜", "地", "田"]) => {
                "zhong4"
            }
            "数" if is_after(&["一", "数"]) => "shu3",
            "干" if is_after(&["什么", "吗", "嘛", "活", "活儿", "得"]) => "gan4",
            "为" if is_after(&["了", "你", "我", "他", "她", "我们", "你们", "人民"]) => {
                "wei4"
            }
            _ => return None,
        };
        Syllable::parse(pinyin).map(|syllable| vec![syllable])
    }

    /// One syllable for each character: from the longest phrases that the table has.
    fn syllables(&self, word: &str) -> Vec<Syllable> {
        let starts: Vec<usize> =
            word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
        let chars = starts.len() - 1;
        let mut syllables = Vec::with_capacity(chars);
        while syllables.len() < chars {
            let at = syllables.len();
            let longest = chars.min(at + PHRASE_CHARS_MAX);
            let phrase = (at + 1..=longest).rev().find_map(|end| {
                let pinyin = self.readings.get(&word[starts[at]..starts[end]])?;
                let phrase: Vec<Syllable> = pinyin.split(' ').filter_map(Syllable::parse).collect();
                (phrase.len() == end - at).then_some(phrase)
            });
            syllables.extend(phrase.unwrap_or_else(|| vec![Syllable::unknown()]));
        }
        syllables
    }
}

/// 只 after a number is the measure word of animals: 两只.
fn with_measure_word(word: &str, mut syllables: Vec<Syllable>) -> Vec<Syllable> {
    let is_counted = word.strip_suffix('只').is_some_and(|number| {
        !number.is_empty()
            && number.chars().all(|c| "一二三四五六七八九十百千两几这那每".contains(c))
    });
    if is_counted && let (Some(last), Some(zhi)) = (syllables.last_mut(), Syllable::parse("zhi1")) {
        *last = zhi;
    }
    syllables
}

fn opened(path: &Path) -> Result<BufReader<std::io::Take<File>>, DictionaryError> {
    let file = File::open(path).map_err(DictionaryError::at(path))?;
    Ok(BufReader::new(file.take(FILE_BYTES_MAX)))
}
