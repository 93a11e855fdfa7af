//! Writes a GGUF file again with other data for some tensors. Keys stay as they are, unless the caller changes them.
//! Also mixes two files of one model, to measure which layers lose most.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::{Gguf, GgufError, GgufTensor, TensorType};
use crate::disk::DiskError;

/// A file whose header was read.
#[derive(Clone, Copy, Debug)]
pub struct GgufFile<'a> {
    pub header: &'a Gguf,
    pub path: &'a Path,
}

#[derive(Debug, thiserror::Error)]
pub enum MixError {
    #[error("{0} is one of several files; join them with llama-gguf-split first")]
    Split(String),
    #[error("the files are not of one model: '{0}' is in one of them only, or has another shape")]
    OtherTensors(String),
    #[error("{0} would be read and written at the same time; write to another file")]
    SameFile(String),
    #[error("the data of tensor '{tensor}' has {bytes} bytes (expected {expected})")]
    DataLength { tensor: String, bytes: u64, expected: u64 },
    #[error(transparent)]
    Gguf(#[from] GgufError),
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Writes `base` to `to` with the tensors of `other` that `takes` names.
///
/// # Errors
/// The files have different tensors, one is a part of a split model, `to` is one of them, or a disk error.
pub fn mix(
    base: GgufFile<'_>,
    other: GgufFile<'_>,
    to: &Path,
    takes: impl Fn(&str) -> bool,
) -> Result<(), MixError> {
    check_output(other.path, to)?;
    let data_start = data_start(other)?;
    let mut source = reader(other)?;
    let kind = |tensor: &GgufTensor| match takes(&tensor.name) {
        true => find(other, tensor).map_or(tensor.kind, |other| other.kind),
        false => tensor.kind,
    };
    for (one, another) in [(base, other), (other, base)] {
        let mut tensors = one.header.tensors().iter();
        if let Some(lost) = tensors.find(|tensor| find(another, tensor).is_none()) {
            return Err(MixError::OtherTensors(lost.name.clone()));
        }
    }
    rewrite(
        base,
        to,
        |_| {},
        kind,
        |tensor, data| {
            let taken = takes(&tensor.name).then(|| find(other, tensor)).flatten();
            Ok::<_, MixError>(match taken {
                Some(tensor) => read(&mut source, other.path, data_start, tensor)?,
                None => data,
            })
        },
    )
}

fn find<'a>(file: GgufFile<'a>, like: &GgufTensor) -> Option<&'a GgufTensor> {
    file.header.tensors().iter().find(|tensor| tensor.name == like.name && tensor.dims == like.dims)
}

/// Writes `from` to `to`. `header` changes the keys' bytes, `kind` says in which format a tensor is written, and
/// `data` turns its bytes into that format.
///
/// # Errors
/// The error of `data`, data of a wrong length, an impossible alignment, a part of a split model, `to` is the
/// file `from`, or a disk error.
pub(crate) fn rewrite<E: From<DiskError> + From<MixError>>(
    from: GgufFile<'_>,
    to: &Path,
    header: impl FnOnce(&mut [u8]),
    kind: impl Fn(&GgufTensor) -> TensorType,
    mut data: impl FnMut(&GgufTensor, Vec<u8>) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    let alignment = from.header.alignment().map_err(MixError::from)?;
    let data_start = data_start(from)?;
    check_output(from.path, to)?;
    let (cannot_read, cannot_write) = (DiskError::at(from.path), DiskError::at(to));
    let mut source = reader(from)?;
    let mut out = BufWriter::new(File::create(to).map_err(&cannot_write)?);
    let tensors = from.header.tensors();
    let mut keys = vec![0; (from.header.header_bytes() - list_bytes(tensors)) as usize];
    source.read_exact(&mut keys).map_err(&cannot_read)?;
    header(&mut keys);
    let mut offset: u64 = 0;
    let stored_bytes = |tensor: &GgufTensor| {
        let kind = kind(tensor);
        tensor.elements() / kind.block_elements * kind.block_bytes
    };
    for tensor in tensors {
        keys.extend(listed(tensor, kind(tensor), offset));
        offset = (offset + stored_bytes(tensor)).next_multiple_of(alignment);
    }
    write_aligned(&mut out, &keys, alignment).map_err(&cannot_write)?;
    for tensor in tensors {
        let bytes = data(tensor, read(&mut source, from.path, data_start, tensor)?)?;
        let expected = stored_bytes(tensor);
        if bytes.len() as u64 != expected {
            let (tensor, bytes) = (tensor.name.clone(), bytes.len() as u64);
            return Err(MixError::DataLength { tensor, bytes, expected }.into());
        }
        write_aligned(&mut out, &bytes, alignment).map_err(&cannot_write)?;
    }
    Ok(out.flush().map_err(&cannot_write)?)
}

