//! When words and phonemes are heard, from the model's durations and its predicted energy.
//! All times are counted in half frames of 12.5 ms, and the durations alone are up to 0.5 s late at the end of a sentence.

use std::ops::Range;

use hob_core::{PhonemeTiming, WordTiming};
use hob_speech::{SpokenUnit, SpokenWord};

use super::FRAMES_PER_SECOND;
use super::contours::Contours;

/// A phoneme is heard this long before its token's frames. Found in the sound of ten voices; Kokoro's own program uses 6.
const SOUND_LEADS: usize = 5;

/// Above this energy the sound is louder than -50 dBFS. Breathy voices (`am_onyx`, `af_nicole`) are quieter.
const LOUD_ENERGY: f32 = 0.25;

/// The sound fades this long before its energy does. In four voices at four rates, 64 of 64 starts and at least 54 of 64 ends
/// were within 50 ms of the sound, and all within 100 ms. A last vowel or "ng" fades slowly, and its end is given late.
const FADES: usize = 2;

/// Times from the first frame of `played`.
pub(super) fn word_times(
    unit: &SpokenUnit,
    contours: &Contours,
    played: &Range<usize>,
) -> Vec<WordTiming> {
    let tokens = token_starts(contours.durations());
    let energy = contours.energy();
    let is_loud = |at: usize| {
        let until_faded = &energy[at..(at + FADES + 1).min(energy.len())];
        until_faded.iter().all(|energy| *energy > LOUD_ENERGY)
    };
    let loud: Vec<bool> = (0..energy.len()).map(is_loud).collect();
    // Token 0 is the boundary, so phoneme n is token n + 1.
    let start = |phoneme: usize| tokens[(phoneme + 1).min(tokens.len() - 1)];
    let spoken: Vec<Range<usize>> = unit
        .words
        .iter()
        .map(|word| start(word.phonemes.start)..start(word.phonemes.end))
        .collect();
    let seconds = |half_frame: usize| {
        let at = half_frame.clamp(2 * played.start, 2 * played.end) - 2 * played.start;
        at as f32 / (2.0 * FRAMES_PER_SECOND)
    };
    let symbols: Vec<char> = unit.phonemes.chars().collect();
    let timing = |(word, heard): (&SpokenWord, Range<usize>)| {
        // The first phoneme begins and the last one ends with the word.
        let at = |phoneme: usize| {
            if phoneme == word.phonemes.start {
                seconds(heard.start)
            } else if phoneme == word.phonemes.end {
                seconds(heard.end)
            } else {
                seconds(start(phoneme).clamp(heard.start, heard.end))
            }
        };
        WordTiming {
            span: word.span.clone(),
            start_s: seconds(heard.start),
            end_s: seconds(heard.end),
            phonemes: phonemes(&symbols, word.phonemes.clone(), at),
        }
    };
    unit.words.iter().zip(fit_to_sound(&spoken, &loud)).map(timing).collect()
}

/// Where each token's sound begins, and where the last one's ends.
fn token_starts(durations: &[usize]) -> Vec<usize> {
    let mut starts = vec![0];
    let mut at = 0;
    for frames in durations {
        at += 2 * frames;
        starts.push(at.saturating_sub(SOUND_LEADS));
    }
    starts
}

/// Moves the ends of words to where the sound begins and ends. Between two words without silence, each gets half of what
/// is between them. A word without any loud sound keeps its place.
fn fit_to_sound(spoken: &[Range<usize>], loud: &[bool]) -> Vec<Range<usize>> {
    let is_loud = |at: usize| loud.get(at).copied().unwrap_or(false);
    let mut words = spoken.to_vec();
    for next in 0..=spoken.len() {
        let gap = Range {
            start: next.checked_sub(1).map_or(0, |last| spoken[last].end),
            end: spoken.get(next).map_or(loud.len(), |word| word.start),
        };
        let before = gap.clone().take_while(|at| is_loud(*at)).count();
        let after = gap.clone().rev().take_while(|at| is_loud(*at)).count();
        let is_inside = next > 0 && next < spoken.len();
        if is_inside && before == gap.len() {
            let middle = gap.start.midpoint(gap.end.max(gap.start));
            words[next - 1].end = middle;
            words[next].start = middle;
            continue;
        }
        if let Some(last) = next.checked_sub(1) {
            let own = spoken[last].clone().rev().take_while(|at| !is_loud(*at)).count();
            let quiet = if before == 0 && own < spoken[last].len() { own } else { 0 };
            words[last].end = gap.start + before - quiet;
        }
        if let Some(word) = spoken.get(next) {
            let own = word.clone().take_while(|at| !is_loud(*at)).count();
            let quiet = if after == 0 && own < word.len() { own } else { 0 };
            words[next].start = gap.end - after + quiet;
        }
    }
    words
}

