//! No file names a place that only one machine has, nor the host of a package index: clients of an
//! index are configured by the user who runs them. The patterns are cut in two so as not to find themselves.

use crate::tree::File;

/// Folders of one person's machine.
const FOLDERS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// The folder for temporary files. Only a path into a folder in it is a complaint, because a person has made that folder.
const SCRATCH: &str = concat!("/t", "mp/");

/// Hosts of an index, and the option that names a folder of packages.
const HOSTS: [&str; 7] = [
    concat!("py", "pi.org"),
    concat!("python", "hosted.org"),
    concat!("registry.", "npmjs"),
    concat!("static.", "crates.io"),
    concat!("index.", "crates.io"),
    concat!("deb.", "debian.org"),
    concat!("--find-", "links /"),
];

pub(crate) fn complaints(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        for (line, number) in file.text.lines().zip(1..) {
            if let Some(found) = found(line) {
                complaints.push(format!("{}:{number}: names {found}", file.path));
            }
        }
    }
    complaints
}

fn found(line: &str) -> Option<&'static str> {
    let folder = FOLDERS.into_iter().find(|folder| rests(line, folder).next().is_some());
    let host = || HOSTS.into_iter().find(|host| line.contains(host));
    folder.or_else(host).or_else(|| names_scratch(line).then_some(SCRATCH))
}

/// What follows each absolute mention of `folder`; inside a longer path it is another folder.
fn rests<'a>(line: &'a str, folder: &str) -> impl Iterator<Item = &'a str> {
    let inner = |c: char| c.is_alphanumeric() || "_-.~}".contains(c);
    line.match_indices(folder)
        .filter(move |(at, _)| !line[..*at].ends_with(inner))
        .map(|(at, folder)| &line[at + folder.len()..])
}

/// A lower-case folder and something in it: `…/build/x`, not `….sock` or a template.
fn names_scratch(line: &str) -> bool {
    rests(line, SCRATCH).any(|rest| {
        let name = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
        name > 0 && rest[name..].starts_with('/')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_one_machine_and_hosts_of_an_index_are_found() {
        let rows = [
            ("cd /wo!rk/main", Some(FOLDERS[0])),
            ("cp /ro!ot/.profile .", Some(FOLDERS[1])),
            ("see /t!mp/lab/x", Some(SCRATCH)),
            ("a socket in /t!mp/x.sock", None),
            ("downloads/wo!rk/x and ~/t!mp/lab/x", None),
            ("--index-url https://py!pi.org/simple", Some(HOSTS[0])),
            ("curl https://registry.np!mjs.org/x", Some(HOSTS[2])),
            ("--find-!links /opt/wheels", Some(HOSTS[6])),
            ("registry+https://github.com/rust-lang/crates.io-index", None),
            ("pip install numpy", None),
        ];
        for (line, expected) in rows {
            assert_eq!(found(&line.replace('!', "")), expected, "{line}");
        }
    }

    #[test]
    fn the_complaint_has_file_and_line() {
        let file = File::new("a.sh", concat!("true\ncd /ro", "ot/x\n"));
        assert_eq!(complaints(&[file]), [format!("a.sh:2: names {}", FOLDERS[1])]);
    }
}
