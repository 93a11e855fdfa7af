//! Reads one call character by character: the name, then the arguments as they arrive.
//! Accepts what a grammar of the dialect allows, members in any order, and white space between JSON tokens.

use std::mem;

use serde::de::IgnoredAny;

use super::{ArgumentDelivery, CallForm, ToolsOffered};
use crate::chat::json_context::JsonContext;

/// Maximum bytes of a function name. OpenAI's API allows 64 characters.
const NAME_BYTES_MAX: usize = 256;

/// Effect of one more character on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallFeedResult {
    More,
    /// The name is one of the offered tools, and arguments follow.
    Begun,
    /// This character was the call's last.
    Complete,
}

/// The text is not a call of an offered tool; the character that showed it was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotACall;

#[derive(Debug)]
pub(super) struct CallReader {
    form: CallForm,
    offered: ToolsOffered,
    at: At,
    /// The envelope so far, to be checked when it is complete.
    envelope: String,
    key: String,
    /// The value so far. In the form without an envelope, it holds the name first.
    value: String,
    name: Option<String>,
    arguments: Option<String>,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Unannounced,
    /// Arguments are returned as they arrive.
    Streaming,
    /// All arguments were returned; the end of the envelope has not arrived yet.
    Streamed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    /// Within the name, in the form without an envelope.
    BareName,
    FirstKey,
    Key,
    InKey {
        escaped: bool,
    },
    Colon,
    Value,
    /// In a string, a list or an object.
    InValue(JsonContext),
    InScalar,
    Comma,
}

impl CallReader {
    pub(super) fn new(form: CallForm, offered: ToolsOffered) -> CallReader {
        CallReader {
            form,
            offered,
            at: At::Start,
            envelope: String::new(),
            key: String::new(),
            value: String::new(),
            name: None,
            arguments: None,
            progress: Progress::Unannounced,
        }
    }

    pub(super) fn feed(&mut self, c: char) -> Result<CallFeedResult, NotACall> {
        let fed = self.step(c)?;
        if self.progress == Progress::Unannounced {
            self.envelope.push(c);
        }
        match fed {
            CallFeedResult::Complete if self.progress == Progress::Unannounced => {
                self.check_envelope().map(|()| fed)
            }
            _ => Ok(fed),
        }
    }

    /// Whether [`CallFeedResult::Begun`] was returned.
    pub(super) fn is_announced(&self) -> bool {
        self.progress != Progress::Unannounced
    }

