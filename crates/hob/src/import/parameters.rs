//! Parameters of requests: what a target sets, and the effort that hides in them.
//! Both sources write them as their servers take them, in one of several spellings.

use hob_core::chat::Effort;

use super::draft::Parameters;
use super::node::Node;
use super::reading::Place;

/// All parameters of a table. The model's name is the target's to say.
pub(super) fn read(place: &Place<'_>) -> Parameters {
    let entries = place.entries().into_iter();
    entries.filter_map(|(name, value)| Some((name.to_owned(), parameter(name, &value)?))).collect()
}

fn parameter(name: &str, value: &Place<'_>) -> Option<Node> {
    if name == "model" {
        value.drop("the target says which model is asked");
        return None;
    }
    value.parameter()
}

/// Later ones win over earlier ones of the same name.
pub(super) fn merged(mut first: Parameters, then: Parameters) -> Parameters {
    for (name, value) in then {
        match first.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => first.push((name, value)),
        }
    }
    first
}

/// Takes out what says how hard to think: hob says it once, and each server's own way.
pub(super) fn take_effort(parameters: &mut Parameters) -> Option<Effort> {
    let direct = taken(parameters, "reasoning_effort", word);
    let nested = inside(parameters, "chat_template_kwargs", |arguments| {
        taken(arguments, "reasoning_effort", word)
            .or_else(|| taken(arguments, "enable_thinking", off))
            .or_else(|| taken(arguments, "thinking", off))
    });
    direct.or(nested)
}

pub(super) fn word(node: &Node) -> Option<Effort> {
    let Node::Text(text) = node else { return None };
    Effort::ALL.into_iter().find(|effort| effort.name() == text)
}

/// A switch says how hard only when it is off.
fn off(node: &Node) -> Option<Effort> {
    (*node == Node::Flag(false)).then_some(Effort::None)
}

fn taken(
    parameters: &mut Parameters,
    name: &str,
    effort: impl Fn(&Node) -> Option<Effort>,
) -> Option<Effort> {
    let at = parameters.iter().position(|(known, _)| known == name)?;
    let effort = effort(&parameters[at].1)?;
    parameters.remove(at);
    Some(effort)
}

/// A table that has nothing left in it goes too.
fn inside<T>(
    parameters: &mut Parameters,
    name: &str,
    take: impl FnOnce(&mut Parameters) -> Option<T>,
) -> Option<T> {
    let at = parameters.iter().position(|(known, _)| known == name)?;
    let Node::Table(inner) = &mut parameters[at].1 else { return None };
    let found = take(inner);
    if inner.is_empty() {
        parameters.remove(at);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::node::parse;

    #[test]
    fn effort_is_found_in_each_of_its_spellings() {
        let rows = [
            ("{reasoning_effort: high, top_k: 1}", Some(Effort::High), 1),
            ("{chat_template_kwargs: {reasoning_effort: low}}", Some(Effort::Low), 0),
            ("{chat_template_kwargs: {enable_thinking: false, x: 1}}", Some(Effort::None), 1),
            ("{chat_template_kwargs: {enable_thinking: true}}", None, 1),
            ("{reasoning_effort: hard}", None, 1),
            ("{top_k: 1}", None, 1),
        ];
        for (text, effort, left) in rows {
            let Ok(Node::Table(mut parameters)) = parse(text, "x") else { panic!("{text}") };
            assert_eq!(take_effort(&mut parameters), effort, "{text}");
            assert_eq!(parameters.len(), left, "{text}");
        }
    }
}
