//! Reads headers of GGUF, the file format of llama.cpp, without the weights.
//! hob has its own reader because headers come from unknown authors: every number is bounded and checked.

mod architecture;
mod card;
pub(crate) mod error;
mod facts;
pub(crate) mod keys;
mod parts;
mod rewrite;
pub mod sample;
mod shape;
mod source;
mod tensor;
mod value;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use source::Source;

pub use card::card;
pub use error::GgufError;
pub(crate) use error::printable_name;
pub use parts::PartName;
pub(crate) use rewrite::rewrite;
pub use rewrite::{GgufFile, MixError, mix};
pub(crate) use shape::{LAYERS_MAX, LENGTH_MAX, VOCABULARY_MAX};
pub use tensor::{GgufTensor, TensorType};
pub use value::{Scalar, Value};

/// Real files have under 100 keys and under 4,000 tensors.
const KEYS_MAX: u64 = 1 << 16;
const TENSORS_MAX: u64 = 1 << 16;
/// The format's own limit.
const KEY_BYTES_MAX: u64 = 65_535;
/// Alignment of tensor data, if the header states none.
const ALIGNMENT_BYTES: u64 = 32;

/// The header of a file. [`Gguf::open`] and [`Gguf::read`] also check that the file has all its data.
#[derive(Clone, Debug, PartialEq)]
pub struct Gguf {
    version: u32,
    metadata: BTreeMap<String, Value>,
    tensors: Vec<GgufTensor>,
    header_bytes: u64,
    file_bytes: u64,
    /// End of the data according to the header.
    needed_bytes: u64,
}

impl Gguf {
    /// Opens a model. For one of several parts, reads all parts in the same folder.
    ///
    /// # Errors
    /// What is wrong with the file, for people.
    pub fn open(path: &Path) -> Result<Gguf, GgufError> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(part) = PartName::parse(name) else { return Gguf::open_one(path) };
        let parts = part.all().map(|name| Gguf::open_one(&path.with_file_name(name)));
        Gguf::joined(parts.collect::<Result<_, _>>()?)
    }

    fn open_one(path: &Path) -> Result<Gguf, GgufError> {
        Gguf::read(File::open(path).map_err(|error| GgufError::unreadable(&error))?)
    }

    /// Reads the header of a complete file, from the start of `file`.
    ///
    /// # Errors
    /// What is wrong with the file, for people.
    pub fn read(file: impl Read + Seek) -> Result<Gguf, GgufError> {
        let gguf = Gguf::of(Source::new(file)?)?;
        let (needed_bytes, file_bytes) = (gguf.needed_bytes, gguf.file_bytes);
        if needed_bytes > file_bytes {
            return Err(GgufError::CutShort { needed_bytes, file_bytes });
        }
        Ok(gguf)
    }

    /// Reads the header of a file with this many bytes, of which `file` may be only the beginning. That is enough to
    /// assess a model, but not to load it. Missing data is not an error here.
    ///
    /// # Errors
    /// What is wrong with the header, for people.
    pub fn header(file: impl Read + Seek, file_bytes: u64) -> Result<Gguf, GgufError> {
        Gguf::of(Source::beginning(file, file_bytes)?)
    }

    fn of(mut source: Source<impl Read + Seek>) -> Result<Gguf, GgufError> {
        let version = version(&mut source)?;
        let tensor_count = count(&mut source, "tensors", TENSORS_MAX)?;
        let key_count = count(&mut source, "keys", KEYS_MAX)?;
        let metadata = metadata(&mut source, key_count)?;
        let tensors = tensors(&mut source, tensor_count)?;
        let header_bytes = source.position();
        let file_bytes = source.file_bytes();
        let gguf = Gguf { version, metadata, tensors, header_bytes, file_bytes, needed_bytes: 0 };
        Ok(Gguf { needed_bytes: gguf.data_end()?, ..gguf })
    }

    /// A header that does not come from a file, without tensors.
    pub(crate) fn from_metadata(metadata: BTreeMap<String, Value>) -> Gguf {
        let tensors = Vec::new();
        Gguf { version: 3, metadata, tensors, header_bytes: 0, file_bytes: 0, needed_bytes: 0 }
    }

    pub(crate) fn with_tensors(self, tensors: Vec<GgufTensor>) -> Gguf {
        let file_bytes = tensors.iter().fold(0, |sum: u64, t| sum.saturating_add(t.bytes));
        Gguf { tensors, file_bytes, needed_bytes: file_bytes, ..self }
    }

    /// Renames an architecture to the engine's name for it.
    pub(crate) fn renamed(mut self, from: &str, to: &str) -> Gguf {
        let below = |key: &str| Some(key.strip_prefix(from)?.strip_prefix('.')?.to_owned());
        let keys = std::mem::take(&mut self.metadata).into_iter();
        let named = keys.map(|(key, value)| match below(&key) {
            Some(name) => (format!("{to}.{name}"), value),
            None => (key, value),
        });
        self.metadata = named.collect();
        let architecture = Value::Text(to.to_owned());
        self.metadata.insert("general.architecture".to_owned(), architecture);
        self
    }

    /// Version of the format: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Bytes of data that the header promises and the file lacks.
    pub fn missing_bytes(&self) -> u64 {
        self.needed_bytes.saturating_sub(self.file_bytes)
    }

    /// Bytes before the data, without the padding.
    pub fn header_bytes(&self) -> u64 {
        self.header_bytes
    }

    pub fn tensors(&self) -> &[GgufTensor] {
        &self.tensors
    }

    pub fn value(&self, key: &str) -> Option<&Value> {
        self.metadata.get(key)
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.value(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number that is not negative.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.scalar(key)?.whole()
    }

    pub fn scalar(&self, key: &str) -> Option<Scalar> {
        match self.value(key)? {
            Value::Scalar(scalar) => Some(*scalar),
            _ => None,
        }
    }

    /// Where the file must end, if the data is where the header says: one tensor after the other. The engine takes no
    /// other order either.
    fn data_end(&self) -> Result<u64, GgufError> {
        let alignment = self.alignment()?;
        let mut expected: u64 = 0;
        let mut end = 0;
        for tensor in &self.tensors {
            if tensor.offset != expected {
                return Err(GgufError::offset(&tensor.name, tensor.offset, expected));
            }
            end = expected
                .checked_add(tensor.bytes)
                .ok_or_else(|| GgufError::overflow(&tensor.name))?;
            let next = end.checked_next_multiple_of(alignment);
            expected = next.ok_or_else(|| GgufError::overflow(&tensor.name))?;
        }
        let Some(last) = self.tensors.last() else { return Ok(self.header_bytes) };
        let data_start = self.header_bytes.checked_next_multiple_of(alignment);
        let needed_bytes = data_start.and_then(|start| start.checked_add(end));
        needed_bytes.ok_or_else(|| GgufError::overflow(&last.name))
    }

    pub(crate) fn alignment(&self) -> Result<u64, GgufError> {
        const KEY: &str = "general.alignment";
        match self.value(KEY) {
            None => Ok(ALIGNMENT_BYTES),
            Some(_) => {
                let bytes = self.number(KEY).filter(|bytes| bytes.is_power_of_two());
                let bytes = bytes.filter(|bytes| u32::try_from(*bytes).is_ok());
                bytes.ok_or_else(|| GgufError::wrong(KEY, "must be a power of two"))
            }
        }
    }
}

