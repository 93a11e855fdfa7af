//! Files that are wrong, and the sentence each is refused with.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use hob_models::gguf::sample::SampleGguf;
use hob_models::{Gguf, GgufError};

const MB_4: u64 = 4 << 20;

#[track_caller]
fn refused(sample: &SampleGguf, expected: GgufError) {
    assert_eq!(Gguf::read(Cursor::new(sample.bytes())), Err(expected));
}

#[track_caller]
fn no_model(sample: &SampleGguf, expected: GgufError) {
    let gguf = Gguf::read(Cursor::new(sample.bytes())).expect("a header");
    assert_eq!(gguf.shape(), Err(expected));
}

fn wrong(key: &str, reason: &str) -> GgufError {
    GgufError::WrongValue { key: key.into(), reason: reason.into() }
}

/// These bytes, and zeros up to a length that no disk has.
struct Endless {
    head: Cursor<Vec<u8>>,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.head.read(buffer)? {
            0 => {
                buffer.fill(0);
                Ok(buffer.len())
            }
            bytes => Ok(bytes),
        }
    }
}

impl Seek for Endless {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match to {
            SeekFrom::End(_) => Ok(u64::MAX),
            to => self.head.seek(to),
        }
    }
}

fn endless(head: &[u8]) -> Result<Gguf, GgufError> {
    Gguf::read(Endless { head: Cursor::new(head.to_vec()) })
}

/// A disk that fails.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("a bad sector"))
    }
}

impl Seek for Broken {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Ok(1_000)
    }
}

fn header(version: u32, tensors: u64, keys: u64) -> Vec<u8> {
    let mut file = b"GGUF".to_vec();
    file.extend(version.to_le_bytes());
    file.extend(tensors.to_le_bytes());
    file.extend(keys.to_le_bytes());
    file
}

#[test]
fn files_of_other_kinds() {
    let unreadable = GgufError::Unreadable { detail: "a bad sector".into() };
    assert_eq!(Gguf::read(Broken), Err(unreadable));
    let read = |bytes: &[u8]| Gguf::read(Cursor::new(bytes.to_vec()));
    assert_eq!(read(b"PK\x03\x04 and more"), Err(GgufError::NotGguf));
    assert_eq!(read(b"GGUF\0\0\0\x03"), Err(GgufError::BigEndian));
    for version in [0, 1, 4, 0x0102_0304] {
        assert_eq!(read(&header(version, 0, 0)), Err(GgufError::UnknownVersion { version }));
    }
}

#[test]
fn a_file_that_is_cut_short_says_how_much_is_missing() {
    let whole = SampleGguf::empty().tensor("a", &[100]).bytes();
    let needed_bytes = whole.len() as u64;
    let error = Gguf::read(Cursor::new(&whole[..whole.len() - 30])).expect_err("cut short");
    assert_eq!(error, GgufError::CutShort { needed_bytes, file_bytes: needed_bytes - 30 });
    let sentence = error.to_string();
    assert!(sentence.starts_with(&format!("cut short: the header says {needed_bytes} bytes")));
    assert!(sentence.contains("; 30 are missing"), "{sentence}");
    let empty = GgufError::CutShort { needed_bytes: 4, file_bytes: 0 };
    assert_eq!(Gguf::read(Cursor::new([])), Err(empty));
}

#[test]
fn a_file_that_is_cut_short_anywhere_is_refused() {
    let sample = SampleGguf::empty()
        .text("general.architecture", "llama")
        .texts("tokenizer.ggml.tokens", &["a".to_owned(), "b".to_owned()])
        .i32s("numbers", &[1, 2, 3])
        .tensor("a", &[3, 3])
        .tensor("b", &[5]);
    let whole = sample.bytes();
    assert!(Gguf::read(Cursor::new(&whole[..])).is_ok());
    for length in 0..whole.len() {
        let error = Gguf::read(Cursor::new(&whole[..length])).expect_err("cut short");
        let GgufError::CutShort { needed_bytes, file_bytes } = error else { panic!("{error}") };
        assert!(length as u64 == file_bytes && needed_bytes <= whole.len() as u64, "{length}");
    }
}

