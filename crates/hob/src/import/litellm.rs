//! LiteLLM's `config.yaml`: its model names become aliases, its deployments their targets, the servers
//! behind them upstreams, and its fallbacks the tail of an alias.

mod deployment;
mod fallbacks;
mod group;
mod provider;
mod reasons;
mod settings;

use super::draft::{Alias, ClientKey, Draft, Pick, Target};
use super::reading::Place;
use super::secret::WrittenKey;
use super::upstreams::{Upstreams, place_of, say_key};

pub(super) use reasons::REASONS;
use settings::Settings;

/// The name of the key that opens everything; LiteLLM's word.
const MASTER: &str = "master";

/// An alias, and what is asked when all its own targets failed.
pub(super) struct Group {
    alias: Alias,
    tail: Vec<Target>,
    /// The source says what it falls back to.
    falls_back: bool,
}

pub(super) fn carry(root: &Place<'_>) -> Draft {
    let models = root.get("model_list");
    let items = models.as_ref().map(Place::items).unwrap_or_default();
    let other_names = fallbacks::other_names(root);
    let mut asked_for = asked_for(&items);
    asked_for.extend(other_names.iter().map(|(name, _)| (*name).to_owned()));
    let mut upstreams = Upstreams::new(vec![MASTER.to_owned()], asked_for);
    let settings = Settings::read(root);
    let deployments =
        items.iter().filter_map(|item| deployment::read(item, &mut upstreams)).collect();
    let mut groups = group::groups(deployments, &settings);
    fallbacks::add_other_names(&mut groups, other_names);
    fallbacks::add(&mut groups, root);
    Draft {
        keys: master_key(root).into_iter().collect(),
        chat: None,
        upstreams: upstreams.into_drafts(),
        aliases: aliases(groups),
    }
}

/// Patterns are left out: they become no aliases.
fn asked_for(items: &[Place<'_>]) -> Vec<String> {
    let names = items.iter().filter_map(|item| item.get("model_name")?.text());
    names.filter(|name| !name.contains('*')).collect()
}

fn master_key(root: &Place<'_>) -> Option<ClientKey> {
    let place = root.get("general_settings")?.get("master_key")?;
    let key = WrittenKey::litellm(&place.text()?);
    say_key(&key, MASTER, &place);
    Some(ClientKey { name: MASTER.to_owned(), secret: place_of(&key, MASTER)? })
}

/// A tail comes after all of the alias's own targets. Where these are not asked in order, they get an
/// alias of their own, so that fallbacks are not among those to choose from.
fn aliases(groups: Vec<Group>) -> Vec<Alias> {
    let names: Vec<String> = groups.iter().map(|group| group.alias.name.clone()).collect();
    let mut aliases = Vec::new();
    for Group { mut alias, tail, .. } in groups {
        if alias.pick != Pick::Order && !tail.is_empty() {
            let pool = pool_name(&alias.name, &names);
            let inner = Alias::plain(&pool, std::mem::take(&mut alias.to));
            aliases.push(Alias { pick: std::mem::take(&mut alias.pick), ..inner });
            alias.to = vec![Target::plain(&pool)];
        }
        alias.to.extend(tail);
        aliases.push(alias);
    }
    aliases
}

fn pool_name(name: &str, taken: &[String]) -> String {
    let names = (1..).map(|number| match number {
        1 => format!("{name}-pool"),
        number => format!("{name}-pool-{number}"),
    });
    let mut free = names.filter(|name| !taken.contains(name));
    free.next().unwrap_or_default()
}
