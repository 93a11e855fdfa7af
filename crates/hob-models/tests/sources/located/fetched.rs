//! How files are fetched: headers first, pinned to a commit and a checksum, resumed, and in parts. Only the hub gets the
//! token.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hob_models::{Gguf, Progress, PullError, PullOutcome, PullStep, Sha256};

use super::hub::{COMMIT, Request, TOKEN};
use super::stage::{Stage, model, other, parts, read};
use crate::server::{Manner, Server};

/// How many requests fetch a file to its end.
fn downloads(requests: &[Request]) -> usize {
    let is_download = |request: &&Request| {
        request.host == "store" && request.range.is_none_or(|(_, last)| last.is_none())
    };
    requests.iter().filter(is_download).count()
}

/// Stops a pull after more than so many bytes.
fn after(bytes: u64) -> impl FnMut(&Progress) -> bool {
    move |progress| matches!(progress, Progress::Bytes { step: PullStep::Fetching, done_bytes, .. } if *done_bytes > bytes)
}

/// A hub with a model as `o/m`, and the bytes of its file.
fn with_model() -> (Stage, Vec<u8>) {
    let (stage, file) = (Stage::new(), model());
    stage.hub.put("o/m", &[("m-Q4_K_M.gguf", &file)]);
    (stage, file)
}

#[test]
fn the_header_is_read_before_the_weights_and_the_commit_is_pinned() {
    let (stage, _) = with_model();
    let located = stage.locate("o/m").expect("found");
    let requests = stage.hub.requests();
    assert_eq!(downloads(&requests), 0, "only ranges: {requests:?}");
    assert!(requests.iter().any(|request| request.method == "HEAD"));
    assert_eq!(located.model.shape.architecture, "llama");
    assert_eq!(located.entry.licences[0].spdx, "apache-2.0");
    stage.pull(&located).expect("pulled");
    let requests = stage.hub.requests();
    let asked: Vec<&str> = requests
        .iter()
        .filter(|request| request.host == "hub")
        .map(|request| request.path.as_str())
        .collect();
    assert_eq!(asked, [format!("/o/m/resolve/{COMMIT}/m-Q4_K_M.gguf")]);
    assert_eq!(downloads(&requests), 1);
}

#[test]
fn a_second_pull_fetches_nothing_and_a_new_version_replaces_the_old_one() {
    let (stage, _) = with_model();
    assert_eq!(stage.fetch("o/m").outcome, PullOutcome::Fetched);
    stage.hub.requests();
    assert_eq!(stage.fetch("o/m").outcome, PullOutcome::AlreadyStored);
    assert_eq!(downloads(&stage.hub.requests()), 0);
    stage.hub.put("o/m", &[("m-Q4_K_M.gguf", &other())]);
    let renewed = stage.fetch("o/m:Q4_K_M");
    assert_eq!(renewed.outcome, PullOutcome::Fetched);
    assert_eq!(read(&renewed.model.chat_file().expect("a file")), other());
    let removed = stage.store.remove("o/m:Q4_K_M").expect("removed");
    assert!(removed.freed_bytes >= other().len() as u64);
    assert_eq!(stage.store.names(), Ok(Vec::new()));
}

#[test]
fn a_broken_download_continues_where_it_broke() {
    let (stage, file) = with_model();
    let located = stage.locate("o/m").expect("found");
    stage.hub.requests();
    stage.hub.cut(&[100_000, 150_000]);
    assert_eq!(read(&stage.pull(&located).expect("pulled").model.chat_file().expect("it")), file);
    let requests = stage.hub.requests();
    let froms: Vec<_> =
        requests.iter().filter(|one| one.host == "store").map(|one| one.range).collect();
    assert_eq!(froms, [None, Some((100_000, None)), Some((250_000, None))]);
}

#[test]
fn the_next_pull_continues_after_ctrl_c() {
    let (stage, file) = with_model();
    let located = stage.locate("o/m").expect("found");
    let stopped = stage.pull_watched(&located, &mut after(200_000)).expect_err("stopped");
    assert!(matches!(stopped, PullError::Cancelled(_)), "{stopped}");
    assert_eq!(stage.store.names(), Ok(Vec::new()), "no half model");
    stage.hub.requests();
    assert_eq!(read(&stage.fetch("o/m").model.chat_file().expect("a file")), file);
    let requests = stage.hub.requests();
    let resumed =
        requests.iter().any(|one| matches!(one.range, Some((from, None)) if from > 200_000));
    assert!(resumed, "{requests:?}");
}

