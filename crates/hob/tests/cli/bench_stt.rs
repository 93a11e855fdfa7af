//! `hob bench stt`: a file of sentences that the user gives, and two servers that transcribe the same clips.

use hob_bench::mock::{MockServer, Script};
use hob_bench::record::RecordStore;

use crate::hear_real_model::wav;
use crate::{User, stdout};

/// On a busy machine the exit code is 5, and the figures are printed as usual.
const BUSY_OR_NOT: [i32; 2] = [0, 5];

#[test]
fn two_servers_transcribe_the_same_sentences() {
    let user = User::new();
    let mock = |script: &str| {
        let times = "itl_ms=0,audio_rtf=0,audio_ms_per_char=10";
        let script = Script::default().with(&format!("{times},{script}")).expect("a script");
        MockServer::start_local(script).expect("a mock")
    };
    let mocks = (mock("ttft_ms=40"), mock("ttft_ms=5,heard=hello"));
    let (base, new) = (mocks.0.url(), mocks.1.url());
    user.write("mine.txt", "Hello, world.\n\n");
    let few = "--spoken mine.txt --noise 10 --runs-min 2 --runs-max 2";
    let line = format!("bench stt --target {base} --compare {new} {few}");
    let said = stdout(&user.hob(line).assert().code(&BUSY_OR_NOT[..]));
    let rows =
        ["spoken at 10 dB", "50.0 %", "0, 1, 0", "mock spoke them", "final text", "word errors"];
    for expected in rows {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let records = RecordStore::new(user.path("work/bench/records")).read().expect("records");
    assert_eq!(records.records.len(), 4, "clean and noisy, of two servers");

    let rows = [
        ("--set none.yaml", "none.yaml"),
        ("--noise 200", "expected decibels from -20 to 100"),
        ("--spoken none.txt", "none.txt"),
    ];
    for (wrong, expected) in rows {
        user.fails(format!("bench stt --target {base} {wrong}"), 2, expected);
    }
}

#[test]
fn the_clips_of_a_set_are_counted_by_language() {
    let user = User::new();
    let script = Script::default().with("ttft_ms=5,itl_ms=0,heard=hello").expect("a script");
    let mock = MockServer::start_local(script).expect("a mock");
    std::fs::write(user.path("work/a.wav"), wav(16_000, &[1_000; 8_000])).expect("written");
    let clips = "clips:\n- {file: a.wav, text: \"Hello, world.\"}\n\
                 - {file: a.wav, text: Hallo, language: de}\n";
    user.write("mine.yaml", clips);
    let once = "--set mine.yaml --runs-min 1 --runs-max 1";
    let line = format!("bench stt --target {} {once}", mock.url());
    user.hob(line).assert().code(&BUSY_OR_NOT[..]);
    let records = RecordStore::new(user.path("work/bench/records")).read().expect("records");
    let measured = records.records[0].1.stt.as_ref().expect("a transcription");
    let [english, german] = ["en", "de"].map(|code| &measured.languages[code]);
    assert_eq!((english.utterances, english.wer), (1, Some(0.5)));
    // One of five characters.
    assert_eq!((german.utterances, german.wer, german.cer), (1, Some(1.0), Some(0.2)));
    assert_eq!(measured.clips.iter().map(|clip| clip.words).collect::<Vec<_>>(), [2, 1]);
}
