//! What a model may call, and whether it must: `tools`, and `functions` as they were before tools.
//! Schemas pass through as text, their keys in the order in which they came.

use hob_core::JsonText;
use hob_core::chat::{Tool, ToolChoice};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::CallShape;
use super::messages::FunctionType;
use crate::WireError;
use crate::request_value::{Either, JsonKind, Name, each};

const TOOLS_MAX: usize = 128;

const CHOICE: &str = "'none', 'auto', 'required' or an object that names a function";

/// Fields that offer tools.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ToolFields {
    /// Functions that the model may call, at most 128.
    tools: Option<Vec<ToolField>>,
    /// `none`, `auto`, `required`, a function, or `allowed_tools`. Default: `auto`.
    tool_choice: Option<Choice>,
    /// `false` allows one call in an answer. Default: `true`.
    parallel_tool_calls: Option<bool>,
    /// Tools as they were before `tools`, which wins.
    functions: Option<Vec<FunctionField>>,
    /// `tool_choice` for `functions`.
    function_call: Option<Choice>,
}

/// A tool.
#[derive(Deserialize, JsonSchema)]
struct ToolField {
    #[expect(dead_code, reason = "only checked: it is always 'function'")]
    r#type: Option<FunctionType>,
    function: FunctionField,
}

/// A function that a model may call.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct FunctionField {
    pub(crate) name: Name,
    pub(crate) description: Option<String>,
    /// A JSON Schema of the arguments.
    pub(crate) parameters: Option<Map<String, Value>>,
    /// `true` refuses a schema with keywords that hob cannot enforce.
    pub(crate) strict: Option<bool>,
}

pub(crate) type Choice = Either<String, ChoiceObject>;

/// A choice of tools: one function by its name, or several of which one may or must be called.
#[derive(Default, Deserialize, JsonSchema)]
pub(crate) struct ChoiceObject {
    r#type: Option<ChoiceType>,
    function: Option<FunctionName>,
    name: Option<Name>,
    allowed_tools: Option<AllowedTools>,
    /// For `allowed_tools` of the Responses API, which has no object around them.
    mode: Option<AllowedMode>,
    /// For `allowed_tools` of the Responses API, too.
    tools: Option<Vec<AllowedTool>>,
}

impl ChoiceObject {
    /// This function must be called.
    pub(crate) fn named(name: Name) -> ChoiceObject {
        ChoiceObject { name: Some(name), ..ChoiceObject::default() }
    }
}

impl JsonKind for ChoiceObject {}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ChoiceType {
    Function,
    AllowedTools,
}

/// A function, by its name.
#[derive(Deserialize, JsonSchema)]
struct FunctionName {
    name: Option<Name>,
}

/// Some of the tools.
#[derive(Deserialize, JsonSchema)]
struct AllowedTools {
    mode: Option<AllowedMode>,
    tools: Option<Vec<AllowedTool>>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum AllowedMode {
    Auto,
    Required,
}

/// One of the allowed tools.
#[derive(Deserialize, JsonSchema)]
struct AllowedTool {
    function: Option<FunctionName>,
    name: Option<Name>,
}

/// What a request offers to a model.
pub(crate) struct Offer {
    pub(crate) tools: Vec<Tool>,
    pub(crate) choice: ToolChoice,
    /// More than one call in one answer.
    pub(crate) parallel: bool,
    pub(crate) shape: CallShape,
}

pub(crate) fn tools(sent: ToolFields, ignored: &mut Vec<String>) -> Result<Offer, WireError> {
    let read = |ToolField { function, .. }| {
        tool(function).map_err(|error: WireError| error.within("function"))
    };
    let (offer, choice) = match list("tools", sent.tools, read)? {
        Some(tools) => {
            ignored.extend(sent.functions.map(|_| "functions".to_owned()));
            ignored.extend(sent.function_call.map(|_| "function_call".to_owned()));
            let parallel = sent.parallel_tool_calls.unwrap_or(true);
            (Offer::new(tools, parallel, CallShape::ToolCalls), sent.tool_choice)
        }
        // Functions answer one call at a time.
        None => match list("functions", sent.functions, tool)? {
            Some(tools) => (Offer::new(tools, false, CallShape::FunctionCall), sent.function_call),
            None => (Offer::new(Vec::new(), false, CallShape::ToolCalls), sent.tool_choice),
        },
    };
    offer.choose(choice)?.checked()
}

/// Tools of a realtime session, which have no object around the function.
pub(crate) fn flat_tools(
    sent: Vec<FunctionField>,
    choice: Option<Choice>,
) -> Result<(Vec<Tool>, ToolChoice), WireError> {
    let tools = list("tools", Some(sent), tool)?.unwrap_or_default();
    let offer = Offer::new(tools, true, CallShape::ToolCalls).choose(choice)?.checked()?;
    Ok((offer.tools, offer.choice))
}

/// An empty list is not a list.
fn list<T>(
    field: &str,
    sent: Option<Vec<T>>,
    read: impl FnMut(T) -> Result<Tool, WireError>,
) -> Result<Option<Vec<Tool>>, WireError> {
    let tools = each(field, sent.unwrap_or_default(), ("tools", TOOLS_MAX), read)?;
    Ok((!tools.is_empty()).then_some(tools))
}

fn tool(sent: FunctionField) -> Result<Tool, WireError> {
    if sent.name.0.is_empty() {
        return Err(WireError::missing("name"));
    }
    let schema = |schema| JsonText::parsed(Value::Object(schema).to_string());
    Ok(Tool {
        name: sent.name.0,
        description: sent.description,
        parameters: sent.parameters.map(schema),
        strict: sent.strict.unwrap_or(false),
    })
}

impl Offer {
    fn new(tools: Vec<Tool>, parallel: bool, shape: CallShape) -> Offer {
        Offer { tools, choice: ToolChoice::Auto, parallel, shape }
    }

