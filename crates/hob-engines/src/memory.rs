//! Returns freed memory to the system. The allocator of glibc keeps what small values took, for as long as the
//! process lives.

/// Frees what the allocator holds and no value uses. Takes milliseconds where there is much of it.
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
