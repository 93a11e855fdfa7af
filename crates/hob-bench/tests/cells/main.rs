//! Kinds of measurement against a scripted server of which the truth is known: what they find, and what they keep.

mod compare;
mod llm;
mod many;
mod speech;
mod stage;
mod sweep;
mod transcription;
