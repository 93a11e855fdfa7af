//! A tiny model with random weights, written in whisper.cpp's format: what loads, what is refused, and that every
//! option leads to an answer of the right shape.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use tempfile::TempDir;

use super::convert::{Conversion, convert};
use super::file::FileTensor;
use super::tokens::tests::small_vocabulary;
use super::words::PlacedWord;
use super::*;

const STATE: usize = 64;
const VOCAB: i32 = 51_865;

/// A file in whisper.cpp's format, in pieces that a test can change.
struct TinyFile {
    head: Vec<i32>,
    tensors: Vec<(String, Vec<usize>)>,
    /// With larger embeddings of tokens, logits are further apart.
    embedding_scale: f32,
    /// The number of ggml's type of the matrices. All other tensors are F32.
    matrix_type: i32,
}

impl TinyFile {
    fn new() -> TinyFile {
        let state = STATE as i32;
        let head = vec![0x6767_6d6c, VOCAB, 1500, state, 2, 1, 448, state, 2, 2, 80, 1];
        let sizes = Sizes {
            vocab: VOCAB as usize,
            audio_ctx: 1500,
            audio_state: STATE,
            audio_layers: 1,
            text_ctx: 448,
            text_layers: 2,
            mels: 80,
            ..Sizes::default()
        };
        // Trailing dimensions of 1 are not written.
        let written = |dims: [usize; 3]| {
            let count = dims.iter().rposition(|dim| *dim > 1).map_or(1, |last| last + 1);
            dims[..count].to_vec()
        };
        let names = weights::names(&sizes).into_iter();
        let tensors = names.map(|(name, dims)| (name, written(dims))).collect();
        TinyFile { head, tensors, embedding_scale: 1.0, matrix_type: 0 }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(7);
        let mut bytes = Vec::new();
        let ints = |bytes: &mut Vec<u8>, values: &[i32]| {
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        };
        ints(&mut bytes, &self.head);
        ints(&mut bytes, &[80, 201]);
        bytes.extend(
            (0..80 * 201).flat_map(|n| (f32::from(n % 201 == n / 201) * 0.01).to_le_bytes()),
        );
        let vocabulary = small_vocabulary();
        ints(&mut bytes, &[vocabulary.len() as i32]);
        for token in vocabulary {
            ints(&mut bytes, &[token.len() as i32]);
            bytes.extend(token);
        }
        for (name, dims) in &self.tensors {
            let is_matrix = dims.len() == 2 && name.ends_with("weight");
            let number = if is_matrix { self.matrix_type } else { 0 };
            ints(&mut bytes, &[dims.len() as i32, name.len() as i32, number]);
            ints(&mut bytes, &dims.iter().map(|dim| *dim as i32).collect::<Vec<_>>());
            bytes.extend(name.as_bytes());
            let count: usize = dims.iter().product();
            let is_embedding = name == "decoder.token_embedding.weight";
            let scale = if is_embedding { self.embedding_scale } else { 1.0 };
            let values: Vec<f32> = (0..count).map(|_| (random.f32() - 0.5) * scale).collect();
            let kind = ggml::Type::of_file(number).expect("a type of weights");
            bytes.extend(kind.quantized(&values, dims[0]).expect("whole blocks"));
        }
        bytes
    }

    fn written(&self) -> (TempDir, PathBuf) {
        written(&self.bytes())
    }
}

fn written(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tiny.bin");
    fs::File::create(&path).and_then(|mut file| file.write_all(bytes)).expect("written");
    (folder, path)
}

pub(super) fn tiny() -> Whisper {
    let (_folder, path) = TinyFile::new().written();
    Whisper::load(&path, 1, &CardUse::Allowed).expect("a model")
}

/// Its choices are clear, so no guess is given up because of rounding.
fn clear() -> Whisper {
    let (_folder, path) = TinyFile { embedding_scale: 200.0, ..TinyFile::new() }.written();
    Whisper::load(&path, 1, &CardUse::Allowed).expect("a model")
}

fn tone(seconds: f32) -> Vec<f32> {
    (0..(seconds * 16_000.0) as usize).map(|n| (n as f32 * 0.1).sin() * 0.3).collect()
}

