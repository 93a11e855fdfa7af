//! The time of each word: where the decoder listened when it wrote the word's tokens.
//! The method is OpenAI's: normalised attention of some heads, a median filter, dynamic time warping.

use hob_core::{HeardWord, TranscriptTask};
use unicode_normalization::char::is_combining_mark;

use super::decoder::{self, Step};
use super::{TranscribeError, Whisper, Window, text_language};

/// Seconds of one position of the encoder.
const POSITION_S: f64 = 0.02;
/// Width of the median filter, in positions.
const MEDIAN: usize = 7;
/// Marks that belong to the word after them, in scripts without spaces.
const OPENING: &str = "“‘（《〈【「『〔［";
/// A single word rarely takes longer.
const WORD_S_MAX: f64 = 2.0;

/// A layer of the decoder, and one of its heads.
type Head = (usize, usize);

/// A word, and the place of its first token among the tokens of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlacedWord {
    pub(super) word: HeardWord,
    pub(super) first_token: usize,
}

impl Whisper {
    /// The words of text `tokens` in a window. The language is that of the sound.
    pub(super) fn words(
        &mut self,
        (language, task): (&str, TranscriptTask),
        tokens: &[u32],
        Window { positions, sounding }: Window,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<PlacedWord>, TranscribeError> {
        let text: Vec<u32> =
            tokens.iter().copied().filter(|token| *token < self.tokens.end).collect();
        if text.is_empty() || sounding == 0 {
            return Ok(Vec::new());
        }
        let mut all = self.tokens.opening(language, task);
        all.push(self.tokens.no_timestamps());
        let opening = all.len();
        all.extend(&text);
        all.push(self.tokens.end);
        all.truncate(self.sizes.text_ctx);
        let heads = self.alignment_heads();
        let step = Step { tokens: &all, past: 0, branches: None, positions, cancelled };
        let found =
            decoder::attention(&self.weights, &self.sizes, &mut self.backends, step, &heads)?;
        let costs = costs(&found, all.len(), positions, sounding);
        // Each row of scores belongs to the token that predicts the next one, so the rows begin one token earlier.
        let rows = &costs[(opening - 1) * sounding..(all.len() - 1) * sounding];
        let starts = warp(rows, sounding);
        Ok(self.timed((language, task), &text, &starts, sounding))
    }

    fn alignment_heads(&self) -> Vec<Head> {
        let (layers, heads) = (self.sizes.text_layers, self.sizes.text_heads);
        alignment_heads(layers, heads, self.tokens.is_multilingual(), self.sizes.mels)
    }

    /// Joins tokens into words with times. `starts` has the first position of each token, and one more for the end.
    fn timed(
        &self,
        (language, task): (&str, TranscriptTask),
        tokens: &[u32],
        starts: &[usize],
        sounding: usize,
    ) -> Vec<PlacedWord> {
        let has_spaces = !matches!(
            text_language(language, task),
            "zh" | "ja" | "th" | "lo" | "my" | "yue" | "km" | "bo"
        );
        let at =
            |number: usize| starts.get(number).copied().unwrap_or(sounding) as f64 * POSITION_S;
        let mut words: Vec<PlacedWord> = Vec::new();
        let mut pending: (Vec<u8>, usize) = (Vec::new(), 0);
        // A mark after a space, such as that of "$5": where it stands in the last word, and its token.
        let mut opening: Option<(usize, usize)> = None;
        for (number, token) in tokens.iter().enumerate() {
            if pending.0.is_empty() {
                pending.1 = number;
            }
            pending.0.extend(self.tokens.bytes(*token));
            // A character may be cut between tokens.
            let Ok(piece) = std::str::from_utf8(&pending.0) else { continue };
            let is_last = number + 1 == tokens.len();
            if !has_spaces && !is_last && piece.chars().all(|c| OPENING.contains(c)) {
                continue;
            }
            let (start_s, end_s) = (at(pending.1), at(number + 1));
            let is_mark = !piece.chars().any(char::is_alphanumeric);
            let follows_space = piece.starts_with(char::is_whitespace);
            // Tokens may cut a letter of Thai from its vowel or tone.
            let is_joined = has_spaces && !follows_space || piece.starts_with(is_combining_mark);
            if has_spaces && let Some(PlacedWord { word, .. }) = words.last_mut() {
                if follows_space {
                    opening = is_mark.then_some((word.word.len(), pending.1));
                } else if !is_mark && let Some((at, first_token)) = opening.take() {
                    let word = word.word.split_off(at);
                    let word = HeardWord { word, start_s, end_s };
                    words.push(PlacedWord { word, first_token });
                }
            }
            match words.last_mut() {
                Some(PlacedWord { word, .. }) if is_mark || is_joined => {
                    word.word.push_str(piece);
                    // Punctuation is not heard.
                    word.end_s = if is_mark { word.end_s } else { end_s };
                }
                _ => words.push(PlacedWord {
                    word: HeardWord { word: piece.to_owned(), start_s, end_s },
                    first_token: pending.1,
                }),
            }
            pending.0.clear();
        }
        for PlacedWord { word, .. } in &mut words {
            word.word = word.word.trim().to_owned();
            // The alignment counts a pause as part of the word after it, so a word is cut to its last two seconds.
            word.start_s = word.start_s.max(word.end_s - WORD_S_MAX);
        }
        words.retain(|placed| !placed.word.word.is_empty());
        words
    }
}

/// The attention heads that follow the sound, as OpenAI published them (`_ALIGNMENT_HEADS` in openai/whisper): the layer of
/// each, and its number there. Other sizes use all heads of the upper half of the layers, which is less exact. large-v1 and
/// large-v2 have the same sizes; both use the heads of large-v2, the one in use.
fn alignment_heads(layers: usize, heads: usize, is_multilingual: bool, mels: usize) -> Vec<Head> {
    let known = match (layers, heads, is_multilingual) {
        (4, 6, true) => "2.2 3.0 3.2 3.3 3.4 3.5",
        (4, 6, false) => "1.0 2.0 2.5 3.0 3.1 3.2 3.3 3.4",
        (6, 8, true) => "3.1 4.2 4.3 4.7 5.1 5.2 5.4 5.6",
        (6, 8, false) => "3.3 4.7 5.1 5.5 5.7",
        (12, 12, true) => "5.3 5.9 8.0 8.4 8.7 8.8 9.0 9.7 9.9 10.5",
        (12, 12, false) => {
            "6.6 7.0 7.3 7.8 8.2 8.5 8.7 9.0 9.4 9.8 9.10 10.0 10.1 10.2 10.3 10.6 10.11 11.2 11.4"
        }
        (24, 16, true) => "13.15 15.4 15.15 16.1 20.0 23.4",
        (24, 16, false) => {
            "11.4 14.1 14.12 14.14 15.4 16.0 16.4 16.9 17.12 17.14 18.7 18.10 18.15 20.0 20.3 20.9 20.14 21.12"
        }
        (32, 20, true) if mels == 80 => {
            "10.12 13.17 16.11 16.12 16.13 17.15 17.16 18.4 18.11 18.19 19.11 21.2 21.3 22.3 22.9 \
             22.12 23.5 23.7 23.13 25.5 26.1 26.12 27.15"
        }
        (32, 20, true) => "7.0 10.17 12.18 13.12 16.1 17.14 19.11 21.4 24.1 25.6",
        (4, 20, true) => "2.4 2.11 3.3 3.6 3.11 3.14",
        _ => {
            let upper = layers / 2..layers;
            return upper.flat_map(|layer| (0..heads).map(move |head| (layer, head))).collect();
        }
    };
    let head = |text: &str| {
        let (layer, head) = text.split_once('.')?;
        Some((layer.parse().ok()?, head.parse().ok()?))
    };
    known.split(' ').filter_map(head).collect()
}

/// Token by token, how little the heads listen to each sounding position.
fn costs(heads: &[Vec<f32>], tokens: usize, positions: usize, sounding: usize) -> Vec<f32> {
    let mut sum = vec![0.0_f32; tokens * sounding];
    for head in heads {
        let mut weights = vec![0.0_f32; tokens * sounding];
        for (row, scores) in weights.chunks_mut(sounding).zip(head.chunks(positions)) {
            row.copy_from_slice(&scores[..sounding]);
            let max = row.iter().copied().fold(f32::MIN, f32::max);
            row.iter_mut().for_each(|value| *value = (*value - max).exp());
            let total: f32 = row.iter().sum();
            row.iter_mut().for_each(|value| *value /= total);
        }
        normalise(&mut weights, sounding);
        for (row, sum) in weights.chunks(sounding).zip(sum.chunks_mut(sounding)) {
            let filtered = median(row);
            sum.iter_mut()
                .zip(filtered)
                .for_each(|(sum, value)| *sum -= value / heads.len() as f32);
        }
    }
    sum
}

/// Each position gets the mean 0 and the deviation 1 over all tokens.
fn normalise(weights: &mut [f32], width: usize) {
    let rows = (weights.len() / width) as f32;
    for column in 0..width {
        let values = || weights.iter().skip(column).step_by(width);
        let mean = values().sum::<f32>() / rows;
        let variance = values().map(|value| (value - mean).powi(2)).sum::<f32>() / rows;
        let deviation = variance.sqrt().max(1e-9);
        weights.iter_mut().skip(column).step_by(width).for_each(|value| {
            *value = (*value - mean) / deviation;
        });
    }
}

fn median(row: &[f32]) -> Vec<f32> {
    let half = MEDIAN / 2;
    (0..row.len())
        .map(|at| {
            let mut near: Vec<f32> =
                row[at.saturating_sub(half)..(at + half + 1).min(row.len())].to_vec();
            near.sort_by(f32::total_cmp);
            near[near.len() / 2]
        })
        .collect()
}

/// The cheapest way through the matrix of rows (tokens) and columns (positions), down or right at each step. Returns
/// the first column of each row.
fn warp(costs: &[f32], width: usize) -> Vec<usize> {
    let rows = costs.len() / width;
    let mut total = vec![f32::INFINITY; (rows + 1) * (width + 1)];
    let mut from = vec![0_u8; (rows + 1) * (width + 1)];
    total[0] = 0.0;
    let place = |row: usize, column: usize| row * (width + 1) + column;
    for column in 1..=width {
        for row in 1..=rows {
            let ways = [
                total[place(row - 1, column - 1)],
                total[place(row - 1, column)],
                total[place(row, column - 1)],
            ];
            let best = if ways[0] < ways[1] && ways[0] < ways[2] {
                0
            } else if ways[1] < ways[0] && ways[1] < ways[2] {
                1
            } else {
                2
            };
            total[place(row, column)] = costs[(row - 1) * width + column - 1] + ways[best];
            from[place(row, column)] = best as u8;
        }
    }
    let mut starts = vec![0; rows];
    let (mut row, mut column) = (rows, width);
    while row > 0 && column > 0 {
        starts[row - 1] = column - 1;
        match from[place(row, column)] {
            0 => (row, column) = (row - 1, column - 1),
            1 => row -= 1,
            _ => column -= 1,
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::super::tests::tiny;
    use super::*;

    #[test]
    fn a_mark_after_a_space_belongs_to_the_word_that_follows_it() {
        let whisper = tiny();
        let tokens = whisper.tokens.encode(" world $5, \"hello\" world - he");
        let starts: Vec<usize> = (0..=tokens.len()).map(|token| token * 10).collect();
        let timed = |language, task| whisper.timed((language, task), &tokens, &starts, 1_500);
        let found = timed("en", TranscriptTask::Transcribe);
        let words: Vec<&str> = found.iter().map(|placed| placed.word.word.as_str()).collect();
        assert_eq!(words, ["world", "$5,", "\"hello\"", "world -", "he"]);
        // The text of a translation is English, whatever was spoken.
        assert_eq!(timed("ja", TranscriptTask::Translate), found);
        assert_ne!(timed("ja", TranscriptTask::Transcribe), found);
        let bytes = |placed: &PlacedWord| whisper.tokens.bytes(tokens[placed.first_token]);
        assert!(found.iter().all(|placed| bytes(placed).starts_with(b" ")), "{found:?}");
        let follows = |pair: &[PlacedWord]| pair[0].word.end_s <= pair[1].word.start_s;
        assert!(found.windows(2).all(follows), "{found:?}");
    }

    #[test]
    fn marks_of_scripts_without_spaces_stay_with_their_words() {
        let whisper = tiny();
        for (language, text, expected) in [
            ("zh", "看《书》，“好”“", &["看", "《书》，", "“好”“"][..]),
            ("th", "กินที่", &["กิ", "น", "ที่"]),
        ] {
            let tokens = whisper.tokens.encode(text);
            let starts: Vec<usize> = (0..=tokens.len()).collect();
            let task = TranscriptTask::Transcribe;
            let found = whisper.timed((language, task), &tokens, &starts, 1_500);
            let words: Vec<&str> = found.iter().map(|placed| placed.word.word.as_str()).collect();
            assert_eq!(words, expected);
            let begins = |placed: &PlacedWord| placed.word.word.as_bytes()[0];
            let first = |placed: &PlacedWord| tokens[placed.first_token];
            assert!(found.iter().all(|placed| first(placed) == u32::from(begins(placed))));
        }
    }

    #[test]
    fn every_published_size_has_its_own_heads_within_its_layers() {
        for (layers, heads, is_multilingual, mels, count) in [
            (4, 6, true, 80, 6),
            (4, 6, false, 80, 8),
            (6, 8, true, 80, 8),
            (6, 8, false, 80, 5),
            (12, 12, true, 80, 10),
            (12, 12, false, 80, 19),
            (24, 16, true, 80, 6),
            (24, 16, false, 80, 18),
            (32, 20, true, 80, 23),
            (32, 20, true, 128, 10),
            (4, 20, true, 128, 6),
        ] {
            let found = alignment_heads(layers, heads, is_multilingual, mels);
            assert_eq!(found.len(), count, "{layers} layers");
            assert!(found.iter().all(|(layer, head)| *layer < layers && *head < heads));
            assert!(found.is_sorted() && found[0].0 >= layers / 8);
        }
        assert_eq!(alignment_heads(2, 2, true, 80), [(1, 0), (1, 1)]);
    }

    #[test]
    fn the_cheapest_way_finds_where_each_token_begins() {
        // Three tokens over eight positions: 0 to 2, 3 to 4, 5 to 7.
        let owner = [0, 0, 0, 1, 1, 2, 2, 2];
        let costs: Vec<f32> =
            (0..3).flat_map(|token| owner.map(|of| if of == token { -1.0 } else { 1.0 })).collect();
        assert_eq!(warp(&costs, 8), [0, 3, 5]);
    }

    #[test]
    fn attention_becomes_low_costs_where_a_token_listens() {
        let (tokens, positions, sounding) = (3, 20, 16);
        let mut head = vec![0.0; tokens * positions];
        for token in 0..tokens {
            for at in token * 5..token * 5 + 5 {
                head[token * positions + at] = 8.0;
            }
        }
        let costs = costs(&[head], tokens, positions, sounding);
        let starts = warp(&costs, sounding);
        assert!((4..=6).contains(&starts[1]) && (9..=11).contains(&starts[2]), "{starts:?}");
    }

    #[test]
    fn a_median_removes_single_peaks() {
        let mut row = vec![0.0; 20];
        row[10] = 5.0;
        assert!(median(&row).iter().all(|value| *value == 0.0));
    }
}
