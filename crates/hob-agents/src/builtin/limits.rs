//! What one command in a sandbox may use: processes, memory, processor time, the size of a file, and room on the disk.
//! The kernel enforces what counts for one process. hob looks at what counts for all of them together.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

const MIB: u64 = 1 << 20;
/// How long a command may take.
pub(super) const SECONDS_MAX: u64 = 120;
/// A command that prints more is ended.
pub(super) const PRINTED_BYTES_MAX: u64 = 64 * MIB;
/// Processes of a command at the same time. The kernel's own limit counts all processes of the user and none of root, so
/// hob counts.
const PROCESSES_MAX: usize = 512;
/// Memory that one process may allocate for itself. Address space that is only reserved does not count: runtimes such as
/// node and Java reserve more than they use.
const MEMORY_BYTES_MAX: u64 = 4096 * MIB;
/// Processor time of one process, the sum over its threads.
const CPU_SECONDS_MAX: u64 = 600;
/// A process that catches the signal at [`CPU_SECONDS_MAX`] has this long to end.
const CPU_SECONDS_GRACE: u64 = 5;
/// Largest file that a process may write.
const FILE_BYTES_MAX: u64 = 512 * MIB;
/// A command is ended when it leaves less free on the disk of its workspace. One that begins with less is not ended.
const DISK_FREE_BYTES_MIN: u64 = 256 * MIB;
/// When memory runs out, the kernel ends the processes with the highest score first, before hob and its models.
const OUT_OF_MEMORY_SCORE: &str = "1000";
/// Between two looks at the processes of a command and at its disk.
const LOOK_PAUSE: Duration = Duration::from_millis(100);
/// Bytes of a block of `ulimit -f`, as POSIX has it. File systems have other blocks.
const BLOCK_BYTES: u64 = 512;
/// What shells add to the number of the signal that ended a command.
pub(super) const SIGNAL_CODE: i32 = 128;

/// Gives this process the limits of one process. Its children inherit them.
#[cfg(target_os = "linux")]
pub(super) fn limit_this_process() -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    // An error means that a container forbids it.
    let _forbidden = fs::write("/proc/self/oom_score_adj", OUT_OF_MEMORY_SCORE);
    for (resource, soft, hard) in [
        (Resource::Core, 0, 0),
        (Resource::Fsize, FILE_BYTES_MAX, FILE_BYTES_MAX),
        (Resource::Data, MEMORY_BYTES_MAX, MEMORY_BYTES_MAX),
        (Resource::Cpu, CPU_SECONDS_MAX, CPU_SECONDS_MAX + CPU_SECONDS_GRACE),
    ] {
        // A limit that is stricter already cannot be raised.
        let hard = getrlimit(resource).maximum.map_or(hard, |maximum| maximum.min(hard));
        setrlimit(resource, Rlimit { current: Some(soft.min(hard)), maximum: Some(hard) })?;
    }
    Ok(())
}

/// The limits of one process, as commands of a shell. A limit that is stricter already stays.
pub(super) fn shell_limits() -> String {
    let (blocks, kib) = (FILE_BYTES_MAX / BLOCK_BYTES, MEMORY_BYTES_MAX / 1024);
    let cpu_max = CPU_SECONDS_MAX + CPU_SECONDS_GRACE;
    format!(
        "{{ echo {OUT_OF_MEMORY_SCORE} > /proc/self/oom_score_adj; ulimit -c 0; ulimit -f {blocks}; ulimit -d {kib}; \
         ulimit -S -t {CPU_SECONDS_MAX}; ulimit -H -t {cpu_max}; }} 2>/dev/null"
    )
}

/// The limits of one process, as options of podman and docker, which limit the number of processes themselves.
pub(super) fn container_limits() -> [String; 5] {
    let cpu_max = CPU_SECONDS_MAX + CPU_SECONDS_GRACE;
    [
        format!("--pids-limit={PROCESSES_MAX}"),
        "--ulimit=core=0".to_owned(),
        format!("--ulimit=fsize={FILE_BYTES_MAX}"),
        format!("--ulimit=data={MEMORY_BYTES_MAX}"),
        format!("--ulimit=cpu={CPU_SECONDS_MAX}:{cpu_max}"),
    ]
}

/// What a model reads about the limits of every command.
pub(super) fn sentence() -> String {
    let mib = PRINTED_BYTES_MAX / MIB;
    format!("It may take {SECONDS_MAX} s and print {mib} MiB.")
}

/// What a model reads about the further limits of a command in a sandbox.
pub(super) fn sandbox_sentence() -> String {
    let (memory, file) = (MEMORY_BYTES_MAX / MIB, FILE_BYTES_MAX / MIB);
    format!(
        "It may have {PROCESSES_MAX} processes, and each may use {memory} MiB of memory and {CPU_SECONDS_MAX} s of \
         processor time, and write files of {file} MiB."
    )
}