#[test]
fn counts_beyond_all_measure() {
    let too_many = |what, count, count_max| Err(GgufError::TooMany { what, count, count_max });
    assert_eq!(endless(&header(3, 1 << 60, 0)), too_many("tensors", 1 << 60, 1 << 16));
    assert_eq!(endless(&header(3, 0, u64::MAX)), too_many("keys", u64::MAX, 1 << 16));
    for kind in [8_u32, 4] {
        let list = [&kind.to_le_bytes()[..], &(1_u64 << 40).to_le_bytes()].concat();
        let file = SampleGguf::empty().raw("list", 9, &list).bytes();
        assert_eq!(endless(&file), too_many("elements of one array", 1 << 40, 1 << 24));
    }
}

#[test]
fn lengths_beyond_all_measure() {
    let too_long = |what, bytes, bytes_max| GgufError::TooLong { what, bytes, bytes_max };
    let mut key = header(3, 0, 1);
    key.extend(u64::MAX.to_le_bytes());
    assert_eq!(endless(&key), Err(too_long("a key", u64::MAX, 65_535)));
    let text = SampleGguf::empty().raw("text", 8, &(MB_4 + 1).to_le_bytes()).bytes();
    assert_eq!(endless(&text), Err(too_long("a text", MB_4 + 1, MB_4)));
    let name = "a".repeat(64);
    refused(&SampleGguf::empty().tensor(&name, &[1]), too_long("the name of a tensor", 64, 63));
    let list = [&12_u32.to_le_bytes()[..], &(1_u64 << 24).to_le_bytes()].concat();
    let list = SampleGguf::empty().raw("list", 9, &list).bytes();
    let error = endless(&list).expect_err("128 MB of numbers");
    assert!(matches!(error, GgufError::TooLong { what: "everything", .. }), "{error}");
}

#[test]
fn texts_that_together_are_too_long() {
    let text = "a".repeat(MB_4 as usize);
    let keys = ["a", "b", "c", "d"];
    let sample = keys.iter().fold(SampleGguf::empty(), |sample, key| sample.text(key, &text));
    let bytes = 4 * MB_4 + 4;
    let what = "the metadata";
    refused(&sample, GgufError::TooLong { what, bytes, bytes_max: 16 << 20 });
}

#[test]
fn names_and_values() {
    let bytes = [&1_u64.to_le_bytes()[..], &[0xff]].concat();
    refused(&SampleGguf::empty().raw("text", 8, &bytes), GgufError::NotText { what: "a text" });
    refused(
        &SampleGguf::empty().raw("a\u{1b}[1mb", 13, &[]),
        GgufError::UnknownValueType { key: "a\\u{1b}[1mb".into(), id: 13 },
    );
    let nested = [&9_u32.to_le_bytes()[..], &1_u64.to_le_bytes()].concat();
    refused(
        &SampleGguf::empty().raw(&"k".repeat(70), 9, &nested),
        GgufError::UnknownValueType { key: format!("{}…", "k".repeat(64)), id: 9 },
    );
    let mut twice = SampleGguf::empty().u32("key", 1).u32("kez", 2).bytes();
    let second = twice.windows(3).position(|bytes| bytes == b"kez").expect("there");
    twice[second + 2] = b'y';
    let duplicate = GgufError::Duplicate { what: "key", name: "key".into() };
    assert_eq!(Gguf::read(Cursor::new(twice)), Err(duplicate));
    for alignment in [0, 3] {
        let sample = SampleGguf::empty().u32("general.alignment", alignment);
        refused(&sample, wrong("general.alignment", "must be a power of two"));
    }
}

