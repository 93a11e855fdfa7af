//! The tools that hob brings: files of the workspace, commands in a sandbox, and the state of services.
//! Tools that need the network or hob's own state are added by the program.

mod container_sandbox;
mod containers;
mod files;
mod limits;
mod process;
mod protected;
#[cfg(target_os = "linux")]
mod restrict;
mod sandbox;
mod sandbox_access;
mod services;
mod shell;
#[cfg(target_os = "linux")]
mod supervise;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tool::{ToolClass, ToolOutput, ToolSpec};
pub use containers::{ContainerEngine, ContainerRun};
pub use files::{ReadFile, WriteFile};
#[cfg(target_os = "linux")]
pub use restrict::restrict_and_run;
pub use sandbox::SandboxPrograms;
pub use sandbox_access::SandboxAccess;
pub use services::Systemctl;
pub use shell::Shell;
#[cfg(target_os = "linux")]
pub use supervise::supervise;

/// A tool's description, with the schema of its arguments.
pub fn spec_of<Arguments: JsonSchema>(name: &str, description: &str, class: ToolClass) -> ToolSpec {
    let generator = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = generator.into_generator().into_root_schema_for::<Arguments>().to_value();
    if let Some(members) = schema.as_object_mut() {
        members.remove("title");
    }
    ToolSpec::new(name, description, schema, class)
}

/// Arguments that were checked against the schema of `Arguments`.
///
/// # Errors
/// They do not match it.
pub fn arguments<Arguments: DeserializeOwned>(value: Value) -> Result<Arguments, String> {
    serde_json::from_value(value).map_err(|error| format!("the arguments are wrong: {error}"))
}

/// Checks the arguments of a call, and runs it. The model reads what went wrong.
async fn run_checked<Arguments, Run>(value: Value, run: impl FnOnce(Arguments) -> Run) -> ToolOutput
where
    Arguments: DeserializeOwned,
    Run: Future<Output = Result<ToolOutput, String>>,
{
    match arguments(value) {
        Ok(asked) => run(asked).await.unwrap_or_else(ToolOutput::error),
        Err(reason) => ToolOutput::error(reason),
    }
}
