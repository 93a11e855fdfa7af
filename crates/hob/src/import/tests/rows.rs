//! In rows, what a whole file has no room for.

use super::*;

/// A file, what its `hob.toml` has in it, and what its notes do.
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
fn litellm_s_routing_is_hob_s() {
    check(&[
        (
            "model_list:\n- {model_name: a, litellm_params: {model: gpt-4o}}\n\
             - {model_name: a, litellm_params: {model: gpt-5}}\n",
            &["to = [\"openai/gpt-4o\", \"openai/gpt-5\"]", "key = \"env:OPENAI_API_KEY\""],
            &["model_list[1].model_name: changed: LiteLLM spreads"],
        ),
        (
            "model_list:\n- {model_name: a, litellm_params: {model: gpt-4o}}\n\
             - {model_name: a, litellm_params: {model: gpt-5}}\n\
             router_settings: {routing_strategy: least-busy, default_fallbacks: [b]}",
            &["pick = \"least-wait\"\n"],
            &["default_fallbacks[0]: dropped: no model_name"],
        ),
        (
            "model_list:\n- {model_name: a, litellm_params: {model: gpt-4o, weight: 0.9}}\n\
             - {model_name: a, litellm_params: {model: gpt-5, weight: 0.1}}\n\
             - {model_name: a, litellm_params: {model: gpt-6, weight: 0, timeout: 7}}\n\
             - {model_name: b, litellm_params: {model: gpt-7}}\n\
             litellm_settings: {default_fallbacks: [b]}\n",
            &[
                "[alias.a-pool]\nto = [{ target = \"openai/gpt-4o\", weight = 9 }, \
                 { target = \"openai/gpt-5\", weight = 1 }]\npick = \"weighted\"\n",
                "[alias.a]\nto = [\"a-pool\", \"openai/gpt-6\", \"b\"]\ntotal = \"7s\"",
            ],
            &["timeout: changed: hob has one for the whole alias, so it holds"],
        ),
        (
            "model_list:\n- {model_name: a, litellm_params: {model: gpt-4o, rpm: 6}}\n\
             - {model_name: a, litellm_params: {model: gpt-5, rpm: 12}}\n",
            &["weight = 1 }, { target = \"openai/gpt-5\", weight = 2 }"],
            &["model_list[1].litellm_params.rpm: changed: it weighs"],
        ),
        (
            "model_list:\n- {model_name: a, litellm_params: {model: gpt-4o}}\n\
             - {model_name: b, litellm_params: {model: gpt-5}}\n\
             litellm_settings: {fallbacks: [{a: [b]}, {b: [c]}], model_group_alias: {c: a, d: e}}",
            &["[alias.a]\nto = [\"openai/gpt-4o\", \"b\"]", "[alias.c]\nto = [\"a\"]"],
            &["'c' leads back to 'b'", "model_group_alias.d: dropped: no model_name"],
        ),
        (
            "model_list:\n- {model_name: a, litellm_params: {model: gpt-4o, timeout: 5}}\n\
             - {model_name: a, litellm_params: {model: gpt-5, reasoning_effort: low}}\n\
             router_settings: {timeout: 9.5, fallbacks: [{\"*\": [b]}]}\n",
            &["total = \"10s\"", "effort = \"low\""],
            &[
                "model_list[0].litellm_params.timeout: changed: hob has one for the whole alias",
                "reasoning_effort: changed: hob has one for the whole alias, so it holds",
                "router_settings.timeout: changed: rounded up to 10 s",
                "fallbacks[0].\"*\"[0]: dropped: no model_name",
            ],
        ),
    ]);
}

#[test]
fn litellm_s_odd_corners_are_said() {
    check(&[
        (
            "model_list:\n- {model_name: openai/x, litellm_params: {model: openai/x}}\n",
            &["[upstream.openai-server]", "[alias.\"openai/x\"]\nto = [\"openai-server/x\"]"],
            &[],
        ),
        (
            "model_list:\n- {model_name: a, litellm_params: {model: openai/x, api_base: os.environ/GPU_BOX}}\n",
            &["url = \"http://gpu-box.invalid\"", "to = [\"gpu-box/x\"]"],
            &["api_base: changed: hob reads no address from the environment"],
        ),
        (
            "model_list:\n- {model_name: a, litellm_params: {model: x}}\n- {model_name: b}\n- 7\n\
             - {model_name: c, litellm_params: {model: openai/x, api_base: \"gpu:80\"}}\n",
            &["listen"],
            &[
                "model_list[0]: dropped: 'x' does not say whose",
                "model_list[1]: dropped: a deployment has",
                "model_list[2]: dropped: a deployment has",
                "model_list[3]: dropped: its address is none",
            ],
        ),
        (
            "model_list:\n- model_name: a\n  litellm_params:\n    model: gpt-4o\n    temperature: ~\n\
             \x20   timeout: soon\n    stream_timeout: 0\n    num_retries: -1\n    user: [a, ~]\n\
             \x20   extra_body: {api_key: abc, x: 1, model: y}\n    reasoning_effort: hard\n",
            &["set = { x = 1 }"],
            &[
                "timeout: dropped: a text stands where a number was expected",
                "stream_timeout: dropped: there it means no limit",
                "num_retries: dropped: a number stands where a whole number",
                "user: dropped: it is empty, or something in it is",
                "extra_body.api_key: dropped: it looks like a key",
                "extra_body.model: dropped: the target says",
                "reasoning_effort: dropped: effort is none, minimal",
            ],
        ),
        (
            "router_settings: often\ngeneral_settings: {master_key: none, a: {b: 1, c: 2}}\n\"x.y\": 1",
            &["[server]"],
            &[
                "router_settings: dropped: a text stands where more was expected",
                "master_key: dropped: it is no key",
                "general_settings.a: dropped: hob has nothing like it",
                "\"x.y\": dropped: hob has nothing like it",
            ],
        ),
    ]);
}

