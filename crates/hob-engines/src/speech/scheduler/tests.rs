//! Cases of which stream is next, and a simulated machine on which no stream may starve.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Beginning a unit costs 0.05 s, and a second of sound 0.4 s.
fn scheduler() -> WindowScheduler {
    scheduler_of(0.4)
}

fn scheduler_of(render_rtf: f32) -> WindowScheduler {
    let mut scheduler = WindowScheduler::new(WindowLengths::default());
    scheduler.cost = Cost { begin_s: 0.05, render_rtf, pair_share: PAIR_SHARE };
    scheduler
}

/// Adds a stream that is ready at `at`, and has a listener with this lead if it has spoken.
fn add(scheduler: &mut WindowScheduler, stream: u32, lead_s: Option<f32>, at: Instant) {
    scheduler.add(stream, SpeechPace::Live);
    scheduler.set_ready(stream, true, at);
    if let Some(lead_s) = lead_s {
        scheduler.started(stream);
        scheduler.sent(stream, lead_s, at);
    }
}

/// Checks the first turn for streams 1, 2, … with these leads, on a machine with this cost. A stream without a lead
/// waits for its first sound.
fn check(render_rtf: f32, leads_s: &[Option<f32>], expect: Option<(u32, f32)>) {
    let now = Instant::now();
    let mut scheduler = scheduler_of(render_rtf);
    for (stream, lead_s) in (1..).zip(leads_s) {
        add(&mut scheduler, stream, *lead_s, now);
    }
    let milliseconds = |(stream, window_s): (u32, f32)| (stream, (window_s * 1000.0_f32).round());
    let turn = scheduler.pick(now).map(|turn| milliseconds((turn.stream, turn.window_s)));
    assert_eq!(turn, expect.map(milliseconds), "{leads_s:?}");
}

#[test]
fn the_next_stream_and_the_length_of_its_window() {
    check(0.4, &[], None);
    check(0.4, &[None], Some((1, 0.15)));
    check(0.4, &[None, None], Some((1, 0.15)));
    // A first sound goes before a later window of a stream with lead, and makes windows small.
    check(0.4, &[Some(6.0), None], Some((2, 0.15)));
    check(0.1, &[Some(5.0), Some(0.7), None, None], Some((3, 0.15)));
    // A stream that cannot be kept ahead with the started ones waits in the queue.
    check(0.4, &[Some(5.0), None], Some((1, 2.0)));
    check(0.1, &[Some(5.0), Some(0.33), None, None], Some((2, 1.144)));
    check(0.4, &[Some(5.0), Some(0.33), None, None], Some((2, 0.192)));
    check(2.0, &[Some(9.0), None], Some((1, 2.0)));
    // Without waiting streams: the stream that runs out of sound first, with a window that its lead allows.
    check(0.4, &[Some(0.1)], Some((1, 0.15)));
    check(0.4, &[Some(0.65)], Some((1, 1.125)));
    check(0.4, &[Some(60.0)], Some((1, 2.0)));
    check(0.4, &[Some(1.95), Some(1.3), Some(4.0), Some(4.0)], Some((2, 0.5)));
    check(0.4, &[Some(0.0)], Some((1, 0.15)));
    // When all streams have a long lead, the oldest is completed first.
    check(0.4, &[Some(9.0), Some(8.0)], Some((1, 2.0)));
}

#[test]
fn a_slower_machine_gets_windows_that_pay_for_their_context() {
    for (render_rtf, first_s) in [(0.1, 0.15), (0.4, 0.15), (0.5, 0.232), (0.65, 0.681), (3.0, 1.0)]
    {
        let mut scheduler = scheduler();
        scheduler.cost.render_rtf = render_rtf;
        assert!((scheduler.first_window_s() - first_s).abs() < 0.001, "{render_rtf}");
    }
}

