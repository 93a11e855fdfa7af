//! Calls as they come from servers, which number them in every way there is, to calls as clients want
//! them: numbered 0, 1, 2 as they appear, each with an id, a name once and arguments that are joined.

use std::hash::{BuildHasher, Hasher, RandomState};

use hob_core::ChatEvent;

/// Calls in one answer.
const CALLS_MAX: usize = 128;

/// What one piece says of a call; empty texts say nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallPiece<'a> {
    /// A hint: some servers leave it out, count from 1, or say 0 of every call.
    pub(crate) index: Option<u32>,
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a str,
}

impl CallPiece<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.id.is_empty() && self.name.is_empty() && self.arguments.is_empty()
    }
}

#[derive(Debug, Default)]
pub(crate) struct CallReader {
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    index: Option<u32>,
    id: String,
    /// The id was made here, because the server's was missing or another call's.
    is_id_made: bool,
    name: String,
    /// The call was sent to the client, because its name is complete.
    is_sent: bool,
    has_arguments: bool,
}

impl CallReader {
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(crate) fn push(&mut self, piece: CallPiece<'_>, said: &mut Vec<ChatEvent>) {
        if let Some(place) = self.place(piece).or_else(|| self.begin(piece, said)) {
            self.add(place, piece, said);
        }
    }

    /// Adds a call that came in one piece. It is always a new call, even if its index or id was used before.
    pub(crate) fn push_whole(&mut self, piece: CallPiece<'_>, said: &mut Vec<ChatEvent>) {
        if let Some(place) = self.begin(piece, said) {
            self.add(place, piece, said);
        }
    }

    /// The answer is complete. A call without arguments has none to give, which is an object too.
    pub(crate) fn end(&mut self, said: &mut Vec<ChatEvent>) {
        for (place, call) in self.calls.iter_mut().enumerate() {
            call.send(place, said);
            if !call.has_arguments {
                call.has_arguments = true;
                let (index, piece) = (place as u32, "{}".to_owned());
                said.push(ChatEvent::ToolArguments { index, piece });
            }
        }
    }

    /// The call that a piece belongs to; none begins a new one.
    fn place(&self, piece: CallPiece<'_>) -> Option<usize> {
        let last = self.calls.len().checked_sub(1)?;
        let numbered = piece
            .index
            .and_then(|index| self.calls.iter().rposition(|call| call.index == Some(index)));
        if let Some(known) = self.calls.iter().position(|call| call.id == piece.id) {
            return self.place_of_known(known, numbered, piece);
        }
        // Older vLLM gives every piece an id of its own: one with arguments only begins nothing.
        if !piece.id.is_empty() && (!piece.name.is_empty() || piece.arguments.is_empty()) {
            return None;
        }
        let begins_by_number = numbered.is_none() && self.are_numbered() && piece.index.is_some();
        if begins_by_number && !(piece.name.is_empty() && piece.id.is_empty()) {
            return None;
        }
        let place = numbered.unwrap_or(last);
        let begins = !piece.name.is_empty() && self.calls[place].has_arguments;
        let is_repeated = piece.name == self.calls[place].name && piece.arguments.is_empty();
        (!begins || is_repeated).then_some(place)
    }

    /// The place of a piece with the id of a call. Some models give several calls one id: their numbers tell them apart.
    fn place_of_known(
        &self,
        known: usize,
        numbered: Option<usize>,
        piece: CallPiece<'_>,
    ) -> Option<usize> {
        let has_its_number = self.calls[known].index == piece.index;
        if has_its_number || piece.index.is_none() || !self.are_numbered() {
            return Some(known);
        }
        match numbered {
            Some(place) if self.calls[place].is_id_made => Some(place),
            None if !piece.name.is_empty() => None,
            _ => Some(known),
        }
    }

    /// Whether each call has a number of its server. Then a number that no call has belongs to a new one.
    fn are_numbered(&self) -> bool {
        self.calls.iter().all(|call| call.index.is_some())
    }

