//! How many files and sockets this process may have open, and how many connections fit into that.
//! macOS starts programs with 256, which 300 idle connections would use up.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than hob ever needs; macOS refuses a soft limit above 10,240.
const WANTED: u64 = 8_192;
/// For models, the request log, workers and the lists of other servers.
const RESERVED: u64 = 64;
/// One socket for a client, and one to another server for the client's request.
const PER_CONNECTION: u64 = 2;
/// A server with fewer connections is not useful.
const CONNECTIONS_MIN: u64 = 16;

/// Raises the soft limit up to the hard limit, and returns the limit in force. `None` means unlimited.
pub(crate) fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
    if current.is_none_or(|current| current >= wanted) {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        Ok(()) => Some(wanted),
        Err(error) => {
            tracing::warn!(%error, ?current, "cannot raise the limit of open files");
            current
        }
    }
}

/// At most `wanted` connections, or fewer if the limit of open files is low.
pub(crate) fn connections(limit: Option<u64>, wanted: usize) -> usize {
    let Some(limit) = limit else { return wanted };
    let fitting = (limit.saturating_sub(RESERVED) / PER_CONNECTION).max(CONNECTIONS_MIN);
    usize::try_from(fitting).unwrap_or(usize::MAX).min(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_everything_else() {
        for (limit, expected) in [
            (None, 512),
            (Some(1 << 20), 512),
            (Some(1088), 512),
            (Some(1024), 480),
            (Some(256), 96),
            (Some(20), 16),
        ] {
            assert_eq!(connections(limit, 512), expected, "{limit:?}");
        }
    }

    #[test]
    fn the_limit_is_raised_as_far_as_it_goes() {
        let raised = raise_limit();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(raised, current);
        assert!(current.is_none_or(|now| now >= maximum.map_or(WANTED, |max| max.min(WANTED))));
    }
}