/// On macOS, a copy takes no time.
#[cfg(not(target_os = "macos"))]
#[test]
fn ctrl_c_ends_the_copy_of_a_file_of_the_user_in_the_middle() {
    let stage = Stage::new();
    let path = stage.write("downloads/mine.gguf", &model());
    let bytes = 40 << 20;
    File::options().write(true).open(&path).and_then(|file| file.set_len(bytes)).expect("longer");
    let located = stage.locate(&path).expect("found");
    let mut copied_bytes = 0;
    let stopped = stage.pull_watched(&located, &mut |progress: &Progress| {
        if let Progress::Bytes { step: PullStep::Fetching, done_bytes, .. } = progress {
            copied_bytes = *done_bytes;
        }
        copied_bytes > 0
    });
    assert!(matches!(stopped, Err(PullError::Cancelled(_))), "{stopped:?}");
    assert!((1..bytes).contains(&copied_bytes), "{copied_bytes}");
    assert_eq!(stage.fetch(&path).outcome, PullOutcome::Fetched);
}

#[test]
fn a_pull_does_not_continue_the_part_of_another_version() {
    let (stage, file) = with_model();
    let located = stage.locate("o/m").expect("found");
    stage.pull_watched(&located, &mut after(0)).expect_err("stopped");
    let mut changed = file;
    let end = changed.len() - 1;
    changed[end] = 7;
    stage.hub.put("o/m", &[("m-Q4_K_M.gguf", &changed)]);
    assert_eq!(read(&stage.fetch("o/m").model.chat_file().expect("a file")), changed);
}

#[test]
fn a_download_does_not_continue_an_interrupted_copy() {
    let (stage, file) = with_model();
    stage.hub.without_checksums();
    // It leaves a note of what it is a part of.
    let located = stage.locate("o/m").expect("found");
    stage.pull_watched(&located, &mut after(0)).expect_err("stopped");
    let own = stage.write("downloads/mine.gguf", &other());
    let located = stage.finder().locate(&own, Some("o/m:Q4_K_M")).expect("found");
    stage.pull_watched(&located, &mut after(0)).expect_err("stopped");
    assert_eq!(read(&stage.fetch("o/m").model.chat_file().expect("a file")), file);
}

/// Puts a model of two parts on the hub as `o/m`, and returns its parts.
fn put_parts(stage: &Stage) -> [Vec<u8>; 2] {
    let [first, second] = parts();
    let files: [(&str, &[u8]); 2] =
        [("m-Q4_K_M-00001-of-00002.gguf", &first), ("m-Q4_K_M-00002-of-00002.gguf", &second)];
    stage.hub.put("o/m", &files);
    [first, second]
}

#[test]
fn all_parts_are_stored_under_names_by_which_the_engine_finds_them() {
    let stage = Stage::new();
    let [first, second] = put_parts(&stage);
    let stored = stage.fetch("o/m").model;
    let paths: Vec<&str> = stored.manifest.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["model-00001-of-00002.gguf", "model-00002-of-00002.gguf"]);
    let path = stored.chat_file().expect("a chat model");
    assert!(path.ends_with("model-00001-of-00002.gguf"));
    let whole = Gguf::open(&path).expect("a header");
    assert_eq!((whole.tensors().len(), whole.missing_bytes()), (12, 0));
    let card = hob_models::gguf::card(&path, None).expect("a card");
    assert_eq!(card.file_bytes, (first.len() + second.len()) as u64);
}

#[test]
fn a_gated_repository_opens_with_the_token_and_no_other_host_gets_it() {
    let mut stage = Stage::new();
    stage.hub.put("o/new", &[("m-Q4_K_M.gguf", &model())]);
    stage.hub.gate("o/new");
    stage.token = Some(TOKEN.to_owned());
    stage.fetch("o/new");
    let requests = stage.hub.requests();
    assert_eq!(downloads(&requests), 1, "{requests:?}");
    for request in requests {
        let expected = (request.host == "hub").then(|| TOKEN.to_owned());
        assert_eq!(request.token, expected, "{request:?}");
    }
    let shown = format!("{:?}", stage.finder());
    assert!(!shown.contains(TOKEN), "{shown}");
}

#[test]
fn a_repository_that_was_renamed_is_followed_to_its_new_name() {
    let stage = Stage::new();
    stage.hub.put("o/new", &[("m-Q4_K_M.gguf", &model())]);
    stage.hub.rename("o/old", "o/new");
    let stored = stage.fetch("o/old").model;
    assert_eq!(stored.name(), "o/old:Q4_K_M");
    assert!(stored.manifest.sources[0].source.contains("o/new"), "{:?}", stored.manifest);
}

#[test]
fn a_gated_repository_that_was_renamed_opens_with_the_token() {
    let mut stage = Stage::new();
    stage.hub.put("o/new", &[("m-Q4_K_M.gguf", &model())]);
    stage.hub.gate("o/new");
    stage.hub.rename("o/old", "o/new");
    stage.token = Some(TOKEN.to_owned());
    stage.fetch("o/old");
    let requests = stage.hub.requests();
    assert!(requests.iter().all(|one| one.token.is_some() == (one.host == "hub")), "{requests:?}");
}

