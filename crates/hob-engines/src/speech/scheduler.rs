//! Playhead scheduling: which stream starts, which stream computes the next window, and how long it is.
//! Pure: its caller passes the time and what was sent. It uses neither clock nor engine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How much one new measurement moves a running cost.
const COST_WEIGHT: f32 = 0.2;

/// How long windows are, in seconds of sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Pacing {
    /// The shortest, on a machine that is fast enough.
    pub shortest_s: f32,
    /// The shortest on a machine that is too slow: who has to wait waits once for this rather than
    /// often for windows whose contexts cost more than they play.
    pub shortest_if_slow_s: f32,
    /// The longest: a request whose turn it is waits for it.
    pub longest_s: f32,
    /// A stream is started if everybody can be kept ahead for so long.
    pub horizon_s: f32,
    /// What a window costs beyond its own sound, as seconds of sound.
    pub context_s: f32,
    /// How much longer a window may take than was foreseen before its listener has a gap.
    pub caution: f32,
}

impl Default for Pacing {
    fn default() -> Pacing {
        Pacing {
            shortest_s: 0.15,
            shortest_if_slow_s: 1.0,
            longest_s: 2.0,
            horizon_s: 30.0,
            context_s: 0.125,
            caution: 1.3,
        }
    }
}

/// The next piece of work: one step of this stream, about this long if it is a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NextWindow {
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
    /// It had its first turn. Before that it waits in line.
    has_started: bool,
    /// When the listener has heard all that was sent; none before the first sound.
    dry_at: Option<Instant>,
    /// It got a window while another stream waited for its first sound, which now goes first.
    has_gone_first: bool,
}

/// What steps cost on this machine: a guess, and then learnt from those that were taken.
#[derive(Clone, Copy, Debug)]
struct Cost {
    begin_s: f32,
    /// Seconds of work per second of sound, a window's context counted as sound.
    render_rtf: f32,
}

/// One that stumbles once does not become a slow machine.
fn learn(running: &mut f32, measured: f32) {
    *running += COST_WEIGHT * (measured.min(2.0 * *running) - *running);
}

impl Scheduler {
    pub fn new(pacing: Pacing) -> Scheduler {
        Scheduler { pacing, streams: BTreeMap::new(), cost: Cost { begin_s: 0.1, render_rtf: 0.4 } }
    }

    /// Seconds of every stream's first window: the shortest during which as long a one is made.
    pub fn first_window_s(&self) -> f32 {
        let Pacing { shortest_s, shortest_if_slow_s, context_s, .. } = self.pacing;
        let share = self.cautious_rtf();
        if share < 1.0 {
            (context_s * share / (1.0 - share)).clamp(shortest_s, shortest_if_slow_s)
        } else {
            shortest_if_slow_s
        }
    }

