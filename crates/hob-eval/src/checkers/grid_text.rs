//! Reads a grid from an answer: JSON, a table of Markdown or LaTeX, or lines that name a house and its values.
//! The last complete grid wins; without one, the one with the most cells.

use serde_json::{Map, Value};

use super::grid::{GridSolution, fold};
use crate::reading::{json_values, tail, without_thoughts};

/// The cells that were read, by house and attribute, folded.
pub(super) struct ReadGrid {
    pub(super) cells: Vec<Vec<Option<String>>>,
}

impl ReadGrid {
    fn empty(solution: &GridSolution) -> ReadGrid {
        ReadGrid { cells: vec![vec![None; solution.attributes.len()]; solution.houses.len()] }
    }

    fn count(&self) -> usize {
        self.cells.iter().flatten().filter(|cell| cell.is_some()).count()
    }

    fn is_complete(&self) -> bool {
        self.cells.iter().flatten().all(Option::is_some)
    }
}

pub(super) fn read_grid(solution: &GridSolution, content: &str) -> Option<ReadGrid> {
    let visible = without_thoughts(tail(content));
    let mut found: Vec<ReadGrid> =
        json_values(&visible).iter().rev().filter_map(|value| of_json(solution, value)).collect();
    found.extend(of_table(solution, &visible));
    found.extend(of_lines(solution, &visible));
    found.retain(|grid| grid.count() > 0);
    // JSON was asked for, so it counts before a table, and a table before prose.
    if let Some(at) = found.iter().position(ReadGrid::is_complete) {
        return Some(found.swap_remove(at));
    }
    found.into_iter().max_by_key(ReadGrid::count)
}

/// An object by house, a list of houses, or either of them in a field.
fn of_json(solution: &GridSolution, value: &Value) -> Option<ReadGrid> {
    let mut grid = ReadGrid::empty(solution);
    match value {
        Value::Array(houses) => {
            for (place, house) in houses.iter().enumerate() {
                let own = house.get("house").or_else(|| house.get("number"));
                let place = own.and_then(|own| number_of(&own.to_string())).unwrap_or(place + 1);
                fill(solution, &mut grid, place, house.as_object()?);
            }
        }
        Value::Object(fields) => {
            for (name, house) in fields {
                if let (Some(place), Some(house)) = (number_of(name), house.as_object()) {
                    fill(solution, &mut grid, place, house);
                }
            }
            if grid.count() == 0 {
                // `{"solution": {…}}`, `{"houses": […]}`, or columns: `{"color": ["red", …]}`.
                let inner = fields.values().find_map(|inner| match inner {
                    Value::Object(_) => of_json(solution, inner),
                    Value::Array(list) if list.iter().all(Value::is_object) => {
                        of_json(solution, inner)
                    }
                    _ => None,
                });
                return inner.or_else(|| of_columns(solution, fields));
            }
        }
        _ => return None,
    }
    Some(grid).filter(|grid| grid.count() > 0)
}

fn of_columns(solution: &GridSolution, fields: &Map<String, Value>) -> Option<ReadGrid> {
    let mut grid = ReadGrid::empty(solution);
    for (name, values) in fields {
        let (Some(attribute), Some(values)) = (attribute_of(solution, name), values.as_array())
        else {
            continue;
        };
        for (house, value) in values.iter().take(solution.houses.len()).enumerate() {
            grid.cells[house][attribute] = value.as_str().map(fold);
        }
    }
    Some(grid).filter(|grid| grid.count() > 0)
}

fn fill(solution: &GridSolution, grid: &mut ReadGrid, place: usize, fields: &Map<String, Value>) {
    let Some(cells) = place.checked_sub(1).and_then(|house| grid.cells.get_mut(house)) else {
        return;
    };
    for (name, value) in fields {
        let text = value.as_str().map(fold);
        if let (Some(attribute), Some(text)) = (attribute_of(solution, name), text) {
            cells[attribute] = Some(text);
        }
    }
}

