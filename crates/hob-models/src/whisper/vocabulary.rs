//! Byte-level BPE vocabularies as `vocabulary.txt`: one token a line, each byte written as one printable character.
//! ggml files hold the bytes themselves.

use super::{MULTILINGUAL_TOKENS, WhisperError};

const END_OF_TEXT: &str = "<|endoftext|>";

/// The tokens that a ggml file lists, as bytes. Special tokens follow from their numbers; only the first special
/// token of English models is listed, as in the published files.
pub(super) fn tokens(text: &str, vocab: u32) -> Result<Vec<Vec<u8>>, WhisperError> {
    let lines: Vec<&str> = text.split_terminator('\n').collect();
    if lines.len() as u64 != u64::from(vocab) {
        return Err(WhisperError::Vocabulary { found: lines.len() as u64, expected: vocab });
    }
    let end =
        lines.iter().position(|line| *line == END_OF_TEXT).ok_or(WhisperError::NoEndOfText)?;
    let bytes = byte_of_character();
    let token = |(index, line): (usize, &&str)| {
        let byte = |c: char| bytes.get(c as usize).copied().flatten();
        line.chars()
            .map(byte)
            .collect::<Option<Vec<u8>>>()
            .ok_or(WhisperError::Token { line: index + 1 })
    };
    let mut tokens = lines[..end].iter().enumerate().map(token).collect::<Result<Vec<_>, _>>()?;
    if vocab < MULTILINGUAL_TOKENS {
        tokens.push(END_OF_TEXT.as_bytes().to_vec());
    }
    Ok(tokens)
}

/// The byte for each character. Printable bytes stand for themselves; the others follow from U+0100 in order.
fn byte_of_character() -> Vec<Option<u8>> {
    let is_printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let mut table = vec![None; 0x100];
    for byte in 0..=u8::MAX {
        match is_printable(byte) {
            true => table[usize::from(byte)] = Some(byte),
            false => table.push(Some(byte)),
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str, vocab: u32) -> Result<Vec<Vec<u8>>, WhisperError> {
        tokens(text, vocab)
    }

    #[test]
    fn characters_become_the_bytes_that_they_stand_for() {
        let text = "a\nĠb\nåľº\nĊ\n\n<|endoftext|>\n<|en|>\n";
        let expect: Vec<Vec<u8>> =
            [&b"a"[..], b" b", "场".as_bytes(), b"\n", b"", END_OF_TEXT.as_bytes()]
                .map(<[u8]>::to_vec)
                .to_vec();
        assert_eq!(listed(text, 7), Ok(expect));
    }

    #[test]
    fn a_vocabulary_of_another_model_is_refused() {
        let rows = [
            ("a\n", 3, WhisperError::Vocabulary { found: 1, expected: 3 }),
            ("a\nb\n", 2, WhisperError::NoEndOfText),
            ("a\n▁b\n<|endoftext|>", 3, WhisperError::Token { line: 2 }),
            ("", 1, WhisperError::Vocabulary { found: 0, expected: 1 }),
        ];
        for (text, vocab, expected) in rows {
            assert_eq!(listed(text, vocab), Err(expected), "{text}");
        }
    }
}
