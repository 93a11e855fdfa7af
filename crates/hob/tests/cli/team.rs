//! `hob team` with scripted models behind a real server: handoffs, tools, approval, crashes and other processes.

use std::fs;
use std::process::{Child, Stdio};
use std::time::Duration;

use assert_cmd::assert::Assert;
use serde_json::{Value, json};

use crate::real_server::Served;
use crate::{Has, User, Words, exit_code, json_stdout, stderr, stdout, until};

pub(crate) const TEAM: &str = r#"
entry = "lead"
policy = { approval = "on-request" }
[[agent]]
name = "lead"
model = "lead-model"
handoffs = ["coder"]
tools = ["read_file", "write_file", "shell", "http_probe"]
[[agent]]
name = "coder"
model = "coder-model"
"#;
/// The limit for what another process does.
pub(crate) const SOON: Duration = Duration::from_secs(180);

/// A user with a team and a server with scripted models.
pub(crate) struct TeamUser {
    pub(crate) user: User,
    pub(crate) server: Served,
}

impl TeamUser {
    pub(crate) fn new(lead: &str, coder: &str) -> TeamUser {
        TeamUser::with(TEAM, "", (lead, coder))
    }

    /// With this team, and with more in the configuration.
    pub(crate) fn with(team: &str, config: &str, (lead, coder): (&str, &str)) -> TeamUser {
        let user = User::new().with_home("home");
        fs::create_dir(user.path("work/teams")).expect("a folder");
        user.write("teams/builders.toml", team);
        user.write("lead.jsonl", lead);
        user.write("coder.jsonl", coder);
        let scripts = "[dev.scripts]\nlead-model = \"lead.jsonl\"\ncoder-model = \"coder.jsonl\"\n";
        user.configure(&format!("{config}{scripts}"));
        let server = Served::start(&user);
        TeamUser { user, server }
    }

    pub(crate) fn process(&self, words: impl Into<Words>) -> std::process::Command {
        let Words(mut words) = words.into();
        words.insert(0, "team".to_owned());
        self.user.process(Words(words))
    }

    pub(crate) fn hob(&self, words: impl Into<Words>) -> Assert {
        assert_cmd::Command::from(self.process(words)).timeout(SOON).assert()
    }

    /// Asks the models of the server.
    fn with_server(&self, words: impl Into<Words>) -> Words {
        let Words(mut words) = words.into();
        words.extend(["--server".to_owned(), self.server.url.clone()]);
        Words(words)
    }

    pub(crate) fn run(&self, words: impl Into<Words>) -> Assert {
        self.hob(self.with_server(words))
    }

    pub(crate) fn start(&self, words: impl Into<Words>) -> Child {
        let mut command = self.process(self.with_server(words));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("hob")
    }

    /// Asks the team in a chat.
    fn chat(&self, messages: &Value) -> Value {
        let body = json!({ "model": "builders", "messages": messages });
        self.server.chat(&body).expect("an answer")
    }

    /// The newest run.
    pub(crate) fn last_run(&self) -> Value {
        let runs = json_stdout(&self.hob("runs --json").success());
        runs[0].clone()
    }

    /// The id of the newest run.
    pub(crate) fn id(&self) -> String {
        self.last_run()["run_id"].as_str().expect("an id").to_owned()
    }

    fn events(&self) -> Vec<String> {
        let name = |event: &Value| event["type"].as_str().unwrap_or_default().to_owned();
        self.trace().iter().map(name).collect()
    }

    /// The events of the newest run.
    pub(crate) fn trace(&self) -> Vec<Value> {
        let shown = stdout(&self.hob(format!("show {} --json", self.id())).success());
        serde_json::from_str(&shown).expect("a list")
    }

    /// Waits until the newest run has this event, and the state after it: a run that is killed between the two forgets it.
    pub(crate) fn until(&self, event: &str) {
        let is_there = || {
            let seq = self.last_run()["seq"].as_u64();
            let is_it = |one: &Value| one["type"] == event && one["seq"].as_u64() <= seq;
            seq.is_some() && self.trace().iter().any(is_it)
        };
        until(SOON.as_secs(), &format!("{event} never came"), is_there);
    }
}

