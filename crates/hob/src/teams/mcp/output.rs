//! Results of MCP tools as text for models. What is not text is named in a line, because a model cannot read it.
//! The length is limited later, as for all tools.

use hob_agents::ToolOutput;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

pub(super) fn of(result: CallToolResult) -> ToolOutput {
    let has_text = result.content.iter().any(|part| matches!(part, ContentBlock::Text(_)));
    let mut parts: Vec<String> = result.content.iter().map(part).collect();
    if let Some(value) = result.structured_content.filter(|_| !has_text) {
        parts.push(value.to_string());
    }
    let text = if parts.is_empty() { "[no output]".to_owned() } else { parts.join("\n") };
    ToolOutput { text, is_error: result.is_error.unwrap_or_default(), ..ToolOutput::default() }
}

fn part(part: &ContentBlock) -> String {
    match part {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => hidden("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => hidden("sound", &audio.mime_type, &audio.data),
        ContentBlock::ResourceLink(link) => format!("[resource {} ({})]", link.uri, link.name),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[resource {uri}]\n{text}")
            }
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                hidden("resource", uri, blob)
            }
            _ => "[a resource, not shown]".to_owned(),
        },
        _ => "[a part of an unknown kind, not shown]".to_owned(),
    }
}

fn hidden(kind: &str, name: &str, base64: &str) -> String {
    // Four characters are three bytes.
    let bytes = base64.trim_end_matches('=').len() * 3 / 4;
    format!("[{kind} {name}, {bytes} bytes, not shown]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_that_are_no_text_are_named() {
        for (result, expected) in [
            (
                json!({ "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] }),
                "a\nb",
            ),
            (
                json!({ "content": [{ "type": "image", "data": "AAAAAA==", "mimeType": "image/png" }] }),
                "[image image/png, 4 bytes, not shown]",
            ),
            (
                json!({ "content": [
                    { "type": "text", "text": "see" },
                    { "type": "resource", "resource": { "uri": "file:///x", "text": "a file" } },
                    { "type": "resource", "resource": { "uri": "file:///z", "blob": "AAAA" } },
                    { "type": "resource_link", "uri": "file:///y", "name": "y" },
                ], "structuredContent": { "a": 1 } }),
                "see\n[resource file:///x]\na file\n[resource file:///z, 3 bytes, not shown]\n[resource file:///y (y)]",
            ),
            (json!({ "content": [], "structuredContent": { "a": 1 } }), "{\"a\":1}"),
            (json!({ "content": [] }), "[no output]"),
        ] {
            let result: CallToolResult = serde_json::from_value(result).expect("a result");
            assert_eq!(of(result), ToolOutput::ok(expected));
        }
        let failed = json!({ "content": [{ "type": "text", "text": "no" }], "isError": true });
        let failed: CallToolResult = serde_json::from_value(failed).expect("a result");
        assert_eq!(of(failed), ToolOutput::error("no"));
    }
}
