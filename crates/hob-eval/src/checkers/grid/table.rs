//! Reads a grid from a table of Markdown or LaTeX. Houses are rows or columns.
//! Headings may be missing: a value says by itself which attribute it is.

use std::ops::Range;

use super::cells::Cells;
use super::words::Words;

/// Rows and columns that are read. A grid has far fewer.
const SIDE_MAX: usize = 40;

type Rows = Vec<Vec<String>>;

/// The tables of a text with their places.
pub(super) fn tables(text: &str) -> Vec<(Range<usize>, Rows)> {
    let mut tables: Vec<(Range<usize>, Rows)> = Vec::new();
    let (mut at, mut goes_on) = (0, false);
    for line in text.split_inclusive('\n') {
        let span = at..at + line.len();
        at = span.end;
        let rows = rows(line);
        let is_part = is_ruler(line) || !rows.is_empty();
        match tables.last_mut().filter(|_| goes_on && is_part) {
            Some((whole, all)) => {
                whole.end = span.end;
                all.extend(rows);
            }
            None if !rows.is_empty() => tables.push((span, rows)),
            None => {}
        }
        goes_on = is_part;
    }
    tables.retain(|(_, rows)| rows.len() > 1);
    tables
}

/// The rows of a line. In LaTeX a line can have several.
fn rows(line: &str) -> Rows {
    let line = line.trim();
    if is_ruler(line) {
        return Vec::new();
    }
    if line.contains(['|', '│']) && !line.contains('&') {
        let cells = line.trim_matches(['|', '│']).split(['|', '│']).take(SIDE_MAX);
        return vec![cells.map(|cell| cell.trim().to_owned()).collect()];
    }
    let rows = line.split("\\\\").filter(|row| row.contains('&')).take(SIDE_MAX);
    rows.map(|row| row.split('&').take(SIDE_MAX).map(without_commands).collect()).collect()
}

fn is_ruler(line: &str) -> bool {
    let line = line.trim();
    let is_stroke = |sign: char| "|-:=+ \t─━═┼├┤┬┴┌┐└┘│╞╪╡".contains(sign);
    matches!(line, "\\hline" | "\\midrule" | "\\toprule" | "\\bottomrule")
        || !line.is_empty() && line.chars().all(is_stroke)
}

/// `\textbf{red}` is `red`; so is what follows `\begin{array}{cc}` or `\hline`.
fn without_commands(cell: &str) -> String {
    let mut rest = cell.trim();
    if let Some((_, after)) = rest.rsplit_once("\\hline") {
        rest = after;
    }
    if rest.contains("\\begin") {
        let is_columns = |part: &&str| part.contains('{');
        let opening = rest.split('}').take_while(is_columns).take(2).map(|part| part.len() + 1);
        rest = rest.get(opening.sum::<usize>()..).unwrap_or("");
    }
    let mut text = String::new();
    let mut in_command = false;
    for sign in rest.chars() {
        in_command = sign == '\\' || in_command && sign.is_ascii_alphabetic();
        let kept = !in_command && !matches!(sign, '{' | '}' | '$');
        text.extend(kept.then_some(sign));
    }
    text.trim().to_owned()
}

pub(super) fn read(words: &Words, rows: &[Vec<String>]) -> Cells {
    let rows: Rows = rows.iter().take(SIDE_MAX).cloned().collect();
    let turned = transposed(&rows);
    let (by_row, by_column) = (read_rows(words, &rows), read_rows(words, &turned));
    if by_column.count() > by_row.count() { by_column } else { by_row }
}

/// Each row is a house.
fn read_rows(words: &Words, rows: &Rows) -> Cells {
    let mut cells = Cells::none(words);
    let labels = label_column(words, rows);
    let houses = |row: &Vec<String>| labels.and_then(|at| words.house(row.get(at)?));
    let is_named = |row: &&Vec<String>| houses(row).is_some();
    let has_head = rows.first().is_some_and(|head| {
        houses(head).is_none() && head.iter().all(|cell| words.cell(cell, None).is_none())
    });
    let head: &[String] = if has_head { &rows[0] } else { &[] };
    let body = &rows[usize::from(has_head)..];
    // Rows without any number are houses in their order, if there are as many.
    if !body.iter().any(|row| is_named(&row)) && body.len() != words.houses() {
        return cells;
    }
    let by_order = !body.iter().any(|row| is_named(&row));
    for (place, row) in body.iter().enumerate() {
        let Some(house) = houses(row).or(by_order.then_some(place)) else { continue };
        for (column, cell) in row.iter().enumerate().filter(|(at, _)| Some(*at) != labels) {
            let attribute = head.get(column).and_then(|title| words.attribute(title));
            if let Some((attribute, said)) = words.cell(cell, attribute) {
                cells.set(house, attribute, said);
            }
        }
    }
    cells
}

/// The column that names the most houses.
fn label_column(words: &Words, rows: &Rows) -> Option<usize> {
    let width = rows.iter().map(Vec::len).max()?.min(SIDE_MAX);
    let houses = |column: usize| {
        let labels = rows.iter().filter_map(|row| words.house(row.get(column)?));
        let mut labels: Vec<usize> = labels.collect();
        labels.sort_unstable();
        labels.dedup();
        labels.len()
    };
    // The first of several equal ones.
    let column = (0..width).rev().max_by_key(|column| houses(*column))?;
    (houses(column) > 0).then_some(column)
}

fn transposed(rows: &Rows) -> Rows {
    let width = rows.iter().map(Vec::len).max().unwrap_or(0).min(SIDE_MAX);
    let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
    (0..width).map(|column| rows.iter().map(|row| cell(row, column)).collect()).collect()
}
