//! Teams as Pipelines of Open WebUI, behind a real server: lists, valves, files, filters, status lines and keys.

use std::fs;

use serde_json::{Value, json};
use ureq::http::Response;

use crate::team::{TEAM, TeamUser};
use crate::team_http::{Client, parts};
use crate::{Has, stderr};

/// `all-of-it`, and `phone-only` for one team.
pub(crate) const KEYS: &str = "[keys.all]\nsecret = \"sha256:294c04e5ac9dd23c5448c01a3bb266a553de650cc27d9a1ddc35e2765498c1fb\"\n\
    [keys.phone]\nsecret = \"sha256:a39bd51230f03d6b03f42b9b91c745604fd24ec5311692e75b2619b27e58c416\"\naliases = [\"builders\"]\n";
const PUBLIC: &str = "0p3n-w3bu!";
const HAND_OVER: &str = r#"{"when": {"last": "function"}, "reply": {"tool_calls": [{"name": "transfer_to_coder", "arguments": {"brief": "Write f."}}]}, "repeat": true}
{"when": {"last": "fn f"}, "reply": {"content": "Here it is."}, "repeat": true}
{"reply": {"content": "A title"}, "repeat": true}"#;
const CODER: &str = r#"{"reply": {"content": "fn f() {}"}, "repeat": true}"#;

fn with_keys(config: &str) -> TeamUser {
    TeamUser::with(TEAM, &format!("{config}{KEYS}"), (HAND_OVER, CODER))
}

impl Client {
    fn delete_team(&self, id: &str) -> (u16, Value) {
        let request = self.agent.delete(format!("{}pipelines/delete", self.url));
        let request =
            request.header("authorization", format!("Bearer {}", self.key.unwrap_or_default()));
        parts(request.force_send_body().send_json(json!({ "id": id })).expect("an answer"))
    }

    fn upload(&self, name: &str, text: &str) -> (u16, Value) {
        let body = format!(
            "--cut\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n{text}\r\n--cut--\r\n"
        );
        let request = self.agent.post(format!("{}v1/pipelines/upload", self.url));
        let request =
            request.header("authorization", format!("Bearer {}", self.key.unwrap_or_default()));
        let request = request.header("content-type", "multipart/form-data; boundary=cut");
        parts(request.send(body).expect("an answer"))
    }

    /// Asks the team with these fields, and gives the events of the stream.
    fn stream(&self, mut fields: Value) -> Vec<Value> {
        fields["model"] = "builders".into();
        fields["stream"] = true.into();
        let messages = json!([{ "role": "user", "content": "I need a function" }]);
        fields["messages"] = messages;
        let answer: Response<ureq::Body> = self.send("v1/chat/completions", &fields);
        let text = answer.into_body().read_to_string().expect("a whole stream");
        assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str(data).ok()).collect()
    }
}

fn detail(answer: &Value) -> &str {
    assert_eq!(answer["detail"], answer["error"]["message"], "{answer}");
    answer["detail"].as_str().expect("a sentence")
}