/// Refuses to write to a file that is read, also under another name.
fn check_output(from: &Path, to: &Path) -> Result<(), MixError> {
    let id = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    match id(to) {
        Some(written) if id(from) == Some(written) => {
            Err(MixError::SameFile(to.display().to_string()))
        }
        _ => Ok(()),
    }
}

fn reader(file: GgufFile<'_>) -> Result<BufReader<File>, DiskError> {
    File::open(file.path).map(BufReader::new).map_err(DiskError::at(file.path))
}

fn read(
    source: &mut BufReader<File>,
    path: &Path,
    data_start: u64,
    tensor: &GgufTensor,
) -> Result<Vec<u8>, DiskError> {
    let mut data = vec![0; tensor.bytes as usize];
    source.seek(SeekFrom::Start(data_start + tensor.offset)).map_err(DiskError::at(path))?;
    source.read_exact(&mut data).map_err(DiskError::at(path))?;
    Ok(data)
}

fn data_start(file: GgufFile<'_>) -> Result<u64, MixError> {
    let on_disk = std::fs::metadata(file.path).map_err(DiskError::at(file.path))?.len();
    if on_disk != file.header.file_bytes() {
        return Err(MixError::Split(file.path.display().to_string()));
    }
    Ok(file.header.header_bytes().next_multiple_of(file.header.alignment()?))
}

/// Bytes of the list of tensors: name and its length, number of dimensions, dimensions, type, offset.
fn list_bytes(tensors: &[GgufTensor]) -> u64 {
    let bytes = |tensor: &GgufTensor| 8 + tensor.name.len() + 4 + 8 * tensor.dims.len() + 4 + 8;
    tensors.iter().map(bytes).sum::<usize>() as u64
}

fn listed(tensor: &GgufTensor, kind: TensorType, offset: u64) -> Vec<u8> {
    let GgufTensor { name, dims, .. } = tensor;
    let mut entry = (name.len() as u64).to_le_bytes().to_vec();
    entry.extend(name.as_bytes());
    entry.extend((dims.len() as u32).to_le_bytes());
    entry.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
    entry.extend(kind.id.to_le_bytes());
    entry.extend(offset.to_le_bytes());
    entry
}

