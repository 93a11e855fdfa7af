//! With the real models that `make test` fetches: hob hears what hob says.
//! Texts are compared in lower case and without punctuation.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;

use crate::executable::write_executable;
use crate::real_server::{ALL_AT_START, Served, test_home};
use crate::timed_words::words_are_heard_when_their_times_say;
use crate::{Has, User, stderr, stdout};

/// The share of words that are wrong: substituted, missing or added.
fn word_error_rate(said: &str, heard: &str) -> f64 {
    let (said, row) = changes(said, heard, 1);
    row[row.len() - 1] as f64 / said.max(1) as f64
}

/// The same for a text of which only a part says this: words before and after that part do not count.
fn word_error_rate_within(said: &str, heard: &str) -> f64 {
    let (said, row) = changes(said, heard, 0);
    row.into_iter().min().unwrap_or(0) as f64 / said.max(1) as f64
}

/// The number of words said, and how many must change for each beginning of what was heard. A word before the first one said
/// counts `before`.
fn changes(said: &str, heard: &str, before: usize) -> (usize, Vec<usize>) {
    let words = |text: &str| -> Vec<String> {
        let text = text.to_lowercase().replace('-', " ");
        let cut = text.split_whitespace();
        cut.map(|word| word.chars().filter(|c| c.is_alphanumeric()).collect()).collect()
    };
    let (said, heard) = (words(said), words(heard));
    let mut row: Vec<usize> = (0..=heard.len()).map(|words| words * before).collect();
    for (line, word) in said.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, other) in heard.iter().enumerate() {
            let changed = diagonal + usize::from(word != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    (said.len(), row)
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
    for (heard, expected) in [
        ("zero one two three four five", 0.0),
        ("zero one too three four five", 0.25),
        ("zero one two five six", 0.5),
        ("five six", 1.0),
    ] {
        assert_eq!(word_error_rate_within("one two three four", heard), expected, "{heard}");
    }
}

#[test]
fn speech_of_hob_is_transcribed_from_and_into_every_format_within_the_predicted_memory() {
    let user = User::with_only(&["kokoro", "whisper-base"]).configured(ALL_AT_START);
    let served = Served::start(&user);
    served.until_warm(&["kokoro", "whisper-base"]);
    let with_server = |line: &str| user.prints(format!("{line} --server {}", served.url));
    let said = "The train to Oxford leaves at seven, and the ticket costs twelve pounds.";
    with_server(&format!("say -o a.wav '{said}'"));
    for format in ["wav", "mp3", "opus", "flac"] {
        let file = format!("a.{format}");
        // What hob's own encoders write is decoded again in tests without a model.
        if format != "wav" {
            let mut ffmpeg = Command::new("ffmpeg");
            ffmpeg
                .args(["-nostdin", "-v", "error", "-i", "a.wav", &file])
                .current_dir(user.path("work"));
            assert!(ffmpeg.status().expect("ffmpeg").success(), "{format}");
        }
        let text = in_words(&with_server(&format!("hear {file}")));
        assert!(word_error_rate(said, &text) < 0.1, "{format}: {text}");
    }
    let piped = user.read("a.wav");
    let mut hear = user.hob(format!("hear --server {} -f vtt -", served.url));
    let heard = stdout(&hear.write_stdin(piped).assert().success());
    assert!(heard.starts_with("WEBVTT\n\n00:00:00.000 --> "), "{heard}");
    // Without a server the command starts the engine itself.
    let subtitles = user.hob("hear -f srt a.wav").assert().success();
    stderr(&subtitles).has(&[" s of sound in "]);
    assert!(stdout(&subtitles).starts_with("1\n00:00:00,000 --> "), "{}", stdout(&subtitles));
    let json = with_server("hear -f json --words -l en a.wav");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["language"], "english");
    let untimed = with_server("hear -l en a.wav");
    assert_eq!(json["text"].as_str(), Some(untimed.trim()), "times change no word");
    let words = json["words"].as_array().expect("words");
    let times: Vec<f64> = words.iter().filter_map(|word| word["start"].as_f64()).collect();
    assert!(times.len() >= 11 && times.is_sorted(), "{times:?}");
    let duration = json["duration"].as_f64().expect("a duration");
    assert!(times.last().is_some_and(|last| *last > duration * 0.6 && *last < duration));
    check_memory(&user, &served.url);
    what_a_microphone_hears_is_transcribed_until_its_program_ends(&user, said);
    served.end("-TERM");
}

