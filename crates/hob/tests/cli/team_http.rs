//! Runs of teams over HTTP, with scripted models behind a real server: events, approval, cancel, files, keys and limits.

use std::fs;
use std::io::{BufRead, BufReader};

use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::{Response, StatusCode};

use crate::real_server::Served;
use crate::team::{SOON, TEAM, TeamUser};
use crate::team_pipelines::KEYS;
use crate::{Has, until, until_ok};

const WRITE: &str = r#"{"reply": {"tool_calls": [{"name": "write_file", "arguments": {"path": "notes/log.txt", "content": "<script>alert(1)</script>\n"}}]}}
{"when": {"last": "bytes written"}, "reply": {"content": "Written."}}
{"when": {"last": "denied"}, "reply": {"content": "Then not."}}"#;
const SLOW: &str = r#"{"reply": {"delay_ms": 100000, "content": "too late"}, "repeat": true}"#;

/// A client that reads errors as answers.
pub(crate) struct Client {
    pub(crate) agent: Agent,
    pub(crate) url: String,
    pub(crate) key: Option<&'static str>,
}

impl Client {
    pub(crate) fn of(server: &Served) -> Client {
        let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(SOON));
        Client { agent: config.build().new_agent(), url: server.url.clone(), key: None }
    }

    pub(crate) fn with_key(server: &Served, key: &'static str) -> Client {
        Client { key: Some(key), ..Client::of(server) }
    }

    fn ask(&self, path: &str, last_event: Option<u64>) -> Response<ureq::Body> {
        let mut request = self.agent.get(format!("{}{path}", self.url));
        if let Some(key) = self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        if let Some(seq) = last_event {
            request = request.header("last-event-id", seq.to_string());
        }
        request.call().expect("an answer")
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        parts(self.ask(path, None))
    }

    pub(crate) fn send(&self, path: &str, body: &Value) -> Response<ureq::Body> {
        let mut request = self.agent.post(format!("{}{path}", self.url));
        if let Some(key) = self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        request.send_json(body).expect("an answer")
    }

    fn delete(&self, path: &str) -> (u16, Value) {
        parts(self.agent.delete(format!("{}{path}", self.url)).call().expect("an answer"))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        parts(self.send(path, body))
    }

    /// Starts a run of the team `builders`.
    pub(crate) fn start(&self, task: &str) -> String {
        let (status, run) = self.post("v1/runs", &json!({ "team": "builders", "task": task }));
        assert_eq!((status, &run["status"]), (202, &json!("running")), "{run}");
        run["id"].as_str().expect("an id").to_owned()
    }

    /// All events from a place on, until the stream ends, with the numbers of the server-sent events.
    fn events(&self, id: &str, last: Option<u64>) -> Vec<(u64, Value)> {
        let answer = self.ask(&format!("v1/runs/{id}/events"), last);
        assert_eq!(answer.status(), StatusCode::OK);
        let lines = BufReader::new(answer.into_body().into_reader()).lines();
        let lines: Vec<String> = lines.map(|line| line.expect("a whole stream")).collect();
        let number = |line: &str| line.strip_prefix("id: ").and_then(|id| id.parse().ok());
        let numbers = lines.iter().filter_map(|line| number(line));
        let data = lines.iter().filter_map(|line| line.strip_prefix("data: "));
        let events = data.map(|data| serde_json::from_str(data).expect("JSON"));
        numbers.zip(events).collect()
    }

    fn run(&self, id: &str) -> Value {
        let (status, run) = self.get(&format!("v1/runs/{id}"));
        assert_eq!(status, 200, "{run}");
        run
    }

    /// Waits until a run has this status.
    pub(crate) fn until(&self, id: &str, status: &str) -> Value {
        until_ok(SOON.as_secs(), || {
            let run = self.run(id);
            if run["status"] == status { Ok(run) } else { Err(format!("never {status}: {run}")) }
        })
    }
}

pub(crate) fn parts(answer: Response<ureq::Body>) -> (u16, Value) {
    let status = answer.status().as_u16();
    (status, answer.into_body().read_json().unwrap_or_default())
}

fn types(events: &[(u64, Value)]) -> Vec<&str> {
    events.iter().filter_map(|(_, event)| event["type"].as_str()).collect()
}

