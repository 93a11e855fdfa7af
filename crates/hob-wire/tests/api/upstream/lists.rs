//! What servers say that they serve, in the words of each.
//! A field that a server leaves out is unknown, and neither yes nor no.

use hob_wire::{
    ListError, ModelEntry, ModelKind, ServedModel, models, parse_anthropic_models,
    parse_llama_props, parse_ollama_ps, parse_ollama_show, parse_ollama_tags, parse_openai_models,
    parse_tabby_model,
};

use hob_core::{ChatCard, ModelState};

fn named(id: &str) -> ServedModel {
    ServedModel { id: id.to_owned(), ..ServedModel::default() }
}

fn listed(data: &str) -> Vec<ServedModel> {
    let body = format!(r#"{{"object":"list","data":{data}}}"#);
    parse_openai_models(body.as_bytes()).expect("a list")
}

/// Context, loaded, thinks, calls tools, sees.
type Known = (Option<u32>, Option<bool>, Option<bool>, Option<bool>, Option<bool>);

fn known(model: &ServedModel) -> Known {
    (model.context_tokens, model.is_loaded, model.thinks, model.calls_tools, model.sees)
}

const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);

/// Server, what it lists, and what is known of the model then.
fn check(rows: &[(&str, &str, Known)]) {
    for (server, json, expected) in rows {
        let models = listed(&format!("[{json}]"));
        assert_eq!(models.len(), 1, "{server}");
        assert_eq!((models[0].id.as_str(), known(&models[0])), ("m", *expected), "{server}");
    }
}

#[test]
fn servers_that_many_share_say_it_in_fields_of_their_own() {
    check(&[
        (
            "OpenAI",
            r#"{"id":"m","object":"model","created":1,"owned_by":"openai"}"#,
            (None, None, None, None, None),
        ),
        (
            "vLLM",
            r#"{"id":"m","object":"model","owned_by":"vllm","root":"/m","parent":null,"max_model_len":8192,"permission":[]}"#,
            (Some(8192), None, None, None, None),
        ),
        (
            "OpenRouter",
            r#"{"id":"m","context_length":131072,"architecture":{"modality":"text+image->text","input_modalities":["text","image"]},
                "top_provider":{"context_length":65536,"max_completion_tokens":null},
                "supported_parameters":["tools","reasoning","include_reasoning","seed"],"reasoning":{"mandatory":false}}"#,
            (Some(131_072), None, YES, YES, YES),
        ),
        (
            "OpenRouter, of a plain model",
            r#"{"id":"m","context_length":4096.0,"architecture":{"input_modalities":["text"]},"supported_parameters":["seed"]}"#,
            (Some(4096), None, NO, NO, NO),
        ),
        (
            "Mistral",
            r#"{"id":"m","max_context_length":32768,"capabilities":{"function_calling":true,"vision":true}}"#,
            (Some(32_768), None, None, YES, YES),
        ),
        (
            "Groq",
            r#"{"id":"m","active":true,"context_window":8192}"#,
            (Some(8192), None, None, None, None),
        ),
        (
            "a server that knows little",
            r#"{"id":"m","context_length":0,"state":"blue","capabilities":["completion"],"reasoning":null}"#,
            (None, None, None, None, None),
        ),
    ]);
}

#[test]
fn servers_of_one_s_own_say_it_in_fields_of_their_own() {
    check(&[
        (
            "llama-server b11434",
            r#"{"id":"m","aliases":["m"],"tags":[],"object":"model","architecture":{"input_modalities":["text"],"output_modalities":["text"]},
                "owned_by":"llamacpp","meta":{"vocab_type":2,"n_ctx":1024,"n_ctx_train":8192,"n_params":134515008}}"#,
            (Some(1024), None, None, None, NO),
        ),
        (
            "llama-server's router",
            r#"{"id":"m","owned_by":"llamacpp","status":{"value":"unloaded","args":["--model","m.gguf"]}}"#,
            (None, NO, None, None, None),
        ),
        (
            "LM Studio /api/v0/models",
            r#"{"id":"m","type":"vlm","state":"loaded","max_context_length":131072,"loaded_context_length":4096,"capabilities":["tool_use"]}"#,
            (Some(4096), YES, None, YES, YES),
        ),
        (
            "LM Studio /api/v0/models, not loaded",
            r#"{"id":"m","type":"llm","state":"not-loaded","max_context_length":131072}"#,
            (Some(131_072), NO, None, None, NO),
        ),
        (
            "LM Studio /api/v1/models",
            r#"{"key":"m","type":"llm","loaded_instances":[{"id":"m","config":{"context_length":32768}}],"max_context_length":40960,
                "capabilities":{"vision":false,"trained_for_tool_use":true}}"#,
            (Some(32_768), YES, None, YES, NO),
        ),
    ]);
}

