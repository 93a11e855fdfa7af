//! `hob quantize` with the stored models: a smaller model that works, its distance, and refusals.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use hob_models::Gguf;
use hob_models::gguf::GgufTensor;
use hob_models::gguf::sample::SampleGguf;
use serde_json::Value;

use crate::executable::write_executable;
use crate::shallow_model::{file, sections};
use crate::{
    Has, User, exit_code, json_stdout, kill, names, stderr, stdout, until_begun, until_read,
};

/// `llama-perplexity -c 512 --chunks 2` of llama.cpp b11434 says 45.0847 ± 5.92181 for this text
/// and the stored SmolLM2.
const ARTICLE: &str = include_str!("../../../hob-bench/src/speech/article.txt");

/// How fast memory is, as hob keeps it in its home. Measured once for all tests, because it keeps every core busy for seconds.
static MEASURED: LazyLock<Option<Vec<u8>>> = LazyLock::new(|| {
    let user = User::with_only(&["smollm2"]);
    user.hob("quantize smollm2 --to Q4_K_M --dry-run").assert().success();
    std::fs::read(user.path("hob/machine.toml")).ok()
});

/// A user of these models. The workers that quantize and compare take all cores, and no setting
/// says otherwise; with several threads each, those of two tests would wait for each other.
fn user_of(models: &[&str]) -> User {
    let user = User::with_only(models);
    if let Some(measured) = &*MEASURED {
        std::fs::write(user.path("hob/machine.toml"), measured).expect("written");
    }
    user.with("OMP_THREAD_LIMIT", "1")
}

/// The megabytes of `… to Q4_0: 92 MB, …`.
fn mb_after(text: &str, label: &str) -> f64 {
    let after = text.split_once(label).map(|(_, after)| after);
    let number = after.and_then(|after| after.split_once(" MB")).map(|(number, _)| number);
    number.and_then(|number| number.parse().ok()).expect(text)
}

#[test]
fn a_signal_ends_hob_while_it_looks_at_the_machine_for_a_prediction() {
    let user = User::new();
    std::fs::write(user.path("work/m.gguf"), SampleGguf::llama().bytes()).expect("a file");
    // It takes as long as the measurement of the memory, and needs neither cores nor memory.
    let pipe = user.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let script = format!("#!/bin/sh\nread line <'{}'\n", pipe.display());
    write_executable(&user.path("programs/nvidia-smi"), &script);
    let mut hob = user.process("quantize m.gguf --to Q4_0 --force --dry-run");
    let mut hob = hob.stderr(Stdio::null()).spawn().expect("hob starts");
    let _writer = until_read(&mut hob, &pipe);
    // A test in the background may ignore Ctrl-C, but not this signal.
    kill("-TERM", hob.id());
    assert_eq!(exit_code(&mut hob), None, "the signal ended it");
}

