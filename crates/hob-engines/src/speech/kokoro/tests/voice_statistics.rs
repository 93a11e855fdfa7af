//! Do the statistics in `voice_statistics.bin` belong to the stored model and its voices?

use super::{kokoro, stored};
use crate::speech::kokoro::statistics::VoiceStatistics;
use crate::speech::kokoro::voice_list;

/// Mean squared difference of the means, in units of the variance.
fn distance(a: &VoiceStatistics, b: &VoiceStatistics) -> f32 {
    let (a, b) = (a.running(0.2), b.running(0.2));
    let squares = a.mean().iter().zip(b.mean()).zip(a.variance());
    let squares = squares.map(|((a, b), variance)| (a - b) * (a - b) / (variance + 1e-5));
    squares.sum::<f32>() / a.mean().len() as f32
}

#[test]
fn every_voice_has_statistics_and_they_are_its_own() {
    const MEASURED: &str = "bm_fable";
    let mut kokoro = kokoro();
    let channels = kokoro.vocoder.channels();
    let voices = voice_list(&stored()).expect("a list");
    let known = voices.iter().map(|voice| {
        let measured = VoiceStatistics::measured(&voice.id, channels);
        (&voice.id, measured.unwrap_or_else(|| panic!("{} has none", voice.id)))
    });
    let known: Vec<_> = known.collect();
    assert_eq!(known.len(), 54);

    // Two processors differ by far less than two voices do.
    let measured = kokoro.measure(MEASURED).expect("measured");
    let mut distances: Vec<_> =
        known.iter().map(|(id, known)| (distance(known, &measured), *id)).collect();
    distances.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!("{distances:?}");
    let [own, next, ..] = distances[..] else { panic!("no distances") };
    assert_eq!(own.1, MEASURED);
    assert!(own.0 < next.0 / 10.0, "{own:?}, {next:?}: run `make voice-statistics`");
}

#[test]
fn a_voice_that_was_not_measured_begins_with_the_average_of_its_gender() {
    let channels = kokoro().vocoder.channels();
    let of = |voice| VoiceStatistics::of(voice, channels).expect("statistics");
    assert_eq!(of("af_heart"), VoiceStatistics::measured("af_heart", channels).expect("measured"));
    assert_eq!(VoiceStatistics::measured("xf_new", channels), None);
    assert_eq!(of("xf_new"), of("yf_other"));
    let apart = |voice| distance(&of("xf_new"), &of(voice));
    assert!(apart("xm_new") > 0.0);
    assert!(of("xf_new").running(0.0).variance().iter().all(|variance| *variance >= 0.0));
    assert_eq!(VoiceStatistics::of("af_heart", channels - 1), None);
}

#[test]
fn a_blend_has_the_weighted_statistics_of_its_voices() {
    let channels = kokoro().vocoder.channels();
    for silent_share in [0.0, 1.0] {
        let of = |voice| VoiceStatistics::of(voice, channels).expect("known").running(silent_share);
        let (heart, bella) = (of("af_heart"), of("af_bella"));
        let blend = of("af_heart(3)+af_bella(1)");
        for (at, mean) in blend.mean().iter().enumerate() {
            let expect = 0.75 * heart.mean()[at] + 0.25 * bella.mean()[at];
            assert!((mean - expect).abs() <= 1e-5 * (1.0 + expect.abs()), "{at}: {mean}, {expect}");
        }
    }
    assert!(VoiceStatistics::of("af_heart+xf_new", channels).is_some());
}