#[test]
fn costs_are_learned_and_one_slow_step_changes_little() {
    let mut scheduler = scheduler();
    scheduler.rendered(1.0, Duration::from_secs(60));
    assert!(scheduler.first_window_s() < 0.25, "{}", scheduler.first_window_s());
    for _ in 0..20 {
        scheduler.rendered(1.0, Duration::from_secs(3));
    }
    assert_eq!(scheduler.first_window_s(), 1.0);
}

#[test]
fn a_stream_without_lead_goes_before_each_first_sound_once() {
    let now = Instant::now();
    let mut scheduler = scheduler_of(0.1);
    add(&mut scheduler, 1, Some(0.0), now);
    for stream in 2..=4 {
        add(&mut scheduler, stream, None, now);
        scheduler.started(stream);
    }
    let mut dealt = Vec::new();
    for step in 0..9 {
        // So much time passes that every listener has played all its sound.
        let now = now + Duration::from_secs(step);
        let turn = scheduler.pick(now).expect("all are ready");
        scheduler.sent(turn.stream, turn.window_s, now);
        dealt.push(turn.stream);
    }
    assert_eq!(dealt, [1, 2, 1, 2, 3, 1, 2, 3, 4]);
}

#[test]
fn a_stream_without_text_or_credit_is_skipped_until_it_is_ready() {
    let now = Instant::now();
    let mut scheduler = scheduler();
    add(&mut scheduler, 1, Some(0.0), now);
    add(&mut scheduler, 2, Some(9.0), now);
    scheduler.set_ready(1, false, now);
    assert_eq!(scheduler.pick(now).map(|turn| turn.stream), Some(2));
    scheduler.set_ready(2, false, now);
    assert_eq!(scheduler.pick(now), None);
    scheduler.set_ready(1, true, now);
    assert_eq!(scheduler.pick(now).map(|turn| turn.stream), Some(1));
    scheduler.remove(1);
    assert_eq!(scheduler.pick(now), None);
}

#[test]
fn the_queue_moves_on_when_no_started_stream_has_work() {
    let now = Instant::now();
    let mut scheduler = scheduler();
    add(&mut scheduler, 1, Some(0.0), now);
    add(&mut scheduler, 2, None, now);
    assert_eq!(scheduler.pick(now).map(|turn| turn.stream), Some(1));
    scheduler.set_ready(1, false, now);
    assert_eq!(scheduler.pick(now).map(|turn| turn.stream), Some(2));
    // A started stream does not return to the queue.
    scheduler.started(2);
    scheduler.set_ready(1, true, now);
    assert_eq!(scheduler.first_awaited(now), Some(2));
}

#[test]
fn a_pause_in_the_text_gives_no_priority_later() {
    let start = Instant::now();
    let mut scheduler = scheduler();
    // The text of the first stream paused for an hour. The second ran out of sound a second ago.
    add(&mut scheduler, 1, Some(1.0), start);
    scheduler.set_ready(1, false, start);
    let later = start + Duration::from_secs(3600);
    add(&mut scheduler, 2, Some(1.0), later - Duration::from_secs(2));
    scheduler.set_ready(1, true, later);
    assert_eq!(scheduler.pick(later).map(|turn| turn.stream), Some(2));
}

#[test]
fn a_listener_without_sound_continues_from_now() {
    let start = Instant::now();
    let mut scheduler = scheduler();
    add(&mut scheduler, 1, Some(1.0), start);
    let later = start + Duration::from_secs(10);
    scheduler.sent(1, 1.0, later);
    assert!(scheduler.pick(later).is_some_and(|turn| turn.window_s > 1.0));
}

