//! The slots of a server that processes a limited number of concurrent requests, with a bounded queue.
//! A refused request gets a delay that is estimated from the duration of earlier answers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hob_core::{ModelError, locked};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A first guess, before any answer was seen.
const SERVICE_GUESS: Duration = Duration::from_secs(5);
/// How much one new answer moves the running estimate.
const SERVICE_WEIGHT: f64 = 0.2;

#[derive(Debug)]
pub(crate) struct Slots {
    free: Option<Arc<Semaphore>>,
    /// Concurrent requests, at least one. Estimates count an unlimited server as one.
    slots: usize,
    queue_max: usize,
    waiting: AtomicUsize,
    in_flight: Arc<AtomicUsize>,
    service: Arc<Mutex<Duration>>,
}

/// A slot; dropping it frees it.
#[derive(Debug)]
pub(crate) struct Slot {
    _permit: Option<OwnedSemaphorePermit>,
    in_flight: Arc<AtomicUsize>,
    service: Arc<Mutex<Duration>>,
    since: Instant,
}

impl Slots {
    pub(crate) fn new(slots: Option<usize>, queue_max: usize) -> Slots {
        Slots {
            free: slots.map(|slots| Arc::new(Semaphore::new(slots))),
            slots: slots.unwrap_or(1).max(1),
            queue_max,
            waiting: AtomicUsize::new(0),
            in_flight: Arc::new(AtomicUsize::new(0)),
            service: Arc::new(Mutex::new(SERVICE_GUESS)),
        }
    }

    pub(crate) async fn take(&self) -> Result<Slot, ModelError> {
        let permit = match &self.free {
            None => None,
            Some(free) => Some(self.wait(free).await?),
        };
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let (in_flight, service) = (Arc::clone(&self.in_flight), Arc::clone(&self.service));
        Ok(Slot { _permit: permit, in_flight, service, since: Instant::now() })
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Requests in flight and waiting, for each slot.
    pub(crate) fn load(&self) -> f64 {
        (self.in_flight() + self.waiting()) as f64 / self.slots as f64
    }

    async fn wait(&self, free: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, ModelError> {
        if let Ok(permit) = Arc::clone(free).try_acquire_owned() {
            return Ok(permit);
        }
        let waiting = Waiting::enter(&self.waiting);
        if waiting.place > self.queue_max {
            return Err(ModelError::Busy { retry_after: self.retry_after(waiting.place - 1) });
        }
        let acquired = Arc::clone(free).acquire_owned().await;
        // The semaphore is never closed: it lives as long as the waiting requests.
        acquired.map_err(|_| ModelError::Busy { retry_after: SERVICE_GUESS })
    }

    /// Time until the requests in flight and so many waiting ones are done.
    fn retry_after(&self, ahead: usize) -> Duration {
        let service = *locked(&self.service);
        let ahead = (self.in_flight() + ahead) as f64 / self.slots as f64;
        service.mul_f64(ahead.clamp(0.0, 100.0))
    }
}

/// A waiting request, until it is dropped.
struct Waiting<'a> {
    count: &'a AtomicUsize,
    /// Position in the queue, from 1.
    place: usize,
}

impl Waiting<'_> {
    fn enter(count: &AtomicUsize) -> Waiting<'_> {
        Waiting { count, place: count.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        let mut service = locked(&self.service);
        let took = self.since.elapsed();
        *service = service.mul_f64(1.0 - SERVICE_WEIGHT) + took.mul_f64(SERVICE_WEIGHT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_without_a_slot_waits_and_one_beyond_the_queue_is_refused() {
        let slots = Slots::new(Some(1), 1);
        let first = slots.take().await.expect("a slot");
        let mut second = std::pin::pin!(slots.take());
        assert!(futures::poll!(&mut second).is_pending());
        let refused = slots.take().await.expect_err("no queue left");
        assert_eq!(refused, ModelError::Busy { retry_after: SERVICE_GUESS * 2 });
        assert_eq!((slots.in_flight(), slots.load()), (1, 2.0));
        drop(first);
        let second = second.await.expect("the freed slot");
        assert_eq!((slots.in_flight(), slots.waiting()), (1, 0));
        drop(second);
        assert_eq!(slots.in_flight(), 0);
    }

    #[tokio::test]
    async fn without_a_limit_every_request_gets_a_slot() {
        let slots = Slots::new(None, 0);
        let mut taken = Vec::new();
        for _ in 0..100 {
            taken.push(slots.take().await.expect("a slot"));
        }
        assert_eq!(slots.in_flight(), 100);
    }
}
