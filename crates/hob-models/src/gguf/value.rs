//! Metadata values. Short arrays of numbers are kept, because some keys have one number per layer.
//! Long arrays and arrays of texts, such as the vocabulary, are counted and not kept.

use std::io::{Read, Seek};

use super::GgufError;
use super::error::printable_name;
use super::source::Source;

/// Chat templates are the longest texts: tens of kilobytes.
const TEXT_BYTES_MAX: u64 = 4 << 20;
const ELEMENTS_MAX: u64 = 1 << 24;
/// Twice the engine's limit of layers.
const KEPT_ELEMENTS_MAX: u64 = 1_024;

/// Tokens that llama.cpp b11434 knows for filling in the middle: those before the prefix, the suffix and the gap.
const INFILL_MARKS: [&str; 3] = [
    "<|fim_prefix|> <fim-prefix> <fim_prefix> <｜fim▁begin｜> <PRE> ▁<PRE> <|code_prefix|> \
     <|prefix|>",
    "<|fim_suffix|> <fim-suffix> <fim_suffix> <｜fim▁hole｜> <SUF> ▁<SUF> <|code_suffix|> \
     <|suffix|>",
    "<|fim_middle|> <fim-middle> <fim_middle> <｜fim▁end｜> <MID> ▁<MID> <|code_middle|> \
     <|middle|>",
];
/// Maximum bytes of such a text.
const MARK_BYTES_MAX: usize = 20;

const TEXT: u32 = 8;
const ARRAY: u32 = 9;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Scalar(Scalar),
    Text(String),
    /// An array of numbers short enough for one per layer.
    Scalars(Vec<Scalar>),
    /// Any other array of numbers, of which only the length is kept.
    Array {
        elements: u64,
    },
    /// An array of texts: its length, and which marks of a text to be filled in are in it (prefix, suffix, gap).
    Texts {
        elements: u64,
        infill_marks: [bool; 3],
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
}

impl Scalar {
    /// A whole number of at least 0; `true` is 1.
    pub fn whole(self) -> Option<u64> {
        match self {
            Scalar::Unsigned(number) => Some(number),
            Scalar::Signed(number) => u64::try_from(number).ok(),
            Scalar::Bool(flag) => Some(flag.into()),
            Scalar::Float(_) => None,
        }
    }

    pub fn float(self) -> Option<f64> {
        match self {
            Scalar::Float(number) => Some(number),
            _ => None,
        }
    }
}

pub(super) fn read(source: &mut Source<impl Read + Seek>, key: &str) -> Result<Value, GgufError> {
    match source.u32()? {
        TEXT => source.text("a text", TEXT_BYTES_MAX).map(Value::Text),
        ARRAY => array(source, key),
        id => scalar(source, key, id).map(Value::Scalar),
    }
}

fn array(source: &mut Source<impl Read + Seek>, key: &str) -> Result<Value, GgufError> {
    let id = source.u32()?;
    let elements = source.u64()?;
    if elements > ELEMENTS_MAX {
        let (what, count_max) = ("elements of one array", ELEMENTS_MAX);
        return Err(GgufError::TooMany { what, count: elements, count_max });
    }
    if id == TEXT {
        return texts(source, elements);
    }
    // No known file has arrays of arrays, so they are rejected.
    let width = width(id).ok_or_else(|| unknown(key, id))?;
    if elements > KEPT_ELEMENTS_MAX {
        source.skip(elements * width)?;
        return Ok(Value::Array { elements });
    }
    source.keep(elements * size_of::<Scalar>() as u64)?;
    let scalars = (0..elements).map(|_| scalar(source, key, id)).collect::<Result<_, _>>()?;
    Ok(Value::Scalars(scalars))
}

fn texts(source: &mut Source<impl Read + Seek>, elements: u64) -> Result<Value, GgufError> {
    let (mut infill_marks, mut short) = ([false; 3], [0; MARK_BYTES_MAX]);
    for _ in 0..elements {
        let text = source.short_text("a text of an array", TEXT_BYTES_MAX, &mut short)?;
        // All marks end so, and few other tokens do.
        if text.ends_with(b">") {
            for (is_found, marks) in infill_marks.iter_mut().zip(INFILL_MARKS) {
                *is_found |= marks.split(' ').any(|mark| mark.as_bytes() == text);
            }
        }
    }
    Ok(Value::Texts { elements, infill_marks })
}

fn scalar(source: &mut Source<impl Read + Seek>, key: &str, id: u32) -> Result<Scalar, GgufError> {
    Ok(match id {
        0 => Scalar::Unsigned(u8::from_le_bytes(source.take()?).into()),
        1 => Scalar::Signed(i8::from_le_bytes(source.take()?).into()),
        2 => Scalar::Unsigned(u16::from_le_bytes(source.take()?).into()),
        3 => Scalar::Signed(i16::from_le_bytes(source.take()?).into()),
        4 => Scalar::Unsigned(source.u32()?.into()),
        5 => Scalar::Signed(i32::from_le_bytes(source.take()?).into()),
        6 => Scalar::Float(f32::from_le_bytes(source.take()?).into()),
        7 => Scalar::Bool(source.take::<1>()? != [0]),
        10 => Scalar::Unsigned(source.u64()?),
        11 => Scalar::Signed(i64::from_le_bytes(source.take()?)),
        12 => Scalar::Float(f64::from_le_bytes(source.take()?)),
        _ => return Err(unknown(key, id)),
    })
}

/// Bytes of a scalar of this type.
fn width(id: u32) -> Option<u64> {
    match id {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

fn unknown(key: &str, id: u32) -> GgufError {
    GgufError::UnknownValueType { key: printable_name(key), id }
}
