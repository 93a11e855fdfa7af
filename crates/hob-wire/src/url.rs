//! Names in URLs.
//! Names of models and aliases may contain any character.

/// A name as part of a path or a query. Encodes all bytes but ASCII letters, digits and `-._~/:` as `%` and two hex
/// digits.
pub fn percent_encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte);
    let encoded =
        |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_characters_of_a_name_stay() {
        let rows = [
            ("qwen3:8b/a b", "qwen3:8b/a%20b"),
            ("fast?x=1#2", "fast%3Fx%3D1%232"),
            ("100%", "100%25"),
            ("ä", "%C3%A4"),
        ];
        for (name, expected) in rows {
            assert_eq!(percent_encoded(name), expected);
        }
    }
}