#[test]
fn llama_swap_s_odd_corners_are_said() {
    check(&[
        (
            "models:\n  a: {cmd: llama-server -m x.gguf, filters: {strip_params: \"top_k, model\"}}\n",
            &["drop = [\"top_k\"]"],
            &[],
        ),
        (
            "models:\n  same: {cmd: llama-server -m same.gguf -c 8192, ttl: 0, filters: {setParams: {a: 1}}}\n",
            &["keep_alive = \"forever\"", "context_tokens = 8192\nparallel = 1\n"],
            &["cmd: changed: parallel = 1, so that", "cmd: changed: hob calls the model by"],
        ),
        (
            "models:\n  a: {cmd: \"llama-server -m ${env.DIR}/x.gguf -ngl all -ctk f16 --reasoning-budget 0\"}\n",
            &[
                "model = \"${env.DIR}/x.gguf\"",
                "to = [\"x\"]\neffort = \"none\"",
                "\"first_request\"",
            ],
            &["cmd: changed: hob reads no variables", "[chat] has nothing like -ctk"],
        ),
        (
            "macros: {a: \"-m ${b}\", b: x.gguf}\nmodels: {m: {cmd: \"llama-server ${a} ${c} -c big\"}}\n",
            &["model = \"x.gguf\""],
            &["[chat] has nothing like -c"],
        ),
        (
            "models: {m: {cmd: vllm serve}}\nselectors:\n  s: {strategy: pin, targets: [m]}\n\
             \x20 t: {strategy: pin, targets: [p/q, q]}\n  u: {strategy: spillover, targets: [q]}\n\
             peers:\n  p: {proxy: \"http://p/api\", models: [q, q2], apiKey: \"abc\"}\n\
             \x20 r: {proxy: \"tailcat://x\", models: [z]}\n",
            &[
                "[upstream.p]\nkind = \"openai\"\nurl = \"http://p/api\"\nkey = \"env:HOB_KEY_P\"",
                "[alias.t]\nto = [\"p/q\"]\n",
                "[alias.u]\nto = [\"q\"]\npick = \"least-wait\"",
            ],
            &[
                "selectors.s: dropped: none of its targets",
                "selectors.t.targets[1]: dropped: a pin asks the first only",
                "peers.r: dropped: its address is none",
            ],
        ),
    ]);
}

#[test]
fn what_cannot_be_read_is_refused_with_its_line() {
    let macros = "macros: {a: \"${b}${b}${b}${b}\", b: \"${c}${c}${c}${c}\", c: \"${d}${d}${d}${d}\", \
                  d: \"${e}${e}${e}${e}\", e: \"${f}${f}${f}${f}\", f: \"${a}x\"}\n";
    let bomb = format!("{macros}models: {{m: {{cmd: \"${{a}}\"}}}}\n");
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
        (&aliases, "c.yaml:5:45: there is more in it than a configuration has"),
        (&bomb, "c.yaml: the macros in models.m expand without an end"),
        ("a: 1\nb: 2\n", "at the top) nor llama-swap's (models with a cmd, or peers); it has a, b"),
        ("", "it has no keys at the top"),
        ("models: [gpt-4o]\n", "it has models"),
    ];
    for (text, expected) in rows {
        let said = import(text, "c.yaml").expect_err(expected).to_string();
        assert!(said.contains(expected), "{text}\ngave {said}");
        assert!(!said.contains("sk-secret"), "{said}");
    }
    let long = "#".repeat(BYTES_MAX + 1);
    let said = import(&long, "c.yaml").expect_err("too large").to_string();
    assert_eq!(said, "c.yaml has more than 4194304 bytes, and a configuration has not");
}

#[test]
fn a_note_is_json_too() {
    let Imported { notes, .. } = import("litellm_settings: {x: 1}", "c").expect("a file");
    let json = serde_json::to_string(&notes).expect("JSON");
    insta::assert_snapshot!(json, @r#"[{"path":"litellm_settings.x","fate":"dropped","text":"hob has nothing like it"}]"#);
}
