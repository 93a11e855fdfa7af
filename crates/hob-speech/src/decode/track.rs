//! The sound track of a container: packets in order, each at its time.
//! Cuts what an encoder put before and after the sound, and fills gaps with silence, so that times stay true.

use std::collections::VecDeque;
use std::io::{Cursor, ErrorKind};
use std::sync::LazyLock;

use bytes::Bytes;
use symphonia::core::codecs::CodecParameters;
use symphonia::core::codecs::audio::AudioCodecId;
use symphonia::core::codecs::audio::well_known::{CODEC_ID_AAC, CODEC_ID_VORBIS};
use symphonia::core::errors::{Error, Result as ReadResult};
use symphonia::core::formats::probe::{Hint, Probe, ProbeOptions};
use symphonia::core::formats::well_known::{
    FORMAT_ID_FLAC, FORMAT_ID_ISOMP4, FORMAT_ID_MKV, FORMAT_ID_MP3, FORMAT_ID_OGG, FORMAT_ID_WAVE,
};
use symphonia::core::formats::{FormatId, FormatOptions, FormatReader, Track};
use symphonia::core::io::{
    MediaSource, MediaSourceStream, MediaSourceStreamOptions, ReadOnlySource,
};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::packet::Packet;
use symphonia::core::units::{Duration, TimeBase, Timestamp};

use super::codec::PacketDecoder;
use super::cut::{
    MATROSKA, has_last_ogg_page, is_matroska_cut, is_mp3_cut, is_ogg_cut, matroska_end,
};
use super::mp4::{self, heard_range};
use super::ogg_pages::{PageLoss, check_pages};
use super::{DECODED_RATE_HZ, DecodeError, riff};

/// Bytes that may come before the first header. With a larger value, the probe mistakes random bytes of pictures for mp3.
const JUNK_BYTES_MAX: u32 = 64 * 1024;
/// Packets in a row that give no sound. Then the rest of the file is taken for damaged.
const SILENT_PACKETS_MAX: u32 = 10_000;
/// Packets of other tracks in a row. A film has at most a few between two packets of sound.
const OTHER_PACKETS_MAX: u32 = 100_000;
/// Packets that can end in one page of an Ogg file.
const PAGE_PACKETS_MAX: usize = 255;
/// Shorter gaps are rounded timestamps.
const GAP_S_MIN: f64 = 0.05;
/// After a damaged packet the gap is known to be real, so only gaps from rounding to milliseconds are ignored.
const DAMAGED_GAP_S_MIN: f64 = 0.003;
/// A FLAC file counts samples, and its frames follow each other without a gap.
const FLAC_GAP_S_MIN: f64 = 0.001;
/// Vorbis gives no sound for its first block, which may be 8,192 samples long.
const VORBIS_GAP_S_MIN: f64 = 0.25;
/// A longer gap is a wrong timestamp, or two streams that were joined.
const GAP_S_MAX: f64 = 3_600.0;
/// The tags of some MP3 files count a frame too many, or what the encoder put before and after the sound.
const MP3_TAG_S: f64 = 0.25;
/// An MP3 encoder and its decoder together delay the sound by at least this many samples. Only files with an Info tag state the
/// exact delay.
const MP3_DELAY_SAMPLES: f64 = 1_057.0;
/// The overlap of AAC's transform, which every encoder puts before the sound.
const AAC_DELAY_SAMPLES: f64 = 1_024.0;

static PROBE: LazyLock<Probe> = LazyLock::new(|| {
    let depth = ProbeOptions { max_probe_depth: JUNK_BYTES_MAX, ..ProbeOptions::default() };
    let mut probe = Probe::new_with_options(&depth);
    symphonia::default::register_enabled_formats(&mut probe);
    probe
});

/// Samples at the rate of the codec, mono.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    pub(super) rate_hz: u32,
    pub(super) samples: &'a [f32],
}

/// What an encoder puts before the sound.
#[derive(Clone, Copy, Debug)]
enum EncoderDelay {
    Seconds(f64),
    Samples(f64),
}