fn version(source: &mut Source<impl Read + Seek>) -> Result<u32, GgufError> {
    if &source.take::<4>()? != b"GGUF" {
        return Err(GgufError::NotGguf);
    }
    let version = source.u32()?;
    match version {
        2 | 3 => Ok(version),
        // In a big-endian file the high bytes come first. They are zero, and are read as the low ones here.
        _ if version != 0 && version.trailing_zeros() >= 16 => Err(GgufError::BigEndian),
        _ => Err(GgufError::UnknownVersion { version }),
    }
}

fn count(
    source: &mut Source<impl Read + Seek>,
    what: &'static str,
    count_max: u64,
) -> Result<u64, GgufError> {
    let count = source.u64()?;
    if count > count_max {
        return Err(GgufError::TooMany { what, count, count_max });
    }
    Ok(count)
}

fn metadata(
    source: &mut Source<impl Read + Seek>,
    count: u64,
) -> Result<BTreeMap<String, Value>, GgufError> {
    let mut metadata = BTreeMap::new();
    for _ in 0..count {
        let key = source.text("a key", KEY_BYTES_MAX)?;
        let value = value::read(source, &key)?;
        if metadata.contains_key(&key) {
            return Err(GgufError::duplicate("key", &key));
        }
        metadata.insert(key, value);
    }
    Ok(metadata)
}

fn tensors(
    source: &mut Source<impl Read + Seek>,
    count: u64,
) -> Result<Vec<GgufTensor>, GgufError> {
    let mut tensors = Vec::new();
    let mut names = HashSet::new();
    for _ in 0..count {
        let tensor = tensor::read(source)?;
        if !names.insert(tensor.name.clone()) {
            return Err(GgufError::duplicate("tensor", &tensor.name));
        }
        tensors.push(tensor);
    }
    Ok(tensors)
}
