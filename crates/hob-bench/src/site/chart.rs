//! Charts, drawn when the page is built: bars and dots with their intervals, and curves over the context or over time.
//! Numbers stand beside them in words; a chart is for the eye and says nothing that a table does not.

use std::fmt::Write as _;

use maud::{Markup, html};

use crate::written::number;

/// A bar with what it is called. Widths are per mille of the widest.
pub(super) struct Bar {
    pub(super) label: Markup,
    pub(super) value: f64,
    pub(super) shown: String,
    pub(super) interval: Option<[f64; 2]>,
    pub(super) look: Look,
}

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Hard,
    Soft,
    /// What is compared with.
    Other,
}

impl Look {
    fn class(self) -> &'static str {
        match self {
            Look::Hard => "hard",
            Look::Soft => "soft",
            Look::Other => "other",
        }
    }
}

/// The widest is as wide as there is room.
pub(super) fn bars(all: &[Bar]) -> Markup {
    bars_to(widest(all), all)
}

pub(super) fn widest(bars: &[Bar]) -> f64 {
    let end = |bar: &Bar| bar.interval.map_or(bar.value, |[_, high]| high.max(bar.value));
    bars.iter().map(end).fold(0.0, f64::max)
}

/// On a scale that several charts share.
pub(super) fn bars_to(most: f64, bars: &[Bar]) -> Markup {
    if most <= 0.0 {
        return html! {};
    }
    let x = |value: f64| format!("{:.1}", value / most * 1000.0);
    html! {
        ul.bars {
            @for bar in bars {
                li class=(bar.look.class()) {
                    span.label { (bar.label) }
                    svg viewBox="0 0 1000 16" preserveAspectRatio="none" aria-hidden="true" {
                        rect x="0" y="2" width=(x(bar.value)) height="12" {}
                        @if let Some([low, high]) = bar.interval {
                            path.whisker d={ "M" (x(low)) " 8H" (x(high)) "M" (x(low)) " 4V12M" (x(high)) " 4V12" } {}
                        }
                    }
                    span.value { (bar.shown) }
                }
            }
        }
    }
}

/// Points that belong together, from left to right.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) interval: Option<[f64; 2]>,
}

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 34.0;
/// More lines than this nobody tells apart.
const SERIES_MAX: usize = 6;

/// What lies to the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Across {
    /// Twice as far, one step; as contexts grow.
    Tokens,
    Seconds,
}

impl Across {
    fn place(self, x: f64) -> f64 {
        match self {
            Across::Tokens => x.max(1.0).log2(),
            Across::Seconds => x,
        }
    }

    /// Every point, or the two ends.
    fn marks(self, mut xs: Vec<f64>) -> Vec<(f64, &'static str, String)> {
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        match self {
            Across::Tokens => xs.into_iter().map(|x| (x, "middle", thousands(x))).collect(),
            Across::Seconds => {
                let ends = xs.first().copied().zip(xs.last().copied());
                let named =
                    |(first, last)| [(first, "start", day(first)), (last, "end", day(last))];
                ends.into_iter().flat_map(named).collect()
            }
        }
    }
}

/// Doubling to the right, as contexts do; from nothing upwards.
pub(super) fn curves(title: &str, unit: &str, series: &[Series]) -> Markup {
    plot(title, unit, series, Across::Tokens)
}

/// From the first day to the last; `x` of the points is in seconds since 1970.
pub(super) fn over_time(title: &str, unit: &str, series: &[Series]) -> Markup {
    plot(title, unit, series, Across::Seconds)
}

fn plot(title: &str, unit: &str, series: &[Series], across: Across) -> Markup {
    let left_out = series.len().saturating_sub(SERIES_MAX);
    let series = &series[..series.len() - left_out];
    let points: Vec<Point> =
        series.iter().flat_map(|series| series.points.iter().copied()).collect();
    let xs =
        |fold: fn(f64, f64) -> f64| points.iter().map(|point| across.place(point.x)).reduce(fold);
    let (Some(first), Some(last)) = (xs(f64::min), xs(f64::max)) else { return html! {} };
    let most = points
        .iter()
        .map(|point| point.interval.map_or(point.y, |[_, high]| high))
        .fold(0.0, f64::max);
    if first >= last || most <= 0.0 {
        return html! {};
    }
    let step = nice(most / 4.0);
    let top = (most / step).ceil() * step;
    let x =
        |value: f64| LEFT + (across.place(value) - first) / (last - first) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
    let rungs = (0..=(top / step).round() as u32).map(|rung| f64::from(rung) * step);
    let marks = across.marks(points.iter().map(|point| point.x).collect());
    html! {
        figure.chart {
            figcaption { (title) @if !unit.is_empty() { ", " (unit) } }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(title) {
                @for rung in rungs {
                    path.rung d={ "M" (at(LEFT)) " " (at(y(rung))) "H" (at(WIDTH - RIGHT)) } {}
                    text x=(at(LEFT - 8.0)) y=(at(y(rung) + 4.0)) text-anchor="end" { (number(rung)) }
                }
                @for (mark, anchor, name) in marks { text x=(at(x(mark))) y=(at(HEIGHT - 12.0)) text-anchor=(anchor) { (name) } }
                @for (index, series) in series.iter().enumerate() {
                    g class={ "series s" (index) } {
                        path.line d=(line(&series.points, &x, &y)) {}
                        @for point in &series.points {
                            @if let Some([low, high]) = point.interval { path.whisker d={ "M" (at(x(point.x))) " " (at(y(low))) "V" (at(y(high))) } {} }
                            circle cx=(at(x(point.x))) cy=(at(y(point.y))) r="3.5" {}
                        }
                    }
                }
            }
            ul.legend { @for (index, series) in series.iter().enumerate() { li class={ "s" (index) } { (series.name) } } }
            @if left_out > 0 { p.none { (left_out) " more are in the table." } }
        }
    }
}