fn write_aligned(out: &mut impl Write, bytes: &[u8], alignment: u64) -> std::io::Result<()> {
    out.write_all(bytes)?;
    let padding = bytes.len().next_multiple_of(alignment as usize) - bytes.len();
    out.write_all(&vec![0; padding])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::sample::SampleGguf;

    /// A file with two tensors of 32 values: in 16 bits, or in Q8_0.
    fn file(folder: &Path, name: &str, is_quantized: bool, fill: u8) -> std::path::PathBuf {
        let (kind, bytes) = if is_quantized { (8, 34) } else { (1, 64) };
        let file = SampleGguf::empty()
            .text("general.architecture", "llama")
            .raw_tensor("blk.0.attn_q.weight", &[32], kind, (0, bytes))
            .raw_tensor("blk.0.ffn_up.weight", &[32], kind, (64, bytes));
        let mut bytes = file.bytes();
        let header = Gguf::read(std::io::Cursor::new(&bytes)).expect("a header").header_bytes();
        bytes[header.next_multiple_of(32) as usize..].fill(fill);
        let path = folder.join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    }

    #[test]
    fn a_mixed_file_has_the_named_tensors_of_the_other_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let (base, other) = (file(folder.path(), "a", false, 1), file(folder.path(), "b", true, 2));
        let headers = [&base, &other].map(|path| Gguf::open(path).expect("a header"));
        let [a, b] = [(&headers[0], &base), (&headers[1], &other)]
            .map(|(header, path)| GgufFile { header, path });
        let to = folder.path().join("mixed");
        mix(a, b, &to, |name| name.contains("ffn")).expect("mixes");
        let mixed = Gguf::open(&to).expect("a model");
        let kinds: Vec<&str> = mixed.tensors().iter().map(|tensor| tensor.kind.name).collect();
        assert_eq!(kinds, ["F16", "Q8_0"]);
        assert_eq!(mixed.text("general.architecture"), Some("llama"));
        let bytes = std::fs::read(&to).expect("a file");
        let start = mixed.header_bytes().next_multiple_of(32) as usize;
        assert_eq!(bytes[start..start + 64], [1; 64]);
        assert_eq!(bytes[start + 64..start + 98], [2; 34]);
        let all = folder.path().join("all");
        mix(a, b, &all, |_| true).expect("mixes");
        assert_eq!(Gguf::open(&all).expect("a model").tensors(), headers[1].tensors());
    }

    #[test]
    fn files_of_other_models_are_not_mixed() {
        let folder = tempfile::tempdir().expect("a folder");
        let base = file(folder.path(), "a", false, 1);
        let other = folder.path().join("b");
        let stranger = SampleGguf::empty().raw_tensor("blk.0.attn_q.weight", &[64], 1, (0, 128));
        std::fs::write(&other, stranger.bytes()).expect("written");
        let headers = [&base, &other].map(|path| Gguf::open(path).expect("a header"));
        let [a, b] = [(&headers[0], &base), (&headers[1], &other)]
            .map(|(header, path)| GgufFile { header, path });
        let refused = mix(a, b, &folder.path().join("to"), |_| true).expect_err("another model");
        assert!(refused.to_string().contains("'blk.0.attn_q.weight'"), "{refused}");
        let part = folder.path().join("part");
        let only_one = SampleGguf::empty().raw_tensor("blk.0.attn_q.weight", &[32], 1, (0, 64));
        std::fs::write(&part, only_one.bytes()).expect("written");
        let header = Gguf::open(&part).expect("a header");
        let part = GgufFile { header: &header, path: &part };
        for (base, other) in [(part, a), (a, part)] {
            let refused = mix(base, other, &folder.path().join("to"), |_| true);
            let refused = refused.expect_err("a tensor is missing").to_string();
            assert!(refused.contains("'blk.0.ffn_up.weight'"), "{refused}");
        }
    }

    #[test]
    fn a_file_that_is_read_is_not_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let (base, other) = (file(folder.path(), "a", false, 1), file(folder.path(), "b", true, 2));
        let headers = [&base, &other].map(|path| Gguf::open(path).expect("a header"));
        let [a, b] = [(&headers[0], &base), (&headers[1], &other)]
            .map(|(header, path)| GgufFile { header, path });
        let link = folder.path().join("link");
        std::fs::hard_link(&other, &link).expect("a link");
        let before = [&base, &other].map(|path| std::fs::read(path).expect("a file"));
        for to in [&base, &other, &link] {
            let refused = mix(a, b, to, |_| true).expect_err("a source");
            assert!(matches!(refused, MixError::SameFile(_)), "{refused}");
        }
        assert_eq!([&base, &other].map(|path| std::fs::read(path).expect("a file")), before);
    }

    #[test]
    fn data_of_another_length_than_the_header_says_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = file(folder.path(), "a", false, 1);
        let header = Gguf::open(&path).expect("a header");
        let from = GgufFile { header: &header, path: &path };
        let cut = |_: &GgufTensor, mut data: Vec<u8>| {
            data.pop();
            Ok::<_, MixError>(data)
        };
        let kind = |tensor: &GgufTensor| tensor.kind;
        let refused = rewrite(from, &folder.path().join("to"), |_| {}, kind, cut);
        let refused = refused.expect_err("a byte is missing").to_string();
        let expected = "the data of tensor 'blk.0.attn_q.weight' has 63 bytes (expected 64)";
        assert_eq!(refused, expected);
    }
}
