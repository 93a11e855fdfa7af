//! Headers over HTTP: how much is fetched of a file, and what servers may do to it.

use hob_models::gguf::sample::SampleGguf;

use super::generated::{CONFIG, ROWS, find, finder, parts, refused, safetensors};
use crate::server::{Manner, Server};

const MIB: usize = 1 << 20;

/// A header of about so many bytes, and as much data as follows it.
fn with_header(bytes: usize) -> Vec<u8> {
    let tokens = vec!["x".repeat(92); bytes / 100];
    SampleGguf::llama()
        .texts("tokenizer.ggml.tokens", &tokens)
        .tensor("more.weight", &[MIB as u64])
        .bytes()
}

fn whole(bytes: &[u8]) -> hob_core::ModelShape {
    let gguf = hob_models::Gguf::read(std::io::Cursor::new(bytes)).expect("a sound file");
    gguf.shape().expect("a shape")
}

#[test]
fn one_request_brings_a_short_header_and_two_bring_a_long_one() {
    let server = Server::start();
    for (header, requests, bytes_max) in [(100_000, 1, MIB), (3 * MIB, 2, 4 * MIB)] {
        for manner in [Manner::Ranges, Manner::Whole] {
            let file = with_header(header);
            let address = server.put("/x/model.gguf", &file, manner);
            let found = find(&finder(), &format!("{address}?download=true"));
            assert_eq!((&*found.model.name, &found.model.shape), ("model", &whole(&file)));
            let expected = if manner == Manner::Whole { 1 } else { requests };
            assert_eq!(found.requests, expected, "{manner:?}");
            assert!(found.fetched_bytes <= bytes_max as u64 + 65_536, "{}", found.fetched_bytes);
            assert_eq!(server.requests().len(), expected as usize);
            assert_eq!(found.notes, [""; 0]);
        }
    }
}

#[test]
fn files_that_are_cut_say_so() {
    let server = Server::start();
    let file = with_header(100_000);
    let address = server.put("/a.gguf", &file[..file.len() - 1_000], Manner::Ranges);
    assert!(find(&finder(), &address).notes[0].contains("1000 bytes are missing"));
    let address = server.put("/a.gguf", &file[..50_000], Manner::Ranges);
    assert!(refused(&finder(), &address).contains("cut short"));
}

#[test]
fn all_parts_are_asked_for() {
    let server = Server::start();
    let [first, second] = parts();
    let address = server.put("/a-00001-of-00002.gguf", &first, Manner::Ranges);
    assert!(refused(&finder(), &address).contains("/a-00002-of-00002.gguf is missing, one of 2"));
    server.put("/a-00002-of-00002.gguf", &second, Manner::Ranges);
    let found = find(&finder(), &address);
    assert_eq!((found.requests, found.model.shape.weights.is_tied()), (2, false));
}

#[test]
fn safetensors_take_one_request_and_one_for_their_configuration() {
    let server = Server::start();
    server.put("/x/config.json", CONFIG.as_bytes(), Manner::Whole);
    for (padding, requests) in [(0, 2), (300_000, 3)] {
        let file = safetensors(&ROWS, padding);
        let address = server.put("/x/model.safetensors", &file, Manner::Ranges);
        let found = find(&finder(), &address);
        assert_eq!((found.requests, &*found.model.quant), (requests, "BF16"));
    }
}

#[test]
fn what_servers_do_is_said_in_one_sentence() {
    let server = Server::start();
    let file = with_header(2 * MIB);
    let rows = [
        (Manner::Status(401), "answered with status 401; hob sends no token and no query to this"),
        (Manner::Status(403), "answered with status 403; hob sends no token and no query to this"),
        (Manner::Status(404), "does not exist"),
        (Manner::Status(500), "answered with status 500"),
        (Manner::CutAfter(1_000), "cannot be reached"),
        (Manner::Elsewhere, "a different byte range"),
        (Manner::Crumbs, "cannot be read"),
    ];
    for (manner, expected) in rows {
        let address = server.put("/a.gguf", &file, manner);
        let said = refused(&finder(), &address);
        assert!(said.contains(expected) && !said.contains('\n'), "{manner:?}: {said}");
        assert!(server.requests().len() <= 4);
    }
    let said = refused(&finder(), "http://127.0.0.1:1/a.gguf");
    assert!(said.contains("http://127.0.0.1:1/a.gguf cannot be reached"), "{said}");
}
