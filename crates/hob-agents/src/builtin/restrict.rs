//! The sandbox where bubblewrap is missing or forbidden, as in most containers: a process gives up its own rights, and
//! then becomes the command. Landlock limits files, signals and TCP. seccomp limits system calls, also in bubblewrap.

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
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use super::limits::limit_this_process;
use super::sandbox_access::{SandboxAccess, readable};
use crate::team::{SandboxMode, SandboxNetwork};

/// The first version of Landlock that keeps a command from sending signals to other processes (Linux 6.12).
const LANDLOCK: ABI = ABI::V6;
/// Devices and facts of the machine that many programs read.
const ALSO_READABLE: [&str; 4] = ["/dev/random", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo"];
const ALSO_WRITABLE: [&str; 2] = ["/dev/null", "/dev/zero"];
/// Some kernels also accept a call of x86-64 by its number with this bit (the x32 ABI).
const X32_BIT: i64 = 0x4000_0000;

/// Becomes this command, which can change these two folders at most. Returns only if that fails, with the reason.
pub fn restrict_and_run(
    workspace: &Path,
    temporary: &Path,
    access: SandboxAccess,
    command: &[OsString],
) -> String {
    let Some((program, arguments)) = command.split_first() else {
        return "there is no command".to_owned();
    };
    // Like the processes of bubblewrap, the command does not outlive the hob that started it.
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return format!("the command cannot be tied to the end of hob: {error}");
    }
    // This needs `/proc`, which Landlock then hides.
    if let Err(error) = limit_this_process() {
        return format!("the limits of the command cannot be set: {error}");
    }
    if let Err(error) = limit_files(workspace, temporary, access) {
        return format!("Landlock of Linux 6.12 is needed: {error}");
    }
    if let Err(error) = limit_calls(access.network) {
        return format!("seccomp cannot limit the system calls of the command: {error}");
    }
    format!("the command cannot be started: {}", Command::new(program).args(arguments).exec())
}

fn limit_files(
    workspace: &Path,
    temporary: &Path,
    access: SandboxAccess,
) -> Result<(), RulesetError> {
    let rights = match access.mode {
        SandboxMode::ReadOnly => AccessFs::from_read(LANDLOCK),
        SandboxMode::WorkspaceWrite | SandboxMode::DangerFullAccess => AccessFs::from_all(LANDLOCK),
    };
    let writable = [temporary].into_iter().chain(ALSO_WRITABLE.map(Path::new));
    let readable = readable(access).chain(ALSO_READABLE);
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?;
    let ruleset = match access.network {
        SandboxNetwork::Off => ruleset.handle_access(AccessNet::from_all(LANDLOCK))?,
        SandboxNetwork::On => ruleset,
    };
    ruleset
        .create()?
        // Some rights exist only for folders. A strict rule that gave them to a file would be refused.
        .set_compatibility(CompatLevel::BestEffort)
        .add_rules(path_beneath_rules(readable, AccessFs::from_read(LANDLOCK)))?
        .add_rules(path_beneath_rules([workspace], rights))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(LANDLOCK)))?
        .restrict_self()?;
    Ok(())
}

/// Sockets that a command may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sockets {
    /// None, in the network of the machine.
    None,
    /// All kinds, in a network of its own, which reaches nothing.
    Local,
    /// Internet sockets in the network of the machine. Local sockets are refused, because through them a command would reach
    /// programs of the machine (abstract sockets).
    Internet,
}

/// Installs the filter in this process. Without bubblewrap, a command is always in the network of the machine.
fn limit_calls(network: SandboxNetwork) -> Result<(), Box<dyn std::error::Error>> {
    let sockets = match network {
        SandboxNetwork::Off => Sockets::None,
        SandboxNetwork::On => Sockets::Internet,
    };
    Ok(seccompiler::apply_filter(&filter(sockets)?)?)
}

/// The filter for bubblewrap, as the kernel reads it.
pub(super) fn filter_bytes(network: SandboxNetwork) -> Result<Vec<u8>, String> {
    let sockets = match network {
        SandboxNetwork::Off => Sockets::Local,
        SandboxNetwork::On => Sockets::Internet,
    };
    let program = filter(sockets)
        .map_err(|error| format!("the filter for seccomp cannot be made: {error}"))?;
    let mut bytes = Vec::new();
    for step in program {
        bytes.extend(step.code.to_ne_bytes());
        bytes.extend([step.jt, step.jf]);
        bytes.extend(step.k.to_ne_bytes());
    }
    Ok(bytes)
}

/// Refuses the kinds of sockets that are not allowed, system calls that get around the filter or reach into the kernel
/// (`io_uring` makes sockets without a call of `socket`), and the keys of the user's session.
fn filter(sockets: Sockets) -> Result<BpfProgram, Box<dyn std::error::Error>> {
    let refused = [
        libc::SYS_io_uring_setup,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
    ];
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        refused.into_iter().map(|call| (call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, refused_sockets(sockets)?);
    let of_x32: Vec<_> =
        rules.iter().map(|(call, rules)| (*call | X32_BIT, rules.clone())).collect();
    rules.extend(of_x32);
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let architecture = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(program)
}

/// Rules that match the kinds of sockets to refuse. An empty list matches every socket. Kinds other than the allowed ones are
/// refused, because through them a command reaches the machine or its kernel even from a network of its own.
fn refused_sockets(sockets: Sockets) -> Result<Vec<SeccompRule>, Box<dyn std::error::Error>> {
    let allowed: &[libc::c_int] = match sockets {
        Sockets::None => return Ok(Vec::new()),
        Sockets::Local => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        Sockets::Internet => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let mut differs_from_all = Vec::new();
    for family in allowed {
        let (dword, differs) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Ne);
        differs_from_all.push(SeccompCondition::new(0, dword, differs, *family as u64)?);
    }
    Ok(vec![SeccompRule::new(differs_from_all)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_calls_are_refused_by_their_x32_numbers_too() {
        for sockets in [Sockets::None, Sockets::Local, Sockets::Internet] {
            let program = filter(sockets).expect("a filter");
            for call in [libc::SYS_socket, libc::SYS_io_uring_setup] {
                let number = call | X32_BIT;
                assert!(
                    program.iter().any(|step| i64::from(step.k) == number),
                    "{sockets:?} {number}"
                );
            }
        }
    }
}
