//! Follows a text that an answer copies, also over words that the answer changes, adds or leaves out. So guesses go on right
//! after such a word, before as many tokens are equal as a search needs.

/// Tokens of the text that an answer may leave out.
const LEFT_OUT_MAX: usize = 8;
/// Tokens of the answer without one of the text, until the trail is lost.
const STRAYED_MAX: usize = 8;
/// After so many such tokens, the answer has probably replaced one token of the text.
const REPLACED_MAX: usize = 2;

/// A place in the text, and how far the answer is from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trail {
    /// The next token of the text, as an index into prompt and answer. Where the answer has left the text, the token that it
    /// did not take.
    next: usize,
    /// Tokens of the answer since it left the text.
    strayed: usize,
}

impl Trail {
    pub(super) fn at(next: usize) -> Trail {
        Trail { next, strayed: 0 }
    }

    /// The trail after the answer has said `token`. `before` is the prompt and the answer until then. `None` if it is lost.
    pub(super) fn after(self, before: &[u32], token: u32) -> Option<Trail> {
        if self.is_in_step() && before.get(self.next) == Some(&token) {
            return Some(Trail::at(self.next + 1));
        }
        let mut ahead = before.iter().enumerate().skip(self.next).take(LEFT_OUT_MAX);
        if let Some((place, _)) = ahead.find(|&(_, &ahead)| ahead == token) {
            return Some(Trail::at(place + 1));
        }
        let strayed = self.strayed + 1;
        (strayed <= STRAYED_MAX).then_some(Trail { strayed, ..self })
    }

    /// Whether the last token was one of the text.
    pub(super) fn is_in_step(self) -> bool {
        self.strayed == 0
    }

    /// The token of the text that probably comes next, if one does.
    pub(super) fn next(self) -> Option<usize> {
        match self.strayed {
            0 => Some(self.next),
            1..=REPLACED_MAX => Some(self.next + 1),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: [u32; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

    /// What is expected next after an answer that begins at the text's third token.
    fn next_after(answer: &[u32]) -> Option<usize> {
        let mut trail = Some(Trail::at(2));
        for &token in answer {
            trail = trail.and_then(|trail| trail.after(&TEXT, token));
        }
        trail.and_then(Trail::next)
    }

    #[test]
    fn a_copy_is_followed_over_words_that_are_changed() {
        for (answer, next) in [
            (vec![], Some(2)),
            (vec![3, 4], Some(4)),
            // Another token instead of 4, and probably 5 after it.
            (vec![3, 90], Some(4)),
            (vec![3, 90, 5], Some(5)),
            (vec![3, 90, 91], Some(4)),
            (vec![3, 90, 91, 5], Some(5)),
            // Tokens before 4.
            (vec![3, 90, 91, 92], None),
            (vec![3, 90, 91, 92, 4], Some(4)),
            // Without 4 and 5.
            (vec![3, 6], Some(6)),
            (vec![3, 90, 7], Some(7)),
        ] {
            assert_eq!(next_after(&answer), next, "{answer:?}");
        }
    }

    #[test]
    fn a_text_that_does_not_come_back_is_lost() {
        let strays = [90; STRAYED_MAX + 1];
        assert_eq!(next_after(&[&strays[..STRAYED_MAX], &[3]].concat()), Some(3));
        assert_eq!(next_after(&[&strays[..], &[3]].concat()), None);
        assert_eq!(next_after(&[12]), Some(3), "a token so far away is no sign of it");
    }
}