pub(super) struct SoundTrack {
    /// Joined Matroska files: the one that is read, and those after it.
    file: Bytes,
    /// Joined Ogg files: those after the one that is read.
    unchecked: Bytes,
    /// Damaged pages of the Ogg file that were not noted yet.
    losses: VecDeque<PageLoss>,
    reader: Box<dyn FormatReader>,
    /// What the reader has returned, and was not used yet.
    read_ahead: VecDeque<ReadResult<Option<Packet>>>,
    format: &'static str,
    id: u32,
    time_base: Option<TimeBase>,
    decoder: PacketDecoder,
    /// The first timestamp gives the codec delay, in whole milliseconds: in Matroska, except for Opus, which states its delay
    /// exactly.
    has_delay_in_timestamp: bool,
    encoder_delay: Option<EncoderDelay>,
    length_s: Option<f64>,
    /// Samples that the header of a FLAC file or the tag of an MP3 file promises.
    promised_samples: Option<u64>,
    gap_s_min: f64,
    last_was_damaged: bool,
    /// Seconds of sound that damaged pages had before the next packet.
    lost_s: Option<f64>,
    /// The time of the first packet, by the container.
    first_s: Option<f64>,
    /// Seconds of sound that the decoder returned, including what was cut off later. Below 0 in a pause before the first packet.
    decoded_s: f64,
    heard_s: f64,
    rate_hz: u32,
    /// Samples of silence that are due before the packet that waits.
    gap_samples: u64,
    waiting: Option<Packet>,
    /// The bytes of the last packet.
    last_packet: Box<[u8]>,
    mono: Vec<f32>,
    damage: Option<DecodeError>,
}

impl SoundTrack {
    pub(super) fn open(bytes: Bytes) -> Result<Self, DecodeError> {
        let bytes = riff::with_sizes(bytes);
        let mut in_order = is_read_in_order(&bytes);
        let mut reader = probed(&bytes, in_order)?;
        if reader.format_info().format == FORMAT_ID_MP3 && !in_order {
            // Something comes before the first frame.
            in_order = true;
            reader = probed(&bytes, in_order)?;
        }
        let format = reader.format_info().short_name;
        let (track, decoder) = first_decodable_track(reader.tracks(), format)?;
        let (id, time_base) = (track.id, track.time_base);
        let kind = reader.format_info().format;
        let edit = if kind == FORMAT_ID_ISOMP4 { heard_range(&bytes, id) } else { None };
        let edit_delay = edit.map(|edit| EncoderDelay::Seconds(edit.start_s));
        let pause_s = edit.map(|edit| edit.pause_s).filter(|pause_s| *pause_s <= GAP_S_MAX);
        let pause_s = pause_s.unwrap_or_default();
        let mut opened = Self {
            unchecked: bytes.clone(),
            losses: VecDeque::new(),
            read_ahead: VecDeque::new(),
            format,
            id,
            time_base,
            has_delay_in_timestamp: has_delay_in_timestamp(&decoder, kind),
            encoder_delay: edit_delay.or_else(|| encoder_delay(track, &decoder, kind)),
            length_s: edit.and_then(|edit| Some(pause_s + edit.length_s?)),
            // The length of an MP3 file that is not read in order may be a guess.
            promised_samples: track.num_frames.filter(|_| in_order || kind == FORMAT_ID_FLAC),
            gap_s_min: gap_s_min(track, kind),
            last_was_damaged: false,
            lost_s: None,
            first_s: None,
            decoded_s: -pause_s,
            heard_s: 0.0,
            rate_hz: DECODED_RATE_HZ,
            gap_samples: (pause_s * f64::from(DECODED_RATE_HZ)).round() as u64,
            waiting: None,
            last_packet: Box::default(),
            mono: Vec::new(),
            damage: None,
            decoder,
            reader,
            file: bytes,
        };
        opened.check_pages();
        Ok(opened)
    }

    /// Seconds of sound so far.
    pub(super) fn heard_s(&self) -> f64 {
        self.heard_s
    }

    pub(super) fn damage(&self) -> Option<&DecodeError> {
        self.damage.as_ref()
    }

    /// Whether the file ends before its sound does. Known after the last block.
    pub(super) fn is_cut(&self) -> bool {
        match self.reader.format_info().format {
            FORMAT_ID_WAVE => riff::is_cut(&self.file),
            FORMAT_ID_ISOMP4 => mp4::is_cut(&self.file),
            FORMAT_ID_OGG => is_ogg_cut(&self.file),
            FORMAT_ID_MKV => is_matroska_cut(&self.file),
            FORMAT_ID_FLAC => self.missing_s() > self.gap_s_min,
            FORMAT_ID_MP3 => {
                self.missing_s() > MP3_TAG_S || is_mp3_cut(&self.file, &self.last_packet)
            }
            _ => false,
        }
    }

