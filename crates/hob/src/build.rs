//! The commit from which this program was built.
//! A build from an archive has no commit.

/// `None` if the commit is unknown.
pub(crate) fn commit() -> Option<String> {
    option_env!("HOB_BUILT_FROM").filter(|commit| !commit.is_empty()).map(str::to_owned)
}

/// Whether there were changes after the commit.
pub(crate) fn is_dirty() -> Option<bool> {
    commit().and(option_env!("HOB_BUILT_DIRTY")).map(|dirty| dirty == "true")
}