#[test]
fn a_model_becomes_smaller_and_its_distance_is_measured() {
    let user = user_of(&["smollm2"]);
    // Two blocks have every type of layer, and most of this test's time is computed with the source or the result.
    user.shallow_model("few.gguf");
    let line = "quantize few.gguf --to Q3_K_M --dry-run --machine m4-pro-48gb";
    let dry = user.hob(line).assert().success();
    stdout(&dry).has(&["would write few-Q3_K_M.gguf"]);
    let expected_mb = mb_after(&stderr(&dry), "to Q3_K_M: ");
    let plan = user.json(format!("{line} --json"));
    let (target, kind) = (plan["target"].as_str(), plan["to"].as_str());
    assert_eq!((target, kind), (Some("few-Q3_K_M.gguf"), Some("Q3_K_M")), "{plan}");
    let planned_mb = plan["expected_bytes"].as_f64().expect("bytes") / 1e6;
    assert!((planned_mb - expected_mb).abs() < 0.51, "{plan}");
    assert!(plan["source_bytes"].as_u64() > plan["expected_bytes"].as_u64(), "{plan}");
    stderr(&dry).has(&["below 4 bits", " published runs of it ("]);
    let fit = user.json("fit few.gguf --json --machine m4-pro-48gb");
    let of_fit = fit["plans"][0]["decode_requested"]["tok_s"].as_f64().expect("a speed");
    let said = stderr(&dry);
    let said = said.split_once("about ").and_then(|(_, said)| said.split_once(" tok/s"));
    let tok_s: f64 = said.and_then(|(tok_s, _)| tok_s.parse().ok()).expect("a speed");
    assert!((tok_s / of_fit - 1.0).abs() < 0.01, "{}: {fit}", stderr(&dry));
    let text = "The river was high that morning, and the old ferry lay at the pier. ".repeat(72);
    user.write("text.txt", &text);
    let words = "quantize few.gguf --to Q3_K_M --importance text.txt --text text.txt --pieces 1 \
                 --eval-tasks absent --eval-items 1 --out small.gguf --json";
    let report = user.json(words);
    let bytes = |field: &str| report[field].as_u64().expect("bytes");
    assert!(bytes("target_bytes") < bytes("source_bytes"), "{report}");
    assert_eq!(
        std::fs::metadata(user.path("work/small.gguf")).expect("a file").len(),
        bytes("target_bytes")
    );
    let written = user.read("small.gguf");
    let header = String::from_utf8_lossy(&written[..8 << 20]);
    for key in ["source_sha256", "text_sha256", "version"] {
        assert!(header.contains(&format!("hob.quantize.{key}")), "where it comes from: {key}");
    }
    let header_mb = bytes("target_bytes") as f64 / 1e6 - expected_mb;
    assert!((0.0..3.0).contains(&header_mb), "said beforehand: {expected_mb} MB; {report}");
    // What was predicted stands in the report, next to what was measured.
    let fit = &report["fit"];
    let predicted_mb = fit["expected_bytes"].as_f64().expect("bytes") / 1e6;
    assert!((predicted_mb - expected_mb).abs() < 0.51, "{fit}");
    assert!(fit["memory_bytes"].as_u64() > Some(bytes("target_bytes")), "{fit}");
    let score = |model: &str| report["eval"][model]["overall"]["n"].as_u64();
    assert_eq!((score("source"), score("target")), (Some(1), Some(1)), "{report}");
    assert!(report["eval"]["sentences"][0].as_str().expect("a sentence").contains("on 1 item;"));
    let distance = &report["distance"];
    let divergence = distance["divergence"]["value"].as_f64().expect("a divergence");
    assert!(divergence > 0.0 && divergence < 3.0, "{distance}");
    assert_eq!(distance["tokens"], 255);
    assert!(report["source_tok_s"].as_f64() > Some(0.0), "{report}");
    user.fails(words, 2, "small.gguf exists already");
    let names = names(&user.path("work"));
    assert!(!names.iter().any(|name| name.contains(".part")), "{names:?}");
    let lossy = "the source is Q3_K_M, which has lost precision already";
    user.fails("quantize small.gguf --to Q4_0", 2, lossy);
    // Two blocks may say spaces only, if nothing holds them to a schema.
    user.write("sky.json", SKY);
    let said = user.json("chat -m ./small.gguf --schema sky.json --max-tokens 40 Hi");
    assert!(said["sky"] == "blue" || said["sky"] == "grey", "{said}");
}

const SKY: &str = r#"{"type": "object", "additionalProperties": false, "required": ["sky"],
    "properties": {"sky": {"enum": ["blue", "grey"]}}}"#;

