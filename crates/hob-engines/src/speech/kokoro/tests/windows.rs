//! Compares synthesis in windows with synthesis of the whole sentence, and checks the seams between windows.

use std::sync::{LazyLock, Mutex};

use hob_core::Speed;
use hob_speech::SpokenUnit;

use super::{kokoro, kokoro_on};
use crate::speech::distance::log_mel_db;
use crate::speech::kokoro::contours::Contours;
use crate::speech::kokoro::{SAMPLES_PER_FRAME, Utterance, WINDOWS_S};
use crate::speech::synthesiser::Synthesiser;

/// Sentences that are not used for calibration.
const SENTENCES: [&str; 4] = [
    "ðə bˈɜɹʧ kənˈu slˈɪd ˌɔn ðə smˈuð plˈæŋks.",
    "ðiz dˈAz ɐ ʧˈɪkɪn lˈɛɡ ɪz ɐ ɹˈɛɹ dˈɪʃ; ɹˈIs ɪz ˈɔfən sˈɜɹvd ɪn ɹˈWnd bˈOlz.",
    "fˈɔɹ ˈWəɹz ʌv stˈɛdi wˈɜɹk fˈAst ˌʌs, bˌʌt nˈObɑdi kəmplˈAnd əbˈWt ðə hˈit.",
    "wˌɛɹ dˈɪd ju pˌʊt ðə lˈɑɹʤ sˈIz ɪn stˈɑkɪŋz?",
];

/// The voices of the first two sentences in `ALONE`.
const VOICES: [&str; 2] = ["af_heart", "bm_fable"];

/// The sentence in `QUESTION`, and its voice.
const QUESTION_AT: usize = 3;
const QUESTION_VOICE: &str = "af_heart";

/// The first two sentences, each spoken by a model that had spoken nothing before.
static ALONE: LazyLock<Alone> = LazyLock::new(|| {
    let mut kokoros = [kokoro_on(2), kokoro_on(2)];
    let spoken = [0, 1].map(|at| windowed(&mut kokoros[at], SENTENCES[at], VOICES[at]));
    let [_, kokoro] = kokoros;
    Alone { spoken, kokoro: Mutex::new(kokoro) }
});

struct Alone {
    spoken: [Windowed; 2],
    /// The model that spoke the second sentence.
    kokoro: Mutex<super::Kokoro>,
}

/// A question at its own rate. Two tests hear it.
static QUESTION: LazyLock<Windowed> =
    LazyLock::new(|| windowed(&mut kokoro(), SENTENCES[QUESTION_AT], QUESTION_VOICE));

struct Windowed {
    samples: Vec<f32>,
    /// Where windows meet, in samples.
    seams: Vec<usize>,
    /// Where the unit's played samples begin in the sound of the whole unit.
    from: usize,
    contours: Contours,
    style: Vec<f32>,
}

fn windowed(kokoro: &mut super::Kokoro, phonemes: &str, voice: &str) -> Windowed {
    windowed_at(kokoro, phonemes, voice, Speed::NORMAL)
}

fn windowed_at(kokoro: &mut super::Kokoro, phonemes: &str, voice: &str, speed: Speed) -> Windowed {
    let unit = SpokenUnit { phonemes: phonemes.to_owned(), words: Vec::new(), pause_after_ms: 0 };
    let mut utterance = kokoro.begin(&unit, voice, speed).expect("begins");
    let from = utterance.plan.played_from() * SAMPLES_PER_FRAME;
    let promised = kokoro.seconds_left(&utterance);
    let (mut samples, mut seams) = (Vec::new(), Vec::new());
    for at in 0.. {
        let seconds = WINDOWS_S[at.min(WINDOWS_S.len() - 1)];
        let window = kokoro.render(&mut utterance, seconds).expect("renders");
        if window.is_empty() {
            break;
        }
        seams.push(samples.len());
        samples.extend(window);
    }
    assert_eq!(samples.len() as f32 / 24_000.0, promised, "the length is known beforehand");
    let Utterance { contours, style, .. } = utterance;
    Windowed { samples, seams: seams[1..].to_vec(), from, contours, style }
}

