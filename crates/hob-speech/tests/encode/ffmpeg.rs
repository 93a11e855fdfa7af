//! ffmpeg as an independent decoder.
//! It reads a pipe, as a player of a stream does: it cannot seek, and it does not know the length.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use hob_speech::encode::AudioFormat;

pub(crate) struct Decoded {
    pub(crate) samples: Vec<i16>,
    /// The problems that ffmpeg reports for the bytes; empty for a correct file.
    pub(crate) complaints: String,
}

pub(crate) fn decode(format: AudioFormat, rate_hz: u32, bytes: &[u8]) -> Decoded {
    let rate = rate_hz.to_string();
    let raw = ["-f", "s16le", "-ar", &rate, "-ac", "1"];
    let output = run(&input_flags(format, &rate), &raw, bytes);
    let samples = output.stdout.chunks_exact(2).map(|b| i16::from_le_bytes([b[0], b[1]])).collect();
    Decoded { samples, complaints: String::from_utf8_lossy(&output.stderr).into_owned() }
}

/// The MD5 of the decoded samples, in hexadecimal, computed by ffmpeg.
pub(crate) fn md5(format: AudioFormat, bytes: &[u8]) -> String {
    let as_md5 = ["-c:a", "pcm_s16le", "-f", "md5"];
    let output = run(&input_flags(format, "24000"), &as_md5, bytes);
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    line.trim().trim_start_matches("MD5=").to_owned()
}

fn input_flags(format: AudioFormat, rate: &str) -> Vec<&str> {
    match format {
        AudioFormat::Mp3 => vec!["-f", "mp3"],
        AudioFormat::Wav => vec!["-f", "wav"],
        AudioFormat::Pcm => vec!["-f", "s16le", "-ar", rate, "-ac", "1"],
        AudioFormat::Opus => vec!["-f", "ogg"],
        AudioFormat::Flac => vec!["-f", "flac"],
        AudioFormat::Aac => vec!["-f", "aac"],
    }
}

fn run(input: &[&str], output: &[&str], bytes: &[u8]) -> Output {
    let mut ffmpeg = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error"])
        .args(input)
        .args(["-i", "pipe:0"])
        .args(output)
        .arg("pipe:1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("these tests decode with ffmpeg: install the package 'ffmpeg'");
    let mut stdin = ffmpeg.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // ffmpeg may stop reading early. The test then checks what it decoded so far.
        scope.spawn(move || stdin.write_all(bytes).ok());
        ffmpeg.wait_with_output().unwrap()
    })
}
