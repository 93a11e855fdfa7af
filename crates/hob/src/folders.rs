//! The platform's folders for this user: for work, configuration and data.
//! Pure data: `settings/environment.rs` finds them.

use std::path::PathBuf;

/// The platform's folders for this user.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folders {
    pub(crate) working: PathBuf,
    /// `None` if the system knows no home folder, as for some service users.
    pub(crate) home: Option<PathBuf>,
    pub(crate) config: Option<PathBuf>,
    pub(crate) data: Option<PathBuf>,
}
