//! Measures memory bandwidth: all threads copy buffers larger than the caches, timed by one clock.
//! Counts bytes read and bytes written, so a copy of 1 GB counts as 2 GB.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use hob_core::machine::{Basis, Fact};

use crate::noise::{CpuTime, SystemLoad};
use crate::probe::ram;

const PASSES: usize = 12;
/// Source and destination buffers of one thread together. Smaller buffers, or times added up per thread, would measure the
/// caches.
const THREAD_BYTES: u64 = 512 << 20;
const THREAD_BYTES_MIN: u64 = 64 << 20;
/// The buffers take at most one part in this many of the free memory.
const SHARE_MAX: u64 = 4;
/// No new pass starts after this time.
const TIME_MAX: Duration = Duration::from_secs(4);
/// Noise only makes a pass slower. If the median is below this share of the fastest pass, other programs were active.
const MEDIAN_SHARE_MIN: f64 = 0.7;
const STOLEN_SHARE_MAX: f64 = 0.02;
const WAITING_PERCENT_MAX: f64 = 10.0;
const GIB: f64 = (1_u64 << 30) as f64;

/// The results of all passes.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Bandwidth of the fastest pass, in bytes per second.
    pub most: f64,
    pub median: f64,
    pub passes: usize,
    pub threads: usize,
    /// Source and destination buffers of all threads together.
    pub buffer_bytes: u64,
    /// Share of the CPU time that the host took from this virtual machine.
    pub stolen_share: Option<f64>,
    /// Percent of the ten seconds before in which some task waited for a core.
    pub waiting_percent: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmeasured {
    #[error(
        "{available_bytes} bytes of memory are free, and to measure its bandwidth hob needs {} bytes for each of \
         {threads} threads; close other programs", SHARE_MAX * THREAD_BYTES_MIN
    )]
    TooLittle { available_bytes: u64, threads: usize },
}

/// Measures for about a second with `threads` threads, and keeps all of them busy.
///
/// # Errors
/// The free memory is too small for buffers that exceed the caches.
pub fn measure(threads: usize) -> Result<Measured, Unmeasured> {
    let available_bytes = ram().map_or(0, |ram| ram.available_bytes);
    let threads = threads.max(1);
    let of_thread = (available_bytes / SHARE_MAX / threads as u64).min(THREAD_BYTES);
    if of_thread < THREAD_BYTES_MIN {
        return Err(Unmeasured::TooLittle { available_bytes, threads });
    }
    Ok(passes(threads, of_thread / 2))
}

fn passes(threads: usize, side_bytes: u64) -> Measured {
    let (earlier, waiting_percent) = (CpuTime::now(), SystemLoad::now().waiting_percent);
    let seconds = timed(threads, usize::try_from(side_bytes).unwrap_or(usize::MAX));
    let moved = 2.0 * side_bytes as f64 * threads as f64;
    let stolen_share = CpuTime::now().stolen_share_since(earlier);
    let buffer_bytes = 2 * side_bytes * threads as u64;
    Measured { threads, buffer_bytes, stolen_share, waiting_percent, ..of_passes(&seconds, moved) }
}

fn of_passes(seconds: &[f64], moved: f64) -> Measured {
    let mut rates: Vec<f64> = seconds.iter().map(|seconds| moved / seconds).collect();
    rates.sort_by(f64::total_cmp);
    let at = |index: usize| rates.get(index).copied().unwrap_or_default();
    Measured {
        most: at(rates.len().saturating_sub(1)),
        median: at(rates.len() / 2),
        passes: rates.len(),
        threads: 0,
        buffer_bytes: 0,
        stolen_share: None,
        waiting_percent: None,
    }
}

/// Returns the seconds of each pass, from the common start to the end of the last thread.
fn timed(threads: usize, side_bytes: usize) -> Vec<f64> {
    let (begin, end) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    let goes_on = std::sync::atomic::AtomicBool::new(true);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // Writes to every page. Otherwise the kernel would map one shared page of zeroes for the whole buffer.
                let from = vec![1_u8; side_bytes];
                let mut to = vec![2_u8; side_bytes];
                loop {
                    begin.wait();
                    if !goes_on.load(std::sync::atomic::Ordering::Acquire) {
                        return;
                    }
                    to.copy_from_slice(&from);
                    std::hint::black_box(&to);
                    end.wait();
                }
            });
        }
        let started = Instant::now();
        let mut seconds = Vec::with_capacity(PASSES);
        while seconds.len() < PASSES && (seconds.is_empty() || started.elapsed() < TIME_MAX) {
            begin.wait();
            let pass = Instant::now();
            end.wait();
            seconds.push(pass.elapsed().as_secs_f64());
        }
        goes_on.store(false, std::sync::atomic::Ordering::Release);
        begin.wait();
        seconds
    })
}

impl Measured {
    /// Returns whether other programs were active. The result may then be 30 % off, more likely too low than too high.
    pub fn is_noisy(&self) -> bool {
        let stolen = self.stolen_share.is_some_and(|share| share > STOLEN_SHARE_MAX);
        let crowded = self.waiting_percent.is_some_and(|percent| percent > WAITING_PERCENT_MAX);
        stolen || crowded || self.median < MEDIAN_SHARE_MIN * self.most
    }

    pub fn fact(&self) -> Fact<f64> {
        let Measured { most, median, passes, threads, buffer_bytes, .. } = self;
        let gib = *buffer_bytes as f64 / GIB;
        let share = 100.0 * median / most;
        let noisy = if self.is_noisy() { "; noisy, ±30 %" } else { "" };
        let source = format!(
            "best of {passes} copies by {threads} threads over {gib:.2} GiB, read and written; median {share:.0} %{noisy}"
        );
        Fact { value: *most, basis: Basis::Measured, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_pass_counts_and_the_median_says_whether_to_believe_it() {
        let quiet = of_passes(&[0.5, 0.4, 0.41, 0.42, 0.5], 4.0);
        assert_eq!((quiet.most.round(), quiet.passes, quiet.is_noisy()), (10.0, 5, false));
        let busy = of_passes(&[0.4, 0.9, 0.8, 1.0], 4.0);
        assert!(busy.is_noisy() && busy.fact().source.contains("noisy"), "{busy:?}");
        let stolen = Measured { stolen_share: Some(0.1), ..quiet.clone() };
        let crowded = Measured { waiting_percent: Some(40.0), ..quiet };
        assert!(stolen.is_noisy() && crowded.is_noisy());
    }

    #[test]
    fn threads_copy_and_end() {
        let got = passes(2, 1 << 20);
        assert!(got.passes > 0 && got.most >= got.median && got.median > 0.0, "{got:?}");
        assert_eq!((got.threads, got.buffer_bytes), (2, 4 << 20));
    }
}