/// A model in two files of half the tensors each, as `llama-gguf-split` writes them. Returns the file that was split, and
/// the first part.
fn split_in_two(user: &User) -> (PathBuf, PathBuf) {
    user.shallow_model("whole.gguf");
    let whole = user.path("work/whole.gguf");
    let (header, bytes) = (Gguf::open(&whole).expect("a model"), user.read("whole.gguf"));
    let tensors = header.tensors();
    let (key_count, keys, data) = sections(&header, &bytes);
    let (first, second) = tensors.split_at(tensors.len() / 2);
    // The types are u16 (2) and i32 (5).
    let key = |name: &str, kind: u32, value: &[u8]| {
        let length = (name.len() as u64).to_le_bytes();
        [&length[..], name.as_bytes(), &kind.to_le_bytes(), value].concat()
    };
    let split = |number: u16| {
        let count = (tensors.len() as i32).to_le_bytes();
        let parts = [key("split.no", 2, &number.to_le_bytes()), key("split.count", 2, &[2, 0])];
        [parts.concat(), key("split.tensors.count", 5, &count)].concat()
    };
    let keys = [keys, &split(0)].concat();
    let path = |number: u16| user.path(&format!("work/split-0000{number}-of-00002.gguf"));
    std::fs::write(path(1), file((key_count + 3, &keys), first, data)).expect("written");
    std::fs::write(path(2), file((3, &split(1)), second, data)).expect("written");
    (whole, path(1))
}

#[test]
fn a_split_model_is_quantized_into_one_file() {
    let user = user_of(&["smollm2"]);
    let (whole, first) = split_in_two(&user);
    let shapes = |path: &Path| {
        let header = Gguf::open(path).expect("a model");
        let shape = |one: &GgufTensor| (one.name.clone(), one.dims.clone());
        let mut shapes: Vec<_> = header.tensors().iter().map(shape).collect();
        shapes.sort();
        shapes
    };
    assert_eq!(shapes(&first), shapes(&whole), "both parts are read");
    let words = "quantize split-00001-of-00002.gguf --to Q4_0 --no-importance";
    user.prints(format!("{words} --no-report --out one.gguf"));
    let written = user.path("work/one.gguf");
    assert_eq!(shapes(&written), shapes(&whole));
    let mode = |path: &Path| std::fs::metadata(path).expect("a file").permissions().mode();
    assert_eq!(mode(&written), mode(&whole), "the same users may read it");
    let header = Gguf::open(&written).expect("a model");
    assert_eq!(header.number("split.count"), None, "it is one file");
    assert!(header.text("hob.quantize.source_sha256").is_some());
    let [first, second] = ["split-00001-of-00002.gguf", "split-00002-of-00002.gguf"];
    assert_eq!(names(&user.path("work")), ["one.gguf", first, second, "whole.gguf"]);
}

/// The command in a shell that lets no file grow beyond 40 MB (80 MB in bash), as if the disk were full.
fn with_small_files(command: &Command) -> Command {
    let mut limited = Command::new("/bin/sh");
    limited.args(["-c", "ulimit -c 0; ulimit -f 80000; exec \"$@\"", "sh"]);
    limited.arg(command.get_program()).args(command.get_args()).env_clear();
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    limited
}

#[test]
fn ctrl_c_and_a_full_disk_while_a_chat_model_is_quantized_leave_nothing() {
    let user = user_of(&["smollm2"]);
    let work = user.path("work");
    let words = "quantize smollm2 --to Q4_K_M --no-importance";
    let limited = with_small_files(&user.process(words)).output().expect("a shell");
    let said = String::from_utf8_lossy(&limited.stderr);
    assert_eq!(limited.status.code(), Some(6), "{said}");
    assert_eq!(names(&work), Vec::<String>::new(), "{said}");
    let mut writing = user.process(words);
    let mut writing = writing.stderr(Stdio::null()).spawn().expect("hob starts");
    let has_begun = || {
        let mut files = std::fs::read_dir(&work).expect("a folder").flatten();
        files.any(|file| file.metadata().is_ok_and(|draft| draft.len() > 0))
    };
    until_begun(&mut writing, has_begun);
    let drafts = names(&work);
    assert!(drafts.iter().all(|name| !name.ends_with(".gguf")), "no model yet: {drafts:?}");
    kill("-INT", writing.id());
    assert_eq!(writing.wait().expect("it ends").code(), Some(130));
    assert_eq!(names(&work), Vec::<String>::new());
}