#[test]
fn teams_are_listed_as_pipelines_and_filters_name_the_task() {
    let team = with_keys("");
    let (all, phone) =
        (Client::with_key(&team.server, "all-of-it"), Client::with_key(&team.server, "phone-only"));
    for path in ["models", "v1/models"] {
        let (_, list) = Client::of(&team.server).get(path);
        assert_eq!((&list["object"], &list["pipelines"]), (&json!("list"), &json!(true)));
        let models = list["data"].as_array().expect("models");
        let pipelines: Vec<&Value> =
            models.iter().filter(|model| model.get("pipeline").is_some()).collect();
        assert_eq!((pipelines.len(), &pipelines[0]["name"]), (1, &json!("builders")), "{list}");
        assert_eq!(pipelines[0]["pipeline"], json!({ "type": "pipe", "valves": true }));
    }
    let listed = json!({ "data": [{ "id": "builders", "name": "builders", "type": "pipe", "valves": true }] });
    for path in ["pipelines", "v1/pipelines"] {
        assert_eq!(phone.get(path), (200, listed.clone()), "{path}");
        for stranger in [Client::of(&team.server), Client::with_key(&team.server, PUBLIC)] {
            let (status, refused) = stranger.get(path);
            assert_eq!((status, &refused["error"]["code"]), (401, &json!("invalid_api_key")));
            assert!(detail(&refused).contains("key"), "{refused}");
        }
    }

    let body = json!({
        "model": "builders", "messages": [],
        "metadata": { "chat_id": "c1", "task": "title_generation" },
    });
    let sent = json!({ "user": { "id": "u" }, "body": body });
    let (status, marked) = phone.post("builders/filter/inlet", &sent);
    let marks = (&marked["x_hob_task"], &marked["x_hob_chat"], &marked["metadata"]["chat_id"]);
    assert_eq!((status, marks), (200, (&json!("title_generation"), &json!("c1"), &json!("c1"))));
    assert_eq!(phone.post("v1/builders/filter/outlet", &sent), (200, body));
    let (status, refused) = phone.post("other/filter/inlet", &sent);
    assert_eq!(status, 403, "{refused}");
    assert!(detail(&refused).contains("'other'"), "{refused}");
    let (status, refused) = all.post("builders/filter/inlet", &json!({ "body": 5 }));
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("body")));
    let (status, said) = all.post("pipelines/reload", &json!({}));
    assert_eq!(status, 200);
    assert!(said["message"].as_str().expect("a sentence").contains("no mistakes"), "{said}");
}

#[test]
fn valves_change_the_next_run() {
    let mut team = with_keys("");
    let file = team.user.path("work/teams/builders.valves.toml");
    let (all, phone) =
        (Client::with_key(&team.server, "all-of-it"), Client::with_key(&team.server, "phone-only"));
    let values = json!({
        "turns": 40, "tokens": null, "cost": null, "time_s": 900, "approval": "on-request",
        "fallback": null,
        "model_lead": "lead-model", "model_coder": "coder-model",
    });
    assert_eq!(phone.get("builders/valves"), (200, values));
    let (_, spec) = phone.get("v1/builders/valves/spec");
    let turns = &spec["properties"]["turns"];
    assert_eq!((&turns["type"], &turns["default"]), (&json!("integer"), &json!(40)));
    assert_eq!(spec["properties"]["approval"]["enum"][0], "never");

    let (status, refused) = phone.post("builders/valves/update", &json!({ "turns": 1 }));
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("not_allowed")));
    for (change, part) in [
        (json!({ "turns": 2, "colour": "red" }), "it has turns, tokens"),
        (json!({ "turns": 0 }), "whole number from 1"),
        (json!({ "approval": "perhaps" }), "one of never"),
        (json!({ "turns": [] }), "a number or null"),
    ] {
        let (status, refused) = all.post("builders/valves/update", &change);
        assert_eq!(status, 400, "{change}: {refused}");
        assert!(detail(&refused).contains(part), "{refused}");
    }
    assert!(!file.exists());

    // The form of Open WebUI sends texts.
    let change = json!({ "turns": "1", "tokens": "", "time_s": "900", "approval": "on-request" });
    let (status, changed) = all.post("builders/valves/update", &change);
    assert_eq!((status, &changed["turns"], &changed["tokens"]), (200, &json!(1), &Value::Null));
    assert_eq!(fs::read_to_string(&file).expect("a file"), "turns = 1\n");
    let run = all.until(&all.start("I need a function"), "completed_partial");
    assert_eq!(run["turns"], 2, "one, and one for the answer: {run}");
    team.server.wait_for_note("the team files changed");
    all.stream(json!({}));
    let (_, runs) = all.get("v1/runs?limit=1");
    assert_eq!(runs["runs"][0]["status"], "completed_partial");

    let (_, back) = all.post("builders/valves/update", &json!({ "turns": null }));
    assert_eq!((&back["turns"], file.exists()), (&json!(40), false));
    team.server.wait_for_note("the team files changed");
    // A mistake is named, and the last good version stays in use.
    team.user.write("teams/builders.valves.toml", "turns = 0\n");
    team.server.wait_for_note("builders.valves.toml: 'turns' must be");
    let (_, said) = all.post("pipelines/reload", &json!({}));
    assert!(said["message"].as_str().expect("a sentence").contains("'turns' must be"), "{said}");
    assert_eq!(all.get("builders/valves").1["turns"], 40);
}

