//! `hob bench tts`: how fast a server speaks. Progress goes to stderr, the table to stdout.
//! What is shared with `hob bench stream` is here: which texts, which formats, whose voice.

use std::collections::BTreeMap;

use clap::Args;
use hob_bench::drive::CONNECTIONS_MAX;
use hob_bench::record::{Kind, Record, Tts};
use hob_bench::speech::{Choice, Formats, TEXTS, Text};
use hob_bench::terms::Metric;
use hob_bench::timeline::SoundFormat;
use hob_bench::tts::{Wish, measure};
use hob_bench::workbench::Workbench;
use hob_core::statistics::Sample;

use super::aim::Purpose;
use super::campaign::{self, CampaignArgs, badge, off_by, users_of};
use crate::failure::{Exit, Failure, Outcome};
use crate::globals::Globals;
use crate::printer::{Printer, table};

/// As long as a text may be that hob speaks.
const TEXT_CHARS_MAX: usize = 100_000;

/// How fast a server speaks: three texts, in every format that it offers, the load kept apart
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TtsArgs {
    #[command(flatten)]
    pub(super) campaign: CampaignArgs,
    /// Texts to be spoken
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = text,
        default_value = "short,medium,long")]
    text: Vec<Text>,
    /// A text of your own instead: a file of up to 100,000 characters, or - for standard input
    #[arg(long, value_name = "FILE", value_parser = own_text, conflicts_with = "text")]
    text_file: Option<Text>,
    #[command(flatten)]
    choice: ChoiceArgs,
    /// Users at once; each waits for its answer
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1")]
    users: Vec<usize>,
    /// Requests of each user in a run
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: usize,
}

/// In which format, and by whom.
#[derive(Clone, Debug, Args)]
pub(super) struct ChoiceArgs {
    /// Formats: pcm, wav, mp3; without it those that the server offers
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = format)]
    format: Vec<SoundFormat>,
    /// Voices; without it the first that the server lists
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    voice: Vec<String>,
}

const AFTER_HELP: &str = "\
Texts: short (12 characters), medium (49), long (210), first_sound (90), two_sentences (67), article (8700).
Of the first three comes the tier, by the mean of their times: 1 under 3 s, 2 under 7 s, 3 slower.

Examples:
  hob bench tts                        of the voice that hob serve would speak with
  hob bench tts --format pcm --text article --runs-min 2 --runs-max 2
  hob bench tts --text-file chapter.txt --format mp3 --voice af_heart,bm_fable
  hob bench tts --target http://127.0.0.1:8880 --model kokoro --voice af_heart --users 1,4
  hob bench tts --target http://127.0.0.1:8880 --model tts-1 --voice alloy --format mp3";

impl TtsArgs {
    /// The cell of this record alone.
    pub(super) fn only(&mut self, record: &Record) {
        let Some(tts) = &record.tts else { return };
        let is_it = |text: &Text| Some(text.sha256()) == tts.text_sha256;
        if let Some(text) = TEXTS.into_iter().find(is_it) {
            self.text = vec![text];
        }
        self.choice.only(tts);
        self.users = users_of(record, &self.users);
    }
}

pub(super) fn text(name: &str) -> Result<Text, String> {
    let known = TEXTS.map(|text| text.name).join(", ");
    Text::named(name.trim()).ok_or_else(|| format!("there are {known}"))
}

/// The text is named by its file, because records keep the command line and no text.
fn own_text(file: &str) -> Result<Text, String> {
    let words = match file {
        "-" => std::io::read_to_string(std::io::stdin()).map_err(|error| error.to_string())?,
        file => fs_err::read_to_string(file).map_err(|error| error.to_string())?,
    };
    match words.trim() {
        "" => Err("the text is empty".to_owned()),
        long if long.chars().count() > TEXT_CHARS_MAX => {
            let chars = long.chars().count();
            Err(format!("the text has {chars} characters, and the limit is {TEXT_CHARS_MAX}"))
        }
        words => Ok(Text::own(words)),
    }
}

fn format(name: &str) -> Result<SoundFormat, String> {
    let known = SoundFormat::ALL.map(SoundFormat::name).join(", ");
    SoundFormat::named(name.trim()).ok_or_else(|| format!("there are {known}"))
}

impl ChoiceArgs {
    /// Those of this record alone.
    pub(super) fn only(&mut self, tts: &Tts) {
        if let Some(format) = tts.format.as_deref().and_then(SoundFormat::named) {
            self.format = vec![format];
        }
        self.voice = tts.voice.clone().into_iter().collect();
    }

    /// Of `usual` formats where none was typed.
    pub(super) fn choice(&self, usual: Formats) -> Choice {
        let formats = match &self.format[..] {
            [] => usual,
            typed => Formats::All(typed.to_vec()),
        };
        Choice { formats, voices: self.voice.clone() }
    }
}