/// The phonemes among these symbols. A stress mark belongs to the phoneme after it, every other mark to the one before.
fn phonemes(
    symbols: &[char],
    of_word: Range<usize>,
    at: impl Fn(usize) -> f32,
) -> Vec<PhonemeTiming> {
    let mut found: Vec<PhonemeTiming> = Vec::new();
    let mut stress: Option<usize> = None;
    for index in of_word {
        let Some(symbol) = symbols.get(index) else { break };
        match symbol {
            'ˈ' | 'ˌ' => stress = Some(index),
            symbol if is_mark(*symbol) => {
                if let Some(last) = found.last_mut() {
                    last.phoneme.push(*symbol);
                    last.end_s = at(index + 1);
                }
            }
            symbol if symbol.is_alphabetic() => {
                let from = stress.take().unwrap_or(index);
                found.push(PhonemeTiming {
                    phoneme: symbols[from..=index].iter().collect(),
                    start_s: at(from),
                    end_s: at(index + 1),
                });
            }
            _ => {}
        }
    }
    found
}

/// Length, nasal vowels, aspiration, softness, rounding, and the tones of Mandarin.
fn is_mark(symbol: char) -> bool {
    matches!(symbol, 'ː' | '\u{303}' | 'ʰ' | 'ʲ' | 'ᵝ' | '↓' | '→' | '↗' | '↘')
}

#[cfg(test)]
mod tests {
    use super::super::contours::FEATURES;
    use super::*;

    fn check(spoken: &[(usize, usize)], loud: &str, expect: &[(usize, usize)]) {
        let ranges = |ends: &[(usize, usize)]| -> Vec<Range<usize>> {
            ends.iter().map(|(start, end)| *start..*end).collect()
        };
        let is_loud: Vec<bool> = loud.chars().map(|c| c == '#').collect();
        assert_eq!(fit_to_sound(&ranges(spoken), &is_loud), ranges(expect), "{loud}");
    }

    #[test]
    fn words_begin_and_end_where_the_sound_does() {
        check(&[(2, 6)], "...##.....", &[(3, 5)]);
        check(&[(2, 6)], ".########.", &[(1, 9)]);
        check(&[(2, 6)], "..........", &[(2, 6)]);
        check(&[(1, 4), (6, 9)], "##########", &[(0, 5), (5, 10)]);
        check(&[(1, 4), (6, 9)], ".####.###.", &[(1, 5), (6, 9)]);
        check(&[(1, 4), (6, 9)], ".##...###.", &[(1, 3), (6, 9)]);
        check(&[(1, 4), (4, 9)], ".########.", &[(1, 4), (4, 9)]);
        check(&[], "####", &[]);
    }

    #[test]
    fn marks_belong_to_the_phoneme_before() {
        let symbols: Vec<char> = "matˈɛ\u{303} tʰjɛn→".chars().collect();
        let check = |of_word: Range<usize>, expect: &[(&str, usize, usize)]| {
            let expect: Vec<PhonemeTiming> = expect
                .iter()
                .map(|(phoneme, start, end)| PhonemeTiming {
                    phoneme: (*phoneme).to_owned(),
                    start_s: *start as f32,
                    end_s: *end as f32,
                })
                .collect();
            assert_eq!(phonemes(&symbols, of_word, |at| at as f32), expect);
        };
        check(0..6, &[("m", 0, 1), ("a", 1, 2), ("t", 2, 3), ("ˈɛ\u{303}", 3, 6)]);
        check(7..13, &[("tʰ", 7, 9), ("j", 9, 10), ("ɛ", 10, 11), ("n→", 11, 13)]);
    }

    #[test]
    fn phonemes_lie_within_their_word() {
        let unit = SpokenUnit {
            phonemes: "fˈiː, ə".to_owned(),
            words: vec![
                SpokenWord { span: 0..3, phonemes: 0..4 },
                SpokenWord { span: 5..6, phonemes: 6..7 },
            ],
            pause_after_ms: 0,
        };
        // The lead-in, f, ˈ, i, ː, comma, space, ə and the end.
        let durations = [10.0, 4.0, 2.0, 4.0, 4.0, 8.0, 2.0, 4.0, 4.0];
        let frames: usize = 42;
        let mut energy = vec![-9.0; 2 * frames];
        energy[15..43].fill(5.0);
        energy[63..71].fill(5.0);
        let features = vec![0.0; FEATURES * frames];
        let contours = Contours::new(features, vec![0.0; 2 * frames], energy, &durations);
        let times = word_times(&unit, &contours.expect("fits"), &(7..40));
        let at = |half_frame: f32| (half_frame - 14.0) / 80.0;
        let phoneme = |phoneme: &str, start: f32, end: f32| PhonemeTiming {
            phoneme: phoneme.to_owned(),
            start_s: at(start),
            end_s: at(end),
        };
        let word = |span, start, end, phonemes| WordTiming {
            span,
            start_s: at(start),
            end_s: at(end),
            phonemes,
        };
        assert_eq!(
            times,
            [
                word(0..3, 15.0, 41.0, vec![phoneme("f", 15.0, 23.0), phoneme("ˈiː", 23.0, 41.0)]),
                word(5..6, 63.0, 69.0, vec![phoneme("ə", 63.0, 69.0)]),
            ]
        );
    }
}
