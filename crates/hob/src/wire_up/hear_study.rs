//! The worker that compares other ways to transcribe: word errors and times of one Whisper model on one set of clips.
//! All ways take turns clip by clip, so a drift of the machine's speed slows all of them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

use hob_bench::transcription::{Clip, ClipSet, WordErrors, normalised_words};
use hob_engines::transcription::parts::{CutOptions, SoundCutter, SoundPart};
use hob_engines::transcription::vad::{FRAME_SAMPLES, SileroVad};
use hob_engines::transcription::whisper::{
    AfterSound, BeamUse, SOUND_S_MAX, SearchEnd, TimeUse, Whisper, WhisperOptions, WhisperVariant,
    WindowUse,
};
use hob_speech::decode::decode_all;

use crate::failure::{CliResult, Failure};
use crate::settings::speech_threads;
use crate::worker_args::TranscriptionStudyArgs;

const RATE_HZ: usize = hob_core::Sound::RATE_HZ as usize;
/// Samples after speech in addition to those that hob keeps: 0.7 s, so that there is about a second.
const LONG_TAIL: usize = RATE_HZ * 7 / 10;
/// Longest clip in seconds.
const CLIP_S_MAX: f64 = 3600.0;

/// Which sound of a clip is transcribed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SoundCut {
    /// The parts with speech, as hob cuts them.
    Parts,
    /// The same, with more of what follows the speech.
    LongTail,
    /// All of it, as faster-whisper hears a file without its own voice detector.
    Whole,
}

/// One way to transcribe.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    cut: SoundCut,
    variant: WhisperVariant,
}

/// Each idea alone, then more and more of them together. The last one does all that faster-whisper does.
fn ways() -> [Way; 12] {
    let hob = WhisperVariant::default();
    let beams = WhisperVariant { beams: BeamUse::Always, ..hob };
    let times = WhisperVariant { times: TimeUse::Always, ..beams };
    let zeros = WhisperVariant { after_sound: AfterSound::Zeros, ..hob };
    let search = WhisperVariant { end: SearchEnd::ManyEnded, ..times };
    let all = WhisperVariant { after_sound: AfterSound::Zeros, ..search };
    let full = WhisperVariant { window: WindowUse::Full, ..all };
    let way = |name, cut, variant| Way { name, cut, variant };
    [
        way("as it is", SoundCut::Parts, hob),
        way("a second of sound after speech", SoundCut::LongTail, hob),
        way("whole clips", SoundCut::Whole, hob),
        way("zeros after the sound", SoundCut::Parts, zeros),
        way("five beams", SoundCut::Parts, beams),
        way("five beams, five ends", SoundCut::Parts, WhisperVariant { end: search.end, ..beams }),
        way("five beams, times", SoundCut::Parts, times),
        way("five beams, times, five ends", SoundCut::Parts, search),
        way("five beams, zeros", SoundCut::Parts, WhisperVariant { beams: beams.beams, ..zeros }),
        way("five beams, times, five ends, zeros", SoundCut::Parts, all),
        way("the same, full window", SoundCut::Parts, full),
        way("the same, full window, whole clips", SoundCut::Whole, full),
    ]
}

/// What one way made of one set.
#[derive(Clone, Debug, Default)]
struct Tally {
    errors: WordErrors,
    /// For each clip.
    times_ms: Vec<f64>,
}

impl Tally {
    fn median_ms(&self) -> f64 {
        let mut sorted = self.times_ms.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }
}

/// The engine and the voice detector, loaded once.
struct Study {
    whisper: Whisper,
    vad: SileroVad,
}

/// Entry point of `hob worker hear-study`: prints a table in Markdown.
pub(crate) fn work_transcription_study(args: &TranscriptionStudyArgs) -> CliResult<()> {
    let clean = ClipSet::read(&args.set).map_err(|error| Failure::usage(error.to_string()))?;
    let threads = speech_threads(args.threads) as u32;
    let whisper = Whisper::load(&args.model, threads);
    let whisper = whisper.map_err(|error| Failure::usage(error.to_string()))?;
    let vad = SileroVad::load(&args.vad).map_err(|error| Failure::usage(error.to_string()))?;
    let mut study = Study { whisper, vad };
    // A clip's noise follows from its place in the set, so the other order has another noise for each clip.
    let mut turned = clean.clone();
    turned.clips.rotate_left(1);
    let [first, second] = [&clean, &turned].map(|set| set.with_noise(args.noise));
    let mut columns = Vec::new();
    for set in [clean, first, second] {
        columns.push(study.tallies(&set).map_err(Failure::engine)?);
    }
    let mut stdout = std::io::stdout().lock();
    // A reader that is gone needs no table.
    let _unread = stdout.write_all(table(&columns, args.noise).as_bytes());
    Ok(())
}

