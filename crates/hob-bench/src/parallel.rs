//! A parallel map: runs a function for each item on up to eight threads, and returns the results in order.
//! It is used for folders of records: on one core, a thousand records take half a second.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// More threads would wait for the disk or for each other.
const THREADS_MAX: usize = 8;

pub(crate) fn parallel_map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let next = AtomicUsize::new(0);
    // Each thread takes the next item when it is free, because some items take a hundred times as long as others.
    let take_items = || {
        let indexes = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let results = indexes.map_while(|index| Some((index, work(items.get(index)?))));
        results.collect::<Vec<_>>()
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(take_items)).collect();
        // A panic of a worker continues in this thread.
        let joined = |worker: thread::ScopedJoinHandle<'_, Vec<(usize, R)>>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().flat_map(joined).collect()
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        for count in [0, 1, 7, 100] {
            let numbers: Vec<usize> = (0..count).collect();
            assert_eq!(
                parallel_map(&numbers, |number| number * 2),
                numbers.iter().map(|n| n * 2).collect::<Vec<_>>()
            );
        }
    }
}
