//! A last message of the assistant's is continued: the prompt ends with its text.
//! Also tests what must not be continued: calls, and a message that stands alone.

use hob_core::chat::{Effort, Role, Thinking};

use super::{
    DEEPSEEK, GEMMA, MISTRAL, QWEN3, SMOLLM2, calling, compile, conversation, render, with_effort,
};
use super::{NOW, Rendered};

fn continued(source: &str, text: &str, thinking: Thinking) -> Rendered {
    let asked = conversation(&[(Role::User, "Count."), (Role::Assistant, text)]);
    compile(source).render(&asked, &thinking, NOW).unwrap()
}

#[test]
fn the_prompt_of_each_family_ends_with_the_text_to_continue() {
    for (source, expect) in [
        (SMOLLM2, "<|im_start|>user\nCount.<|im_end|>\n<|im_start|>assistant\nOne, two,"),
        (QWEN3, "<|im_start|>user\nCount.<|im_end|>\n<|im_start|>assistant\nOne, two,"),
        (GEMMA, "<start_of_turn>user\nCount.<end_of_turn>\n<start_of_turn>model\nOne, two,"),
        (MISTRAL, "[INST]Count.[/INST]One, two,"),
        (DEEPSEEK, "<｜User｜>Count.<｜Assistant｜><think>\n\n</think>\n\nOne, two,"),
    ] {
        let rendered = continued(source, "One, two,", Thinking::default());
        assert!(rendered.text.ends_with(expect), "{}", rendered.text);
        assert!(rendered.is_within_answer && !rendered.starts_in_thinking);
    }
}

#[test]
fn an_empty_message_of_the_assistant_s_is_no_turn() {
    let asked = conversation(&[(Role::User, "Count.")]);
    for source in [SMOLLM2, DEEPSEEK] {
        let empty = continued(source, "", Thinking::default());
        assert_eq!(empty, render(source, &asked).unwrap());
    }
    assert!(continued(DEEPSEEK, "", Thinking::default()).starts_in_thinking);
    assert!(!continued(DEEPSEEK, "", with_effort(Effort::None)).starts_in_thinking);
}

#[test]
fn gpt_oss_continues_in_the_channel_of_answers() {
    let source = "{# <|channel|>commentary functions. tools #}{% for m in messages %}\
        <|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}<|start|>assistant";
    let rendered = continued(source, "One,", Thinking::default());
    let end = "<|start|>assistant<|channel|>final<|message|>One,";
    assert!(rendered.text.ends_with(end), "{}", rendered.text);
}

#[test]
fn calls_and_a_lone_message_stay_turns() {
    let mut waiting = calling("{}", "call_1");
    waiting.messages.pop();
    let rendered = render(SMOLLM2, &waiting).unwrap();
    assert!(rendered.text.ends_with("<|im_end|>\n<|im_start|>assistant\n"), "{}", rendered.text);
    assert!(!rendered.is_within_answer);
    let alone = render(SMOLLM2, &conversation(&[(Role::Assistant, "One,")])).unwrap();
    assert!(alone.text.ends_with("One,<|im_end|>\n<|im_start|>assistant\n"), "{}", alone.text);
}
