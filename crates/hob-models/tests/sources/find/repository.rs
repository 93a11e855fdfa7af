//! Repositories of a hub that is a server on the loopback interface.

use hob_core::fit::Format;
use hob_core::weights::Part;
use hob_models::Finder;
use hob_models::gguf::sample::SampleGguf;

use super::generated::{CONFIG, ROWS, find, finder, quant, refused, safetensors};
use crate::server::{Manner, Server};

fn tree(server: &Server, repo: &str, files: &[(&str, &[u8])]) {
    let entry = |(path, bytes): &(&str, &[u8])| {
        server.put(&format!("/{repo}/resolve/main/{path}"), bytes, Manner::Ranges);
        format!(r#"{{"type": "file", "path": "{path}", "size": {}, "oid": "x"}}"#, bytes.len())
    };
    let folder = r#"{"type": "directory", "path": "sub", "oid": "x", "size": 0}"#.to_owned();
    let entries: Vec<String> = files.iter().map(entry).chain([folder]).collect();
    let json = format!("[{}]", entries.join(","));
    server.put(&list(repo), json.as_bytes(), Manner::Whole);
}

fn list(repo: &str) -> String {
    format!("/api/models/{repo}/tree/main?recursive=true")
}

fn of(server: &Server) -> Finder {
    Finder { hub: server.address.clone(), token: Some("secret".to_owned()), ..finder() }
}

#[test]
fn the_quant_that_is_asked_for_is_read_and_no_other() {
    let server = Server::start();
    let model = SampleGguf::llama().u32("general.file_type", 15).bytes();
    let eyes = vec![0; 5_000];
    let files: [(&str, &[u8]); 4] = [
        ("m-Q4_K_M.gguf", &model),
        ("sub/m-Q8_0.gguf", &model),
        ("mmproj-BF16.gguf", &[]),
        ("mmproj-F16.gguf", &eyes),
    ];
    tree(&server, "o/m-GGUF", &files);
    let finder = of(&server);
    let rows = [
        ("o/m-GGUF", "/resolve/main/m-Q4_K_M.gguf", 2),
        ("hf:o/m-GGUF:q8_0", "/resolve/main/sub/m-Q8_0.gguf", 2),
        ("o/m-GGUF/sub/m-Q8_0.gguf", "/resolve/main/sub/m-Q8_0.gguf", 1),
    ];
    for (asked, source, requests) in rows {
        let found = find(&finder, asked);
        assert!(found.source.ends_with(source), "{asked}: {}", found.source);
        assert_eq!(found.requests, requests, "{asked}");
        let tower = found.model.shape.weights.sum(|group| group.part == Part::Tower);
        assert_eq!(tower, if requests == 2 { 5_000 } else { 0 });
    }
    let page = format!("{}/o/m-GGUF", server.address);
    assert!(find(&finder, &page).source.ends_with("m-Q4_K_M.gguf"));
    let blob = format!("{page}/blob/main/m-Q4_K_M.gguf");
    assert!(find(&finder, &blob).source.ends_with("/resolve/main/m-Q4_K_M.gguf"));
    let none = refused(&finder, "o/m-GGUF:Q2_K");
    assert!(none.contains("has no Q2_K; there are m-Q4_K_M.gguf, sub/m-Q8_0.gguf"), "{none}");
}

#[test]
fn a_quant_that_nobody_made_is_made_up() {
    let server = Server::start();
    let model = SampleGguf::llama().u32("general.file_type", 7).bytes();
    tree(&server, "o/m", &[("m-Q8_0.gguf", &model)]);
    let finder = of(&server);
    assert_eq!(find(&finder, "o/m").model.quant, "Q8_0");
    let made = finder.find("o/m", quant("Q4_0")).expect("made up");
    assert_eq!(made.model.quant, "Q4_0");
    assert!(made.notes[0].contains("as Q4_0 would store them"), "{:?}", made.notes);
}

#[test]
fn safetensors_are_read_where_there_is_no_gguf() {
    let server = Server::start();
    let config = CONFIG.replace(
        '}',
        r#", "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}"#,
    );
    let rows = [
        ROWS[0],
        ("model.layers.0.mlp.up_proj.qweight", "I32", &[64, 16], 4),
        ("model.layers.0.mlp.up_proj.scales", "F16", &[1, 128], 2),
    ];
    let file = safetensors(&rows, 0);
    let files: [(&str, &[u8]); 2] =
        [("config.json", config.as_bytes()), ("model.safetensors", &file)];
    tree(&server, "o/m-AWQ", &files);
    let found = find(&of(&server), "o/m-AWQ");
    assert_eq!((found.model.format, &*found.model.quant), (Format::Awq, "AWQ 4-bit g128"));
    assert_eq!((&*found.model.name, found.requests), ("m-AWQ", 3));
    let dense = found.model.shape.weights.0.iter().filter(|group| group.part == Part::Dense);
    let sums: Vec<_> = dense.map(|group| (group.elements, group.bytes)).collect();
    assert_eq!(sums, [(64 * 128, 4_096 + 256)]);
    let none = refused(&of(&server), "o/m-AWQ:Q9");
    assert!(none.contains("unknown quant 'Q9'"), "{none}");
    let made = find(&of(&server), "o/m-AWQ:Q4_K_M");
    assert_eq!((made.model.format, made.requests), (Format::Gguf, 2));
}

#[test]
fn a_revision_is_another_set_of_files() {
    let server = Server::start();
    let files = r#"[{"type": "file", "path": "m.gguf", "size": 1}]"#;
    server.put("/api/models/o/m/tree/4.0bpw?recursive=true", files.as_bytes(), Manner::Whole);
    server.put("/o/m/resolve/4.0bpw/m.gguf", &SampleGguf::llama().bytes(), Manner::Ranges);
    assert!(find(&of(&server), "o/m@4.0bpw").source.ends_with("/resolve/4.0bpw/m.gguf"));
}

#[test]
fn long_lists_go_on() {
    let server = Server::start();
    tree(&server, "o/m", &[("m.gguf", &SampleGguf::llama().bytes())]);
    let next = format!("<{}{}>; rel=\"next\"", server.address, list("o/m"));
    server.put_with(&list("o/long"), b"[]", Manner::Whole, ("Link", next));
    server.put("/o/long/resolve/main/m.gguf", &SampleGguf::llama().bytes(), Manner::Ranges);
    assert_eq!(find(&of(&server), "o/long").requests, 3);
    // One that never ends does, and one that leads elsewhere is not followed.
    let round = format!("<{}{}>; rel=\"next\"", server.address, list("o/round"));
    server.put_with(&list("o/round"), b"[]", Manner::Whole, ("Link", round));
    assert!(refused(&of(&server), "o/round").contains("o/round has no model"));
    let away = "<http://127.0.0.1:1/x>; rel=\"next\"".to_owned();
    server.put_with(&list("o/away"), b"[]", Manner::Whole, ("Link", away));
    assert!(refused(&of(&server), "o/away").contains("o/away has no model"));
}

#[test]
fn repositories_that_say_no_are_told_from_those_that_are_not_there() {
    let server = Server::start();
    let rows = [
        (Manner::Status(401), "/o/m needs a token, or does not exist"),
        (Manner::Status(403), "/o/m is gated"),
        (Manner::Status(404), "/o/m does not exist"),
        (Manner::Status(429), "answered with status 429; it limits requests, so try again"),
        (Manner::Whole, "not a list of a repository's files"),
    ];
    for (manner, expected) in rows {
        server.put(&list("o/m"), b"<html>", manner);
        let said = refused(&of(&server), "o/m");
        assert!(said.contains(expected) && !said.contains('\n'), "{said}, and not {expected}");
    }
    tree(&server, "o/torch", &[("pytorch_model.bin", b"")]);
    let said = refused(&of(&server), "o/torch");
    assert!(said.contains("no model that hob can read, only pytorch_model.bin"), "{said}");
    let said = refused(&finder(), "o/m");
    assert!(said.contains("cannot be reached"), "{said}");
}

#[test]
fn the_token_is_told_to_the_hub_alone() {
    let hub = Server::start();
    let other = Server::start();
    let model = SampleGguf::llama().bytes();
    tree(&hub, "o/m", &[("m.gguf", &model)]);
    let elsewhere = other.put("/m.gguf", &model, Manner::Ranges);
    let location = ("Location", elsewhere.clone());
    hub.put_with("/o/m/resolve/main/moved.gguf", b"", Manner::Moved, location);
    let finder = of(&hub);
    find(&finder, "o/m");
    find(&finder, &elsewhere);
    find(&finder, "o/m/moved.gguf");
    assert!(hub.requests().iter().all(|one| one.token.as_deref() == Some("secret")));
    let asked = other.requests();
    assert!(asked.len() == 2 && asked.iter().all(|one| one.token.is_none()), "{asked:?}");
    assert!(!format!("{finder:?}").contains("secret"));
}
