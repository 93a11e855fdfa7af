//! Team files, and the place of each mistake in them.

use super::*;

const TEAM: &str = r#"
entry = "lead"
[budget]
turns = 12
time_s = 60
[policy]
approval = "untrusted"
[[agent]]
name = "lead"
model = "reliable"
handoffs = ["web-coder"]
delegates = ["tester"]
[[agent]]
name = "web-coder"
model = "coder"
tools = ["read_file"]
history = "summary"
[[agent]]
name = "tester"
model = "coder"
turns = 3
[[rule]]
argv = ["cargo", "test"]
decision = "allow"
not_match = ["cargo test && cargo publish"]
"#;

#[test]
fn a_team_file_is_read() {
    let team = Team::parse(TEAM, "builders").expect("a team");
    assert_eq!((team.id.as_str(), team.entry.as_str()), ("builders", "lead"));
    assert_eq!(team.models(), ["reliable", "coder"]);
    assert_eq!(
        (team.budget.turns, team.budget.nudge_at, team.policy.approval),
        (12, 3, Approval::Untrusted)
    );
    let lead = team.agent("lead").expect("known");
    assert_eq!(lead.handoff_of("transfer_to_web_coder"), Some("web-coder"));
    assert_eq!(lead.delegate_of("delegate_to_tester"), Some("tester"));
    assert_eq!((lead.handoff_of("transfer_to_tester"), lead.turns), (None, 10));
    let written = toml::to_string(&team).expect("TOML");
    assert_eq!(Team::parse(&written, "other").expect("a team"), team);
}

#[test]
fn each_mistake_is_named_with_its_place() {
    for (from, to, line, part) in [
        ("entry = \"lead\"", "entry = \"lead", 2, "invalid"),
        ("entry = \"lead\"", "entry = \"led\"", 2, "did you mean 'lead'"),
        ("turns = 12", "turn = 12", 4, "unknown field `turn`"),
        ("turns = 12", "turns = 0", 3, "above 0"),
        ("\"untrusted\"", "\"sometimes\"", 7, "unknown variant"),
        ("approval = \"untrusted\"", "client_tools = \"use\"", 7, "`ignore` or `passthrough`"),
        ("approval = \"untrusted\"", "network = \"some\"", 7, "expected `off` or `on`"),
        (
            "approval = \"untrusted\"",
            "sandbox = \"none\"",
            7,
            "`read-only`, `workspace-write`, `danger-full-access`",
        ),
        ("handoffs = [\"web-coder\"]", "handoffs = [\"webcoder\"]", 11, "web-coder"),
        ("delegates = [\"tester\"]", "delegates = [\"lead\"]", 2, "to itself"),
        ("name = \"tester\"", "name = \"web_coder\"", 19, "two agents"),
        ("name = \"tester\"", "name = \"Tester\"", 19, "a-z0-9_-"),
        ("time_s = 60", "time_s = 60\ntokens = 1024", 6, "above 1024"),
        ("turns = 3", "must_call = true", 21, "must call something"),
        ("turns = 3", "time_s = 0", 12, "'tester': each limit"),
        ("turns = 3", "tokens = 1000", 12, "above 1024"),
        ("turns = 3", "turns = 0", 12, "at least one turn"),
        (
            "not_match = [\"cargo test && cargo publish\"]",
            "match = [\"cargo run\"]",
            23,
            "does not decide",
        ),
        ("entry = \"lead\"", "entry = \"lead\"\nid = \"v1\"", 3, "hob's paths"),
    ] {
        let error = Team::parse(&TEAM.replace(from, to), "t").expect_err(to);
        assert!(error.reason.contains(part), "{to}: {error}");
        assert_eq!(error.line, line, "{to}: {error}");
    }
}

#[test]
fn a_policy_that_contradicts_the_file_is_a_mistake() {
    for (policy, part) in [
        ("sandbox = \"read-only\"", "allows no 'write_file'"),
        ("image = \"debian\"\nsandbox = \"danger-full-access\"", "no use for `image`"),
    ] {
        let text = TEAM.replace("approval = \"untrusted\"", policy);
        let text = text.replace("read_file", "write_file");
        let error = Team::parse(&text, "t").expect_err(policy);
        assert!(error.reason.contains(part), "{error}");
    }
}

const MCP: &str = r#"
entry = "lead"
containers = ["web", "db-1"]
probe_allow = ["db.lan:8080", "[fd00::1]:80"]
[[agent]]
name = "lead"
model = "m"
tools = ["docs__search", "wiki__*", "read_file"]
[mcp.docs]
command = ["docs-mcp", "--flag"]
env = ["DOCS_INDEX"]
tools = ["search"]
timeout_s = 60
[mcp.wiki]
url = "https://wiki.example/mcp"
token_env = "WIKI_TOKEN"
"#;

#[test]
fn servers_and_their_tools_are_read() {
    let team = Team::parse(MCP, "t").expect("a team");
    let lead = team.agent("lead").expect("known");
    assert_eq!(lead.mcp_servers().into_iter().collect::<Vec<_>>(), ["docs", "wiki"]);
    for (tool, expected) in [
        ("docs__search", true),
        ("docs__other", false),
        ("wiki__any", true),
        ("read_file", true),
        ("shell", false),
    ] {
        assert_eq!(lead.has_tool(tool), expected, "{tool}");
    }
    let written = toml::to_string(&team).expect("TOML");
    assert_eq!(Team::parse(&written, "t").expect("a team"), team);
}

#[test]
fn each_mistake_about_servers_is_named() {
    for (from, to, part) in [
        ("url = ", "command = [\"wiki\"]\nurl = ", "keep one of them"),
        ("url = \"https://wiki.example/mcp\"", "", "needs `command` or `url`"),
        ("https://wiki", "ftp://wiki", "http or https"),
        ("token_env", "token", "unknown field `token`"),
        ("timeout_s = 60", "timeout_s = 0", "1 to 600"),
        ("tools = [\"search\"]", "tools = []", "allows no tool"),
        ("[mcp.docs]", "[mcp.Docs]", "a-z0-9-"),
        ("docs__search", "doc__search", "the file has docs, wiki"),
        ("wiki__*", "wiki__a*", "SERVER__*"),
        ("wiki__*", "*", "SERVER__*"),
        ("env = [", "token_env = \"X\"\nenv = [", "needs `url`"),
        ("\"web\", ", "\"--privileged\", ", "not a name of a container"),
        ("db.lan:8080", "http://db.lan", "is not a host"),
        ("db.lan:8080", "", "is not a host"),
    ] {
        let error = Team::parse(&MCP.replace(from, to), "t").expect_err(to);
        assert!(error.reason.contains(part), "{to}: {error}");
    }
}