#[test]
fn a_configuration_that_is_refused_changes_no_model_of_a_team() {
    let config = |target: &str| format!("[alias.writer]\nto = [\"{target}\"]\n");
    let says = |text: &str| format!("{{\"reply\": {{\"content\": \"{text}\"}}, \"repeat\": true}}");
    let mut team = TeamUser::with(
        &TEAM.replace("lead-model", "writer"),
        &(config("lead-model") + KEYS),
        (&says("First."), &says("Second.")),
    );
    let client = Client::with_key(&team.server, "all-of-it");
    let scripts = "[dev.scripts]\nlead-model = \"lead.jsonl\"\ncoder-model = \"coder.jsonl\"\n";
    team.user.configure(&(config("coder-model") + scripts));
    team.server.wait_for_note("hob keeps using the previous configuration");
    let id = client.start("Write");
    assert_eq!(client.until(&id, "completed")["answer"], "First.");
}

#[test]
fn a_run_streams_and_keeps_its_answer_and_files() {
    let team = TeamUser::new(WRITE, "");
    let client = Client::of(&team.server);
    let id = client.start("Write the log\nin a file");
    let events = client.events(&id, None);
    let (first, last) = (events.first().expect("events"), events.last().expect("events"));
    assert_eq!((first.0, &first.1["type"]), (1, &json!("run.started")));
    assert_eq!(last.1["data"]["status"], "completed");
    assert!(events.iter().zip(1..).all(|((id, event), seq)| *id == seq && event["seq"] == seq));
    assert!(types(&events).contains(&"tool.output"), "{:?}", types(&events));
    // A reader that comes back gets the rest.
    assert_eq!(client.events(&id, Some(3)), events[3..]);
    let all = client.events(&id, Some(last.0));
    assert!(all.is_empty(), "{all:?}");

    let run = client.run(&id);
    assert_eq!((&run["answer"], &run["turns"]), (&json!("Written."), &json!(2)));
    assert_eq!(run["files"], json!([{ "path": "notes/log.txt", "bytes": 26 }]));
    assert_eq!(run["approval"], Value::Null);
    let (_, list) = client.get("runs?limit=1");
    assert_eq!((&list["runs"][0]["id"], &list["runs"][1]), (&json!(id), &Value::Null));
    assert!(list["runs"][0]["started_unix_ms"].as_u64() > Some(1_700_000_000_000), "{list}");

    // No browser runs what an agent wrote, and no path leaves the workspace.
    let file = client.ask(&format!("v1/runs/{id}/files/notes/log.txt"), None);
    let header = |name: &str| file.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(header("content-disposition"), "attachment");
    assert_eq!(header("x-content-type-options"), "nosniff");
    let text = file.into_body().read_to_string().expect("a text");
    assert_eq!(text, "<script>alert(1)</script>\n");
    for path in
        ["..%2Fstate.json", "%2Fetc%2Fpasswd", "notes", "none", "notes%2F..%2F..%2Fstate.json"]
    {
        let (status, error) = client.get(&format!("v1/runs/{id}/files/{path}"));
        assert_eq!(status, 404, "{path}: {error}");
    }
    for path in ["v1/runs/none", "v1/runs/none/events", "v1/runs/..%2Fruns", "v1/runs/none/files/a"]
    {
        let (status, error) = client.get(path);
        assert_eq!((status, &error["error"]["code"]), (404, &json!("run_not_found")), "{path}");
    }
}

/// Names, and never what people or agents write.
#[test]
fn the_log_says_who_works_and_what_is_called() {
    let TeamUser { user, server } = TeamUser::new(WRITE, "");
    drop(server);
    let mut server = Served::run(user.process("serve --listen 127.0.0.1:0 --log info"));
    let id = Client::of(&server).start("Write the log\nin a file");
    let lines = ["a team begins", "a tool is called", "a team has ended"];
    let lines = lines.map(|part| server.wait_for_note(part));
    for line in &lines {
        assert!(line.contains(&id) && !line.contains("Write the log"), "{line}");
    }
    assert!(lines[1].contains("write_file") && lines[2].contains("completed"), "{lines:?}");
}

