//! `read_file` and `write_file`: files of the workspace and no others.
//! The folder is a capability: paths that leave it, also through symbolic links, do not resolve.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _, Permissions, PermissionsExt as _};
use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::count_text;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::containers::{ContainerEngine, TeamContainers};
use super::protected::{PROTECTED, is_in, is_protected};
use super::{run_checked, spec_of};
use crate::tool::{AgentTool, ToolClass, ToolOutput, ToolSpec};

/// Maximum bytes of a file that is read, and of one writing.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Lines of one reading, unless the model asks for fewer; names of one list.
const LINES_MAX: usize = 400;

/// Reads a text file of the workspace.
#[derive(Debug)]
pub struct ReadFile {
    spec: ToolSpec,
    workspace: Arc<Dir>,
}

/// Writes a text file of the workspace, or of a container that the team file lists.
#[derive(Debug)]
pub struct WriteFile {
    spec: ToolSpec,
    workspace: Arc<Dir>,
    containers: TeamContainers,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    /// A path in the workspace, relative to it. A folder lists its files.
    path: String,
    /// The first line to read, from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    offset: Option<usize>,
    /// The number of lines to read.
    #[serde(default)]
    #[schemars(range(min = 1, max = 400))]
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    /// A path in the workspace, relative to it.
    path: String,
    content: String,
    /// What to do with a file that exists. Default: replace it.
    #[serde(default)]
    mode: WriteMode,
    /// A container. The path is then an absolute one in it, and the file is replaced as a whole.
    #[serde(default)]
    container: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WriteMode {
    #[default]
    Replace,
    Append,
    /// An error if the file exists.
    Create,
}

/// Opens the workspace.
fn open(folder: &Path) -> io::Result<Arc<Dir>> {
    Dir::open_ambient_dir(folder, ambient_authority()).map(Arc::new)
}

impl ReadFile {
    /// # Errors
    /// The folder cannot be opened.
    pub fn new(workspace: &Path) -> io::Result<ReadFile> {
        let description = "Read a text file of the workspace, or list a folder of it.";
        let spec = spec_of::<ReadArguments>("read_file", description, ToolClass::Read);
        Ok(ReadFile { spec, workspace: open(workspace)? })
    }

    fn read(&self, asked: ReadArguments) -> Result<String, String> {
        let path = relative_path(&asked.path)?;
        let failed = |error: io::Error| format!("{}: {}", asked.path, sentence_of(&error));
        let found = self.workspace.metadata(path).map_err(failed)?;
        if found.is_dir() {
            return self.list(path).map_err(failed);
        }
        check_regular(found.is_file()).map_err(failed)?;
        // A command can put a FIFO there in the meantime. So opening must not wait, and the opened file is checked again.
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
        let file = self.workspace.open_with(path, &options).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        check_regular(found.is_file()).map_err(failed)?;
        let bytes = found.len();
        if bytes > FILE_BYTES_MAX {
            return Err(format!(
                "{} has {bytes} bytes; at most {FILE_BYTES_MAX} are read",
                asked.path
            ));
        }
        let mut text = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
        let text = String::from_utf8(text).map_err(|_| format!("{} is not text", asked.path))?;
        let first = asked.offset.unwrap_or(1) - 1;
        let count = asked.limit.unwrap_or(LINES_MAX).min(LINES_MAX);
        let lines: Vec<&str> = text.lines().skip(first).collect();
        let mut shown = lines.iter().take(count).copied().collect::<Vec<_>>().join("\n");
        // A longer output would be cut. The cut is made here after a whole line, so that the model knows the number of the
        // next line.
        let end = shown.floor_char_boundary(ToolOutput::BYTES_MAX - 64);
        if end < shown.len() {
            shown.truncate(shown[..end].rfind('\n').unwrap_or(shown.len()));
        }
        let left = lines.len().saturating_sub(shown.matches('\n').count() + 1);
        Ok(if left > 0 { format!("{shown}\n[{} left]", count_text(left, "line")) } else { shown })
    }

