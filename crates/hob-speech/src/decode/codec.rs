//! One packet → mono samples at the codec's own rate.
//! Symphonia has every codec but Opus.

use symphonia::core::codecs::audio::well_known::{
    CODEC_ID_AAC, CODEC_ID_AC3, CODEC_ID_DCA, CODEC_ID_EAC3, CODEC_ID_MP1, CODEC_ID_MP2,
    CODEC_ID_OPUS, CODEC_ID_SPEEX, CODEC_ID_WAVPACK, CODEC_ID_WMA,
};
use symphonia::core::codecs::audio::{
    AudioCodecId, AudioCodecParameters, AudioDecoder, AudioDecoderOptions,
};
use symphonia::core::packet::Packet;

use super::channels::{append_mono, checked_layout};
use super::opus::{OPUS_RATE_HZ, OpusPackets};
use super::{DECODED_RATE_HZ, DecodeError};

pub(super) enum PacketDecoder {
    Symphonia { decoder: Box<dyn AudioDecoder>, interleaved: Vec<f32> },
    Opus(OpusPackets),
}

impl PacketDecoder {
    pub(super) fn new(params: &AudioCodecParameters) -> Result<Self, DecodeError> {
        let unsupported = |detail: &str| DecodeError::UnsupportedCodec {
            codec: format!("{}{detail}", name(params.codec)),
        };
        if params.codec == CODEC_ID_OPUS {
            return match OpusPackets::new(params.extra_data.as_deref()) {
                Ok(opus) => Ok(Self::Opus(opus)),
                Err(detail) => Err(unsupported(&format!(" ({detail})"))),
            };
        }
        let channels = params.channels.as_ref().map(|channels| channels.count());
        checked_layout(params.sample_rate.unwrap_or(DECODED_RATE_HZ), channels.unwrap_or(1))?;
        let codecs = symphonia::default::get_codecs();
        let make = |params: &_| codecs.make_audio_decoder(params, &AudioDecoderOptions::default());
        let decoder = make(params).or_else(|error| match aac_lc_core(params) {
            Some(core) => make(&core),
            None => Err(error),
        });
        match decoder {
            Ok(decoder) => Ok(Self::Symphonia { decoder, interleaved: Vec::new() }),
            Err(error) if codecs.get_audio_decoder(params.codec).is_some() => {
                Err(unsupported(&format!(" ({error})")))
            }
            Err(_) => Err(unsupported("")),
        }
    }

    /// Replaces the content of `mono`, and returns the sample rate in Hz.
    pub(super) fn decode(&mut self, packet: &Packet, mono: &mut Vec<f32>) -> Result<u32, String> {
        mono.clear();
        match self {
            Self::Opus(opus) => {
                opus.decode(&packet.data, mono)?;
                Ok(OPUS_RATE_HZ)
            }
            Self::Symphonia { decoder, interleaved } => {
                let buffer = decoder.decode(packet).map_err(|error| error.to_string())?;
                let (rate_hz, channels) = (buffer.spec().rate(), buffer.num_planes());
                checked_layout(rate_hz, channels).map_err(|error| error.to_string())?;
                buffer.copy_to_vec_interleaved(interleaved);
                append_mono(interleaved, channels, mono);
                Ok(rate_hz)
            }
        }
    }
}

/// HE-AAC is AAC-LC at half the rate, and data from which a decoder guesses the upper half of the spectrum. Speech
/// recognition does without that half, so this returns the parameters of the AAC-LC core. `None` for other codecs.
fn aac_lc_core(params: &AudioCodecParameters) -> Option<AudioCodecParameters> {
    const LC: u16 = 2;
    const SBR: u16 = 5;
    const PARAMETRIC_STEREO: u16 = 29;
    if params.codec != CODEC_ID_AAC {
        return None;
    }
    // ISO 14496-3 §1.6.2.1: object type in 5 bits, index of the rate in 4, channels in 4.
    let start = u16::from_be_bytes(*params.extra_data.as_deref()?.first_chunk()?);
    let (object_type, rate_and_channels) = (start >> 11, start & 0x7f8);
    if object_type != SBR && object_type != PARAMETRIC_STEREO {
        return None;
    }
    let mut core = params.clone();
    core.extra_data = Some(Box::new((LC << 11 | rate_and_channels).to_be_bytes()));
    Some(core)
}

fn name(codec: AudioCodecId) -> String {
    if let Some(known) = symphonia::default::get_codecs().get_audio_decoder(codec) {
        return known.codec.info.short_name.to_owned();
    }
    let known = match codec {
        CODEC_ID_AAC => "AAC",
        CODEC_ID_AC3 => "AC-3",
        CODEC_ID_DCA => "DTS",
        CODEC_ID_EAC3 => "E-AC-3",
        CODEC_ID_MP1 => "MPEG layer 1",
        CODEC_ID_MP2 => "MPEG layer 2",
        CODEC_ID_OPUS => "Opus",
        CODEC_ID_SPEEX => "Speex",
        CODEC_ID_WAVPACK => "WavPack",
        CODEC_ID_WMA => "WMA",
        _ => return format!("number {codec}"),
    };
    known.to_owned()
}