#[test]
fn a_person_approves_or_denies_once() {
    let policy = TEAM.replace("on-request", "always");
    let team = TeamUser::with(&policy, "", (&format!("{WRITE}\n{WRITE}"), ""));
    let client = Client::of(&team.server);
    for (decision, answer, files) in [("approve", "Written.", 1), ("deny", "Then not.", 0)] {
        let id = client.start("Write the log");
        let events = client.events(&id, None);
        assert_eq!(
            types(&events).last(),
            Some(&"run.waiting"),
            "the stream ends when the run waits"
        );
        let run = client.until(&id, "waiting_approval");
        let approval = &run["approval"];
        assert_eq!((&approval["agent"], &approval["tool"]), (&json!("lead"), &json!("write_file")));
        let arguments: Value =
            serde_json::from_str(approval["arguments"].as_str().expect("a text")).expect("JSON");
        assert_eq!(
            arguments["content"], "<script>alert(1)</script>\n",
            "the arguments are there in full"
        );
        let path = format!("v1/runs/{id}/approvals/{}", approval["id"].as_str().expect("an id"));

        let (status, error) = client.post(&path, &json!({ "decision": "perhaps" }));
        assert_eq!(status, 400, "{error}");
        let (status, error) =
            client.post(&format!("v1/runs/{id}/approvals/other"), &json!({ "decision": "deny" }));
        assert_eq!(status, 409, "{error}");
        let (status, error) = client.post(&format!("v1/runs/{id}/resume"), &json!({}));
        assert_eq!(status, 409, "{error}");

        let (status, error) = client.delete(&format!("v1/runs/{id}"));
        assert_eq!(status, 409, "{error}");

        let (status, decided) = client.post(&path, &json!({ "decision": decision }));
        assert_eq!(status, 200, "{decided}");
        let (status, second) = client.post(&path, &json!({ "decision": "approve" }));
        let sentence = second["error"]["message"].as_str().expect("a sentence");
        assert_eq!(status, 409, "{second}");
        assert!(sentence.contains("was made already"), "{sentence}");

        let last = events.last().map(|(seq, _)| *seq);
        let rest = client.events(&id, last);
        assert!(types(&rest).contains(&"approval.resolved"), "{:?}", types(&rest));
        let run = client.until(&id, "completed");
        assert_eq!(
            (&run["answer"], run["files"].as_array().map(Vec::len)),
            (&json!(answer), Some(files))
        );
        let (status, deleted) = client.delete(&format!("v1/runs/{id}"));
        assert_eq!((status, &deleted["deleted"]), (200, &json!(true)), "{deleted}");
        assert_eq!(client.get(&format!("v1/runs/{id}")).0, 404);
    }
}