    fn list(&self, path: &Path) -> io::Result<String> {
        let (mut entries, mut names) = (self.workspace.read_dir(path)?, Vec::new());
        for entry in entries.by_ref().take(LINES_MAX) {
            let entry = entry?;
            let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
            names.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
        }
        names.sort();
        let left = entries.count();
        if left > 0 {
            names.push(format!("[{} left]", count_text(left, "name")));
        }
        Ok(names.join("\n"))
    }
}

impl WriteFile {
    /// # Errors
    /// The folder cannot be opened.
    pub fn new(workspace: &Path) -> io::Result<WriteFile> {
        let containers = TeamContainers::new(Vec::new(), &[]);
        Ok(WriteFile { spec: write_spec(&[]), workspace: open(workspace)?, containers })
    }

    /// Writes files of these containers, too.
    #[must_use]
    pub fn with_containers(self, engines: Vec<ContainerEngine>, names: &[String]) -> WriteFile {
        let containers = TeamContainers::new(engines, names);
        WriteFile { spec: write_spec(names), containers, ..self }
    }

    async fn write_in(&self, container: &str, asked: &WriteArguments) -> Result<String, String> {
        if !matches!(asked.mode, WriteMode::Replace) {
            return Err("a file of a container is replaced as a whole; leave `mode` out".to_owned());
        }
        check_size(&asked.content)?;
        self.containers.write(container, &asked.path, &asked.content).await?;
        Ok(format!("{} bytes written to {} in {container}", asked.content.len(), asked.path))
    }

    fn write(&self, asked: &WriteArguments) -> Result<String, String> {
        let path = relative_path(&asked.path)?;
        let failed = |error: io::Error| format!("{}: {}", asked.path, sentence_of(&error));
        // Both paths are checked: a protected name may itself be a link to another file of the workspace.
        let real = self.without_links(path).map_err(failed)?;
        if is_protected(path) || self.leads_to_protected(&real) {
            return Err(format!("{} is protected: it decides what agents may do", asked.path));
        }
        check_size(&asked.content)?;
        let (folder, name) = self.folder_of(&real).map_err(failed)?;
        let found = folder.symlink_metadata(name).ok();
        check_regular(found.as_ref().is_none_or(|found| found.is_file())).map_err(failed)?;
        match asked.mode {
            WriteMode::Append => append(&folder, name, &asked.content).map_err(failed)?,
            WriteMode::Create if found.is_some() => {
                return Err(format!(
                    "{} exists already; use mode replace or append, or another path",
                    asked.path
                ));
            }
            WriteMode::Create | WriteMode::Replace => {
                let permissions = found.map(|found| found.permissions());
                replace(&folder, name, &asked.content, permissions).map_err(failed)?;
            }
        }
        Ok(format!("{} bytes written to {}", asked.content.len(), asked.path))
    }

    /// The path without links, below the workspace. What does not exist yet keeps its name.
    ///
    /// # Errors
    /// The path is a link to nothing: writing would make its target.
    fn without_links(&self, path: &Path) -> io::Result<PathBuf> {
        if self.workspace.symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
            return self.workspace.canonicalize(path);
        }
        for folder in path.ancestors().filter(|folder| !folder.as_os_str().is_empty()) {
            if let Ok(real) = self.workspace.canonicalize(folder) {
                return Ok(real.join(path.strip_prefix(folder).unwrap_or(path)));
            }
        }
        Ok(path.to_owned())
    }

    /// Whether a path without links is protected, or is where a protected name leads.
    fn leads_to_protected(&self, real: &Path) -> bool {
        let is_target =
            |name: &str| self.workspace.canonicalize(name).is_ok_and(|target| is_in(real, &target));
        is_protected(real) || PROTECTED.into_iter().any(is_target)
    }

    /// Opens the folder of a path without links, and makes missing folders. Returns the folder, and the name in it. No link
    /// is followed, so a link that a command puts there after the check leads nowhere.
    fn folder_of<'p>(&self, real: &'p Path) -> io::Result<(Dir, &'p OsStr)> {
        let mut names = Vec::new();
        for part in real.components() {
            match part {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                _ => return Err(io::ErrorKind::PermissionDenied.into()),
            }
        }
        let name = names.pop().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
        let mut folder = self.workspace.try_clone()?;
        for inner in names {
            folder = inner_folder(&folder, inner)?;
        }
        Ok((folder, name))
    }
}

/// The tool as models see it. Without containers, it has no argument for one.
fn write_spec(containers: &[String]) -> ToolSpec {
    let description = "Write a text file of the workspace. Folders are made as needed.";
    let mut spec = spec_of::<WriteArguments>("write_file", description, ToolClass::Write);
    if !containers.is_empty() {
        spec.description += &format!(" Containers: {}.", containers.join(", "));
    } else if let Some(properties) = spec.schema["properties"].as_object_mut() {
        properties.remove("container");
    }
    spec
}