#[test]
fn a_team_hands_over_and_answers() {
    let lead = r#"{"when": {"tools": ["transfer_to_coder"]}, "reply": {"tool_calls": [{"name": "transfer_to_coder", "arguments": {"brief": "Write f."}}]}}
{"when": {"last": "fn f"}, "reply": {"content": "Here it is: fn f() {}"}}"#;
    let coder = r#"{"when": {"contains": "Write f."}, "reply": {"content": "fn f() {}"}}"#;
    let team = TeamUser::new(lead, coder);
    let done = team.run("run builders 'I need a function'").success();
    assert_eq!(stdout(&done), "Here it is: fn f() {}\n");
    stderr(&done).has(&[
        "lead (lead-model)",
        "  coder (coder-model)",
        "→ coder: Write f.",
        "← coder: fn f() {}",
        "completed: 3 turns",
    ]);
    let run = team.last_run();
    assert_eq!(
        (run["status"].as_str(), run["used"]["turns"].as_u64()),
        (Some("completed"), Some(3))
    );
    let events = team.events();
    assert_eq!(events.iter().filter(|name| *name == "handoff.returned").count(), 1);
    assert_eq!(events.last().map(String::as_str), Some("run.ended"));
}

#[test]
fn another_target_answers_and_a_cost_limit_ends_a_run() {
    let team =
        TEAM.replace("\"lead-model\"", "\"safe\"").replace("policy", "budget.cost = 0.5\npolicy");
    let config = "[alias.safe]\nto = [\"lead-model\", \"coder-model\"]\n\
                  [price.coder-model]\ninput = 0\noutput = 1_000_000\n";
    let broken = r#"{"reply": {"error": "no money"}, "repeat": true}"#;
    let spender = r#"{"reply": {"tool_calls": [{"name": "read_file", "arguments": {"path": "a"}}]}}
{"when": {"last": "0.5 USD"}, "reply": {"content": "So far."}}"#;
    let team = TeamUser::with(&team, config, (broken, spender));
    let done = team.run("run builders Spend").success();
    assert_eq!(stdout(&done), "So far.\n");
    stderr(&done).has(&[
        "coder-model instead of lead-model",
        "1.0000 USD",
        "the limit of 0.5 USD is reached",
    ]);
    let run = team.last_run();
    assert_eq!(run["status"], "completed_partial", "{run}");
    let id = run["run_id"].as_str().expect("an id");
    team.hob("delete --older-than 1").success();
    team.hob("delete ''").code(2);
    assert_eq!(team.last_run()["run_id"], id, "the run is not a day old");
    team.hob(format!("delete {id}")).success();
    assert!(team.last_run().is_null() && !team.user.path("home/runs").join(id).exists());
}

#[test]
fn a_cost_limit_without_prices_is_noticed() {
    let user = User::new();
    let dear = TEAM.replace("lead-model", "cloud/big").replace("policy", "budget.cost = 1\npolicy");
    user.write("dear.toml", &dear);
    let config = "[upstream.cloud]\nkind = \"vllm\"\nurl = \"http://127.0.0.1:9\"\n[price.\"cloud/small\"]\ninput = 1\n\
                  output = 2\n[alias]\ncoder-model.to = [\"inner\"]\ninner.to = [\"cloud/small\", \"cloud/other\"]\n";
    user.configure(config);
    let notes = user.notes("team check dear.toml");
    let is_named = |model: &str| notes.contains(&format!("[price.\"cloud/{model}\"]"));
    assert_eq!(["big", "other", "small"].map(is_named), [true, true, false], "{notes}");
}

#[test]
fn a_model_that_does_not_exist_is_named() {
    let wrong = TEAM.replace("\"coder-model\"", "\"codr-model\"");
    let mut team = TeamUser::with(&wrong, "", ("", ""));
    let part = "there is no chat model or alias 'codr-model' (did you mean coder-model";
    team.server.wait_for_note(part).has(&["builders"]);
    let checked = team.hob("check builders").success();
    let notes = stderr(&checked);
    assert!(notes.contains(part) && !notes.contains("'lead-model'"), "{notes}");
}

