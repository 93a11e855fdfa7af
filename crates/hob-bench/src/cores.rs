//! The same work on many things, on all cores and in their order.
//! For a folder of records and the pages of them: half a second of one core's work for a thousand.

use std::thread;

/// More than this wait for the disk, or for each other.
const THREADS_MAX: usize = 8;

pub(crate) fn on_all<T: Sync, R: Send>(things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let share = things.len().div_ceil(cores).max(1);
    let work = &work;
    thread::scope(|scope| {
        let shares = things.chunks(share);
        let workers: Vec<_> = shares
            .map(|share| scope.spawn(move || share.iter().map(work).collect::<Vec<R>>()))
            .collect();
        // Who panicked there panics here: nothing of it is to be caught.
        let done = |worker: thread::ScopedJoinHandle<'_, Vec<R>>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().flat_map(done).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_stays() {
        for count in [0, 1, 7, 100] {
            let numbers: Vec<usize> = (0..count).collect();
            assert_eq!(
                on_all(&numbers, |number| number * 2),
                numbers.iter().map(|n| n * 2).collect::<Vec<_>>()
            );
        }
    }
}