fn check_size(content: &str) -> Result<(), String> {
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(format!(
            "one call writes at most {FILE_BYTES_MAX} bytes; write the rest with mode append"
        ));
    }
    Ok(())
}

/// Opens a folder that is not a link, and makes it where it is missing.
fn inner_folder(folder: &Dir, name: &OsStr) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || openat(folder, name, flags, Mode::empty());
    let opened = match open() {
        Err(Errno::NOENT) => match folder.create_dir(name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => open()?,
        },
        opened => opened?,
    };
    Ok(Dir::from_std_file(File::from(opened)))
}

/// Replaces a file in one step: a reader sees the old file or the new one. The new file is first written under a name that no
/// command can guess, and no link is followed. `old`: the permissions of the old file, so that a script can still be run.
fn replace(folder: &Dir, name: &OsStr, content: &str, old: Option<Permissions>) -> io::Result<()> {
    let part = format!(".hob-{:016x}.part", fastrand::u64(..));
    let mut options = OpenOptions::new();
    let mut file = folder.open_with(&part, options.write(true).create_new(true))?;
    if let Some(old) = old {
        // Without the bits by which a program gets the rights of its owner. Some file systems keep no permissions.
        let _kept = file.set_permissions(Permissions::from_mode(old.mode() & 0o777));
    }
    let written = file.write_all(content.as_bytes());
    let replaced = written.and_then(|()| folder.rename(&part, folder, name));
    if replaced.is_err() {
        // A file that stays does no harm, and the caller needs the first reason.
        let _ = folder.remove_file(&part);
    }
    replaced
}

/// Appends to a file that is not a link and has no other name.
fn append(folder: &Dir, name: &OsStr, content: &str) -> io::Result<()> {
    let how = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
    let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file = File::from(openat(folder, name, flags, Mode::from_raw_mode(0o666))?);
    let found = file.metadata()?;
    check_regular(found.is_file())?;
    if found.nlink() > 1 {
        return Err(io::Error::other(
            "the file has several names (hard links); replace it instead of appending to it",
        ));
    }
    file.write_all(content.as_bytes())
}

/// Refuses devices, sockets and FIFOs: opening a FIFO waits until another program opens its other end.
fn check_regular(is_file: bool) -> io::Result<()> {
    if is_file {
        return Ok(());
    }
    Err(io::Error::other("it is not a regular file, and hob reads and writes no other kind"))
}

/// The path, if it is relative and does not leave the workspace by `..`.
///
/// # Errors
/// For the model: the path is empty, absolute, or has `..` in it.
fn relative_path(path: &str) -> Result<&Path, String> {
    let path = Path::new(path);
    let is_plain = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.as_os_str().is_empty() || !path.components().all(is_plain) {
        return Err("the path must be relative to the workspace, without '..'".to_owned());
    }
    Ok(path)
}

/// The error in words for a model, without the system's error numbers.
fn sentence_of(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "not allowed: the path leaves the workspace or is protected".to_owned()
        }
        io::ErrorKind::NotADirectory => {
            "a folder of the path is a file, or a link that leaves the workspace".to_owned()
        }
        _ => error.to_string(),
    }
}

impl AgentTool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, value: Value) -> BoxFuture<'_, ToolOutput> {
        run_checked(value, move |asked| async move { self.read(asked).map(ToolOutput::ok) }).boxed()
    }
}

