//! Everybody listens: one text, by one voice, in one kind of file.
//! Sound is as its own kind measures it; what is new is only how many ask for it at once.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Crowd;
use crate::calibrate::{Calibration, Pace};
use crate::record::{Kind, Record};
use crate::runs::{Account, BenchError, Block, Runs, Subject};
use crate::speech::{Cell, Choice, Evidence, Offer, Speaker, Spoken, Text};
use crate::terms::Metric;
use crate::workbench::Asker;

#[derive(Debug)]
pub(crate) struct Listening<'a> {
    speaker: Speaker<'a>,
    text: Text,
    rounds: usize,
    pub(super) way: Way,
    /// By users, of the last block of them.
    heard: BTreeMap<usize, Evidence>,
}

/// Whose voice, and in which kind of file.
#[derive(Clone, Debug)]
pub(super) struct Way {
    voice: String,
    offer: Offer,
}

impl<'a> Listening<'a> {
    /// # Errors
    /// The server does not speak, or not as it was chosen.
    pub(super) fn prepare(
        asker: Asker<'a>,
        text: Text,
        choice: &Choice,
        rounds: usize,
    ) -> Result<Listening<'a>, BenchError> {
        let speaker = Speaker::prepare(asker, choice)?;
        let way = Way { voice: speaker.voices[0].clone(), offer: speaker.offers[0] };
        Ok(Listening { speaker, text, rounds, way, heard: BTreeMap::new() })
    }

    pub(super) fn ways(&self) -> Vec<Way> {
        let Speaker { voices, offers, .. } = &self.speaker;
        let of_voice = |voice: &String| {
            let way = |offer: &Offer| Way { voice: voice.clone(), offer: *offer };
            offers.iter().map(way).collect::<Vec<_>>()
        };
        voices.iter().flat_map(of_voice).collect()
    }

    fn cell(&self, users: usize) -> Cell {
        let Way { voice, offer } = self.way.clone();
        Cell {
            kind: Kind::Tts,
            text: self.text,
            format: offer.format,
            voice,
            asking: offer.asking,
            users,
            rounds: self.rounds,
        }
    }
}

impl Crowd for Listening<'_> {
    fn name(&self, users: usize) -> String {
        self.cell(users).name()
    }

    fn block(
        &mut self,
        users: usize,
        calibration: Option<&Calibration>,
    ) -> Result<Block, BenchError> {
        let cell = self.cell(users);
        let mut spoken = Spoken::new(&self.speaker, &cell);
        let block = spoken.block(calibration)?;
        self.heard.extend(spoken.evidence.map(|evidence| (users, evidence)));
        Ok(block)
    }

    fn leading(&self) -> &'static [Metric] {
        self.cell(1).leading()
    }

    fn pace(&self, users: usize, warm: &Block) -> Option<Pace> {
        self.cell(users).pace(warm)
    }

    fn account<'r>(&mut self, users: usize, runs: &'r Runs, started: Timestamp) -> Account<'r> {
        self.cell(users).account(runs, started)
    }

    fn add(&mut self, users: usize, runs: &Runs, record: &mut Record) {
        let evidence = self.heard.remove(&users);
        record.tts = Some(self.cell(users).section(runs, evidence.as_ref(), &[]));
    }
}
