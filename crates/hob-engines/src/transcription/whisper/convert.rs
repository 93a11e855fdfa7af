//! Turns the tensors of a file into the types in which they are computed, some rows at a time, on several threads.
//! No thread holds a whole tensor: its rows and their floats stay in the cache of its core.

use std::ops::Range;
use std::sync::{Mutex, mpsc};
use std::thread;

use hob_core::locked;

use super::file::{FileTensor, WhisperFile, WhisperFileError};
use super::ggml::Type;

/// Maximum values of rows that are converted together, unless one row has more: 256 KB of floats.
const PART_VALUES: usize = 1 << 16;

/// A tensor of a file, and the type in which it is computed.
#[derive(Debug)]
pub(super) struct Conversion {
    pub(super) name: String,
    /// Where its bytes begin in the file.
    pub(super) at: u64,
    from: Type,
    pub(super) to: Type,
    pub(super) dims: [usize; 3],
    /// Bytes of a row in the file, and of a converted one.
    row_bytes: (usize, usize),
}

impl Conversion {
    /// # Errors
    /// The tensor has not the expected size.
    pub(super) fn new(
        tensor: FileTensor,
        expected: [usize; 3],
    ) -> Result<Conversion, WhisperFileError> {
        let FileTensor { name, kind: from, dims, at } = tensor;
        let refused = |reason: String| WhisperFileError::Tensor { name: name.clone(), reason };
        let count: usize = expected.iter().product();
        if dims.iter().product::<usize>() != count || dims[0] != expected[0] && expected[1] > 1 {
            return Err(refused(format!("has the size {dims:?}, and must have {expected:?}")));
        }
        let row = expected[0];
        let to = if name.contains("conv") && name.ends_with("weight") {
            Type::F16
        } else if name.ends_with("positional_embedding") || expected[1] == 1 || row == 1 {
            Type::F32
        } else if [Type::F32, Type::F16].contains(&from) && Type::Q8_0.row_bytes(row).is_some() {
            Type::Q8_0
        } else {
            from
        };
        let row_bytes = from.row_bytes(row).zip(to.row_bytes(row));
        let row_bytes = row_bytes.ok_or_else(|| refused(format!("has rows of {row} values")))?;
        Ok(Conversion { name, at, from, to, dims: expected, row_bytes })
    }

    /// The rows of each part.
    fn parts(&self) -> impl Iterator<Item = Range<usize>> {
        let rows = self.dims[1] * self.dims[2];
        let step = (PART_VALUES / self.dims[0]).max(1);
        (0..rows).step_by(step).map(move |first| first..rows.min(first + step))
    }

    /// Rows of the file in the type in which they are computed.
    fn converted(&self, bytes: Vec<u8>) -> Result<Vec<u8>, WhisperFileError> {
        if self.to == self.from {
            return Ok(bytes);
        }
        let row = self.dims[0];
        let floats = self.from.to_floats(&bytes, bytes.len() / self.row_bytes.0 * row);
        floats.and_then(|floats| self.to.quantized(&floats, row)).ok_or_else(|| {
            let reason = "has values that ggml cannot convert".to_owned();
            WhisperFileError::Tensor { name: self.name.clone(), reason }
        })
    }
}

/// Reads and converts all tensors. `write` gets the index of a tensor, the place of bytes in it, and the bytes.
///
/// # Errors
/// The file cannot be read, ggml cannot convert its values, or no thread can be started.
pub(super) fn convert(
    file: &mut WhisperFile,
    conversions: &[Conversion],
    threads: usize,
    mut write: impl FnMut(usize, usize, &[u8]),
) -> Result<(), WhisperFileError> {
    let parts = conversions.iter().enumerate().flat_map(|(index, conversion)| {
        conversion.parts().map(move |rows| (index, conversion, rows))
    });
    let unread = Mutex::new((file, parts));
    // One thread reads while the others convert.
    let read = || {
        let mut unread = locked(&unread);
        let (file, parts) = &mut *unread;
        let (index, conversion, rows) = parts.next()?;
        let (from_bytes, to_bytes) = conversion.row_bytes;
        let at = conversion.at + (rows.start * from_bytes) as u64;
        let bytes = file.bytes_at(at, rows.len() * from_bytes);
        Some((index, conversion, rows.start * to_bytes, bytes))
    };
    thread::scope(|scope| {
        let (sender, converted) = mpsc::sync_channel(threads);
        for _ in 0..threads {
            let (sender, read) = (sender.clone(), &read);
            let work = move || {
                while let Some((index, conversion, at, bytes)) = read() {
                    let bytes = bytes.and_then(|bytes| conversion.converted(bytes));
                    // After an error, the receiver is gone.
                    if sender.send((index, at, bytes)).is_err() {
                        return;
                    }
                }
            };
            thread::Builder::new().spawn_scoped(scope, work)?;
        }
        drop(sender);
        for (index, at, bytes) in converted {
            write(index, at, &bytes?);
        }
        Ok(())
    })
}