impl AgentTool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, value: Value) -> BoxFuture<'_, ToolOutput> {
        let write = move |asked: WriteArguments| async move {
            if let Some(container) = &asked.container {
                return self.write_in(container, &asked).await.map(ToolOutput::ok);
            }
            let text = self.write(&asked)?;
            Ok(ToolOutput { artifacts: vec![asked.path], ..ToolOutput::ok(text) })
        };
        run_checked(value, write).boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    async fn read(tool: &ReadFile, value: Value) -> ToolOutput {
        tool.call(value).await
    }

    #[test]
    fn only_a_team_with_containers_has_an_argument_for_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let writer = WriteFile::new(folder.path()).expect("open");
        assert!(writer.spec().schema["properties"].get("container").is_none());
        let writer = writer.with_containers(Vec::new(), &["web".to_owned()]);
        assert!(writer.spec().schema["properties"].get("container").is_some());
        assert!(writer.spec().description.contains("Containers: web."));
    }

    #[tokio::test]
    async fn files_of_the_workspace_are_written_and_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (reader, writer) = (
            ReadFile::new(folder.path()).expect("open"),
            WriteFile::new(folder.path()).expect("open"),
        );
        let text: String = (1..=500).map(|line| format!("{line}\n")).collect();
        let output = writer.call(json!({ "path": "a/b.txt", "content": text })).await;
        assert_eq!((output.is_error, output.artifacts), (false, vec!["a/b.txt".to_owned()]));
        let output = read(&reader, json!({ "path": "a/b.txt" })).await;
        assert!(
            output.text.starts_with("1\n2\n") && output.text.ends_with("400\n[100 lines left]")
        );
        let output = read(&reader, json!({ "path": "a/b.txt", "offset": 499, "limit": 1 })).await;
        assert_eq!(output.text, "499\n[1 line left]");
        assert_eq!(read(&reader, json!({ "path": "." })).await.text, "a/");
        for file in 0..=LINES_MAX {
            fs::write(folder.path().join(format!("a/{file}")), "").expect("written");
        }
        let listed = read(&reader, json!({ "path": "a" })).await.text;
        assert!(listed.ends_with("\n[2 names left]"), "{listed}");
        assert!(
            writer
                .call(json!({ "path": "a/b.txt", "content": "", "mode": "create" }))
                .await
                .is_error
        );
        let output =
            writer.call(json!({ "path": "a/b.txt", "content": "end", "mode": "append" })).await;
        assert!(!output.is_error);
        assert_eq!(
            fs::read_to_string(folder.path().join("a/b.txt")).expect("a file"),
            text + "end"
        );
        fs::write(folder.path().join("x"), ("x".repeat(999) + "\n").repeat(20)).expect("written");
        let wide = read(&reader, json!({ "path": "x" })).await.text;
        assert!(wide.ends_with("x\n[4 lines left]"), "{wide}");
    }

    #[tokio::test]
    async fn a_script_that_is_replaced_can_still_be_run() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().expect("a folder");
        let writer = WriteFile::new(folder.path()).expect("open");
        let script = folder.path().join("run.sh");
        fs::write(&script, "old").expect("written");
        for (before, after) in [(0o755, 0o755), (0o4750, 0o750)] {
            fs::set_permissions(&script, fs::Permissions::from_mode(before)).expect("changed");
            assert!(!writer.call(json!({ "path": "run.sh", "content": "new" })).await.is_error);
            let found = fs::metadata(&script).expect("a file").permissions().mode();
            assert_eq!(found & 0o7777, after);
        }
    }

    #[tokio::test]
    async fn nothing_outside_the_workspace_is_reached() {
        let (folder, outside) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        fs::write(outside.path().join("secret"), "secret").expect("written");
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).expect("a link");
        let (reader, writer) = (
            ReadFile::new(folder.path()).expect("open"),
            WriteFile::new(folder.path()).expect("open"),
        );
        let absolute = outside.path().join("secret").to_string_lossy().into_owned();
        for path in [absolute.as_str(), "../x", "a/../../x", "link/secret", "", "/etc/passwd"] {
            let output = read(&reader, json!({ "path": path })).await;
            assert!(
                output.is_error && !output.text.contains("secret\n"),
                "{path}: {}",
                output.text
            );
            assert!(writer.call(json!({ "path": path, "content": "x" })).await.is_error, "{path}");
        }
        let same_for_a_mac = ["Teams/a.toml", "team\u{17f}/a.toml", "hob\u{200c}.toml"];
        for path in ["teams/a.toml", "./hob.toml", "hob.toml"].into_iter().chain(same_for_a_mac) {
            assert!(writer.call(json!({ "path": path, "content": "x" })).await.is_error, "{path}");
        }
        // A command has made links to them.
        fs::create_dir_all(folder.path().join("teams")).expect("a folder");
        fs::create_dir_all(folder.path().join("deep")).expect("a folder");
        for (target, link) in
            [("teams", "t"), ("../teams", "deep/t"), ("hob.toml", "h"), ("teams/b.toml", "b")]
        {
            std::os::unix::fs::symlink(target, folder.path().join(link)).expect("a link");
        }
        for path in ["t/a.toml", "t/new/a.toml", "deep/t/a.toml", "h", "b"] {
            for mode in ["append", "replace", "create"] {
                let asked = json!({ "path": path, "content": "x", "mode": mode });
                assert!(writer.call(asked).await.is_error, "{path}, {mode}");
            }
        }
        assert_eq!(fs::read_dir(folder.path().join("teams")).expect("a folder").count(), 0);
        // The protected names are links themselves.
        fs::remove_dir(folder.path().join("teams")).expect("deleted");
        for (real, link) in [("t2", "teams"), ("conf", "c")] {
            fs::create_dir(folder.path().join(real)).expect("a folder");
            std::os::unix::fs::symlink(real, folder.path().join(link)).expect("a link");
        }
        fs::write(folder.path().join("conf/h.toml"), "").expect("written");
        std::os::unix::fs::symlink("conf/h.toml", folder.path().join("hob.toml")).expect("a link");
        for path in
            ["teams/a.toml", "t2/a.toml", "T2/a.toml", "hob.toml", "conf/h.toml", "Conf/H.toml"]
        {
            for mode in ["append", "replace", "create"] {
                let asked = json!({ "path": path, "content": "x", "mode": mode });
                assert!(writer.call(asked).await.is_error, "{path}, {mode}");
            }
        }
        assert!(!writer.call(json!({ "path": "conf/other", "content": "x" })).await.is_error);
        assert_eq!(fs::read_to_string(outside.path().join("secret")).expect("a file"), "secret");
    }

    #[tokio::test]
    async fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let (reader, writer) = (
            ReadFile::new(folder.path()).expect("open"),
            WriteFile::new(folder.path()).expect("open"),
        );
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        std::os::unix::fs::symlink("pipe", folder.path().join("link")).expect("a link");
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        for path in ["pipe", "link", "socket"] {
            let output = read(&reader, json!({ "path": path })).await;
            assert!(
                output.is_error && output.text.contains("not a regular file"),
                "{}",
                output.text
            );
            for mode in ["append", "replace", "create"] {
                let asked = json!({ "path": path, "content": "x", "mode": mode });
                let output = writer.call(asked).await;
                let is_named = output.text.contains("not a regular file");
                assert!(output.is_error && is_named, "{path}, {mode}: {}", output.text);
            }
        }
        // A FIFO that appears after the check makes nothing wait either.
        let workspace = open(folder.path()).expect("open");
        assert!(append(&workspace, OsStr::new("pipe"), "x").is_err());
    }

    #[tokio::test]
    async fn links_of_a_command_are_no_way_into_protected_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let writer = WriteFile::new(folder.path()).expect("open");
        fs::create_dir(folder.path().join("teams")).expect("a folder");
        let team = folder.path().join("teams/x.toml");
        fs::write(&team, "old").expect("written");
        // A link under a name like that of hob's own temporary files.
        std::os::unix::fs::symlink("teams/x.toml", folder.path().join("a.hob-part"))
            .expect("a link");
        fs::hard_link(&team, folder.path().join("hard")).expect("a link");
        for (path, mode, is_refused) in [
            ("a", "replace", false),
            ("a", "append", false),
            ("a.hob-part", "append", true),
            ("hard", "append", true),
            ("hard", "replace", false),
            ("hard", "append", false),
        ] {
            let asked = json!({ "path": path, "content": "x", "mode": mode });
            let output = writer.call(asked).await;
            assert_eq!(output.is_error, is_refused, "{path}, {mode}: {}", output.text);
        }
        assert_eq!(fs::read_to_string(&team).expect("a file"), "old");
        let mut names: Vec<String> = fs::read_dir(folder.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["a", "a.hob-part", "hard", "teams"]);
        let link = folder.path().join("inner");
        fs::create_dir(folder.path().join("real")).expect("a folder");
        std::os::unix::fs::symlink("real", &link).expect("a link");
        let output = writer.call(json!({ "path": "inner/new/b", "content": "x" })).await;
        assert!(!output.is_error, "{}", output.text);
        assert!(folder.path().join("real/new/b").exists(), "links in the workspace are followed");
        let workspace = open(folder.path()).expect("open");
        assert!(
            inner_folder(&workspace, OsStr::new("inner")).is_err(),
            "a link that appears after the check is not followed"
        );
    }
}
