//! Smart Turn v3.2 in 8-bit ONNX, which hears whether a sentence is complete, with Silero VAD, which hears speech.
//! Both projects publish the same files in a repository and in a Python package.

use super::whisper::speech_detection;
use super::{
    CatalogPart, DownloadSource, Entry, Licence, Origin, Purpose, SourceFile, package, piece, pin,
};
use crate::turn_taking::{NAME, TURN};

pub(super) fn entry() -> Entry {
    let licence = |covers: &str, spdx: &str| Licence { covers: covers.into(), spdx: spdx.into() };
    Entry {
        name: NAME.into(),
        title: "Smart Turn v3.2, with Silero VAD".into(),
        purpose: Purpose::TurnTaking,
        version: "3.2".into(),
        licences: vec![licence("weights", "BSD-2-Clause"), licence("speech detection", "MIT")],
        parts: vec![graph(), speech_detection()],
    }
}

fn graph() -> CatalogPart {
    let sha256 = "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f";
    let file = |at: &str| {
        let pin = pin(8_679_182, sha256);
        vec![SourceFile { path: TURN.into(), pin, pieces: vec![piece(at)] }]
    };
    let hub = Origin::Hub {
        repo: "pipecat-ai/smart-turn-v3".into(),
        revision: "f766f81d3cfdf7737ac64aad813d91bbfd56bf93".into(),
    };
    let wheel = package(
        "pipecat-ai",
        "1.14.0",
        12_109_725,
        "0352f504b44e78bdf524e45af4bc759601c835b9b7dc195efe5e03384b974a44",
    );
    let in_wheel = "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx";
    CatalogPart {
        name: "turn detection".into(),
        sources: vec![
            DownloadSource { origin: hub, files: file("smart-turn-v3.2-cpu.onnx") },
            DownloadSource { origin: Origin::Wheels(vec![wheel]), files: file(in_wheel) },
        ],
    }
}
