//! Computes the memory of a graph from its file, for `hob fit` and for a server before each start.
//! It skips the weights, so it takes a few milliseconds.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

use super::packed::{bits_of, elements, is_large_integer, is_packed};
use super::proto::{DATA_FLOAT, TensorProto};

/// Field numbers of [`super::proto`].
const MODEL_GRAPH: u64 = 7;
const GRAPH_NAME: u64 = 2;
const GRAPH_INITIALIZER: u64 = 5;
const TENSOR_DIMS: u64 = 1;
const TENSOR_TYPE: u64 = 2;
const TENSOR_RAW: u64 = 9;

/// A speech model has about a thousand tensors, with short names.
const TENSORS_MAX: usize = 100_000;
const DIMS_MAX: usize = 16;
const NAME_BYTES_MAX: u64 = 1024;

/// Sizes of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphOutline {
    /// Bytes of the file with its weights unpacked, without a few bytes of lengths.
    pub whole_bytes: u64,
    /// See [`super::packed::integer_bytes`].
    pub integer_bytes: u64,
}

/// A tensor without its content, and the length of the content.
struct TensorOutline {
    tensor: TensorProto,
    raw_bytes: u64,
}

impl GraphOutline {
    /// # Errors
    /// The file cannot be read, or is not a model.
    pub fn of(path: &Path) -> io::Result<GraphOutline> {
        let file = File::open(path)?;
        let file_bytes = file.metadata()?.len();
        let mut file = BufReader::new(file);
        let mut model = Fields { file: &mut file, left: file_bytes };
        let (mut name, mut tensors) = (String::new(), Vec::new());
        while let Some(field) = model.field()? {
            match field {
                (MODEL_GRAPH, Value::Content(bytes)) => {
                    read_graph(model.inner(bytes)?, &mut name, &mut tensors)?;
                }
                other => model.skip_field(&other)?,
            }
        }
        let mut outline = GraphOutline { whole_bytes: file_bytes, integer_bytes: 0 };
        for TensorOutline { tensor, raw_bytes } in &tensors {
            let is_packed = bits_of(&name).is_some_and(|bits| is_packed(tensor, bits));
            let element_bytes = if tensor.data_type == DATA_FLOAT { 4 } else { 1 };
            let elements = elements(tensor).unwrap_or_default() as u64;
            let unpacked = elements.saturating_mul(element_bytes);
            let whole = if is_packed { unpacked } else { *raw_bytes };
            let more = whole.saturating_sub(*raw_bytes);
            outline.whole_bytes = outline.whole_bytes.saturating_add(more);
            if is_large_integer(tensor) {
                outline.integer_bytes = outline.integer_bytes.saturating_add(whole);
            }
        }
        Ok(outline)
    }
}

fn read_graph(
    mut graph: Fields<'_>,
    name: &mut String,
    tensors: &mut Vec<TensorOutline>,
) -> io::Result<()> {
    while let Some(field) = graph.field()? {
        match field {
            (GRAPH_NAME, Value::Content(bytes)) => *name = graph.text(bytes)?,
            (GRAPH_INITIALIZER, Value::Content(bytes)) if tensors.len() < TENSORS_MAX => {
                tensors.push(read_tensor(graph.inner(bytes)?)?);
            }
            (GRAPH_INITIALIZER, _) => return Err(damaged()),
            other => graph.skip_field(&other)?,
        }
    }
    Ok(())
}

fn read_tensor(mut fields: Fields<'_>) -> io::Result<TensorOutline> {
    let (mut tensor, mut raw_bytes) = (TensorProto::default(), 0);
    while let Some(field) = fields.field()? {
        match field {
            (TENSOR_DIMS, Value::Number(size)) if tensor.dims.len() < DIMS_MAX => {
                tensor.dims.push(i64::try_from(size).map_err(io::Error::other)?);
            }
            (TENSOR_TYPE, Value::Number(kind)) => {
                tensor.data_type = i32::try_from(kind).map_err(io::Error::other)?;
            }
            (TENSOR_RAW, Value::Content(bytes)) => {
                // `is_packed` only looks whether there is any content, so one byte stands for all.
                tensor.raw_data = vec![0_u8; usize::from(bytes > 0)].into();
                raw_bytes = bytes;
                fields.skip(bytes)?;
            }
            (TENSOR_DIMS, _) => return Err(damaged()),
            other => fields.skip_field(&other)?,
        }
    }
    Ok(TensorOutline { tensor, raw_bytes })
}