#[test]
fn a_steady_stream_gets_windows_of_one_length_when_listeners_can_wait() {
    let check = |leads_s: &[Option<f32>], waited_s: f32, expect: u32| {
        let asked = Instant::now();
        let now = asked + Duration::from_secs_f32(waited_s);
        let mut scheduler = scheduler();
        scheduler.add(9, SpeechPace::Steady);
        scheduler.set_ready(9, true, asked);
        for (stream, lead_s) in (1..).zip(leads_s) {
            add(&mut scheduler, stream, *lead_s, now);
        }
        let turn = scheduler.pick(now).expect("all are ready");
        assert_eq!(turn.stream, expect, "{leads_s:?} after {waited_s} s");
        if turn.stream == 9 {
            assert_eq!(turn.window_s, 2.0, "{leads_s:?}");
            // Then it waits again, as long as before.
            scheduler.sent(9, 2.0, now);
            let next = scheduler.pick(now).map(|turn| turn.stream);
            let others_first =
                leads_s.iter().any(|lead_s| lead_s.is_none_or(|lead_s| lead_s < 2.0));
            assert_eq!(next, Some(if others_first { 1 } else { 9 }), "{leads_s:?}");
        }
    };
    check(&[], 0.0, 9);
    check(&[Some(9.0), Some(3.0)], 0.0, 9);
    check(&[Some(9.0), Some(1.0)], 0.0, 2);
    check(&[Some(9.0), None], 0.0, 2);
    check(&[None], 0.0, 1);
    check(&[None], 4.9, 1);
    check(&[None], 5.0, 9);
    check(&[Some(0.1)], 5.0, 9);
}

#[test]
fn a_steady_stream_does_not_delay_the_start_of_others() {
    let now = Instant::now();
    let mut scheduler = scheduler();
    scheduler.add(1, SpeechPace::Steady);
    scheduler.set_ready(1, true, now);
    scheduler.started(1);
    add(&mut scheduler, 2, None, now);
    assert_eq!(scheduler.pick(now), Some(NextWindow { stream: 2, window_s: 0.15 }));
}

#[test]
fn two_windows_are_computed_at_once_if_no_listener_runs_out_of_sound() {
    let check = |pair_share: f32, leads_s: &[Option<f32>], expect: Option<(u32, f32)>| {
        let now = Instant::now();
        let mut scheduler = scheduler();
        scheduler.cost.pair_share = pair_share;
        for (stream, lead_s) in (1..).zip(leads_s) {
            add(&mut scheduler, stream, *lead_s, now);
        }
        let first = scheduler.pick(now).expect("a window");
        let second = scheduler.pick_second(first, |_| Some(60.0), now);
        assert_eq!(second.map(|turn| (turn.stream, turn.window_s)), expect, "{leads_s:?}");
        assert_eq!(
            scheduler.pick_second(first, |stream| (stream == 2).then_some(60.0), now),
            None,
            "{leads_s:?}"
        );
    };
    check(0.9, &[Some(9.0)], None);
    check(0.9, &[Some(9.0), Some(8.0)], Some((2, 2.0)));
    check(0.9, &[Some(9.0), Some(8.0), Some(7.0)], Some((3, 2.0)));
    // A short lead leaves no time for another stream's window.
    check(0.9, &[Some(0.1), Some(8.0)], None);
    check(0.9, &[Some(0.0), Some(0.0)], None);
    // One after the other is faster.
    check(1.1, &[Some(9.0), Some(8.0)], None);
    // A first sound gets all cores; a stream without room waits.
    check(0.9, &[Some(60.0), Some(60.0), None], None);
}

#[test]
fn a_listener_outside_of_a_pair_has_time_for_its_own_window() {
    for (lead_s, is_paired) in [(2.3, false), (3.1, true)] {
        let now = Instant::now();
        let mut scheduler = scheduler();
        add(&mut scheduler, 1, Some(lead_s), now);
        for stream in 2..=3 {
            scheduler.add(stream, SpeechPace::Steady);
            scheduler.set_ready(stream, true, now);
        }
        let first = scheduler.pick(now).expect("a window");
        assert_eq!(first.stream, 2);
        // The listener's stream begins a unit next.
        let second = scheduler.pick_second(first, |stream| (stream != 1).then_some(60.0), now);
        assert_eq!(second.is_some(), is_paired, "{lead_s} s");
    }
}