#[test]
fn team_files_are_added_and_deleted() {
    let mut team = with_keys("");
    let (all, phone) =
        (Client::with_key(&team.server, "all-of-it"), Client::with_key(&team.server, "phone-only"));
    let teams = team.user.path("work/teams");
    for (name, text, code, part) in [
        ("../evil.toml", TEAM.replace("entry", "id = \"../evil\"\nentry"), 400, "a-z0-9_-"),
        ("runs.toml", TEAM.to_owned(), 400, "no part of hob's paths"),
        ("pipe.py", "class Pipeline: pass".to_owned(), 400, "TOML"),
        ("wrong.toml", TEAM.replace("shell", "shel"), 400, "there is no tool 'shel'"),
        ("wrong.toml", "entry = 5".to_owned(), 400, "team.toml:1:9"),
        ("big.toml", "#".repeat(2 << 20), 413, "larger"),
        ("mcp.toml", format!("{TEAM}[mcp.x]\ncommand = [\"sh\"]\n"), 400, "no MCP servers"),
        (
            "containers.toml",
            TEAM.replace("entry", "containers = [\"web\"]\nentry"),
            400,
            "may have no `containers`",
        ),
        ("hosts.toml", format!("probe_allow = [\"a\"]\n{TEAM}"), 400, "no `probe_allow`"),
        ("unit.toml", TEAM.replace("shell", "systemctl_restart"), 400, "not restart units"),
        (
            "danger.toml",
            TEAM.replace("policy = {", "policy = { sandbox = \"danger-full-access\","),
            400,
            "needs a sandbox",
        ),
        (
            "network.toml",
            TEAM.replace("policy = {", "policy = { network = \"on\","),
            400,
            "without network",
        ),
        ("builders.toml", TEAM.to_owned(), 409, "'builders' already"),
        ("devops.toml", TEAM.to_owned(), 409, "'devops' already"),
    ] {
        let (status, refused) = all.upload(name, &text);
        assert_eq!(status, code, "{name}: {refused}");
        assert!(detail(&refused).contains(part), "{name}: {refused}");
    }
    assert_eq!(fs::read_dir(&teams).expect("a folder").count(), 1, "nothing was written");
    let (status, added) =
        all.upload("any name.toml", &TEAM.replace("entry", "id = \"new\"\nentry"));
    assert_eq!((status, &added["status"], &added["id"]), (200, &json!(true), &json!("new")));
    assert!(teams.join("new.toml").exists());
    team.server.wait_for_note("the team files changed");
    let served = |id: &str| {
        let (_, list) = all.get("models");
        list["data"].as_array().expect("models").iter().any(|model| model["id"] == id)
    };
    assert!(served("new"));

    for url in ["http://127.0.0.1:1/a.toml", "http://[::1]/a.toml", "file:///etc/passwd"] {
        let (status, refused) = all.post("pipelines/add", &json!({ "url": url }));
        assert_eq!(status, 400, "{url}: {refused}");
    }
    let (_, refused) = all.post("pipelines/add", &json!({ "url": "https://example.com/p.py?x=1" }));
    assert!(detail(&refused).contains("TOML"), "{refused}");
    assert_eq!(all.post("pipelines/upload", &json!({})).0, 415);

    assert_eq!(phone.delete_team("builders").0, 403);
    assert_eq!((all.delete_team("other").0, all.delete_team("devops").0), (404, 409));
    assert_eq!(all.post("new/valves/update", &json!({ "turns": 3 })).0, 200);
    assert_eq!(all.delete_team("new").0, 200);
    for name in ["new.toml.disabled", "new.valves.toml.disabled"] {
        assert!(teams.join(name).exists(), "{name}");
    }
    assert_eq!(all.upload("new.toml", TEAM).0, 200);
    assert_eq!(all.get("new/valves").1["turns"], 40, "the old valves are gone");
    assert_eq!((all.delete_team("new").0, teams.join("new.toml.disabled-2").exists()), (200, true));
}

