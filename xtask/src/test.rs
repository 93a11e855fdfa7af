//! `cargo xtask test`: runs the test programs of all crates, several at the same time.
//! `cargo test` runs them one after the other, and many of ours mostly wait.

use std::io::{BufRead, BufReader, PipeReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::tree::{File, Tree, root};

/// Test programs that take long but mostly wait, or measure times. They start first, and others run at the same time.
const FIRST: [&str; 4] = ["cli", "cells", "eval", "speech_worker"];
/// Test programs that keep every core busy. They start last, when no other test measures times any more, and one of short tests
/// ends the run.
const LAST: [&str; 3] = ["turn_taking", "hob_engines", "hob_speech"];
/// The parts of `hob_engines`, with the arguments that select their tests. The longest test of the program is also its last and
/// computes on one thread, so it would end alone.
const ENGINES: [(&str, &[&str]); 2] =
    [("turn_taking", &["turn_taking::"]), ("hob_engines", &["--skip", "turn_taking::"])];

/// How long to wait for the end of the output after a test program has ended. A process that outlives its test
/// keeps the output open.
const OUTPUT_TIME_MAX: Duration = Duration::from_secs(5);
/// Pieces of output that wait to be collected.
const PIECES_MAX: usize = 64;
/// The crate in `vendor/` that hob uses instead of the published one.
const PATCHED: &str = "rten-gemm";
const LEAKED: &str =
    "\na process that this program started still runs; the output may be incomplete\n";

/// A program that `cargo test` built, or a part of its tests.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    name: String,
    path: PathBuf,
    args: &'static [&'static str],
    /// Where cargo would start it: its crate's folder.
    folder: PathBuf,
}

