//! Tool use: several tools are offered, and the request needs exactly one call or none.
//! The size is the number of tools offered. Tools similar to the right one are among them before any others.

mod catalog;
mod requests;

use crate::checkers::{ExpectedCall, ToolCallExpected};
use crate::draw::Draw;
use crate::{Checker, Item};
use catalog::{GROUPS, Tool};
use requests::Today;

pub const SIZES: &[&str] = &["1", "4", "16", "36"];

const FAMILY: &str = "tool-use";
/// One in this many items needs no call.
const NO_CALL_EVERY: u64 = 4;
/// The longest call of the catalogue has about 100 tokens.
const TOKENS_MAX: u32 = 400;

/// `None` where the size is not a number of tools that the catalogue has.
pub fn item(seed: u64, size: &str, index: u32) -> Option<Item> {
    let all = GROUPS.iter().map(Vec::len).sum();
    let count: usize = size.parse().ok().filter(|count| (1..=all).contains(count))?;
    let mut draw = Draw::new(seed, FAMILY, size, index);
    let today = Today::draw(&mut draw);
    let (group, request, checker) =
        if (seed % NO_CALL_EVERY + u64::from(index)).is_multiple_of(NO_CALL_EVERY) {
            let (group, request, reply) = requests::needs_none(&mut draw);
            (group, request, ToolCallExpected { reply, ..ToolCallExpected::default() })
        } else {
            let group = draw.below(GROUPS.len());
            let (request, arguments) = requests::needs_call(group, &mut draw, &today);
            let tool = &GROUPS[group][0];
            let call = ExpectedCall { name: tool.name.clone(), arguments };
            let (defaults, exact) = (tool.defaults(), tool.exact());
            (group, request, ToolCallExpected { call: Some(call), reply: vec![], defaults, exact })
        };
    let system = format!(
        "Today is {}. Call a tool if the request needs one, and make one call at most. Answer \
         directly if no tool is needed. Leave out optional arguments that the request does not ask for.",
        today.date()
    );
    Some(Item {
        system: Some(system),
        tools: offered(group, count, &mut draw).iter().map(|tool| tool.definition()).collect(),
        ..Item::new((FAMILY, size, index), request, Checker::ToolCall(checker), TOKENS_MAX)
    })
}

/// `count` tools in a random order: the first of the group, then those similar to it, and others if there is room.
fn offered(group: usize, count: usize, draw: &mut Draw) -> Vec<&'static Tool> {
    let mut others: Vec<&Tool> = GROUPS
        .iter()
        .enumerate()
        .filter(|&(other, _)| other != group)
        .flat_map(|(_, tools)| tools.iter())
        .collect();
    draw.shuffle(&mut others);
    let mut offered: Vec<&Tool> = GROUPS[group].iter().chain(others).take(count).collect();
    draw.shuffle(&mut offered);
    offered
}

#[cfg(test)]
mod tests;
