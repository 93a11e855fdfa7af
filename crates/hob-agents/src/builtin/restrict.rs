//! The sandbox where bubblewrap is missing or forbidden, as in most containers: a process gives up its own rights, and
//! then becomes the command. Landlock limits files, signals and TCP; seccomp refuses the other ways out.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};
use rustix::process::{Signal, set_parent_process_death_signal};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use super::sandbox::READABLE;

/// The first version of Landlock that keeps a command from sending signals to other processes (Linux 6.12).
const LANDLOCK: ABI = ABI::V6;
/// What many programs read.
const ALSO_READABLE: [&str; 4] = ["/dev/random", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo"];
const ALSO_WRITABLE: [&str; 2] = ["/dev/null", "/dev/zero"];

/// Becomes this command, which can change these two folders only. It returns only if that fails, with the reason.
pub fn restrict_and_run(workspace: &Path, temporary: &Path, command: &[OsString]) -> String {
    let Some((program, arguments)) = command.split_first() else {
        return "there is no command".to_owned();
    };
    // Like the processes of bubblewrap, the command does not outlive the hob that started it.
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.to_string();
    }
    if let Err(error) = limit_files(workspace, temporary) {
        return format!("Landlock of Linux 6.12 is needed: {error}");
    }
    if let Err(error) = limit_calls() {
        return format!("seccomp: {error}");
    }
    format!("the command cannot be started: {}", Command::new(program).args(arguments).exec())
}

fn limit_files(workspace: &Path, temporary: &Path) -> Result<(), RulesetError> {
    let writable = [workspace, temporary].into_iter().chain(ALSO_WRITABLE.map(Path::new));
    let readable = READABLE.iter().chain(&ALSO_READABLE);
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        // A file has fewer rights than a folder, and a rule for both would be refused.
        .set_compatibility(CompatLevel::BestEffort)
        .add_rules(path_beneath_rules(readable, AccessFs::from_read(LANDLOCK)))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(LANDLOCK)))?
        .restrict_self()?;
    Ok(())
}

/// Refuses sockets of all kinds, what could make one without a call, and the keys of the user's session.
fn limit_calls() -> Result<(), Box<dyn std::error::Error>> {
    let refused = [
        libc::SYS_socket,
        libc::SYS_io_uring_setup,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
    ];
    let rules: BTreeMap<i64, _> = refused.into_iter().map(|call| (call, Vec::new())).collect();
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let architecture = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(seccompiler::apply_filter(&program)?)
}