/// What cargo prints for each thing it builds; anything else has no `executable`.
#[derive(Debug, Deserialize)]
struct Built {
    manifest_path: Option<PathBuf>,
    executable: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

/// Builds and runs every test program, `jobs` at the same time, then the tests in doc comments. The tests of the patched crate
/// are built and run while the last programs still run.
///
/// # Errors
/// Something does not build, or a test program fails; the others are run all the same.
pub(crate) fn run(jobs: usize) -> Result<()> {
    let programs: Vec<Program> = programs()?.into_iter().flat_map(parts).collect();
    ensure!(!programs.is_empty(), "cargo built no test program");
    let total = programs.len();
    let failed = Mutex::new(Vec::new());
    let queue = Mutex::new(in_order(programs));
    let patched_began = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, total) {
            scope.spawn(|| {
                work(&queue, &failed);
                if !patched_began.swap(true, Ordering::Relaxed) {
                    run_one(PATCHED, patched(), &failed);
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap_or_default();
    // Without an example to run, this would take a while and test nothing.
    if has_doc_tests(&Tree::read()?.files)
        && !cargo(&["test", "--locked", "--workspace", "--doc", "--quiet"])?.success()
    {
        failed.push("the tests in doc comments".to_owned());
    }
    if !failed.is_empty() {
        bail!("{} of {total} test programs failed: {}", failed.len(), failed.join(", "));
    }
    Ok(())
}

/// Whether a doc comment has an example. Every second fence ends a block; blocks of `text` are not compiled.
fn has_doc_tests(files: &[File]) -> bool {
    let has_example = |file: &File| {
        let comments = file.text.lines().map(str::trim_start);
        let comments =
            comments.filter_map(|line| line.strip_prefix("//")?.strip_prefix(['/', '!']));
        let fences = comments.filter_map(|comment| comment.trim().strip_prefix("```"));
        fences.step_by(2).any(|language| language != "text")
    };
    files.iter().any(|file| file.is_rust() && has_example(file))
}

/// Runs programs until none is left.
fn work(queue: &Mutex<Vec<Program>>, failed: &Mutex<Vec<String>>) {
    let next = || queue.lock().ok().and_then(|mut queue| queue.pop());
    while let Some(program) = next() {
        run_one(&program.name, command(&program), failed);
    }
}

fn run_one(name: &str, command: Command, failed: &Mutex<Vec<String>>) {
    let begun = Instant::now();
    let outcome = output(command, OUTPUT_TIME_MAX);
    if !report(name, &outcome, begun.elapsed())
        && let Ok(mut failed) = failed.lock()
    {
        failed.push(name.to_owned());
    }
}

/// The tests of the patched crate. It is no member of the workspace, so `--workspace` leaves them out.
fn patched() -> Command {
    let mut command = cargo_command();
    command.args(["test", "--locked", "--package", PATCHED, "--lib", "--quiet"]);
    command.current_dir(root());
    command
}

fn command(program: &Program) -> Command {
    let mut command = Command::new(&program.path);
    command.args(program.args);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    // cargo names the package here. Tests of a worker's environment need a variable that it must not have.
    command.env("CARGO_PKG_NAME", &program.name);
    command
}

/// Runs a program. Returns both of its streams in one text, in the order in which it wrote them.
fn output(mut command: Command, output_time_max: Duration) -> Result<(ExitStatus, Vec<u8>)> {
    let (reader, writer) = std::io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let child = command.spawn();
    let mut child =
        child.with_context(|| format!("{} cannot be started", command.get_program().display()))?;
    // The command holds the writing end of the pipe in this process.
    drop(command);
    let pieces = pieces(reader);
    // The pipe must be emptied while the program runs, or it would wait for this process.
    let mut text = Vec::new();
    let status = loop {
        match pieces.recv_timeout(Duration::from_millis(100)) {
            Ok(piece) => text.extend(piece),
            Err(RecvTimeoutError::Disconnected) => return Ok((child.wait()?, text)),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(status) = child.try_wait()? {
                    break status;
                }
            }
        }
    };
    let ends = Instant::now() + output_time_max;
    loop {
        match pieces.recv_timeout(ends.saturating_duration_since(Instant::now())) {
            Ok(piece) if Instant::now() < ends => text.extend(piece),
            Err(RecvTimeoutError::Disconnected) => break,
            Ok(_) | Err(RecvTimeoutError::Timeout) => {
                text.extend(LEAKED.as_bytes());
                break;
            }
        }
    }
    Ok((status, text))
}

/// Reads a pipe on a thread of its own, because a read cannot be given up.
fn pieces(mut reader: PipeReader) -> Receiver<Vec<u8>> {
    let (sender, pieces) = sync_channel(PIECES_MAX);
    std::thread::spawn(move || {
        let mut piece = vec![0; 64 << 10];
        while let Ok(length @ 1..) = reader.read(&mut piece) {
            if sender.send(piece[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    pieces
}

/// Prints a program's output as a whole; says whether it passed.
fn report(name: &str, outcome: &Result<(ExitStatus, Vec<u8>)>, took: Duration) -> bool {
    let mut stderr = std::io::stderr().lock();
    let (passed, text) = match outcome {
        Ok((status, text)) => (status.success(), text.clone()),
        Err(error) => (false, format!("{error:#}\n").into_bytes()),
    };
    let verdict = if passed { "passed" } else { "FAILED" };
    let head = format!("\n==> {name} {verdict} in {:.0} s\n", took.as_secs_f64());
    // When stderr is closed, the exit code still tells the outcome.
    let _unreadable = stderr.write_all(head.as_bytes()).and_then(|()| stderr.write_all(&text));
    passed
}

/// Builds all test programs and lists them.
fn programs() -> Result<Vec<Program>> {
    let args =
        ["test", "--locked", "--workspace", "--no-run", "--message-format=json-render-diagnostics"];
    let mut cargo = cargo_command()
        .args(args)
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo cannot be started")?;
    let stdout = cargo.stdout.take().context("cargo has no output")?;
    let mut programs = Vec::new();
    for line in BufReader::new(stdout).lines() {
        programs.extend(program(&line?));
    }
    ensure!(cargo.wait()?.success(), "the tests do not build");
    Ok(programs)
}

fn program(line: &str) -> Option<Program> {
    let built: Built = serde_json::from_str(line).ok()?;
    let folder = built.manifest_path?.parent().map(Path::to_path_buf)?;
    let is_test = built.profile?.test;
    let (name, path) = (built.target?.name, built.executable?);
    is_test.then_some(Program { name, path, args: &[], folder })
}

/// The runs of a program, each test in one of them.
fn parts(program: Program) -> Vec<Program> {
    if program.name != "hob_engines" {
        return vec![program];
    }
    ENGINES.map(|(name, args)| Program { name: name.to_owned(), args, ..program.clone() }).into()
}

/// The first one last, because programs are taken from the end.
fn in_order(mut programs: Vec<Program>) -> Vec<Program> {
    let place =
        |names: &[&str], program: &Program| names.iter().position(|name| *name == program.name);
    let rank = |program: &Program| match place(&LAST, program) {
        Some(last) => FIRST.len() + 1 + last,
        None => place(&FIRST, program).unwrap_or(FIRST.len()),
    };
    programs.sort_by_key(|program| std::cmp::Reverse(rank(program)));
    programs
}

/// Cargo without what `cargo run` tells this program about its own package. The build script of `ring` watches these
/// variables: with other values cargo would compile it again, and all crates that use it.
fn cargo_command() -> Command {
    let mut command = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        let of_package = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if of_package.iter().any(|start| name.to_string_lossy().starts_with(start)) {
            command.env_remove(name);
        }
    }
    // They name make's job server, which it shares with other makes only.
    command.env_remove("MAKEFLAGS").env_remove("MFLAGS");
    command
}

fn cargo(args: &[&str]) -> Result<ExitStatus> {
    Ok(cargo_command().args(args).current_dir(root()).status()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Program {
        Program { name: name.to_owned(), path: "/bin/sh".into(), args: &[], folder: "/".into() }
    }

    #[test]
    fn only_test_programs_are_run() {
        let line = |executable: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/a/x/Cargo.toml","target":{{"name":"x"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let expected = Program { path: "/t/x-1".into(), folder: "/a/x".into(), ..named("x") };
        assert_eq!(program(&line(r#""/t/x-1""#, true)), Some(expected));
        assert_eq!(program(&line(r#""/t/x-1""#, false)), None);
        assert_eq!(program(&line("null", true)), None);
        assert_eq!(program(r#"{"reason":"build-finished","success":true}"#), None);
    }

    #[test]
    fn programs_that_wait_start_first_and_those_that_compute_last() {
        let order = ["hob_engines", "xtask", "cells", "hob_speech", "cli"].map(named);
        let order = in_order(order.into_iter().flat_map(parts).collect());
        let names: Vec<&str> = order.iter().rev().map(|program| program.name.as_str()).collect();
        assert_eq!(names, ["cli", "cells", "xtask", "turn_taking", "hob_engines", "hob_speech"]);
    }

    #[test]
    fn each_test_of_the_engines_is_in_one_of_two_parts() {
        let parts = parts(named("hob_engines"));
        let [one, rest] = &parts[..] else { panic!("{parts:?}") };
        assert_eq!(one.args.len(), 1);
        assert_eq!(rest.args, [&["--skip"][..], one.args].concat());
    }

    #[test]
    fn examples_in_doc_comments_are_found() {
        let found =
            |text: &str| has_doc_tests(&[File::new("a.rs", text), File::new("b.md", "```")]);
        assert!(found("    /// ```\n    /// f();\n    /// ```\nfn f() {}\n"));
        assert!(found("//! ```text\n//! a\n//! ```\n//! ```no_run\n//! f();\n//! ```\n"));
        assert!(!found("//! ```text\n//! a -> b\n//! ```\n"));
        assert!(found("//! ```rust"));
        assert!(!found("// ```\nfn f() {}\n"));
    }

    #[test]
    fn a_process_that_outlives_its_test_does_not_hold_up_the_run() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo $!; exit 3"]);
        let begun = Instant::now();
        let (status, text) = output(command, Duration::from_secs(2)).expect("an output");
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        assert_eq!(status.code(), Some(3));
        let text = String::from_utf8(text).expect("UTF-8");
        let (process, note) = text.split_once('\n').expect("a line");
        assert_eq!(note, LEAKED);
        let ended = Command::new("kill").arg(process).status().expect("kill");
        assert!(ended.success());
    }

    #[test]
    fn a_program_that_fails_is_named() {
        let queue = Mutex::new(vec![named("fails")]);
        let failed = Mutex::new(Vec::new());
        // A shell without input ends well; one that cannot be started does not.
        work(&queue, &failed);
        assert!(failed.lock().expect("a lock").is_empty());
        let gone = Program { path: "/nowhere/x".into(), ..named("gone") };
        work(&Mutex::new(vec![gone]), &failed);
        assert_eq!(*failed.lock().expect("a lock"), ["gone"]);
    }
}
