//! Makes a copy of a stored speech model with its weights in fewer bits, or in floats. The copy is a model of the store
//! with a name of its own, once it was tried and placed.

use std::path::Path;

use crate::catalog::{Entry, Purpose};
use crate::disk::{DiskError, link_or_copy, make_folder, room_for};
use crate::kokoro::{FRONT, PACKED, TRANSFORM_VERSION, VOCODER, in_floats, packed_name};
use crate::onnx::GraphError;
use crate::onnx::outline::GraphOutline;
use crate::onnx::packed::{WeightBits, integer_bytes, pack, packed_bytes, unpack};
use crate::progress::{PullStep, Watch};
use crate::store::{Lock, NewModel, Parcel, PartSource, Store, StoreError, StoredModel, is_plain};
use crate::transform::{TransformError, write};

/// How the weights of a copy are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeechForm {
    /// In fewer bits, by groups.
    Packed(WeightBits),
    /// Restored from the integers of the source.
    Float,
}

/// Bytes of both graphs of a stored model, and of the same in another form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeechSizes {
    pub now_bytes: u64,
    /// Without a few bytes of lengths.
    pub then_bytes: u64,
    /// Large weights of the source that have 8 bits, unpacked. 0: it has floats only.
    pub integer_bytes: u64,
    /// Predicted memory of a worker.
    pub now_memory_bytes: u64,
    pub then_memory_bytes: u64,
}

/// Memory of a speech worker in addition to its weights: engine, dictionary, and the tensors of a window. A worker took
/// 291 MB with 177 MB of weights, and 444 MB with 326 MB. Long sentences take more.
const WORKER_BYTES: u64 = 140_000_000;
/// A float in the place of one byte.
const FLOAT_MORE_BYTES: u64 = 3;

/// A copy that is complete and not yet a model of the store. Dropping it removes it.
#[derive(Debug)]
pub struct QuantizedSpeech {
    parcel: Parcel,
    entry: Entry,
    source: String,
    /// No other process changes a model of this name meanwhile.
    _lock: Lock,
    /// See [`crate::onnx::packed::PackedGraph::error`]. 0 for floats.
    pub front_error: f64,
    pub vocoder_error: f64,
}

#[derive(Debug, thiserror::Error)]
pub enum QuantizeSpeechError {
    #[error("'{0}' is not a speech model")]
    NotSpeech(String),
    #[error("'{0}' is not a name for a model")]
    Name(String),
    #[error(transparent)]
    Graph(#[from] TransformError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SpeechForm {
    pub fn all() -> impl Iterator<Item = SpeechForm> {
        WeightBits::ALL.into_iter().map(SpeechForm::Packed).chain([SpeechForm::Float])
    }

    /// From the names that [`WeightBits::by_name`] knows, or `float`, `f32`, `fp32`.
    pub fn by_name(name: &str) -> Option<SpeechForm> {
        match name.trim().to_ascii_lowercase().as_str() {
            "float" | "floats" | "float32" | "f32" | "fp32" => Some(SpeechForm::Float),
            bits => WeightBits::by_name(bits).map(SpeechForm::Packed),
        }
    }

    pub fn bits(self) -> u8 {
        match self {
            SpeechForm::Packed(bits) => bits.bits(),
            SpeechForm::Float => 32,
        }
    }
}

impl std::fmt::Display for SpeechForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SpeechForm::Packed(bits) => write!(f, "{bits}"),
            SpeechForm::Float => f.write_str("float"),
        }
    }
}

impl From<DiskError> for QuantizeSpeechError {
    fn from(error: DiskError) -> QuantizeSpeechError {
        StoreError::Disk(error).into()
    }
}

impl QuantizedSpeech {
    /// Writes the copy under a hidden name.
    ///
    /// # Errors
    /// The source is not a speech model, another process works on `name`, the work is cancelled, or a disk error. Nothing
    /// of the copy is left then.
    pub fn write(
        store: &Store,
        source: &StoredModel,
        (name, form, sizes): (&str, SpeechForm, SpeechSizes),
        watch: &mut Watch<'_>,
    ) -> Result<QuantizedSpeech, QuantizeSpeechError> {
        if source.speech_weights().is_none() {
            return Err(QuantizeSpeechError::NotSpeech(source.name().to_owned()));
        }
        if !is_plain(name) {
            return Err(QuantizeSpeechError::Name(name.to_owned()));
        }
        let lock = Lock::try_hold(store, name)?;
        let others = source.manifest.bytes().saturating_sub(sizes.now_bytes);
        room_for(&source.folder, others + sizes.then_bytes)?;
        let parcel = Parcel::new(store, name)?;
        let mut errors = [0.0; 2];
        watch.begin(PullStep::Transforming, None);
        for (error, graph) in errors.iter_mut().zip([FRONT, VOCODER]) {
            watch.check().map_err(StoreError::from)?;
            let refused = |error| refused(graph, error);
            let stored = whole(&source.folder, graph)?;
            match form {
                SpeechForm::Packed(bits) => {
                    let packed = pack(&stored, bits, &|| watch.check()).map_err(refused)?;
                    write(&parcel.folder().join(packed_name(graph)), &packed.bytes)?;
                    *error = packed.error;
                }
                SpeechForm::Float => {
                    let floats = in_floats(&stored).map_err(refused)?;
                    watch.check().map_err(StoreError::from)?;
                    write(&parcel.folder().join(graph), &floats)?;
                }
            }
        }
        for file in source.manifest.files.iter().filter(|file| is_kept(&file.path)) {
            place(&source.folder.join(&file.path), &parcel.folder().join(&file.path))?;
        }
        let entry = Entry {
            name: name.to_owned(),
            title: format!("{}, {form}", source.manifest.title),
            purpose: Purpose::Speech,
            version: source.manifest.version.clone(),
            licences: source.licences().to_vec(),
            parts: Vec::new(),
        };
        let [front_error, vocoder_error] = errors;
        let source = format!("{} {}, {form} by hob quantize", source.name(), entry.version);
        Ok(QuantizedSpeech { parcel, entry, source, _lock: lock, front_error, vocoder_error })
    }