#[test]
fn a_model_has_no_distance_from_itself() {
    let user = user_of(&["smollm2"]);
    user.write("article.txt", ARTICLE);
    let same = "quantize distance smollm2 smollm2 --text article.txt --pieces 2 --json";
    let same = user.json(same);
    assert_eq!(
        (&same["divergence"]["value"], &same["same_top"]["value"]),
        (&0.0.into(), &1.0.into())
    );
    let perplexity = |field: &str| same["reference_ppl"][field].as_f64().expect("a perplexity");
    // Other processors round the products of a matrix otherwise, hence the margin.
    assert!((perplexity("value") / 45.0847 - 1.0).abs() < 0.005, "{same}");
    assert!((perplexity("error") / 5.92181 - 1.0).abs() < 0.02, "{same}");
}

#[test]
fn the_distance_is_measured_for_each_type_of_layer_alone() {
    let user = user_of(&["smollm2"]);
    user.write("article.txt", ARTICLE);
    // Two blocks have every type of layer, and each comparison loads and computes both models.
    user.shallow_model("few.gguf");
    let plain = "--no-importance --no-report --out small.gguf";
    user.prints(format!("quantize few.gguf --to Q4_0 {plain}"));
    let layers = "--by-layer-type --json --text article.txt --pieces 1";
    let layers = user.json(format!("quantize distance few.gguf small.gguf {layers}"));
    let whole = layers["whole"]["divergence"]["value"].as_f64().expect("a divergence");
    let rows = layers["layers"].as_array().expect("rows").iter();
    let alone: Vec<f64> =
        rows.map(|row| row["distance"]["divergence"]["value"].as_f64().expect("one")).collect();
    assert!(alone.len() >= 5 && alone.is_sorted_by(|one, next| one >= next), "{layers}");
    assert!(alone.iter().all(|one| *one > 0.0 && *one < whole), "less than all: {layers}");
}

#[test]
fn what_cannot_be_quantized_is_refused_with_the_reason() {
    let user = user_of(&["smollm2"]);
    user.write("text.txt", "too short");
    user.write("no.gguf", "not a model");
    user.write("other.gguf", "not a model");
    let rows = [
        ("quantize smollm2 --to Q4", "'Q4' is not a type of weights; there are F32, F16"),
        ("quantize kokoro --to 4-bit", "model 'kokoro' is not stored"),
        ("quantize . --to Q4_0", "the folder . has 2 models"),
        (
            "quantize smollm2 --to IQ2_XS --no-importance",
            "a model of type IQ2_XS gives senseless answers without an importance matrix",
        ),
        ("quantize smollm2 --to MXFP4_MOE --dry-run", "this model has no experts"),
        ("quantize no.gguf --to Q4_0", "no.gguf"),
        ("quantize nowhere --to Q4_0", "nowhere"),
    ];
    for (words, expected) in rows {
        let refused = user.hob(words).assert().failure();
        assert!(stderr(&refused).contains(expected), "{words:?}: {}", stderr(&refused));
    }
    let iq = user.notes("quantize smollm2 --to IQ3_M --dry-run");
    assert!((60.0..130.0).contains(&mb_after(&iq, "to IQ3_M: ")), "{iq}");
    assert!(iq.contains("IQ3_M does not fit the rows of "), "rows of 576: {iq}");
    for (text, expected) in [
        ("--importance text.txt", "tokens (expected at least 512)"),
        ("--text text.txt", "tokens (expected at least 1024)"),
    ] {
        let line = format!("quantize smollm2 --to Q4_0 {text} --out x.gguf");
        stderr(&user.hob(line).assert().failure()).has(&[expected]);
    }
    let wrong = "quantize smollm2 --to Q4_0 --text none.txt --out x.gguf";
    user.fails(wrong, 2, "none.txt: No such file");
    let left = names(&user.path("work"));
    assert_eq!(left, ["no.gguf", "other.gguf", "text.txt"], "it is found before any work");
}

