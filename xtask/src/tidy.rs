//! What no compiler checks, checked: each rule is a function from the tree to its complaints.
//! A rule that cannot be shown failing on a bad example is not a rule; each has such a test.

mod arrows;
mod circles;
mod claims;
mod headers;
mod links;
mod lints;
mod places;
mod plain;
mod sizes;
mod unique;

use crate::tree::Tree;

/// Every complaint of every rule: one line each, with the place first and then what to do.
pub(crate) fn complaints(tree: &Tree) -> Vec<String> {
    [
        arrows::complaints(tree),
        circles::complaints(&tree.files),
        claims::broken(&tree.files),
        headers::missing_headers(&tree.files),
        links::dead(&tree.files),
        lints::inherited(&tree.files),
        lints::lifted(&tree.files),
        places::complaints(&tree.files),
        plain::complaints(&tree.files),
        sizes::too_long(&tree.files),
        unique::shared_types(&tree.files),
        unique::empty_names(&tree.files),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_tree_is_tidy() {
        let tree = Tree::read().expect("a git checkout and cargo");
        let complaints = complaints(&tree);
        assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
    }

    #[test]
    fn all_rules_are_asked() {
        let bad = Tree {
            crates: vec![serde_json::from_str(
                r#"{"name": "hob-core", "dependencies": [{"name": "hob-server"}, {"name": "tokio"}]}"#,
            )
            .expect("a crate")],
            files: vec![
                crate::tree::File::new("crates/x/src/a.rs", &"fn a() {}\n".repeat(601)),
                crate::tree::File::new("crates/x/Cargo.toml", "[package]\n"),
                crate::tree::File::new("a.md", "[gone](gone.md)"),
                crate::tree::File::new("b.rs", concat!("//! B.\n//! #![allow(unsafe", "_code)]\n")),
                crate::tree::File::new("c.sh", concat!("cd /ro", "ot/x")),
                crate::tree::File::new("attic/d.md", concat!("No", "body is here.")),
                crate::tree::File::new("crates/y/src/a.rs", "//! A.\n//! B.\nuse crate::b::B;\n"),
                crate::tree::File::new("crates/y/src/b.rs", "//! B.\n//! A.\nuse crate::a::A;\n"),
            ],
        };
        assert_eq!(complaints(&bad).len(), 10, "{:#?}", complaints(&bad));
    }
}