fn english() -> WhisperOptions {
    WhisperOptions { language: Some("en".to_owned()), ..WhisperOptions::default() }
}

/// Encodes a tone in the smallest window.
fn encoded(whisper: &mut Whisper, seconds: f32) -> Window {
    let sound = tone(seconds);
    let window = Window::trimmed(sound.len(), 1500);
    whisper.encode(&sound, window, &|| false).expect("encoded");
    window
}

/// The logits after one token of a step.
fn logits_at(whisper: &mut Whisper, step: decoder::Step<'_>, row: i32) -> Vec<f32> {
    decoder::logits(&whisper.weights, &whisper.sizes, &mut whisper.backends, step, &[row])
        .expect("logits")
}

fn distance(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0_f32, f32::max)
}

#[test]
fn a_card_that_does_not_compute_is_an_error_that_says_what_to_do() {
    let (_folder, path) = TinyFile::new().written();
    let named: CardUse = "Nope7".parse().expect("a device");
    let refused = Whisper::load(&path, 1, &named).expect_err("no such card").to_string();
    assert!(refused.starts_with("there is no device Nope7"), "{refused}");
    let refused = WhisperLoadError::from(NoBackend::Card("CUDA0 (a card)".to_owned())).to_string();
    assert!(refused.starts_with("CUDA0 (a card) does not start; "), "{refused}");
    assert!(refused.contains("transcription.device"), "{refused}");
}

#[test]
fn windows_are_trimmed_and_never_shorter_than_ten_seconds() {
    let positions = |seconds: f64| Window::trimmed((seconds * 16_000.0) as usize, 1500).positions;
    for (seconds, expected) in [(0.0, 512), (6.9, 512), (12.0, 752), (26.9, 1500), (30.0, 1500)] {
        assert_eq!(positions(seconds), expected, "{seconds} s");
    }
    let window = Window::trimmed(16_000, 1500);
    assert_eq!(window.sounding, 50);
    assert_eq!(window.full(1500), Window { positions: 1500, sounding: 50 });
}

#[test]
fn the_number_of_tokens_tells_the_languages() {
    for (size, count, last) in
        [(51_864, 1, "en"), (51_865, 99, "su"), (51_866, 100, "yue"), (0, 1, "en")]
    {
        let codes: Vec<&str> = languages(size).collect();
        assert_eq!((codes.len(), codes.last()), (count, Some(&last)), "{size}");
    }
}

#[test]
fn every_option_leads_to_an_answer() {
    let mut whisper = tiny();
    assert_eq!(whisper.languages().count(), 99);
    let never = || false;
    for (seconds, language, words) in
        [(0.0, None, false), (1.0, Some("de"), true), (30.0, Some("en"), false)]
    {
        let options = WhisperOptions {
            task: TranscriptTask::Translate,
            language: language.map(str::to_owned),
            prompt: Some("hello world".to_owned()),
            temperature: Some(0.4),
            words,
            segments: words,
            draft: vec![7, 9],
            likely_language: None,
        };
        let text = whisper.transcribe(&tone(seconds), &options, &never).expect("an answer");
        assert!(language.is_none_or(|language| text.language == language), "{text:?}");
        for segment in &text.segments {
            assert!(segment.start_s <= segment.end_s && segment.end_s <= f64::from(seconds));
        }
        assert!(text.words.windows(2).all(|pair| pair[0].start_s <= pair[1].start_s));
    }
}

#[test]
fn matrices_of_every_published_quant_are_computed() {
    let options = english();
    let heard = |matrix_type: i32| {
        let (_folder, path) = TinyFile { matrix_type, ..TinyFile::new() }.written();
        let mut whisper = Whisper::load(&path, 1, &CardUse::Allowed).expect("a model");
        whisper.transcribe(&tone(1.0), &options, &|| false).expect("an answer")
    };
    // F32, Q8_0, F16, Q5_0 and Q5_1.
    let texts = [0, 8, 1, 6, 7].map(heard);
    assert_eq!(texts[0], texts[1], "floats become Q8_0 when they are loaded");
    assert!(texts.iter().all(|text| text.language == "en"), "{texts:?}");
}

