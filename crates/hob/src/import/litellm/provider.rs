//! What stands before the slash in LiteLLM's `model`: whose protocol is spoken, and where.
//! A prefix that hob does not know is OpenAI's protocol if an address is given, for that is what most
//! of LiteLLM's providers speak.

use crate::import::draft::UpstreamKind;

/// A model as hob asks for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    pub(super) kind: UpstreamKind,
    /// What the upstream is called, if nothing else is called that.
    pub(super) name: Name,
    /// Where it is when nobody says.
    pub(super) url: Option<&'static str>,
    /// The variable in which LiteLLM looks for a key when none is written.
    pub(super) key: Option<&'static str>,
    pub(super) model: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Name {
    Word(String),
    /// After the server: the protocol says nothing about whose it is.
    OfHost,
}

/// A prefix of LiteLLM's, its protocol, its address and the variable of its key.
struct Provider(&'static str, UpstreamKind, Option<&'static str>, Option<&'static str>);

const PROVIDERS: [Provider; 9] = [
    Provider(
        "openai",
        UpstreamKind::OpenAi,
        Some("https://api.openai.com"),
        Some("OPENAI_API_KEY"),
    ),
    Provider("openrouter", UpstreamKind::OpenRouter, None, Some("OPENROUTER_API_KEY")),
    Provider("anthropic", UpstreamKind::Anthropic, None, Some("ANTHROPIC_API_KEY")),
    Provider("ollama", UpstreamKind::Ollama, Some("http://127.0.0.1:11434"), None),
    Provider("ollama_chat", UpstreamKind::Ollama, Some("http://127.0.0.1:11434"), None),
    Provider("hosted_vllm", UpstreamKind::Vllm, None, None),
    Provider("vllm", UpstreamKind::Vllm, None, None),
    Provider("lm_studio", UpstreamKind::OpenAi, Some("http://127.0.0.1:1234"), None),
    Provider("custom_openai", UpstreamKind::OpenAi, None, None),
];

/// Prefixes whose servers speak a protocol of their own, whatever their address is.
const FOREIGN: [(&str, &str); 8] = [
    ("azure", "Azure's deployments are none of OpenAI's addresses; its /openai/v1 is one"),
    ("azure_ai", "Azure's deployments are none of OpenAI's addresses; its /openai/v1 is one"),
    ("bedrock", "hob does not speak Bedrock's protocol"),
    ("vertex_ai", "hob does not speak Vertex's protocol"),
    ("gemini", "hob does not speak Gemini's protocol; its /v1beta/openai is OpenAI's"),
    ("sagemaker", "hob does not speak SageMaker's protocol"),
    ("cohere", "hob does not speak Cohere's protocol"),
    ("huggingface", "hob does not speak this protocol"),
];

/// # Errors
/// Why this model has no upstream.
pub(super) fn resolve(
    model: &str,
    custom: Option<&str>,
    has_address: bool,
) -> Result<Resolved, String> {
    let (prefix, name) = split(model, custom);
    let Some(prefix) = prefix else {
        return match has_address {
            true => Ok(unknown(Name::OfHost, name)),
            false => Err(format!("'{name}' does not say whose model it is, and no address does")),
        };
    };
    if let Some((_, why)) = FOREIGN.iter().find(|(foreign, _)| *foreign == prefix) {
        return Err((*why).to_owned());
    }
    match PROVIDERS.iter().find(|provider| provider.0 == prefix) {
        Some(provider) if has_address || provider.is_found() => {
            Ok(provider.resolved(name, has_address))
        }
        None if has_address => Ok(unknown(Name::Word(prefix.to_owned()), name)),
        _ => Err(format!(
            "hob has no address for '{prefix}/'; if it speaks OpenAI's protocol, add an \
             [upstream.{prefix}] with kind = \"openai\" and its url"
        )),
    }
}

impl Provider {
    /// Without an address: hob knows those of the two that are one company's.
    fn is_found(&self) -> bool {
        let is_known = matches!(self.1, UpstreamKind::OpenRouter | UpstreamKind::Anthropic);
        is_known || self.2.is_some()
    }

    fn resolved(&self, model: &str, has_address: bool) -> Resolved {
        let Provider(prefix, kind, url, key) = *self;
        let says_nothing = matches!(prefix, "openai" | "custom_openai") && has_address;
        let word = match kind {
            UpstreamKind::OpenAi => prefix.replace('_', "-"),
            kind => kind.name().to_owned(),
        };
        Resolved {
            kind,
            name: if says_nothing { Name::OfHost } else { Name::Word(word) },
            url: url.filter(|_| !has_address),
            key: key.filter(|_| !has_address),
            model: model.to_owned(),
        }
    }
}

fn unknown(name: Name, model: &str) -> Resolved {
    let kind = UpstreamKind::OpenAi;
    Resolved { kind, name, url: None, key: None, model: model.to_owned() }
}

/// Whose model it is, if anything says so, and its name there.
fn split<'a>(model: &'a str, custom: Option<&'a str>) -> (Option<&'a str>, &'a str) {
    if let Some(custom) = custom {
        let rest = model.strip_prefix(custom).and_then(|rest| rest.strip_prefix('/'));
        return (Some(custom), rest.unwrap_or(model));
    }
    if let Some((prefix, name)) = model.split_once('/') {
        return (Some(prefix), name);
    }
    let begins = |starts: &[&str]| starts.iter().any(|start| model.starts_with(start));
    if begins(&["gpt-", "chatgpt-", "o1", "o3", "o4", "text-embedding-"]) {
        (Some("openai"), model)
    } else if begins(&["claude-"]) {
        (Some("anthropic"), model)
    } else {
        (None, model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_says_whose_model_it_is() {
        use UpstreamKind::{Anthropic, Ollama, OpenAi, OpenRouter, Vllm};
        let rows = [
            ("gpt-4o", None, false, OpenAi, "openai", "gpt-4o"),
            ("claude-opus-4-5", None, false, Anthropic, "anthropic", "claude-opus-4-5"),
            ("openrouter/qwen/qwen3", None, false, OpenRouter, "openrouter", "qwen/qwen3"),
            ("ollama_chat/qwen3:4b", None, false, Ollama, "ollama", "qwen3:4b"),
            ("hosted_vllm/q", None, true, Vllm, "vllm", "q"),
            ("lm_studio/q", None, false, OpenAi, "lm-studio", "q"),
            ("openai/q", None, true, OpenAi, "(host)", "q"),
            ("groq/llama", None, true, OpenAi, "groq", "llama"),
            ("qwen/qwen3", Some("openai"), true, OpenAi, "(host)", "qwen/qwen3"),
            ("my-model", None, true, OpenAi, "(host)", "my-model"),
        ];
        for (text, custom, has_address, kind, name, model) in rows {
            let resolved = resolve(text, custom, has_address).expect(text);
            assert_eq!((resolved.kind, resolved.model.as_str()), (kind, model), "{text}");
            let expected = match name {
                "(host)" => Name::OfHost,
                name => Name::Word(name.to_owned()),
            };
            assert_eq!(resolved.name, expected, "{text}");
        }
    }

    #[test]
    fn what_has_no_upstream_says_why() {
        let rows = [
            ("groq/llama", false, "[upstream.groq]"),
            ("vllm/q", false, "[upstream.vllm]"),
            ("azure/gpt-4o", true, "/openai/v1"),
            ("my-model", false, "whose model"),
        ];
        for (text, has_address, why) in rows {
            let refusal = resolve(text, None, has_address).expect_err(text);
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
    }
}
