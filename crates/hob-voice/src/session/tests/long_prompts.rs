//! Conversations that are too long for their model: what prompts leave out, and when.
//! Each question and each answer has 10 bytes, so the numbers of a refusal say how many of them stay.

use hob_core::chat::{Completion, FinishReason, Role, Timings, Tool, Usage};
use hob_core::realtime::{
    ItemBody, ItemContent, ItemPlace, ItemStatus, OutputModality, PromptTruncation,
    RealtimeCommand, RealtimeItem, ResponseInput, ResponseOptions,
};
use hob_core::{ChatEvent, Fault, ModelError};

use super::scenarios::respond;
use super::{Script, done};
use crate::session::SessionInput;

const REFUSED: ModelError = ModelError::TooLong { needed: 8, available: 8 };

/// A session that writes, with these items.
fn written(items: &[ItemBody]) -> Script {
    let mut script = Script::new(|options| options.settings.output = OutputModality::Text);
    for (number, body) in items.iter().enumerate() {
        let (id, body) = (format!("i{number}"), body.clone());
        script.command(create(id, body));
    }
    script.forget();
    script
}

fn create(id: String, body: ItemBody) -> RealtimeCommand {
    let item = RealtimeItem { id, status: ItemStatus::Completed, body, reasoning: None };
    RealtimeCommand::CreateItem { item: Box::new(item), place: ItemPlace::Last }
}

fn question(number: u32) -> ItemBody {
    let content = vec![ItemContent::InputText(format!("question {number}"))];
    ItemBody::Message { role: Role::User, content }
}

fn answer(number: u32) -> ItemBody {
    let content = vec![ItemContent::OutputText(format!("answer {number}.."))];
    ItemBody::Message { role: Role::Assistant, content }
}

fn call(id: &str) -> ItemBody {
    let (call_id, name) = (id.to_owned(), "light".to_owned());
    ItemBody::Call { call_id, name, arguments: "{}".to_owned() }
}

fn output(id: &str) -> ItemBody {
    ItemBody::CallOutput { call_id: id.to_owned(), output: format!("{id} is on") }
}

impl Script {
    fn refuse(&mut self, stream: u64, error: ModelError) -> &mut Script {
        self.feed(SessionInput::Chat { stream, event: Some(Err(error)) })
    }
}

#[test]
fn the_oldest_items_are_left_out_and_stay_in_the_conversation() {
    let items =
        [question(1), answer(1), question(2), answer(2), question(3), answer(3), question(4)];
    let unnumbered = Fault::TooLong { message: String::new(), needed: None, available: None };
    for error in [REFUSED, ModelError::upstream("a/m", unnumbered)] {
        let mut script = written(&items);
        script.command(respond()).forget();
        let kept = "user: question 3 | assistant: answer 3.. | user: question 4";
        script.refuse(1, error).check(&[&format!("start chat 2 [{kept}]")]);
        script.write(2, "answer 4..").finish(2);
        assert_eq!(script.last(), "resp_1 Completed");
        script.forget();
        let retrieve = RealtimeCommand::RetrieveItem { id: "i0".to_owned() };
        script.command(retrieve).check(&["retrieved 'question 1'"]);
        // The next prompt begins as this one did.
        script.command(respond());
        assert_eq!(script.last(), format!("start chat 3 [{kept} | assistant: answer 4..]"));
    }
}

#[test]
fn thinking_goes_back_where_tools_are_offered() {
    for offers_tools in [true, false] {
        let mut script = written(&[question(1)]);
        let mut settings = Box::new(script.session.settings().clone());
        let (name, description, parameters) = ("light".to_owned(), None, None);
        settings.tools = vec![Tool { name, description, parameters, strict: false }];
        settings.tools.truncate(usize::from(offers_tools));
        script.command(RealtimeCommand::Update(settings)).command(respond());
        let (id, name) = ("a".to_owned(), "light".to_owned());
        for event in [
            ChatEvent::Reasoning("The ".to_owned()),
            ChatEvent::Reasoning("light.".to_owned()),
            ChatEvent::ToolCall { index: 0, id, name },
            ChatEvent::ToolArguments { index: 0, piece: "{}".to_owned() },
            done(FinishReason::ToolCalls),
        ] {
            script.chat(1, event);
        }
        script.command(create(String::new(), output("a"))).command(respond());
        let (thought, bytes) = if offers_tools { (" <The light.>", 29) } else { ("", 19) };
        let kept = format!("user: question 1 | assistant: {thought} | tool: a is on");
        assert_eq!(script.last(), format!("start chat 2 [{kept}]"));
        assert_eq!(script.session.conversation.prompt_bytes(), bytes);
    }
}

