//! The process's memory: returns freed memory to the system, and limits what one task may allocate.
//! This crate sets the allocator of every program that links it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

/// What a task may still allocate on its thread.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Names the task in the message that ends the process.
    task: &'static str,
    bytes_max: usize,
    /// Bytes that may be in use at the same time.
    free_bytes: i64,
    /// Bytes that may be allocated in all, freed ones included. Bounds the time that copying takes.
    total_bytes: i64,
}

/// How many times its memory a task may allocate in all.
const TURNOVER_MAX: i64 = 64;

/// Tasks that a process may leave behind. The next one ends the process, which frees the memory of all.
const LEFT_BEHIND_MAX: usize = 2;

static LEFT_BEHIND: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static BUDGET: Cell<Option<Budget>> = const { Cell::new(None) };
    /// Tells the waiting caller that this thread's task is left behind.
    static GIVE_UP: Cell<Option<Box<dyn Fn()>>> = const { Cell::new(None) };
}

/// Runs `task` with at most `bytes_max` bytes of new memory on this thread. A task that needs more ends the
/// process with a message on standard error, because an allocation that fails cannot be undone.
pub fn limited<T>(name: &'static str, bytes_max: usize, task: impl FnOnce() -> T) -> T {
    let free_bytes = bytes_max as i64;
    let total_bytes = free_bytes * TURNOVER_MAX;
    BUDGET.set(Some(Budget { task: name, bytes_max, free_bytes, total_bytes }));
    let _reset = ResetBudget;
    task()
}

/// Runs `task` like [`limited`], on a thread of its own. `None` if it needs more memory: it is left behind, and its thread
/// sleeps with the memory that it has, because it cannot go on without the allocation.
///
/// # Errors
/// No thread can be started.
pub fn limited_on_thread<T: Send + 'static>(
    name: &'static str,
    bytes_max: usize,
    task: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let (said, outcome) = sync_channel(1);
    let thread = thread::Builder::new().spawn(move || {
        let given_up = said.clone();
        // The channel has room, and the caller waits for it.
        GIVE_UP.set(Some(Box::new(move || drop(given_up.try_send(None)))));
        let done = limited(name, bytes_max, task);
        drop(said.try_send(Some(done)));
    })?;
    match outcome.recv() {
        Ok(done) => Ok(done),
        Err(_) => match thread.join() {
            Ok(()) => Ok(None),
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// Runs `task`, and returns how many bytes that it allocated on this thread are still in use.
pub fn measured<T>(task: impl FnOnce() -> T) -> (T, usize) {
    let free_bytes = i64::MAX / 2;
    let name = "a measured task";
    let bytes_max = usize::MAX;
    BUDGET.set(Some(Budget { task: name, bytes_max, free_bytes, total_bytes: i64::MAX }));
    let _reset = ResetBudget;
    let result = task();
    let left = BUDGET.get().map_or(free_bytes, |budget| budget.free_bytes);
    (result, usize::try_from(free_bytes - left).unwrap_or(0))
}

/// Removes the budget, also when the task panics.
struct ResetBudget;

impl Drop for ResetBudget {
    fn drop(&mut self) {
        BUDGET.set(None);
    }
}

/// The system's allocator, with [`limited`]'s budgets.
#[derive(Debug)]
struct LimitedAllocator;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator;

// SAFETY: every call is passed on to the system's allocator unchanged. The budget is a constant-initialised
// thread-local without a destructor, so reading it neither allocates nor unwinds.
#[expect(unsafe_code, reason = "an allocator is unsafe to implement")]
unsafe impl GlobalAlloc for LimitedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        charge(layout.size());
        // SAFETY: the caller's layout, unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        charge(layout.size());
        // SAFETY: the caller's layout, unchanged.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        charge(new_size);
        refund(layout.size());
        // SAFETY: the caller's pointer, layout and size, unchanged.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        refund(layout.size());
        // SAFETY: the caller's pointer and layout, unchanged.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn charge(bytes: usize) {
    if let Some(mut budget) = BUDGET.get() {
        budget.free_bytes -= bytes as i64;
        budget.total_bytes -= bytes as i64;
        if budget.free_bytes < 0 || budget.total_bytes < 0 {
            exhausted(budget);
        }
        BUDGET.set(Some(budget));
    }
}

fn refund(bytes: usize) {
    if let Some(mut budget) = BUDGET.get() {
        budget.free_bytes += bytes as i64;
        BUDGET.set(Some(budget));
    }
}

/// Leaves the task behind, or ends the process.
#[cold]
fn exhausted(Budget { task, bytes_max, .. }: Budget) -> ! {
    // The message itself must not be charged.
    BUDGET.set(None);
    let mib = bytes_max >> 20;
    // Without a reader of standard error the message is lost, and the process ends all the same.
    let _ = writeln!(io::stderr(), "{task} needs more than {mib} MiB of memory");
    let give_up = GIVE_UP.try_with(Cell::take).ok().flatten();
    if let Some(give_up) = give_up
        && LEFT_BEHIND.fetch_add(1, Ordering::Relaxed) < LEFT_BEHIND_MAX
    {
        give_up();
        loop {
            thread::park();
        }
    }
    std::process::abort()
}

/// Returns memory to the system that the allocator holds and no value uses. The allocator of glibc keeps
/// it otherwise. Takes milliseconds where there is much of it.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `malloc_trim` takes no pointer, may be called from any thread and at any time, and locks the
        // allocator's arenas itself.
        #[expect(unsafe_code, reason = "no safe function asks the allocator for it")]
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

/// From now on, blocks of at least 1 MiB go back to the system as soon as they are freed. By default, the limit of glibc's
/// allocator follows the largest block that was freed, up to 32 MiB. Then each thread's heap keeps up to twice as much at its
/// end, where [`give_back`] does not reach it.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `mallopt` takes no pointer, and locks the allocator itself.
        #[expect(unsafe_code, reason = "no safe function sets the allocator's limits")]
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
        }
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    /// Bytes of this process that are in memory.
    fn resident_bytes() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").expect("a status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
        let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok());
        kib.expect("a number") << 10
    }

    #[test]
    fn a_task_that_needs_too_much_memory_is_left_behind() {
        let kept =
            |bytes: usize| limited_on_thread("a test", 1 << 20, move || vec![1u8; bytes].len());
        assert_eq!(kept(1 << 10).ok(), Some(Some(1 << 10)));
        assert_eq!(kept(2 << 20).ok(), Some(None));
        assert_eq!(kept(1 << 10).ok(), Some(Some(1 << 10)), "the others go on");
    }

    #[test]
    fn what_a_task_frees_is_not_counted() {
        let (kept, bytes) = measured(|| {
            drop(vec![1u8; 4 << 20]);
            vec![1u8; 1 << 20]
        });
        assert_eq!((kept.len(), bytes), (1 << 20, 1 << 20));
    }

    #[test]
    fn what_small_values_took_is_returned() {
        const BYTES: usize = 256 << 20;
        let mut small: Vec<Box<[u8; 1024]>> =
            (0..BYTES / 1024).map(|_| Box::new([1; 1024])).collect();
        let full = resident_bytes();
        // The last one holds the heap open, as a value of a request that still runs would.
        let last = small.pop();
        drop(small);
        give_back();
        let left = resident_bytes();
        assert!(full > left + BYTES / 2, "{full} bytes before, {left} after");
        drop(last);
    }
}
