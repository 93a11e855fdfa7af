//! Statistics of the last hour's requests, by requested name. They are in memory, so a view
//! needs no disk. Older requests, and those beyond the limits, are in the request log.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hob_core::statistics::Sample;
use hob_wire::AliasView;

use crate::keys::without_version;
use crate::ledger::{Outcome, RequestRecord};

const KEPT: Duration = Duration::from_secs(3600);

/// Names come from clients. Beyond this number, the name that was unused for longest is dropped.
const NAMES_MAX: usize = 64;

/// Requests that are kept for each name; older ones are dropped.
const EACH_MAX: usize = 512;

/// By name.
#[derive(Debug, Default)]
pub(super) struct LastHour(BTreeMap<String, Ring>);

#[derive(Debug, Default)]
struct Ring {
    /// Oldest first.
    marks: VecDeque<Mark>,
    /// When the last request that was dropped had ended.
    lost: Option<Instant>,
}

/// The data that is kept of one request.
#[derive(Clone, Debug)]
struct Mark {
    ended: Instant,
    key: Option<Arc<str>>,
    outcome: Outcome,
    is_warm: bool,
    first_ms: Option<f64>,
    total_ms: f64,
    tokens_per_s: Option<f64>,
}

impl LastHour {
    pub(super) fn add(&mut self, ended: Instant, entry: &RequestRecord) {
        let name = without_version(&entry.alias);
        if !self.0.contains_key(name) {
            self.drop_oldest();
            self.0.insert(name.to_owned(), Ring::default());
        }
        if let Some(ring) = self.0.get_mut(name) {
            ring.add(Mark {
                ended,
                key: entry.key.as_deref().map(Arc::from),
                outcome: entry.outcome,
                is_warm: entry.is_warm,
                first_ms: entry.first_ms,
                total_ms: entry.total_ms,
                tokens_per_s: entry.tokens_per_s(),
            });
        }
    }

    /// Statistics for requests with a visible key. Names without a request in the last hour are left out.
    pub(super) fn seen(
        &self,
        now: Instant,
        sees: impl Fn(Option<&str>) -> bool,
    ) -> Vec<(String, Statistics)> {
        let statistics = |(name, ring): (&String, &Ring)| {
            let statistics = ring.statistics(now, &sees);
            (statistics.requests > 0).then(|| (name.clone(), statistics))
        };
        self.0.iter().filter_map(statistics).collect()
    }

    fn drop_oldest(&mut self) {
        if self.0.len() < NAMES_MAX {
            return;
        }
        let last = |ring: &Ring| ring.marks.back().map(|mark| mark.ended);
        let oldest = self.0.iter().min_by_key(|(_, ring)| last(ring));
        if let Some(name) = oldest.map(|(name, _)| name.clone()) {
            self.0.remove(&name);
        }
    }
}

impl Ring {
    fn add(&mut self, mark: Mark) {
        if self.marks.len() >= EACH_MAX {
            self.lost = self.marks.pop_front().map(|lost| lost.ended);
        }
        self.marks.push_back(mark);
    }

    fn statistics(&self, now: Instant, sees: impl Fn(Option<&str>) -> bool) -> Statistics {
        let is_young = |ended: Instant| now.saturating_duration_since(ended) < KEPT;
        let mut statistics =
            Statistics { had_more: self.lost.is_some_and(is_young), ..Statistics::default() };
        let young = self.marks.iter().rev().take_while(|mark| is_young(mark.ended));
        for mark in young.filter(|mark| sees(mark.key.as_deref())) {
            statistics.add(mark);
        }
        statistics
    }
}

/// Figures of one name, unsorted: sorting happens after the lock is released.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    requests: usize,
    failed: usize,
    had_more: bool,
    warm: Vec<f64>,
    cold: Vec<f64>,
    total: Vec<f64>,
    tokens_per_s: Vec<f64>,
}

impl Statistics {
    fn add(&mut self, mark: &Mark) {
        self.requests += 1;
        self.failed += usize::from(mark.outcome == Outcome::Failed);
        let first = if mark.is_warm { &mut self.warm } else { &mut self.cold };
        first.extend(mark.first_ms);
        if mark.outcome == Outcome::Complete {
            self.total.push(mark.total_ms);
        }
        self.tokens_per_s.extend(mark.tokens_per_s);
    }