#[test]
fn a_call_is_left_out_with_its_result_or_not_at_all() {
    for (items, kept) in [
        (vec![question(1), call("a"), output("a"), answer(1), question(2)], "user: question 2"),
        (
            vec![question(1), call("a"), question(2), answer(2), question(3), output("a")],
            "assistant:  | tool: a is on | user: question 3",
        ),
    ] {
        let mut script = written(&items);
        script.command(respond()).forget();
        script.refuse(1, REFUSED).check(&[&format!("start chat 2 [{kept}]")]);
    }
    // The result comes after the cut.
    let mut script = written(&[question(1), call("a"), question(2)]);
    script.command(respond()).refuse(1, REFUSED);
    assert_eq!(script.last(), "start chat 2 [user: question 2]");
    let result = create(String::new(), output("a"));
    script.write(2, "answer 2..").finish(2).command(result).command(respond());
    let kept = "assistant:  | tool: a is on | user: question 2 | assistant: answer 2..";
    assert_eq!(script.last(), format!("start chat 3 [{kept}]"));
}

/// What such a prompt would leave out would stay out.
#[test]
fn a_prompt_that_cannot_or_must_not_be_shorter_fails() {
    let all = [question(1), answer(1), question(2)];
    let input = Some(vec![ResponseInput::Reference("i0".to_owned())]);
    let long = || "Be brief. ".repeat(100);
    let plain = ResponseOptions::default;
    let instructions = Some(long());
    for (items, truncation, instructed, options) in [
        (&all[..], PromptTruncation::Disabled, String::new(), plain()),
        (&all[..2], PromptTruncation::Auto, String::new(), plain()),
        (&all[..], PromptTruncation::Auto, long(), plain()),
        (&all[..], PromptTruncation::Auto, String::new(), ResponseOptions { input, ..plain() }),
        (
            &all[..],
            PromptTruncation::Auto,
            String::new(),
            ResponseOptions { instructions, is_out_of_band: true, ..plain() },
        ),
    ] {
        let mut script = written(items);
        script.session.options.settings.truncation = truncation;
        script.session.options.settings.instructions = instructed;
        script.respond_with(options);
        let failed = script.refuse(1, ModelError::TooLong { needed: 16, available: 8 }).last();
        assert!(failed.starts_with("resp_1 Failed") && failed.contains("too_long"), "{failed}");
    }
}

#[test]
fn an_early_answer_is_asked_for_again_before_the_turn_is_over() {
    let mut script = written(&[question(1), answer(1), question(2), answer(2)]);
    script.speak(20).silence(6).heard_text(1, " Hello").forget();
    let kept = "user: question 2 | assistant: answer 2.. | user: Hello";
    script.refuse(2, REFUSED).check(&[&format!("start chat 3 [{kept}]")]);
    script.write(3, "Yes.").silence(10);
    assert!(script.log.contains(&"keep 3".to_owned()), "{:?}", script.log);
}

/// The prompt and its answer had 75 tokens, and 40 bytes.
#[test]
fn room_is_made_after_an_answer_and_not_only_when_a_prompt_is_refused() {
    let retain = |tokens_max| PromptTruncation::Retain { ratio: 0.5, tokens_max };
    for (context_tokens, truncation, is_cut) in [
        (0, PromptTruncation::Auto, false),
        (80, PromptTruncation::Auto, true),
        (80, PromptTruncation::Disabled, false),
        (90, PromptTruncation::Auto, false),
        (90, retain(None), false),
        (90, retain(Some(74)), true),
    ] {
        let mut script = written(&[question(1), answer(1), question(2)]);
        script.session.set_context_tokens(context_tokens);
        script.session.options.settings.truncation = truncation;
        script.command(respond()).write(1, "answer 2..");
        let usage = Usage { prompt_tokens: 70, completion_tokens: 5, ..Usage::default() };
        let (finish, timings) = (FinishReason::Stop, Timings::default());
        script.chat(1, ChatEvent::Done(Completion { finish, usage, timings }));
        let warm = "warm [user: question 2 | assistant: answer 2..]";
        let expected = if is_cut { warm } else { "resp_1 Completed" };
        assert_eq!(script.last(), expected, "{context_tokens} {truncation:?}");
    }
}
