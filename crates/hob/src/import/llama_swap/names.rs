//! The names that clients ask for: a model's own, its aliases, and those that its filters make.
//! Each becomes an alias with its own parameters; hob lets none of them be said twice.

use super::chat::Embedded;
use crate::import::draft::{Alias, Parameters, Target};
use crate::import::parameters::{merged, read, take_effort};
use crate::import::reading::Place;

#[derive(Default)]
pub(super) struct Names {
    aliases: Vec<Alias>,
    /// Names that need no alias, and the targets of hob's that they mean.
    direct: Vec<(String, Target)>,
}

impl Names {
    /// Whether the name was free.
    pub(super) fn add(&mut self, alias: Alias) -> bool {
        let is_free = self.target(&alias.name).is_none();
        if is_free {
            self.aliases.push(alias);
        }
        is_free
    }

    pub(super) fn add_direct(&mut self, name: &str, target: Target) {
        self.direct.push((name.to_owned(), target));
    }

    /// What an alias writes to lead where this name leads.
    pub(super) fn target(&self, name: &str) -> Option<Target> {
        let alias = self.aliases.iter().find(|alias| alias.name == name);
        let direct = || self.direct.iter().find(|(known, _)| known == name);
        alias.map(|alias| Target::plain(&alias.name)).or_else(|| Some(direct()?.1.clone()))
    }

    /// Those that clients can ask for so far.
    pub(super) fn all(&self) -> Vec<String> {
        let direct = self.direct.iter().map(|(name, _)| name);
        self.aliases.iter().map(|alias| &alias.name).chain(direct).cloned().collect()
    }

    pub(super) fn into_aliases(self) -> Vec<Alias> {
        self.aliases
    }
}

/// The names of the model that hob runs itself.
pub(super) fn of(embedded: &Embedded<'_>) -> Names {
    let filters = Filters::read(&embedded.model);
    let mut names = Names::default();
    for (name, place) in named(embedded, &filters) {
        let alias = filters.alias(&name, embedded);
        if name != embedded.name {
            names.add(alias);
            continue;
        }
        names.add_direct(&name, Target::plain(&name));
        if alias != Alias::plain(&name, vec![Target::plain(&name)]) {
            place.change(
                "hob calls the model by its file's name, which is this very name, so what the \
                 file sets for it is left out; rename the file to have an alias of this name",
            );
        }
    }
    names
}

/// Each name once, and where it stands.
fn named<'a>(embedded: &Embedded<'a>, filters: &Filters<'a>) -> Vec<(String, Place<'a>)> {
    let mut names = vec![(embedded.id.to_owned(), embedded.model.get("cmd"))];
    let aliases = embedded.model.get("aliases").map(|aliases| aliases.items()).unwrap_or_default();
    names.extend(aliases.iter().filter_map(alias_name).map(|(name, place)| (name, Some(place))));
    let filtered = filters.by_name.iter();
    names.extend(filtered.map(|(name, place, _)| ((*name).to_owned(), Some(place.clone()))));
    let mut once: Vec<(String, Place<'a>)> = Vec::new();
    for (name, place) in names {
        let is_new = once.iter().all(|(known, _)| *known != name);
        once.extend(place.filter(|_| is_new).map(|place| (name, place)));
    }
    once
}

/// A text, or a table with it as its id.
fn alias_name<'a>(place: &Place<'a>) -> Option<(String, Place<'a>)> {
    let place = if place.is_table() { place.get("id")? } else { place.clone() };
    Some((place.text()?, place))
}

/// What is changed in requests on their way.
pub(super) struct Filters<'a> {
    pub(super) drop: Vec<String>,
    pub(super) set: Parameters,
    by_name: Vec<(&'a str, Place<'a>, Parameters)>,
}

impl<'a> Filters<'a> {
    pub(super) fn read(owner: &Place<'a>) -> Filters<'a> {
        let filters = owner.get("filters");
        let get = |key: &str| filters.as_ref().and_then(|filters| filters.get(key));
        let by_name = get("setParamsByID").map(|table| table.entries()).unwrap_or_default();
        let by_name = by_name.into_iter().map(|(name, place)| (name, place.clone(), read(&place)));
        Filters {
            // The second is what the first was called before, and still is in most files.
            drop: get("stripParams")
                .or_else(|| get("strip_params"))
                .map(|place| stripped(&place))
                .unwrap_or_default(),
            set: get("setParams").map(|place| read(&place)).unwrap_or_default(),
            by_name: by_name.collect(),
        }
    }

    fn alias(&self, name: &str, embedded: &Embedded<'_>) -> Alias {
        let own = self.by_name.iter().find(|(known, ..)| *known == name);
        let own = own.map(|(_, _, parameters)| parameters.clone()).unwrap_or_default();
        let mut set = merged(self.set.clone(), own);
        let effort = take_effort(&mut set).or(embedded.effort);
        let target = Target {
            set,
            drop: self.drop.clone(),
            default: embedded.default.clone(),
            ..Target::plain(&embedded.name)
        };
        Alias { effort, ..Alias::plain(name, vec![target]) }
    }
}

/// One text with commas. The model is never dropped, there or here.
fn stripped(place: &Place<'_>) -> Vec<String> {
    let text = place.text().unwrap_or_default();
    let names = text.split(',').map(str::trim);
    names.filter(|name| !matches!(*name, "" | "model")).map(str::to_owned).collect()
}