    fn missing_s(&self) -> f64 {
        let promised_s =
            self.promised_samples.and_then(|samples| self.seconds(i64::try_from(samples).ok()?));
        promised_s.map_or(0.0, |promised_s| promised_s - self.heard_s)
    }

    /// `None` at the end. Fails if the whole file gives no sample.
    pub(super) fn next_block(&mut self) -> Result<Option<Block<'_>>, DecodeError> {
        for _ in 0..SILENT_PACKETS_MAX {
            if self.gap_samples > 0 {
                return Ok(Some(self.silence()));
            }
            if self.length_s.is_some_and(|length_s| self.heard_s >= length_s) {
                break;
            }
            let packet = match self.waiting.take() {
                Some(packet) => packet,
                None => {
                    let Some(packet) = self.next_packet() else { break };
                    self.find_gap(&packet);
                    if self.gap_samples > 0 {
                        self.waiting = Some(packet);
                        continue;
                    }
                    packet
                }
            };
            self.decode(&packet);
            self.last_packet = packet.data;
            if !self.mono.is_empty() {
                return Ok(Some(Block { rate_hz: self.rate_hz, samples: &self.mono }));
            }
        }
        if self.heard_s > 0.0 {
            return Ok(None);
        }
        Err(self.damage.take().unwrap_or(DecodeError::NoSamples { format: self.format }))
    }

    fn next_packet(&mut self) -> Option<Packet> {
        for _ in 0..OTHER_PACKETS_MAX {
            let read = self.read_ahead.pop_front();
            let ends_early = match read.unwrap_or_else(|| self.reader.next_packet()) {
                Ok(Some(mut packet)) if packet.track_id == self.id => {
                    self.find_lost_pages(&mut packet);
                    return Some(packet);
                }
                Ok(Some(_)) => continue,
                Ok(None) => false,
                Err(Error::IoError(error)) if error.kind() == ErrorKind::UnexpectedEof => true,
                Err(Error::ResetRequired) => {
                    self.note_lost_pages();
                    self.begin_joined_file().map_err(|error| self.note_unread(error)).ok()?;
                    continue;
                }
                Err(error) => {
                    self.note_damage(error.to_string());
                    return None;
                }
            };
            let Some(next) = self.next_matroska_file() else {
                if ends_early {
                    self.note_early_end();
                }
                self.note_lost_pages();
                return None;
            };
            self.open_next(next).map_err(|error| self.note_unread(error)).ok()?;
        }
        self.note_damage(format!("no sound in {OTHER_PACKETS_MAX} packets"));
        None
    }

    /// What follows this Matroska file, if that is another one. Symphonia reads one.
    fn next_matroska_file(&self) -> Option<Bytes> {
        let next = self.file.slice(matroska_end(&self.file)?..);
        next.starts_with(&MATROSKA).then_some(next)
    }

    fn open_next(&mut self, file: Bytes) -> Result<(), DecodeError> {
        self.reader = probed(&file, is_read_in_order(&file))?;
        self.file = file;
        self.begin_joined_file()
    }

    /// Ogg and Matroska files may be joined, as recordings of radio stations and of pages are. Each has tracks and times of
    /// its own.
    fn begin_joined_file(&mut self) -> Result<(), DecodeError> {
        let (track, decoder) = first_decodable_track(self.reader.tracks(), self.format)?;
        let kind = self.reader.format_info().format;
        (self.id, self.time_base) = (track.id, track.time_base);
        self.has_delay_in_timestamp = has_delay_in_timestamp(&decoder, kind);
        self.encoder_delay = encoder_delay(track, &decoder, kind);
        self.gap_s_min = gap_s_min(track, kind);
        self.decoder = decoder;
        self.first_s = None;
        self.last_was_damaged = false;
        self.check_pages();
        Ok(())
    }

    fn check_pages(&mut self) {
        if self.reader.format_info().format == FORMAT_ID_OGG {
            let checked = check_pages(&self.unchecked, self.id);
            self.unchecked = self.unchecked.slice(checked.end..);
            self.losses = checked.losses;
        }
    }

    /// No sound follows the pages that Symphonia has left out.
    fn note_lost_pages(&mut self) {
        if !self.losses.is_empty() {
            self.losses.clear();
            self.note_damage("one of its pages is damaged".to_owned());
        }
    }

    /// If Symphonia has left out a page before this packet, the packets of the next page have the times of that page. Each gets
    /// its own time here.
    fn find_lost_pages(&mut self, packet: &mut Packet) {
        let begin = packet.pts.get();
        let mut last = None;
        while self.losses.front().is_some_and(|loss| begin >= loss.after) {
            last = self.losses.pop_front();
        }
        let Some(loss) = last else { return };
        self.note_damage("one of its pages is damaged".to_owned());
        let is_first = begin == loss.after && self.read_ahead.is_empty();
        let Some(end) = loss.next_end.filter(|_| is_first) else { return };
        let Some(rest_ticks) = self.read_page(end) else { return };
        let page_ticks = decoded_ticks(packet).saturating_add(rest_ticks);
        let mut lost_end = end.saturating_sub(page_ticks);
        // The sound of the last page may end before its packets do. Then only the damaged page says when its own sound ended.
        if matches!(self.read_ahead.back(), Some(Ok(None) | Err(_))) {
            let said = loss.end.filter(|said| *said <= end);
            lost_end = said.map_or(lost_end, |said| said.max(lost_end));
        }
        let lost_ticks = lost_end.saturating_sub(begin);
        let lost_s = self.seconds(lost_ticks).filter(|lost_s| *lost_s <= GAP_S_MAX);
        if lost_ticks <= 0 || lost_s.is_none() {
            return;
        }
        self.lost_s = lost_s;
        move_packet(packet, lost_ticks, end);
        let rest = self.read_ahead.iter_mut().filter_map(|read| read.as_mut().ok()?.as_mut());
        for next in rest.filter(|next| next.track_id == self.id && next.pts.get() < end) {
            move_packet(next, lost_ticks, end);
        }
    }

    /// Reads the other packets of the page that ends at this time. Returns their length in ticks, or `None` if the next page
    /// does not begin where this one ends.
    fn read_page(&mut self, end: i64) -> Option<i64> {
        let mut ticks = 0_i64;
        for _ in 0..PAGE_PACKETS_MAX {
            let read = self.reader.next_packet();
            let is_next_page = match &read {
                Ok(Some(next)) if next.track_id != self.id => None,
                Ok(Some(next)) if next.pts.get() < end => {
                    ticks = ticks.saturating_add(decoded_ticks(next));
                    None
                }
                Ok(Some(next)) => Some(next.pts.get() == end),
                Ok(None) | Err(_) => Some(true),
            };
            self.read_ahead.push_back(read);
            if let Some(is_next_page) = is_next_page {
                return is_next_page.then_some(ticks);
            }
        }
        None
    }

    /// The file that follows in joined ones cannot be read, and its sound is missing.
    fn note_unread(&mut self, error: DecodeError) {
        let reason = match error {
            DecodeError::Damaged { detail, .. } => detail,
            other => other.to_string(),
        };
        self.note_damage(format!("another file follows that cannot be read: {reason}"));
    }

    /// Symphonia has read to the end of the file, and expected more. A recording may end in this way after any page or block,
    /// so once there is sound, [`SoundTrack::is_cut`] decides.
    fn note_early_end(&mut self) {
        if self.heard_s <= 0.0 {
            self.note_damage("the file ends in the middle of a packet".to_owned());
        } else if self.reader.format_info().format == FORMAT_ID_OGG && has_last_ogg_page(&self.file)
        {
            // The page is there. Symphonia leaves out pages with a wrong checksum.
            self.note_damage("its last page is damaged".to_owned());
        }
    }

    /// Compares the packet's time with the sound that was decoded before it.
    fn find_gap(&mut self, packet: &Packet) {
        if let Some(lost_s) = self.lost_s.take() {
            self.gap_samples = (lost_s * f64::from(self.rate_hz)).round() as u64;
            return;
        }
        let Some(at_s) = self.seconds(packet.pts.get()) else { return };
        let first_s = *self.first_s.get_or_insert_with(|| {
            if self.has_delay_in_timestamp && at_s < 0.0 {
                self.encoder_delay = Some(EncoderDelay::Seconds(-at_s));
            }
            at_s
        });
        let gap_s = at_s - first_s - self.decoded_s;
        let gap_s_min = if self.last_was_damaged { DAMAGED_GAP_S_MIN } else { self.gap_s_min };
        if (gap_s_min..=GAP_S_MAX).contains(&gap_s) {
            self.gap_samples = (gap_s * f64::from(self.rate_hz)) as u64;
            // Symphonia leaves out frames with a wrong checksum.
            if self.reader.format_info().format == FORMAT_ID_FLAC {
                self.note_damage("one of its frames is damaged".to_owned());
            }
        } else if !(-self.gap_s_min..=GAP_S_MAX).contains(&gap_s) {
            self.first_s = Some(at_s - self.decoded_s);
        }
    }

    fn seconds(&self, ticks: i64) -> Option<f64> {
        Some(self.time_base?.calc_time(Timestamp::new(ticks))?.as_secs_f64())
    }

    /// The next part of a gap: at most one second of silence.
    fn silence(&mut self) -> Block<'_> {
        let samples = self.gap_samples.min(self.rate_hz.into());
        self.gap_samples -= samples;
        let seconds = samples as f64 / f64::from(self.rate_hz);
        self.decoded_s += seconds;
        self.heard_s += seconds;
        self.mono.clear();
        self.mono.resize(samples as usize, 0.0);
        Block { rate_hz: self.rate_hz, samples: &self.mono }
    }

    /// Fills `mono`. Leaves it empty if the packet is damaged: its time then becomes a gap.
    fn decode(&mut self, packet: &Packet) {
        match self.decoder.decode(packet, &mut self.mono) {
            Ok(rate_hz) => {
                self.rate_hz = rate_hz;
                self.last_was_damaged = false;
            }
            Err(detail) => {
                self.mono.clear();
                self.last_was_damaged = true;
                self.note_damage(detail);
                return;
            }
        }
        let rate = f64::from(self.rate_hz);
        let trim_s = |ticks: u64| self.seconds(i64::try_from(ticks).unwrap_or(0)).unwrap_or(0.0);
        let (start_s, end_s) = (trim_s(packet.trim_start.get()), trim_s(packet.trim_end.get()));
        self.decoded_s += self.mono.len() as f64 / rate;
        match self.decoder {
            PacketDecoder::Opus(_) => {
                let kept = self.mono.len() as f64 - (end_s * rate).round();
                self.mono.truncate(kept.max(0.0) as usize);
            }
            // Symphonia's decoders have trimmed the packet.
            PacketDecoder::Symphonia { .. } => self.decoded_s += start_s + end_s,
        }
        self.cut_encoder_delay(rate);
        if let Some(length_s) = self.length_s {
            let left = ((length_s - self.heard_s) * rate).round();
            self.mono.truncate(left.max(0.0) as usize);
        }
        self.heard_s += self.mono.len() as f64 / rate;
    }

    fn cut_encoder_delay(&mut self, rate: f64) {
        let samples = match self.encoder_delay.take() {
            None => return,
            Some(EncoderDelay::Seconds(seconds)) => (seconds * rate).round(),
            Some(EncoderDelay::Samples(samples)) => samples,
        };
        let cut = self.mono.len().min(samples.max(0.0) as usize);
        self.mono.drain(..cut);
        let left = samples - cut as f64;
        self.encoder_delay = (left > 0.0).then_some(EncoderDelay::Samples(left));
    }

    /// Keeps the first damage, which is the one to look for.
    fn note_damage(&mut self, detail: String) {
        let at_s = self.heard_s;
        self.damage.get_or_insert(DecodeError::Damaged { at_s, detail });
    }
}

