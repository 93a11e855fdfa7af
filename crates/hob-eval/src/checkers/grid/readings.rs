//! Reads the grids of an answer in every form, and decides which of the readings counts.
//! The last complete grid counts. Without one, all readings are merged, and a later reading wins.

use std::ops::Range;

use super::cells::Cells;
use super::words::Words;
use super::{json, prose, table};
use crate::reading::json_spans;

/// Reads a grid. It can have no cell at all.
pub(super) fn read(words: &Words, text: &str) -> Cells {
    let mut all = readings(words, text);
    if let Some(at) = all.iter().rposition(Cells::is_complete) {
        return all.swap_remove(at);
    }
    let mut cells = Cells::none(words);
    all.into_iter().for_each(|upper| cells.lay(upper));
    let last_ways: [fn(&Words, &str) -> Cells; 2] = [read_mended, prose::read_numbered];
    for way in last_ways {
        if cells.count() == 0 {
            cells = way(words, text);
        }
    }
    cells
}

/// JSON with single quotes, with a comma too many, or that was cut off.
fn read_mended(words: &Words, text: &str) -> Cells {
    let quoted = text.replace('\'', "\"");
    let mut mended = String::new();
    let mut rest = quoted.as_str();
    while let Some((before, after)) = rest.split_once(',') {
        let is_last = after.trim_start().starts_with(['}', ']']);
        mended.push_str(before);
        mended.push_str(if is_last { "" } else { "," });
        rest = after;
    }
    mended.push_str(rest);
    let start = mended.find(['{', '[']).unwrap_or(mended.len());
    let end = mended.rfind('}').map_or(mended.len(), |at| at + 1);
    let whole = mended.get(start..end).unwrap_or("");
    let read = ["", "}", "]", "}}", "]}"].iter().filter_map(|closing| {
        let value = serde_json::from_str(&format!("{whole}{closing}")).ok()?;
        Some(json::read(words, &value))
    });
    read.max_by_key(Cells::count).unwrap_or(Cells::none(words))
}

/// JSON, tables and the prose between them, in the order of the text.
fn readings(words: &Words, text: &str) -> Vec<Cells> {
    let json = json_spans(text).into_iter().map(|(span, value)| (span, json::read(words, &value)));
    let mut blocks: Vec<(Range<usize>, Cells)> =
        json.filter(|(_, cells)| cells.count() > 0).collect();
    for (span, rows) in table::tables(text) {
        let cells = table::read(words, &rows);
        // Lines with strokes can also be sentences about houses.
        let as_prose = prose::read(words, &text[span.clone()]);
        if cells.count() > 0 && cells.count() >= as_prose.count() {
            blocks.push((span, cells));
        }
    }
    blocks.sort_by_key(|(span, _)| span.start);
    let (mut all, mut end) = (Vec::new(), 0);
    for (span, cells) in blocks {
        if span.start >= end {
            all.push(prose::read(words, &text[end..span.start]));
            all.push(cells);
            end = span.end;
        }
    }
    all.push(prose::read(words, &text[end..]));
    all
}
