//! Links between our own pages lead somewhere.
//! Links to other hosts are not followed: a check that needs a network fails for other reasons.

use std::collections::BTreeSet;

use crate::tree::File;

pub(crate) fn dead(files: &[File]) -> Vec<String> {
    let known = places(files);
    let mut complaints = Vec::new();
    for page in files.iter().filter(|file| file.is_markdown()) {
        for target in targets(&page.text) {
            if resolve(&page.path, target).is_none_or(|place| !known.contains(&place)) {
                complaints.push(format!("{}: links to {target}, which is not there", page.path));
            }
        }
    }
    complaints
}

/// Every file and every folder that holds one.
fn places(files: &[File]) -> BTreeSet<String> {
    let mut known = BTreeSet::from([String::new()]);
    for file in files {
        known.insert(file.path.clone());
        known.extend(file.path.match_indices('/').map(|(at, _)| file.path[..at].to_owned()));
    }
    known
}

/// What stands between `](` and `)`, without its anchor, when it is a path.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    // What ends a piece of code is an example.
    let ends = |link: &str| link.find([')', '\n']).filter(|end| !link[*end..].starts_with(")`"));
    text.split("](")
        .skip(1)
        .filter_map(move |link| ends(link).map(|end| &link[..end]))
        .map(|link| link.split_once('#').map_or(link, |(path, _)| path))
        .filter(|path| !path.is_empty() && !path.contains("://") && !path.starts_with("mailto:"))
}

/// From the root; none when it leaves the tree.
fn resolve(page: &str, target: &str) -> Option<String> {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut place: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                place.pop()?;
            }
            part => place.push(part),
        }
    }
    Some(place.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_alive_when_its_file_or_folder_is_there() {
        let rows = [
            ("[a](docs/a.md)", true),
            ("[a](docs/a.md#part)", true),
            ("[a](#part) and [b](https://example.org/b.md)", true),
            ("[the folder](docs/)", true),
            ("code such as `[word](/wˈɜɹd/)`", true),
            ("[gone](docs/gone.md)", false),
            ("[outside](../a.md)", false),
        ];
        for (text, alive) in rows {
            let files =
                [File::new("README.md", text), File::new("docs/a.md", "[up](../README.md)")];
            assert_eq!(dead(&files).is_empty(), alive, "{text}");
        }
    }

    #[test]
    fn the_complaint_names_page_and_target() {
        let files = [File::new("docs/a.md", "See [b](./b.md)."), File::new("b.md", "")];
        assert_eq!(dead(&files), ["docs/a.md: links to ./b.md, which is not there"]);
    }
}
