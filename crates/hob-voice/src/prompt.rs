//! Makes a chat request of a conversation's items.
//! Templates want turns in alternation and a result for each call, so neighbours are joined and open calls left out.

use hob_core::chat::{
    ChatRequest, Conversation as Dialogue, Effort, Image, JsonText, Message, Prompt, Reading, Role,
    Thinking, ToolCall,
};
use hob_core::realtime::{ItemBody, ItemContent, RealtimeItem, RealtimeSettings};

/// What the model reads when the user has said nothing for the idle timeout.
const SILENCE: &str = "(silence)";

/// The request for an answer to `items`.
pub(crate) fn chat_request(settings: &RealtimeSettings, items: &[&RealtimeItem]) -> ChatRequest {
    let dialogue = Dialogue {
        messages: messages(&settings.instructions, items),
        tools: settings.tools.clone(),
        tool_choice: settings.tool_choice.clone(),
        parallel_tool_calls: settings.parallel_tool_calls,
        template_arguments: None,
    };
    ChatRequest {
        prompt: Prompt::Chat(dialogue),
        tokens_max: settings.tokens_max,
        thinking: thinking(settings.thinking),
        reading: Reading::Paced,
        ..ChatRequest::default()
    }
}

/// Text of a prompt that is no item.
pub(crate) fn fixed_bytes(settings: &RealtimeSettings) -> usize {
    let tools = settings.tools.iter().map(|tool| {
        let parameters = tool.parameters.as_ref().map_or(0, |schema| schema.as_str().len());
        tool.name.len() + tool.description.as_ref().map_or(0, String::len) + parameters
    });
    settings.instructions.len() + tools.sum::<usize>()
}

/// A listener hears silence while a model thinks, so it does not unless the client asks for it.
fn thinking(thinking: Thinking) -> Thinking {
    Thinking { effort: Some(thinking.effort.unwrap_or(Effort::None)), ..thinking }
}

fn messages(instructions: &str, items: &[&RealtimeItem]) -> Vec<Message> {
    let mut messages = Vec::new();
    if !instructions.is_empty() {
        messages.push(Message::new(Role::System, instructions));
    }
    let mut results = Vec::new();
    for item in items {
        if let ItemBody::Call { call_id, name, arguments } = &item.body {
            if let Some(output) = output_of(call_id, items) {
                let arguments = JsonText::parsed(arguments.clone());
                let call = ToolCall { id: call_id.clone(), name: name.clone(), arguments };
                add_call(&mut messages, call, item.reasoning.as_deref(), results.is_empty());
                results.push(result(call_id, output));
            }
            continue;
        }
        messages.append(&mut results);
        if let ItemBody::Message { role, content } = &item.body {
            add_message(&mut messages, *role, content, item.reasoning.as_deref());
        }
    }
    messages.append(&mut results);
    // A question that a noise interrupted has no answer yet: the noise does not replace it.
    let is_answered = messages.last().is_none_or(|last| last.role != Role::User);
    if is_answered && items.last().is_some_and(|item| is_silence(item)) {
        messages.push(Message::new(Role::User, SILENCE));
    }
    messages
}

/// Whether an item is a turn without words: a long silence, or a noise.
pub(crate) fn is_silence(item: &RealtimeItem) -> bool {
    let is_user = matches!(&item.body, ItemBody::Message { role: Role::User, content }
        if content.iter().all(|part| matches!(part, ItemContent::InputAudio { .. })));
    is_user && item.text().is_empty()
}

fn output_of<'a>(wanted: &str, items: &[&'a RealtimeItem]) -> Option<&'a str> {
    items.iter().find_map(|item| match &item.body {
        ItemBody::CallOutput { call_id, output } if call_id == wanted => Some(output.as_str()),
        _ => None,
    })
}

fn result(call_id: &str, output: &str) -> Message {
    let tool_call_id = Some(call_id.to_owned());
    Message { tool_call_id, ..Message::new(Role::Tool, output) }
}

/// A call belongs to the message of the assistant before it, which may have other calls.
fn add_call(messages: &mut Vec<Message>, call: ToolCall, reasoning: Option<&str>, is_first: bool) {
    let has_room =
        |last: &Message| last.role == Role::Assistant && (!is_first || last.tool_calls.is_empty());
    if !messages.last().is_some_and(has_room) {
        messages.push(Message::new(Role::Assistant, String::new()));
    }
    if let Some(last) = messages.last_mut() {
        last.tool_calls.push(call);
        add_reasoning(last, reasoning);
    }
}