/// The model that spoke the second sentence for `ALONE` now speaks the first one, and then both together.
#[test]
fn neither_earlier_requests_nor_another_window_change_the_samples() {
    let mut kokoro = ALONE.kokoro.lock().expect("no panic");
    let again = windowed(&mut kokoro, SENTENCES[0], VOICES[0]).samples;
    assert_eq!(again, ALONE.spoken[0].samples);
    assert!(kokoro.can_pair());
    let [mut first, mut second] = [0, 1].map(|at| {
        let phonemes = SENTENCES[at].to_owned();
        let unit = SpokenUnit { phonemes, words: Vec::new(), pause_after_ms: 0 };
        kokoro.begin(&unit, VOICES[at], Speed::NORMAL).expect("begins")
    });
    let mut together = [Vec::new(), Vec::new()];
    for at in 0.. {
        let seconds = WINDOWS_S[at.min(WINDOWS_S.len() - 1)];
        let windows = kokoro.render_pair([(&mut first, seconds), (&mut second, seconds)]);
        let windows = windows.map(|window| window.expect("renders"));
        if windows.iter().all(Vec::is_empty) {
            break;
        }
        for (samples, window) in together.iter_mut().zip(windows) {
            samples.extend(window);
        }
    }
    let alone = ALONE.spoken.iter().map(|windowed| &windowed.samples);
    assert!(together.iter().eq(alone), "the number of threads changes the sound");
}

#[test]
fn speech_has_the_requested_rate() {
    let mut kokoro = kokoro();
    let own = QUESTION.samples.len() as f32;
    for rate in [0.5, 1.2, 1.75, 2.0, 3.0, 4.0] {
        let speed = Speed::new(rate).expect("in range");
        let sped = windowed_at(&mut kokoro, SENTENCES[QUESTION_AT], QUESTION_VOICE, speed);
        let length = sped.samples.len() as f32;
        println!("{rate}: {:.2}", own / length);
        assert!((own / length / rate - 1.0).abs() < 0.05, "{rate} is {}", own / length);
    }
}

#[test]
fn windows_sound_like_the_whole_sentence() {
    let mut kokoro = kokoro();
    let mut distances = Vec::new();
    for voice in ["af_heart", "bm_fable", "am_adam"] {
        for (at, phonemes) in SENTENCES.into_iter().enumerate() {
            let ours = match VOICES.get(at) {
                Some(known) if *known == voice => &ALONE.spoken[at],
                None if (at, voice) == (QUESTION_AT, QUESTION_VOICE) => &*QUESTION,
                _ => &windowed(&mut kokoro, phonemes, voice),
            };
            let whole = kokoro.whole(&ours.contours, &ours.style).expect("whole");
            let whole = &whole[ours.from..ours.from + ours.samples.len()];
            let mel = log_mel_db(&ours.samples, whole);
            let click = worst_click(ours);
            println!("{voice}: log-mel {mel:.2} dB, click {click:.2}");
            assert!(mel < 5.0, "{voice}: {mel} dB for {phonemes}");
            assert!(
                click < 2.0,
                "{voice}: the step at a seam is {click} times the largest usual step"
            );
            distances.push(mel);
        }
    }
    distances.sort_by(f32::total_cmp);
    let median = distances[distances.len() / 2];
    println!("median {median:.2} dB");
    assert!(median < 3.0, "median {median} dB");
}

/// With the statistics of sentences, "No." of `am_puck` had no sound at all, and the others were 6 to 33 dB too quiet.
#[test]
fn a_short_text_is_as_loud_as_the_whole_computation_makes_it() {
    let mut kokoro = kokoro();
    let level = |samples: &[f32]| {
        let energy: f32 = samples.iter().map(|sample| sample * sample).sum();
        10.0 * (energy / samples.len() as f32).log10()
    };
    for (phonemes, voice) in [
        ("nˈO.", "am_puck"),
        ("jˈɛs.", "af_heart"),
        ("nˌɑt tədˈA.", "am_puck"),
        ("ɡʊd mˈɔɹnɪŋ.", "af_heart"),
    ] {
        let spoken = windowed(&mut kokoro, phonemes, voice);
        let whole = kokoro.whole(&spoken.contours, &spoken.style).expect("whole");
        let whole = &whole[spoken.from..spoken.from + spoken.samples.len()];
        let louder_db = level(&spoken.samples) - level(whole);
        let mel = log_mel_db(&spoken.samples, whole);
        println!("{voice}, {phonemes}: {louder_db:+.1} dB, log-mel {mel:.2} dB");
        assert!(louder_db.abs() < 6.0 && mel < 10.0, "{voice}, {phonemes}: {louder_db}, {mel}");
    }
}

/// The largest step from sample to sample around a seam, relative to the 99.9th percentile of all.
fn worst_click(windowed: &Windowed) -> f32 {
    let step = |at: usize| (windowed.samples[at] - windowed.samples[at - 1]).abs();
    let mut steps: Vec<f32> = (1..windowed.samples.len()).map(step).collect();
    steps.sort_by(f32::total_cmp);
    let usual = steps[steps.len() * 999 / 1000];
    let at_seams = windowed.seams.iter().flat_map(|seam| seam - 2..seam + 3).map(step);
    at_seams.fold(0.0, f32::max) / usual
}
