//! Names of tools as models see them: `SERVER__TOOL`, in the characters and the length that chat APIs allow.
//! A server's own name of a tool may have any characters.

use sha2::{Digest, Sha256};

/// Longest name that OpenAI's API takes.
const NAME_BYTES_MAX: usize = 64;
const DIGEST_CHARS: usize = 8;

pub(super) fn for_models(server: &str, tool: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let plain: String = tool.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    let mut name = format!("{server}__{plain}");
    if name.len() > NAME_BYTES_MAX {
        let digest = Sha256::digest(tool);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        name.truncate(NAME_BYTES_MAX - 1 - DIGEST_CHARS);
        name += &format!("_{}", &digest[..DIGEST_CHARS]);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_form_that_apis_take() {
        for (server, tool, expected) in [
            ("docs", "search", "docs__search"),
            ("my-docs", "pages.find/all", "my-docs__pages_find_all"),
            ("docs", "größe", "docs__gr__e"),
        ] {
            assert_eq!(for_models(server, tool), expected);
        }
        let long = |end: &str| for_models("docs", &format!("{}{end}", "a".repeat(100)));
        assert_eq!(long("x").len(), NAME_BYTES_MAX);
        assert_ne!(long("x"), long("y"));
    }
}