    fn field(&self) -> &'static str {
        match self.shape {
            CallShape::ToolCalls => "tool_choice",
            CallShape::FunctionCall => "function_call",
        }
    }

    fn choose(mut self, sent: Option<Choice>) -> Result<Offer, WireError> {
        match sent {
            None => {}
            Some(Either::First(word)) => self.choice = self.word_choice(&word)?,
            Some(Either::Second(choice)) if choice.r#type == Some(ChoiceType::AllowedTools) => {
                let flat = AllowedTools { mode: choice.mode, tools: choice.tools };
                let flat = flat.tools.is_some().then_some(flat);
                let allowed = choice.allowed_tools.or(flat);
                let missing = || WireError::missing("allowed_tools").within(self.field());
                self.allow_only(allowed.ok_or_else(missing)?)?;
            }
            Some(Either::Second(choice)) => {
                self.choice = ToolChoice::Named(self.name(choice.function, choice.name)?);
            }
        }
        Ok(self)
    }

    /// Only some of the tools, of which one may or must be called.
    fn allow_only(&mut self, allowed: AllowedTools) -> Result<(), WireError> {
        let names = allowed.tools.unwrap_or_default().into_iter();
        let names: Vec<String> =
            names.map(|tool| self.name(tool.function, tool.name)).collect::<Result<_, _>>()?;
        for name in &names {
            self.check_offered(name)?;
        }
        self.tools.retain(|tool| names.contains(&tool.name));
        let is_required = allowed.mode == Some(AllowedMode::Required);
        self.choice = if is_required { ToolChoice::Required } else { ToolChoice::Auto };
        Ok(())
    }

    fn checked(self) -> Result<Offer, WireError> {
        match &self.choice {
            ToolChoice::Required if self.tools.is_empty() => {
                let reason = "wants a call, and there is no tool to call";
                Err(WireError::invalid(self.field(), reason))
            }
            ToolChoice::Named(name) => self.check_offered(name).map(|()| self),
            ToolChoice::Required | ToolChoice::Auto | ToolChoice::None => Ok(self),
        }
    }

    fn check_offered(&self, name: &str) -> Result<(), WireError> {
        if self.tools.iter().any(|tool| tool.name == name) {
            return Ok(());
        }
        let reason = format!("names '{name}', which is not among the tools");
        Err(WireError::invalid(self.field(), reason))
    }

    fn word_choice(&self, word: &str) -> Result<ToolChoice, WireError> {
        match word {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" => Ok(ToolChoice::Required),
            _ => {
                let reason = format!("must be {CHOICE}, and is another word");
                Err(WireError::invalid(self.field(), reason))
            }
        }
    }

    /// `{"function":{"name":…}}`, or without the outer object as `function_call` has it.
    fn name(
        &self,
        function: Option<FunctionName>,
        name: Option<Name>,
    ) -> Result<String, WireError> {
        let name = function.map_or(name, |function| function.name);
        name.map(|name| name.0).ok_or_else(|| {
            WireError::invalid(self.field(), format!("must be {CHOICE}, and names none"))
        })
    }
}
