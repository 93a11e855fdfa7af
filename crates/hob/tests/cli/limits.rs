//! How much memory, how many files and which keys a client can make a server use, each within its limit.
//! The server answers with fixed texts, and runs as its own process, so that the test can read its memory.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
#[cfg(target_os = "linux")]
use std::{
    io::Write as _,
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::real_server::Served;
use crate::{Has, User, until};

const FIXED: &str = "[dev]\nmock_unknown_models = true\n";
#[cfg(target_os = "linux")]
const MIB: usize = 1 << 20;

fn address(served: &Served) -> &str {
    served.url.trim_start_matches("http://").trim_end_matches('/')
}

/// A size of the server that the system states, in bytes. `VmHWM` is its peak.
#[cfg(target_os = "linux")]
fn memory_bytes(served: &Served, name: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", served.child.id()));
    let status = status.expect("a status");
    let line = status.lines().find(|line| line.starts_with(name)).expect("a size");
    let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok());
    kib.expect("a number") << 10
}

/// A request with this many bytes of small objects.
#[cfg(target_os = "linux")]
fn small_objects(bytes: usize) -> String {
    format!(r#"{{"model":"any","messages":[{}]}}"#, vec!["{}"; bytes / 3].join(","))
}

/// Sends a chat request. Returns the status of the answer.
#[cfg(target_os = "linux")]
fn sent(served: &Served, body: &str) -> u16 {
    let url = format!("{}v1/chat/completions", served.url);
    let request = crate::real_server::agent().post(url).header("content-type", "application/json");
    request.send(body).expect("an answer").status().as_u16()
}

#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_large_bodies_is_given_back() {
    let (_user, served) = Served::with(FIXED);
    assert_eq!(served.get("health").status, 200);
    let before = memory_bytes(&served, "RssAnon:");
    let body = small_objects(28 * MIB);
    (0..6).for_each(|_| assert_eq!(sent(&served, &body), 400));
    let kept = memory_bytes(&served, "RssAnon:").saturating_sub(before);
    assert!(kept < 16 * MIB, "{kept} bytes kept after six bodies of 28 MiB");
}

#[cfg(target_os = "linux")]
#[test]
fn a_body_of_small_objects_takes_no_more_memory_than_its_text() {
    let (_user, served) = Served::with(FIXED);
    assert_eq!(served.get("health").status, 200);
    let before = memory_bytes(&served, "VmHWM:");
    let body = small_objects(4 * MIB);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(|| sent(&served, &body))).collect();
        for client in clients {
            assert_eq!(client.join().expect("no panic"), 400);
        }
    });
    let grown = memory_bytes(&served, "VmHWM:") - before;
    assert!(grown < 64 * MIB, "{grown} bytes for four bodies of 4 MiB");
}

/// Sends most of a body of 31 MiB, until the server stops reading it.
#[cfg(target_os = "linux")]
fn send_most(address: String) -> JoinHandle<TcpStream> {
    thread::spawn(move || {
        let mut socket = TcpStream::connect(&address).expect("connects");
        socket.set_write_timeout(Some(Duration::from_secs(2))).expect("set");
        let length = 31 * MIB;
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).expect("a head");
        let piece = vec![b' '; MIB];
        for _ in 0..30 {
            // The server may delay or reject it.
            if socket.write_all(&piece).is_err() {
                break;
            }
        }
        socket
    })
}

#[cfg(target_os = "linux")]
#[test]
fn many_large_bodies_share_one_budget_and_leave_the_server_answering() {
    let (_user, served) = Served::with(FIXED);
    assert_eq!(served.get("health").status, 200);
    let before = memory_bytes(&served, "VmHWM:");
    let senders: Vec<_> = (0..16).map(|_| send_most(address(&served).to_owned())).collect();
    let sockets: Vec<TcpStream> =
        senders.into_iter().map(|sender| sender.join().expect("no panic")).collect();
    assert_eq!(served.get("health").status, 200);
    let grown = memory_bytes(&served, "VmHWM:") - before;
    assert!(grown < 300 * MIB, "{grown} bytes for 16 bodies of 31 MiB");
    drop(sockets);
}