#[test]
fn bytes_that_do_not_match_the_checksum_of_the_hub_are_deleted() {
    let (stage, _) = with_model();
    let mut located = stage.locate("o/m").expect("found");
    let wrong = Sha256::of(b"something else");
    located.entry.parts[0].sources[0].files[0].pin.sha256 = Some(wrong);
    let said = stage.pull(&located).expect_err("refused").to_string();
    assert!(said.contains(&wrong.to_string()) && said.contains("it was deleted"), "{said}");
    assert_eq!(stage.store.names(), Ok(Vec::new()));
}

#[test]
fn without_a_checksum_of_the_hub_length_and_header_are_checked() {
    let (stage, file) = with_model();
    stage.hub.without_checksums();
    let located = stage.locate("o/m").expect("found");
    let pin = located.entry.parts[0].sources[0].files[0].pin;
    assert_eq!((pin.bytes, pin.sha256), (file.len() as u64, None));
    let stored = stage.pull(&located).expect("pulled").model;
    assert_eq!(stored.manifest.files[0].sha256, Sha256::of(&file), "it is known from then on");
}

/// Changes the last byte of a file in place, and dates it an hour back.
fn change(path: &Path) -> Vec<u8> {
    let mut bytes = read(path);
    *bytes.last_mut().expect("a byte") ^= 1;
    fs::write(path, &bytes).expect("written");
    let an_hour_ago = SystemTime::now() - Duration::from_secs(3600);
    let file = File::options().write(true).open(path).expect("open");
    file.set_modified(an_hour_ago).expect("a time");
    bytes
}

/// The download folder may share the bytes of the stored file.
#[test]
fn a_damaged_file_is_fetched_again_also_without_a_checksum_of_the_hub() {
    let (stage, file) = with_model();
    stage.hub.without_checksums();
    let own = stage.write("downloads/mine.gguf", &file);
    for asked in ["o/m", own.as_str()] {
        let stored = stage.fetch(asked).model;
        assert_ne!(change(&stored.chat_file().expect("a file")), file);
        let again = stage.fetch(asked);
        assert_eq!(again.outcome, PullOutcome::Fetched, "{asked}");
        assert_eq!(read(&again.model.chat_file().expect("a file")), file, "{asked}");
        assert_eq!(stage.fetch(asked).outcome, PullOutcome::AlreadyStored, "{asked}");
    }
    assert_eq!(read(Path::new(&own)), file, "the user's own file stays as it was");
}

#[test]
fn all_parts_are_fetched_again_if_one_is_damaged_and_another_is_cut_short() {
    let stage = Stage::new();
    let [first, second] = put_parts(&stage);
    stage.hub.without_checksums();
    let stored = stage.fetch("o/m").model;
    let stored = [0, 1].map(|part| stored.folder.join(&stored.manifest.files[part].path));
    assert_ne!(change(&stored[0]), first);
    File::options().write(true).open(&stored[1]).and_then(|file| file.set_len(9)).expect("cut");
    stage.fetch("o/m");
    assert_eq!(stored.map(|path| read(&path)), [first, second]);
}

#[test]
fn a_file_of_the_user_that_changed_is_stored_again_although_it_is_as_long_as_before() {
    let stage = Stage::new();
    let path = stage.write("downloads/mine.gguf", &model());
    assert_eq!(stage.fetch(&path).outcome, PullOutcome::Fetched);
    assert_eq!(stage.fetch(&path).outcome, PullOutcome::AlreadyStored);
    let changed = change(Path::new(&path));
    let again = stage.fetch(&path);
    assert_eq!(again.outcome, PullOutcome::Fetched);
    assert_eq!(read(&again.model.chat_file().expect("a file")), changed);
}

#[test]
fn a_file_at_an_address_that_changed_is_stored_again_although_it_is_as_long_as_before() {
    let (first, mut second) = (model(), model());
    *second.last_mut().expect("a byte") ^= 1;
    for name in ["Last-Modified", "ETag"] {
        let (stage, server) = (Stage::new(), Server::start());
        let put = |bytes: &[u8], stated: &str| {
            server.put_with("/m.gguf", bytes, Manner::Ranges, (name, stated.to_owned()));
        };
        let address = format!("{}/m.gguf", server.address);
        put(&first, "1");
        let stored = stage.fetch(&address).model.folder.join("model.gguf");
        assert_eq!(read(&stored), first);
        assert_eq!(stage.fetch(&address).outcome, PullOutcome::AlreadyStored, "{name}");
        put(&second, "2");
        let stored = stage.fetch(&address).model.folder.join("model.gguf");
        assert!(read(&stored) == second, "{name}");
    }
}
