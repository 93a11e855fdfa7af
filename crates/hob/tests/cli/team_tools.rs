//! Tools of other programs in a team: MCP servers as real processes and over HTTP, and commands in containers.
//! The servers are a shell script and a thread, so the tests need nothing but a shell.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::executable::write_executable;
use crate::loopback::{self, Answer};
use crate::team::{SOON, TeamUser};
use crate::team_http::Client;
use crate::{Has, User, exit_code, stderr, stdout, until_read};

/// An MCP server that reads a message a line. It notes its process and that of a child in a file.
const SERVER: &str = r#"#!/bin/sh
/bin/sleep 1000 < /dev/null > /dev/null 2>&1 &
echo $$ >> pids
echo $! >> pids
printf 'a \033[31mcoloured\033[0m line\n' >&2
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
text() { answer "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]$2}"; }
tool() { printf '{"name":"%s","description":"A tool","inputSchema":%s},' "$1" "$2"; }
tools() {
  printf '{"tools":['
  [ -z "$wide" ] || tool wide "{\"type\":\"object\",\"properties\":{\"a\":{\"pattern\":\"$wide\"}}}"
  for name in slow die flood fail environment big $1; do tool "$name" '{"type":"object"}'; done
  tool odd '{"type":"object","properties":{"a":{"type":"strin"}}}'
  printf '{"name":"erase","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"destructiveHint":true}},'
  printf '{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}'
}
case $1 in
  many) more='a b c d e f g h i j k l m n' ;;
  wide) wide=x; while [ ${#wide} -lt 2049 ]; do wide=$wide$wide; done ;;
esac
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"docs","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer "$(tools "$more")" ;;
    *'"name":"echo"'*) said=${line#*\"text\":\"}; text "echo: ${said%%\"*}" ;;
    *'"name":"slow"'*) /bin/sleep 1000 ;;
    *'"name":"die"'*) exit 3 ;;
    *'"name":"fail"'*) text 'it failed' ',"isError":true' ;;
    *'"name":"environment"'*) text "$(/usr/bin/env | while read -r set; do printf '%s;' "$set"; done)" ;;
    *'"name":"big"'*) block=x; while [ ${#block} -lt 40000 ]; do block=$block$block; done; text "$block" ;;
    *'"name":"flood"'*) block=x; while [ ${#block} -lt 40000 ]; do block=$block$block; done
      while printf '%s' "$block"; do :; done ;;
  esac
done
"#;
const TEAM: &str = r#"
entry = "lead"
[[agent]]
name = "lead"
model = "lead-model"
turns = 20
tools = ["docs__*"]
[mcp.docs]
command = ["docs-mcp"]
env = ["DOCS_INDEX"]
"#;

fn program(user: &User, name: &str, text: &str) {
    write_executable(&user.path("programs").join(name), text);
}

/// A team with the server in shell. Each call is a tool with its arguments, and a part of its output.
fn scripted(file: &str, calls: &[(&str, Value, &str)]) -> TeamUser {
    let mut steps = String::new();
    let mut when = json!({});
    for (name, arguments, part) in calls {
        let call = json!([{ "name": name, "arguments": arguments }]);
        steps += &json!({ "when": when, "reply": { "tool_calls": call } }).to_string();
        steps.push('\n');
        when = json!({ "last": part });
    }
    steps += &json!({ "when": when, "reply": { "content": "Done." } }).to_string();
    let team = TeamUser::with(file, "", (&steps, ""));
    program(&team.user, "docs-mcp", SERVER);
    team
}

/// The texts of the outputs of the newest run.
fn outputs(team: &TeamUser) -> Vec<String> {
    let text = |event: &Value| Some(event["data"]["output"]["text"].as_str()?.to_owned());
    team.trace().iter().filter_map(text).collect()
}

/// The processes of the server and their children.
fn processes(team: &TeamUser) -> Vec<u32> {
    let pids = fs::read_to_string(team.user.path("work/pids")).unwrap_or_default();
    pids.lines().map(|pid| pid.parse().expect("a number")).collect()
}

#[cfg(target_os = "linux")]
fn assert_all_have_ended(team: &TeamUser) {
    let runs = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        // A process that ended and was not reaped yet is a zombie.
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    let pids = processes(team);
    assert!(!pids.is_empty(), "the server has run");
    let failure = format!("one of {pids:?} still runs");
    crate::until(SOON.as_secs(), &failure, || !pids.iter().any(runs));
}

#[cfg(not(target_os = "linux"))]
fn assert_all_have_ended(_team: &TeamUser) {}

fn run_with(team: &TeamUser, variables: &[(&str, &str)]) -> assert_cmd::assert::Assert {
    let mut command = team.process(format!("run builders 'Do it' --server {}", team.server.url));
    command.envs(variables.iter().map(|(name, value)| (*name, OsString::from(value))));
    assert_cmd::Command::from(command).timeout(SOON).assert()
}

#[test]
fn a_model_uses_the_tools_of_a_server() {
    let calls = [
        ("docs__echo", json!({ "text": "hello" }), "echo: hello"),
        ("docs__environment", json!({}), "PATH="),
        ("docs__fail", json!({}), "it failed"),
        ("docs__big", json!({}), "bytes left]"),
        ("docs__echo", json!({ "txt": "wrong" }), "The schema there is"),
        ("docs__odd", json!({}), "there is no tool"),
    ];
    let file = TEAM.replace("\"docs__*\"", "\"docs__*\", \"docs__gone\"");
    let team = scripted(&file, &calls);
    let done = run_with(&team, &[("DOCS_INDEX", "main"), ("ROUTER_KEY", "sk-secret")]).success();
    assert_eq!(stdout(&done), "Done.\n");
    let notes = stderr(&done);
    assert!(notes.contains("'odd' of the MCP server 'docs' is left out"), "{notes}");
    assert!(!notes.contains("coloured"), "a server's log is not shown: {notes}");
    let outputs = outputs(&team);
    assert!(outputs[1].contains("DOCS_INDEX=main;"), "{}", outputs[1]);
    assert!(!outputs[1].contains("secret") && !outputs[1].contains("HOB_"), "{}", outputs[1]);
    assert!(outputs[3].len() < 17 * 1024, "{}", outputs[3].len());
    let failed = |event: &Value| event["data"]["output"]["is_error"] == true;
    assert_eq!(team.trace().iter().filter(|event| failed(event)).count(), 1);
    let missing = team.trace().iter().filter(|event| event["type"] == "tools.missing").count();
    assert_eq!(missing, 2, "'odd' and 'gone' are named once");
    assert_eq!(processes(&team).len(), 2, "one server and its child");
    assert_eq!(team.last_run()["stack"][0]["is_tainted"], true);
    assert_all_have_ended(&team);
}

#[test]
fn a_server_that_ends_comes_back_once() {
    let echo = |text: &str| json!({ "text": text });
    let calls = [
        ("docs__die", json!({}), "was lost during the call"),
        ("docs__echo", echo("back"), "echo: back"),
        ("docs__die", json!({}), "was lost during the call"),
        ("docs__echo", echo("again"), "unavailable: "),
    ];
    let team = scripted(TEAM, &calls);
    assert_eq!(stdout(&run_with(&team, &[]).success()), "Done.\n");
    assert_eq!(processes(&team).len(), 4, "two servers, each with a child");
    assert_all_have_ended(&team);
}

#[test]
fn a_server_that_hangs_or_prints_without_end_does_not_stop_the_run() {
    for (tool, timeout_s, said) in
        [("docs__slow", 1, "did not answer within 1 s"), ("docs__flood", 120, "printed more than")]
    {
        let file = format!("{TEAM}timeout_s = {timeout_s}\n");
        let team = scripted(&file, &[(tool, json!({}), said)]);
        assert_eq!(stdout(&run_with(&team, &[]).success()), "Done.\n", "{tool}");
        assert_all_have_ended(&team);
    }
}

#[test]
fn a_run_that_is_cancelled_leaves_no_process() {
    let team = scripted(TEAM, &[("docs__slow", json!({}), "never")]);
    let mut child = team.start("run builders Wait");
    team.until("tool.called");
    team.hob(format!("cancel {}", team.id())).success();
    assert_eq!(child.wait().expect("ended").code(), Some(130));
    assert_all_have_ended(&team);
}

#[test]
fn an_interrupted_call_is_not_made_again() {
    let team = scripted(TEAM, &[("docs__slow", json!({}), "outcome is unknown")]);
    let mut child = team.start("run builders Wait");
    team.until("tool.called");
    child.kill().expect("killed");
    child.wait().expect("ended");
    // A process that is killed cannot end its servers, and this one does not watch its input.
    let leader = i32::try_from(processes(&team)[0]).ok().and_then(Pid::from_raw);
    kill_process_group(leader.expect("an id"), Signal::KILL).expect("killed");
    assert_eq!(stdout(&team.run(format!("resume {}", team.id())).success()), "Done.\n");
    let calls = team.trace().iter().filter(|event| event["type"] == "tool.called").count();
    assert_eq!(calls, 1);
    assert_all_have_ended(&team);
}

#[test]
fn a_team_that_is_a_model_uses_servers_and_leaves_no_process() {
    let calls = [
        ("docs__echo", json!({ "text": "served" }), "echo: served"),
        ("docs__slow", json!({}), "never"),
    ];
    let team = scripted(TEAM, &calls);
    let message = json!({ "role": "user", "content": "Go" });
    let stream = team
        .server
        .begin("v1/chat/completions", &json!({ "model": "builders", "messages": [message] }));
    team.until("tool.output");
    team.until("tool.called");
    drop(stream);
    team.until("run.ended");
    assert_eq!(outputs(&team), ["echo: served"]);
    assert_all_have_ended(&team);
}

#[test]
fn a_server_that_is_not_there_is_a_text_for_the_model() {
    let file = TEAM.replace("docs__*", "docs__search").replace("docs-mcp", "gone-mcp");
    let call = ("docs__search", json!({ "query": "x" }), "unavailable: the program 'gone-mcp'");
    let team = scripted(&file, &[call]);
    stderr(&run_with(&team, &[]).success()).has(&["'docs' is unavailable: the program"]);
}

#[test]
fn a_person_sees_all_arguments_and_the_run_goes_on_in_another_process() {
    let long = "word ".repeat(100) + "end";
    let file = format!("policy = {{ approval = \"untrusted\" }}\n{TEAM}");
    let team = scripted(&file, &[("docs__echo", json!({ "text": long }), "echo: word")]);
    stderr(&run_with(&team, &[]).success()).has(&[&long, "waits for approval"]);
    assert_all_have_ended(&team);
    assert_eq!(stdout(&team.run(format!("approve {}", team.id())).success()), "Done.\n");
    assert_eq!(processes(&team).len(), 4, "a server for each process");
    assert_all_have_ended(&team);
}

/// Until its servers have started and it takes a step, a run that goes on has the state in which it waited or failed.
#[test]
fn a_run_that_goes_on_is_followed_before_its_first_step() {
    let file = format!("policy = {{ approval = \"untrusted\" }}\n{TEAM}timeout_s = 100\n");
    let waits = scripted(&file, &[("docs__echo", json!({ "text": "hello" }), "echo: hello")]);
    let refused = r#"{"reply": {"refused": "a parameter is wrong"}}
{"reply": {"content": "Done."}}"#;
    let fails = TeamUser::with(&file, "", (refused, ""));
    program(&fails.user, "docs-mcp", SERVER);
    for (team, status, verb, [shown, event]) in [
        (waits, "waiting_approval", "approve", ["waits for approval", "approval.requested"]),
        (fails, "failed", "resume", ["the run failed", "run.ended"]),
    ] {
        let _stopped = run_with(&team, &[]);
        assert_eq!(team.last_run()["status"], status);
        let (id, gate) = (team.id(), team.user.path("work/gate"));
        assert!(Command::new("mkfifo").arg(&gate).status().expect("mkfifo").success());
        program(&team.user, "docs-mcp", &SERVER.replacen('\n', "\nread -r go < gate\n", 1));
        let mut goes_on = team.start(format!("{verb} {id}"));
        let gate = until_read(&mut goes_on, &gate);
        let mut tail = team.process(format!("tail {id}"));
        let mut tail = tail.stdout(Stdio::piped()).spawn().expect("hob");
        let url = format!("{}v1/runs/{id}/events", team.server.url);
        let events = Client::of(&team.server).agent.get(url).call().expect("a stream");
        let lines = |reader: Box<dyn Read>| {
            BufReader::new(reader).lines().map(|line| line.expect("a whole stream"))
        };
        let mut tailed = lines(Box::new(tail.stdout.take().expect("a pipe")));
        let mut streamed = lines(Box::new(events.into_body().into_reader()));
        assert!(tailed.any(|line| line.contains(shown)), "{verb}");
        assert!(streamed.any(|line| line.contains(event)), "{verb}");
        fs::File::from(gate).write_all(b"go\n").expect("the server waits");
        assert!(tailed.any(|line| line.contains("Done.")), "{verb}");
        assert!(streamed.any(|line| line.contains("Done.")), "{verb}");
        assert_eq!((exit_code(&mut goes_on), exit_code(&mut tail)), (Some(0), Some(0)), "{verb}");
        assert_all_have_ended(&team);
    }
}

#[test]
fn a_tool_that_warns_is_asked_for() {
    let team = scripted(TEAM, &[("docs__erase", json!({}), "never")]);
    let notes = stderr(&run_with(&team, &[("HOB_LOG", "info")]).success());
    assert!(notes.contains("docs__erase {} waits for approval"), "{notes}");
    assert!(notes.contains("coloured") && !notes.contains("\u{1b}[31m"), "{notes}");
}

#[test]
fn a_check_asks_the_servers() {
    let user = User::new();
    fs::create_dir(user.path("work/teams")).expect("a folder");
    program(&user, "docs-mcp", SERVER);
    let many = TEAM.replace("\"docs-mcp\"", "\"docs-mcp\", \"many\"");
    let wide = TEAM.replace("\"docs-mcp\"", "\"docs-mcp\", \"wide\"");
    let allow = format!("{TEAM}tools = [\"echo\", \"lost\"]\n");
    let at = |url: &str| {
        TEAM.replace("command = [\"docs-mcp\"]", &format!("url = \"{url}\""))
            .replace("env = [\"DOCS_INDEX\"]", "")
    };
    let check = |file: &str| {
        user.write("teams/docs.toml", file);
        stderr(&user.hob("team check docs").assert())
    };
    for (file, part) in [
        (TEAM.replace("docs__*", "docs__sarch"), "'lead' misses the tool 'docs__sarch'"),
        (allow, "the MCP server 'docs' has no tool 'lost'"),
        (many, "'lead' has 22 tools"),
        (
            wide,
            "the tool 'wide' of the MCP server 'docs' has a schema that hob's own engine cannot",
        ),
        (TEAM.replace("docs-mcp", "gone-mcp"), "'gone-mcp' is not installed"),
        (TEAM.replace("docs-mcp", "/bin/false"), "it ended (exit status: 1)"),
        (at("http://127.0.0.1:1/mcp"), "'docs' is unavailable: Connection refused"),
        (TEAM.replace("docs__*", "doc__echo"), "docs.toml:7:10: 'doc__echo' needs an MCP server"),
    ] {
        let said = check(&file);
        assert!(said.contains(part), "{file}: {said}");
        assert!(!said.contains("rmcp"), "{file}: {said}");
    }
    user.write("teams/docs.toml", &format!("{TEAM}tools = [\"echo\"]\n"));
    user.hob("team check docs").assert().success();
}

/// Answers MCP messages over HTTP to those who have the token, until a call wants it to stop.
fn serve_http(listener: &TcpListener) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { return };
        // Another error means that the client has left.
        if answer_http(&stream).is_err_and(|error| error.kind() == ErrorKind::Interrupted) {
            return;
        }
    }
}

fn answer_http(stream: &TcpStream) -> std::io::Result<()> {
    let Some(request) = loopback::read(stream) else { return Ok(()) };
    let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    if message["params"]["arguments"]["stop"] == true {
        return Err(ErrorKind::Interrupted.into());
    }
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "web", "version": "1" },
        }),
        Some("tools/list") => {
            json!({ "tools": [{ "name": "find.it", "inputSchema": { "type": "object" } }] })
        }
        Some("tools/call") => json!({ "content": [], "structuredContent": { "found": 3 } }),
        _ => Value::Null,
    };
    let answer = if request.token.as_deref() != Some("t0ken") {
        Answer::empty("401 Unauthorized")
    } else if request.method != "POST" {
        Answer::empty("405 Method Not Allowed")
    } else if result.is_null() {
        Answer::empty("202 Accepted")
    } else {
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        Answer::ok(answer.to_string().into_bytes())
    };
    loopback::write(stream, answer.with("Content-Type", "application/json"), false)
}