fn line(points: &[Point], x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) -> String {
    let mut path = String::new();
    for (index, point) in points.iter().enumerate() {
        let pen = if index == 0 { 'M' } else { 'L' };
        // Writing to a String cannot fail.
        let _infallible = write!(path, "{pen}{} {}", at(x(point.x)), at(y(point.y)));
    }
    path
}

const DOTS_HEIGHT: f64 = 96.0;
/// Beyond this many, dots are one grey bar.
const DOTS_MAX: usize = 2_000;

/// Every value as a dot, in the order in which it came; the median as a line, its interval as a band.
pub(super) fn dots(
    title: &str,
    values: &[f64],
    median: Option<f64>,
    interval: Option<[f64; 2]>,
) -> Markup {
    let (low, high) = values
        .iter()
        .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
    if values.is_empty() || !low.is_finite() || !high.is_finite() {
        return html! {};
    }
    let room = ((high - low) * 0.08).max(high.abs() * 0.01).max(1e-6);
    let (bottom, top) = ((low - room).max(0.0_f64.min(low)), high + room);
    let y = |value: f64| 8.0 + (top - value) / (top - bottom) * (DOTS_HEIGHT - 16.0);
    let step = (WIDTH - LEFT - RIGHT) / values.len() as f64;
    let x = |index: usize| LEFT + (index as f64 + 0.5) * step;
    html! {
        figure.chart.dots {
            figcaption { (title) }
            svg viewBox={ "0 0 " (WIDTH) " " (DOTS_HEIGHT) } role="img" aria-label={ (title) ": " (values.len()) " values from " (number(low)) " to " (number(high)) } {
                @if let Some([from, to]) = interval {
                    rect.band x=(at(LEFT)) y=(at(y(to))) width=(at(WIDTH - LEFT - RIGHT)) height=(at((y(from) - y(to)).max(1.0))) {}
                }
                @if let Some(median) = median { path.median d={ "M" (at(LEFT)) " " (at(y(median))) "H" (at(WIDTH - RIGHT)) } {} }
                text x=(at(LEFT - 8.0)) y=(at(y(high) + 4.0)) text-anchor="end" { (number(high)) }
                @if y(low) - y(high) > 16.0 { text x=(at(LEFT - 8.0)) y=(at(y(low) + 4.0)) text-anchor="end" { (number(low)) } }
                @for (index, value) in values.iter().take(DOTS_MAX).enumerate() { circle cx=(at(x(index))) cy=(at(y(*value))) r="2.5" {} }
            }
        }
    }
}

fn at(value: f64) -> String {
    format!("{value:.1}")
}

/// One, two or five of a power of ten.
fn nice(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let times = [1.0, 2.0, 5.0, 10.0].into_iter().find(|times| times * power >= step);
    times.unwrap_or(10.0) * power
}

/// `512`, `4k`, `128k`.
fn thousands(tokens: f64) -> String {
    match tokens {
        tokens if tokens >= 1024.0 => format!("{}k", number((tokens / 1024.0).round())),
        tokens => number(tokens),
    }
}

/// `2026-11-21`.
fn day(second: f64) -> String {
    let time = jiff::Timestamp::from_second(second as i64);
    time.map_or_else(|_| String::new(), |time| time.to_string().chars().take(10).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_that_people_count_in() {
        for (step, expected) in [(0.7, 1.0), (1.2, 2.0), (3.0, 5.0), (7.0, 10.0), (24.0, 50.0)] {
            assert!((nice(step) - expected).abs() < 1e-9, "{step}: {}", nice(step));
        }
        assert_eq!((thousands(512.0), thousands(131_072.0)), ("512".to_owned(), "128k".to_owned()));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(bars(&[]).into_string(), "");
        assert_eq!(curves("a", "", &[]).into_string(), "");
        assert_eq!(dots("a", &[], None, None).into_string(), "");
        let one =
            Series { name: "a".to_owned(), points: vec![Point { x: 1.0, y: 1.0, interval: None }] };
        assert_eq!(curves("a", "", &[one]).into_string(), "", "one point is no curve");
    }
}