    /// Whether arguments that arrive now belong to the stream.
    pub(super) fn is_streaming(&self) -> bool {
        self.progress == Progress::Streaming
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The arguments that arrived since the last call.
    pub(super) fn take_arguments(&mut self) -> String {
        match self.progress {
            Progress::Streaming => mem::take(&mut self.value),
            _ => self.arguments.take().unwrap_or_default(),
        }
    }

    fn step(&mut self, c: char) -> Result<CallFeedResult, NotACall> {
        match self.at {
            At::Start | At::FirstKey | At::Key | At::Colon | At::Value | At::Comma
                if c.is_ascii_whitespace() =>
            {
                Ok(CallFeedResult::More)
            }
            At::Start => self.start(c),
            At::BareName => self.bare_name(c),
            At::FirstKey if c == '}' => self.end_of_envelope(),
            At::FirstKey | At::Key => self.expect(c, '"', At::InKey { escaped: false }),
            At::InKey { escaped } => Ok(self.in_key(c, escaped)),
            At::Colon => self.expect(c, ':', At::Value),
            At::Value => self.begin_value(c),
            At::InValue(context) => self.in_value(c, context),
            At::InScalar => self.in_scalar(c),
            At::Comma if c == '}' => self.end_of_envelope(),
            At::Comma => self.expect(c, ',', At::Key),
        }
    }

    fn expect(&mut self, c: char, wanted: char, then: At) -> Result<CallFeedResult, NotACall> {
        if c != wanted {
            return Err(NotACall);
        }
        self.at = then;
        Ok(CallFeedResult::More)
    }

    fn start(&mut self, c: char) -> Result<CallFeedResult, NotACall> {
        match self.form {
            CallForm::Object { .. } => self.expect(c, '{', At::FirstKey),
            CallForm::Named { .. } => {
                self.at = At::BareName;
                self.bare_name(c)
            }
        }
    }

    fn bare_name(&mut self, c: char) -> Result<CallFeedResult, NotACall> {
        let CallForm::Named { separator } = self.form else { return Err(NotACall) };
        self.value.push(c);
        if let Some(name) = self.value.strip_suffix(separator) {
            let name = name.to_owned();
            self.settle_name(name)?;
            self.value.clear();
            self.key = "arguments".to_owned();
            self.at = At::Value;
            return Ok(CallFeedResult::More);
        }
        self.check_bare_name(separator)?;
        Ok(CallFeedResult::More)
    }

    /// Fails as soon as the text is not the beginning of an offered name, so that plain text is not held back for long.
    fn check_bare_name(&self, separator: &str) -> Result<(), NotACall> {
        let begins = |name: &String| {
            name.starts_with(&self.value)
                || self.value.strip_prefix(name.as_str()).is_some_and(|b| separator.starts_with(b))
        };
        if self.offered.names.iter().any(begins) { Ok(()) } else { Err(NotACall) }
    }

    fn in_key(&mut self, c: char, escaped: bool) -> CallFeedResult {
        match c {
            '"' if !escaped => self.at = At::Colon,
            _ => {
                self.key.push(c);
                self.at = At::InKey { escaped: c == '\\' && !escaped };
            }
        }
        CallFeedResult::More
    }

    fn begin_value(&mut self, c: char) -> Result<CallFeedResult, NotACall> {
        self.at = match c {
            '"' | '{' | '[' => At::InValue(JsonContext::default().after(&[c as u8])),
            '-' | '0'..='9' | 't' | 'f' | 'n' => At::InScalar,
            _ => return Err(NotACall),
        };
        self.value.push(c);
        let streams = self.offered.delivery == ArgumentDelivery::Streamed
            && self.progress == Progress::Unannounced
            && self.name.is_some()
            && is_arguments(&self.key)
            && c == '{';
        if !streams {
            return Ok(CallFeedResult::More);
        }
        self.progress = Progress::Streaming;
        Ok(CallFeedResult::Begun)
    }

    fn in_scalar(&mut self, c: char) -> Result<CallFeedResult, NotACall> {
        if c == ',' || c == '}' || c.is_ascii_whitespace() {
            self.end_of_value()?;
            return self.step(c);
        }
        self.value.push(c);
        Ok(CallFeedResult::More)
    }

    fn in_value(&mut self, c: char, context: JsonContext) -> Result<CallFeedResult, NotACall> {
        self.value.push(c);
        let context = context.after(c.encode_utf8(&mut [0; 4]).as_bytes());
        if context.depth == 0 && context.is_outside() {
            return self.end_of_value();
        }
        if context.depth == 0 && self.key == "name" && self.value.len() > NAME_BYTES_MAX {
            return Err(NotACall);
        }
        self.at = At::InValue(context);
        Ok(CallFeedResult::More)
    }

    /// If several members have one name, the first counts. The others are ignored: as parts of the envelope they must be JSON,
    /// except in a call whose arguments are streamed, where the envelope is not checked.
    fn end_of_value(&mut self) -> Result<CallFeedResult, NotACall> {
        self.at = At::Comma;
        if self.is_streaming() {
            self.arguments = Some(mem::take(&mut self.value));
            self.progress = Progress::Streamed;
            self.key.clear();
            return Ok(self.after_arguments());
        }
        let key = mem::take(&mut self.key);
        let value = mem::take(&mut self.value);
        if key == "name" && self.name.is_none() {
            self.settle_name(serde_json::from_str(&value).map_err(|_| NotACall)?)?;
        } else if is_arguments(&key) && self.arguments.is_none() && !self.is_announced() {
            self.arguments = Some(object_text(&value)?);
            return Ok(self.after_arguments());
        }
        Ok(CallFeedResult::More)
    }

    fn after_arguments(&self) -> CallFeedResult {
        match self.form {
            CallForm::Object { .. } => CallFeedResult::More,
            CallForm::Named { .. } => CallFeedResult::Complete,
        }
    }

    fn end_of_envelope(&mut self) -> Result<CallFeedResult, NotACall> {
        if self.name.is_none() {
            return Err(NotACall);
        }
        if !self.is_announced() && self.arguments.is_none() {
            self.arguments = Some("{}".to_owned());
        }
        Ok(CallFeedResult::Complete)
    }

    fn settle_name(&mut self, name: String) -> Result<(), NotACall> {
        if !self.offered.names.contains(&name) {
            return Err(NotACall);
        }
        self.name = Some(name);
        Ok(())
    }

    fn check_envelope(&self) -> Result<(), NotACall> {
        match self.form {
            CallForm::Object { .. } => is_json(&self.envelope),
            CallForm::Named { .. } => is_json(self.arguments.as_deref().unwrap_or_default()),
        }
    }
}

/// Models confuse the two keys, so every dialect accepts both.
fn is_arguments(key: &str) -> bool {
    matches!(key, "arguments" | "parameters")
}

/// An object, or a string that contains one.
fn object_text(value: &str) -> Result<String, NotACall> {
    let text = match value.starts_with('"') {
        true => serde_json::from_str(value).map_err(|_| NotACall)?,
        false => value.to_owned(),
    };
    if !text.trim_start().starts_with('{') {
        return Err(NotACall);
    }
    is_json(&text).map(|()| text)
}

fn is_json(text: &str) -> Result<(), NotACall> {
    serde_json::from_str::<IgnoredAny>(text).map(|_| ()).map_err(|_| NotACall)
}
