//! Locks that a panic does not block.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the lock, also if another thread panicked while it had it. For data that is consistent between any two
/// statements.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
