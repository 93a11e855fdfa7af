//! Speech: how long texts take to be spoken, in tiers; whether sound streams; how long a voice takes to answer.
//! The mean of three texts is computed where it was not published.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::chart::{Bar, Look, bars, bars_to, widest};
use super::layout::{Place, shell};
use super::rows::Row;
use super::{Material, cells};
use crate::record::{Kind, Record, SourceType, Spread, StreamVerdict, Tts};
use crate::speech::Text;
use crate::terms::Metric;
use crate::written::{figure, number, spread};

/// Characters of the longest text that still is short, and medium.
const SHORT_CHARS_MAX: u32 = 30;
const MEDIUM_CHARS_MAX: u32 = 120;

/// One model on one machine.
#[derive(Default)]
struct Spoken<'r, 'a> {
    rows: Vec<&'r Row<'a>>,
    /// Seconds for the short, the medium and the long text.
    texts_s: [Option<f64>; 3],
    published_mean_s: Option<f64>,
}

impl Spoken<'_, '_> {
    fn mean_s(&self) -> Option<f64> {
        let [Some(short), Some(medium), Some(long)] = self.texts_s else {
            return self.published_mean_s;
        };
        self.published_mean_s.or(Some((short + medium + long) / 3.0))
    }

    fn tier(&self) -> Option<u8> {
        self.mean_s().map(Tts::tier_of)
    }
}

pub(super) fn page(material: &Material, rows: &[Row<'_>]) -> Markup {
    let of = |kinds: &[Kind]| {
        rows.iter().filter(|row| kinds.contains(&row.record.kind)).collect::<Vec<_>>()
    };
    let (tts, stream) = (of(&[Kind::Tts]), of(&[Kind::Tts, Kind::Stream]));
    let body = html! {
        div.title { h1 { "Speech" } p.sub { "How long it takes until something is heard." } }
        (tiers(&tts))
        (streams(&stream))
        (voices(&of(&[Kind::Voice])))
        (heard(&of(&[Kind::Stt])))
        @if tts.is_empty() && stream.is_empty() { p.none { "Nothing was measured yet." } }
    };
    shell(material, &Place { title: "Speech", up: "", here: "speech.html" }, &body)
}

fn tiers(rows: &[&Row<'_>]) -> Markup {
    let all = spoken(rows);
    let mut ranked: Vec<&Spoken<'_, '_>> =
        all.values().filter(|spoken| spoken.mean_s().is_some()).collect();
    ranked.sort_by(|one, other| {
        one.mean_s().unwrap_or_default().total_cmp(&other.mean_s().unwrap_or_default())
    });
    let failed: Vec<_> = rows.iter().filter(|row| row.failed()).collect();
    let bar = |spoken: &&Spoken<'_, '_>| {
        let (row, mean) = (spoken.rows[0], spoken.mean_s().unwrap_or_default());
        let label = html! { (cells::model_link(row, "")) " " span.beside { (row.quant()) } };
        Bar {
            label,
            value: mean,
            shown: format!("{} s", number(mean)),
            interval: None,
            look: if row.is_hard() { Look::Hard } else { Look::Soft },
        }
    };
    let most = widest(&ranked.iter().map(bar).collect::<Vec<_>>());
    html! { @if !ranked.is_empty() { section {
        h2 { "Three texts, and their " (cells::term("tier", "tiers")) }
        @for tier in 1..=3 {
            @let of_tier: Vec<_> = ranked.iter().filter(|spoken| spoken.tier() == Some(tier)).copied().collect();
            @if !of_tier.is_empty() {
                h3 { "Tier " (tier) " " span.beside { (tier_words(tier)) } }
                (bars_to(most, &of_tier.iter().map(bar).collect::<Vec<_>>()))
            }
        }
        (tier_table(&ranked))
        @if !failed.is_empty() { p { "Failed: " @for row in failed { (cells::model_link(row, "")) " (" (row.record.invalid_reasons.join("; ")) ") " } } }
    } } }
}

fn tier_words(tier: u8) -> &'static str {
    match tier {
        1 => "under 3 s: an answer in a conversation",
        2 => "under 7 s: a wait",
        _ => "slower: for reading aloud ahead of time",
    }
}

fn tier_table(ranked: &[&Spoken<'_, '_>]) -> Markup {
    html! { div.wide role="region" aria-label="Three texts" tabindex="0" { table.sortable {
        thead { tr {
            th scope="col" { "model" } th scope="col" { "quant" } th scope="col" { "hardware" }
            th.number scope="col" { "short" } th.number scope="col" { "medium" } th.number scope="col" { "long" }
            th.number scope="col" { "mean" } th.number scope="col" { (cells::term("tier", "tier")) } th scope="col" { "badge" }
        } }
        tbody { @for spoken in ranked {
            @let row = spoken.rows[0];
            tr {
                td { (cells::model_link(row, "")) } td { (row.quant()) } td { (cells::rig_link(row, "")) }
                @for seconds in spoken.texts_s.into_iter().chain([spoken.mean_s()]) {
                    td.number data-s=[seconds] { @if let Some(seconds) = seconds { (number(seconds)) " " span.unit { "s" } } }
                }
                td.number data-s=[spoken.tier()] { @if let Some(tier) = spoken.tier() { (tier) } }
                td { (cells::badge(row, if row.is_hard() { "hard" } else { "soft" })) }
            }
        } }
    } } }
}

/// The newest of each text.
fn spoken<'r, 'a>(
    rows: &[&'r Row<'a>],
) -> BTreeMap<(String, String, String, String), Spoken<'r, 'a>> {
    let mut all: BTreeMap<_, Spoken<'r, 'a>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.failed() && is_of_tiers(row.record)) {
        let Some(ms) = row.record.metrics.figure(Metric::WallMs) else { continue };
        let chars = row.record.tts.as_ref().and_then(|tts| tts.chars);
        let key =
            (row.model_slug.clone(), row.quant().to_owned(), row.rig_slug.clone(), row.engine());
        let spoken = all.entry(key).or_default();
        spoken.rows.push(row);
        let place = match chars {
            Some(chars) if chars <= SHORT_CHARS_MAX => &mut spoken.texts_s[0],
            Some(chars) if chars <= MEDIUM_CHARS_MAX => &mut spoken.texts_s[1],
            Some(_) => &mut spoken.texts_s[2],
            None if row.shape().starts_with("mean") => &mut spoken.published_mean_s,
            None => continue,
        };
        place.get_or_insert(ms / 1e3);
    }
    all
}