#[test]
fn parts_that_threads_convert_have_the_bytes_of_a_whole_tensor() {
    // F32, F16 and Q5_0, which stays as it is.
    for matrix_type in [0, 1, 6] {
        let mut tiny = TinyFile { matrix_type, ..TinyFile::new() };
        tiny.tensors.push(("odd.conv.weight".to_owned(), vec![3, 5, 7]));
        tiny.tensors.push(("long.bias".to_owned(), vec![200_001]));
        let (_folder, path) = tiny.written();
        let (mut file, _) = WhisperFile::open(&path).expect("a Whisper file");
        let tensors: Vec<FileTensor> =
            std::iter::from_fn(|| file.next_tensor().expect("a tensor")).collect();
        let mut whole = Vec::new();
        let mut conversions = Vec::new();
        for tensor in tensors {
            let (kind, dims) = (tensor.kind, tensor.dims);
            let row_bytes = kind.row_bytes(dims[0]).expect("whole blocks");
            let bytes = file.bytes_at(tensor.at, row_bytes * dims[1] * dims[2]).expect("bytes");
            let floats = kind.to_floats(&bytes, dims.iter().product()).expect("floats");
            let conversion = Conversion::new(tensor, dims).expect("a size that fits");
            let is_same = conversion.to == kind;
            let quantized = || conversion.to.quantized(&floats, dims[0]).expect("whole blocks");
            whole.push(if is_same { bytes } else { quantized() });
            conversions.push(conversion);
        }
        for threads in [1, 2, 5] {
            let mut parts = 0;
            let mut filled: Vec<Vec<u8>> =
                whole.iter().map(|bytes| vec![0xaa; bytes.len()]).collect();
            let write = |index: usize, at: usize, bytes: &[u8]| {
                parts += 1;
                filled[index][at..at + bytes.len()].copy_from_slice(bytes);
            };
            convert(&mut file, &conversions, threads, write).expect("converted");
            assert!(parts > conversions.len(), "large tensors have several parts");
            assert!(filled == whole, "type {matrix_type}, {threads} threads");
        }
        let file_now = fs::OpenOptions::new().write(true).open(&path).expect("the file");
        file_now.set_len(100_000).expect("shorter");
        let cut = convert(&mut file, &conversions, 3, |_, _, _| {});
        assert!(matches!(cut, Err(WhisperFileError::Io(_))), "{cut:?}");
    }
}

#[test]
fn a_doubtful_text_is_decoded_again_with_the_full_window_and_at_higher_temperatures() {
    let mut whisper = tiny();
    let never = || false;
    let sound = tone(1.0);
    let options = english();
    let window = encoded(&mut whisper, 1.0);
    let mut plan = whisper.plan(&options, "en", 1.0, &never);
    plan.positions = window.positions;
    // With random weights, every token is unlikely.
    assert!(whisper.pass(&plan).expect("a text").is_doubted());
    let seeded = fastrand::Rng::with_seed(SEED);
    assert_eq!(whisper.random, seeded, "the first pass draws no random numbers");
    whisper.transcribe(&sound, &options, &never).expect("an answer");
    assert_ne!(whisper.random, seeded, "a later one does");
    let logits = |whisper: &mut Whisper| {
        let tokens: &[u32] = &[50_258];
        let (branches, positions) = (None, 1500);
        let step = decoder::Step { tokens, past: 0, branches, positions, cancelled: &never };
        logits_at(whisper, step, 0)
    };
    let heard = logits(&mut whisper);
    whisper.encode(&sound, window.full(1500), &never).expect("encoded");
    assert!(logits(&mut whisper) == heard, "the last window was the full one");
}

#[test]
fn a_warm_up_is_one_pass() {
    let mut whisper = tiny();
    whisper.warm_up().expect("computed");
    // The text is doubtful, but no further pass has drawn random numbers.
    assert_eq!(whisper.random, fastrand::Rng::with_seed(SEED));
}

#[test]
fn the_end_of_the_prompt_comes_before_the_text() {
    let whisper = tiny();
    let never = || false;
    let before = |prompt: &str| -> Vec<u32> {
        let prompt = Some(prompt.to_owned());
        let options = WhisperOptions { prompt, ..WhisperOptions::default() };
        let plan = whisper.plan(&options, "en", 1.0, &never);
        assert_eq!(plan.prompt[plan.start], whisper.tokens.start());
        plan.prompt[..plan.start].to_vec()
    };
    assert!(before(" ").is_empty());
    let short = before("hello world ");
    assert_eq!(short[0], whisper.tokens.previous());
    assert_eq!(whisper.tokens.text(&short[1..]), " hello world");
    let long = before(&format!("{}hello world", "he ".repeat(300)));
    assert_eq!((long[0], long.len()), (short[0], 224), "half of the context");
    assert!(whisper.tokens.text(&long[1..]).ends_with(" he hello world"));
}