fn add_reasoning(message: &mut Message, more: Option<&str>) {
    if let Some(more) = more {
        let before = message.reasoning.take().map(|before| before + "\n");
        message.reasoning = Some(before.unwrap_or_default() + more);
    }
}

fn add_message(
    messages: &mut Vec<Message>,
    role: Role,
    content: &[ItemContent],
    reasoning: Option<&str>,
) {
    let mut message = message(role, content);
    if message.text.is_empty() && message.images.is_empty() {
        return;
    }
    match messages.last_mut() {
        Some(last) if joins(last, &message) => {
            last.text.push('\n');
            last.text.push_str(&message.text);
            add_reasoning(last, reasoning);
        }
        _ => {
            add_reasoning(&mut message, reasoning);
            messages.push(message);
        }
    }
}

fn joins(last: &Message, next: &Message) -> bool {
    let is_turn = matches!(next.role, Role::User | Role::Assistant);
    is_turn && last.role == next.role && last.tool_calls.is_empty() && next.images.is_empty()
}

fn message(role: Role, content: &[ItemContent]) -> Message {
    let mut message = Message::new(role, String::new());
    for part in content {
        if let ItemContent::InputImage { url, detail } = part {
            let (url, detail) = (url.clone(), detail.clone());
            message.images.push(Image { at: message.text.len(), url, detail });
        }
        let Some(text) = part.text().filter(|text| !text.is_empty()) else { continue };
        if !message.text.is_empty() {
            message.text.push('\n');
        }
        message.text.push_str(text);
    }
    message
}

#[cfg(test)]
mod tests {
    use hob_core::realtime::ItemStatus;

    use super::*;

    fn item(body: ItemBody) -> RealtimeItem {
        let (id, status) = (String::new(), ItemStatus::Completed);
        RealtimeItem { id, status, body, reasoning: None }
    }

    fn said(role: Role, text: &str) -> RealtimeItem {
        item(ItemBody::Message { role, content: vec![ItemContent::InputText(text.to_owned())] })
    }

    fn call(id: &str) -> RealtimeItem {
        let (call_id, name) = (id.to_owned(), "light".to_owned());
        item(ItemBody::Call { call_id, name, arguments: String::new() })
    }

    fn output(id: &str) -> RealtimeItem {
        item(ItemBody::CallOutput { call_id: id.to_owned(), output: format!("{id} is on") })
    }

    fn check(items: &[RealtimeItem], expected: &[&str]) {
        let shown: Vec<String> = messages("Be brief.", &items.iter().collect::<Vec<_>>())
            .iter()
            .map(|message| {
                let calls = message.tool_calls.iter().map(|call| format!(" +{}", call.id));
                let calls: String = calls.collect();
                format!("{}: {}{calls}", message.role.name(), message.text)
            })
            .collect();
        assert_eq!(shown, [&["system: Be brief."][..], expected].concat());
    }

    #[test]
    fn each_call_has_its_result_even_if_the_user_spoke_in_between() {
        check(
            &[
                said(Role::User, "light"),
                said(Role::Assistant, "One moment."),
                call("a"),
                call("b"),
                said(Role::User, "now"),
                output("b"),
                output("a"),
            ],
            &[
                "user: light",
                "assistant: One moment. +a +b",
                "tool: a is on",
                "tool: b is on",
                "user: now",
            ],
        );
        check(&[call("a")], &[]);
        check(
            &[call("a"), output("a"), call("b"), output("b")],
            &["assistant:  +a", "tool: a is on", "assistant:  +b", "tool: b is on"],
        );
    }

    #[test]
    fn turns_alternate_and_what_was_not_heard_is_left_out() {
        check(
            &[said(Role::User, "one"), said(Role::Assistant, ""), said(Role::User, "two")],
            &["user: one\ntwo"],
        );
        let silence = ItemContent::InputAudio { transcript: Some(String::new()) };
        let idle = item(ItemBody::Message { role: Role::User, content: vec![silence] });
        check(
            &[said(Role::Assistant, "one"), idle.clone()],
            &["assistant: one", "user: (silence)"],
        );
        check(&[said(Role::User, "one"), idle], &["user: one"]);
    }
}