/// The transcription model of a server has taken no more memory than hob predicted, however many files it heard.
///
/// Weights and caches are allocated at the load. One compute buffer grows to the size of the largest step. The prediction
/// counts that step with 30 s of sound, and with the scores of all 448 positions of the text: 93 MB for Whisper base. The
/// engine computes the scores of a few dozen positions at most, 0.2 MB each. So more than 80 MB remain for what the allocator
/// keeps. That is the peak of one request and not the sum of all, because each frees its sound (64 kB a second) and its text.
fn check_memory(user: &User, url: &str) {
    let all = user.json(format!("ps --server {url} --json"));
    let models = all.as_array().expect("models");
    let model = models.iter().find(|model| model["kind"] == "transcription").expect("it is there");
    let bytes = |name: &str| model[name].as_u64().expect("known");
    assert!(bytes("resident_bytes") <= bytes("predicted_bytes"), "{model}");
}

/// What the program of a microphone records is the file. Without a server the command starts the engine itself.
fn what_a_microphone_hears_is_transcribed_until_its_program_ends(user: &User, said: &str) {
    let recorded = user.read("a.wav");
    let samples = recorded.get(44..).expect("a head").as_chunks::<2>().0;
    // From 24 to 16 kHz.
    let slower = (0..samples.len() * 2 / 3).flat_map(|n| samples[n * 3 / 2]);
    std::fs::write(user.path("work/said.raw"), slower.collect::<Vec<u8>>()).expect("written");
    write_executable(&user.path("programs/parecord"), "#!/bin/sh\nexec /bin/cat said.raw\n");
    let live = "hear --live -l en";
    let heard = user.hob(live).assert().success();
    stderr(&heard).has(&["listening with parecord", "parecord ended by itself"]);
    let text = in_words(&stdout(&heard));
    assert!(word_error_rate(said, &text) < 0.3, "{text}");
    write_executable(&user.path("programs/parecord"), "#!/bin/sh\nexit 1\n");
    user.fails(live, 6, "parecord ended without any sound");
}

/// Whisper may write the numbers of the recording in digits.
fn in_words(text: &str) -> String {
    text.replace('7', "seven").replace("£12", "twelve pounds")
}

#[test]
fn what_is_no_sound_is_refused_and_silence_is_empty() {
    let user = User::with_only(&["whisper-base"]);
    user.write("letter.mp3", "Dear reader, this is no sound.");
    user.write("empty.wav", "");
    for (file, expected) in
        [("letter.mp3", "not a sound format"), ("empty.wav", "empty"), ("none.wav", "cannot read")]
    {
        let said = user.refusal(&["hear", file], 2);
        assert!(said.contains(expected), "{file}: {said}");
    }
    user.configure(ALL_AT_START);
    let served = Served::start(&user);
    served.until_warm(&["whisper-base"]);
    for (name, sound) in unspoken() {
        let file = format!("{name}.wav");
        let samples: Vec<i16> = sound.iter().map(|sample| (sample * 32_767.0) as i16).collect();
        std::fs::write(user.path(&format!("work/{file}")), wav(16_000, &samples)).expect("written");
        let heard = user.hob(format!("hear --server {} {file}", served.url)).assert().success();
        assert_eq!(stdout(&heard).trim(), "", "{name}");
    }
}

/// Sounds without speech: silence, the shortest of uploads, noise, chords, and clicks as of a keyboard.
fn unspoken() -> [(&'static str, Vec<f32>); 5] {
    let mut seed = 1_u32;
    let mut noise = move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed as f32 / u32::MAX as f32 * 2.0 - 1.0
    };
    let seconds = |length: f32| (0..(length * 16_000.0) as u32).map(|n| n as f32 / 16_000.0);
    let chord = |t: f32| {
        let root = [261.6, 220.0, 174.6, 196.0][(t * 2.0) as usize % 4];
        let fade = (-3.0 * (t * 2.0).fract()).exp();
        let tone = |ratio: f32| (t * root * ratio * std::f32::consts::TAU).sin();
        0.2 * fade * (tone(1.0) + tone(1.26) + tone(1.5))
    };
    let click = |t: f32, noise: f32| 0.5 * noise * (-(t * 7.0).fract() * 40.0).exp();
    [
        ("silence", vec![0.0; 64_000]),
        ("short", seconds(0.1).map(|t| (t * 1_400.0).sin() * 0.3).collect()),
        ("noise", seconds(5.0).map(|_| 0.1 * noise()).collect()),
        ("music", seconds(8.0).map(chord).collect()),
        ("keyboard", seconds(5.0).map(|t| click(t, noise())).collect()),
    ]
}

/// A WAV file of one channel.
pub(crate) fn wav(rate_hz: u32, samples: &[i16]) -> Vec<u8> {
    let mut file = hob_core::wav_header(rate_hz, 2 * samples.len() as u32);
    file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    file
}

