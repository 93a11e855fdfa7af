//! Deployments of one name become one alias: their order, their weights, and what they agree on.
//! hob says clocks and retries per alias; where deployments differ, the larger is taken and said.

use super::Group;
use super::deployment::{Deployment, Said};
use super::settings::{Settings, Strategy};
use crate::import::draft::{Alias, Pick, Target};

/// By which LiteLLM weighs deployments, the first that any of them has.
const WEIGHTS: [&str; 3] = ["weight", "rpm", "tpm"];

/// In the order in which their names came first.
pub(super) fn groups(deployments: Vec<Deployment<'_>>, settings: &Settings) -> Vec<Group> {
    let mut named: Vec<Vec<Deployment<'_>>> = Vec::new();
    for deployment in deployments {
        match named.iter_mut().find(|group| group[0].name == deployment.name) {
            Some(group) => group.push(deployment),
            None => named.push(vec![deployment]),
        }
    }
    named.into_iter().map(|deployments| group(deployments, settings)).collect()
}

fn group(mut deployments: Vec<Deployment<'_>>, settings: &Settings) -> Group {
    let all = &mut deployments;
    let alias = Alias {
        name: all[0].name.clone(),
        effort: agreed(all, None, |one| one.effort.take()),
        first_token: agreed(all, settings.first_token, |one| one.first_token.take()),
        total: agreed(all, settings.total, |one| one.total.take()),
        retries: agreed(all, settings.retries, |one| one.retries.take()),
        cooldown: agreed(all, settings.cooldown, |one| one.cooldown.take()),
        keep_alive: agreed(all, None, |one| one.keep_alive.take()),
        ..Alias::default()
    };
    let is_ordered = put_in_order(&mut deployments);
    let (pick, tail) = pick(&mut deployments, settings.strategy, is_ordered);
    let to = deployments.into_iter().map(|deployment| deployment.target).collect();
    Group { alias: Alias { to, pick, ..alias }, tail, falls_back: false }
}

/// By `order`, the smallest first; whether any says one.
fn put_in_order(deployments: &mut Vec<Deployment<'_>>) -> bool {
    let order = |one: &Deployment<'_>| one.params.get("order").and_then(|place| place.number());
    let mut ordered: Vec<(Option<f64>, Deployment<'_>)> =
        std::mem::take(deployments).into_iter().map(|one| (order(&one), one)).collect();
    let first = ordered[0].0;
    let is_ordered = ordered.iter().any(|(order, _)| *order != first);
    ordered.sort_by(|(one, _), (other, _)| {
        one.unwrap_or(f64::MAX).total_cmp(&other.unwrap_or(f64::MAX))
    });
    deployments.extend(ordered.into_iter().map(|(_, one)| one));
    is_ordered
}

/// How the alias chooses, and targets that are only asked when the others failed.
fn pick(
    deployments: &mut Vec<Deployment<'_>>,
    strategy: Strategy,
    is_ordered: bool,
) -> (Pick, Vec<Target>) {
    if deployments.len() < 2 {
        drop_weights(deployments, "one target needs no weight");
        return (Pick::Order, Vec::new());
    }
    if is_ordered {
        drop_weights(deployments, "the deployments have an order, and hob asks them in it");
        return (Pick::Order, Vec::new());
    }
    match strategy {
        Strategy::Other(pick) => {
            drop_weights(deployments, "the strategy takes no weights");
            (pick, Vec::new())
        }
        Strategy::Shuffle => weighted(deployments),
    }
}

/// The rates are left to be said as what they are besides: limits.
fn drop_weights(deployments: &[Deployment<'_>], why: &str) {
    for place in deployments.iter().filter_map(|one| one.params.get("weight")) {
        place.drop(why);
    }
}

fn weighted(deployments: &mut Vec<Deployment<'_>>) -> (Pick, Vec<Target>) {
    let has = |key: &&str| deployments.iter().any(|one| one.params.get(key).is_some());
    let Some(key) = WEIGHTS.into_iter().find(has) else {
        deployments[1].name_place.change(
            "LiteLLM spreads over the deployments of a name; hob asks them in order, or with \
             pick = \"least-wait\" whichever waits least",
        );
        return (Pick::Order, Vec::new());
    };
    let weights: Vec<f64> = deployments.iter().map(|one| weight(one, key)).collect();
    let mut weights = whole(&weights).into_iter();
    for one in deployments.iter_mut() {
        one.target.weight = weights.next();
    }
    let never = |one: &Deployment<'_>| one.target.weight == Some(0);
    let (last, chosen): (Vec<_>, Vec<_>) = std::mem::take(deployments).into_iter().partition(never);
    if chosen.is_empty() {
        deployments.extend(last.into_iter().map(without_weight));
        return (Pick::Order, Vec::new());
    }
    deployments.extend(chosen);
    let last = last.into_iter().map(|one| without_weight(one).target).collect();
    (Pick::Weighted, last)
}

fn without_weight(mut deployment: Deployment<'_>) -> Deployment<'_> {
    deployment.target.weight = None;
    deployment
}

/// One that says none is never chosen while others can be.
fn weight(deployment: &Deployment<'_>, key: &str) -> f64 {
    let Some(place) = deployment.params.get(key) else { return 0.0 };
    let weight = place.number().unwrap_or(0.0).max(0.0);
    if key != "weight" {
        place.change("it weighs the target, as it does in LiteLLM; hob limits keys, not targets");
    }
    weight
}

/// The smallest whole numbers of the same proportions; of fractions, to a thousandth of their sum.
fn whole(weights: &[f64]) -> Vec<u32> {
    let sum: f64 = weights.iter().sum();
    let are_whole = weights.iter().all(|weight| weight.fract() == 0.0);
    let scale = if are_whole && sum <= f64::from(u32::MAX) { 1.0 } else { 1000.0 / sum };
    // A small share is not none.
    let least = |weight: f64| u32::from(weight > 0.0);
    let scaled = weights.iter().map(|weight| ((weight * scale).round() as u32).max(least(*weight)));
    let scaled: Vec<u32> = scaled.collect();
    let divisor = scaled.iter().copied().fold(0, greatest_common_divisor).max(1);
    scaled.into_iter().map(|weight| weight / divisor).collect()
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// The largest of what the deployments say, or `of_all` where one says nothing.
fn agreed<'a, T: Ord + Copy>(
    deployments: &mut [Deployment<'a>],
    of_all: Option<T>,
    take: impl Fn(&mut Deployment<'a>) -> Option<Said<'a, T>>,
) -> Option<T> {
    let said: Vec<Said<'a, T>> = deployments.iter_mut().filter_map(take).collect();
    let all_say = said.len() == deployments.len();
    let largest = said.iter().map(|said| said.value).chain(of_all.filter(|_| !all_say)).max();
    for Said { value, place } in &said {
        if Some(*value) != largest {
            place.change("hob has one for the whole alias, and takes the largest of its targets'");
        } else if !all_say && of_all != largest {
            place.change("hob has one for the whole alias, so it holds for its other targets too");
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_become_small_whole_numbers() {
        let rows: [(&[f64], &[u32]); 7] = [
            (&[2.0, 1.0], &[2, 1]),
            (&[600.0, 900.0], &[2, 3]),
            (&[0.9, 0.1], &[9, 1]),
            (&[1.0, 0.0], &[1, 0]),
            (&[0.0, 0.0], &[0, 0]),
            (&[1e9, 5e8], &[2, 1]),
            (&[1e12, 1.0], &[1000, 1]),
        ];
        for (weights, expected) in rows {
            assert_eq!(whole(weights), expected, "{weights:?}");
        }
    }
}
