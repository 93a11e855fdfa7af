//! Conversations that the model's chat template could not render in its memory. hob refuses such a conversation when it
//! comes again, because each such rendering keeps its memory until the worker ends.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use hob_core::chat::{Conversation, Thinking};
use hob_core::locked;

use crate::chat::template::TemplateError;

/// Maximum conversations that are remembered. The oldest is forgotten first.
const CONVERSATIONS_MAX: usize = 64;

/// Hashes of the conversations, and how each failed.
#[derive(Debug, Default)]
pub(super) struct HeavyConversations(Mutex<VecDeque<(u64, TemplateError)>>);

impl HeavyConversations {
    /// How the same conversation failed before.
    pub(super) fn known(
        &self,
        conversation: &Conversation,
        thinking: &Thinking,
    ) -> Option<TemplateError> {
        let known = locked(&self.0);
        if known.is_empty() {
            return None;
        }
        let asked = hash(conversation, thinking)?;
        known.iter().find(|(hash, _)| *hash == asked).map(|(_, error)| error.clone())
    }

    /// Remembers the conversation if it needed too much memory.
    pub(super) fn remember(
        &self,
        (conversation, thinking): (&Conversation, &Thinking),
        error: &TemplateError,
    ) {
        if !matches!(error, TemplateError::TooMuchMemory { .. }) {
            return;
        }
        let Some(hash) = hash(conversation, thinking) else { return };
        let mut known = locked(&self.0);
        known.push_back((hash, error.clone()));
        if known.len() > CONVERSATIONS_MAX {
            known.pop_front();
        }
    }
}

fn hash(conversation: &Conversation, thinking: &Thinking) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    postcard::to_allocvec(&(conversation, thinking)).ok()?.hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use hob_core::chat::{Message, Role};

    use super::*;

    #[test]
    fn the_last_64_conversations_that_needed_too_much_memory_are_known() {
        let heavy = HeavyConversations::default();
        let said = |number: usize| {
            let messages = vec![Message::new(Role::User, number.to_string())];
            Conversation { messages, ..Conversation::default() }
        };
        let thinking = Thinking::default();
        let (large, long) = (
            TemplateError::TooMuchMemory { mib: 512 },
            TemplateError::TooManySteps { steps_max: 1 },
        );
        heavy.remember((&said(0), &thinking), &long);
        assert_eq!(heavy.known(&said(0), &thinking), None, "it ends nothing");
        (0..=64).for_each(|number| heavy.remember((&said(number), &thinking), &large));
        assert_eq!(heavy.known(&said(0), &thinking), None, "it is forgotten");
        for number in [1, 64] {
            assert_eq!(heavy.known(&said(number), &thinking), Some(large.clone()), "{number}");
        }
        assert_eq!(heavy.known(&said(65), &thinking), None);
    }
}
