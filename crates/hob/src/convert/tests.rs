//! Imports of whole LiteLLM and llama-swap files, compared with stored results; then single settings and mistakes, in rows.

use super::*;

const LITELLM: &str = include_str!("tests/litellm.yaml");
const LLAMA_SWAP: &str = include_str!("tests/llama_swap.yaml");

/// The `hob.toml`, which hob reads back as the same configuration, and the notes.
fn imported(text: &str) -> (String, String) {
    let imported = import(text, "config.yaml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let written = toml::to_string(&imported.config).expect("TOML");
    assert_eq!(toml::from_str(&written), Ok(imported.config), "{written}");
    let notes: Vec<String> = imported.notes.iter().map(Note::to_string).collect();
    (written, notes.join("\n") + "\n")
}

#[test]
fn a_litellm_file_becomes_a_configuration_and_notes() {
    let (toml, notes) = imported(LITELLM);
    assert_eq!(toml, include_str!("tests/litellm.toml"));
    assert_eq!(notes, include_str!("tests/litellm.notes"));
}

#[test]
fn a_llama_swap_file_becomes_a_configuration_and_notes() {
    let (toml, notes) = imported(LLAMA_SWAP);
    assert_eq!(toml, include_str!("tests/llama_swap.toml"));
    assert_eq!(notes, include_str!("tests/llama_swap.notes"));
}

#[test]
fn no_secret_of_a_source_is_repeated() {
    let secrets = [
        "0123456789abcdef",
        "second-key",
        "hunter2",
        "1234-master",
        "dbpassword",
        "lf-secret",
        "inner-secret",
        "tele-secret",
    ];
    for text in [LITELLM, LLAMA_SWAP] {
        let (toml, notes) = imported(text);
        let present = secrets.iter().filter(|secret| text.contains(**secret)).count();
        assert!(present >= 3, "{present}");
        for secret in secrets {
            assert!(!toml.contains(secret) && !notes.contains(secret), "{secret}");
        }
    }
}

/// A file, what its `hob.toml` contains, and what its notes contain.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

fn check(rows: &[Row]) {
    for (text, in_toml, in_notes) in rows {
        let (toml, notes) = imported(text);
        for wanted in *in_toml {
            assert!(toml.contains(wanted), "{wanted}\nis not in\n{toml}\nof\n{text}");
        }
        for wanted in *in_notes {
            assert!(notes.contains(wanted), "{wanted}\nis not in\n{notes}\nof\n{text}");
        }
    }
}

#[test]
fn litellm_routing_is_carried_over() {
    check(&[
        (
            "model_list:\n- {model_name: a, litellm_params: {model: gpt-4o}}\n\
             - {model_name: a, litellm_params: {model: gpt-5}}\n",
            &["\"openai/gpt-4o\", \"openai/gpt-5\"", "key = \"env:OPENAI_API_KEY\""],
            &["model_list[1].model_name: changed: LiteLLM picks"],
        ),
        (
            "model_list:\n- {model_name: a, litellm_params: {model: gpt-4o}}\n\
             - {model_name: a, litellm_params: {model: gpt-5}}\n\
             router_settings: {routing_strategy: least-busy, default_fallbacks: [b]}",
            &["strategy = \"least-wait\"\n"],
            &["default_fallbacks.b: dropped: no model_name"],
        ),
        (
            "model_list:\n- {model_name: a, litellm_params: {model: gpt-4o, weight: 0.9}}\n\
             - {model_name: a, litellm_params: {model: gpt-5, weight: 0.1}}\n\
             - {model_name: a, litellm_params: {model: gpt-6, weight: 0, timeout: 7}}\n\
             - {model_name: b, litellm_params: {model: gpt-7}}\n\
             litellm_settings: {default_fallbacks: [b]}\n",
            &[
                "[alias.a-pool]\nstrategy = \"weighted\"",
                "\"a-pool\", \"openai/gpt-6\", \"b\"",
                "weight = 0.9",
            ],
            &[],
        ),
        (
            "model_list:\n- {model_name: a, litellm_params: {model: gpt-4o, rpm: 6}}\n\
             - {model_name: a, litellm_params: {model: gpt-5, rpm: 12}}\n",
            &["weight = 6.0", "weight = 12.0"],
            &["model_list[1].litellm_params.rpm: changed: hob uses it as"],
        ),
        (
            "model_list:\n- {model_name: a, litellm_params: {model: gpt-4o}}\n\
             - {model_name: b, litellm_params: {model: gpt-5}}\n\
             litellm_settings: {fallbacks: [{a: [b]}, {b: [c]}], model_group_alias: {c: a, d: e}}",
            &["[alias.a]\nto = [\"openai/gpt-4o\", \"b\"", "[alias.c]\nto = [\"a\"]"],
            &["'c' falls back to 'b'", "model_group_alias.d: dropped: no model_name"],
        ),
        (
            "model_list:\n- {model_name: a, litellm_params: {model: gpt-4o, timeout: 5}}\n\
             - {model_name: a, litellm_params: {model: gpt-5, reasoning_effort: low}}\n\
             router_settings: {timeout: 9.5, fallbacks: [{\"*\": [b]}]}\n",
            &["total_timeout = \"9500ms\"", "reasoning_effort = \"low\""],
            &[
                "model_list[0].litellm_params.timeout: changed: hob has one value",
                "fallbacks.b: dropped",
            ],
        ),
    ]);
}

#[test]
fn unusual_litellm_files_are_read_as_far_as_possible() {
    check(&[
        (
            "model_list:\n- {model_name: openai/x, litellm_params: {model: openai/x}}\n",
            &["[upstream.openai-server]", "[alias.\"openai/x\"]\nto = [\"openai-server/x\"]"],
            &[],
        ),
        (
            "model_list:\n- {model_name: a, litellm_params: {model: openai/x, api_base: os.environ/GPU_BOX}}\n\
             - {model_name: b, litellm_params: {model: openai/x, api_base: \"http://me:pass@gpu/v1?key=k\"}}\n\
             - {model_name: c, litellm_params: {model: openai/x, api_base: \"https://x.example/openai\"}}\n\
             - {model_name: d, litellm_params: {model: groq/x, api_base: \"https://api.groq.com/openai/v1/\"}}\n\
             - {model_name: e, litellm_params: {model: openai/x, api_base: \"https://e.example/v1beta/openai\"}}\n\
             - {model_name: f, litellm_params: {model: openai/x, api_base: \"https://f.example/client/v4/ai/v1\"}}\n",
            &[
                "url = \"http://gpu-box.invalid\"",
                "to = [\"gpu-box/x\"]",
                "url = \"http://gpu\"",
                "url = \"https://api.groq.com/openai\"",
                "url = \"https://e.example/v1beta/openai\"",
                "url = \"https://f.example/client/v4/ai/v1\"",
            ],
            &[
                "api_base: changed: hob reads no address from the environment",
                "model_list[1].litellm_params.api_base: changed: the user name",
                "model_list[1].litellm_params.api_base: changed: the part after ?",
                "model_list[2].litellm_params.api_base: changed: the address does not end in /v1",
            ],
        ),
        (
            "model_list:\n- {model_name: a, litellm_params: {model: x}}\n- {model_name: b}\n- 7\n\
             - {model_name: c, litellm_params: {model: openai/x, api_base: \"gpu:80\"}}\n\
             - {model_name: d, litellm_params: {model: groq/x}}\n",
            &[],
            &[
                "model_list[0]: dropped: neither a provider prefix",
                "model_list[1]: dropped: missing field `litellm_params`",
                "model_list[2]: dropped: expected struct",
                "model_list[3]: dropped: api_base is not an address",
                "model_list[4]: dropped: hob has no address for 'groq'",
            ],
        ),
        (
            "model_list:\n- model_name: a\n  litellm_params:\n    model: gpt-4o\n    temperature: ~\n\
             \x20   timeout: soon\n    user: [a, ~]\n    stream_timeout: 0\n    top_p: 0.5\n\
             \x20   extra_body: {api_key: abc, x: 1, model: y}\n    reasoning_effort: hard\n",
            &["x = 1", "top_p = 0.5"],
            &[
                "litellm_params.timeout: dropped: expected a number",
                "stream_timeout: dropped: hob takes times above 0",
                "user: dropped: it contains an empty value",
                "extra_body.api_key: dropped: it looks like a secret",
                "extra_body.model: dropped: the target",
                "reasoning_effort: dropped: expected none, minimal",
            ],
        ),
        (
            "router_settings: often\ngeneral_settings: {master_key: none, a: {b: 1, c: 2}}\n\"x.y\": 1",
            &[],
            &[
                "router_settings: dropped: expected struct",
                "master_key: dropped: it is a placeholder",
                "general_settings.a: dropped: hob has no such setting",
                "\"x.y\": dropped: hob has no such setting",
            ],
        ),
    ]);
}

#[test]
fn unusual_llama_swap_files_are_read_as_far_as_possible() {
    check(&[
        (
            "models:\n  a: {cmd: llama-server -m x.gguf, filters: {strip_params: \"top_k, model\"}}\n",
            &["drop = [\"top_k\"]", "[model.x]", "[[alias.a.to]]"],
            &[],
        ),
        (
            "models:\n  same: {cmd: llama-server -m same.gguf -c 8192, ttl: 0, filters: {setParams: {a: 1}}}\n",
            &["[model.same]", "keep_alive = \"forever\"", "context_tokens = 8192\nparallel = 1\n"],
            &["cmd: changed: parallel = 1", "models.same: dropped: another model"],
        ),
        (
            "models:\n  a/b: {cmd: \"llama-server -m ${env.DIR}/x.gguf -ngl all -ctk f16 --reasoning-budget 0\"}\n",
            &[
                "model = \"${env.DIR}/x.gguf\"",
                "[alias.\"a/b\"]\nto = [\"x\"]\nreasoning_effort = \"none\"",
            ],
            &["cmd: changed: hob reads no variables", "[model.NAME] has no key for -ctk"],
        ),
        (
            "macros: {a: \"-m ${b}\", b: x.gguf}\nmodels: {m: {cmd: \"llama-server ${a} ${c} -c big --temp=0.7\"}}\n",
            &["model = \"x.gguf\"", "temperature = 0.7"],
            &["[model.NAME] has no key for -c"],
        ),
        (
            "models:\n  a: {cmd: llama-server -m e.gguf --embedding}\n  b: {cmd: llama-server -hf org/name}\n\
             \x20 c: {cmd: podman run llama -m e.gguf}\n  d: {cmd: \"llama-server -m '\"}\n",
            &[],
            &[
                "models.a: dropped: it is not a chat model",
                "models.b: dropped: its cmd is not llama-server",
                "models.c: dropped: its model is inside a container",
                "models.d: dropped: its cmd has a quote",
            ],
        ),
        (
            "models: {m: {cmd: vllm serve}}\nselectors:\n  s: {strategy: pin, targets: [m]}\n\
             \x20 t: {strategy: pin, targets: [p/q, q]}\n  u: {strategy: spillover, targets: [q]}\n\
             peers:\n  p: {proxy: \"http://p/api\", models: [q, q2], apiKey: \"abc\"}\n\
             \x20 r: {proxy: \"tailcat://x\", models: [z]}\n",
            &[
                "[upstream.p]\nkind = \"openai\"\nurl = \"http://p/api\"\nkey = \"env:HOB_KEY_P\"",
                "[alias.t]\nto = [\"q\"]\n",
                "[alias.u]\nto = [\"q\"]\nstrategy = \"least-wait\"",
            ],
            &[
                "selectors.s: dropped: none of its targets",
                "peers.r: dropped: proxy is not an address",
            ],
        ),
    ]);
}

#[test]
fn an_invalid_file_is_rejected_with_its_line() {
    let macros = "macros: {a: \"${b}${b}${b}${b}\", b: \"${c}${c}${c}${c}\", c: \"${d}${d}${d}${d}\", \
                  d: \"${e}${e}${e}${e}\", e: \"${f}${f}${f}${f}\", f: \"${a}x\"}\n";
    let bomb = format!("{macros}models: {{m: {{cmd: \"${{a}}\"}}}}\n");
    let (list, uses) = ("x".repeat(1_000), ["\"${a}\""; 1_100].join(", "));
    let lists = format!("macros: {{a: [{list}]}}\nmodels: {{m: {{cmd: x, aliases: [{uses}]}}}}\n");
    let mut aliases = "model_list: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let inner = vec![format!("*a{}", level - 1); 10].join(", ");
        aliases.push_str(&format!("a{level}: &a{level} [{inner}]\n"));
    }
    let rows = [
        ("model_list:\n  - a: [1, 2\n", "c.yaml:2:8: unclosed bracket '['"),
        ("model_list:\n  - a: [1\n  - b: 2\n", "c.yaml:3:6: illegal placement of ':'"),
        ("model_list: []\nmodel_list: []\n", "c.yaml:2:1: duplicate mapping key: model_list"),
        ("model_list:\n\t- a: sk-secret\n", "c.yaml:2:2: tabs disallowed within this context"),
        ("a: 1\n---\nb: 2\n", "c.yaml:3:1: multiple YAML documents detected"),
        (&aliases, "c.yaml:5:45: the file is too large for a configuration"),
        (&bomb, "c.yaml: the macros of models.m expand to more than 1048576 bytes"),
        (&lists, "c.yaml: the macros of models.m expand to more than 1048576 bytes"),
        ("a: 1\nb: 2\n", "(expected models with a cmd, or peers); it has a, b"),
        ("", "it has no keys"),
        ("models: [gpt-4o]\n", "it has models"),
    ];
    for (text, expected) in rows {
        let error = import(text, "c.yaml").expect_err(expected).to_string();
        assert!(error.contains(expected), "{text}\ngave {error}");
        assert!(!error.contains("sk-secret"), "{error}");
    }
    let long = "#".repeat(BYTES_MAX + 1);
    let error = import(&long, "c.yaml").expect_err("too large").to_string();
    assert_eq!(error, "c.yaml has more than 4194304 bytes, which is too large for a configuration");
}

#[test]
fn a_note_is_json_too() {
    let Imported { notes, .. } = import("litellm_settings: {x: 1}", "c").expect("a file");
    let json = serde_json::to_string(&notes).expect("JSON");
    assert_eq!(
        json,
        r#"[{"path":"litellm_settings.x","fate":"dropped","text":"hob has no such setting"}]"#
    );
}
