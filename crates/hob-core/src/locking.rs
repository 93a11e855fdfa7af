//! Locks that a panic does not block.
//! What they guard is consistent between any two statements, so a thread may go on where another panicked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the lock, also if another thread panicked while it had it.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