#[test]
fn what_a_hob_lists_another_hob_reads() {
    let card = ChatCard {
        context_tokens: 2048,
        template: Some(String::new()),
        calls_tools: true,
        ..ChatCard::default()
    };
    let team = ChatCard { is_team: true, ..card.clone() };
    let entry = |id: &str, state, kind| ModelEntry { id: id.to_owned(), state, kind };
    let body = models(&[
        entry("smol", ModelState::Ready, ModelKind::of_chat(&card)),
        entry("team", ModelState::Ready, ModelKind::of_chat(&team)),
        entry("cold", ModelState::Cold, ModelKind::of_chat(&ChatCard { sees: true, ..card })),
        entry("kokoro", ModelState::Ready, ModelKind::Speech),
        entry("ears", ModelState::Cold, ModelKind::Transcription { languages: Vec::new() }),
    ]);
    let smol = ServedModel {
        context_tokens: Some(2048),
        is_loaded: Some(true),
        thinks: Some(false),
        calls_tools: Some(true),
        sees: Some(false),
        ..named("smol")
    };
    let cold = ServedModel {
        id: "cold".to_owned(),
        is_loaded: Some(false),
        sees: Some(true),
        ..smol.clone()
    };
    let ears = ServedModel {
        id: "ears".to_owned(),
        context_tokens: None,
        calls_tools: Some(false),
        sees: Some(false),
        hears: true,
        ..cold.clone()
    };
    let team = ServedModel { id: "team".to_owned(), is_team: true, ..smol.clone() };
    assert_eq!(parse_openai_models(body.as_bytes()), Ok(vec![smol, team, cold, ears]));
}

#[test]
fn lists_come_in_several_wrappings() {
    for body in [
        r#"{"data":[{"id":"a"},{"id":"b"}]}"#,
        r#"{"models":[{"name":"a"},{"key":"b"}]}"#,
        r#"{"models":[{"name":"x"}],"data":[{"id":"a"},{"id":"b"}]}"#,
        r#"[{"id":"a"},{"id":"b"}]"#,
        r#"["a","b"]"#,
        r#"{"data":[null,{"id":"a"},{},{"id":""},{"id":7},"",[],{"id":"b","meta":7,"capabilities":7}]}"#,
    ] {
        assert_eq!(
            parse_openai_models(body.as_bytes()),
            Ok(vec![named("a"), named("b")]),
            "{body}"
        );
    }
    assert_eq!(listed("[]"), []);
}

#[test]
fn ollama_says_what_it_has_and_what_is_loaded() {
    let tags = br#"{"models":[
        {"name":"qwen3:4b","model":"qwen3:4b","modified_at":"2026-11-01T00:00:00Z","size":1,"digest":"d",
            "details":{"parent_model":"","format":"gguf","family":"qwen3","families":["qwen3"]}},
        {"model":"new:latest","capabilities":["completion","tools","thinking"]},{}]}"#;
    let new = ServedModel {
        thinks: Some(true),
        calls_tools: Some(true),
        sees: Some(false),
        ..named("new:latest")
    };
    assert_eq!(parse_ollama_tags(tags), Ok(vec![named("qwen3:4b"), new]));
    let ps = br#"{"models":[{"name":"qwen3:4b","size_vram":1,"expires_at":"2300-01-01T00:00:00Z","context_length":4096},
        {"name":"old:latest"}]}"#;
    let loaded = |id: &str, context_tokens| ServedModel {
        context_tokens,
        is_loaded: Some(true),
        ..named(id)
    };
    let expected = vec![loaded("qwen3:4b", Some(4096)), loaded("old:latest", None)];
    assert_eq!(parse_ollama_ps(ps), Ok(expected));
    assert_eq!(parse_ollama_ps(br#"{"models":[]}"#), Ok(Vec::new()));
}

#[test]
fn ollama_shows_one_model() {
    let able = |context_tokens, thinks| ServedModel {
        context_tokens,
        thinks: Some(thinks),
        calls_tools: Some(true),
        sees: Some(!thinks),
        ..ServedModel::default()
    };
    for (body, expected) in [
        (
            r#"{"details":{},"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960,
                "vision.context_length":77},"capabilities":["completion","tools","thinking"]}"#,
            able(Some(40_960), true),
        ),
        (
            r#"{"parameters":"stop \"<end>\"\nnum_ctx                        4096\ntemperature 1",
                "model_info":{"general.architecture":"qwen3","qwen3.context_length":40960},
                "capabilities":["completion","tools","vision"]}"#,
            able(Some(4096), false),
        ),
        (
            r#"{"parameters":"num_ctx many","model_info":{"llama.context_length":8192},"capabilities":null}"#,
            ServedModel { context_tokens: Some(8192), ..ServedModel::default() },
        ),
        (r#"{"details":{"family":"bert"}}"#, ServedModel::default()),
        (
            r#"{"details":{},"thinking":{"values":["low","medium"],"default":"medium"}}"#,
            ServedModel { thinks: Some(true), ..ServedModel::default() },
        ),
        (
            r#"{"details":{},"thinking":{"values":[false],"default":false}}"#,
            ServedModel { thinks: Some(false), ..ServedModel::default() },
        ),
    ] {
        assert_eq!(parse_ollama_show(body.as_bytes()), Ok(expected), "{body}");
    }
}

