//! `hob config check`: reports everything that would stop `hob serve` or that it would leave out, all in one report.
//! Each table is checked on its own, so that one mistake hides no other.

use std::collections::BTreeSet;

use hob_core::{Kind, Resolve, task};
use hob_engines::chat::{CardUse, has_card_kernels};
use hob_models::Gguf;
use hob_upstream::{Gateway, GatewayError, GatewayOptions, TargetOptions, UpstreamError};

use crate::app::App;
use crate::config::{
    AliasSection, ConfigFile, LoadedConfig, Named, Speculation, TargetEntry, UpstreamSection,
    quoted,
};
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::model_store::ModelStore;
use crate::printer::Printer;
use crate::settings::gateway::gateway as gateway_settings;
use crate::settings::{Environment, ModelChoice, Overrides, Settings, TlsSettings};
use crate::teams::Teams;
use crate::wire_up;

/// Replaces the targets of a wrong alias, and the address of a wrong server, so that names that lead
/// to them are not reported as well.
const STAND_IN: &str = "stand-in";
const STAND_IN_URL: &str = "http://127.0.0.1:9";

pub(super) fn run(globals: &Globals, printer: &Printer) -> CliResult<()> {
    let environment = Environment::read();
    let (mut written, in_text) =
        LoadedConfig::read_with_problems(globals.config.as_deref(), &environment.folders)?;
    let flags = Overrides { home: globals.home.clone(), ..Overrides::default() };
    let mut problems = Vec::new();
    // Otherwise, this mistake would hide all others.
    if let Err(failure) = TlsSettings::resolve(&flags, &environment, &written) {
        let sentence = format!("{}: server: {}", written.place("server"), failure.sentence);
        problems.push(Failure { sentence, ..failure });
        let server = &mut written.config.server;
        (server.tls_certificate, server.tls_key) = (None, None);
    }
    let wrong = models(&flags, &environment, &written);
    let (wrong, failures): (Vec<String>, Vec<Failure>) = wrong.into_iter().unzip();
    written.config.model.retain(|name, _| !wrong.contains(name));
    problems.extend(failures);
    let settings = match Settings::resolve(&flags, &environment, &written) {
        Ok(settings) => settings,
        Err(failure) => {
            problems.push(failure);
            return Failure::together(in_file_order(&written, in_text, problems))
                .map_or(Ok(()), Err);
        }
    };
    let app = App { environment, written, settings, printer };
    problems.extend(files(&app));
    problems.extend(speech(&app));
    problems.extend(transcription(&app));
    problems.extend(wire_up::scripts(&app.settings).err());
    problems.extend(devices(&app.written, has_card_kernels()));
    problems.extend(lexicon(&app));
    problems.extend(names(&app, &wrong));
    if let Some(failure) = Failure::together(in_file_order(&app.written, in_text, problems)) {
        return Err(failure);
    }
    match &app.written.path {
        Some(path) => app.printer.data(format_args!("{} is right", path.display())),
        None => app.printer.data("no hob.toml found; all settings have their defaults"),
    }
}

/// Joins the problems of the text and of its meaning. A key that could not be read is missing for the checks of the meaning, so
/// their problems with a whole table are left out if the text of that table has a problem, too.
fn in_file_order(
    written: &LoadedConfig,
    in_text: Vec<Failure>,
    in_meaning: Vec<Failure>,
) -> Vec<Failure> {
    let position = |failure: &Failure| line_and_column(written, &failure.sentence);
    let head_of = |line: usize| {
        let lines = written.text.lines().take(line).enumerate();
        lines.filter(|(_, line)| line.trim_start().starts_with('[')).last().map(|(at, _)| at + 1)
    };
    let broken_tables: BTreeSet<usize> =
        in_text.iter().filter_map(|failure| head_of(position(failure)?.0)).collect();
    let follows = |failure: &Failure| {
        position(failure).is_some_and(|(line, _)| broken_tables.contains(&line))
    };
    let independent = in_meaning.into_iter().filter(|failure| !follows(failure));
    let mut problems: Vec<Failure> = independent.chain(in_text).collect();
    problems.sort_by_key(|failure| position(failure).unwrap_or((usize::MAX, 0)));
    problems
}

