//! What Anthropic's models have no word for: refused where the answer would be another one, and
//! otherwise left out and named.

use super::thinking::thinking;
use super::*;

fn refused(request: &ChatRequest, model: &str) -> Option<&'static str> {
    anthropic_request(request, model, &[]).err().map(|UnsupportedField { field }| field)
}

#[test]
fn samplers_go_where_they_are_taken_and_are_named_where_they_are_not() {
    let hot = Sampling {
        temperature: Some(1.5),
        top_p: Some(0.5),
        top_k: Some(7),
        ..Sampling::default()
    };
    let warm = Sampling { temperature: Some(0.25), ..hot.clone() };
    let wide = Sampling { temperature: None, top_p: Some(0.96), ..hot.clone() };
    let plain = Sampling {
        temperature: Some(1.0),
        top_p: Some(1.0),
        top_k: Some(0),
        ..Sampling::default()
    };
    let (on, unsaid) = (Some(Effort::Low), None);
    for (sampling, model, effort, kept, dropped) in [
        (&hot, OTHER, unsaid, json!([1.0, 0.5, 7]), &[][..]),
        (&hot, OLD, unsaid, json!([null, 0.5, 7]), &["temperature"]),
        (&warm, OLD, unsaid, json!([0.25, null, 7]), &["top_p"]),
        (&wide, OLD, unsaid, json!([null, 0.96, 7]), &[]),
        (&wide, OLD, on, json!([null, 0.96, null]), &["top_k"]),
        (&warm, MIDDLE, on, json!([null, null, null]), &["temperature", "top_p", "top_k"]),
        (&warm, NEW, unsaid, json!([null, null, null]), &["temperature", "top_p", "top_k"]),
        (&plain, NEW, unsaid, json!([null, null, null]), &[]),
        (&plain, OTHER, unsaid, json!([1.0, 1.0, null]), &[]),
    ] {
        let request = ChatRequest { sampling: sampling.clone(), ..thinking(effort, None) };
        let body = sent(&request, model);
        let of = json!([body["temperature"], body["top_p"], body["top_k"]]);
        assert_eq!(of, kept, "{sampling:?} for {model}");
        assert_eq!(anthropic_drops(&request, model), dropped, "{sampling:?} for {model}");
    }
}

#[test]
fn what_has_no_word_is_left_out_and_named() {
    let mut request = chat(vec![Message { name: Some("Ada".to_owned()), ..user("Hi") }]);
    let plain = sent(&chat(vec![user("Hi")]), NEW);
    request.sampling = Sampling {
        min_p: Some(0.1),
        repeat_penalty: Some(1.1),
        presence_penalty: Some(0.5),
        frequency_penalty: Some(-0.5),
        seed: Some(0),
        ..Sampling::default()
    };
    conversation_of(&mut request).template_arguments = Some(JsonText::parsed(r#"{"x":1}"#));
    assert_eq!(sent(&request, NEW), plain);
    let names = [
        "min_p",
        "repeat_penalty",
        "presence_penalty",
        "frequency_penalty",
        "seed",
        "chat_template_kwargs",
        "name",
    ];
    assert_eq!(anthropic_drops(&request, NEW), names);
    let neutral = Sampling {
        min_p: Some(0.0),
        repeat_penalty: Some(1.0),
        presence_penalty: Some(0.0),
        frequency_penalty: Some(0.0),
        ..Sampling::default()
    };
    let answered = Message { name: Some("f".to_owned()), ..result("a", "1") };
    let request = ChatRequest { sampling: neutral, ..chat(vec![user("Hi"), answered]) };
    assert_eq!(anthropic_drops(&request, NEW), [""; 0]);
}

#[test]
fn pictures_that_cannot_be_sent_are_refused() {
    let pictured =
        |role: Role, url: &str| Message { images: vec![image(0, url)], ..Message::new(role, "x") };
    for message in [
        pictured(Role::System, "https://hob.test/a.png"),
        pictured(Role::Assistant, "https://hob.test/a.png"),
        pictured(Role::User, "data:image/svg+xml,<svg/>"),
    ] {
        assert_eq!(refused(&chat(vec![message]), NEW), Some("image_url"));
    }
}

#[test]
fn schemas_are_sent_beside_the_effort_and_other_forms_are_refused() {
    let schema = OutputFormat::JsonSchema(JsonText::parsed(r#"{"type":"object"}"#));
    let wanted = |output: &OutputFormat| ChatRequest {
        output: output.clone(),
        ..thinking(Some(Effort::High), None)
    };
    let format = json!({ "type": "json_schema", "schema": { "type": "object" } });
    let body = sent(&wanted(&schema), NEW);
    assert_eq!(body["output_config"], json!({ "effort": "high", "format": format }));
    assert_eq!(sent(&wanted(&schema), OLD)["output_config"], json!({ "format": format }));
    for model in [OTHER, "claude-opus-4-20250514"] {
        assert_eq!(refused(&wanted(&schema), model), Some("response_format"));
    }
    for output in [
        OutputFormat::JsonObject,
        OutputFormat::Regex("a+".to_owned()),
        OutputFormat::Lark("start: A".to_owned()),
    ] {
        assert_eq!(refused(&wanted(&output), NEW), Some("response_format"), "{output:?}");
    }
}

#[test]
fn what_would_give_another_answer_is_refused() {
    let hi = || chat(vec![user("Hi")]);
    let prompt = |prompt: Prompt| ChatRequest { prompt, ..ChatRequest::default() };
    let (prefix, suffix) = ("a".to_owned(), "b".to_owned());
    let biased = Sampling { logit_bias: vec![(1, 2.0)], ..Sampling::default() };
    let endless = Sampling { ignore_eos: Some(true), ..Sampling::default() };
    for (request, field) in [
        (prompt(Prompt::Text("Hi".to_owned())), "prompt"),
        (prompt(Prompt::Tokens(vec![1])), "prompt"),
        (prompt(Prompt::Infill { prefix, suffix }), "suffix"),
        (ChatRequest { logprobs: Some(0), ..hi() }, "logprobs"),
        (ChatRequest { sampling: biased, ..hi() }, "logit_bias"),
        (ChatRequest { sampling: endless, ..hi() }, "ignore_eos"),
        (ChatRequest { stop: vec!["a".to_owned(), "\n".to_owned()], ..hi() }, "stop"),
    ] {
        assert_eq!(refused(&request, NEW), Some(field));
    }
    let named = ToolChoice::Named("weather".to_owned());
    for choice in [ToolChoice::Required, named] {
        assert_eq!(refused(&with_tool(choice), NEWEST), Some("tool_choice"));
    }
    assert_eq!(refused(&with_tool(ToolChoice::Auto), NEWEST), None);
    assert_eq!(anthropic_drops(&prompt(Prompt::Text("Hi".to_owned())), NEW), [""; 0]);
}
