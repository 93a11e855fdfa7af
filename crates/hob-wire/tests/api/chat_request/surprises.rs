//! Any body gives a request or a short refusal.

use hob_core::chat::{Message, Role};
use hob_wire::parse_chat;
use serde_json::{Value, json};

use super::{messages, parse};

fn any_value() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![Just("function"), Just("user"), Just("text"), Just("required"), Just("{}")]
            .prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("role"),
        Just("content"),
        Just("type"),
        Just("function"),
        Just("name"),
        Just("arguments"),
        Just("tool_calls"),
        Just("parameters"),
        Just("schema"),
        Just("effort"),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..4).prop_map(|members| {
                members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest::proptest! {
    #[test]
    fn no_value_of_a_known_field_is_a_surprise(
        field in proptest::sample::select(vec![
            "messages", "tools", "tool_choice", "functions", "function_call", "response_format",
            "stop", "logit_bias", "reasoning", "thinking", "think", "chat_template_kwargs", "n",
            "seed", "max_tokens", "modalities", "stream_options", "temperature", "keep_alive",
        ]),
        value in any_value(),
    ) {
        let mut body = json!({ "messages": [{"role": "user", "content": "Hi"}] });
        body[field] = value;
        if let Err(error) = parse_chat(body.to_string().as_bytes()) {
            proptest::prop_assert!(error.to_string().len() < 1200, "{error}");
        }
    }

    #[test]
    fn any_text_arrives_as_it_was_sent(text: String) {
        let list = json!([{"role": "user", "content": text}]).to_string();
        proptest::prop_assert_eq!(messages(&list), Ok(vec![Message::new(Role::User, text)]));
    }

    #[test]
    fn any_seed_arrives(seed: i64) {
        let wire = parse(&format!("\"seed\":{seed}")).expect("a request");
        proptest::prop_assert_eq!(wire.request.sampling.seed, Some(seed.cast_unsigned()));
    }

    #[test]
    fn any_seed_without_a_sign_arrives(seed: u64) {
        let wire = parse(&format!("\"seed\":{seed}")).expect("a request");
        proptest::prop_assert_eq!(wire.request.sampling.seed, Some(seed));
    }
}
