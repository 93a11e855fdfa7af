//! Encodes names of models as names of folders: reversible, and safe against paths that leave the store.
//! Letters, digits, dash, underscore and dot stay; every other byte becomes `%` and two hex digits.

/// Most file systems allow 255 bytes per name.
const FOLDER_BYTES_MAX: usize = 240;

/// Whether a model can be stored under this name.
pub(crate) fn is_plain(name: &str) -> bool {
    let is_shown = |c: char| c.is_ascii_graphic();
    let is_short = folder(name).len() <= FOLDER_BYTES_MAX;
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_shown) && is_short
}

pub(super) fn folder(name: &str) -> String {
    let mut folder = String::new();
    for byte in name.bytes() {
        match byte {
            b'-' | b'_' | b'.' => folder.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => folder.push(char::from(byte)),
            _ => folder.push_str(&format!("%{byte:02X}")),
        }
    }
    folder
}

/// `None` if no model can have a folder of that name.
pub(super) fn name(folder: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = folder.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let (byte, behind) = match first {
            b'%' => {
                let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
                (u8::from_str_radix(digits, 16).ok()?, &behind[2..])
            }
            other => (*other, behind),
        };
        bytes.push(byte);
        rest = behind;
    }
    let name = String::from_utf8(bytes).ok()?;
    (self::folder(&name) == folder && is_plain(&name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_with_slashes_and_colons_have_folders_of_their_own() {
        let rows = [
            ("smollm2", "smollm2"),
            ("qwen3:8b", "qwen3%3A8b"),
            ("owner/name:Q4_K_M", "owner%2Fname%3AQ4_K_M"),
            ("100%", "100%25"),
        ];
        for (name, expected) in rows {
            assert_eq!(folder(name), expected);
            assert_eq!(super::name(expected).as_deref(), Some(name));
        }
        for stray in ["qwen3%3a8b", "a%2", "a%zz", "a:b"] {
            assert_eq!(super::name(stray), None, "{stray}");
        }
        let long = "a/".repeat(100);
        for bad in ["", ".", "../x", "a b", "a\nb", "ä", &long] {
            assert!(!is_plain(bad), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_name_comes_back(name in "[!-~]{1,60}") {
            prop_assume!(is_plain(&name));
            let folder = folder(&name);
            prop_assert!(!folder.contains('/') && !folder.starts_with('.'));
            prop_assert_eq!(super::name(&folder), Some(name));
        }
    }
}