/// Symphonia refuses files that are shorter than their headers say, unless it cannot know the length. Recordings and
/// uploads that were interrupted are such files. If an MP3 file has no tag, Symphonia guesses its length from the first
/// frames, and leaves out what comes after. Whole MP4 files need seeking, since their index may come last.
fn is_read_in_order(bytes: &[u8]) -> bool {
    let is_mp4 = bytes.get(4..8) == Some(b"ftyp");
    let is_mp3 =
        bytes.starts_with(b"ID3") || matches!(bytes, [0xFF, second, ..] if *second >= 0xE0);
    bytes.starts_with(&MATROSKA) || is_mp3 || (is_mp4 && mp4::is_cut(bytes))
}

/// What follows a Matroska file is not read. Symphonia would take it for damage.
fn probed(bytes: &Bytes, in_order: bool) -> Result<Box<dyn FormatReader>, DecodeError> {
    let cursor = Cursor::new(bytes.slice(..matroska_end(bytes).unwrap_or(bytes.len())));
    let source: Box<dyn MediaSource> =
        if in_order { Box::new(ReadOnlySource::new(cursor)) } else { Box::new(cursor) };
    let stream = MediaSourceStream::new(source, MediaSourceStreamOptions::default());
    PROBE
        .probe(&Hint::new(), stream, FormatOptions::default(), MetadataOptions::default())
        .map_err(|error| open_error(error, bytes.len()))
}

