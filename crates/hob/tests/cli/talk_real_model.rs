//! `hob talk` with the real models that `make test` fetches. Questions and answers are sound files.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use hob_bench::record::RecordStore;

use crate::real_server::Served;
use crate::realtime_real_model::workers_that_are_killed_in_a_turn_end_it_and_not_the_session;
use crate::{Has, User, kill, stderr, stdout};

#[test]
fn a_spoken_question_is_answered_and_what_is_no_speech_is_not() {
    let user = User::with_models();
    // A small model may repeat itself for minutes, and every word of it is spoken.
    let settings = "[chat]\nanswer_tokens_max = 16\nthreads = 1\n[speech]\nthreads = 1\n\
                    [transcription]\nthreads = 1\n";
    user.configure(settings);
    let served = Served::start(&user);
    // All are loaded at the start.
    served.until_warm(&["kokoro", "smollm2", "whisper-base"]);
    let url = served.url.clone();
    user.prints(format!("say --server {url} -o q.wav 'What is the capital of France?'"));
    let talked = user.hob(format!("talk --server {url} -i q.wav -o a.wav")).assert().success();
    let lines = stdout(&talked);
    assert!(lines.contains("you: ") && lines.contains("capital of France"), "{lines}");
    let answer = lines.lines().find_map(|line| line.strip_prefix("hob: ")).expect(&lines);
    stderr(&talked).has(&["answered after "]);
    // The file has the answer, after the silence of the question. A small model may answer in any language.
    let wav = user.read("a.wav");
    let (samples, _) = wav.get(44..).expect("a head").as_chunks::<2>();
    let is_loud = |sample: &&[u8; 2]| i16::from_le_bytes(**sample).unsigned_abs() > 1_000;
    let loud = samples.iter().filter(is_loud).count();
    assert!(answer.len() > 3 && loud > 2_400, "{answer}: {loud} of {}", samples.len());
    assert!(!samples.iter().take(24_000).any(|sample| is_loud(&sample)), "it answered too early");

    // `hob bench voice` asks the same question. On a busy machine its code is 5.
    let clips = "clips:\n- {file: q.wav, text: \"What is the capital of France?\"}\n";
    user.write("mine.yaml", clips);
    let bench = format!("bench voice --target {url} --model smollm2 --set mine.yaml");
    let once = "--turn-end silence --silence-ms 800 --runs-min=1 --runs-max=1";
    user.hob(format!("{bench} {once}")).assert().code(&[0, 5][..]);
    let records = RecordStore::new(user.path("work/bench/records")).read().expect("records");
    let measured = records.records[0].1.voice.as_ref().expect("a conversation");
    assert_eq!((measured.turns, measured.stages_ms.len()), (Some(1), 6), "{measured:?}");
    assert!(measured.verdict.is_some() && measured.barge_in_ms.is_none(), "{measured:?}");

    let talk = format!("talk --server {url} -i q.wav -o b.wav");
    user.refusal(format!("{talk} -v nosuch"), 5).has(&["the answer failed: ", "nosuch"]);
    assert!(!user.path("work/b.wav").exists());
    user.fails(format!("{talk} -m nosuch"), 3, "no model is called 'nosuch'");

    fs_err::write(user.path("work/silence.wav"), silence()).expect("a file");
    let quiet = format!("talk --server {url} -i silence.wav -o b.wav");
    user.fails(&quiet, 2, "no speech was heard in silence.wav");

    // Ctrl-C while no answer plays ends the conversation.
    let mut talk = user.process(&quiet);
    let mut talk = talk.stderr(Stdio::piped()).spawn().expect("hob");
    let mut notes = BufReader::new(talk.stderr.take().expect("a pipe")).lines();
    let ready = notes.by_ref().map_while(Result::ok).find(|note| note.contains("listening to"));
    assert!(ready.is_some());
    kill("-INT", talk.id());
    assert_eq!(talk.wait().expect("an end").code(), Some(0));
    assert!(user.path("work/b.wav").exists(), "what was played is written");

    let question = user.read("q.wav");
    let question = question.get(44..).expect("a head").to_vec();
    workers_that_are_killed_in_a_turn_end_it_and_not_the_session(&served, question);
}

#[test]
fn without_server_microphone_or_sound_the_error_says_what_to_do() {
    let user = User::new();
    fs_err::write(user.path("work/silence.wav"), silence()).expect("a file");
    user.refusal("talk --server 127.0.0.1:1 -i silence.wav -o a.wav", 5)
        .has(&["127.0.0.1:1 does not answer", "hob serve"]);
    user.fails("talk -o a.wav", 6, "no program that records sound is installed");
    let no_player = user.hob("talk -i silence.wav").assert();
    assert!(stderr(&no_player.code(6)).contains("no program that plays sound is installed"));
    user.write("letter.wav", "Dear reader, this is no sound.");
    user.fails("talk -i letter.wav -o a.wav", 2, "letter.wav: ");
}

/// A WAV file with a second of silence: 16 bits, 16 kHz, mono.
pub(crate) fn silence() -> Vec<u8> {
    let samples = vec![0; 32_000];
    let mut wav = b"RIFF\x24\x7d\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00".to_vec();
    wav.extend([0x80, 0x3e, 0, 0, 0, 0x7d, 0, 0, 2, 0, 16, 0]);
    wav.extend(b"data\x00\x7d\x00\x00");
    wav.extend(samples);
    wav
}