#[test]
fn tensors() {
    let named = || "a".to_owned();
    let raw = |dims: &[u64], kind| SampleGguf::empty().raw_tensor("a", dims, kind, (0, 64));
    for id in [4, 31, 43, u32::MAX] {
        refused(&raw(&[32], id), GgufError::UnknownTensorType { name: named(), id });
    }
    for dims in [vec![0], vec![4, 0], vec![33]] {
        refused(&raw(&dims, 2), GgufError::Dimensions { name: named(), dims });
    }
    refused(&raw(&[1; 5], 0), GgufError::TooManyDimensions { name: named(), dimensions: 5 });
    for dims in [&[1 << 40, 1 << 40][..], &[1 << 62], &[u64::MAX]] {
        refused(&raw(dims, 28), GgufError::Overflow { name: named() });
    }
    let twice = SampleGguf::empty().tensor("a", &[8]).tensor("a", &[8]);
    refused(&twice, GgufError::Duplicate { what: "tensor", name: named() });
    let overlapping = SampleGguf::empty().tensor("b", &[8]).raw_tensor("a", &[8], 0, (0, 32));
    refused(&overlapping, GgufError::Offset { name: named(), offset: 0, expected: 32 });
    let many = SampleGguf::empty().raw_tensor("b", &[1 << 60], 28, (0, 0));
    let many = many.raw_tensor("a", &[1 << 60], 28, (1 << 63, 0));
    refused(&many, GgufError::Overflow { name: named() });
}

#[test]
fn models_that_the_engine_does_not_take() {
    let missing = |key: &str| GgufError::MissingKey { key: key.into() };
    no_model(&SampleGguf::empty(), missing("general.architecture"));
    let near = ["llama", "llada", "llama4"].map(str::to_owned).to_vec();
    let unknown = GgufError::UnknownArchitecture { name: "lllama".into(), near };
    let sentence = "hob's engine does not know the architecture 'lllama'; the nearest are llama, ";
    assert!(unknown.to_string().starts_with(sentence), "{unknown}");
    no_model(&SampleGguf::llama().text("general.architecture", "lllama"), unknown);
    let eyes = GgufError::UnknownArchitecture { name: "clip".into(), near: vec!["clef".into()] };
    no_model(&SampleGguf::llama().text("general.architecture", "clip"), eyes);
    no_model(&SampleGguf::llama().u32("split.count", 3), GgufError::Split { count: 3 });
    no_model(&SampleGguf::llama().without_tensors(), GgufError::NoWeights);
    for name in ["block_count", "embedding_length", "context_length"] {
        let key = format!("llama.{name}");
        no_model(&SampleGguf::llama().without(&key), missing(&key));
        no_model(&SampleGguf::llama().u32(&key, 0), wrong(&key, "must not be 0"));
    }
    no_model(
        &SampleGguf::llama().without("tokenizer.ggml.tokens"),
        missing("tokenizer.ggml.tokens"),
    );
}

#[test]
fn numbers_that_the_engine_would_die_of() {
    let check = |key: &str, value: u32, reason: &str| {
        no_model(&SampleGguf::llama().u32(key, value), wrong(key, reason));
    };
    check("llama.block_count", 513, "must be a whole number up to 512");
    check("llama.nextn_predict_layers", 1, "must be a whole number up to 0");
    check("llama.expert_count", 5_000, "must be a whole number up to 1024");
    check("llama.expert_used_count", 2, "must be a whole number up to 0");
    check("llama.attention.head_count", 1 << 20, "must be a whole number up to 16384");
    check("llama.context_length", u32::MAX, "must be a whole number up to 1073741824");
    let list = SampleGguf::llama().u32("llama.block_count", 3);
    let list = list.i32s("llama.attention.head_count_kv", &[1, 0]);
    let reason = "must have a number for each of 3 layers";
    no_model(&list, wrong("llama.attention.head_count_kv", reason));
    let negative = SampleGguf::llama().i32s("llama.attention.head_count_kv", &[-1]);
    let reason = "must be a whole number up to 16384";
    no_model(&negative, wrong("llama.attention.head_count_kv", reason));
    let text = SampleGguf::llama().text("llama.embedding_length", "32");
    no_model(&text, wrong("llama.embedding_length", "must be one whole number"));
    let tokens = SampleGguf::llama().u32("tokenizer.ggml.tokens", 5);
    no_model(&tokens, wrong("tokenizer.ggml.tokens", "must be a list of texts"));
}