/// Of what others published nothing but the length is known; of what was measured here, the text.
fn is_of_tiers(record: &Record) -> bool {
    let text = record.workload.shape.as_deref().and_then(Text::named);
    let is_alone = record.workload.concurrency.is_none_or(|users| users == 1);
    record.source.r#type == SourceType::Import || is_alone && text.is_some_and(Text::is_of_tiers)
}

fn streams(rows: &[&Row<'_>]) -> Markup {
    let found: Vec<_> = rows.iter().filter(|row| row.range(Metric::TtfaMs).is_some()).collect();
    html! { @if !found.is_empty() { section {
        h2 { "First sound" }
        p { "A server may answer in pieces and still make everything first: then the first sound comes with the last. " (cells::term("spread", "Spread")) " tells." }
        div.wide role="region" aria-label="First sound" tabindex="0" { table.sortable {
            thead { tr { th scope="col" { "run" } th scope="col" { "model" } th scope="col" { "hardware" } th scope="col" { "engine" } th scope="col" { "text" }
                th.number scope="col" { (cells::term("ttfa_ms", "first sound")) } th.number scope="col" { "last" } th.number scope="col" { (cells::term("spread", "spread")) }
                th scope="col" { (cells::term("verdict", "streams")) } th scope="col" { "badge" } } }
            tbody { @for row in found { (stream(row)) } }
        } }
    } } }
}

fn stream(row: &Row<'_>) -> Markup {
    let tts = row.record.tts.clone().unwrap_or_default();
    let first = row.range(Metric::TtfaMs);
    let verdict = tts.verdict.map(|verdict| match verdict {
        StreamVerdict::TooShort => "too short to tell",
        StreamVerdict::Fake => "no: cut up at the end",
        StreamVerdict::Partial => "in part",
        StreamVerdict::Interrupted => "with gaps: slower than it plays",
        StreamVerdict::Streaming => "yes",
    });
    let length =
        tts.chars.map_or_else(|| row.shape().to_owned(), |chars| format!("{chars} characters"));
    let whole = tts.stream.filter(|is_asked| !is_asked).map(|_| "whole".to_owned());
    let text: Vec<String> =
        [Some(length), tts.format.clone(), whole].into_iter().flatten().collect();
    let text = text.join(", ");
    html! { tr {
        td { (cells::run_link(row, "")) } td { (cells::model_link(row, "")) } td { (cells::rig_link(row, "")) } td { (row.engine()) } td { (text) }
        td.number data-s=[first.map(|first| first.low)] { @if let Some(first) = first { (cells::range(first, "ms")) } }
        td.number data-s=[tts.last_ms] { @if let Some(last) = tts.last_ms { (figure(last, Metric::TtfaMs.term())) } }
        td.number data-s=[tts.spread] { @if let Some(spread) = tts.spread { (number(spread)) } }
        td { @if let Some(verdict) = verdict { (verdict) } }
        td { (cells::badge(row, if row.is_hard() { "hard" } else { "soft" })) }
    } }
}

fn voices(rows: &[&Row<'_>]) -> Markup {
    let found: Vec<(&Row<'_>, &Spread)> = rows
        .iter()
        .filter_map(|row| {
            let voice = row.record.voice.as_ref()?;
            Some((*row, voice.ttfa_ms.as_ref().or_else(|| row.record.metrics.get(Metric::TtfaMs))?))
        })
        .collect();
    html! { @if !found.is_empty() { section {
        h2 { "Voice" }
        p { "From the last word of a question to the first sound of the answer. A conversation wants half of the turns under 1.5 s, and the best under 0.8 s." }
        @for (row, ttfa) in found {
            p { strong { (spread(ttfa, Metric::TtfaMs)) } " in the middle"
                @if let (Some(min), Some(max)) = (ttfa.min, ttfa.max) { ", from " (figure(min, Metric::TtfaMs.term())) " to " (figure(max, Metric::TtfaMs.term())) }
                ": " (row.engine()) " on " (cells::rig_link(row, "")) " " (cells::badge(row, if row.is_hard() { "hard" } else { "soft" })) " " (cells::run_link(row, "")) }
            (stages(row))
        }
    } } }
}

fn stages(row: &Row<'_>) -> Markup {
    let stages = row.record.voice.as_ref().map(|voice| &voice.stages_ms);
    let bar = |(name, ms): (&String, &f64)| Bar {
        label: html! { (name.replace('_', " ")) },
        value: *ms,
        shown: figure(*ms, Metric::TtfaMs.term()),
        interval: None,
        look: Look::Other,
    };
    stages.map_or_else(|| html! {}, |stages| bars(&stages.iter().map(bar).collect::<Vec<_>>()))
}

fn heard(rows: &[&Row<'_>]) -> Markup {
    html! { @if !rows.is_empty() { section {
        h2 { "Hearing" }
        div.wide role="region" aria-label="Hearing" tabindex="0" { table.sortable {
            thead { tr { th scope="col" { "run" } th scope="col" { "model" } th scope="col" { "hardware" } th.number scope="col" { (cells::term("wer", "word errors")) }
                th.number scope="col" { (cells::term("rtf", "real-time factor")) } th.number scope="col" { "utterances" } th scope="col" { "badge" } } }
            tbody { @for row in rows { @let stt = row.record.stt.clone().unwrap_or_default(); tr {
                td { (cells::run_link(row, "")) } td { (cells::model_link(row, "")) } td { (cells::rig_link(row, "")) }
                td.number data-s=[stt.wer] { @if let Some(wer) = stt.wer { (number(wer * 100.0)) " %" } }
                td.number data-s=[stt.rtf] { @if let Some(rtf) = stt.rtf { (number(rtf)) } }
                td.number data-s=[stt.utterances] { @if let Some(n) = stt.utterances { (n) } }
                td { (cells::badge(row, if row.is_hard() { "hard" } else { "soft" })) }
            } } }
        } }
    } } }
}
