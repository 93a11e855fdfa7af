//! The same samples make the same bytes, wherever the response was cut.
//! This is what "one encoder per response" is for: a listener hears no seam.

use hob_speech::encode::{AudioFormat, Encoder, Length};
use proptest::prelude::*;

use crate::signal::voice;
use crate::{RATE_HZ, built, encode};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn where_the_input_is_cut_does_not_matter(
        samples in 0..6_000_usize,
        mut cuts in prop::collection::vec(0..6_000_usize, 0..12),
        known in any::<bool>(),
    ) {
        let original = voice(RATE_HZ, samples);
        let length = if known { Length::Samples(samples as u64) } else { Length::Unknown };
        cuts.retain(|cut| *cut <= samples);
        cuts.sort_unstable();
        for format in built() {
            let whole = encode(format, length, &[&original]).unwrap();
            let in_pieces = encode(format, length, &cut_at(&original, &cuts)).unwrap();
            prop_assert_eq!(&whole, &in_pieces, "{} cut at {:?}", format, &cuts);
        }
    }
}

fn cut_at<'a>(samples: &'a [f32], cuts: &[usize]) -> Vec<&'a [f32]> {
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([samples.len()]);
    starts.zip(ends).map(|(start, end)| &samples[start..end]).collect()
}

/// Two encoders that are fed alternately write what each would have written alone.
#[test]
fn encoders_share_nothing() {
    let (one, two) = (voice(RATE_HZ, 12_000), vec![0.25; 12_000]);
    for format in built() {
        let mut first = Encoder::new(format, RATE_HZ, Length::Unknown).unwrap();
        let mut second = Encoder::new(format, RATE_HZ, Length::Unknown).unwrap();
        let (mut first_file, mut second_file) = (Vec::new(), Vec::new());
        for (a, b) in one.chunks(500).zip(two.chunks(500)) {
            first_file.extend(first.encode(a).unwrap());
            second_file.extend(second.encode(b).unwrap());
        }
        first_file.extend(first.finish().unwrap());
        second_file.extend(second.finish().unwrap());
        assert_eq!(first_file, encode(format, Length::Unknown, &[&one]).unwrap(), "{format}");
        assert_eq!(second_file, encode(format, Length::Unknown, &[&two]).unwrap(), "{format}");
    }
}

#[test]
fn an_encoder_may_move_to_another_thread() {
    let mut encoder = Encoder::new(AudioFormat::Mp3, RATE_HZ, Length::Unknown).unwrap();
    let mut file = encoder.encode(&[0.1; 600]).unwrap();
    let rest = std::thread::spawn(move || encoder.finish().unwrap()).join().unwrap();
    file.extend(rest);
    assert_eq!(file, encode(AudioFormat::Mp3, Length::Unknown, &[&[0.1; 600]]).unwrap());
}
