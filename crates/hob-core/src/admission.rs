//! Admission: how much work a model accepts before it says "later", and how much later.
//! Never waits: a request is let in at once or refused at once with an honest delay.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Clients are told to come back between these bounds (openai-python gives up above 120 s).
const RETRY_AFTER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));

/// How much one new measurement moves the running real-time factor.
const RTF_WEIGHT: f64 = 0.2;

/// Counts what is in flight for one model and how many seconds of sound that still is.
#[derive(Clone, Debug)]
pub struct Admission {
    shared: Arc<Mutex<Load>>,
    requests_max: usize,
}

#[derive(Debug)]
struct Load {
    requests: usize,
    /// Seconds of sound that admitted requests still have to get.
    backlog_s: f64,
    /// Seconds of work per second of sound, learnt from finished requests.
    rtf: f64,
}

/// Refused: `retry_after` is the backlog's sound times the measured real-time factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Busy {
    pub retry_after: Duration,
}

impl Admission {
    /// `rtf` is the first guess, before anything was measured.
    pub fn new(requests_max: usize, rtf: f64) -> Admission {
        let load = Load { requests: 0, backlog_s: 0.0, rtf };
        Admission { shared: Arc::new(Mutex::new(load)), requests_max }
    }

    /// Lets a request in that is expected to make `sound_s` seconds of sound.
    ///
    /// # Errors
    /// [`Busy`] when `requests_max` are in flight already.
    pub fn admit(&self, sound_s: f64) -> Result<Permit, Busy> {
        let mut load = self.load();
        if load.requests >= self.requests_max {
            return Err(Busy { retry_after: load.retry_after() });
        }
        load.requests += 1;
        load.backlog_s += sound_s;
        Ok(Permit { shared: Arc::clone(&self.shared), left_s: sound_s, made_s: 0.0 })
    }

    pub fn in_flight(&self) -> usize {
        self.load().requests
    }

    pub fn requests_max(&self) -> usize {
        self.requests_max
    }

    /// Seconds of sound still owed to those in flight.
    pub fn backlog_s(&self) -> f64 {
        self.load().backlog_s
    }

    fn load(&self) -> MutexGuard<'_, Load> {
        lock(&self.shared)
    }
}

impl Load {
    fn retry_after(&self) -> Duration {
        let wait_s = (self.backlog_s * self.rtf).clamp(0.0, RETRY_AFTER.1.as_secs_f64());
        Duration::from_secs_f64(wait_s).clamp(RETRY_AFTER.0, RETRY_AFTER.1)
    }
}

/// A place among those in flight; dropping it gives the place and what is left of its backlog back.
#[derive(Debug)]
pub struct Permit {
    shared: Arc<Mutex<Load>>,
    left_s: f64,
    made_s: f64,
}

impl Permit {
    /// `sound_s` more seconds of sound were made.
    pub fn made(&mut self, sound_s: f64) {
        let paid_s = sound_s.min(self.left_s);
        self.left_s -= paid_s;
        self.made_s += sound_s;
        let mut load = lock(&self.shared);
        load.backlog_s = (load.backlog_s - paid_s).max(0.0);
    }

    /// The answer is complete and took `worked` on a machine that shared itself among all in
    /// flight; teaches the admission how fast this machine is.
    pub fn finished(self, worked: Duration) {
        if self.made_s <= 0.0 {
            return;
        }
        let mut load = lock(&self.shared);
        let share = worked.as_secs_f64() / load.requests.max(1) as f64;
        load.rtf += RTF_WEIGHT * (share / self.made_s - load.rtf);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut load = lock(&self.shared);
        load.requests -= 1;
        load.backlog_s = (load.backlog_s - self.left_s).max(0.0);
    }
}

/// A panic between lock and unlock cannot leave the three numbers half-changed in a way that
/// matters, so a poisoned lock is used as it is.
fn lock(load: &Mutex<Load>) -> MutexGuard<'_, Load> {
    load.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_place_is_given_and_the_next_is_refused_with_the_backlog() {
        let admission = Admission::new(2, 0.5);
        let first = admission.admit(10.0).expect("a free place");
        let _second = admission.admit(30.0).expect("a free place");
        let busy = admission.admit(1.0).expect_err("full");
        assert_eq!(busy.retry_after, Duration::from_secs(20), "40 s of sound at 0.5");
        drop(first);
        assert_eq!(admission.in_flight(), 1);
        assert_eq!(admission.backlog_s(), 30.0);
        assert!(admission.admit(1.0).is_ok());
    }

    #[test]
    fn sound_made_shortens_the_wait_but_never_below_nothing() {
        let admission = Admission::new(1, 1.0);
        let mut permit = admission.admit(10.0).expect("a free place");
        permit.made(4.0);
        assert_eq!(admission.backlog_s(), 6.0);
        permit.made(100.0);
        assert_eq!(admission.backlog_s(), 0.0);
    }

    #[test]
    fn a_slow_machine_teaches_longer_waits() {
        let admission = Admission::new(1, 0.1);
        let mut permit = admission.admit(10.0).expect("a free place");
        permit.made(10.0);
        permit.finished(Duration::from_secs(20));
        let _held = admission.admit(50.0).expect("a free place");
        let busy = admission.admit(1.0).expect_err("full");
        assert!(busy.retry_after > Duration::from_secs(5), "{busy:?}");
    }

    #[test]
    fn waits_stay_between_one_second_and_two_minutes() {
        let admission = Admission::new(1, 1.0);
        let short = admission.admit(0.0).expect("a free place");
        assert_eq!(admission.admit(1.0).expect_err("full").retry_after, RETRY_AFTER.0);
        drop(short);
        let _long = admission.admit(1e9).expect("a free place");
        assert_eq!(admission.admit(1.0).expect_err("full").retry_after, RETRY_AFTER.1);
    }
}