#[test]
fn the_speech_model_gets_a_smaller_copy_that_speaks_and_a_page_to_listen() {
    let user = user_of(&["kokoro", "whisper-base"]);
    // Short, because each model speaks the first sentence four times: twice in windows, and twice as a whole.
    user.write("one.txt", "The library was built.\n\n");
    let dry = user.hob("quantize kokoro --to 3-bit --dry-run").assert().success();
    stdout(&dry).has(&["would store the model kokoro-3bit"]);
    stderr(&dry).has(&["listen"]);
    let plan = user.json("quantize kokoro --to 3-bit --dry-run --json");
    assert_eq!(plan["target"], "kokoro-3bit", "{plan}");
    assert!(plan["source_bytes"].as_u64() > plan["expected_bytes"].as_u64(), "{plan}");
    // The page is tried before anything else is read.
    let wrong = "quantize kokoro --to 4bit --sentences none.txt --page no/p.html";
    user.fails(wrong, 1, "cannot write the page for listening");
    let report = user.json("quantize kokoro --to 4bit --sentences one.txt --json");
    let bytes = |field: &str| report[field].as_f64().expect("bytes");
    let share = bytes("target_bytes") / bytes("source_bytes");
    assert!((0.45..0.55).contains(&share), "{share}");
    let mean = |field: &str| report["distance"][field]["value"].as_f64().expect("a mean");
    assert!(mean("log_mel_db") > 0.5 && mean("log_mel_db") < 8.0, "{report}");
    assert!((mean("length_ratio") - 1.0).abs() < 0.2, "{report}");
    for field in ["source_word_errors", "target_word_errors"] {
        let share = report[field]["value"].as_f64().expect("hob has listened");
        assert!(share < 0.3, "{report}");
    }
    assert_eq!(report["sentences"].as_array().expect("sentences").len(), 1);
    let page = std::fs::read_to_string(user.path("work/kokoro-4bit-listen.html"));
    let page = page.expect("a page");
    assert_eq!(page.matches("data:audio/flac;base64,").count(), 2, "the sentence twice");
    let fit = |name: &str| mb_after(&user.prints(&["fit", name]), " fits: it needs ");
    let (packed_mb, whole_mb) = (fit("kokoro-4bit"), fit("kokoro"));
    assert!((packed_mb - whole_mb).abs() < 5.0, "unpacked when it is loaded: {packed_mb} MB");
    let models = user.json("models --json");
    let listed = models.as_array().expect("rows").iter();
    let small: Vec<&Value> = listed.filter(|row| row["name"] == "kokoro-4bit").collect();
    assert_eq!((small.len(), &small[0]["kind"]), (1, &"speech".into()), "{models}");
    user.prints("say -m kokoro-4bit -o small.wav 'Good evening.'");
    user.prints("say -o whole.wav 'Good evening.'");
    assert_ne!(user.read("small.wav"), user.read("whole.wav"));
    let rows = [
        ("quantize kokoro --to 4-bit", "'kokoro-4bit' is stored already"),
        ("quantize kokoro --to 4-bit", "run `hob models rm kokoro-4bit`"),
        ("quantize kokoro --to 6-bit --page one.txt", "one.txt exists already"),
        ("quantize kokoro --to 6-bit --as mandarin", "is the name of another"),
        ("quantize kokoro-4bit --to 3-bit", "is quantized already"),
        ("quantize kokoro --to Q4_K_M", "has no type 'Q4_K_M'"),
        ("quantize kokoro --to 6-bit --out x", "--as names"),
        ("quantize kokoro --to 6-bit --no-report", "are for chat models"),
        ("quantize kokoro --to 6-bit --pieces 2", "are for chat models"),
        ("quantize kokoro --to 6-bit --no-importance", "--no-importance, "),
        ("quantize kokoro --to 6-bit --voice af_missing", "no voice is called 'af_missing'"),
        ("quantize kokoro --to 6-bit --voice ff_siwis", "needs espeak-ng"),
        ("quantize whisper-base --to Q4_0", "is not a chat model"),
        ("quantize whisper-base --to Q4_0", "`hob models` lists the models and their kinds"),
    ];
    for (words, expected) in rows {
        let refused = stderr(&user.hob(words).assert().failure());
        assert!(refused.contains(expected), "{words:?}: {refused}");
    }
    let stored = user.prints("models");
    assert!(!stored.contains("kokoro-6bit"), "nothing half-made is a model: {stored}");
}