/// The position at the beginning of a message, `hob.toml:3:7: `.
fn line_and_column(written: &LoadedConfig, sentence: &str) -> Option<(usize, usize)> {
    let path = written.path.as_ref()?.display().to_string();
    let mut numbers = sentence.strip_prefix(&path)?.strip_prefix(':')?.splitn(3, ':');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Checks the `[model.NAME]` tables.
fn models(
    flags: &Overrides,
    environment: &Environment,
    written: &LoadedConfig,
) -> Vec<(String, Failure)> {
    let alone = |(name, table): (&String, _)| {
        let model = Named::from([(name.clone(), table)]);
        let written = with(written, |config| config.model = model);
        Some((name.clone(), Settings::resolve(flags, environment, &written).err()?))
    };
    written.config.model.clone().iter().filter_map(|(name, t)| alone((name, t.clone()))).collect()
}

/// Finds configured models, draft models included, that are not installed. A model that `hob pull` can fetch is not a
/// mistake: the server leaves it out.
fn files(app: &App<'_>) -> Vec<Failure> {
    let Settings { chat, models, .. } = &app.settings;
    let further = models.iter().map(|(name, chat)| (format!("model.{}", quoted(name)), chat));
    let tables: Vec<_> = further.chain([("chat".to_owned(), chat)]).collect();
    let is_named = |table: &str| table != "chat" || app.written.config.chat.model.is_some();
    let named = tables.iter().filter(|(table, _)| is_named(table));
    let chosen = named.map(|(table, chat)| (format!("{table}.model"), &chat.model));
    let drafts = tables.iter().filter(|(_, chat)| chat.speculation == Speculation::Auto);
    let drafts = drafts.filter_map(|(table, chat)| {
        Some((format!("{table}.draft_model"), chat.draft_model.as_ref()?))
    });
    chosen.chain(drafts).filter_map(|(key, model)| missing(app, &key, model)).collect()
}

fn missing(app: &App<'_>, key: &str, model: &ModelChoice) -> Option<Failure> {
    let failure = match model {
        ModelChoice::File(path) => {
            let reason = Gguf::open(path).err()?;
            Failure::usage(format!("{} cannot be used: {reason}", path.display()))
                .hint("name the path of a GGUF file, or a model that `hob models` lists")
        }
        ModelChoice::Named(name) => ModelStore::open(app).chat_file(name).err()?,
    };
    unless_missing(app, key, failure)
}

/// The failure, or a note about a model that the server leaves out because it is not installed.
fn unless_missing(app: &App<'_>, key: &str, failure: Failure) -> Option<Failure> {
    let is_missing = failure.exit == Exit::ModelMissing;
    let failure = of_key(app, key, failure);
    if is_missing {
        app.printer.note(&failure.sentence);
    }
    (!is_missing).then_some(failure)
}

/// A mistake of the file, with the position of its key.
fn of_key(app: &App<'_>, key: &str, failure: Failure) -> Failure {
    let sentence = format!("{}: {key}: {}", app.written.place(key), failure.sentence);
    Failure { exit: Exit::Usage, sentence, ..failure }
}

/// Checks the speech model and its default voice. If no model is named, it may be missing.
fn speech(app: &App<'_>) -> Option<Failure> {
    let failure = wire_up::check_speech(app).err()?;
    let may_be_missing = app.written.config.speech.model.is_none();
    if failure.exit == Exit::ModelMissing && may_be_missing {
        return None;
    }
    unless_missing(app, "speech", failure)
}

/// Checks the chosen transcription model: if it is missing, `hob serve` does not start.
fn transcription(app: &App<'_>) -> Option<Failure> {
    let settings = &app.settings.transcription;
    let failure = ModelStore::open(app).transcription(&settings.model).err()?;
    settings.is_chosen.then(|| of_key(app, "transcription.model", failure))
}

/// Checks that named graphics cards can exist. Whether they do is only known when a model is loaded.
fn devices(written: &LoadedConfig, has_kernels: bool) -> Vec<Failure> {
    let wrong = |(table, cards): (String, &CardUse)| {
        let reason = cards.not_built(has_kernels)?;
        let key = format!("{table}.device");
        Some(Failure::usage(format!("{}: {key}: {reason}", written.place(&key))))
    };
    written.config.named_devices().filter_map(wrong).collect()
}

/// Checks the user's pronunciations: with a mistake in them, `hob serve` does not start.
fn lexicon(app: &App<'_>) -> Option<Failure> {
    let failure = wire_up::lexicon(&app.settings.speech.lexicon).err()?;
    Some(of_key(app, "speech.lexicon", failure))
}

/// Checks servers, aliases and keys, first on their own, then what they refer to. `models` are names of wrong tables.
fn names(app: &App<'_>, models: &[String]) -> Vec<Failure> {
    let (written, environment) = (&app.written, &app.environment);
    let mut problems = Vec::new();
    let mut sound = written.clone();
    for (name, section) in &written.config.upstream {
        let upstream = Named::from([(name.clone(), section.clone())]);
        let alone = with(written, |config| {
            (config.upstream, config.alias) = (upstream, Named::new());
        });
        if let Err(failure) = gateway_settings(&alone, environment) {
            problems.push(failure);
            let url = Some(STAND_IN_URL.to_owned());
            let section = UpstreamSection { url, ..UpstreamSection::default() };
            sound.config.upstream.insert(name.clone(), section);
        }
    }
    for (name, section) in &written.config.alias {
        let alias = Named::from([(name.clone(), section.clone())]);
        let alone = with(written, |config| {
            (config.upstream, config.alias) = (Named::new(), alias);
        });
        if let Err(failure) = gateway_settings(&alone, environment) {
            problems.push(failure);
            let to = vec![TargetEntry::Name(format!("{STAND_IN}/x"))];
            sound.config.alias.insert(name.clone(), AliasSection { to, ..AliasSection::default() });
        }
    }
    let stand_in =
        UpstreamSection { url: Some(STAND_IN_URL.to_owned()), ..UpstreamSection::default() };
    sound.config.upstream.insert(STAND_IN.to_owned(), stand_in);
    // An impossible server name was reported above; the other servers are checked without it.
    sound.config.upstream.retain(|name, _| !name.is_empty() && !name.contains('/'));
    let gateway = gateway_settings(&sound, environment)
        .map(|options| followed(app, options, models, &mut problems))
        .unwrap_or_default();
    problems.extend(keys(app, &gateway));
    problems
}

/// Builds the gateway. Reports each name that leads nowhere, and replaces it with the stand-in.
fn followed(
    app: &App<'_>,
    mut options: GatewayOptions,
    models: &[String],
    problems: &mut Vec<Failure>,
) -> Gateway {
    let targets = options.aliases.iter().map(|alias| alias.targets.len() + 1).sum::<usize>();
    for _ in 0..=targets + options.upstreams.len() {
        let locals = wire_up::placeholder_models(app);
        let error = match Gateway::new(options.clone(), &locals, None) {
            Ok(gateway) => return gateway,
            Err(error) => error,
        };
        let is_reported =
            matches!(&error, GatewayError::UnknownTarget { target, .. } if models.contains(target));
        if !is_reported {
            problems.push(wire_up::placed(&app.written, &error));
        }
        if !mend(&mut options, &error) {
            break;
        }
    }
    Gateway::default()
}

/// Removes what `error` is about, so that the rest can be checked. Returns `false`, and removes nothing, if that is
/// too much to follow.
fn mend(options: &mut GatewayOptions, error: &GatewayError) -> bool {
    let of_alias = match error {
        GatewayError::Upstream(
            UpstreamError::NoUrl { name }
            | UpstreamError::BadUrl { name, .. }
            | UpstreamError::BadKey { name }
            | UpstreamError::NoClient { name, .. },
        ) => {
            for upstream in options.upstreams.iter_mut().filter(|known| known.name == *name) {
                STAND_IN_URL.clone_into(&mut upstream.url);
                upstream.key = None;
            }
            return true;
        }
        GatewayError::NameTaken { name } => {
            options.aliases.retain(|alias| alias.name != *name);
            return true;
        }
        GatewayError::UnknownTarget { alias, target, .. } => {
            let aliases = options.aliases.iter_mut().filter(|known| known.name == *alias);
            aliases.for_each(|alias| {
                let unknown = alias.targets.iter_mut().filter(|known| known.name == *target);
                unknown.for_each(|known| *known = TargetOptions::plain(&format!("{STAND_IN}/x")));
            });
            return true;
        }
        GatewayError::TooDeep { .. }
        | GatewayError::TooManyTargets { .. }
        | GatewayError::TooManyInAll { .. } => return false,
        GatewayError::Cycle { names } => &names[0],
        GatewayError::NoTargets { alias } | GatewayError::MixedKinds { alias, .. } => alias,
    };
    for alias in options.aliases.iter_mut().filter(|known| known.name == *of_alias) {
        alias.targets = vec![TargetOptions::plain(&format!("{STAND_IN}/x"))];
    }
    true
}

/// The key's file is part of the configuration: if it is missing, `hob serve` does not start.
fn keys(app: &App<'_>, gateway: &Gateway) -> Vec<Failure> {
    let (written, environment) = (&app.written, &app.environment);
    let locals = wire_up::placeholder_models(app);
    let (teams, _) = Teams::of(app).served();
    let is_known = |name: &str| {
        teams.iter().any(|team| team.id == name)
            || Kind::ALL.iter().any(|kind| locals.find_any(*kind, name).is_some())
            || written.config.alias.contains_key(name)
            || Resolve::<task::Chat>::resolve(gateway, name).is_some()
    };
    let (of_server, mut problems) = match app.settings.server.api_key.read() {
        Ok(of_server) => (of_server, Vec::new()),
        Err(failure) => (None, vec![failure]),
    };
    for (name, section) in &written.config.keys {
        let one = Named::from([(name.clone(), section.clone())]);
        let alone = with(written, |config| config.keys = one);
        problems.extend(wire_up::keys(&alone, environment, (None, app.reach()), is_known).err());
    }
    // Two keys that are the same.
    if problems.is_empty() {
        problems
            .extend(wire_up::keys(written, environment, (of_server, app.reach()), is_known).err());
    }
    problems
}

/// The same file with other tables; positions are still those of the file.
fn with(written: &LoadedConfig, change: impl FnOnce(&mut ConfigFile)) -> LoadedConfig {
    let mut written = written.clone();
    change(&mut written.config);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_card_needs_a_build_for_cards() {
        let text = "[chat]\ndevice = \"cpu\"\n[transcription]\ndevice = \"CUDA0\"\n\
                    [model.a]\nmodel = \"a.gguf\"\ndevice = \"Vulkan0\"\n";
        let config = toml::from_str(text).expect("a good file");
        let written = LoadedConfig { config, text: text.to_owned(), ..LoadedConfig::default() };
        let said: Vec<String> =
            devices(&written, false).into_iter().map(|failure| failure.sentence).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        let begins = "hob.toml:7:1: model.a.device: there is no device Vulkan0, because this hob was built for";
        assert!(said[1].starts_with(begins), "{said:?}");
        assert!(
            said[0].starts_with("hob.toml:4:1: transcription.device: there is no device CUDA0")
        );
        assert_eq!(devices(&written, true), []);
    }
}
