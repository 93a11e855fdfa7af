//! Plays answers at the pace of a clock, so that it is known at every moment what has been heard.
//! Between answers it plays silence: the player stays open, and the next answer starts at once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use hob_speech::encode::{AudioFormat, encode_whole};

use crate::failure::{CliResult, Failure};
use crate::playback::{Player, Playing};
use crate::recording::samples_of;
use crate::sink::Sink;

/// Samples a second, of the server and of the player.
pub(super) const RATE_HZ: u32 = 24_000;
/// How much sound the player has in advance. Less of it crackles; more of it delays answers and interruptions.
const LEAD: Duration = Duration::from_millis(100);
/// Longest sound in a file.
const FILE_TIME_MAX: Duration = Duration::from_secs(600);
/// The longest answer that waits to be played.
const WAITING_TIME_MAX: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(super) struct Loudspeaker {
    output: Output,
    waiting: VecDeque<f32>,
    /// The item that plays, and how many of its samples have been handed over.
    item: Option<(String, u64)>,
    begun: Instant,
    written: u64,
    /// When the last sample of an answer will have been heard.
    silent_from: Instant,
}

#[derive(Debug)]
enum Output {
    Player(Playing),
    File { sink: Sink, samples: Vec<f32> },
}

/// An answer that was stopped, and how much of it was heard.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stopped {
    pub(super) item_id: String,
    pub(super) heard_ms: u64,
}

impl Loudspeaker {
    /// # Errors
    /// The player does not start.
    pub(super) fn of_player(player: Player, now: Instant) -> CliResult<Loudspeaker> {
        Ok(Loudspeaker::new(Output::Player(player.start_live(RATE_HZ)?), now))
    }

    pub(super) fn of_file(sink: Sink, now: Instant) -> Loudspeaker {
        Loudspeaker::new(Output::File { sink, samples: Vec::new() }, now)
    }

    fn new(output: Output, now: Instant) -> Loudspeaker {
        let waiting = VecDeque::new();
        Loudspeaker { output, waiting, item: None, begun: now, written: 0, silent_from: now }
    }

    /// Starts the clock.
    pub(super) fn start(&mut self, now: Instant) {
        (self.begun, self.written) = (now, 0);
    }

    /// Adds sound to what waits. `bytes`: 16 bits, little-endian.
    ///
    /// # Errors
    /// The server has sent more than ten minutes of sound in advance.
    pub(super) fn add(&mut self, item_id: &str, bytes: &[u8]) -> CliResult<()> {
        if self.item.as_ref().is_none_or(|(id, _)| id != item_id) {
            self.item = Some((item_id.to_owned(), 0));
        }
        self.waiting.extend(samples_of(bytes.as_chunks::<2>().0));
        match self.waiting.len() as u64 > samples_in(WAITING_TIME_MAX) {
            true => Err(Failure::server("more than ten minutes of an answer wait to be played")),
            false => Ok(()),
        }
    }

    /// Hands over what is due.
    ///
    /// # Errors
    /// The player has stopped.
    pub(super) async fn advance(&mut self, now: Instant) -> CliResult<()> {
        let due = samples_in(now.saturating_duration_since(self.begun) + LEAD);
        let behind = due.saturating_sub(self.written);
        // When this comes too late, the player has nothing left. More than the lead would delay all that follows.
        let count = behind.min(samples_in(LEAD)) as usize;
        let sound = count.min(self.waiting.len());
        let mut piece: Vec<f32> = self.waiting.drain(..sound).collect();
        piece.resize(count, 0.0);
        self.written = due;
        if let Some((_, played)) = self.item.as_mut().filter(|_| sound > 0) {
            *played += sound as u64;
            self.silent_from = now + LEAD;
        }
        match &mut self.output {
            Output::Player(playing) => playing.write(&piece).await,
            Output::File { samples, .. } => {
                let free = (samples_in(FILE_TIME_MAX) as usize).saturating_sub(samples.len());
                samples.extend(piece.iter().take(free));
                Ok(())
            }
        }
    }

    /// Whether an answer can be heard, or will be.
    pub(super) fn plays(&self, now: Instant) -> bool {
        !self.waiting.is_empty() || now < self.silent_from
    }

