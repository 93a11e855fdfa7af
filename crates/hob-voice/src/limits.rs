//! Every limit of a session, with its reason.
//! Limits on the wire, such as the size of one event, are the driver's.

use std::time::Duration;

/// Items of one conversation. Beyond this a client gets an error, and the session deletes its oldest item.
pub(crate) const ITEMS_MAX: usize = 1_000;
/// Text of one conversation with its instructions.
pub(crate) const TEXT_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Addresses of the pictures of one conversation. A `data:` address is the picture itself.
pub(crate) const PICTURE_BYTES_MAX: usize = 64 * 1024 * 1024;
pub(crate) const TOOLS_MAX: usize = 128;
/// Sound that is not committed.
pub(crate) const TURN_SOUND_MAX: Duration = Duration::from_secs(600);
/// Committed turns that wait for their transcripts.
pub(crate) const TRANSCRIPTS_MAX: usize = 8;
/// Responses outside the conversation that run at the same time.
pub(crate) const OUT_OF_BAND_MAX: usize = 4;
/// A turn that sounds complete waits for its text, and for the chat model to judge it, until a silence this long. A
/// transcriber that keeps up with the sound needs less than half of it.
pub(crate) const TEXT_SILENCE_MAX: Duration = Duration::from_secs(1);
/// Bytes of an answer that is held back until the turn ends: about 14,000 tokens.
pub(crate) const HELD_BYTES_MAX: usize = 512 * 1024;
/// Sound that is kept before speech, whatever the settings ask for.
pub(crate) const PREFIX_MAX: Duration = Duration::from_secs(5);
/// Sound that the turn model hears.
pub(crate) const JUDGED_SOUND_MAX: Duration = Duration::from_secs(8);
/// How long a client may take to say what was heard of an interrupted answer.
pub(crate) const TRUNCATE_WAIT: Duration = Duration::from_secs(2);
/// An interrupted answer goes on only if it is known within this time that a noise interrupted it: the noise, the
/// silence after it and its transcript count.
pub(crate) const RESUME_WAIT_MAX: Duration = Duration::from_secs(10);
/// A turn ends when no sound at all arrives for this long.
pub(crate) const MICROPHONE_WAIT: Duration = Duration::from_secs(2);
/// How long a room echoes after the last sample.
pub(crate) const ECHO_TAIL: Duration = Duration::from_millis(300);
/// A session longer than this is closed.
pub(crate) const SESSION_MAX: Duration = Duration::from_secs(24 * 3600);
