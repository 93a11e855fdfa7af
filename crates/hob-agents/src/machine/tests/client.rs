//! Tools of the client: the entry agent calls them, and the run waits for their results.
//! The results count as text of others. A call whose result is missing has failed.

use hob_core::chat::Tool;

use super::*;

fn run() -> Run {
    let team = Team::parse(TEAM, "team").expect("a team");
    let mut state = RunState::new(team, "run".to_owned(), "Do it.".to_owned());
    let tool = |name: &str| Tool { name: name.to_owned(), ..Tool::default() };
    state.client_tools = vec![tool("look"), tool("weather")];
    Run::begun(state)
}

#[test]
fn a_run_waits_until_its_client_has_made_the_calls() {
    let mut run = run();
    let tools = run.request().2;
    assert_eq!(tools.iter().filter(|name| *name == "look").count(), 1, "the team has its own");
    assert_eq!(tools.last().map(String::as_str), Some("weather"));
    let city = |name: &str| ("weather", json!({ "city": name }));
    run.answers("", &[city("Oslo"), ("save", json!({})), city("Rome")]);
    run.tool_gives("saved");
    let [Effect::AskClient { id }] = run.asked[..] else { panic!("{:?}", run.asked) };
    assert_eq!(run.state.status, TeamRunStatus::WaitingClient);
    run.input(Input::ClientAnswered { id: id + 1, outputs: BTreeMap::new() });
    run.input(Input::Start);
    assert_eq!(run.asked, [Effect::AskClient { id }], "it still waits");
    let outputs = BTreeMap::from([(0, "Rain.".to_owned())]);
    run.input(Input::ClientAnswered { id, outputs });
    assert_eq!(run.read_results(), ["saved", "Rain.", "the client has sent no result"]);
    assert!(run.state.stack[0].is_tainted);
    run.answers("Rain in Oslo.", &[]);
    assert_eq!(run.answer(), Some("Rain in Oslo."));
}

#[test]
fn only_the_entry_agent_calls_tools_of_the_client() {
    let mut run = run();
    run.answers("", &[("transfer_to_coder", json!({}))]);
    assert!(!run.request().2.contains(&"weather".to_owned()));
    run.answers("", &[("weather", json!({}))]);
    assert!(run.last_read().contains("there is no tool 'weather'"), "{}", run.last_read());
}
