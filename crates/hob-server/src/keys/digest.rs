//! The SHA-256 of a key; hob does not store the key. Keys are long and random, not words that people
//! choose, so a fast hash without salt is as safe as a slow one.

use std::fmt;
use std::sync::LazyLock;

use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// The SHA-256 of a key. It is never printed: a reader of the log could put it into a configuration.
#[derive(Clone, Copy)]
pub struct KeyDigest([u8; 32]);

/// The key that every installation of Pipelines has by default.
const DEFAULT_KEY: &[u8] = b"0p3n-w3bu!";

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API key is empty; set one, or none at all")]
pub struct EmptyKey;

/// Why a text is not the digest of a key. The text is not repeated: it may be the key itself, in the wrong
/// place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotADigest {
    #[error("a key's SHA-256 is 64 hexadecimal digits, as `printf %s KEY | sha256sum` prints them")]
    NotHex,
    #[error("this is the SHA-256 of nothing; the key was empty when it was computed")]
    OfNothing,
}

impl KeyDigest {
    /// The digest of a key as its holder sends it, without surrounding blanks.
    ///
    /// # Errors
    /// The key is empty: a setting that should contain a key does not.
    pub fn of(key: &str) -> Result<KeyDigest, EmptyKey> {
        let key = key.trim();
        if key.is_empty() { Err(EmptyKey) } else { Ok(KeyDigest::of_bytes(key.as_bytes())) }
    }

    /// Parses a digest in hexadecimal.
    ///
    /// # Errors
    /// [`NotADigest`]
    pub fn from_hex(text: &str) -> Result<KeyDigest, NotADigest> {
        let digits = text.trim().as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return Err(NotADigest::NotHex);
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        let digest = KeyDigest(bytes);
        let of_nothing = digest.is(&KeyDigest::of_bytes(b""));
        if of_nothing.into() { Err(NotADigest::OfNothing) } else { Ok(digest) }
    }

    /// Whether this is the public key of Pipelines. It takes the same time for every key.
    pub(crate) fn is_default(&self) -> bool {
        static DEFAULT: LazyLock<KeyDigest> = LazyLock::new(|| KeyDigest::of_bytes(DEFAULT_KEY));
        self.is(&DEFAULT).into()
    }

    pub(crate) fn of_bytes(key: &[u8]) -> KeyDigest {
        KeyDigest(Sha256::digest(key).into())
    }

    /// Takes the same time wherever the digests differ.
    pub(crate) fn is(&self, other: &KeyDigest) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(…)")
    }
}

fn nibble(digit: u8) -> Result<u8, NotADigest> {
    let value = char::from(digit).to_digit(16).ok_or(NotADigest::NotHex)?;
    u8::try_from(value).map_err(|_| NotADigest::NotHex)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf %s abc | sha256sum`, which is also the first example of FIPS 180.
    const OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_is_computed_or_written() {
        let of_abc = KeyDigest::of(" abc\n").expect("a key");
        for text in [OF_ABC.to_owned(), OF_ABC.to_uppercase(), format!("{OF_ABC}\n")] {
            assert!(bool::from(of_abc.is(&KeyDigest::from_hex(&text).expect("a digest"))));
        }
        let another = format!("{}e", &OF_ABC[..63]);
        assert!(!bool::from(of_abc.is(&KeyDigest::from_hex(&another).expect("a digest"))));
    }

    #[test]
    fn an_invalid_digest_is_rejected_without_repeating_it() {
        assert_eq!(KeyDigest::of(" \n").expect_err("blank"), EmptyKey);
        for text in ["", "abc", "hob-secret", &OF_ABC[..62], &OF_ABC.replace('b', "g")] {
            assert_eq!(KeyDigest::from_hex(text).expect_err(text), NotADigest::NotHex);
        }
        let of_two_byte_letters = "ä".repeat(32);
        assert!(KeyDigest::from_hex(&of_two_byte_letters).is_err());
        assert_eq!(KeyDigest::from_hex(OF_NOTHING).expect_err("empty"), NotADigest::OfNothing);
    }
}