/// Each has a number, a price, a date or a time. Seven American and seven British voices say them, women and men: how a
/// figure is read depends on the language, not on the voice.
const FIGURES: [&str; 7] = [
    "The ticket costs $14.50.",
    "About 40% of the 1,250 visitors came by train.",
    "My flight lands on March 21st, 2027.",
    "She paid three hundred dollars for the repair.",
    "The library was built in 1905.",
    "Ask whether Monday at 9:30 is still free.",
    "The chapter begins on page 128 and has forty-five pages.",
];

/// The other voices say shorter sentences, because most of this test's time is synthesis.
const PLAIN: [&str; 7] = [
    "What is the capital of France?",
    "The children play in the garden.",
    "We will meet again next week.",
    "Please close the door behind you.",
    "She reads a book every evening.",
    "The water in the lake is cold.",
    "I would like a cup of tea.",
];

#[test]
fn every_english_voice_is_understood_and_its_words_are_timed() {
    let user = User::with_only(&["kokoro", "whisper-base"]);
    let voices = user.prints("say --voices");
    let names = voices.split_whitespace();
    let english = |name: &&str| matches!(name.get(..3), Some("af_" | "am_" | "bf_" | "bm_"));
    let mut names: Vec<&str> = names.filter(english).collect();
    names.sort_unstable();
    assert!(names.len() >= 28, "{voices}");
    assert!(names[7..11].iter().all(|name| name.starts_with("af_")), "{voices}");
    assert!(names[11..14].iter().all(|name| name.starts_with("am_")), "{voices}");
    assert!(names[21..24].iter().all(|name| name.starts_with("bf_")), "{voices}");
    assert!(names[24..28].iter().all(|name| name.starts_with("bm_")), "{voices}");
    user.configure(ALL_AT_START);
    let served = Served::start(&user);
    served.until_warm(&["kokoro", "whisper-base"]);
    let pause = vec![0_i16; 12_000];
    let (mut said, mut heard) = (String::new(), String::new());
    // In one recording, because Whisper used to leave out sentences where speakers change.
    let sentences = [PLAIN, FIGURES, PLAIN, FIGURES].into_iter().cycle();
    for (voices, texts) in names.chunks(FIGURES.len()).zip(sentences) {
        let samples = voices
            .iter()
            .zip(texts)
            .flat_map(|(voice, text)| [served.clip(text, voice), pause.clone()].concat());
        let samples: Vec<i16> = samples.collect();
        std::fs::write(user.path("work/a.wav"), wav(24_000, &samples)).expect("written");
        let text_heard = plain(&user.prints(format!("hear --server {} a.wav", served.url)));
        for (voice, text) in voices.iter().zip(texts) {
            let text = plain(text);
            assert!(word_error_rate_within(&text, &text_heard) < 0.4, "{voice}: {text_heard}");
            said += &text;
        }
        heard += &text_heard;
    }
    assert!(word_error_rate(&said, &heard) <= 0.06, "{heard}");
    let letters = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(|c| [c, ' ']).collect()
    };
    assert!(word_error_rate(&letters(&said), &letters(&heard)) <= 0.1, "{heard}");
    words_are_heard_when_their_times_say(&served);
}

/// A number in words becomes digits, as Whisper may write either.
fn plain(text: &str) -> String {
    let number_words = [
        ("half past nine", "9:30"),
        ("one thousand two hundred and fifty", "1,250"),
        ("forty percent", "40%"),
        ("three hundred dollars", "$300"),
        ("forty-five", "45"),
        ("forty five", "45"),
        ("o'clock", ""),
    ];
    let text = text.trim().to_lowercase() + " ";
    number_words.iter().fold(text, |text, (words, digits)| text.replace(words, digits))
}

#[test]
fn two_hundred_characters_are_heard_with_less_than_five_percent_of_errors() {
    let user = User::with_models();
    let said = "A small boat left the harbour before sunrise, and its crew watched the coast grow thin \
                behind them. Nobody spoke for an hour. Then the cook came up with a pot of coffee, and \
                the day could begin at last, cold and bright and very quiet.";
    assert!(said.len() >= 210);
    user.hob(&["say", "-o", "a.wav", said]).assert().success();
    // Any Whisper file can take the place of a stored model.
    let forms = std::fs::read_dir(test_home().join("models/whisper-base"));
    let mut files = forms.expect("a folder").flatten().map(|form| form.path().join("model.bin"));
    let weights = files.find(|file| file.is_file()).expect("the stored model");
    symlink(weights, user.path("work/ggml-mine.bin")).expect("a link");
    let heard = user.prints("hear --model ggml-mine.bin a.wav");
    assert!(word_error_rate(said, &heard) < 0.05, "{heard}");
}