/// Why a command with this exit code was ended by a limit of one process. `None`: it was not.
pub(super) fn reason(code: i32) -> Option<String> {
    let signal = Signal::from_named_raw(code - SIGNAL_CODE)?;
    if signal == Signal::XFSZ {
        let mib = FILE_BYTES_MAX / MIB;
        Some(format!("a file would have become larger than {mib} MiB, which no command may write"))
    } else if signal == Signal::XCPU {
        Some(format!("a process used more than {CPU_SECONDS_MAX} s of processor time"))
    } else {
        killed(code)
    }
}

/// Why the system ended a command that has no limits of hob. `None` for any other end.
pub(super) fn killed(code: i32) -> Option<String> {
    let is_killed = Signal::from_named_raw(code - SIGNAL_CODE) == Some(Signal::KILL);
    is_killed.then(|| "a process was killed, as the system does when memory runs out".to_owned())
}

/// Resolves with the reason when the command uses too much, and never otherwise. `id` is its first process.
pub(super) async fn excess(id: Option<u32>, workspace: &Path) -> String {
    let Some(id) = id else { return std::future::pending().await };
    let before = free_bytes(workspace);
    loop {
        tokio::time::sleep(LOOK_PAUSE).await;
        let place = workspace.to_owned();
        let looking = tokio::task::spawn_blocking(move || (processes(id), free_bytes(&place)));
        // An error means that the runtime ends.
        let Ok((processes, free)) = looking.await else { continue };
        if let Some(reason) = excess_of(processes, before, free) {
            return reason;
        }
    }
}

fn excess_of(processes: usize, before: Option<u64>, free: Option<u64>) -> Option<String> {
    if processes > PROCESSES_MAX {
        return Some(format!(
            "the command had more than {PROCESSES_MAX} processes at the same time, and was ended"
        ));
    }
    let had_room = before.is_some_and(|bytes| bytes >= DISK_FREE_BYTES_MIN);
    if had_room && free.is_some_and(|bytes| bytes < DISK_FREE_BYTES_MIN) {
        let mib = DISK_FREE_BYTES_MIN / MIB;
        return Some(format!(
            "the disk of the workspace has less than {mib} MiB left, and the command was ended"
        ));
    }
    None
}

/// Number of processes of a command: its first one and all below it, also ended ones for which their parent has not waited.
/// Counts no further than the limit.
fn processes(first: u32) -> usize {
    let (mut open, mut count) = (vec![first], 0);
    while let Some(id) = open.pop() {
        count += 1;
        if count + open.len() > PROCESSES_MAX {
            return count + open.len();
        }
        // A process that has ended has no more children: others have taken them.
        let threads = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten();
        for thread in threads.filter_map(Result::ok) {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            open.extend(children.split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
        }
    }
    count
}

/// Bytes that the user may still write on the disk of this folder.
fn free_bytes(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    found.f_bavail.checked_mul(found.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_processes_and_a_full_disk_have_a_sentence_each() {
        let (room, full) = (Some(DISK_FREE_BYTES_MIN), Some(DISK_FREE_BYTES_MIN - 1));
        for (processes, before, free, part) in [
            (PROCESSES_MAX, room, room, None),
            (PROCESSES_MAX + 1, room, room, Some("more than 512 processes")),
            (1, room, full, Some("less than 256 MiB left")),
            (1, full, full, None),
            (1, None, full, None),
            (1, room, None, None),
        ] {
            let found = excess_of(processes, before, free);
            let is_right = match part {
                Some(part) => found.as_deref().is_some_and(|text| text.contains(part)),
                None => found.is_none(),
            };
            assert!(is_right, "{processes} {before:?} {free:?}: {found:?}");
        }
    }

    #[test]
    fn exit_codes_of_the_limits_are_explained() {
        for (code, part) in [
            (153, Some("larger than 512 MiB")),
            (152, Some("more than 600 s of processor time")),
            (137, Some("memory runs out")),
            (143, None),
            (128, None),
            (1, None),
            (0, None),
        ] {
            let found = reason(code);
            assert_eq!(killed(code).is_some(), code == 137, "{code}");
            assert_eq!(found.is_some(), part.is_some(), "{code}: {found:?}");
            assert!(found.unwrap_or_default().contains(part.unwrap_or_default()), "{code}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_counted_with_its_children() {
        let mut shell = std::process::Command::new("/bin/sh");
        // `read` keeps the shell until its input is closed.
        shell.args(["-c", "sleep 60 & echo started; read line; kill $!"]);
        shell.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        let mut said = [0; 7];
        let mut out = shell.stdout.take().expect("its output");
        std::io::Read::read_exact(&mut out, &mut said).expect("a word");
        assert_eq!(processes(shell.id()), 2);
        drop(shell.stdin.take());
        shell.wait().expect("ended");
        assert_eq!(processes(shell.id()), 1, "no process is left, and one is counted");
    }
}