/// The error for a file that is not a graph, or was changed after it was written.
fn damaged() -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        "the file is not an ONNX model, or is damaged; pull or quantize it again",
    )
}

/// The value of a field.
enum Value {
    Number(u64),
    /// So many bytes, which are not read yet.
    Content(u64),
}

/// A message that is read field by field.
struct Fields<'f> {
    file: &'f mut BufReader<File>,
    left: u64,
}

impl Fields<'_> {
    /// The number and the value of the next field. `None` at the end of the message.
    fn field(&mut self) -> io::Result<Option<(u64, Value)>> {
        if self.left == 0 {
            return Ok(None);
        }
        let key = self.varint()?;
        // The wire types of protobuf: a varint, 64 bits, bytes with their length, 32 bits.
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Content(8),
            2 => Value::Content(self.varint()?),
            5 => Value::Content(4),
            _ => return Err(damaged()),
        };
        Ok(Some((key >> 3, value)))
    }

    /// The message in a field.
    fn inner(&mut self, bytes: u64) -> io::Result<Fields<'_>> {
        self.take(bytes)?;
        Ok(Fields { file: &mut *self.file, left: bytes })
    }

    fn text(&mut self, bytes: u64) -> io::Result<String> {
        if bytes > NAME_BYTES_MAX {
            return Err(damaged());
        }
        self.take(bytes)?;
        let mut text = String::new();
        self.file.by_ref().take(bytes).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Skips the content of a field.
    fn skip_field(&mut self, (_, value): &(u64, Value)) -> io::Result<()> {
        match value {
            Value::Number(_) => Ok(()),
            Value::Content(bytes) => self.skip(*bytes),
        }
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        self.take(bytes)?;
        self.file.seek_relative(i64::try_from(bytes).map_err(io::Error::other)?)
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            self.take(1)?;
            let mut byte = [0];
            self.file.read_exact(&mut byte)?;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(value);
            }
        }
        Err(damaged())
    }

    fn take(&mut self, bytes: u64) -> io::Result<()> {
        self.left = self.left.checked_sub(bytes).ok_or(ErrorKind::UnexpectedEof)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::onnx::packed::{WeightBits, integer_bytes, pack};
    use crate::onnx::proto::{DATA_INT8, GraphProto, ModelProto, NodeProto};

    fn tensor(data_type: i32, elements: usize, element_bytes: usize) -> TensorProto {
        let raw_data = (0..elements * element_bytes).map(|at| (at % 61) as u8).collect();
        let dims = vec![elements as i64 / 8, 8];
        TensorProto { name: "w".to_owned(), dims, data_type, raw_data, ..TensorProto::default() }
    }

    #[test]
    fn sizes_are_those_of_the_whole_graph_whether_or_not_it_is_packed() {
        let initializer =
            vec![tensor(DATA_INT8, 8000, 1), tensor(DATA_FLOAT, 6400, 4), tensor(DATA_INT8, 8, 1)];
        let node = vec![NodeProto { name: "n".to_owned(), ..NodeProto::default() }];
        let graph = GraphProto { node, initializer, ..GraphProto::default() };
        let graph = ModelProto { ir_version: 8, graph: Some(graph), ..ModelProto::default() };
        let graph = graph.encode_to_vec();
        let folder = tempfile::tempdir().expect("a folder");
        let outline = |content: &[u8]| {
            let path = folder.path().join("graph");
            std::fs::write(&path, content).expect("a file");
            GraphOutline::of(&path)
        };
        let whole = outline(&graph).expect("a graph");
        assert_eq!(whole.whole_bytes, graph.len() as u64);
        assert_eq!(whole.integer_bytes, integer_bytes(&graph).expect("a graph"));
        assert_eq!(whole.integer_bytes, 8000);
        for bits in WeightBits::ALL {
            let packed = pack(&graph, bits, &|| Ok(())).expect("packed").bytes;
            assert!(packed.len() < graph.len(), "{bits}");
            let found = outline(&packed).expect("a graph");
            assert!(found.whole_bytes.abs_diff(whole.whole_bytes) < 64, "{bits}: {found:?}");
            assert_eq!(found.integer_bytes, 8000, "{bits}");
        }
        assert!(outline(&graph[..graph.len() / 2]).is_err(), "it was cut off");
        assert!(outline(&[0xff; 64]).is_err(), "no model");
    }
}