/// The number in `1`, `House 1`, `house_1`.
fn number_of(name: &str) -> Option<usize> {
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// An attribute by its name, also in the plural or with another word: `Colors`, `house color`, `colour`.
fn attribute_of(solution: &GridSolution, name: &str) -> Option<usize> {
    let name = fold(name).replace("colour", "color");
    let is_it = |attribute: &String| {
        let attribute = fold(attribute);
        name == attribute
            || name
                .split([' ', '-'])
                .any(|word| word == attribute || word.strip_suffix('s') == Some(attribute.as_str()))
    };
    solution.attributes.iter().position(is_it)
}

/// Rows are houses or attributes.
fn of_table(solution: &GridSolution, text: &str) -> Vec<ReadGrid> {
    let mut tables: Vec<Vec<Vec<String>>> = vec![Vec::new()];
    for line in text.lines() {
        let line = line.trim();
        let cells = match () {
            () if line.starts_with('|') => line.trim_matches('|').split('|').collect::<Vec<_>>(),
            () if line.contains('&') => line.trim_end_matches('\\').split('&').collect(),
            () => Vec::new(),
        };
        if cells.is_empty() {
            if tables.last().is_some_and(|table| !table.is_empty()) {
                tables.push(Vec::new());
            }
            continue;
        }
        let cells: Vec<String> = cells.into_iter().map(fold).collect();
        let is_ruler = cells.iter().all(|cell| cell.chars().all(|sign| matches!(sign, '-' | ':')));
        if let (false, Some(table)) = (is_ruler, tables.last_mut()) {
            table.push(cells);
        }
    }
    tables.iter().rev().filter_map(|table| grid_of_table(solution, table)).collect()
}

fn grid_of_table(solution: &GridSolution, table: &[Vec<String>]) -> Option<ReadGrid> {
    let (head, rows) = table.split_first()?;
    let mut grid = ReadGrid::empty(solution);
    let mut put = |house: usize, attribute: usize, value: &str| {
        if let Some(cell) = house.checked_sub(1).and_then(|at| grid.cells.get_mut(at)) {
            cell[attribute] = Some(value.to_owned());
        }
    };
    let columns: Vec<Option<usize>> =
        head.iter().map(|title| attribute_of(solution, title)).collect();
    if columns.iter().any(Option::is_some) {
        for (place, row) in rows.iter().enumerate() {
            let own = row.iter().zip(&columns).find(|(_, attribute)| attribute.is_none());
            let house = own.and_then(|(cell, _)| number_of(cell)).unwrap_or(place + 1);
            for (cell, attribute) in row.iter().zip(&columns) {
                attribute.iter().for_each(|attribute| put(house, *attribute, cell));
            }
        }
    } else {
        for row in rows {
            let Some(attribute) = row.first().and_then(|title| attribute_of(solution, title))
            else {
                continue;
            };
            for (place, cell) in row.iter().enumerate().skip(1) {
                let house = head.get(place).and_then(|title| number_of(title)).unwrap_or(place);
                put(house, attribute, cell);
            }
        }
    }
    Some(grid).filter(|grid| grid.count() > 0)
}

/// Lines such as `House 2: Alice, red, tea`, and bullets below such a line. A value belongs to the house that was named
/// last, and the last mention counts.
fn of_lines(solution: &GridSolution, text: &str) -> Option<ReadGrid> {
    let mut grid = ReadGrid::empty(solution);
    let mut house = None;
    for line in text.lines() {
        let line = fold(line);
        if let Some(named) = named_house(&line, solution.houses.len()) {
            house = Some(named);
        } else if line.is_empty() {
            continue;
        }
        let Some(house) = house else { continue };
        for (attribute, values) in all_values(solution).iter().enumerate() {
            let mut said = values.iter().filter(|value| has_word(&line, value));
            // Two values of one attribute in a line compare houses and state nothing.
            if let (Some(value), None) = (said.next(), said.next()) {
                grid.cells[house][attribute] = Some(value.clone());
            }
        }
    }
    Some(grid).filter(|grid| grid.count() > 0)
}

fn all_values(solution: &GridSolution) -> Vec<Vec<String>> {
    let column =
        |attribute: usize| solution.houses.iter().map(|house| fold(&house[attribute])).collect();
    (0..solution.attributes.len()).map(column).collect()
}

/// The only house that a line names, counted from 0.
fn named_house(line: &str, houses: usize) -> Option<usize> {
    let mut numbers = line.match_indices("house").filter_map(|(at, word)| {
        let rest = line[at + word.len()..].trim_start_matches([' ', '#', ':', 's']);
        let digits = rest.len() - rest.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
        rest[..digits].parse::<usize>().ok().filter(|number| (1..=houses).contains(number))
    });
    let first = numbers.next()?;
    numbers.all(|number| number == first).then_some(first - 1)
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let joins = |sign: Option<char>| sign.is_some_and(char::is_alphanumeric);
        !joins(before) && !joins(after)
    })
}
