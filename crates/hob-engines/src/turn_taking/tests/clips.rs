//! Labelled sentences for turn taking. `|` marks a pause after which the speaker goes on.
//! Each kind is said by several voices, with pauses of different lengths.

/// What a person does in a clip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Statement,
    Question,
    /// Stops within a sentence.
    Pause,
    /// Says "uhm" before the pause.
    Hesitation,
    /// Stops after each thing.
    List,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] =
        [Kind::Statement, Kind::Question, Kind::Pause, Kind::Hesitation, Kind::List];

    pub(super) fn has_pauses(self) -> bool {
        matches!(self, Kind::Pause | Kind::Hesitation | Kind::List)
    }
}

pub(super) const VOICES: [&str; 4] = ["af_heart", "am_michael", "bf_emma", "am_puck"];
pub(super) const PAUSES_S: [f32; 3] = [0.4, 0.7, 1.2];

pub(super) const CLIPS: [(Kind, &str); 22] = [
    (Kind::Statement, "Turn on the light in the kitchen."),
    (Kind::Statement, "My train was late again this morning."),
    (Kind::Statement, "The blue one is better."),
    (Kind::Statement, "Yes, that is right."),
    (Kind::Question, "What is the weather like tomorrow?"),
    (Kind::Question, "Can you tell me a short story?"),
    (Kind::Question, "Is the door locked?"),
    (Kind::Question, "Could you say that again, please?"),
    (Kind::Pause, "I would like to book a table for |two people tomorrow evening."),
    (Kind::Pause, "The reason why I am calling is |that my order has not arrived."),
    (Kind::Pause, "Play the song that |we heard at the party."),
    (Kind::Pause, "My telephone number is five five five |one two three four."),
    (Kind::Pause, "Before we start, |I have a question about the price."),
    (Kind::Pause, "What is the difference between |a crocodile and an alligator?"),
    (Kind::Hesitation, "Can you tell me, uhm, |how far it is to the station?"),
    (Kind::Hesitation, "The name of the film was, um, |something with a river."),
    (Kind::Hesitation, "Please book, uh, |three tickets for the show."),
    (Kind::Hesitation, "We could, uhm, |meet at the old bridge."),
    (Kind::List, "I need eggs, |milk, |butter, |and bread."),
    (Kind::List, "First open the window, |then close the door, |and then turn on the fan."),
    (Kind::List, "The colours are red, |green, |yellow, |and blue."),
    (Kind::List, "I play tennis, |football, |and chess."),
];