#[test]
fn the_same_sound_has_the_same_text_at_any_temperature() {
    let mut whisper = tiny();
    let options = WhisperOptions { temperature: Some(1.0), ..english() };
    let mut heard = || {
        let text = whisper.transcribe(&tone(1.0), &options, &|| false).expect("an answer");
        (text, whisper.random.clone())
    };
    let first = heard();
    assert_ne!(first.1, fastrand::Rng::with_seed(SEED), "random numbers were drawn");
    assert_eq!(heard(), first);
}

/// A word for each of these beginnings, counted in bytes: each takes a quarter of a second, and begins half a second after
/// the one before.
fn placed(beginnings: &[usize]) -> Vec<PlacedWord> {
    let word = |(number, first_token): (usize, &usize)| {
        let start_s = number as f64 * 0.5;
        let word = HeardWord { word: "word".to_owned(), start_s, end_s: start_s + 0.25 };
        PlacedWord { word, first_token: *first_token }
    };
    beginnings.iter().enumerate().map(word).collect()
}

#[test]
fn a_text_without_times_is_cut_at_the_ends_of_its_sentences() {
    type Beginnings = fn(&str) -> Vec<usize>;
    type Row = (&'static str, Beginnings, &'static [(&'static str, f64, f64)]);
    let whisper = tiny();
    let spaces: Beginnings = |text| text.match_indices(' ').map(|(at, _)| at).collect();
    let letters: Beginnings = |text| text.char_indices().map(|(at, _)| at).collect();
    let rows: [Row; 9] = [
        (
            " Mr. Fox paid 1.50 at noon. He left.",
            spaces,
            &[(" Mr. Fox paid 1.50 at noon.", 0.0, 2.75), (" He left.", 3.0, 3.75)],
        ),
        (
            "はい。そうです。行きます。",
            letters,
            &[("はい。", 0.0, 1.25), ("そうです。", 1.5, 3.75), ("行きます。", 4.0, 6.0)],
        ),
        (
            "真的？！他说“好。”走吧。",
            letters,
            &[("真的？！", 0.0, 1.75), ("他说“好。”", 2.0, 4.75), ("走吧。", 5.0, 6.0)],
        ),
        (" वह घर आया। वह गया।", spaces, &[(" वह घर आया।", 0.0, 1.25), (" वह गया।", 1.5, 2.25)]),
        // A full stop inside a sentence, and one that is also its end.
        (
            " We met at 5 p.m. on Monday. We ate.",
            spaces,
            &[(" We met at 5 p.m. on Monday.", 0.0, 3.25), (" We ate.", 3.5, 4.25)],
        ),
        (
            " We met at 5 p.m. Then we all ate.",
            spaces,
            &[(" We met at 5 p.m.", 0.0, 2.25), (" Then we all ate.", 2.5, 4.25)],
        ),
        // The note has no time of its own.
        (
            " Good morning to you. ♪",
            |_| vec![0, 5, 13, 16],
            &[(" Good morning to you. ♪", 0.0, 1.75)],
        ),
        ("?", |_| Vec::new(), &[("?", 0.0, 0.0)]),
        ("", |_| Vec::new(), &[]),
    ];
    for (text, beginnings, expected) in rows {
        let mut pass = Pass::default();
        pass.tokens = text.bytes().map(u32::from).collect();
        let found = whisper.sentences(&pass, &placed(&beginnings(text)), "en", 6.0);
        let found: Vec<(&str, f64, f64)> =
            found.iter().map(|part| (part.text.as_str(), part.start_s, part.end_s)).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn short_sound_and_none_lead_to_an_answer() {
    let mut whisper = tiny();
    let options = english();
    for seconds in [0.0, 2.0] {
        whisper.transcribe(&tone(seconds), &options, &|| false).expect("an answer");
    }
}

#[test]
fn the_longest_prompt_and_the_longest_text_fit_into_the_context() {
    let options = WhisperOptions {
        prompt: Some("hello world ".repeat(300)),
        // Random tokens do not repeat, so the text ends at its limit.
        temperature: Some(1.0),
        ..english()
    };
    tiny().transcribe(&tone(30.0), &options, &|| false).expect("an answer");
}

#[test]
fn a_text_among_others_is_decoded_as_if_it_were_alone() {
    let mut whisper = tiny();
    let never = || false;
    let window = encoded(&mut whisper, 1.0);
    let mut last_logits = |tokens: &[u32], past: usize, branches: Option<&decoder::Branches>| {
        let positions = window.positions;
        let step = decoder::Step { tokens, past, branches, positions, cancelled: &never };
        logits_at(&mut whisper, step, tokens.len() as i32 - 1)
    };
    let hidden = f32::NEG_INFINITY;
    let alone = last_logits(&[50_258, 50_259, 9, 7], 0, None);
    last_logits(&[50_258, 50_259], 0, None);
    // Two texts with one more token each, then two that both continue the second of them.
    let first = [0.0, 0.0, 0.0, hidden, 0.0, 0.0, hidden, 0.0].to_vec();
    last_logits(&[5, 9], 2, Some(&decoder::Branches { depth: 2, mask: first }));
    let second = [0.0, 0.0, hidden, 0.0, 0.0, hidden, 0.0, 0.0, hidden, 0.0, hidden, 0.0].to_vec();
    let together = last_logits(&[6, 7], 4, Some(&decoder::Branches { depth: 3, mask: second }));
    let other = last_logits(&[50_258, 50_259, 5, 7], 0, None);
    assert!(
        distance(&alone, &together) < 0.02 * distance(&alone, &other),
        "{}",
        distance(&alone, &together)
    );
}

/// Guesses that are right, that begin right, that end early, and that are wrong.
fn drafts(tokens: &[u32]) -> Vec<Vec<u32>> {
    let middle = tokens.len() / 2;
    let wrong = [&tokens[..middle], &[11], &tokens[middle..]].concat();
    let longer = [tokens, &[9, 9, 9]].concat();
    vec![tokens.to_vec(), tokens[..middle].to_vec(), wrong, longer, vec![11; 40]]
}

#[test]
fn a_draft_changes_no_text() {
    let mut whisper = tiny();
    let never = || false;
    // Without times, with them, and with random tokens.
    for (seconds, temperature) in [(0.5, 0.0), (10.5, 0.0), (0.5, 0.8)] {
        let window = encoded(&mut whisper, seconds);
        let options = WhisperOptions::default();
        let mut plan = whisper.plan(&options, "en", f64::from(seconds), &never);
        (plan.positions, plan.temperature) = (window.positions, temperature);
        let mut tokens = |draft: Vec<u32>| {
            plan.draft = draft;
            whisper.random.seed(SEED);
            whisper.pass(&plan).expect("a text").tokens
        };
        let plain = tokens(Vec::new());
        for draft in drafts(&plain) {
            assert_eq!(tokens(draft.clone()), plain, "{seconds} s, {draft:?}");
        }
    }
}

#[test]
fn a_likely_language_changes_no_text() {
    // The second chooses random tokens.
    for (mut whisper, temperature) in [(clear(), None), (tiny(), Some(0.8))] {
        let mut heard = |likely: Option<&str>| {
            let likely_language = likely.map(str::to_owned);
            let options =
                WhisperOptions { likely_language, temperature, ..WhisperOptions::default() };
            whisper.transcribe(&tone(1.0), &options, &|| false).expect("an answer")
        };
        let plain = heard(None);
        let wrong = if plain.language == "en" { "de" } else { "en" };
        for likely in [wrong, "xx", plain.language.as_str()] {
            assert_eq!(heard(Some(likely)), plain, "{likely}");
        }
    }
}

#[test]
fn a_pass_whose_language_is_wrong_ends_with_its_first_step() {
    let mut whisper = clear();
    let never = || false;
    let window = encoded(&mut whisper, 0.5);
    let options = WhisperOptions::default();
    let language = whisper.language(&options, window, &never).expect("a language");
    let right = Some(language.as_str());
    for (likely, is_over) in [(None, false), (right, false), (Some("xx"), true)] {
        let mut plan = whisper.plan(&options, "en", 0.5, &never);
        (plan.positions, plan.likely_language) = (window.positions, likely);
        let pass = whisper.pass(&plan).expect("a text");
        assert_eq!((pass.language, pass.tokens.is_empty()), (right, is_over), "{likely:?}");
    }
}

#[test]
fn a_wrong_guess_leaves_nothing_in_the_cache() {
    let mut whisper = tiny();
    let never = || false;
    let window = encoded(&mut whisper, 1.0);
    let mut logits = |tokens: &[u32], past: usize, row: i32| {
        let positions = window.positions;
        let step = decoder::Step { tokens, past, branches: None, positions, cancelled: &never };
        logits_at(&mut whisper, step, row)
    };
    let alone = logits(&[50_258, 50_259, 9, 7, 3], 0, 4);
    let other = logits(&[50_258, 50_259, 9, 5, 3], 0, 4);
    // The first of three guesses is right. Then there is one more token, and a guess.
    logits(&[50_258, 50_259], 0, 1);
    logits(&[9, 7, 5, 6], 2, 1);
    let later = logits(&[3, 8], 4, 0);
    assert!(
        distance(&alone, &later) < 0.02 * distance(&alone, &other),
        "{}",
        distance(&alone, &later)
    );
}

#[test]
fn guessed_tokens_are_chosen_like_others() {
    let mut whisper = clear();
    let never = || false;
    let window = encoded(&mut whisper, 0.5);
    let mut plan = whisper.plan(&WhisperOptions::default(), "en", 0.5, &never);
    plan.positions = window.positions;
    let plain = whisper.search(&plan, &[]).expect("a text").tokens;
    assert!(plain.len() > 4, "{plain:?}");
    for draft in drafts(&plain) {
        let drafted = whisper.search(&plan, &draft).expect("a text").tokens;
        assert_eq!(drafted, plain, "{draft:?}");
    }
}

#[test]
fn sound_that_is_too_long_an_unknown_language_and_a_cancel_are_errors() {
    let mut whisper = tiny();
    let plain = WhisperOptions::default();
    let too_long = whisper.transcribe(&vec![0.0; 480_001], &plain, &|| false);
    assert!(matches!(too_long, Err(TranscribeError::TooLong(480_001))));
    let cancelled = whisper.transcribe(&tone(1.0), &plain, &|| true);
    assert!(matches!(cancelled, Err(TranscribeError::Cancelled)));
    let unknown = WhisperOptions { language: Some("xx".to_owned()), ..plain };
    let unknown = whisper.transcribe(&tone(1.0), &unknown, &|| false);
    assert!(matches!(unknown, Err(TranscribeError::UnknownLanguage(_))));
}

#[test]
fn a_damaged_or_false_file_is_refused_with_the_reason() {
    let check = |bytes: &[u8], expected: &str| {
        let (_folder, path) = written(bytes);
        let refused = Whisper::load(&path, 1, &CardUse::Allowed).expect_err(expected).to_string();
        assert!(refused.contains(expected), "{refused}");
    };
    check(b"", "not a Whisper file");
    check(b"GGUF is another format", "not a Whisper file");
    let whole = TinyFile::new().bytes();
    for cut in [20, 50, 1000, 70_000, whole.len() - 1] {
        let (_folder, path) = written(&whole[..cut]);
        assert!(Whisper::load(&path, 1, &CardUse::Allowed).is_err(), "cut after {cut} bytes");
    }
    let changed = |place: usize, value: i32| {
        let mut file = TinyFile::new();
        file.head[place] = value;
        file.bytes()
    };
    check(&changed(1, -1), "vocabulary size is -1");
    check(&changed(2, 9000), "audio context is 9000");
    check(&changed(4, 3), "audio state size is 64, which 3 attention heads do not divide");
    check(&changed(5, 3), "tensors are missing");
    check(&changed(10, 128), "number of mel filters is 80, and must be 128");
    let mut other = TinyFile::new();
    other.tensors[2].1 = vec![1, 2 * STATE];
    check(&other.bytes(), "'encoder.conv1.bias' has the size");
}