    /// The folder with the files, to try them.
    pub fn folder(&self) -> &Path {
        self.parcel.folder()
    }

    /// Makes it a model of the store, by one rename.
    ///
    /// # Errors
    /// A disk error; nothing has changed then.
    pub fn place(self, watch: &mut Watch<'_>) -> Result<(), StoreError> {
        let sources = vec![PartSource { part: "weights".to_owned(), source: self.source }];
        let (entry, transform_version) = (&self.entry, TRANSFORM_VERSION);
        let new = NewModel { entry, transform_version, sources, asked: None };
        self.parcel.place(new, watch)
    }
}

/// What a stored model takes, and what it would take in another form.
///
/// # Errors
/// A graph cannot be read, or is damaged.
pub fn speech_sizes(folder: &Path, form: SpeechForm) -> Result<SpeechSizes, TransformError> {
    let mut sizes = SpeechSizes {
        now_bytes: 0,
        then_bytes: 0,
        integer_bytes: 0,
        now_memory_bytes: WORKER_BYTES,
        then_memory_bytes: WORKER_BYTES,
    };
    for graph in [FRONT, VOCODER] {
        let refused = |error| refused(graph, error);
        let stored = whole(folder, graph)?;
        let integers = integer_bytes(&stored).map_err(refused)?;
        let floats = stored.len() as u64 + FLOAT_MORE_BYTES * integers;
        let loaded = loaded_bytes(graph, stored.len() as u64, integers);
        sizes.now_bytes += file_bytes(folder, graph);
        sizes.integer_bytes += integers;
        sizes.now_memory_bytes += loaded;
        let (then, then_loaded) = match form {
            SpeechForm::Packed(bits) => (packed_bytes(&stored, bits).map_err(refused)?, loaded),
            SpeechForm::Float => (floats, floats),
        };
        sizes.then_bytes += then;
        sizes.then_memory_bytes += then_loaded;
    }
    Ok(sizes)
}

/// Predicted memory of a worker with a stored model. It reads no weights.
///
/// # Errors
/// A graph cannot be read, or is not a graph.
pub fn speech_memory_bytes(folder: &Path) -> Result<u64, TransformError> {
    let mut bytes = WORKER_BYTES;
    for graph in [FRONT, VOCODER] {
        let files = [folder.join(graph), folder.join(packed_name(graph))];
        let path = files.iter().find(|file| file.is_file()).unwrap_or(&files[0]);
        let GraphOutline { whole_bytes, integer_bytes } =
            GraphOutline::of(path).map_err(DiskError::at(path))?;
        bytes = bytes.saturating_add(loaded_bytes(graph, whole_bytes, integer_bytes));
    }
    Ok(bytes)
}

/// A graph in the engine's memory. The front computes in floats, the vocoder with the weights as they are stored.
fn loaded_bytes(graph: &str, whole_bytes: u64, integer_bytes: u64) -> u64 {
    let more = if graph == FRONT { integer_bytes.saturating_mul(FLOAT_MORE_BYTES) } else { 0 };
    whole_bytes.saturating_add(more)
}

/// Bytes of both graphs on the disk.
pub fn graph_bytes(folder: &Path) -> u64 {
    file_bytes(folder, FRONT) + file_bytes(folder, VOCODER)
}

fn file_bytes(folder: &Path, graph: &str) -> u64 {
    let files = [folder.join(graph), folder.join(packed_name(graph))];
    files.iter().find_map(|file| std::fs::metadata(file).ok()).map_or(0, |file| file.len())
}

/// The bytes of a stored graph, unpacked where it is packed.
///
/// # Errors
/// The file cannot be read, or is damaged.
pub fn whole(folder: &Path, graph: &str) -> Result<Vec<u8>, TransformError> {
    let path = folder.join(graph);
    if path.is_file() {
        return Ok(std::fs::read(&path).map_err(DiskError::at(&path))?);
    }
    let name = packed_name(graph);
    let path = folder.join(&name);
    let packed = std::fs::read(&path).map_err(DiskError::at(&path))?;
    unpack(&packed).map_err(|error| refused(&name, error))
}