#[test]
fn two_windows_at_once_have_one_length_and_are_ready_in_time() {
    // The leads of the second listener, and the sound that is left of its unit.
    for (lead_s, left_s, is_paired) in [(1.85, 60.0, false), (2.1, 60.0, true), (2.1, 1.9, false)] {
        let now = Instant::now();
        let mut scheduler = scheduler();
        add(&mut scheduler, 1, Some(9.0), now);
        add(&mut scheduler, 2, Some(lead_s), now);
        let first = NextWindow { stream: 1, window_s: 2.0 };
        let left = |stream| Some(if stream == 2 { left_s } else { 60.0 });
        let second = scheduler.pick_second(first, left, now);
        let expect = is_paired.then_some(NextWindow { stream: 2, window_s: 2.0 });
        assert_eq!(second, expect, "{lead_s} s, {left_s} s left");
    }
}

#[test]
fn a_slow_machine_computes_one_window_after_the_other_so_that_requests_wait_for_one() {
    for (render_rtf, is_paired) in [(0.5, true), (0.6, false)] {
        let now = Instant::now();
        let mut scheduler = scheduler_of(render_rtf);
        add(&mut scheduler, 1, Some(60.0), now);
        add(&mut scheduler, 2, Some(60.0), now);
        let first = scheduler.pick(now).expect("a window");
        assert_eq!(scheduler.pick_second(first, |_| Some(60.0), now).is_some(), is_paired);
    }
}

#[test]
fn steady_streams_are_computed_at_once() {
    let now = Instant::now();
    let mut scheduler = scheduler();
    for stream in 1..=2 {
        scheduler.add(stream, SpeechPace::Steady);
        scheduler.set_ready(stream, true, now);
    }
    let first = scheduler.pick(now).expect("a window");
    let second = scheduler.pick_second(first, |_| Some(60.0), now);
    assert_eq!(second, Some(NextWindow { stream: 2, window_s: 2.0 }));
}

#[test]
fn pairs_that_are_slower_are_tried_again_later() {
    let now = Instant::now();
    let mut scheduler = scheduler();
    add(&mut scheduler, 1, Some(9.0), now);
    add(&mut scheduler, 2, Some(9.0), now);
    let is_paired = |scheduler: &WindowScheduler| {
        let first = scheduler.pick(now).expect("a window");
        scheduler.pick_second(first, |_| Some(60.0), now).is_some()
    };
    let cost = |windows: f32| Duration::from_secs_f32(windows * 0.4 * 2.125);
    for _ in 0..2 {
        assert!(is_paired(&scheduler));
        scheduler.rendered_pair(4.0, cost(2.0 * 1.2));
    }
    assert!(!is_paired(&scheduler));
    for _ in 0..150 {
        scheduler.rendered(2.0, cost(1.0));
    }
    assert!(is_paired(&scheduler));
}

/// A machine on which a unit costs `begin_s` and a second of sound `rtf`. Two windows together take a tenth less time.
struct Machine {
    begin_s: f32,
    rtf: f32,
    pairs: usize,
    now: Instant,
    scheduler: WindowScheduler,
    streams: Vec<Simulated>,
}

/// A request of one unit that comes at `arrives` and has `left_s` of sound.
#[derive(Clone, Copy)]
struct Simulated {
    arrives: Instant,
    is_begun: bool,
    left_s: f32,
    sent_s: f32,
    first_sent: Option<Instant>,
    /// The longest gap that its listener had after the first sound.
    gap_s: f32,
    done: Option<Instant>,
}

impl Machine {
    fn new(begin_s: f32, rtf: f32, arrivals_s: &[f32], sound_s: f32) -> Machine {
        let now = Instant::now();
        let stream = |at_s: &f32| Simulated {
            arrives: now + Duration::from_secs_f32(*at_s),
            is_begun: false,
            left_s: sound_s,
            sent_s: 0.0,
            first_sent: None,
            gap_s: 0.0,
            done: None,
        };
        let mut scheduler = WindowScheduler::new(WindowLengths::default());
        // The machine has already run for some time.
        scheduler.cost = Cost { begin_s, render_rtf: rtf, pair_share: PAIR_SHARE };
        let streams = arrivals_s.iter().map(stream).collect();
        Machine { begin_s, rtf, pairs: 0, now, scheduler, streams }
    }