    /// Drops what waits. The player goes on for at most [`LEAD`]. `None`: nothing was playing.
    pub(super) fn stop(&mut self, now: Instant) -> Option<Stopped> {
        let was_playing = self.plays(now);
        self.waiting.clear();
        let (item_id, played) = self.item.take().filter(|_| was_playing)?;
        // What the player has in advance is still heard, so `silent_from` stays.
        let heard_ms = played * 1_000 / u64::from(RATE_HZ);
        Some(Stopped { item_id, heard_ms })
    }

    /// Whether what follows is not in the file.
    pub(super) fn is_full(&self) -> bool {
        match &self.output {
            Output::Player(_) => false,
            Output::File { samples, .. } => samples.len() as u64 >= samples_in(FILE_TIME_MAX),
        }
    }

    /// Ends the player, or writes the file.
    ///
    /// # Errors
    /// The player fails, or the file cannot be written.
    pub(super) async fn finish(self) -> CliResult<()> {
        match self.output {
            Output::Player(playing) => playing.finish().await,
            Output::File { mut sink, samples } => {
                sink.write(&encode_whole(AudioFormat::Wav, RATE_HZ, &samples)?)?;
                sink.finish()
            }
        }
    }
}

fn samples_in(time: Duration) -> u64 {
    (time.as_secs_f64() * f64::from(RATE_HZ)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: [u8; 2] = 16_384_i16.to_le_bytes();

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    async fn play(speaker: &mut Loudspeaker, begun: Instant, from_ms: u64, to_ms: u64) {
        for at in (from_ms..=to_ms).step_by(20) {
            speaker.advance(begun + ms(at)).await.expect("it plays");
        }
    }

    #[tokio::test]
    async fn answers_play_at_the_pace_of_the_clock_and_silence_between_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("talk.wav");
        let begun = Instant::now();
        let mut speaker = Loudspeaker::of_file(Sink::open(&place).expect("a file"), begun);
        play(&mut speaker, begun, 0, 100).await;
        assert!(!speaker.plays(begun + ms(100)));
        speaker.add("item_1", &HALF.repeat(24_000)).expect("one second");
        play(&mut speaker, begun, 120, 400).await;
        assert!(speaker.plays(begun + ms(400)));
        let stopped = speaker.stop(begun + ms(400)).expect("it played");
        assert_eq!(stopped, Stopped { item_id: "item_1".to_owned(), heard_ms: 300 });
        assert!(speaker.stop(begun + ms(400)).is_none());
        assert!(speaker.plays(begun + ms(499)) && !speaker.plays(begun + ms(500)));
        play(&mut speaker, begun, 420, 500).await;
        speaker.finish().await.expect("a file");
        let wav = fs_err::read(&place).expect("a file");
        // 600 ms: 200 of silence, 300 of the answer, 100 of silence.
        assert_eq!(wav.len(), 44 + 14_400 * 2);
        let at = |ms: usize| &wav[44 + ms * 48..][..2];
        assert_eq!([at(199), at(201), at(499), at(501)], [&[0, 0], &HALF, &HALF, &[0, 0]]);
    }

    #[tokio::test]
    async fn a_file_says_when_it_is_full() {
        let folder = tempfile::tempdir().expect("a folder");
        let begun = Instant::now();
        let sink = Sink::open(&folder.path().join("talk.wav")).expect("a file");
        let mut speaker = Loudspeaker::of_file(sink, begun);
        for at in (0..600_000).step_by(100) {
            assert!(!speaker.is_full(), "after {at} ms");
            speaker.advance(begun + ms(at)).await.expect("it plays");
        }
        assert!(speaker.is_full());
    }

    #[tokio::test]
    async fn a_pause_of_the_machine_delays_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("talk.wav");
        let begun = Instant::now();
        let mut speaker = Loudspeaker::of_file(Sink::open(&place).expect("a file"), begun);
        play(&mut speaker, begun, 3_600_000, 3_600_100).await;
        speaker.finish().await.expect("a file");
        assert_eq!(fs_err::metadata(&place).expect("a file").len(), 44 + 4_800 * 2);
    }
}
