//! Playhead scheduling: whose window is next, and how long it is.
//! Pure: it is told the time and what was sent, and touches neither clock nor engine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How much one new measurement moves a running cost.
const COST_WEIGHT: f32 = 0.2;

/// How long windows are.
#[derive(Clone, Debug, PartialEq)]
pub struct Pacing {
    /// Seconds of sound, rising; the first is every stream's first window.
    pub windows_s: Vec<f32>,
    /// A window may be rendered once the listener is ahead by its length times this.
    pub lead_per_window: f32,
}

impl Default for Pacing {
    fn default() -> Pacing {
        Pacing { windows_s: vec![0.25, 0.5, 1.0, 2.0], lead_per_window: 1.0 }
    }
}

impl Pacing {
    fn first_s(&self) -> f32 {
        self.windows_s.first().copied().unwrap_or(0.25)
    }

    /// The longest window that a listener with this lead does not notice.
    fn window_s(&self, lead_s: f32) -> f32 {
        let fits = |window_s: &&f32| **window_s * self.lead_per_window <= lead_s;
        self.windows_s.iter().rev().find(fits).copied().unwrap_or(self.first_s())
    }
}

/// The next piece of work: one step of this stream, about this long if it is a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    pub stream: u32,
    pub window_s: f32,
}

/// Deals out the one engine among the streams.
#[derive(Debug)]
pub struct Scheduler {
    pacing: Pacing,
    streams: BTreeMap<u32, Playhead>,
    cost: Cost,
}

/// Where a stream's listener is.
#[derive(Clone, Copy, Debug, Default)]
struct Playhead {
    /// Since when there is work that may be done for it; none when it waits for text or credit.
    ready_since: Option<Instant>,
    /// When the listener has heard all that was sent; none before the first sound.
    dry_at: Option<Instant>,
    /// It got a window while somebody awaited a first sound, and must let that one go first now.
    has_gone_first: bool,
}

/// What steps cost on this machine, learnt from those that were taken.
#[derive(Clone, Copy, Debug)]
struct Cost {
    begin_s: f32,
    /// Seconds of work per second of sound.
    render_rtf: f32,
}

impl Scheduler {
    pub fn new(pacing: Pacing) -> Scheduler {
        Scheduler { pacing, streams: BTreeMap::new(), cost: Cost { begin_s: 0.1, render_rtf: 0.5 } }
    }

    /// Seconds of every stream's first window.
    pub fn first_window_s(&self) -> f32 {
        self.pacing.first_s()
    }

    pub fn add(&mut self, stream: u32) {
        self.streams.insert(stream, Playhead::default());
    }

    pub fn remove(&mut self, stream: u32) {
        self.streams.remove(&stream);
    }

    /// Says whether there is work that may be done for `stream` from `now` on.
    pub fn set_ready(&mut self, stream: u32, is_ready: bool, now: Instant) {
        if let Some(playhead) = self.streams.get_mut(&stream) {
            playhead.ready_since = if is_ready { playhead.ready_since.or(Some(now)) } else { None };
        }
    }

    /// A unit was begun for this much work.
    pub fn began(&mut self, cost: Duration) {
        let begin_s = &mut self.cost.begin_s;
        *begin_s += COST_WEIGHT * (cost.as_secs_f32() - *begin_s);
    }

    /// A window of `sound_s` was rendered for this much work.
    pub fn rendered(&mut self, sound_s: f32, cost: Duration) {
        if sound_s > 0.0 {
            let render_rtf = &mut self.cost.render_rtf;
            *render_rtf += COST_WEIGHT * (cost.as_secs_f32() / sound_s - *render_rtf);
        }
    }

    /// `sound_s` seconds were sent to `stream` at `now`.
    pub fn sent(&mut self, stream: u32, sound_s: f32, now: Instant) {
        let somebody_waits = self.longest_awaited().is_some();
        let Some(playhead) = self.streams.get_mut(&stream) else {
            return;
        };
        let is_first = playhead.dry_at.is_none();
        playhead.has_gone_first = somebody_waits && !is_first;
        // A listener that ran dry stood still, so its time starts again now.
        let heard_from = playhead.dry_at.map_or(now, |dry_at| dry_at.max(now));
        playhead.dry_at = Some(heard_from + Duration::from_secs_f32(sound_s.max(0.0)));
        if is_first {
            self.streams.values_mut().for_each(|playhead| playhead.has_gone_first = false);
        }
    }

    /// Whose step is next; none when no stream may be worked for.
    pub fn pick(&self, now: Instant) -> Option<Turn> {
        let first_s = self.pacing.first_s();
        if let Some(first) = self.longest_awaited() {
            let stream = self.runs_dry(now).unwrap_or(first);
            return Some(Turn { stream, window_s: first_s });
        }
        let (stream, dry_at) = self.soonest_dry(|_| true)?;
        Some(Turn { stream, window_s: self.pacing.window_s(lead_s(dry_at, now)) })
    }

    /// Who would run dry behind a first sound. Each goes before it once, so that neither starves:
    /// with room for everybody no listener has a gap, without it all wait alike.
    fn runs_dry(&self, now: Instant) -> Option<u32> {
        let (stream, dry_at) = self.soonest_dry(|playhead| !playhead.has_gone_first)?;
        (lead_s(dry_at, now) < self.margin_s()).then_some(stream)
    }

    /// Whoever has waited longest for a first sound.
    fn longest_awaited(&self) -> Option<u32> {
        let awaited = self.streams.iter().filter(|(_, playhead)| playhead.dry_at.is_none());
        let ready = awaited.filter_map(|(id, playhead)| Some((playhead.ready_since?, *id)));
        ready.min().map(|(_, stream)| stream)
    }

    /// Whose listener runs dry first, among some, and when. One who waited for text has been dry
    /// only since it came.
    fn soonest_dry(&self, among: impl Fn(&Playhead) -> bool) -> Option<(u32, Instant)> {
        let some = self.streams.iter().filter(|(_, playhead)| among(playhead));
        let deadlines = some.filter_map(|(stream, playhead)| {
            let deadline = playhead.dry_at?.max(playhead.ready_since?);
            Some((deadline, *stream, playhead.dry_at?))
        });
        deadlines.min().map(|(_, stream, dry_at)| (stream, dry_at))
    }

    /// A listener with less lead than this would run dry behind somebody's first sound: what that
    /// costs, and then as much again for its own.
    fn margin_s(&self) -> f32 {
        2.0 * (self.cost.begin_s + self.cost.render_rtf * self.pacing.first_s())
    }
}

/// Seconds until `dry_at`, below zero when it has passed.
fn lead_s(dry_at: Instant, now: Instant) -> f32 {
    if dry_at >= now { (dry_at - now).as_secs_f32() } else { -(now - dry_at).as_secs_f32() }
}

#[cfg(test)]
mod tests;