#[test]
fn a_server_at_an_address_gets_its_token() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    std::thread::spawn(move || serve_http(&listener));
    let file = TEAM
        .replace("docs__*", "docs__find_it")
        .replace("command = [\"docs-mcp\"]", &format!("url = \"{url}\""))
        .replace("env = [\"DOCS_INDEX\"]", "token_env = \"DOCS_TOKEN\"");
    let find = |part| [("docs__find_it", json!({}), part)];
    let team = scripted(&file, &find("{\"found\":3}"));
    assert_eq!(stdout(&run_with(&team, &[("DOCS_TOKEN", "t0ken")]).success()), "Done.\n");
    for (token, part) in [("", "'DOCS_TOKEN' is not set"), ("wrong", "unavailable: ")] {
        let team = scripted(&file, &find(part));
        assert_eq!(stdout(&run_with(&team, &[("DOCS_TOKEN", token)]).success()), "Done.\n");
        assert!(!outputs(&team).join("").contains("wrong"), "{:?}", outputs(&team));
    }
    let stop = ("docs__find_it", json!({ "stop": true }), "was lost during the call");
    let team = scripted(&file, &[stop, find("unavailable: Connection refused")[0].clone()]);
    assert_eq!(stdout(&run_with(&team, &[("DOCS_TOKEN", "t0ken")]).success()), "Done.\n");
}

