//! Names of the tools by which agents call each other.
//! APIs allow letters, digits and `_` in names of tools; other characters of an agent's name become `_`.

/// The tool that hands over to this agent.
pub(crate) fn handoff_name(agent: &str) -> String {
    format!("transfer_to_{}", plain(agent))
}

/// The tool that delegates to this agent.
pub(crate) fn delegate_name(agent: &str) -> String {
    format!("delegate_to_{}", plain(agent))
}

fn plain(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .collect()
}
