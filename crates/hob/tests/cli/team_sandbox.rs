//! Commands of agents where bubblewrap is not installed: Landlock and seccomp, checked from inside a command.
#![cfg(target_os = "linux")]

use std::fs;

use serde_json::json;

use crate::team::TeamUser;
use crate::{stderr, stdout, until};

const TEAM: &str = r#"
entry = "lead"
policy = { approval = "never" }
[[agent]]
name = "lead"
model = "lead-model"
turns = 30
tools = ["shell"]
"#;

/// Runs these commands one after the other in this folder, each with this limit of time, and gives their outputs. `None`:
/// the kernel is too old for the sandbox.
#[expect(clippy::print_stdout, reason = "a helper of tests only")]
fn outputs(
    file: &str,
    commands: &[String],
    workspace: &str,
    timeout_s: u64,
) -> Option<Vec<String>> {
    let step = |command: &String| {
        let arguments = json!({ "command": command, "timeout_s": timeout_s });
        let call = json!([{ "name": "shell", "arguments": arguments }]);
        json!({ "reply": { "tool_calls": call } }).to_string() + "\n"
    };
    let steps: String = commands.iter().map(step).collect();
    let team = TeamUser::with(file, "", (&(steps + r#"{"reply": {"content": "Done."}}"#), ""));
    let folder = team.user.path(workspace);
    fs::create_dir_all(&folder).expect("a folder");
    team.run(&["run", "builders", "Try", "--workspace", folder.to_str().expect("UTF-8")]).success();
    let trace = team.trace();
    let text =
        |event: &serde_json::Value| Some(event["data"]["output"]["text"].as_str()?.to_owned());
    let outputs: Vec<String> = trace.iter().filter_map(text).collect();
    if outputs.first().is_some_and(|output| output.contains("Linux 6.12 is needed")) {
        println!("not tested: {outputs:?}");
        return None;
    }
    Some(outputs)
}

/// Checks that the output of each command contains the text next to it.
fn check(file: &str, workspace: &str, rows: &[(impl AsRef<str>, &str)]) {
    let commands: Vec<String> = rows.iter().map(|(row, _)| row.as_ref().to_owned()).collect();
    let Some(outputs) = outputs(file, &commands, workspace, 60) else { return };
    assert_eq!(outputs.len(), commands.len());
    for ((command, (_, wanted)), output) in commands.iter().zip(rows).zip(&outputs) {
        assert!(output.contains(wanted) && !output.contains("secret words"), "{command}: {output}");
    }
}

#[test]
fn without_bubblewrap_a_command_reaches_its_workspace_alone() {
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(outside.path().join("secret"), "secret words").expect("a file");
    let outside = outside.path().display();
    // The process of this test, which belongs to the same user.
    let process = std::process::id();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let rows = [
        ("echo hello > a.txt && cat a.txt".to_owned(), "hello\n"),
        ("echo b > $HOME/b && cat $TMPDIR/b && echo c > /dev/null".to_owned(), "b\n"),
        ("env | grep -c -e CARGO -e HOB".to_owned(), "0\n\n[exit code 1]"),
        (format!("cat {outside}/secret"), "Permission denied"),
        (format!("echo x > {outside}/new"), "Permission denied"),
        (format!("ls {outside}"), "Permission denied"),
        ("ls /proc".to_owned(), "Permission denied"),
        (format!("ln -s {outside} link; cat link/secret"), "Permission denied"),
        (format!("mv a.txt {outside}/a.txt"), "ermission denied"),
        (format!("kill -9 {process}"), "not permitted"),
        (format!("/bin/bash -c 'echo x > /dev/tcp/127.0.0.1/{port}'"), "not permitted"),
        // The call `socket` by its number of the x32 ABI, which only x86-64 has.
        (
            "[ $(uname -m) = x86_64 ] && command -v perl > /dev/null ||
             { echo Operation not permitted; exit; }
             perl -e 'syscall(0x40000029, 2, 1, 0); print $!'"
                .to_owned(),
            "not permitted",
        ),
    ];
    check(TEAM, "elsewhere", &rows);
}

#[test]
fn a_workspace_with_a_team_file_needs_bubblewrap() {
    // Refused before Landlock is tried, so on every kernel.
    let outputs = outputs(TEAM, &["true".to_owned()], "work", 60).expect("a refusal");
    assert!(outputs[0].contains("cannot protect 'teams' in the workspace"), "{outputs:?}");
}

#[test]
fn a_process_that_leaves_its_group_ends_with_its_command() {
    let leave = "setsid sleep 1000 < /dev/null > /dev/null 2>&1 &";
    let commands = [
        format!("{leave} sleep 0.5; echo $!; exit 3"),
        format!("{leave} echo $! > pid; sleep 1000"),
        "cat pid".to_owned(),
    ];
    // Only the second command reaches this limit: the others need much less, even on a busy machine.
    let Some(outputs) = outputs(TEAM, &commands, "elsewhere", 10) else { return };
    assert!(outputs[0].contains("[exit code 3]"), "{outputs:?}");
    assert!(outputs[1].contains("was ended after 10 s"), "{outputs:?}");
    let runs = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        // A process that has ended and that no other one waits for is a zombie.
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    for output in [&outputs[0], &outputs[2]] {
        let pid: u32 = output.lines().next().expect("a line").parse().expect("a process");
        until(60, &format!("{pid} still runs"), || !runs(pid));
    }
}

#[test]
fn a_command_that_uses_too_much_ends_with_one_sentence() {
    let rows = [
        ("ulimit -c; ulimit -S -t; ulimit -H -t", "0\n600\n605\n"),
        ("truncate -s 1000000000 big", "[exit code 153: a file would have become larger than"),
        ("dd if=/dev/zero of=/dev/null bs=5G count=1", "memory exhausted"),
        // Not a real fork bomb: it ends even if the sandbox sets no limit.
        ("for i in $(seq 2000); do sleep 60 & done; wait", "more than 512 processes"),
        // Processes whose parent has ended count, too.
        ("for i in $(seq 2000); do (setsid sleep 60 &); done; sleep 60", "more than 512 processes"),
    ];
    check(TEAM, "elsewhere", &rows);
}

/// Also where Landlock could not protect a file of the workspace from changes.
#[test]
fn a_read_only_workspace_stays_as_it_is() {
    let file = TEAM.replace("policy = {", "policy = { sandbox = \"read-only\",");
    let rows = [
        ("ls teams", "builders.toml"),
        ("echo x > new", "ermission denied"),
        ("echo x > teams/builders.toml", "ermission denied"),
        ("echo b > $TMPDIR/b && cat $TMPDIR/b", "b\n"),
    ];
    check(&file, "work", &rows);
}

#[test]
fn commands_have_a_network_where_the_team_wants_it() {
    let file = TEAM.replace("policy = {", "policy = { network = \"on\",");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let send = format!("/bin/bash -c 'echo x > /dev/tcp/127.0.0.1/{port}' && echo sent");
    if let Some(outputs) = outputs(&file, &[send], "elsewhere", 60) {
        assert_eq!(outputs, ["sent\n"]);
    }
}

#[test]
fn commands_without_a_sandbox_need_a_flag_and_a_person() {
    let file = TEAM.replace("approval = \"never\"", "sandbox = \"danger-full-access\"");
    let outside = tempfile::tempdir().expect("a folder");
    let made = outside.path().join("made");
    let arguments = json!({ "command": format!("echo x > {}", made.display()) });
    let call = json!({ "tool_calls": [{ "name": "shell", "arguments": arguments }] });
    let steps = [
        json!({ "reply": call }),
        json!({ "when": { "last": "--allow-danger" }, "reply": call }),
        json!({ "when": { "last": "no output" }, "reply": { "content": "Done." } }),
    ];
    let team = TeamUser::with(&file, "", (&steps.map(|step| step.to_string()).join("\n"), ""));
    let notes = stderr(&team.hob("check builders").success());
    assert!(notes.contains("builders: commands are refused") && notes.contains("--allow-danger"));
    team.run("run builders 'Make it'").success();
    assert_eq!(team.last_run()["status"], "waiting_approval");
    team.run(format!("approve {}", team.id())).success();
    assert!(!made.exists());
    let done = team.run(format!("approve {} --allow-danger", team.id())).success();
    assert_eq!((stdout(&done).as_str(), made.exists()), ("Done.\n", true));
}
