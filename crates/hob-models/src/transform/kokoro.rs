//! Kokoro's stored form: `front.onnx` and `vocoder.onnx` split from the published graph, `vocab.json` with the symbols
//! only, and unchanged `voices/NAME.bin` and `published/model.onnx`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{RawFiles, Transform, TransformError, Transformed, write};
use crate::progress::Watch;
use crate::{DiskError, kokoro};

/// The transformation that `hob pull kokoro` applies.
#[derive(Clone, Copy, Debug, Default)]
pub struct KokoroTransform;

/// Kokoro's configuration has many more keys; only this one is stored.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Vocabulary {
    vocab: BTreeMap<char, u16>,
}

const GRAPH: &str = "model.onnx";
const VOCABULARY: &str = "vocabulary.json";
const VOICES: &str = "voices/";

impl Transform for KokoroTransform {
    fn version(&self) -> u32 {
        kokoro::TRANSFORM_VERSION
    }

    fn apply(&self, raw: &RawFiles, out: &Path, watch: &mut Watch<'_>) -> Transformed {
        store_vocabulary(raw, out)?;
        store_voices(raw, out)?;
        watch.check()?;
        store_graph(raw, out)
    }
}

fn store_graph(raw: &RawFiles, out: &Path) -> Transformed {
    let published = raw.read(GRAPH)?;
    let whole = make(&out.join("published"))?.join(GRAPH);
    raw.place(GRAPH, &whole)?;
    let parts =
        kokoro::transform(&published).map_err(|error| TransformError::refused(GRAPH, error))?;
    write(&out.join(kokoro::FRONT), &parts.front)?;
    write(&out.join(kokoro::VOCODER), &parts.vocoder)
}

fn store_vocabulary(raw: &RawFiles, out: &Path) -> Transformed {
    let refused = |error| TransformError::refused(VOCABULARY, error);
    let vocabulary: Vocabulary = serde_json::from_slice(&raw.read(VOCABULARY)?).map_err(refused)?;
    write(&out.join("vocab.json"), &serde_json::to_vec(&vocabulary).map_err(refused)?)
}

fn store_voices(raw: &RawFiles, out: &Path) -> Transformed {
    make(&out.join(VOICES))?;
    for voice in raw.paths().filter(|path| path.starts_with(VOICES)) {
        raw.place(voice, &out.join(voice))?;
    }
    Ok(())
}

fn make(folder: &Path) -> Result<PathBuf, DiskError> {
    std::fs::create_dir(folder).map_err(DiskError::at(folder))?;
    Ok(folder.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::super::apply_to;
    use super::*;

    fn apply(files: &[(&str, &str)], out: &Path) -> Transformed {
        let files: Vec<(&str, &[u8])> =
            files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
        apply_to(&KokoroTransform, &files, out)
    }

    #[test]
    fn the_vocabulary_is_taken_out_of_the_configuration_and_voices_are_placed_as_they_are() {
        let out = tempfile::tempdir().expect("a folder");
        let config = r#"{"istftnet": {"gen_istft_n_fft": 20}, "vocab": {"ə": 83, ";": 1}}"#;
        let files =
            [(VOCABULARY, config), ("voices/af_heart.bin", "heart"), (GRAPH, "no graph at all")];
        let refused = apply(&files, out.path()).expect_err("not a graph");
        assert!(matches!(&refused, TransformError::Refused { file, .. } if file == GRAPH));
        let read = |file: &str| std::fs::read_to_string(out.path().join(file));
        assert_eq!(read("vocab.json").expect("written"), r#"{"vocab":{";":1,"ə":83}}"#);
        assert_eq!(read("voices/af_heart.bin").expect("placed"), "heart");
    }

    #[test]
    fn a_vocabulary_of_another_shape_is_refused() {
        for text in ["", "{}", r#"{"vocab": {"ab": 1}}"#, r#"{"vocab": {"a": 70000}}"#] {
            let out = tempfile::tempdir().expect("a folder");
            let refused = apply(&[(VOCABULARY, text)], out.path()).expect_err("not a vocabulary");
            assert!(
                matches!(&refused, TransformError::Refused { file, .. } if file == VOCABULARY),
                "{text}: {refused}"
            );
        }
    }
}