    fn run(&mut self, steps_max: usize) {
        for _ in 0..steps_max {
            self.admit();
            let Some(turn) = self.scheduler.pick(self.now) else {
                let Some(next) = self.next_arrival() else { return };
                self.now = next;
                continue;
            };
            let left_s = |id: u32| {
                let stream = &self.streams[id as usize];
                stream.is_begun.then_some(stream.left_s)
            };
            match self.scheduler.pick_second(turn, left_s, self.now) {
                Some(second) => self.step_pair([turn, second]),
                None => self.step(turn),
            }
        }
    }

    fn step_pair(&mut self, turns: [NextWindow; 2]) {
        self.pairs += 1;
        let sounds_s =
            turns.map(|turn| turn.window_s.min(self.streams[turn.stream as usize].left_s));
        let context_s = WindowLengths::default().context_s;
        // Each on half of the cores, so the longer one decides.
        let longer_s = sounds_s[0].max(sounds_s[1]);
        let cost = Duration::from_secs_f32(2.0 * 0.9 * (longer_s + context_s) * self.rtf);
        self.now += cost;
        self.scheduler.rendered_pair(sounds_s[0] + sounds_s[1], cost);
        for (turn, sound_s) in turns.into_iter().zip(sounds_s) {
            self.send(turn.stream, sound_s);
        }
    }

    fn admit(&mut self) {
        for (id, stream) in (0..).zip(&self.streams) {
            let is_new = stream.done.is_none() && !self.scheduler.streams.contains_key(&id);
            if stream.arrives <= self.now && is_new {
                self.scheduler.add(id, SpeechPace::Live);
                self.scheduler.set_ready(id, true, stream.arrives);
            }
        }
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.streams.iter().map(|stream| stream.arrives).filter(|at| *at > self.now).min()
    }

    fn step(&mut self, turn: NextWindow) {
        let stream = &mut self.streams[turn.stream as usize];
        if !stream.is_begun {
            stream.is_begun = true;
            self.scheduler.started(turn.stream);
            let cost = Duration::from_secs_f32(self.begin_s);
            self.now += cost;
            return self.scheduler.began(cost);
        }
        let sound_s = turn.window_s.min(stream.left_s);
        let context_s = WindowLengths::default().context_s;
        let cost = Duration::from_secs_f32((sound_s + context_s) * self.rtf);
        self.now += cost;
        self.scheduler.rendered(sound_s, cost);
        self.send(turn.stream, sound_s);
    }

    fn send(&mut self, id: u32, sound_s: f32) {
        let stream = &mut self.streams[id as usize];
        stream.hear(sound_s, self.now);
        self.scheduler.sent(id, sound_s, self.now);
        if stream.left_s > 0.001 {
            self.scheduler.set_ready(id, true, self.now);
        } else {
            stream.done = Some(self.now);
            self.scheduler.remove(id);
        }
    }

    /// Seconds from the machine's first moment to `at`.
    fn seconds(begun: Instant, at: Option<Instant>) -> f32 {
        at.map_or(f32::INFINITY, |at| (at - begun).as_secs_f32())
    }
}

impl Simulated {
    fn hear(&mut self, sound_s: f32, now: Instant) {
        match self.first_sent {
            None => self.first_sent = Some(now),
            Some(first) => {
                let late_s = (now - first).as_secs_f32() - self.sent_s - self.gap_s;
                self.gap_s += late_s.max(0.0);
            }
        }
        self.sent_s += sound_s;
        self.left_s -= sound_s;
    }

    fn waited_s(&self) -> f32 {
        self.first_sent.map_or(f32::INFINITY, |first| (first - self.arrives).as_secs_f32())
    }
}