#[test]
fn servers_of_one_model_describe_it() {
    let props = br#"{"default_generation_settings":{"params":{},"n_ctx":1024},"total_slots":2,"model_alias":"smol",
        "model_path":"/models/smol.gguf","modalities":{"vision":false,"audio":false},"is_sleeping":false,
        "chat_template_caps":{"supports_tools":true}}"#;
    let smol = ServedModel {
        context_tokens: Some(1024),
        is_loaded: Some(true),
        calls_tools: Some(true),
        sees: Some(false),
        ..named("smol")
    };
    assert_eq!(parse_llama_props(props), Ok(smol));
    for (path, name) in [("/models/a.gguf", "a.gguf"), (r"C:\\models\\a.gguf", "a.gguf"), ("", "")]
    {
        let props = format!(
            r#"{{"default_generation_settings":{{"n_ctx":4096}},"model_path":"{path}",
                "chat_template_caps":{{"supports_tools":false}}}}"#
        );
        let expected = ServedModel { context_tokens: Some(4096), ..named(name) };
        assert_eq!(parse_llama_props(props.as_bytes()), Ok(expected));
    }
    let model = br#"{"id":"Qwen3-4B-exl3","object":"model","created":1,"owned_by":"tabbyAPI","logging":null,
        "parameters":{"max_seq_len":32768,"rope_scale":1.0,"cache_size":65536,"use_vision":true}}"#;
    let expected = ServedModel {
        context_tokens: Some(32_768),
        is_loaded: Some(true),
        sees: Some(true),
        ..named("Qwen3-4B-exl3")
    };
    assert_eq!(parse_tabby_model(model), Ok(expected));
}

#[test]
fn anthropic_lists_what_its_models_can() {
    let body = br#"{"data":[
        {"type":"model","id":"claude-opus-5-5","display_name":"Claude Opus 5.5","max_input_tokens":1000000,"max_tokens":128000,
            "capabilities":{"image_input":{"supported":true},"thinking":{"supported":true,"types":{"adaptive":{"supported":true}}}}},
        {"type":"model","id":"claude-old","max_input_tokens":null,"capabilities":null}],
        "has_more":false,"first_id":"claude-opus-5-5","last_id":"claude-old"}"#;
    let able = ServedModel {
        context_tokens: Some(1_000_000),
        thinks: Some(true),
        calls_tools: Some(true),
        sees: Some(true),
        ..named("claude-opus-5-5")
    };
    let old = ServedModel { calls_tools: Some(true), ..named("claude-old") };
    assert_eq!(parse_anthropic_models(body), Ok(vec![able, old]));
}

#[test]
fn what_is_no_list_is_said() {
    let missing = |wanted| Err(ListError::Missing { wanted });
    for body in ["{}", "7", r#"{"data":{}}"#, r#"{"error":{"message":"no"}}"#] {
        assert_eq!(parse_openai_models(body.as_bytes()), missing("'data'"), "{body}");
        assert_eq!(parse_anthropic_models(body.as_bytes()), missing("'data'"), "{body}");
        assert_eq!(parse_ollama_tags(body.as_bytes()), missing("'models'"), "{body}");
        assert_eq!(parse_ollama_ps(body.as_bytes()), missing("'models'"), "{body}");
        let one = |wanted| Err(ListError::Missing { wanted });
        assert_eq!(parse_ollama_show(body.as_bytes()), one("'model_info'"), "{body}");
        let wanted = "'default_generation_settings'";
        assert_eq!(parse_llama_props(body.as_bytes()), one(wanted), "{body}");
        assert_eq!(parse_tabby_model(body.as_bytes()), one("'id'"), "{body}");
    }
    let html = parse_openai_models(b"<html>").expect_err("no JSON");
    assert_eq!(html.to_string(), "is not JSON: expected value at line 1 column 1");
    let endless = format!("[{}\"m\"]", "\"m\",".repeat(10_000));
    let many = parse_openai_models(endless.as_bytes()).expect_err("too many");
    assert_eq!(many.to_string(), "lists 10001 models, and the limit is 10000");
}
