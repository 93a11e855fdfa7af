//! With the real models that `make test` fetches: hob hears what hob says.
//! Texts are compared in lower case and without punctuation.

use serde_json::Value;

use crate::real_server::Served;
use crate::{User, stderr, stdout};

/// The share of words that are wrong: substituted, missing or added.
fn word_error_rate(said: &str, heard: &str) -> f64 {
    let words = |text: &str| -> Vec<String> {
        let text = text.to_lowercase().replace('-', " ");
        let cut = text.split_whitespace();
        cut.map(|word| word.chars().filter(|c| c.is_alphanumeric()).collect()).collect()
    };
    let (said, heard) = (words(said), words(heard));
    let mut row: Vec<usize> = (0..=heard.len()).collect();
    for (line, word) in said.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, other) in heard.iter().enumerate() {
            let changed = diagonal + usize::from(word != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[heard.len()] as f64 / said.len().max(1) as f64
}

#[test]
fn word_errors_are_substituted_missing_and_added_words() {
    for (said, heard, expected) in [
        ("One two three four.", "one, two three four", 0.0),
        ("one two three four", "one too three four", 0.25),
        ("one two three four", "one three four five", 0.5),
        ("one", "", 1.0),
    ] {
        assert_eq!(word_error_rate(said, heard), expected, "{heard}");
    }
}

#[test]
fn speech_of_hob_is_transcribed_from_every_file_format_and_into_every_text_format() {
    let (user, home) = User::with_models();
    let said =
        "The train to Oxford leaves at seven in the morning, and the ticket costs twelve pounds.";
    for format in ["wav", "mp3", "opus", "flac"] {
        let file = format!("a.{format}");
        user.hob(&["say", "-o", &file, said]).envs(home.clone()).assert().success();
        let heard = user.hob(&["hear", &file]).envs(home.clone()).assert().success();
        // Whisper may write numbers in digits.
        let text = stdout(&heard).replace('7', "seven").replace("£12", "twelve pounds");
        assert!(word_error_rate(said, &text) < 0.1, "{format}: {text}");
        assert!(stderr(&heard).contains(" s of sound in "), "{}", stderr(&heard));
    }
    let subtitles = user.hob(&["hear", "-f", "srt", "a.wav"]).envs(home.clone()).assert().success();
    assert!(stdout(&subtitles).starts_with("1\n00:00:00,000 --> "), "{}", stdout(&subtitles));
    let args = ["hear", "-f", "json", "--words", "-l", "en", "a.wav"];
    let json = stdout(&user.hob(&args).envs(home).assert().success());
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["language"], "english");
    let words = json["words"].as_array().expect("words");
    let times: Vec<f64> = words.iter().filter_map(|word| word["start"].as_f64()).collect();
    assert!(times.len() >= 14 && times.is_sorted(), "{times:?}");
    let duration = json["duration"].as_f64().expect("a duration");
    assert!(times.last().is_some_and(|last| *last > duration * 0.6 && *last < duration));
}

#[test]
fn what_is_no_sound_is_refused_and_silence_is_empty() {
    let (user, home) = User::with_models();
    user.write("letter.mp3", "Dear reader, this is no sound.");
    user.write("empty.wav", "");
    for (file, expected) in
        [("letter.mp3", "not a sound format"), ("empty.wav", "empty"), ("none.wav", "cannot read")]
    {
        let said = stderr(&user.hob(&["hear", file]).envs(home.clone()).assert().code(2));
        assert!(said.contains(expected), "{file}: {said}");
    }
    let samples = 16_000 * 4;
    let mut silence =
        b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data"
            .to_vec();
    silence.extend((samples * 2_u32).to_le_bytes());
    silence.resize(silence.len() + samples as usize * 2, 0);
    silence[4..8].copy_from_slice(&(samples * 2 + 36).to_le_bytes());
    std::fs::write(user.path("work/silence.wav"), silence).expect("written");
    let heard = user.hob(&["hear", "silence.wav"]).envs(home).assert().success();
    assert_eq!(stdout(&heard).trim(), "");
}

#[test]
fn a_server_transcribes_within_the_memory_that_hob_predicted() {
    let (user, home) = User::with_models();
    user.hob(&["say", "-o", "a.wav", "Good evening, everyone."])
        .envs(home.clone())
        .assert()
        .success();
    let mut served = Served::start(&user, &home);
    let url = served.url.clone();
    let heard = user.hob(&["hear", "--server", &url, "a.wav"]).assert().success();
    assert!(
        word_error_rate("Good evening, everyone.", &stdout(&heard)) < 0.4,
        "{}",
        stdout(&heard)
    );
    let json = stdout(&user.hob(&["ps", "--server", &url, "--json"]).assert().success());
    let all: Value = serde_json::from_str(&json).expect("JSON");
    let models = all.as_array().expect("models");
    let model = models.iter().find(|model| model["kind"] == "transcription").expect("it is there");
    let bytes = |name: &str| model[name].as_u64().expect("known");
    assert!(bytes("resident_bytes") <= bytes("predicted_bytes"), "{model}");
    served.signal("-TERM");
    assert_eq!(served.child.wait().expect("an end").code(), Some(0));
}