    pub(super) fn into_view(self, name: String) -> AliasView {
        AliasView {
            name,
            requests: self.requests,
            had_more: self.had_more,
            failed: self.failed,
            warm: Sample::new(self.warm),
            cold: Sample::new(self.cold),
            total: Sample::new(self.total),
            tokens_per_s: Sample::new(self.tokens_per_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(alias: &str, first_ms: f64) -> RequestRecord {
        RequestRecord {
            alias: alias.to_owned(),
            first_ms: Some(first_ms),
            total_ms: first_ms + 100.0,
            is_warm: true,
            outcome: Outcome::Complete,
            ..RequestRecord::default()
        }
    }

    fn views(hour: &LastHour, now: Instant) -> Vec<AliasView> {
        let seen = hour.seen(now, |_| true);
        seen.into_iter().map(|(name, statistics)| statistics.into_view(name)).collect()
    }

    #[test]
    fn warm_and_cold_are_apart_and_failures_have_no_total() {
        let (mut hour, now) = (LastHour::default(), Instant::now());
        for first_ms in 1..=20 {
            hour.add(now, &entry("fast:latest", f64::from(first_ms)));
        }
        hour.add(now, &RequestRecord { is_warm: false, ..entry("fast", 900.0) });
        let failed =
            RequestRecord { outcome: Outcome::Failed, first_ms: None, ..entry("fast", 0.0) };
        hour.add(now, &failed);
        let view = views(&hour, now).remove(0);
        assert_eq!((view.name.as_str(), view.requests, view.failed), ("fast", 22, 1));
        assert_eq!((view.warm.p50(), view.warm.p95()), (Some(10.0), Some(19.0)));
        assert_eq!((view.cold.p50(), view.cold.p95()), (Some(900.0), None));
        assert_eq!((view.total.count(), view.total.p50()), (21, Some(111.0)));
        assert!(!view.had_more);
    }

    #[test]
    fn an_hour_later_nothing_is_left() {
        let (mut hour, now) = (LastHour::default(), Instant::now());
        hour.add(now, &entry("fast", 1.0));
        hour.add(now + Duration::from_secs(60), &entry("fast", 2.0));
        let left = views(&hour, now + KEPT);
        assert_eq!((left.len(), left[0].requests), (1, 1));
        assert_eq!(views(&hour, now + KEPT + Duration::from_secs(60)), []);
    }

    #[test]
    fn the_latest_are_kept_and_that_there_were_more_is_said() {
        let (mut hour, now) = (LastHour::default(), Instant::now());
        for first_ms in 0..EACH_MAX + 1 {
            hour.add(now, &entry("fast", first_ms as f64));
        }
        let view = views(&hour, now).remove(0);
        assert_eq!((view.requests, view.had_more), (EACH_MAX, true));
        for at in 0..NAMES_MAX as u64 {
            hour.add(now + Duration::from_secs(1 + at), &entry(&format!("name-{at}"), 1.0));
        }
        let names: Vec<String> = views(&hour, now).into_iter().map(|view| view.name).collect();
        assert_eq!(names.len(), NAMES_MAX);
        assert!(!names.contains(&"fast".to_owned()), "the one asked for longest ago");
    }

    #[test]
    fn others_requests_do_not_count() {
        let (mut hour, now) = (LastHour::default(), Instant::now());
        hour.add(now, &RequestRecord { key: Some("laptop".to_owned()), ..entry("fast", 1.0) });
        hour.add(now, &RequestRecord { key: Some("phone".to_owned()), ..entry("fast", 2.0) });
        hour.add(now, &RequestRecord { key: Some("laptop".to_owned()), ..entry("slow", 3.0) });
        let seen = hour.seen(now, |key| key == Some("phone"));
        let seen: Vec<(String, usize)> =
            seen.into_iter().map(|(name, statistics)| (name, statistics.requests)).collect();
        assert_eq!(seen, [("fast".to_owned(), 1)]);
    }
}
