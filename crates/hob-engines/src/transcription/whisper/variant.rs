//! Other ways to transcribe a part. hob uses the defaults.
//! `hob worker hear-study` compares them on a set of clips; faster-whisper does what the other values say.

/// How a part is transcribed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhisperVariant {
    pub end: SearchEnd,
    pub beams: BeamUse,
    pub times: TimeUse,
    pub after_sound: AfterSound,
    pub window: WindowUse,
}

/// When the search for the likeliest text ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchEnd {
    /// When no text that goes on is as likely as one that has ended. The end counts as a token of the mean.
    #[default]
    Decided,
    /// When as many texts have ended as are followed. The end is no token of the mean.
    ManyEnded,
}

/// When several texts are followed in the first pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BeamUse {
    /// In noise, and again where the decoder is unsure.
    #[default]
    Unclear,
    Always,
}

/// When the decoder writes times between the words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUse {
    /// In a sound of more than 10 s.
    #[default]
    Long,
    Always,
}

/// What the encoder sees after the sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterSound {
    /// The lowest value of the spectrogram, as in OpenAI's decoder.
    #[default]
    Silence,
    /// The middle of its scale: 10,000 times less power than 1 in each band.
    Zeros,
}

/// How much the encoder computes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowUse {
    /// The sound and a margin.
    #[default]
    Trimmed,
    /// 30 s.
    Full,
}
