//! Tools: what an agent may do besides answering. A tool says how far it reaches, and policy decides by that.
//! The machine never runs one; the driver does, with the arguments that were checked against the schema.

use std::fmt;
use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::chat::JsonText;
use jsonschema::Validator;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::team::Agent;

/// How far a tool reaches. Decides when a person is asked ([`crate::Approval`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolClass {
    /// Reads this machine.
    Read,
    /// Reads the network.
    Network,
    /// Changes files of the workspace.
    Write,
    /// Runs a command in a sandbox.
    Execute,
    /// Acts outside the workspace.
    System,
}

impl ToolClass {
    /// Whether a tool of hob's own in this class may run again after an interruption.
    fn is_repeatable(self) -> bool {
        matches!(self, ToolClass::Read | ToolClass::Network)
    }
}

/// What models and policy know about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON schema of the arguments: an object.
    pub schema: Value,
    pub forms: SchemaForms,
    pub class: ToolClass,
    /// The command of a call, to which rules apply.
    pub command: Option<CommandArgument>,
    /// A second call does no harm if the first was interrupted.
    pub may_repeat: bool,
    /// The output comes from others. A model that reads it may be misled, so commands are asked for afterwards.
    pub is_foreign: bool,
    /// The client of the run makes its calls.
    pub is_from_client: bool,
}

/// Where the arguments of a call have its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandArgument {
    /// The text of a shell command, in this field.
    Shell(&'static str),
    /// The words of a command without a shell: a field with the first word, and a field with a list of the others.
    Words(&'static str, &'static str),
}

impl ToolSpec {
    /// A tool without commands, whose output is hob's own.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
        class: ToolClass,
    ) -> ToolSpec {
        let (name, description) = (name.into(), description.into());
        let may_repeat = class.is_repeatable();
        ToolSpec {
            name,
            description,
            schema,
            forms: SchemaForms::default(),
            class,
            command: None,
            may_repeat,
            is_foreign: false,
            is_from_client: false,
        }
    }
}

/// What every turn needs of a schema, computed once when it is first needed. Clones of a tool share it; a tool with another
/// schema needs its own.
#[derive(Clone, Default)]
pub struct SchemaForms(Arc<ComputedForms>);

#[derive(Default)]
struct ComputedForms {
    validator: OnceLock<Result<Validator, String>>,
    plain: OnceLock<JsonText>,
    strict: OnceLock<Option<JsonText>>,
}

impl SchemaForms {
    /// # Errors
    /// The schema is invalid.
    pub(crate) fn validator(&self, schema: &Value) -> Result<&Validator, String> {
        let compile = || {
            jsonschema::validator_for(schema)
                .map_err(|error| format!("the tool's schema is invalid: {error}"))
        };
        self.0.validator.get_or_init(compile).as_ref().map_err(String::clone)
    }

    /// The schema as a text.
    pub(crate) fn plain(&self, schema: &Value) -> JsonText {
        self.0.plain.get_or_init(|| JsonText::parsed(schema.to_string())).clone()
    }

    /// The strict form as a text, if there is one.
    pub(crate) fn strict(&self, form: impl FnOnce() -> Option<Value>) -> Option<JsonText> {
        self.0.strict.get_or_init(|| Some(JsonText::parsed(form()?.to_string()))).clone()
    }
}

impl fmt::Debug for SchemaForms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaForms").finish_non_exhaustive()
    }
}

/// They follow from the schemas, which are compared.
impl PartialEq for SchemaForms {
    fn eq(&self, _: &SchemaForms) -> bool {
        true
    }
}

/// The result of a call, as the model reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutput {
    pub text: String,
    /// The call did not do what was asked.
    pub is_error: bool,
    /// Files in the workspace that the call has written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
}

impl ToolOutput {
    /// Longest output in bytes that a model reads.
    pub const BYTES_MAX: usize = 16 * 1024;

    pub fn ok(text: impl Into<String>) -> ToolOutput {
        ToolOutput { text: text.into(), ..ToolOutput::default() }
    }

    pub fn error(text: impl Into<String>) -> ToolOutput {
        ToolOutput { text: text.into(), is_error: true, ..ToolOutput::default() }
    }

    /// At most [`ToolOutput::BYTES_MAX`] bytes. The rest is counted.
    #[must_use]
    pub fn bounded(mut self) -> ToolOutput {
        if self.text.len() > ToolOutput::BYTES_MAX {
            let end = self.text.floor_char_boundary(ToolOutput::BYTES_MAX);
            let left = self.text.len() - end;
            self.text.truncate(end);
            self.text += &format!("\n[{left} bytes left]");
        }
        self
    }
}

/// A tool that a driver can run.
pub trait AgentTool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// Runs the tool with arguments that match its schema. Dropping the future stops the work.
    fn call(&self, arguments: Value) -> BoxFuture<'_, ToolOutput>;
}

/// Tools that are known only when they are opened, such as those of another server.
pub trait ToolSource: Send + Sync {
    /// Opens the tools that the agent names. Gives those that are new in this run, and notes about those that are
    /// missing. It ends within a limit of time, and never fails a run.
    fn open<'s>(&'s self, agent: &'s Agent) -> BoxFuture<'s, OpenedTools>;
}

/// No further tools.
impl ToolSource for () {
    fn open<'s>(&'s self, _: &'s Agent) -> BoxFuture<'s, OpenedTools> {
        async { OpenedTools::default() }.boxed()
    }
}

/// Tools that were opened for an agent.
#[derive(Default)]
pub struct OpenedTools {
    pub tools: Vec<Arc<dyn AgentTool>>,
    /// Sentences for people.
    pub notes: Vec<String>,
}

hob_core::debug_fields!(OpenedTools: notes);