#[test]
fn without_keys_no_client_changes_a_team() {
    let team = TeamUser::new(HAND_OVER, CODER);
    let client = Client::of(&team.server);
    assert_eq!(client.get("builders/valves").0, 200);
    for answer in [
        client.upload("new.toml", TEAM),
        client.delete_team("builders"),
        client.post("builders/valves/update", &json!({ "approval": "never" })),
        client.post("pipelines/add", &json!({ "url": "https://example.com/a.toml" })),
    ] {
        assert_eq!((answer.0, &answer.1["error"]["code"]), (403, &json!("not_allowed")));
        assert!(detail(&answer.1).contains("[keys.NAME]"), "{}", answer.1);
    }
}

#[test]
fn status_lines_and_jobs_are_for_clients_of_pipelines() {
    let team = TeamUser::new(HAND_OVER, CODER);
    let client = Client::of(&team.server);
    let statuses = |events: &[Value]| -> Vec<(String, bool)> {
        let data = events.iter().filter(|event| event["event"]["type"] == "status");
        let data = data.map(|event| &event["event"]["data"]);
        data.map(|data| {
            let text = data["description"].as_str().expect("a text").to_owned();
            (text, data["done"].as_bool().expect("a bool"))
        })
        .collect()
    };
    for fields in [
        json!({ "user": { "id": "u", "name": "n", "email": "e", "role": "user" } }),
        json!({ "user": "u", "x_hob_task": "chat", "x_hob_chat": "c1" }),
    ] {
        let shown = statuses(&client.stream(fields.clone()));
        let lines: Vec<&str> = shown.iter().map(|(text, _)| text.as_str()).collect();
        let (last, lines) = lines.split_last().expect("lines");
        assert_eq!(lines, ["lead begins", "lead -> coder", "coder -> lead"], "{fields}");
        assert!(last.starts_with("completed: 3 turns"), "{last}");
        let done: Vec<bool> = shown.iter().map(|(_, done)| *done).collect();
        assert_eq!(done, [false, false, false, true]);
    }
    for fields in [json!({}), json!({ "user": "u" })] {
        let events = client.stream(fields);
        assert!(events.iter().all(|event| event["choices"].is_array()), "{events:?}");
    }
    let count = client.get("v1/runs").1["runs"].as_array().expect("runs").len();
    assert_eq!(count, 4);

    // Without the words of Open WebUI's default prompt.
    let messages = json!([{ "role": "user", "content": "Name this chat" }]);
    let job = json!({
        "model": "builders", "messages": messages, "user": { "id": "u" },
        "x_hob_task": "title_generation",
    });
    let (status, answer) = client.post("v1/chat/completions", &job);
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!("A title")));
    assert_eq!(client.get("v1/runs").1["runs"].as_array().expect("runs").len(), count);
}

#[test]
fn the_public_key_is_for_lists_and_chats_where_it_is_allowed() {
    let config = "[server.pipelines]\nlisten = \"127.0.0.1:0\"\naccept_default_key = true\n";
    let mut team = with_keys(config);
    let note = team.server.wait_for_note("Pipelines: http://");
    let url = format!(
        "{}/",
        note.split_whitespace().find(|word| word.starts_with("http")).expect("an address")
    );
    team.server.wait_for_note("default key of Pipelines");
    let public = Client { url, ..Client::with_key(&team.server, PUBLIC) };
    assert_eq!(public.get(""), (200, json!({ "status": true })));
    for path in ["models", "pipelines"] {
        assert_eq!(public.get(path).0, 200, "{path}");
    }
    assert_eq!(public.post("builders/filter/inlet", &json!({ "body": {} })).0, 200);
    assert!(!public.stream(json!({})).is_empty());
    for path in ["v1/runs", "v1/teams", "builders/valves", "api/hob/now", "metrics"] {
        assert_eq!(public.get(path).0, 401, "{path}");
    }
    assert_eq!(public.post("builders/valves/update", &json!({ "turns": 1 })).0, 401);
    assert_eq!(public.post("v1/runs", &json!({ "task": "x" })).0, 401);

    let user = crate::User::new();
    user.write("house.key", PUBLIC);
    user.configure("[keys.house]\nsecret = \"file:house.key\"\n");
    let failed = user.hob("config check").assert().failure();
    stderr(&failed).has(&["'house' is the default key of Pipelines"]);
}
