//! Playhead scheduling: which stream starts, which stream computes the next window, and how long it is.
//! Pure: its caller passes the time and what was sent. It uses neither clock nor engine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hob_core::SpeechPace;

/// Weight of a new measurement in the running average of a cost.
const COST_WEIGHT: f32 = 0.2;

/// The time of two windows that are computed together, divided by their time one after the other, before it was measured.
const PAIR_SHARE: f32 = 0.9;

/// How fast a bad experience with pairs is forgotten, so that they are tried again after about a hundred windows.
const PAIR_FORGET: f32 = 0.01;

/// A request that arrives while two windows are computed waits for both, so they may take this long at most.
const PAIR_S_MAX: f32 = 2.0;

/// Two windows that are shorter than this would cost more for their context than is gained.
const PAIR_WINDOW_S_MIN: f32 = 1.0;

/// A steady stream gets a window at least this often, even if listeners have to wait for it.
const STEADY_WAIT_MAX: Duration = Duration::from_secs(5);

/// How long windows are, in seconds of sound.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowLengths {
    /// The shortest, on a machine that is fast enough.
    pub shortest_s: f32,
    /// The shortest on a machine that is too slow. A listener then waits once for a long window, instead of often for
    /// short windows whose context costs more time than their sound lasts.
    pub shortest_if_slow_s: f32,
    /// The longest. A request may have to wait until such a window is computed.
    pub longest_s: f32,
    /// A new stream starts only if the sound of all streams can stay ahead of its listeners for this long.
    pub horizon_s: f32,
    /// Additional cost of each window, as seconds of sound.
    pub context_s: f32,
    /// A window may take this many times its expected time before its listener has a gap.
    pub caution: f32,
}