    fn cautious_rtf(&self) -> f32 {
        self.pacing.caution * self.cost.render_rtf
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

    /// `stream` has its turn, and is in line no longer.
    pub fn started(&mut self, stream: u32) {
        if let Some(playhead) = self.streams.get_mut(&stream) {
            playhead.has_started = true;
        }
    }

    /// A unit was begun for this much work.
    pub fn began(&mut self, cost: Duration) {
        learn(&mut self.cost.begin_s, cost.as_secs_f32());
    }

    /// A window of `sound_s` was rendered for this much work.
    pub fn rendered(&mut self, sound_s: f32, cost: Duration) {
        if sound_s > 0.0 {
            let computed_s = sound_s + self.pacing.context_s;
            learn(&mut self.cost.render_rtf, cost.as_secs_f32() / computed_s);
        }
    }

    /// `sound_s` seconds were sent to `stream` at `now`.
    pub fn sent(&mut self, stream: u32, sound_s: f32, now: Instant) {
        let somebody_waits = self.first_awaited(now).is_some();
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

    /// The stream with the next step, or `None` when no stream may compute.
    pub fn pick(&self, now: Instant) -> Option<NextWindow> {
        let first_s = self.first_window_s();
        if let Some(first) = self.first_awaited(now) {
            let stream = self.runs_dry(now).unwrap_or(first);
            return Some(NextWindow { stream, window_s: first_s });
        }
        let (stream, dry_at) = self.soonest_dry(|_| true)?;
        let window_s = self.window_s(lead_s(dry_at, now));
        // With the longest windows for everybody there is nothing to gain from taking turns, and who
        // came first is done first.
        let stream = if window_s < self.pacing.longest_s { stream } else { self.first_come()? };
        Some(NextWindow { stream, window_s })
    }

    /// The longest window that is there before this lead is heard, when every other listener gets
    /// one like it first.
    fn window_s(&self, lead_s: f32) -> f32 {
        let ready = self.heard().filter(|(_, playhead)| playhead.ready_since.is_some());
        let share_s = lead_s / ready.count().max(1) as f32;
        let fits_s = share_s / self.cautious_rtf() - self.pacing.context_s;
        fits_s.max(self.first_window_s()).min(self.pacing.longest_s)
    }

    /// Streams whose listeners hear something.
    fn heard(&self) -> impl Iterator<Item = (u32, &Playhead)> {
        self.streams
            .iter()
            .map(|(stream, playhead)| (*stream, playhead))
            .filter(|(_, playhead)| playhead.dry_at.is_some())
    }

    /// The ready stream with sound that came first.
    fn first_come(&self) -> Option<u32> {
        let mut ready = self.heard().filter(|(_, playhead)| playhead.ready_since.is_some());
        ready.next().map(|(stream, _)| stream)
    }

    /// Who would run dry behind a first sound. Each goes before it once, so that neither starves:
    /// with room for everybody no listener has a gap, without it all wait alike.
    fn runs_dry(&self, now: Instant) -> Option<u32> {
        let (stream, dry_at) = self.soonest_dry(|playhead| !playhead.has_gone_first)?;
        (lead_s(dry_at, now) < self.margin_s()).then_some(stream)
    }

    /// Who waits for a first sound and may have it now: one that was started, or else the first in
    /// line if there is room for it.
    fn first_awaited(&self, now: Instant) -> Option<u32> {
        let (_, stream, has_started) = self
            .awaited()
            .min_by_key(|(since, stream, has_started)| (!has_started, *since, *stream))?;
        (has_started || self.has_room(now)).then_some(stream)
    }

    /// Those that are ready and have no sound yet: since when, which, whether they were started.
    fn awaited(&self) -> impl Iterator<Item = (Instant, u32, bool)> {
        let awaited = self.streams.iter().filter(|(_, playhead)| playhead.dry_at.is_none());
        awaited
            .filter_map(|(id, playhead)| Some((playhead.ready_since?, *id, playhead.has_started)))
    }

    /// Whether one more can be started. Those that were started must be far enough ahead to hear
    /// nothing of its first seconds; and within the horizon there must be time for what they will
    /// hear beyond their leads, and for as much again as it will hear. There is room too when none
    /// of them can be worked for now.
    fn has_room(&self, now: Instant) -> bool {
        let started = || self.streams.values().filter(|playhead| playhead.has_started);
        if !started().any(|playhead| playhead.ready_since.is_some()) {
            return true;
        }
        let lead_s = |playhead: &Playhead| {
            playhead.dry_at.map_or(0.0, |dry_at| lead_s(dry_at, now).max(0.0))
        };
        let Pacing { horizon_s, longest_s, context_s, .. } = self.pacing;
        let missing_s =
            started().map(|playhead| (horizon_s - lead_s(playhead)).max(0.0)).sum::<f32>();
        let work_s = (missing_s + horizon_s) * self.cautious_rtf() * (1.0 + context_s / longest_s);
        work_s <= horizon_s && started().all(|playhead| lead_s(playhead) >= self.start_s())
    }

    /// The work until a new stream is as far ahead as the longest window, in first windows.
    fn start_s(&self) -> f32 {
        let Pacing { longest_s, context_s, .. } = self.pacing;
        let contexts = 1.0 + context_s / self.first_window_s();
        self.cost.begin_s + longest_s * contexts * self.cautious_rtf()
    }

    /// The stream whose listener runs out of sound first, among some, and when. A listener who waited
    /// for text has been without sound only since the text came.
    fn soonest_dry(&self, among: impl Fn(&Playhead) -> bool) -> Option<(u32, Instant)> {
        let some = self.streams.iter().filter(|(_, playhead)| among(playhead));
        let deadlines = some.filter_map(|(stream, playhead)| {
            let deadline = playhead.dry_at?.max(playhead.ready_since?);
            Some((deadline, *stream, playhead.dry_at?))
        });
        deadlines.min().map(|(_, stream, dry_at)| (stream, dry_at))
    }

    /// A listener with less lead than this would run out of sound behind another stream's first window:
    /// the time of that window, and of one more for its own.
    fn margin_s(&self) -> f32 {
        let first_s = self.first_window_s() + self.pacing.context_s;
        2.0 * (self.cost.begin_s + self.cost.render_rtf * first_s)
    }
}

/// Seconds until `dry_at`, below zero when it has passed.
fn lead_s(dry_at: Instant, now: Instant) -> f32 {
    if dry_at >= now { (dry_at - now).as_secs_f32() } else { -(now - dry_at).as_secs_f32() }
}

#[cfg(test)]
mod tests;
