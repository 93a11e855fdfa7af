//! The order in which the cells of a plan are visited. Evaluations take turns in parts of their items, because only one
//! model at a time may fit into memory, and a change of the machine should affect all of them alike.

use hob_bench::plan::{BenchPlan, Order, PlanCell, PlanKind, cells};

/// Maximum parts of an evaluation. Each further part loads each model once more.
const PARTS_MAX: usize = 4;

/// One visit to a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Visit {
    /// The number of the cell, from 1, and the cell.
    pub(super) number: usize,
    pub(super) cell: PlanCell,
    pub(super) part: Part,
}

/// A part of a cell, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    number: usize,
    of: usize,
}

impl Part {
    const WHOLE: Part = Part { number: 1, of: 1 };

    /// How many of `items` are asked up to the end of this part. `None`: all of them.
    pub(super) fn until(self, items: usize) -> Option<usize> {
        (!self.is_last()).then(|| (items * self.number).div_ceil(self.of))
    }

    pub(super) fn is_last(self) -> bool {
        self.number == self.of
    }

    pub(super) fn name(self) -> String {
        match self.of {
            1 => String::new(),
            of => format!(", part {} of {of}", self.number),
        }
    }
}

/// All visits of a plan; `items` is the number of items of each evaluation. Rounds of parts alternate their direction, so
/// that the model that is loaded stays for two parts.
pub(super) fn visits(plan: &BenchPlan, items: usize) -> Vec<Visit> {
    let cells: Vec<(usize, PlanCell)> = (1..).zip(cells(plan)).collect();
    let (evals, others): (Vec<_>, Vec<_>) =
        cells.iter().cloned().partition(|(_, cell)| cell.kind == PlanKind::Eval);
    let visit = |part: Part| move |(number, cell): (usize, PlanCell)| Visit { number, cell, part };
    if plan.order == Order::Listed || evals.len() < 2 {
        return cells.into_iter().map(visit(Part::WHOLE)).collect();
    }
    let mut visits: Vec<Visit> = others.into_iter().map(visit(Part::WHOLE)).collect();
    let of = items.clamp(1, PARTS_MAX);
    for number in 1..=of {
        let round = evals.iter().cloned().map(visit(Part { number, of }));
        match number % 2 {
            1 => visits.extend(round),
            _ => visits.extend(round.rev()),
        }
    }
    visits
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "schema: bench-plan/1\nname: n\ntargets: [{name: a}]\n\
                        matrix: {kind: [llm, eval], model: [x, y], shape: [agentic], concurrency: [1]}\n";

    fn order(more: &str, items: usize) -> Vec<String> {
        let plan = BenchPlan::parse("p", &format!("{PLAN}{more}")).expect("a plan");
        let all = visits(&plan, items);
        let words = all.iter().map(|visit| {
            let model = visit.cell.model.clone().unwrap_or_default();
            format!("{} {model}{}", visit.cell.kind.name(), visit.part.name())
        });
        words.collect()
    }

    #[test]
    fn evaluations_take_turns_in_parts() {
        let expected = [
            "llm x",
            "llm y",
            "eval x, part 1 of 3",
            "eval y, part 1 of 3",
            "eval y, part 2 of 3",
            "eval x, part 2 of 3",
            "eval x, part 3 of 3",
            "eval y, part 3 of 3",
        ];
        assert_eq!(order("", 3), expected);
        assert_eq!(order("", 100).len(), 2 + 4 * 2);
        assert_eq!(order("order: listed\n", 100).len(), 4);
        assert_eq!(order("exclude: [{kind: eval, model: y}]\n", 100).len(), 3);
    }

    #[test]
    fn the_parts_of_a_cell_are_all_of_its_items() {
        let until = |items| {
            let parts = (1..=4).map(|number| Part { number, of: 4 }.until(items));
            parts.collect::<Vec<_>>()
        };
        assert_eq!(until(10), [Some(3), Some(5), Some(8), None]);
        assert_eq!(until(4), [Some(1), Some(2), Some(3), None]);
        assert_eq!(Part::WHOLE.until(7), None);
    }
}