proptest! {
    #[test]
    fn a_machine_that_is_fast_enough_leaves_no_gap_and_no_long_wait(
        arrivals_s in vec(0.0f32..1.0, 1..12),
        rtf in 0.02f32..0.035,
    ) {
        let begin_s = 0.04;
        let mut machine = Machine::new(begin_s, rtf, &arrivals_s, 10.0);
        machine.run(100_000);
        // Before each first sound, every other listener may get a short window, and the stream that started last gets
        // one of the longest as its lead.
        let clients = arrivals_s.len() as f32;
        let (first_s, longest_s) = ((0.15 + 0.125) * rtf, (2.0 + 0.125) * rtf);
        let wait_s_max = clients * (begin_s + clients * first_s + longest_s);
        for stream in &machine.streams {
            prop_assert!(stream.left_s < 0.001);
            prop_assert!(stream.gap_s < 0.001, "a gap of {} s", stream.gap_s);
            prop_assert!(stream.waited_s() <= wait_s_max, "waited {} s", stream.waited_s());
        }
    }

    #[test]
    fn a_machine_that_is_just_fast_enough_keeps_its_listener_waiting_once(rtf in 0.5f32..0.85) {
        let mut machine = Machine::new(0.2, rtf, &[0.0], 60.0);
        machine.run(100_000);
        let stream = &machine.streams[0];
        prop_assert!(stream.left_s < 0.001);
        prop_assert!(stream.gap_s < 1.0, "gaps of {} s", stream.gap_s);
    }

    #[test]
    fn a_machine_that_is_too_slow_serves_one_after_the_other(
        requests in 2..10usize,
        rtf in 1.0f32..4.0,
    ) {
        let mut machine = Machine::new(0.2, rtf, &vec![0.0; requests], 5.0);
        machine.run(10_000);
        for pair in machine.streams.windows(2) {
            prop_assert!(pair[0].done.is_some());
            prop_assert!(pair[0].done <= pair[1].first_sent, "the second began before the first was done");
        }
    }

    #[test]
    fn who_is_started_is_kept_ahead(
        arrivals_s in vec(0.0f32..20.0, 1..17),
        rtf in 0.05f32..0.6,
        sound_s in 3.0f32..20.0,
    ) {
        let mut machine = Machine::new(0.05, rtf, &arrivals_s, sound_s);
        machine.run(100_000);
        for stream in &machine.streams {
            prop_assert!(stream.done.is_some());
            prop_assert!(stream.gap_s < 0.001, "a gap of {} s", stream.gap_s);
        }
    }
}

/// A page that reads an answer aloud requests all its sentences at the same time.
#[test]
fn sixteen_simultaneous_sentences_are_completed_one_after_the_other() {
    let (rtf, sound_s) = (0.4, 12.5);
    let mut machine = Machine::new(0.1, rtf, &[0.0; 16], sound_s);
    let begun = machine.now;
    machine.run(100_000);
    let done: Vec<f32> =
        machine.streams.iter().map(|stream| Machine::seconds(begun, stream.done)).collect();
    assert!(done.is_sorted(), "first come, first done: {done:.1?}");
    // One sentence alone takes 5 s. If all 16 took turns, the first would be complete after 80 s.
    assert!(done[0] < 2.0 * rtf * sound_s, "{done:.1?}");
    assert!(done[15] < 1.2 * 16.0 * rtf * sound_s, "little is lost on it: {done:.1?}");
    assert!(machine.streams.iter().all(|stream| stream.gap_s < 0.001));
}

#[test]
fn eight_long_texts_are_computed_in_pairs() {
    let mut machine = Machine::new(0.05, 0.05, &[0.0; 8], 60.0);
    machine.run(100_000);
    assert!(machine.pairs > 100, "{}", machine.pairs);
    assert!(machine.streams.iter().all(|stream| stream.gap_s < 0.001));
}