fn refused(file: &str, error: GraphError) -> TransformError {
    match error {
        GraphError::Cancelled(cancelled) => cancelled.into(),
        error => TransformError::refused(file, error),
    }
}

/// The vocabulary and the voices.
fn is_kept(path: &str) -> bool {
    !path.ends_with(".onnx") && !path.ends_with(PACKED)
}

fn place(from: &Path, to: &Path) -> Result<(), DiskError> {
    make_folder(to.parent().unwrap_or(to))?;
    link_or_copy(from, to)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use prost::Message;

    use super::*;
    use crate::SpeechWeights;
    use crate::onnx::proto::{DATA_INT8, GraphProto, ModelProto, TensorProto};

    /// A speech model with one large weight in each graph.
    fn stored(store: &Store) -> StoredModel {
        let tensor = TensorProto {
            name: "w".to_owned(),
            dims: vec![5000],
            data_type: DATA_INT8,
            raw_data: (0..5000).map(|at| (at % 251) as u8).collect(),
            ..TensorProto::default()
        };
        let graph = GraphProto { initializer: vec![tensor], ..GraphProto::default() };
        let graph = ModelProto { graph: Some(graph), ..ModelProto::default() }.encode_to_vec();
        let parcel = Parcel::new(store, "kokoro").expect("a folder");
        for name in [FRONT, VOCODER, "vocab.json"] {
            std::fs::write(parcel.folder().join(name), &graph).expect("a file");
        }
        let entry = Entry {
            name: "kokoro".to_owned(),
            title: "Kokoro".to_owned(),
            purpose: Purpose::Speech,
            version: "1.0".to_owned(),
            licences: Vec::new(),
            parts: Vec::new(),
        };
        let (transform_version, sources) = (TRANSFORM_VERSION, Vec::new());
        let new = NewModel { entry: &entry, transform_version, sources, asked: None };
        let (cancel, mut ignore) = (AtomicBool::new(false), |_| {});
        parcel.place(new, &mut Watch::new(&mut ignore, &cancel)).expect("a model");
        store.find("kokoro").expect("a model")
    }

    #[test]
    fn a_copy_is_a_model_once_it_is_placed() {
        let home = tempfile::tempdir().expect("a folder");
        let store = Store::open(home.path());
        let source = stored(&store);
        let (cancel, mut ignore) = (AtomicBool::new(false), |_| {});
        let mut watch = Watch::new(&mut ignore, &cancel);
        for name in ["4-bit", "float"] {
            let form = SpeechForm::by_name(name).expect("known");
            assert_eq!(form.to_string(), name);
            let sizes = speech_sizes(&source.folder, form).expect("sizes");
            let copy = QuantizedSpeech::write(&store, &source, (name, form, sizes), &mut watch);
            let copy = copy.expect("a copy");
            assert!(store.find(name).is_err(), "not yet");
            copy.place(&mut watch).expect("a model");
            store.find(name).expect("a model");
        }
        let weights = |name: &str| store.find(name).expect("a model").speech_weights();
        assert_eq!(weights("4-bit"), Some(SpeechWeights::Packed));
        assert_eq!(weights("float"), Some(SpeechWeights::Published));
        let sizes = speech_sizes(&source.folder, SpeechForm::Float).expect("sizes");
        assert_eq!(sizes.integer_bytes, 2 * 5000);
        assert_eq!(sizes.then_bytes, sizes.now_bytes + 3 * 2 * 5000);
        assert_eq!(sizes.now_memory_bytes, WORKER_BYTES + sizes.now_bytes + 3 * 5000);
        assert_eq!(sizes.then_memory_bytes, WORKER_BYTES + sizes.then_bytes);
        let memory = |name: &str| {
            let stored = store.find(name).expect("a model");
            speech_memory_bytes(&stored.folder).expect("a size")
        };
        assert_eq!(memory("kokoro"), sizes.now_memory_bytes);
        assert!(memory("4-bit").abs_diff(memory("kokoro")) < 1000, "unpacked when it is loaded");
        assert_eq!(SpeechForm::by_name("16-bit"), None);
    }

    #[test]
    fn a_cancelled_copy_leaves_nothing() {
        let home = tempfile::tempdir().expect("a folder");
        let store = Store::open(home.path());
        let source = stored(&store);
        let four = SpeechForm::by_name("4-bit").expect("known");
        let cancel = AtomicBool::new(false);
        // The work has begun when it reports its first step.
        let mut report = |_| cancel.store(true, Ordering::Relaxed);
        let mut watch = Watch::new(&mut report, &cancel);
        let sizes = speech_sizes(&source.folder, four).expect("sizes");
        let copy = QuantizedSpeech::write(&store, &source, ("small", four, sizes), &mut watch);
        let refused = copy.expect_err("cancelled");
        assert!(
            matches!(refused, QuantizeSpeechError::Store(StoreError::Cancelled(_))),
            "{refused}"
        );
        let left = std::fs::read_dir(store.model("small")).expect("a folder");
        assert_eq!(left.count(), 0);
        assert_eq!(store.names().expect("names"), ["kokoro"]);
    }
}
