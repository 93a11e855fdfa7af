//! x
//! y
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServedModel {
    pub id: String,
    pub context_tokens: Option<u32>,
    pub is_loaded: Option<bool>,
    pub thinks: Option<bool>,
    pub calls_tools: Option<bool>,
    pub sees: Option<bool>,
}
pub fn parse_openai_models(_: &[u8]) -> Result<Vec<ServedModel>, String> {
    Ok(vec![])
}
pub fn parse_ollama_tags(_: &[u8]) -> Result<Vec<ServedModel>, String> {
    Ok(vec![])
}
pub fn parse_ollama_ps(_: &[u8]) -> Result<Vec<ServedModel>, String> {
    Ok(vec![])
}
pub fn parse_llama_props(_: &[u8]) -> Result<Option<u32>, String> {
    Ok(None)
}
pub fn parse_tabby_model(_: &[u8]) -> Result<ServedModel, String> {
    Err(String::new())
}
