//! Random logits, with a habit for each answer: a model that likes certain tokens.

use fastrand::Rng;

use crate::chat::tokens::TokenTable;

/// Which tokens a model likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habit {
    /// All tokens alike.
    None,
    /// What closes strings, lists and objects.
    Closing,
    /// What begins further values.
    Opening,
    Digits,
    Escapes,
    Spaces,
    /// Parts of characters.
    Bytes,
    /// The end of the answer.
    Ending,
    /// The same tokens all the time.
    Repeating,
}

const HABITS: [Habit; 9] = [
    Habit::None,
    Habit::Closing,
    Habit::Opening,
    Habit::Digits,
    Habit::Escapes,
    Habit::Spaces,
    Habit::Bytes,
    Habit::Ending,
    Habit::Repeating,
];

impl Habit {
    pub(super) fn any(random: &mut Rng) -> Habit {
        HABITS[random.usize(..HABITS.len())]
    }

    fn likes(self, bytes: &[u8], ends: bool) -> bool {
        let all = |allowed: &[u8]| !bytes.is_empty() && bytes.iter().all(|b| allowed.contains(b));
        match self {
            Habit::None | Habit::Repeating => false,
            Habit::Closing => all(b"\"}],\n <>/"),
            Habit::Opening => all(b"{[\",: "),
            Habit::Digits => all(b"0123456789.-eE+"),
            Habit::Escapes => bytes.first() == Some(&b'\\') || all(b"0123456789abcdefu"),
            Habit::Spaces => all(b" \t\n\r"),
            Habit::Bytes => str::from_utf8(bytes).is_err(),
            Habit::Ending => ends,
        }
    }
}

pub(super) struct RandomModel {
    tokens: TokenTable,
    noise: Vec<f32>,
    logits: Vec<f32>,
    random: Rng,
    habit: Habit,
    liked: Vec<usize>,
    /// How often it follows its habit.
    share: f32,
    /// The text that begins calls.
    opening: &'static str,
    /// What the answer begins with, before anything random.
    wish: Vec<u8>,
}

impl RandomModel {
    pub(super) fn new(tokens: TokenTable, opening: &'static str, seed: u64) -> RandomModel {
        let mut random = Rng::with_seed(seed);
        let noise = (0..tokens.count() * 4).map(|_| random.f32()).collect();
        let logits = vec![0.0; tokens.count()];
        let (habit, liked, share, wish) = (Habit::None, Vec::new(), 0.0, Vec::new());
        RandomModel { tokens, noise, logits, random, habit, liked, share, opening, wish }
    }

    /// Begins another answer: with a call, if it `must_open` one.
    pub(super) fn begin(&mut self, habit: Habit, must_open: bool) {
        self.habit = habit;
        let all = self.tokens.all().iter().enumerate();
        let liked = all.filter(|(_, token)| habit.likes(&token.bytes, token.ends));
        self.liked = liked.map(|(id, _)| id).collect();
        self.share = self.random.f32();
        let opening = if self.opening.is_empty() { "{\"name\"" } else { self.opening };
        self.wish = if must_open { opening.as_bytes().to_vec() } else { Vec::new() };
        self.make_noise();
    }

    pub(super) fn logits(&mut self) -> &[f32] {
        if self.habit != Habit::Repeating || !self.wish.is_empty() {
            self.make_noise();
        }
        if self.random.f32() < self.share {
            for &id in &self.liked {
                self.logits[id] += 1.0;
            }
        }
        if !self.wish.is_empty() {
            let all = self.tokens.all().iter().zip(&mut self.logits);
            for (token, logit) in all.filter(|(token, _)| self.wish.starts_with(&token.bytes)) {
                // The longest is the likeliest, so that marks are said as tokens.
                *logit += 100.0 * token.bytes.len() as f32;
            }
        }
        &self.logits
    }

    /// Takes note of what the answer became.
    pub(super) fn said(&mut self, tokens: &[u32]) {
        for token in tokens {
            let bytes = self.tokens.bytes(*token);
            self.wish = self.wish.strip_prefix(bytes).unwrap_or_default().to_vec();
        }
    }

    fn make_noise(&mut self) {
        let from = self.random.usize(..self.noise.len() - self.logits.len());
        let noise = &self.noise[from..from + self.logits.len()];
        self.logits.copy_from_slice(noise);
    }
}
