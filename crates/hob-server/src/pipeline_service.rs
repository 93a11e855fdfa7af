//! The trait behind the Pipelines routes: team files, and the settings of teams that clients may change.
//! A trait, because the server knows no team files.

use std::fmt;

use futures::future::BoxFuture;
use hob_wire::{Valve, ValveChange};

use crate::team_service::RunRefusal;

/// Team files. Calls read and write files, so they run on threads for blocking work.
pub trait PipelineService: fmt::Debug + Send + Sync {
    /// The teams that chats can use, by their ids.
    fn teams(&self) -> Vec<String>;

    /// The mistakes in team files, with their places.
    fn mistakes(&self) -> Vec<String>;

    /// # Errors
    /// There is no such team, or its file cannot be read.
    fn valves(&self, id: &str) -> Result<Vec<Valve>, RunRefusal>;

    /// Stores new values, all or none.
    ///
    /// # Errors
    /// There is no such team or valve, or a value is wrong.
    fn set_valves(&self, id: &str, changes: &[ValveChange]) -> Result<(), RunRefusal>;

    /// Adds a team, and gives its id. `name` is the name of the client's file, which only matters for a team without an
    /// `id`.
    ///
    /// # Errors
    /// The file is not a team file or has a mistake, or there is a team of this id.
    fn add(&self, name: &str, text: &[u8]) -> Result<String, RunRefusal>;

    /// Fetches a team file from a public address: its name and its text.
    ///
    /// # Errors
    /// The address is not public, or has no such file.
    fn download<'s>(&'s self, url: &'s str)
    -> BoxFuture<'s, Result<(String, Vec<u8>), RunRefusal>>;

    /// Takes a team out of service. Its file stays under another name.
    ///
    /// # Errors
    /// There is no such team, or hob brings it.
    fn delete(&self, id: &str) -> Result<(), RunRefusal>;
}