/// The first sound track that hob can decode.
fn first_decodable_track<'a>(
    tracks: &'a [Track],
    format: &'static str,
) -> Result<(&'a Track, PacketDecoder), DecodeError> {
    let mut first_error = None;
    for track in tracks {
        let Some(CodecParameters::Audio(params)) = &track.codec_params else { continue };
        match PacketDecoder::new(params) {
            Ok(decoder) => return Ok((track, decoder)),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or(DecodeError::NoTrack { format }))
}

/// What the encoder has put before the sound, unless the file has an edit list.
fn encoder_delay(track: &Track, decoder: &PacketDecoder, kind: FormatId) -> Option<EncoderDelay> {
    match (decoder, kind) {
        (PacketDecoder::Opus(opus), _) => Some(EncoderDelay::Seconds(opus.pre_skip_s)),
        (_, FORMAT_ID_MP3) if track.delay.is_none() => {
            Some(EncoderDelay::Samples(MP3_DELAY_SAMPLES))
        }
        _ if has_codec(track, CODEC_ID_AAC) => Some(EncoderDelay::Samples(AAC_DELAY_SAMPLES)),
        _ => None,
    }
}

/// The ticks of sound that a decoder makes of this packet.
fn decoded_ticks(packet: &Packet) -> i64 {
    i64::try_from(packet.block_dur().get()).unwrap_or(i64::MAX)
}

/// Moves a packet of a page. What the packet then holds beyond the end of the page is cut off.
fn move_packet(packet: &mut Packet, later_ticks: i64, page_end: i64) {
    let whole = packet.block_dur();
    packet.pts = Timestamp::new(packet.pts.get().saturating_add(later_ticks));
    let packet_end = packet.pts.get().saturating_add(decoded_ticks(packet));
    let beyond = Duration::try_from(packet_end.saturating_sub(page_end)).unwrap_or_default();
    packet.trim_end = beyond.min(whole);
    packet.dur = whole.saturating_sub(packet.trim_start).saturating_sub(packet.trim_end);
}

fn has_delay_in_timestamp(decoder: &PacketDecoder, kind: FormatId) -> bool {
    kind == FORMAT_ID_MKV && !matches!(decoder, PacketDecoder::Opus(_))
}

fn gap_s_min(track: &Track, kind: FormatId) -> f64 {
    match kind {
        FORMAT_ID_FLAC => FLAC_GAP_S_MIN,
        _ if has_codec(track, CODEC_ID_VORBIS) => VORBIS_GAP_S_MIN,
        _ => GAP_S_MIN,
    }
}

fn has_codec(track: &Track, codec: AudioCodecId) -> bool {
    matches!(&track.codec_params, Some(CodecParameters::Audio(params)) if params.codec == codec)
}

/// No format fits, or the header of the format that fits is damaged.
fn open_error(error: Error, bytes: usize) -> DecodeError {
    match error {
        Error::Unsupported(detail) if detail.starts_with("core (probe)") => {
            DecodeError::NotSound { bytes }
        }
        Error::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => {
            DecodeError::Damaged { at_s: 0.0, detail: "the file ends in its header".to_owned() }
        }
        error => DecodeError::Damaged { at_s: 0.0, detail: error.to_string() },
    }
}