    /// None: there are too many calls already.
    fn begin(&mut self, piece: CallPiece<'_>, said: &mut Vec<ChatEvent>) -> Option<usize> {
        if self.calls.len() >= CALLS_MAX {
            return None;
        }
        self.send_last(said);
        let is_taken = self.calls.iter().any(|call| call.id == piece.id);
        let id = if is_taken { "" } else { piece.id };
        self.calls.push(Call::new(CallPiece { id, ..piece }));
        Some(self.calls.len() - 1)
    }

    fn add(&mut self, place: usize, piece: CallPiece<'_>, said: &mut Vec<ChatEvent>) {
        let Some(call) = self.calls.get_mut(place) else { return };
        call.rename(piece.name);
        if !piece.arguments.is_empty() {
            call.send(place, said);
            call.has_arguments = true;
            let (index, piece) = (place as u32, piece.arguments.to_owned());
            said.push(ChatEvent::ToolArguments { index, piece });
        }
    }

    fn send_last(&mut self, said: &mut Vec<ChatEvent>) {
        if let Some(place) = self.calls.len().checked_sub(1) {
            self.calls[place].send(place, said);
        }
    }
}

impl Call {
    fn new(piece: CallPiece<'_>) -> Call {
        let is_id_made = piece.id.is_empty();
        let id = if is_id_made { new_id() } else { piece.id.to_owned() };
        let (index, name) = (piece.index, String::new());
        Call { index, id, is_id_made, name, is_sent: false, has_arguments: false }
    }

    /// A name may come in parts, or again and again.
    fn rename(&mut self, name: &str) {
        if !self.is_sent && name != self.name {
            self.name += name;
        }
    }

    fn send(&mut self, place: usize, said: &mut Vec<ChatEvent>) {
        if !self.is_sent {
            self.is_sent = true;
            let (id, name) = (self.id.clone(), self.name.clone());
            said.push(ChatEvent::ToolCall { index: place as u32, id, name });
        }
    }
}

