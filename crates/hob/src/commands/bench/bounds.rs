//! The bounds of an evaluation as options: what an answer has to keep for interactive use, and for voice.
//! They replace those of a record one by one, so that a stored evaluation can be judged by other bounds.

use clap::Args;
use hob_eval::report::UseBounds;

use crate::arguments::number;

const MS_PER_S: f64 = 1_000.0;

/// Limits that answers must meet for a use.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct BoundsArgs {
    /// Interactive use: most seconds to the first visible character, as a median [default: 2]
    #[arg(long, value_name = "SECONDS", value_parser = above_zero)]
    interactive_first_s: Option<f64>,
    /// Interactive use: most seconds of a whole answer, as a median [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = above_zero)]
    interactive_total_s: Option<f64>,
    /// Voice: most seconds to the first visible character, as a median [default: 0.5]
    #[arg(long, value_name = "SECONDS", value_parser = above_zero)]
    voice_first_s: Option<f64>,
    /// Voice: most words of an answer, as a median [default: 60]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    voice_words: Option<u32>,
}

impl BoundsArgs {
    /// These bounds, and those of `base` where none was typed.
    pub(crate) fn over(self, base: UseBounds) -> UseBounds {
        let ms = |typed: Option<f64>, base: f64| typed.map_or(base, |seconds| seconds * MS_PER_S);
        UseBounds {
            interactive_ttfv_ms: ms(self.interactive_first_s, base.interactive_ttfv_ms),
            interactive_total_ms: ms(self.interactive_total_s, base.interactive_total_ms),
            voice_ttfv_ms: ms(self.voice_first_s, base.voice_ttfv_ms),
            voice_words: self.voice_words.unwrap_or(base.voice_words),
        }
    }
}

fn above_zero(text: &str) -> Result<f64, String> {
    number(text, |value: &f64| value.is_finite() && *value > 0.0, "a number above 0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_bounds_replace_those_of_the_record() {
        let base = UseBounds { interactive_total_ms: 9_000.0, ..UseBounds::default() };
        assert_eq!(BoundsArgs::default().over(base), base);
        let typed = BoundsArgs {
            interactive_first_s: Some(1.5),
            voice_words: Some(20),
            ..BoundsArgs::default()
        };
        let expected = UseBounds { interactive_ttfv_ms: 1_500.0, voice_words: 20, ..base };
        assert_eq!(typed.over(base), expected);
        for text in ["0", "-1", "x", "inf"] {
            assert!(above_zero(text).is_err(), "{text}");
        }
    }
}