#[test]
fn a_run_is_cancelled_and_another_one_is_not_started_beyond_the_limit() {
    let team = TeamUser::new(SLOW, "");
    let client = Client::of(&team.server);
    let ids: Vec<String> = (0..8).map(|run| client.start(&format!("Run {run}"))).collect();
    let full = client.send("v1/runs", &json!({ "team": "builders", "task": "One more" }));
    assert_eq!(full.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(full.headers().contains_key("retry-after"));
    let (_, error) = parts(full);
    assert_eq!(error["error"]["code"], "runs_full");

    // A reader that leaves does not end the run.
    drop(client.ask(&format!("v1/runs/{}/events", ids[0]), None));
    assert_eq!(client.run(&ids[0])["status"], "running");
    let path = format!("v1/runs/{}/cancel", ids[0]);
    let (status, run) = client.post(&path, &json!({}));
    assert_eq!((status, &run["status"]), (200, &json!("cancelled")), "{run}");
    let (status, again) = client.post(&path, &json!({}));
    assert_eq!(status, 409, "{again}");
    assert_eq!(types(&client.events(&ids[0], None)).last(), Some(&"run.ended"));
    client.start("There is a place again");
    let (status, error) = client.post("v1/runs", &json!({ "task": " " }));
    assert_eq!((status, &error["error"]["param"]), (400, &json!("task")));
    let (status, error) =
        client.post("v1/runs", &json!({ "team": "../builders.toml", "task": "x" }));
    assert_eq!((status, &error["error"]["code"]), (404, &json!("team_not_found")));
}

#[test]
fn a_run_of_a_terminal_is_followed_and_cancelled() {
    let team = TeamUser::new(&format!("{}\n{SLOW}", WRITE.lines().next().expect("a step")), "");
    let client = Client::of(&team.server);
    let mut child = team.start("run builders 'Write the log'");
    team.until("tool.output");
    let id = team.last_run()["run_id"].as_str().expect("an id").to_owned();
    let run = client.run(&id);
    assert_eq!(run["status"], "running");
    assert_eq!(run["files"], json!([]), "files in a folder of the user are not served");
    let (status, _) = client.get(&format!("v1/runs/{id}/files/hob.toml"));
    assert_eq!(status, 404);
    let (status, busy) = client.post(&format!("v1/runs/{id}/resume"), &json!({}));
    assert_eq!(status, 409, "{busy}");
    let events = std::thread::scope(|scope| {
        let following = scope.spawn(|| client.events(&id, None));
        let (status, run) = client.post(&format!("v1/runs/{id}/cancel"), &json!({}));
        assert_eq!((status, &run["status"]), (200, &json!("cancelled")), "{run}");
        following.join().expect("events")
    });
    assert_eq!(child.wait().expect("ended").code(), Some(130));
    assert_eq!(types(&events).last(), Some(&"run.ended"));
}

#[test]
fn a_run_goes_on_after_the_server_was_killed() {
    let lead = format!("{}\n{SLOW}", WRITE.lines().next().expect("a step"));
    let mut team = TeamUser::new(&lead, "");
    let client = Client::of(&team.server);
    let id = client.start("Write the log");
    team.until("tool.output");
    team.server.child.kill().expect("killed");
    team.server.child.wait().expect("ended");
    team.user.write(
        "lead.jsonl",
        r#"{"when": {"last": "bytes written"}, "reply": {"content": "Written."}}"#,
    );
    team.server = Served::start(&team.user);
    let client = Client::of(&team.server);
    assert_eq!(client.run(&id)["status"], "interrupted");
    let (status, run) = client.post(&format!("v1/runs/{id}/resume"), &json!({}));
    assert_eq!(status, 200, "{run}");
    let run = client.until(&id, "completed");
    assert_eq!((&run["answer"], &run["files"][0]["bytes"]), (&json!("Written."), &json!(26)));
    let (status, ended) = client.post(&format!("v1/runs/{id}/resume"), &json!({}));
    assert_eq!(status, 409, "{ended}");
}

#[test]
fn a_key_sees_the_teams_among_its_aliases_only() {
    let keys = "[keys.all]\nsecret = \"file:all.key\"\n[keys.phone]\nsecret = \"file:phone.key\"\naliases = [\"lead-model\"]\n";
    let user_keys = |team: &TeamUser| {
        team.user.write("all.key", "all-of-it");
        team.user.write("phone.key", "phone-only");
    };
    // The files must exist before the server starts.
    let team = TeamUser::new(r#"{"reply": {"content": "Done."}}"#, "");
    user_keys(&team);
    let text = fs::read_to_string(team.user.path("work/hob.toml")).expect("a file");
    team.user.configure(&format!("{keys}{text}"));
    let server = Served::start(&team.user);
    let (all, phone) =
        (Client::with_key(&server, "all-of-it"), Client::with_key(&server, "phone-only"));
    for path in ["v1/runs", "v1/teams", "v1/pipelines", "v1/runs/x", "v1/runs/x/events"] {
        assert_eq!(Client::of(&server).get(path).0, 401, "{path}");
    }
    let id = all.start("Secret plans");
    all.until(&id, "completed");
    assert_eq!(phone.get("v1/runs").1, json!({ "runs": [] }));
    assert_eq!(phone.get("v1/teams").1, json!({ "teams": [] }));
    for path in [String::new(), "/events".to_owned(), "/files/x".to_owned()] {
        let (status, error) = phone.get(&format!("v1/runs/{id}{path}"));
        assert_eq!((status, &error["error"]["code"]), (404, &json!("run_not_found")), "{path}");
    }
    for path in ["cancel", "resume"] {
        assert_eq!(phone.post(&format!("v1/runs/{id}/{path}"), &json!({})).0, 404, "{path}");
    }
    let (status, error) = phone.post("v1/runs", &json!({ "team": "builders", "task": "x" }));
    assert_eq!(status, 403, "{error}");
}

#[test]
fn the_trace_shows_no_keys() {
    let token = format!("ghp_{}", "a1".repeat(18));
    let write = json!({ "path": "notes.txt", "content": format!("{token}, known-by-name\n") });
    let calls = [
        json!({ "reply": { "tool_calls": [{ "name": "write_file", "arguments": write }] } }),
        json!({
            "when": { "last": "bytes written" },
            "reply": { "tool_calls": [{ "name": "read_file", "arguments": { "path": "notes.txt" } }] },
        }),
        // The model reads what is there.
        json!({ "when": { "last": "known-by-name" }, "reply": { "content": "Done." } }),
    ];
    let team = TeamUser::new(&calls.map(|call| call.to_string()).join("\n"), "");
    let mut hob = team.user.process("serve --listen 127.0.0.1:0");
    hob.env("WIKI_TOKEN", "known-by-name");
    let server = Served::run(hob);
    let client = Client::of(&server);
    let id = client.start("Write the notes");
    assert_eq!(client.until(&id, "completed")["answer"], "Done.");
    let folder = team.user.path("home/runs").join(&id);
    let stored = fs::read_to_string(folder.join("events.jsonl")).expect("events");
    let sent = format!("{:?}", client.events(&id, None));
    for trace in [stored, sent] {
        assert!(trace.contains("ghp_…, …"), "{trace}");
        assert!(!trace.contains(&token) && !trace.contains("known-by-name"), "{trace}");
    }
    let notes = fs::read_to_string(folder.join("files/notes.txt")).expect("a file");
    assert_eq!(notes, format!("{token}, known-by-name\n"));
}

#[test]
fn only_the_key_that_started_a_run_decides_about_its_calls() {
    let policy = TEAM.replace("on-request", "always");
    let team = TeamUser::with(&policy, KEYS, (&format!("{WRITE}\n{WRITE}"), ""));
    let (all, phone) =
        (Client::with_key(&team.server, "all-of-it"), Client::with_key(&team.server, "phone-only"));
    let id = phone.start("Write the log");
    let run = phone.until(&id, "waiting_approval");
    let approval = run["approval"]["id"].as_str().expect("an id");
    let path = format!("v1/runs/{id}/approvals/{approval}");
    for decision in ["approve", "deny"] {
        let (status, error) = all.post(&path, &json!({ "decision": decision }));
        assert_eq!((status, &error["error"]["code"]), (403, &json!("not_allowed")), "{error}");
    }
    assert_eq!(phone.run(&id)["status"], "waiting_approval");
    assert_eq!(phone.post(&path, &json!({ "decision": "approve" })).0, 200);
    assert_eq!(phone.until(&id, "completed")["answer"], "Written.");

    // The same in a chat.
    let tool = json!({ "type": "function", "function": { "name": "ask_user" } });
    let chat = |client: &Client, messages: &Value| {
        let body = json!({ "model": "builders", "messages": messages, "tools": [tool] });
        client.post("v1/chat/completions", &body)
    };
    let task = json!([{ "role": "user", "content": "Write the log" }]);
    let (_, asked) = chat(&phone, &task);
    let message = &asked["choices"][0]["message"];
    let approved = r#"{"status":"answered","answers":{"approval":"Approve"}}"#;
    let call = &message["tool_calls"][0]["id"];
    let decision = json!({ "role": "tool", "tool_call_id": call, "content": approved });
    let messages = json!([task[0], message, decision]);
    let (status, error) = chat(&all, &messages);
    assert_eq!(status, 400, "{error}");
    let (status, answer) = chat(&phone, &messages);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["choices"][0]["message"]["content"], "Written.");
}

#[test]
fn the_tokens_of_a_run_count_against_its_key() {
    let keys = KEYS.replace("[keys.phone]\n", "[keys.phone]\ntokens_per_day = 1\n");
    let answer = r#"{"reply": {"content": "Done."}, "repeat": true}"#;
    let team = TeamUser::with(TEAM, &keys, (answer, ""));
    let phone = Client::with_key(&team.server, "phone-only");
    phone.start("Work");
    let task = json!({ "team": "builders", "task": "Work" });
    let is_spent = || phone.post("v1/runs", &task).1["error"]["code"] == "budget_exceeded";
    until(SOON.as_secs(), "the tokens were never counted", is_spent);
}

#[test]
fn the_tokens_of_a_run_whose_client_has_left_count_against_its_key() {
    let keys = KEYS.replace("[keys.phone]\n", "[keys.phone]\ntokens_per_day = 500\n");
    let chat = json!({ "model": "builders", "messages": [{ "role": "user", "content": "Work. ".repeat(1000) }], "stream": true });
    for (mode, delay) in [("detach", 2000), ("cancel", 100_000)] {
        let file = TEAM.replace("policy = {", &format!("policy = {{ on_disconnect = \"{mode}\","));
        let lead = WRITE.replace("\"Written.\"", &format!("\"Written.\", \"delay_ms\": {delay}"));
        let team = TeamUser::with(&file, &keys, (&lead, ""));
        let phone = Client::with_key(&team.server, "phone-only");
        let answer = phone.send("v1/chat/completions", &chat);
        team.until("tool.output");
        drop(answer);
        let resume = format!("v1/runs/{}/resume", team.id());
        let is_spent = || phone.post(&resume, &json!({})).1.to_string().contains("has used its");
        until(SOON.as_secs(), "the tokens were never counted", is_spent);
    }
}

/// The entry agent calls a tool of the client and one of its own, and then answers.
const WEATHER: &str = r#"{"when": {"last": "Weather?", "tools": ["weather", "read_file"]}, "reply": {"content": "I look.", "tool_calls": [{"name": "weather", "arguments": {"city": "Oslo"}}, {"name": "write_file", "arguments": {"path": "a.txt", "content": "once"}}]}, "repeat": true}
{"when": {"last": "Rain"}, "reply": {"content": "It rains."}, "repeat": true}"#;

fn weather() -> Value {
    let city = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    json!({ "name": "weather", "parameters": city })
}

#[test]
fn the_entry_agent_calls_tools_of_the_client() {
    let file = TEAM.replace("policy = {", "policy = { client_tools = \"passthrough\",");
    let team = TeamUser::with(&file, "", (WEATHER, ""));
    let client = Client::of(&team.server);
    let tools = json!([{ "type": "function", "function": weather() }]);
    let body = |messages: &Value, is_streamed: bool| json!({ "model": "builders", "messages": messages, "tools": tools, "stream": is_streamed });
    let path = "v1/chat/completions";
    let task = json!([{ "role": "user", "content": "Weather?" }]);
    let (status, asked) = client.post(path, &body(&task, false));
    let choice = &asked["choices"][0];
    assert_eq!((status, &choice["finish_reason"]), (200, &json!("tool_calls")), "{asked}");
    let message = &choice["message"];
    assert_eq!(message["content"], "I look.");
    let calls = message["tool_calls"].as_array().expect("calls");
    assert_eq!((calls.len(), &calls[0]["function"]["name"]), (1, &json!("weather")), "{asked}");
    assert_eq!(calls[0]["function"]["arguments"], r#"{"city":"Oslo"}"#);
    let id = team.last_run()["run_id"].as_str().expect("an id").to_owned();
    let path_of_run = format!("v1/runs/{id}");
    assert_eq!(client.run(&id)["status"], "waiting_client");
    assert_eq!(client.post(&format!("{path_of_run}/resume"), &json!({})).0, 409);

    let result = json!({ "role": "tool", "tool_call_id": calls[0]["id"], "content": "Rain." });
    let messages = json!([task[0], message, result]);
    let (status, answer) = client.post(path, &body(&messages, false));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["choices"][0]["message"]["content"], "It rains.");
    let run = client.run(&id);
    assert_eq!((&run["status"], &run["turns"]), (&json!("completed"), &json!(2)));
    for (of_run, of_answer) in
        [("prompt_tokens", "prompt_tokens"), ("answer_tokens", "completion_tokens")]
    {
        let used = [&asked, &answer].map(|answer| answer["usage"][of_answer].as_u64());
        let [first, second] = used.map(|tokens| tokens.expect("a number"));
        assert_eq!(run[of_run], first + second, "each answer has its own tokens");
    }
    assert_eq!(run["files"], json!([{ "path": "a.txt", "bytes": 4 }]), "the run is the same");
    let (status, again) = client.post(path, &body(&messages, false));
    assert_eq!(status, 400, "results count once: {again}");

    let stream = client.send(path, &body(&task, true)).into_body().read_to_string();
    let stream = stream.expect("a stream");
    stream.has(&[r#""name":"weather""#, r#""finish_reason":"tool_calls""#]);
}

#[test]
fn tools_of_the_client_are_called_in_responses_and_ignored_by_default() {
    let file = TEAM.replace("policy = {", "policy = { client_tools = \"passthrough\",");
    let team = TeamUser::with(&file, "", (WEATHER, ""));
    let client = Client::of(&team.server);
    let mut tool = weather();
    tool["type"] = "function".into();
    let ask = |input: Value, previous: &Value| {
        let body = json!({ "model": "builders", "input": input, "tools": [tool], "previous_response_id": previous });
        let (status, answer) = client.post("v1/responses", &body);
        assert_eq!(status, 200, "{answer}");
        answer
    };
    let item = |answer: &Value, kind: &str| {
        let mut items = answer["output"].as_array().expect("items").iter();
        items.rfind(|item| item["type"] == kind).cloned().expect(kind)
    };
    let asked = ask(json!("Weather?"), &Value::Null);
    let call = item(&asked, "function_call");
    assert_eq!(call["name"], "weather");
    let result =
        json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "Rain." });
    let answer = ask(json!([result]), &asked["id"]);
    assert_eq!(item(&answer, "message")["content"][0]["text"], "It rains.");

    let team = TeamUser::new(r#"{"reply": {"content": "Done."}}"#, "");
    let messages = json!([{ "role": "user", "content": "Weather?" }]);
    let tools = json!([{ "type": "function", "function": weather() }]);
    let body = json!({
        "model": "builders", "messages": messages, "tools": tools, "stop": ["."],
        "response_format": { "type": "json_object" }, "presence_penalty": 0,
    });
    let answer = Client::of(&team.server).send("v1/chat/completions", &body);
    assert_eq!(answer.headers()["x-hob-ignored"], "stop,response_format,tools");
    assert_eq!(parts(answer).1["choices"][0]["message"]["content"], "Done.");
}

#[test]
fn a_team_file_that_gets_a_mistake_is_named_and_its_last_version_works() {
    let mut team = TeamUser::new(r#"{"reply": {"content": "Done."}}"#, "");
    let client = Client::of(&team.server);
    let (_, found) = client.get("v1/teams/builders");
    assert_eq!((&found["error"], &found["file"]), (&Value::Null, &json!("builders.toml")));
    assert_eq!(
        (&found["agents"][1]["name"], &found["agents"][0]["handoffs"][0]),
        (&json!("coder"), &json!("coder"))
    );
    team.user.write(
        "teams/builders.toml",
        &TEAM.replace("name = \"coder\"", "name = \"coder\"\ncolour = 1"),
    );
    team.user.write("teams/never.toml", "entry = 5");
    team.server.wait_for_note("never.toml:1:9");
    let (_, found) = client.get("v1/teams");
    let named = |name: &str| {
        let teams = found["teams"].as_array().expect("teams");
        teams.iter().find(|team| team["id"] == name).expect(name)
    };
    let error = &named("builders")["error"];
    assert_eq!((&error["line"], &error["column"]), (&json!(11), &json!(1)), "{error}");
    assert!(error["message"].as_str().expect("a text").contains("colour"), "{error}");
    assert!(error["hint"].as_str().expect("a text").contains("hob team schema"), "{error}");
    assert_eq!((&named("devops")["file"], &named("never")["agents"]), (&Value::Null, &json!([])));
    let id = client.start("Work as before");
    client.until(&id, "completed");
    let (status, error) = client.post("v1/runs", &json!({ "team": "never", "task": "x" }));
    assert_eq!(status, 400, "{error}");
}

/// Ollama's clients show the age of each model.
#[test]
fn a_team_is_as_old_as_the_configuration_in_force() {
    let team = TeamUser::new("", "");
    let list = team.server.get("api/tags").body;
    let mut tags = list["models"].as_array().expect("models").iter();
    let tag = tags.find(|tag| tag["name"] == "builders:latest").expect("the team");
    assert!(tag["modified_at"].as_str().is_some_and(|at| at > "2020"), "{tag}");
}
