//! The commit that this program was built from, as the build noted it.
//! A build from an archive knows none, and says so.

/// None where nobody knows.
pub(crate) fn commit() -> Option<String> {
    option_env!("HOB_BUILT_FROM").filter(|commit| !commit.is_empty()).map(str::to_owned)
}

/// Whether there were changes beyond the commit.
pub(crate) fn is_dirty() -> Option<bool> {
    commit().and(option_env!("HOB_BUILT_DIRTY")).map(|dirty| dirty == "true")
}
