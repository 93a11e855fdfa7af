//! Finds the process that uses a port (on Linux).
//! "Address in use" alone does not tell the user what to stop.

use std::net::SocketAddr;
use std::path::Path;

/// The state of a listening socket in the kernel's table.
const LISTENING: &str = "0A";

/// The program that listens on this address, as "python3 (process 1234)". `None` if it belongs to another user, or if the
/// system does not say.
pub(crate) fn find(address: SocketAddr) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let inode = tables.iter().find_map(|table| {
        let table = fs_err::read_to_string(table).ok()?;
        listening_inode(&table, address.port())
    })?;
    let wanted = format!("socket:[{inode}]");
    fs_err::read_dir("/proc").ok()?.flatten().find_map(|process| {
        let folder = process.path();
        let pid: u32 = folder.file_name()?.to_str()?.parse().ok()?;
        has_open(&folder, &wanted).then(|| format!("{} (process {pid})", program_name(&folder)))
    })
}

/// Columns of the kernel's table: number, local address, remote address, state, …, inode (the 10th).
fn listening_inode(table: &str, port: u16) -> Option<String> {
    let wanted = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let matches = columns.get(1)?.ends_with(&wanted) && *columns.get(3)? == LISTENING;
        matches.then(|| columns.get(9).map(|inode| (*inode).to_owned()))?
    })
}

fn has_open(process: &Path, wanted: &str) -> bool {
    let Ok(files) = fs_err::read_dir(process.join("fd")) else { return false };
    files
        .flatten()
        .filter_map(|file| fs_err::read_link(file.path()).ok())
        .any(|target| target == Path::new(wanted))
}

fn program_name(process: &Path) -> String {
    let name = fs_err::read_to_string(process.join("comm"));
    name.map_or_else(|_| "a program".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listening_socket_of_a_port_is_found_in_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:2124 0100007F:1234 01 00000000:00000000 00:00000000 00000000 0 0 111 1\n\
            1: 0100007F:2124 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 222 1\n";
        assert_eq!(listening_inode(table, 8484), Some("222".to_owned()));
        assert_eq!(listening_inode(table, 8485), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_found_holding_its_own_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let owner = find(listener.local_addr().expect("an address")).expect("an owner");
        assert!(owner.contains(&format!("(process {})", std::process::id())), "{owner}");
    }
}