/// `builders` is the first chat model of the list, and a team must not be asked in place of a model.
#[test]
fn no_team_answers_for_a_model_that_does_not_exist() {
    let wrong = TEAM.replace("\"lead-model\"", "\"leed-model\"");
    let team = TeamUser::with(&wrong, "", ("", r#"{"reply": {"content": "Done."}}"#));
    let done = team.run("run builders 'Do it'").success();
    assert_eq!(stdout(&done), "Done.\n");
    stderr(&done).has(&["has no leed-model; coder-model answers for it"]);
}

#[test]
fn what_needs_approval_waits_on_disk() {
    let lead = r#"{"reply": {"tool_calls": [{"name": "shell", "arguments": {"command": "make all"}}]}}
{"when": {"last": "denied"}, "reply": {"content": "Then not."}}"#;
    let team = TeamUser::new(lead, "");
    stderr(&team.run("run builders 'Build it'").success()).has(&["make all", "hob team approve"]);
    let id = team.id();
    // The last characters of an id are enough.
    let denied = team.run(&["deny", &id[id.len() - 6..]]).success();
    assert_eq!(stdout(&denied), "Then not.\n");
    let again = team.run(format!("approve {id}")).failure();
    stderr(&again).has(&["has ended: completed", "hob team show"]);
}

#[test]
fn a_killed_run_goes_on_and_does_nothing_twice() {
    let lead = r#"{"reply": {"tool_calls": [{"name": "write_file", "arguments": {"path": "log.txt", "content": "once\n", "mode": "append"}}]}}
{"reply": {"delay_ms": 100000, "content": "too late"}}
{"when": {"last": "5 bytes written"}, "reply": {"content": "Written."}}"#;
    let team = TeamUser::new(lead, "");
    let mut child = team.start("run builders 'Write the log'");
    team.until("tool.output");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut tail = team.process(format!("tail {}", team.id())).stdout(writer).spawn().expect("hob");
    assert_eq!(exit_code(&mut tail), Some(0), "nothing reads what it follows");
    let busy = team.run(format!("resume {}", team.id())).failure();
    stderr(&busy).has(&["another process works on this run"]);
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert_eq!(stdout(&team.run(format!("resume {}", team.id())).success()), "Written.\n");
    assert_eq!(fs::read_to_string(team.user.path("work/log.txt")).expect("a file"), "once\n");
    assert!(team.events().iter().any(|name| name == "run.resumed"));
    stdout(&team.hob(format!("show {}", team.id())).success()).has(&["work/log.txt: 5 bytes"]);
    fs::remove_file(team.user.path("work/log.txt")).expect("removed");
    let shown = stdout(&team.hob(format!("show {}", team.id())).success());
    assert!(shown.contains("work/log.txt: not there any more"), "{shown}");
}

/// `/dev/full` is a file on a disk that is always full.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_the_work_and_the_run_goes_on_later() {
    let lead = r#"{"reply": {"tool_calls": [{"name": "write_file", "arguments": {"path": "log.txt", "content": "once\n", "mode": "append"}}]}}
{"when": {"last": "5 bytes written"}, "reply": {"content": "Written."}}"#;
    let team = TeamUser::with(&TEAM.replace("on-request", "always"), "", (lead, ""));
    team.run("run builders 'Write the log'").success();
    let run = team.last_run();
    let id = run["run_id"].as_str().expect("an id");
    let events = team.user.path("home/runs").join(id).join("events.jsonl");
    let kept = events.with_extension("kept");
    fs::rename(&events, &kept).expect("renamed");
    std::os::unix::fs::symlink("/dev/full", &events).expect("a link");
    for _ in 0..2 {
        stderr(&team.run(format!("approve {id}")).failure()).has(&[
            "cannot store the run",
            "No space left",
            "free some space",
            "hob team resume",
        ]);
        assert!(!team.user.path("work/log.txt").exists(), "what cannot be stored is not done");
        assert_eq!(team.last_run()["status"], "waiting_approval");
    }
    fs::rename(&kept, &events).expect("renamed");
    assert_eq!(stdout(&team.run(format!("approve {id}")).success()), "Written.\n");
    assert_eq!(fs::read_to_string(team.user.path("work/log.txt")).expect("a file"), "once\n");
}

#[test]
fn a_run_with_a_failed_model_can_be_resumed() {
    let lead = r#"{"reply": {"content": "Half of", "cut": true}}
{"reply": {"error": "the server is gone"}}
{"reply": {"refused": "a parameter is wrong"}}
{"reply": {"content": "Whole."}}"#;
    let team = TeamUser::new(lead, "");
    let failed = team.run("run builders Try").failure();
    stdout(&failed).has(&["is missing", "the server is gone"]);
    assert_eq!(team.last_run()["status"], "failed");
    let failures = || team.events().iter().filter(|name| *name == "model.failed").count();
    assert_eq!(failures(), 2);
    stdout(&team.run(format!("resume {}", team.id())).failure()).has(&["a parameter is wrong"]);
    assert_eq!(failures(), 3, "a request that is refused is not sent again");
    assert_eq!(stdout(&team.run(format!("resume {}", team.id())).success()), "Whole.\n");
    assert_eq!(team.last_run()["status"], "completed");
}

#[test]
fn a_workspace_that_does_not_exist_leaves_no_run() {
    let team = TeamUser::new("", "");
    stderr(&team.run("run builders Task --workspace none").failure()).has(&["cannot open none"]);
    assert!(team.last_run().is_null());
}

#[test]
fn a_step_of_a_script_that_no_request_used_is_a_failure() {
    let lead = r#"{"when": {"agent": "lead"}, "reply": {"obey": true}}
{"when": {"agent": "coder"}, "reply": {"content": "Never."}}"#;
    let mut team = TeamUser::new(lead, "");
    let done = team.run("run builders 'Reply exactly: done'").success();
    assert_eq!(stdout(&done), "done\n");
    team.server.signal("-TERM");
    team.server.wait_for_note("no request used these steps").has(&["'lead-model': line 2"]);
    assert!(!team.server.child.wait().expect("ended").success());
}

#[test]
fn another_process_ends_a_run() {
    let team = TeamUser::new(r#"{"reply": {"delay_ms": 100000}}"#, "");
    let mut child = team.start("run builders Wait");
    team.until("model.requested");
    let id = team.id();
    for args in ["runs", &format!("show {id}")] {
        let said = stdout(&team.hob(args).success());
        assert!(said.contains("running") && !said.contains("interrupted"), "{said}");
    }
    team.hob(format!("cancel {id}")).success();
    assert_eq!(child.wait().expect("ended").code(), Some(130));
    assert_eq!(team.last_run()["status"], "cancelled");
}

#[test]
fn a_run_in_the_background_can_be_followed() {
    let team = TeamUser::new(r#"{"reply": {"content": "Done in the background."}}"#, "");
    let (url, brief) = (team.server.url.as_str(), "/dev/stdin");
    let run = team.process(&["run", "builders", "--detach", "--brief", brief, "--server", url]);
    let run = assert_cmd::Command::from(run).write_stdin("Do it.").timeout(SOON).assert();
    let id = stdout(&run.success());
    stdout(&team.hob(format!("tail {}", id.trim())).success()).has(&["Done in the background."]);
    assert_eq!(team.last_run()["task"], "Do it.");
}

#[test]
fn a_run_in_the_background_that_fails_to_start_is_not_followed_for_ever() {
    let team = TeamUser::new("", "");
    let run = "run builders --detach Task --server http://127.0.0.1:1";
    let id = stdout(&team.hob(run).success());
    let failed = team.hob(format!("tail {}", id.trim())).failure();
    stderr(&failed).has(&["no process works on this run", "hob team resume"]);
}

#[test]
fn a_team_is_a_model_of_the_server() {
    let lead = r#"{"reply": {"tool_calls": [{"name": "transfer_to_coder", "arguments": {"brief": "Write f."}}]}}
{"when": {"contains": "Earlier"}, "reply": {"content": "Here it is: fn f() {}"}}
{"when": {"last": "Ask first"}, "reply": {"tool_calls": [{"name": "shell", "arguments": {"command": "make \u202ea"}}]}}
{"when": {"last": "denied"}, "reply": {"content": "Then not."}}
{"when": {"last": "Wait"}, "reply": {"delay_ms": 100000}}"#;
    let mut team = TeamUser::new(lead, r#"{"reply": {"content": "fn f() {}"}}"#);
    let has = |models: &Value, name: &str| {
        models["data"].as_array().expect("models").iter().any(|model| model["id"] == name)
    };
    let models = team.server.get("v1/models").body;
    assert!(has(&models, "builders"), "{models}");
    let messages = json!([
        { "role": "user", "content": "Earlier" },
        { "role": "assistant", "content": "I see." },
        { "role": "user", "content": "I need a function" },
    ]);
    let answer = team.chat(&messages);
    let message = &answer["choices"][0]["message"];
    assert_eq!(message["content"], "Here it is: fn f() {}");
    let reasoning = message["reasoning_content"].as_str().expect("the trace");
    reasoning.has(&["coder (coder-model)", "← coder"]);
    assert_eq!(team.last_run()["status"], "completed");

    let waiting = team.chat(&json!([{ "role": "user", "content": "Ask first" }]));
    let text = waiting["choices"][0]["message"]["content"].as_str().expect("a text");
    assert!(text.contains("\"make  a\"") && text.contains("hob team approve"), "{text}");
    let id = team.id();
    assert_eq!(stdout(&team.run(format!("deny {id}")).success()), "Then not.\n");

    // A client that leaves ends its run.
    let wait = json!([{ "role": "user", "content": "Wait" }]);
    let wait = json!({ "model": "builders", "messages": wait });
    let stream = team.server.begin("v1/chat/completions", &wait);
    team.until("model.requested");
    drop(stream);
    team.until("run.ended");
    assert_eq!(team.last_run()["status"], "cancelled");

    // A file that gets a mistake keeps its last good version; a new one is served at once.
    team.user.write("teams/other.toml", TEAM);
    team.server.wait_for_note("the team files changed");
    team.user.write("teams/builders.toml", "entry = 5");
    team.server.wait_for_note("builders.toml:1:9");
    let models = team.server.get("v1/models").body;
    assert!(has(&models, "builders") && has(&models, "other"), "{models}");
}

#[test]
fn the_answer_of_a_team_comes_while_it_is_written() {
    let lead = r#"{"when": {"last": "Whole"}, "reply": {"reasoning": "Who knows f?", "content": "I ask the coder.", "tool_calls": [{"name": "transfer_to_coder"}]}}
{"when": {"last": "fn f"}, "reply": {"content": "Here it is."}}
{"reply": {"content": "Half of it", "stall": true}}"#;
    let team = TeamUser::new(lead, r#"{"reply": {"content": "fn f() {}"}}"#);
    let answer = team.chat(&json!([{ "role": "user", "content": "Whole" }]));
    let message = &answer["choices"][0]["message"];
    assert_eq!(message["content"], "I ask the coder.\n\nHere it is.");
    let reasoning = message["reasoning_content"].as_str().expect("the trace");
    // Thoughts and texts of others have lines of their own.
    reasoning.has(&["\nWho knows f?\n", "\nfn f() {}\n"]);

    let half = json!([{ "role": "user", "content": "Half" }]);
    let half = json!({ "model": "builders", "stream": true, "messages": half });
    let mut stream = team.server.begin("v1/chat/completions", &half);
    stream.set_read_timeout(Some(SOON)).expect("a limit");
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&read).contains("\"content\":\"it\"") {
        let count = std::io::Read::read(&mut stream, &mut piece).expect("more of the answer");
        assert!(count > 0, "{}", String::from_utf8_lossy(&read));
        read.extend(&piece[..count]);
    }
}

#[test]
fn a_run_can_go_on_when_its_client_leaves() {
    let file = TEAM.replace("\"on-request\"", "\"on-request\", on_disconnect = \"detach\"");
    let lead = r#"{"reply": {"delay_ms": 2000, "content": "Done alone."}}"#;
    let team = TeamUser::with(&file, "", (lead, ""));
    let messages = json!([{ "role": "user", "content": "Go on" }]);
    let body = json!({ "model": "builders", "messages": messages });
    let stream = team.server.begin("v1/chat/completions", &body);
    team.until("model.requested");
    drop(stream);
    team.until("run.ended");
    assert_eq!(team.last_run()["status"], "completed");
    assert!(team.events().iter().any(|name| name == "message.output"));
}

#[test]
fn approval_is_a_question_where_the_client_can_ask() {
    let write = r#"{"name": "write_file", "arguments": {"path": "a.txt", "content": "yes"}}"#;
    let lead = format!(
        "{{\"when\": {{\"last\": \"Write\"}}, \"reply\": {{\"tool_calls\": [{write}]}}, \"repeat\": true}}\n\
         {{\"when\": {{\"last\": \"denied\"}}, \"reply\": {{\"content\": \"It may not be.\"}}}}\n\
         {{\"reply\": {{\"content\": \"Written.\"}}, \"repeat\": true}}"
    );
    let mut team = TeamUser::new(&lead, "");
    team.user.write("teams/builders.toml", TEAM.replace("on-request", "always").as_str());
    team.server.wait_for_note("the team files changed");
    let (team, tool) = (team, json!({ "type": "function", "function": { "name": "ask_user" } }));
    let chat = |messages: &Value| {
        team.server.chat(&json!({ "model": "builders", "messages": messages, "tools": [tool] }))
    };
    let task = json!([{ "role": "user", "content": "Write" }]);
    let decide = |answer: &str| {
        let asked = chat(&task).expect("an answer");
        assert_eq!(asked["choices"][0]["finish_reason"], "tool_calls");
        let message = &asked["choices"][0]["message"];
        let reasoning = message["reasoning_content"].as_str().expect("the trace");
        assert!(reasoning.contains("a.txt"), "the arguments are shown in full: {reasoning}");
        let call = &message["tool_calls"][0];
        let arguments = call["function"]["arguments"].as_str().expect("arguments");
        let arguments: Value = serde_json::from_str(arguments).expect("JSON");
        let options = &arguments["questions"][0]["options"];
        assert_eq!(
            (&options[0]["label"], &options[1]["label"]),
            (&"Deny".into(), &"Approve".into())
        );
        let question = arguments["questions"][0]["question"].as_str().expect("a question");
        assert!(question.contains("a.txt"), "{question}");
        // As the page of Open WebUI sends it.
        let clicked = format!(r#"{{"type":"option","option_index":1,"label":"{answer}"}}"#);
        let content = format!(r#"{{"status":"answered","answers":{{"approval":{clicked}}}}}"#);
        let told = json!({ "role": "tool", "tool_call_id": call["id"], "content": content });
        let messages = json!([task[0], message, told]);
        (chat(&messages).expect("an answer")["choices"][0]["message"]["content"].clone(), messages)
    };
    let file = |team: &TeamUser| {
        let id = team.id();
        team.user.path(&format!("home/runs/{id}/files/a.txt"))
    };
    assert_eq!(decide("Deny").0, "It may not be.");
    assert!(!file(&team).exists());
    let (said, messages) = decide("Approve");
    assert_eq!(said, "Written.");
    assert_eq!(fs::read_to_string(file(&team)).expect("a file"), "yes");
    let again = chat(&messages).expect_err("a decision counts once");
    assert!(again.to_string().contains("400"), "{again:?}");
}

#[test]
fn a_title_starts_no_run() {
    let lead = r#"{"when": {"contains": "concise title"}, "reply": {"content": "Tides"}}"#;
    let team = TeamUser::new(lead, "");
    let job = "### Task:\nWrite a concise title.\n### Chat History:\n<chat_history>\nUSER: When is low tide?\n</chat_history>";
    let messages = json!([{ "role": "user", "content": job }]);
    assert_eq!(team.chat(&messages)["choices"][0]["message"]["content"], "Tides");
    assert!(team.last_run().is_null(), "no run was stored");
}

#[test]
fn a_team_works_with_a_real_local_model() {
    let user = User::with_only(&["smollm2"]);
    let server = Served::start(&user).until_ready("smollm2");
    let line = format!("team run --max-turns 3 --server {} 'Say good morning.'", server.url);
    let command = user.process(line);
    let done = assert_cmd::Command::from(command).timeout(SOON * 5).assert().success();
    let notes = stderr(&done);
    assert!(!stdout(&done).trim().is_empty(), "{notes}");
    notes.has(&["orchestrator (reliable)", "smollm2 answers for it"]);
    assert!(!notes.contains("are not JSON"), "hob's own engine writes no malformed call: {notes}");
}

#[test]
fn mistakes_have_a_sentence_each() {
    let user = User::new();
    fs::create_dir(user.path("work/teams")).expect("a folder");
    user.write(
        "teams/broken.toml",
        &TEAM.replace("name = \"coder\"", "name = \"coder\"\ncolour = 1"),
    );
    user.write("teams/unknown.toml", &TEAM.replace("\"shell\"", "\"shel\""));
    for (args, parts) in [
        ("check broken", &["broken.toml:11:1", "unknown field `colour`"][..]),
        ("check unknown", &["unknown.toml:8:37: there is no tool 'shel'"]),
        ("check agent_tem", &["did you mean agent_team?"]),
        ("run agent_team ' '", &["the task is empty"]),
        ("run", &["give a task", "for example hob team run"]),
        ("run --brief none.md", &["cannot read the task: none.md: No such file"]),
        ("show x", &["there is no run 'x'"]),
        ("run agent_team Hello", &["hob serve"]),
    ] {
        let failed = user.hob(format!("team {args}")).assert().failure();
        let error = stderr(&failed);
        assert!(parts.iter().all(|part| error.contains(part)), "{args:?}: {error}");
    }
    let list = user.prints("team list");
    list.has(&["agent_team", "devops", "broken"]);
    let json = user.notes("team list --json");
    assert!(json.contains("left out: ") && json.contains("broken.toml:11:1: "), "{json}");
    user.hob("team check devops").assert().success();
    let schema = user.json("team schema");
    assert!(schema["properties"]["entry"].is_object(), "{schema}");
    assert_eq!(schema["additionalProperties"], false);
}
