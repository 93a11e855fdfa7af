//! What Anthropic's models take, by their names: each generation refuses some of what the last one took.
//! Source: platform.claude.com, "Troubleshooting thinking", "Thinking: limits and feature compatibility",
//! "Effort" and the guides for migrating to each model, as they stood in October 2026.

/// What a model takes and what it answers with status 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModelTraits {
    pub(super) thinking: ThinkingForm,
    /// The model thinks where a request says nothing about it.
    pub(super) thinks_unasked: bool,
    pub(super) off: ThinkingOff,
    pub(super) samplers: Samplers,
    /// Accepts the effort between high and the highest.
    pub(super) takes_xhigh: bool,
    /// Accepts that some tool, or a certain one, must be called.
    pub(super) takes_forced_calls: bool,
    /// Accepts a schema for the answer.
    pub(super) takes_schemas: bool,
    /// Accepts a conversation that ends with the beginning of the answer.
    pub(super) takes_partials: bool,
    /// Sends the arguments of a call while it writes them, if a tool asks for that. Otherwise each argument comes whole.
    pub(super) streams_arguments: bool,
    /// Keeps the beginning of a prompt for the next request, if a request asks for that.
    pub(super) caches_prompts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThinkingForm {
    /// A number of tokens, fixed beforehand.
    Budget,
    /// The model decides, led by an effort.
    Adaptive,
}

/// How a request switches thinking off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThinkingOff {
    Disabled,
    /// Short notes between calls remain.
    BetweenTools,
    /// It cannot be switched off. The lowest effort comes nearest.
    Never,
}

/// Which of temperature, top-p and top-k a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Samplers {
    All,
    /// Temperature or top-p, not both.
    Either,
    Fixed,
}

impl ModelTraits {
    /// Claude of an unknown version is taken for a new one: those are the ones that hob does not know.
    pub(super) fn of(model: &str) -> ModelTraits {
        let name = model.to_ascii_lowercase();
        let Some((_, name)) = name.split_once("claude") else { return ModelTraits::of_others() };
        let version = version(name);
        let since = |first: (u32, u32)| version.is_none_or(|version| version >= first);
        let surely = |first: (u32, u32)| version.is_some_and(|version| version >= first);
        let is = |family: &str| name.contains(family);
        let is_largest = is("fable") || is("mythos");
        ModelTraits {
            thinking: if since((4, 6)) { ThinkingForm::Adaptive } else { ThinkingForm::Budget },
            thinks_unasked: since((5, 0)),
            off: if is_largest || is("opus") && since((5, 5)) {
                ThinkingOff::Never
            } else if is("sonnet") && since((5, 5)) {
                ThinkingOff::BetweenTools
            } else {
                ThinkingOff::Disabled
            },
            samplers: if since((4, 7)) { Samplers::Fixed } else { Samplers::Either },
            takes_xhigh: surely((4, 7)),
            takes_forced_calls: !(is_largest && surely((5, 1))
                || (is("opus") || is("sonnet")) && surely((5, 5))),
            takes_schemas: since((4, 1)),
            takes_partials: !since((4, 6)),
            streams_arguments: since((4, 5)),
            caches_prompts: since((4, 5)),
        }
    }

    /// Other makers' models behind the same API: they follow it as it was, and leave out what was added.
    fn of_others() -> ModelTraits {
        ModelTraits {
            thinking: ThinkingForm::Budget,
            thinks_unasked: false,
            off: ThinkingOff::Disabled,
            samplers: Samplers::All,
            takes_xhigh: false,
            takes_forced_calls: true,
            takes_schemas: false,
            takes_partials: true,
            streams_arguments: false,
            caches_prompts: false,
        }
    }
}

/// `-opus-4-7`, `-3-7-sonnet-20250219`, `-haiku-4.5`: the first short numbers; long ones are dates.
fn version(name: &str) -> Option<(u32, u32)> {
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    let mut numbers = parts.filter(|part| part.len() <= 2).filter_map(|part| part.parse().ok());
    let major = numbers.next()?;
    Some((major, numbers.next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_before_or_behind_the_family() {
        for (name, expected) in [
            ("claude-opus-4-7", Some((4, 7))),
            ("claude-3-7-sonnet-20250219", Some((3, 7))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-haiku-4-5@20251001", Some((4, 5))),
            ("claude-haiku-4.5", Some((4, 5))),
            ("eu-2.anthropic.claude-opus-4-6-v1:0", Some((4, 6))),
            ("claude-opus-5", Some((5, 0))),
            ("claude-mythos-preview", None),
        ] {
            let name = name.split_once("claude").expect("claude").1;
            assert_eq!(version(name), expected, "{name}");
        }
    }

    /// Form of thinking, unasked, how to turn it off, samplers, xhigh, forced calls, schemas.
    type Row = (ThinkingForm, bool, ThinkingOff, Samplers, bool, bool, bool);

    fn row(model: &str) -> Row {
        let of = ModelTraits::of(model);
        (
            of.thinking,
            of.thinks_unasked,
            of.off,
            of.samplers,
            of.takes_xhigh,
            of.takes_forced_calls,
            of.takes_schemas,
        )
    }

    #[test]
    fn each_generation_takes_what_its_guide_says() {
        use Samplers::{All, Either, Fixed};
        use ThinkingForm::{Adaptive, Budget};
        use ThinkingOff::{BetweenTools, Disabled, Never};
        for (models, expected) in [
            (&["deepseek-chat", "glm-5"][..], (Budget, false, Disabled, All, false, true, false)),
            (
                &["claude-3-7-sonnet-20250219", "claude-opus-4-20250514"],
                (Budget, false, Disabled, Either, false, true, false),
            ),
            (
                &["claude-opus-4-1", "claude-sonnet-4-5-20250929", "Claude-Haiku-4.5"],
                (Budget, false, Disabled, Either, false, true, true),
            ),
            (
                &["claude-opus-4-6", "claude-sonnet-4-6"],
                (Adaptive, false, Disabled, Either, false, true, true),
            ),
            (
                &["claude-opus-4-7", "claude-opus-4-8"],
                (Adaptive, false, Disabled, Fixed, true, true, true),
            ),
            (
                &["claude-opus-5", "claude-sonnet-5", "claude-haiku-5-5"],
                (Adaptive, true, Disabled, Fixed, true, true, true),
            ),
            (&["claude-fable-5"], (Adaptive, true, Never, Fixed, true, true, true)),
            (
                &["claude-fable-5-1", "claude-mythos-5-1", "claude-opus-5-5"],
                (Adaptive, true, Never, Fixed, true, false, true),
            ),
            (&["claude-sonnet-5-5"], (Adaptive, true, BetweenTools, Fixed, true, false, true)),
            (&["claude-mythos-preview"], (Adaptive, true, Never, Fixed, false, true, true)),
        ] {
            for model in models {
                assert_eq!(row(model), expected, "{model}");
            }
        }
    }
}
