//! Commands of agents where bubblewrap is not installed: Landlock and seccomp, checked from inside a command.
#![cfg(target_os = "linux")]

use std::fs;

use serde_json::json;

use crate::team::TeamUser;

const TEAM: &str = r#"
entry = "lead"
policy = { approval = "never" }
[[agent]]
name = "lead"
model = "lead-model"
turns = 30
tools = ["shell"]
"#;

/// The output of each command, of a team that runs them in this folder.
fn outputs(commands: &[String], workspace: &str) -> Vec<String> {
    let call = |command: &String| {
        let call =
            json!([{ "name": "shell", "arguments": { "command": command, "timeout_s": 20 } }]);
        json!({ "reply": { "tool_calls": call } }).to_string() + "\n"
    };
    let steps: String = commands.iter().map(call).collect();
    let team = TeamUser::with(TEAM, "", (&(steps + r#"{"reply": {"content": "Done."}}"#), ""));
    let folder = team.user.path(workspace);
    fs::create_dir_all(&folder).expect("a folder");
    team.run(&["run", "builders", "Try", "--workspace", folder.to_str().expect("UTF-8")]).success();
    let trace = team.trace();
    let text =
        |event: &serde_json::Value| Some(event["data"]["output"]["text"].as_str()?.to_owned());
    trace.iter().filter_map(text).collect()
}

#[test]
fn without_bubblewrap_a_command_reaches_its_workspace_alone() {
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(outside.path().join("secret"), "secret words").expect("a file");
    let outside = outside.path().display();
    // A process of the same user.
    let process = std::process::id();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let refused = [
        (format!("cat {outside}/secret"), "Permission denied"),
        (format!("echo x > {outside}/new"), "Permission denied"),
        (format!("ls {outside}"), "Permission denied"),
        ("ls /proc".to_owned(), "Permission denied"),
        (format!("ln -s {outside} link; cat link/secret"), "Permission denied"),
        (format!("mv a.txt {outside}/a.txt"), "ermission denied"),
        (format!("kill -9 {process}"), "not permitted"),
        (format!("/bin/bash -c 'echo x > /dev/tcp/127.0.0.1/{port}'"), "not permitted"),
    ];
    let allowed = [
        ("echo hello > a.txt && cat a.txt", "hello\n"),
        ("echo b > $HOME/b && cat $TMPDIR/b && echo c > /dev/null", "b\n"),
        ("env | grep -c -e CARGO -e HOB", "0\n\n[exit code 1]"),
    ];
    let commands = allowed.iter().map(|(command, _)| (*command).to_owned());
    let commands: Vec<String> =
        commands.chain(refused.iter().map(|(command, _)| command.clone())).collect();
    let outputs = outputs(&commands, "elsewhere");
    if outputs.first().is_some_and(|output| output.contains("Linux 6.12 is needed")) {
        println!("not tested: {}", outputs[0]);
        return;
    }
    assert_eq!(outputs.len(), commands.len());
    let wanted = allowed.iter().map(|(_, wanted)| *wanted);
    let wanted = wanted.chain(refused.iter().map(|(_, wanted)| *wanted));
    for ((command, output), wanted) in commands.iter().zip(&outputs).zip(wanted) {
        assert!(output.contains(wanted) && !output.contains("secret words"), "{command}: {output}");
    }
}

#[test]
fn a_workspace_with_a_team_file_needs_bubblewrap() {
    let outputs = outputs(&["true".to_owned()], "work");
    assert!(outputs[0].contains("cannot protect 'teams' in the workspace"), "{outputs:?}");
}