pub(crate) fn run(args: &TtsArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    let wish = args.wish()?;
    let work = move |bench: &mut Workbench<'_>| measure(bench, &wish);
    let aim = args.campaign.aim.settle_for(Purpose::Speech, globals, printer)?;
    let done = campaign::measured(&args.campaign, aim, (printer, Kind::Tts), work)?;
    done.show(args.campaign.json, printer, shown)?;
    done.exit(|record| !record.invalid_reasons.is_empty())
}

impl TtsArgs {
    fn wish(&self) -> Outcome<Wish> {
        let is_possible = |users: &usize| (1..=CONNECTIONS_MAX).contains(users);
        if !self.users.iter().all(is_possible) {
            return Err(Failure::usage(format!("from 1 to {CONNECTIONS_MAX} users are possible")));
        }
        if self.rounds == 0 {
            return Err(Failure::usage("each user asks once at least"));
        }
        Ok(Wish {
            texts: self.text_file.map_or_else(|| self.text.clone(), |text| vec![text]),
            choice: self.choice.choice(Formats::Offered(SoundFormat::ALL.to_vec())),
            users: self.users.clone(),
            rounds: self.rounds,
        })
    }
}

fn shown(records: &[Record]) -> String {
    let mut table = table([
        "text",
        "format",
        "voice",
        "users",
        "first byte",
        "first sound",
        "whole",
        "sound",
        "bytes",
        "RTF",
        "char/s",
        "× real time",
        "underrun",
        "memory",
        "errors",
        "client off by",
        "",
    ]);
    for record in records {
        let figure = |metric| record.metrics.figure(metric);
        let ms = |metric| figure(metric).map_or("–".to_owned(), |ms| format!("{ms:.0} ms"));
        let number = |metric, digits: usize| {
            figure(metric).map_or("–".to_owned(), |n| format!("{n:.digits$}"))
        };
        let tts = record.tts.clone().unwrap_or_default();
        table.add_row([
            record.workload.shape.clone().unwrap_or_default(),
            tts.format.unwrap_or_default(),
            tts.voice.unwrap_or_default(),
            record.workload.concurrency.map_or(String::new(), |users| users.to_string()),
            ms(Metric::TtfbMs),
            ms(Metric::TtfaMs),
            ms(Metric::WallMs),
            figure(Metric::AudioS).map_or("–".to_owned(), |s| format!("{s:.1} s")),
            tts.bytes.map_or("–".to_owned(), |bytes| bytes.to_string()),
            number(Metric::Rtf, 3),
            number(Metric::CharsS, 0),
            number(Metric::RealTimeX, 1),
            ms(Metric::UnderrunMs),
            engine_mb(record).map_or("–".to_owned(), |mb| format!("{mb:.0} MB")),
            record.metrics.errors.unwrap_or_default().to_string(),
            off_by(record),
            badge(record).to_owned(),
        ]);
    }
    let means =
        [means(records, |tts| tts.format.as_ref()), means(records, |tts| tts.voice.as_ref())];
    let lines = means.into_iter().flatten().chain(records.iter().filter_map(tier));
    lines.fold(table.trim_fmt(), |text, line| format!("{text}\n\n{line}"))
}

/// The speech engine alone, where it can be told from the rest of the server.
fn engine_mb(record: &Record) -> Option<f64> {
    record.resources.speech_rss_peak_mb.or_else(|| record.resources.memory_mb())
}

/// A line for each format, or for each voice, where there are several of them.
fn means(records: &[Record], name: fn(&Tts) -> Option<&String>) -> Vec<String> {
    let mut groups: BTreeMap<&String, Vec<&Record>> = BTreeMap::new();
    for record in records {
        if let Some(name) = record.tts.as_ref().and_then(name) {
            groups.entry(name).or_default().push(record);
        }
    }
    if groups.len() < 2 {
        return Vec::new();
    }
    let mean = |records: &[&Record], metric| {
        Sample::new(records.iter().filter_map(|record| record.metrics.figure(metric))).mean()
    };
    let line = |(name, records): (&String, Vec<&Record>)| {
        let of = |metric| mean(&records, metric).unwrap_or_default();
        format!(
            "{name}: first sound {:.0} ms, whole {:.0} ms, RTF {:.3}, mean of {} cells",
            of(Metric::TtfaMs),
            of(Metric::WallMs),
            of(Metric::Rtf),
            records.len()
        )
    };
    groups.into_iter().map(line).collect()
}

/// Said once for each set of three texts.
fn tier(record: &Record) -> Option<String> {
    let tts = record.tts.as_ref()?;
    let (tier, format, voice) = (tts.tier?, tts.format.as_ref()?, tts.voice.as_ref()?);
    let meaning = match tier {
        1 => "real time: under 3 s in the mean of three texts",
        2 => "moderate: under 7 s in the mean of three texts",
        _ => "slow: 7 s or more in the mean of three texts",
    };
    Some(format!("{format} by {voice}: tier {tier}, {meaning}"))
}