impl Study {
    /// One tally for each of [`ways`].
    fn tallies(&mut self, set: &ClipSet) -> Result<Vec<Tally>, String> {
        let ways = ways();
        let mut tallies = vec![Tally::default(); ways.len()];
        for clip in &set.clips {
            let samples = decode_all(clip.wav.clone(), CLIP_S_MAX)
                .map_err(|error| format!("{}: {error}", clip.name))?;
            let parts = parts(&samples, self.vad.clone());
            for (way, tally) in ways.iter().zip(&mut tallies) {
                self.whisper.set_variant(way.variant);
                let begun = Instant::now();
                let text = self.text(&sounds(&samples, &parts, way.cut), clip)?;
                tally.times_ms.push(begun.elapsed().as_secs_f64() * 1e3);
                let heard = normalised_words(&text, &clip.language);
                if let Some(errors) = WordErrors::between(&clip.words, &heard) {
                    tally.errors += errors;
                }
            }
        }
        Ok(tallies)
    }

    fn text(&mut self, sounds: &[Vec<f32>], clip: &Clip) -> Result<String, String> {
        let language = Some(clip.language.clone());
        let options = WhisperOptions { language, ..WhisperOptions::default() };
        let mut text = String::new();
        for samples in sounds {
            let heard = self.whisper.transcribe(samples, &options, &|| false);
            let heard = heard.map_err(|error| format!("{}: {error}", clip.name))?;
            text.extend(heard.segments.iter().map(|segment| segment.text.as_str()));
        }
        Ok(text)
    }
}

/// The parts with speech, cut as those of a file.
fn parts(samples: &[f32], mut vad: SileroVad) -> Vec<SoundPart> {
    let mut cutter = SoundCutter::new(CutOptions::default());
    let mut parts = Vec::new();
    for piece in samples.chunks(FRAME_SAMPLES) {
        let mut frame = [0.0; FRAME_SAMPLES];
        frame[..piece.len()].copy_from_slice(piece);
        let probability = vad.probability(&frame);
        parts.extend(cutter.push(&frame, probability));
    }
    parts.extend(cutter.finish());
    parts
}

/// What is transcribed, piece by piece.
fn sounds(samples: &[f32], parts: &[SoundPart], cut: SoundCut) -> Vec<Vec<f32>> {
    match cut {
        SoundCut::Parts => parts.iter().map(|part| part.samples.clone()).collect(),
        SoundCut::LongTail => {
            let longer = |part: &SoundPart| {
                let end = (part.end_sample() as usize + LONG_TAIL).min(samples.len());
                samples[(part.start_sample as usize).min(end)..end].to_vec()
            };
            parts.iter().map(longer).collect()
        }
        SoundCut::Whole => samples.chunks(SOUND_S_MAX * RATE_HZ).map(<[f32]>::to_vec).collect(),
    }
}

/// A line for each way; two columns for each set: word errors, and the median time of a clip.
fn table(columns: &[Vec<Tally>], noise_db: f64) -> String {
    let words = columns.first().and_then(|tallies| tallies.first()).map_or(0, |t| t.errors.words);
    let mut text = format!(
        "\n| errors of {words} words; median ms | clean | ms | {noise_db} dB noise | ms | other noise of {noise_db} dB | ms |\n\
         |---|---|---|---|---|---|---|\n"
    );
    for (number, way) in ways().iter().enumerate() {
        text += &format!("| {} |", way.name);
        for tally in columns.iter().filter_map(|tallies| tallies.get(number)) {
            // Writing to a string does not fail.
            let _written = write!(text, " {} | {:.0} |", tally.errors.count(), tally.median_ms());
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_way_is_hob_s_and_each_other_differs() {
        let ways = ways();
        assert_eq!((ways[0].cut, ways[0].variant), (SoundCut::Parts, WhisperVariant::default()));
        for (number, way) in ways.iter().enumerate() {
            let others = &ways[number + 1..];
            assert!(others.iter().all(|other| {
                other.name != way.name && (other.cut, other.variant) != (way.cut, way.variant)
            }));
        }
    }

    #[test]
    fn a_clip_is_heard_in_parts_with_more_sound_or_whole() {
        let samples: Vec<f32> = (0..40_000).map(|n| n as f32).collect();
        let part = SoundPart {
            start_sample: 1_000,
            speech_end: 2_000,
            samples: samples[1_000..3_000].to_vec(),
        };
        let late = SoundPart { start_sample: 39_000, ..part.clone() };
        let parts = [part, late];
        let spans = |cut| -> Vec<(f32, usize)> {
            sounds(&samples, &parts, cut).iter().map(|one| (one[0], one.len())).collect()
        };
        assert_eq!(spans(SoundCut::Parts), [(1_000.0, 2_000), (1_000.0, 2_000)]);
        assert_eq!(spans(SoundCut::LongTail), [(1_000.0, 13_200), (39_000.0, 1_000)]);
        assert_eq!(spans(SoundCut::Whole), [(0.0, 40_000)]);
    }

    #[test]
    fn the_table_has_a_line_for_each_way() {
        let tally = Tally {
            errors: WordErrors { words: 50, wrong: 2, ..WordErrors::default() },
            times_ms: vec![30.0, 10.0, 20.4],
        };
        let column = vec![tally; ways().len()];
        let text = table(&[column.clone(), column.clone(), column], 10.0);
        let lines: Vec<&str> = text.trim().lines().collect();
        assert!(lines[0].starts_with("| errors of 50 words"), "{text}");
        assert_eq!(lines.len(), 2 + ways().len());
        assert_eq!(lines[2], "| as it is | 2 | 20 | 2 | 20 | 2 | 20 |");
    }
}