#[test]
fn idle_connections_block_no_client_when_few_files_may_be_open() {
    let user = User::new().configured(FIXED);
    let hob = user.process("serve --listen 127.0.0.1:0");
    let mut limited = Command::new("/bin/sh");
    limited
        .args(["-c", "ulimit -n 256 && exec \"$0\" \"$@\""])
        .arg(hob.get_program())
        .args(hob.get_args())
        .current_dir(user.path("work"))
        .env_clear()
        .env("HOME", user.path("home"));
    let served = Served::run(limited);
    let idle: Vec<TcpStream> =
        (0..300).map(|_| TcpStream::connect(address(&served)).expect("connects")).collect();
    assert_eq!(served.get("health").status, 200);
    drop(idle);
}

#[test]
fn a_file_that_loses_its_keys_opens_nothing() {
    let keys = format!("[keys.laptop]\nsecret = \"sha256:{}\"\n", "ab".repeat(32));
    let (user, mut served) = Served::with(&format!("{FIXED}{keys}"));
    assert_eq!(served.get("v1/models/any").status, 401);
    user.configure(FIXED);
    served.wait_for_note("has no keys any more").has(&["hob.toml"]);
    served.wait_for_note("hob keeps using the previous configuration");
    assert_eq!(served.get("v1/models/any").status, 401);
}

#[test]
fn a_key_whose_file_comes_later_is_in_use_then() {
    let (user, mut served) = Served::with(FIXED);
    let file = user.path("work/key");
    let keys = format!("[keys.laptop]\nsecret = \"file:{}\"\n", file.display());
    user.configure(&format!("{FIXED}{keys}"));
    served.wait_for_note("hob keeps using the previous configuration");
    assert_ne!(served.get("v1/models/any").status, 401);
    fs::write(file, "ab".repeat(32)).expect("written");
    until(60, "the key is not in use", || served.get("v1/models/any").status == 401);
}

/// The page takes no key. It names a ledger that cannot be read for as long as it shows requests.
#[test]
fn the_first_key_takes_the_requests_from_the_results_page() {
    let user = User::new().configured(FIXED);
    let folder = user.path("home/.local/share/hob");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("ledger.sqlite3"), "no ledger").expect("written");
    let served = Served::start(&user);
    let shows_requests = || {
        let script = served.get("benchmarks/records.js").body;
        script.as_str().expect("a script").contains("ledger.sqlite3")
    };
    assert!(shows_requests());
    let keys = format!("[keys.laptop]\nsecret = \"sha256:{}\"\n", "ab".repeat(32));
    user.configure(&format!("{FIXED}{keys}"));
    until(60, "the change was not followed", || served.get("v1/models/any").status == 401);
    assert!(!shows_requests());
}

#[test]
fn a_configuration_that_is_no_regular_file_stops_nothing() {
    let (user, mut served) = Served::with(FIXED);
    let work = user.path("work");
    let replace = |make: &dyn Fn(&Path)| {
        let new = work.join("new");
        make(&new);
        fs::rename(&new, work.join("hob.toml")).expect("replaced");
    };
    replace(&|path| {
        let made = Command::new("mkfifo").arg(path).stdout(Stdio::null()).status();
        assert!(made.expect("mkfifo").success());
    });
    served.wait_for_note("it is not a regular file");
    assert_eq!(served.get("health").status, 200);
    replace(&|path| std::os::unix::fs::symlink("/dev/zero", path).expect("linked"));
    served.wait_for_note("it is not a regular file");
    replace(&|path| fs::write(path, "# much\n".repeat(200_000)).expect("written"));
    served.wait_for_note("it has more than 1048576 bytes");
    let chain = |n: usize| format!("[alias.a{n}]\nto = [\"a{}\"]\n", n + 1);
    let chain: String = (0..5_000).map(chain).collect();
    replace(&|path| fs::write(path, format!("{FIXED}{chain}")).expect("written"));
    served.wait_for_note("leads through more than 16 aliases");
    assert_eq!(served.get("health").status, 200);
}