#[test]
fn the_speech_model_is_restored_in_floats_and_says_so() {
    let user = user_of(&["kokoro"]);
    user.write("one.txt", "Good evening.");
    let blend = "af_heart(2)+af_bella(1)";
    std::fs::write(user.path("hob/kept_voices.txt"), format!("warm={blend}\n")).expect("written");
    user.write("hob.toml", "[speech]\ndefault_voice = \"warm\"\n");
    let words = "quantize kokoro --to float --sentences one.txt --json";
    let made = user.hob(words).assert().success();
    stderr(&made).has(&["restored from its integers"]);
    let report = json_stdout(&made);
    let bytes = |field: &str| report[field].as_f64().expect("bytes");
    let share = bytes("target_bytes") / bytes("source_bytes");
    assert!((3.0..4.0).contains(&share), "{share}");
    assert_eq!((&report["bits"], &report["front_error"]), (&32.into(), &0.0.into()));
    assert_eq!(report["voice"], blend);
    // The front computes in floats already, so rhythm and pitch are the same. The vocoder rounds no more.
    let mean = |field: &str| report["distance"][field]["value"].as_f64().expect("a mean");
    assert_eq!((mean("duration_ms"), mean("pitch_cents")), (0.0, 0.0), "{report}");
    assert!(mean("log_mel_db") > 0.0 && mean("log_mel_db") < 4.0, "{report}");
    // Both forms take the memory that was said beforehand.
    let said = stderr(&made);
    let (before, after) = said.split_once("to float: ").expect("what to expect");
    for (said, cost) in [(before, "source_cost"), (after, "target_cost")] {
        let expected_mb = mb_after(said, "on the disk, ");
        let ratio = report[cost]["memory_bytes"].as_f64().expect("bytes") / 1e6 / expected_mb;
        assert!((0.8..1.25).contains(&ratio), "{ratio} of {said}");
    }
    let fit = user.prints("fit kokoro-float");
    assert!(fit.starts_with("kokoro-float fits: it needs 4"), "{fit}");
    let floats = "the weights of kokoro-float are floats already";
    user.fails("quantize kokoro-float --to f32", 2, floats);
    let back = user.notes("quantize kokoro-float --to 8-bit --dry-run");
    assert!(back.contains("unpacks the weights into floats"), "{back}");
}

#[test]
fn ctrl_c_while_the_speech_model_is_packed_leaves_nothing() {
    let user = user_of(&["kokoro"]);
    let folder = user.path("hob/models/kokoro-4bit");
    let mut packing = user.process("quantize kokoro --to 4-bit");
    let mut packing = packing.stderr(Stdio::null()).spawn().expect("hob starts");
    let has_begun = || std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
    until_begun(&mut packing, has_begun);
    kill("-INT", packing.id());
    assert_eq!(packing.wait().expect("it ends").code(), Some(130));
    assert_eq!(names(&folder), Vec::<String>::new());
    assert_eq!(names(&user.path("work")), Vec::<String>::new());
}
