//! What people do with the teams that hob brings, with scripted models and servers of this machine.

use std::fs;

use serde_json::{Value, json};

use crate::executable::write_executable;
use crate::loopback::{Answer, listen};
use crate::real_server::Served;
use crate::team::TeamUser;
use crate::{Has, User, stderr, stdout};

/// The aliases of the teams that hob brings, and the models behind them.
const ALIASES: [(&str, &str); 4] =
    [("reliable", "big"), ("reasoning", "thinker"), ("coder", "programmer"), ("local", "small")];

/// A server with a script for each alias, in their order.
fn team(scripts: [&[String]; 4]) -> TeamUser {
    let user = User::new().with_home("home");
    let (mut aliases, mut models) = (String::new(), "[dev.scripts]\n".to_owned());
    for ((alias, model), steps) in ALIASES.iter().zip(scripts) {
        aliases += &format!("[alias.{alias}]\nto = [\"{model}\"]\n");
        models += &format!("{model} = \"{model}.jsonl\"\n");
        user.write(&format!("{model}.jsonl"), &steps.join("\n"));
    }
    user.configure(&(aliases + &models));
    let server = Served::start(&user);
    TeamUser { user, server }
}

/// A step that answers a request with this text in its last message.
fn says(last: &str, text: &str) -> String {
    json!({ "when": { "last": last }, "reply": { "content": text } }).to_string()
}

/// Likewise, with calls: each is a tool and its arguments.
fn calls(last: &str, calls: &[(&str, Value)]) -> String {
    let call = |(name, arguments): &(&str, Value)| json!({ "name": name, "arguments": arguments });
    let calls: Vec<Value> = calls.iter().map(call).collect();
    json!({ "when": { "last": last }, "reply": { "tool_calls": calls } }).to_string()
}

fn hands_over(last: &str, to: &str, brief: &str) -> String {
    let name = format!("transfer_to_{to}");
    calls(last, &[(name.as_str(), json!({ "brief": brief }))])
}

/// The agents of the newest run in the order in which they worked, with the models that answered them.
fn worked(team: &TeamUser) -> Vec<(String, String)> {
    let answered = |event: &Value| {
        let target = event["data"]["target"].as_str().filter(|_| event["type"] == "model.answered");
        Some((event["agent"].as_str()?.to_owned(), target?.to_owned()))
    };
    let mut worked: Vec<(String, String)> = team.trace().iter().filter_map(answered).collect();
    worked.dedup();
    worked
}

fn expected(worked: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(agent, target): &(&str, &str)| ((*agent).to_owned(), (*target).to_owned());
    worked.iter().map(owned).collect()
}

#[test]
fn research_then_code_goes_to_two_agents_and_comes_back() {
    let lead = [
        hands_over("log4shell", "researcher", "Which versions does log4shell affect?"),
        hands_over("2.14.1", "coder", "Write check_log4shell(host, port)."),
        says(
            "def check_log4shell",
            "CVE-2021-44228 affects Log4j 2.0 to 2.14.1.\n\ndef check_log4shell(host, port):\n    ...",
        ),
    ];
    // A page of this machine is refused, and a file of the workspace is read.
    let researcher = [
        calls("log4shell", &[("get_url", json!({ "url": "http://127.0.0.1/log4shell" }))]),
        calls("private network", &[("read_file", json!({ "path": "advisory.txt" }))]),
        says("CVE-2021-44228", "CVE-2021-44228, versions 2.0 to 2.14.1."),
    ];
    let coder = [says("Write check_log4shell", "def check_log4shell(host, port):\n    ...")];
    let team = team([&lead, &researcher, &coder, &[]]);
    team.user.write("advisory.txt", "CVE-2021-44228: Log4j 2.0 to 2.14.1 looks names up.");
    let task = "research the log4shell vulnerability then write a Python checker for it";
    let done = team.run(&["run", task]).success();
    stdout(&done).has(&["CVE-2021-44228", "2.0 to 2.14.1", "def check_log4shell(host, port)"]);
    let lines = [
        "orchestrator (reliable)",
        "→ researcher: Which versions",
        "researcher (reasoning)",
        "thinker: ",
        "← researcher: CVE-2021-44228",
        "→ coder: Write check_log4shell",
        "coder (coder)",
        "programmer: ",
        "← coder: def check_log4shell",
        "completed: 7 turns",
    ];
    let (notes, mut from) = (stderr(&done), 0);
    for line in lines {
        let at = notes[from..].find(line);
        from += at.unwrap_or_else(|| panic!("{line} in this order: {notes}")) + line.len();
    }
    let order = [
        ("orchestrator", "big"),
        ("researcher", "thinker"),
        ("orchestrator", "big"),
        ("coder", "programmer"),
        ("orchestrator", "big"),
    ];
    assert_eq!(worked(&team), expected(&order));
}