#[test]
fn commands_run_and_files_are_written_in_listed_containers() {
    let file = r#"
entry = "lead"
containers = ["web"]
[[agent]]
name = "lead"
model = "lead-model"
tools = ["container_run", "write_file"]
[[rule]]
argv = ["web", "ls"]
decision = "allow"
"#;
    let run = |container: &str, argv: &[&str]| json!({ "container": container, "argv": argv });
    let write = json!({ "container": "web", "path": "/etc/a", "content": "x" });
    let calls = [
        ("write_file", write, "/etc/a in web"),
        ("container_run", run("web", &["ls", "a b"]), "<ls><a b>"),
        ("container_run", run("web", &["rm", "x"]), "never"),
    ];
    let team = scripted(file, &calls);
    let podman = "#!/bin/sh\n[ \"$1\" = container ] || printf '<%s>' \"$@\"\n";
    program(&team.user, "podman", podman);
    let notes = stderr(&run_with(&team, &[]).success());
    let expected =
        ["1 bytes written to /etc/a in web", "<exec><web><timeout><-s><KILL><121><ls><a b>"];
    assert_eq!(outputs(&team), expected);
    notes.has(&[r#"{"container":"web","argv":["rm","x"]} waits for approval"#]);
    let without = scripted(file, &[("container_run", run("web", &["ls"]), "install podman")]);
    assert_eq!(stdout(&run_with(&without, &[]).success()), "Done.\n");
}

#[test]
fn a_team_probes_the_hosts_that_it_lists_and_asks_before_it_restarts_a_unit() {
    // Nothing listens at port 1, so a probe that may go there fails for another reason.
    let file = r#"
entry = "lead"
probe_allow = ["127.0.0.2:1"]
[[agent]]
name = "lead"
model = "lead-model"
tools = ["http_probe", "systemctl_restart"]
"#;
    let probe = |port: u16| json!({ "url": format!("http://127.0.0.2:{port}/") });
    let calls = [
        ("http_probe", probe(2), "not among the hosts"),
        ("http_probe", probe(1), ""),
        ("systemctl_restart", json!({ "unit": "web.service" }), "never"),
    ];
    let team = scripted(file, &calls);
    let notes = stderr(&run_with(&team, &[]).success());
    let outputs = outputs(&team);
    let is_refused = |output: &String| output.contains("not among the hosts");
    assert_eq!(outputs.iter().map(is_refused).collect::<Vec<_>>(), [true, false], "{outputs:?}");
    assert!(notes.contains(r#"{"unit":"web.service"} waits for approval"#), "{notes}");
}