/// `call_` and 24 characters that no other call has.
fn new_id() -> String {
    // The standard library's hasher is seeded at random: 128 bits of it are as good as any.
    let random = || RandomState::new().build_hasher().finish();
    let id = format!("{:016x}{:016x}", random(), random());
    format!("call_{}", &id[..24])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Index, id, name, arguments.
    type Row = (Option<u32>, &'static str, &'static str, &'static str);

    fn read(rows: &[Row]) -> Vec<(String, String, String)> {
        let (mut reader, mut said) = (CallReader::default(), Vec::new());
        for &(index, id, name, arguments) in rows {
            reader.push(CallPiece { index, id, name, arguments }, &mut said);
        }
        reader.end(&mut said);
        let mut calls: Vec<(String, String, String)> = Vec::new();
        for event in said {
            match event {
                ChatEvent::ToolCall { index, id, name } => {
                    assert_eq!(index as usize, calls.len(), "numbered as they appear");
                    calls.push((id, name, String::new()));
                }
                ChatEvent::ToolArguments { index, piece } => calls[index as usize].2 += &piece,
                other => panic!("{other:?}"),
            }
        }
        calls
    }

    fn calls(expected: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
        let owned = |text: &str| text.to_owned();
        expected.iter().map(|(id, name, args)| (owned(id), owned(name), owned(args))).collect()
    }

    #[test]
    fn calls_are_told_apart_however_they_are_numbered() {
        let two = calls(&[("a", "add", "{\"x\":1}"), ("b", "mul", "{}")]);
        let as_openai: [Row; 4] = [
            (Some(0), "a", "add", ""),
            (Some(0), "", "", "{\"x\""),
            (Some(0), "", "", ":1}"),
            (Some(1), "b", "mul", "{}"),
        ];
        assert_eq!(read(&as_openai), two);
        assert_eq!(
            read(&as_openai.map(|(index, id, name, args)| (index.map(|i| i + 1), id, name, args))),
            two
        );
        assert_eq!(read(&as_openai.map(|(_, id, name, args)| (None, id, name, args))), two);
        assert_eq!(read(&as_openai.map(|(_, id, name, args)| (Some(0), id, name, args))), two);
    }

    #[test]
    fn interleaved_arguments_find_their_call() {
        let rows = [
            (Some(0), "a", "add", ""),
            (Some(1), "b", "mul", ""),
            (Some(0), "", "", "{1"),
            (Some(1), "", "", "{2"),
            (Some(0), "", "", "}"),
            (Some(1), "", "", "}"),
        ];
        assert_eq!(read(&rows), calls(&[("a", "add", "{1}"), ("b", "mul", "{2}")]));
    }

    #[test]
    fn names_come_in_parts_or_again() {
        let rows =
            [(Some(0), "a", "get_", ""), (Some(0), "", "weather", ""), (Some(0), "", "", "{}")];
        assert_eq!(read(&rows), calls(&[("a", "get_weather", "{}")]));
        let rows =
            [(Some(0), "a", "add", ""), (Some(0), "a", "add", "{"), (Some(0), "a", "add", "}")];
        assert_eq!(read(&rows), calls(&[("a", "add", "{}")]));
    }

    #[test]
    fn a_call_without_id_or_arguments_gets_them() {
        let made = read(&[(None, "", "add", ""), (None, "", "", "{}"), (None, "", "mul", "")]);
        assert_eq!(made.len(), 2);
        assert!(made[0].0 != made[1].0 && made[0].0.len() == 29, "{made:?}");
        assert_eq!(
            (made[0].1.as_str(), made[1].1.as_str(), made[1].2.as_str()),
            ("add", "mul", "{}")
        );
    }

    #[test]
    fn a_number_without_an_id_begins_a_call() {
        let rows = [
            (Some(0), "", "add", ""),
            (Some(1), "", "mul", ""),
            (Some(0), "", "", "{1}"),
            (Some(1), "", "", "{2}"),
        ];
        let made = read(&rows);
        let said: Vec<_> =
            made.iter().map(|(_, name, args)| (name.as_str(), args.as_str())).collect();
        assert_eq!(said, [("add", "{1}"), ("mul", "{2}")]);
    }

    #[test]
    fn an_id_on_every_piece_begins_nothing() {
        for index in [Some(0), None] {
            let rows = [(index, "a", "add", ""), (index, "b", "", "{"), (index, "c", "", "}")];
            assert_eq!(read(&rows), calls(&[("a", "add", "{}")]));
        }
        let rows =
            [(Some(0), "a", "add", "{}"), (Some(1), "b", "", ""), (Some(1), "", "mul", "{}")];
        assert_eq!(read(&rows), calls(&[("a", "add", "{}"), ("b", "mul", "{}")]));
    }

    #[test]
    fn calls_with_one_id_are_told_apart_by_their_numbers() {
        for id in ["a", ""] {
            let rows = [
                (Some(0), "a", "add", "{1"),
                (Some(0), id, "", "}"),
                (Some(1), "a", "add", "{2"),
                (Some(1), id, "", "}"),
            ];
            let made = read(&rows);
            let said: Vec<_> =
                made.iter().map(|(_, name, args)| (name.as_str(), args.as_str())).collect();
            assert_eq!(said, [("add", "{1}"), ("add", "{2}")]);
            assert!(made[0].0 == "a" && made[1].0 != "a", "{made:?}");
        }
    }

    #[test]
    fn whole_calls_are_as_many_as_came() {
        let (mut reader, mut said) = (CallReader::default(), Vec::new());
        for id in ["a", "a", "", ""] {
            let piece = CallPiece { index: Some(0), id, name: "add", arguments: "" };
            reader.push_whole(piece, &mut said);
        }
        reader.end(&mut said);
        let ids: Vec<&String> = said
            .iter()
            .filter_map(|event| match event {
                ChatEvent::ToolCall { id, .. } => Some(id),
                _ => None,
            })
            .collect();
        assert!(ids.len() == 4 && ids[0] == "a" && ids[1] != "a" && ids[2] != ids[3], "{ids:?}");
        assert_eq!(said.len(), 8, "each has its arguments");
    }

    #[test]
    fn an_answer_of_endless_calls_is_held_to_a_limit() {
        let ids: Vec<String> = (0..1000).map(|id| id.to_string()).collect();
        let (mut reader, mut said) = (CallReader::default(), Vec::new());
        for id in &ids {
            reader.push(CallPiece { id, name: "f", arguments: "{}", index: None }, &mut said);
        }
        assert_eq!(reader.calls.len(), CALLS_MAX);
    }
}