impl Default for WindowLengths {
    fn default() -> WindowLengths {
        WindowLengths {
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

/// Shares one engine among all streams.
#[derive(Debug)]
pub struct WindowScheduler {
    window_lengths: WindowLengths,
    streams: BTreeMap<u32, Playhead>,
    cost: Cost,
    /// When a steady stream got its last window.
    steady_at: Option<Instant>,
}

/// The state of a stream and of its listener.
#[derive(Clone, Copy, Debug, Default)]
struct Playhead {
    /// The stream has no listener. Its windows have one length, whatever the load.
    is_steady: bool,
    /// Since when the stream has work that may be done; None while it waits for text or credit.
    ready_since: Option<Instant>,
    /// The stream has had its first turn. Before that it waits in the queue.
    has_started: bool,
    /// When the listener will have played all sound that was sent; None before the first sound.
    dry_at: Option<Instant>,
    /// The stream got a window while another waited for its first sound. The other stream is served next.
    has_gone_first: bool,
}

/// The cost of steps on this machine: assumed at first, then learned from measurements.
#[derive(Clone, Copy, Debug)]
struct Cost {
    begin_s: f32,
    /// Seconds of work per second of sound. The context of a window counts as sound.
    render_rtf: f32,
    /// The time of two windows that are computed together, divided by their time one after the other.
    pair_share: f32,
}

/// Limits a measurement to twice the average, so one slow step does not make the machine count as slow.
fn learn(running: &mut f32, measured: f32) {
    *running += COST_WEIGHT * (measured.min(2.0 * *running) - *running);
}

impl WindowScheduler {
    pub fn new(window_lengths: WindowLengths) -> WindowScheduler {
        WindowScheduler {
            window_lengths,
            streams: BTreeMap::new(),
            cost: Cost { begin_s: 0.1, render_rtf: 0.4, pair_share: PAIR_SHARE },
            steady_at: None,
        }
    }

    /// Length of a stream's first window: the shortest that plays as long as the next one of this length takes to compute.
    pub fn first_window_s(&self) -> f32 {
        let WindowLengths { shortest_s, shortest_if_slow_s, context_s, .. } = self.window_lengths;
        let share = self.cautious_rtf();
        if share < 1.0 {
            (context_s * share / (1.0 - share)).clamp(shortest_s, shortest_if_slow_s)
        } else {
            shortest_if_slow_s
        }
    }

    fn cautious_rtf(&self) -> f32 {
        self.window_lengths.caution * self.cost.render_rtf
    }

    pub fn add(&mut self, stream: u32, pace: SpeechPace) {
        let is_steady = pace == SpeechPace::Steady;
        self.streams.insert(stream, Playhead { is_steady, ..Playhead::default() });
    }

    pub fn remove(&mut self, stream: u32) {
        self.streams.remove(&stream);
    }

    /// Sets whether `stream` has work that may be done, from `now` on.
    pub fn set_ready(&mut self, stream: u32, is_ready: bool, now: Instant) {
        if let Some(playhead) = self.streams.get_mut(&stream) {
            playhead.ready_since = if is_ready { playhead.ready_since.or(Some(now)) } else { None };
        }
    }

    /// Records that `stream` has had its first turn and left the queue.
    pub fn started(&mut self, stream: u32) {
        if let Some(playhead) = self.streams.get_mut(&stream) {
            playhead.has_started = true;
        }
    }

    /// Records the cost of beginning a unit.
    pub fn began(&mut self, cost: Duration) {
        learn(&mut self.cost.begin_s, cost.as_secs_f32());
    }

    /// Records the cost of rendering a window of `sound_s` seconds.
    pub fn rendered(&mut self, sound_s: f32, cost: Duration) {
        if sound_s > 0.0 {
            let computed_s = sound_s + self.window_lengths.context_s;
            learn(&mut self.cost.render_rtf, cost.as_secs_f32() / computed_s);
            self.cost.pair_share += PAIR_FORGET * (PAIR_SHARE - self.cost.pair_share);
        }
    }

    /// Records the cost of two windows that were computed together, which have `sound_s` seconds of sound together.
    pub fn rendered_pair(&mut self, sound_s: f32, cost: Duration) {
        if sound_s > 0.0 {
            let computed_s = sound_s + 2.0 * self.window_lengths.context_s;
            let alone_s = computed_s * self.cost.render_rtf;
            learn(&mut self.cost.pair_share, cost.as_secs_f32() / alone_s);
        }
    }

    /// Records that `sound_s` seconds of sound were sent to `stream` at `now`.
    pub fn sent(&mut self, stream: u32, sound_s: f32, now: Instant) {
        let another_waits = self.first_awaited(now).is_some();
        let Some(playhead) = self.streams.get_mut(&stream) else {
            return;
        };
        if playhead.is_steady {
            self.steady_at = Some(now);
            return;
        }
        let is_first = playhead.dry_at.is_none();
        playhead.has_gone_first = another_waits && !is_first;
        // A player without sound stops, so its time continues from now.
        let heard_from = playhead.dry_at.map_or(now, |dry_at| dry_at.max(now));
        playhead.dry_at = Some(heard_from + Duration::from_secs_f32(sound_s.max(0.0)));
        if is_first {
            self.streams.values_mut().for_each(|playhead| playhead.has_gone_first = false);
        }
    }

    /// The stream with the next step, or `None` when no stream may compute.
    pub fn pick(&self, now: Instant) -> Option<NextWindow> {
        let live = self.pick_live(now);
        let steady = self.steady().filter(|(_, since)| {
            let waited = now.saturating_duration_since(*since);
            live.is_none() || waited >= STEADY_WAIT_MAX || self.are_listeners_ahead(now)
        });
        let window_s = self.window_lengths.longest_s;
        steady.map(|(stream, _)| NextWindow { stream, window_s }).or(live)
    }

    /// A second window of the same length to compute at the same time as `first`, if that is faster than one after the other
    /// and no listener runs out of sound meanwhile. `left_s` says how much sound the unit of a stream still has; without a
    /// unit a stream has no window.
    pub fn pick_second(
        &self,
        first: NextWindow,
        left_s: impl Fn(u32) -> Option<f32>,
        now: Instant,
    ) -> Option<NextWindow> {
        let window_s = first.window_s;
        // The longer window would decide how long both take.
        let can_pair = |stream: u32| left_s(stream).is_some_and(|left_s| left_s >= window_s);
        let is_worth_it = window_s >= PAIR_WINDOW_S_MIN && self.cost.pair_share < 1.0;
        // A first sound gets all cores.
        if !is_worth_it || self.first_awaited(now).is_some() || !can_pair(first.stream) {
            return None;
        }
        let WindowLengths { longest_s, context_s, .. } = self.window_lengths;
        let others = self.streams.iter().filter(|(stream, playhead)| {
            let has_work =
                if playhead.is_steady { window_s >= longest_s } else { playhead.dry_at.is_some() };
            let is_ready = playhead.ready_since.is_some();
            **stream != first.stream && has_work && is_ready && can_pair(**stream)
        });
        let next = others.min_by_key(|(id, playhead)| (playhead.is_steady, playhead.dry_at, **id));
        let (stream, _) = next?;
        let computed_s = 2.0 * (window_s + context_s);
        let pair_s = self.cost.pair_share * self.cost.render_rtf * computed_s;
        let cautious_s = self.window_lengths.caution * pair_s;
        let is_outside = |id: u32| id != first.stream && id != *stream;
        let outside = self.listeners_with_work().filter(|id| is_outside(*id)).count();
        // Every other listener gets an equal window before the soonest one runs out of sound.
        let may_take_s = |soonest_s: f32| 2.0 * soonest_s / (2 + outside) as f32;
        let soonest_s = self.soonest_dry(|_| true).map(|(_, dry_at)| lead_s(dry_at, now));
        let is_in_time = soonest_s.is_none_or(|soonest_s| cautious_s <= may_take_s(soonest_s));
        (pair_s <= PAIR_S_MAX && is_in_time).then_some(NextWindow { stream: *stream, window_s })
    }

    /// The oldest steady stream that is ready, and since when it waits for a window.
    fn steady(&self) -> Option<(u32, Instant)> {
        let (stream, since) = self.streams.iter().find_map(|(stream, playhead)| {
            Some((*stream, playhead.ready_since.filter(|_| playhead.is_steady)?))
        })?;
        Some((stream, self.steady_at.map_or(since, |at| at.max(since))))
    }

    /// Whether every listener can wait until the longest window is computed, and then for a window of its own.
    fn are_listeners_ahead(&self, now: Instant) -> bool {
        let WindowLengths { longest_s, context_s, .. } = self.window_lengths;
        let lead_min_s = 2.0 * self.cautious_rtf() * (longest_s + context_s);
        let soonest = self.soonest_dry(|_| true);
        self.first_awaited(now).is_none()
            && soonest.is_none_or(|(_, dry_at)| lead_s(dry_at, now) >= lead_min_s)
    }

    /// The next step of a stream with a listener.
    fn pick_live(&self, now: Instant) -> Option<NextWindow> {
        let first_s = self.first_window_s();
        if let Some(first) = self.first_awaited(now) {
            let stream = self.runs_dry(now).unwrap_or(first);
            return Some(NextWindow { stream, window_s: first_s });
        }
        let (stream, dry_at) = self.soonest_dry(|_| true)?;
        let window_s = self.window_s(lead_s(dry_at, now));
        // If every stream can get the longest window, turns have no advantage, so the oldest stream is completed
        // first.
        let stream = if window_s < self.window_lengths.longest_s {
            stream
        } else {
            self.listeners_with_work().next()?
        };
        Some(NextWindow { stream, window_s })
    }

    /// The longest window that is ready before a listener has played this lead, if every other listener gets an equal
    /// window first.
    fn window_s(&self, lead_s: f32) -> f32 {
        let share_s = lead_s / self.listeners_with_work().count().max(1) as f32;
        let fits_s = share_s / self.cautious_rtf() - self.window_lengths.context_s;
        fits_s.max(self.first_window_s()).min(self.window_lengths.longest_s)
    }

    /// Ready streams whose listeners have received sound, the oldest first.
    fn listeners_with_work(&self) -> impl Iterator<Item = u32> {
        let ready = self.started_streams().filter(|(_, playhead)| playhead.ready_since.is_some());
        ready.map(|(stream, _)| stream)
    }

    /// Streams whose listeners have received sound.
    fn started_streams(&self) -> impl Iterator<Item = (u32, &Playhead)> {
        self.streams
            .iter()
            .map(|(stream, playhead)| (*stream, playhead))
            .filter(|(_, playhead)| playhead.dry_at.is_some())
    }

    /// The stream that would run out of sound if a first sound were computed now. Each such stream may go before that first
    /// sound once. With enough capacity no listener has a gap; without it, all of them wait equally.
    fn runs_dry(&self, now: Instant) -> Option<u32> {
        let (stream, dry_at) = self.soonest_dry(|playhead| !playhead.has_gone_first)?;
        (lead_s(dry_at, now) < self.margin_s()).then_some(stream)
    }

    /// The stream that may get its first sound now: one that has started, otherwise the first in the queue if there is
    /// room for it.
    fn first_awaited(&self, now: Instant) -> Option<u32> {
        let (_, stream, has_started) = self
            .awaited()
            .min_by_key(|(since, stream, has_started)| (!has_started, *since, *stream))?;
        (has_started || self.has_room(now)).then_some(stream)
    }

    /// Ready streams whose listeners have no sound yet: since when they are ready, their number, and whether they
    /// have started.
    fn awaited(&self) -> impl Iterator<Item = (Instant, u32, bool)> {
        let live = self.streams.iter().filter(|(_, playhead)| !playhead.is_steady);
        let awaited = live.filter(|(_, playhead)| playhead.dry_at.is_none());
        awaited
            .filter_map(|(id, playhead)| Some((playhead.ready_since?, *id, playhead.has_started)))
    }

    /// Whether one more stream can start. Each started stream must have enough lead, so that the new stream's start
    /// causes no gap. The machine must also be able to compute, within the horizon, the missing sound of the started
    /// streams and all sound of the new one. There is also room if no started stream has work now.
    fn has_room(&self, now: Instant) -> bool {
        let started =
            || self.streams.values().filter(|playhead| playhead.has_started && !playhead.is_steady);
        if !started().any(|playhead| playhead.ready_since.is_some()) {
            return true;
        }
        let lead_s = |playhead: &Playhead| {
            playhead.dry_at.map_or(0.0, |dry_at| lead_s(dry_at, now).max(0.0))
        };
        let WindowLengths { horizon_s, longest_s, context_s, .. } = self.window_lengths;
        let missing_s =
            started().map(|playhead| (horizon_s - lead_s(playhead)).max(0.0)).sum::<f32>();
        let work_s = (missing_s + horizon_s) * self.cautious_rtf() * (1.0 + context_s / longest_s);
        let lead_min_s = self.start_s() + self.lasting_lead_s(started().count() + 1);
        work_s <= horizon_s && started().all(|playhead| lead_s(playhead) >= lead_min_s)
    }

    /// The lead with which this many listeners stay ahead: each plays a window while all of them get one. With less
    /// lead, windows become shorter from turn to turn, and their context costs more than is played.
    fn lasting_lead_s(&self, streams: usize) -> f32 {
        let WindowLengths { longest_s, context_s, .. } = self.window_lengths;
        let share = streams as f32 * self.cautious_rtf();
        let longest_lead_s = share * (longest_s + context_s);
        if share < 1.0 {
            (share * context_s / (1.0 - share)).min(longest_lead_s)
        } else {
            longest_lead_s
        }
    }

    /// Seconds of work until a new stream has the longest window as its lead, computed in windows of the first length.
    fn start_s(&self) -> f32 {
        let WindowLengths { longest_s, context_s, .. } = self.window_lengths;
        let contexts = 1.0 + context_s / self.first_window_s();
        self.cost.begin_s + longest_s * contexts * self.cautious_rtf()
    }

    /// The stream in `among` whose listener runs out of sound first, and when. If a stream waited for text, its
    /// listener counts as without sound only since the text arrived.
    fn soonest_dry(&self, among: impl Fn(&Playhead) -> bool) -> Option<(u32, Instant)> {
        let some = self.streams.iter().filter(|(_, playhead)| among(playhead));
        let deadlines = some.filter_map(|(stream, playhead)| {
            let deadline = playhead.dry_at?.max(playhead.ready_since?);
            Some((deadline, *stream, playhead.dry_at?))
        });
        deadlines.min().map(|(_, stream, dry_at)| (stream, dry_at))
    }

    /// A listener with less lead than this would run out of sound during another stream's first window.
    /// It covers the time of that window, and of the listener's own next window.
    fn margin_s(&self) -> f32 {
        let first_s = self.first_window_s() + self.window_lengths.context_s;
        2.0 * (self.cost.begin_s + self.cost.render_rtf * first_s)
    }
}

/// Seconds until `dry_at`; negative after it.
fn lead_s(dry_at: Instant, now: Instant) -> f32 {
    if dry_at >= now { (dry_at - now).as_secs_f32() } else { -(now - dry_at).as_secs_f32() }
}

#[cfg(test)]
mod tests;