#[test]
fn each_task_goes_to_the_one_agent_for_it() {
    let rows = [
        (
            "write a Python script that tails a log file and alerts on ERROR lines",
            ("coder", "programmer"),
            "def tail(path): ...",
        ),
        (
            "what are the main CVEs in OpenSSH 8.x to 9.x?",
            ("researcher", "thinker"),
            "CVE-2024-6387 (regreSSHion)",
        ),
        (
            "analyse this nmap output: 22/tcp open ssh, 23/tcp open telnet",
            ("analyst", "small"),
            "Port 23 is open: telnet sends passwords as plain text.",
        ),
    ];
    let mut lead: Vec<String> =
        rows.iter().map(|(task, (agent, _), _)| hands_over(task, agent, task)).collect();
    // What comes back is the answer.
    lead.extend(rows.iter().map(|(_, _, answer)| says(answer, answer)));
    let of = |agent: &str| -> Vec<String> {
        let own = rows.iter().filter(|(_, (name, _), _)| *name == agent);
        own.map(|(task, _, answer)| says(task, answer)).collect()
    };
    let team = team([&lead, &of("researcher"), &of("coder"), &of("analyst")]);
    for (task, agent, answer) in rows {
        let done = team.run(&["run", "agent_team", task]).success();
        assert_eq!(stdout(&done), format!("{answer}\n"), "{task}");
        let order = [("orchestrator", "big"), agent, ("orchestrator", "big")];
        assert_eq!(worked(&team), expected(&order), "{task}");
    }
}

#[test]
fn the_devops_team_acts_without_asking_and_only_where_it_may() {
    let comfyui = listen(|_| Answer::ok(b"queue is empty".to_vec())) + "/queue";
    let run = |container: &str| json!({ "container": container, "argv": ["ollama", "ps"] });
    let write = |path: &str| json!({ "path": path, "content": "All is well." });
    let operator = [
        calls(
            "Look after",
            &[
                ("list_local_models", json!({})),
                ("vram_status", json!({})),
                ("http_probe", json!({ "url": comfyui })),
                ("http_probe", json!({ "url": "http://93.184.216.34/" })),
            ],
        ),
        calls(
            "not among the hosts",
            &[
                ("systemctl_status", json!({ "unit": "ollama.service" })),
                ("container_run", run("ollama")),
                ("container_run", run("database")),
            ],
        ),
        calls(
            "does not list 'database'",
            &[
                ("write_file", write("report.md")),
                ("write_file", write("teams/mine.toml")),
                ("read_file", json!({ "path": "report.md" })),
            ],
        ),
        says("All is well.", "All models answer. See report.md."),
    ];
    let team = team([&operator, &[], &[], &[]]);
    let programs = team.user.path("programs");
    write_executable(&programs.join("systemctl"), "#!/bin/sh\necho ActiveState=active\n");
    let podman = "#!/bin/sh\n[ \"$1\" = container ] || printf '<%s>' \"$@\"\n";
    write_executable(&programs.join("podman"), podman);
    let done = team.run("run devops 'Look after the models'").success();
    assert_eq!(stdout(&done), "All models answer. See report.md.\n");
    let trace = team.trace();
    let text = |event: &Value| Some(event["data"]["output"]["text"].as_str()?.to_owned());
    let outputs: Vec<String> = trace.iter().filter_map(text).collect();
    let parts = [
        r#""name":"big""#,
        "card",
        "queue is empty",
        "not among the hosts",
        "ActiveState=active",
        "<ollama><ps>",
        "does not list 'database'",
        "12 bytes written",
        "is protected",
        "All is well.",
    ];
    assert_eq!(outputs.len(), parts.len(), "{outputs:?}");
    for (output, part) in outputs.iter().zip(parts) {
        assert!(output.contains(part), "{part}: {output}");
    }
    assert!(!trace.iter().any(|event| event["type"] == "approval.requested"));
    let report = team.user.path("work/report.md");
    assert_eq!(fs::read_to_string(report).expect("a file"), "All is well.");
    assert!(!team.user.path("work/teams/mine.toml").exists());
}
