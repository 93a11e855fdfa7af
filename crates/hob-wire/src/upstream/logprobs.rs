//! Log probabilities as servers write them: OpenAI's list of tokens, its older four lists, or Ollama's plain list.
//! Few requests ask for them, so the code is simple and not fast.

use hob_core::chat::{TokenLogprob, TokenText};
use serde_json::Value;

/// Reads `logprobs`. Empty if its form is unknown.
pub(super) fn tokens_of(logprobs: &Value) -> Vec<TokenLogprob> {
    match (logprobs, &logprobs["content"], &logprobs["tokens"]) {
        (Value::Array(tokens), ..) | (_, Value::Array(tokens), _) => {
            tokens.iter().filter_map(token).collect()
        }
        (.., Value::Array(tokens)) => older(tokens, logprobs),
        _ => Vec::new(),
    }
}

/// `{"token", "logprob", "bytes", "top_logprobs"}`.
fn token(value: &Value) -> Option<TokenLogprob> {
    let (token, logprob) = likelihood(value)?;
    let top = value["top_logprobs"].as_array().into_iter().flatten();
    Some(TokenLogprob { token, logprob, top: top.filter_map(likelihood).collect() })
}

fn likelihood(value: &Value) -> Option<(TokenText, f32)> {
    let bytes = value["bytes"].as_array().map(|bytes| {
        bytes.iter().filter_map(|byte| u8::try_from(byte.as_u64()?).ok()).collect::<Vec<u8>>()
    });
    let bytes = bytes.or_else(|| Some(value["token"].as_str()?.as_bytes().to_vec()))?;
    Some((TokenText(bytes), value["logprob"].as_f64()? as f32))
}

/// `{"tokens": […], "token_logprobs": […], "top_logprobs": [{"token": …}]}`, as completions have it. The first token of an
/// echoed prompt has no probability, and keeps its place: programs find the answer by the number of the prompt's tokens.
fn older(tokens: &[Value], logprobs: &Value) -> Vec<TokenLogprob> {
    let text = |text: &str| TokenText(text.as_bytes().to_vec());
    let of = |(place, token): (usize, &Value)| {
        let logprob = logprobs["token_logprobs"][place].as_f64().map_or(f32::NAN, |p| p as f32);
        let top = logprobs["top_logprobs"][place].as_object().into_iter().flatten();
        let top = top.filter_map(|(token, value)| Some((text(token), value.as_f64()? as f32)));
        let mut top: Vec<_> = top.collect();
        top.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        Some(TokenLogprob { token: text(token.as_str()?), logprob, top })
    };
    tokens.iter().enumerate().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(token: &str, logprob: f32, top: &[(&str, f32)]) -> TokenLogprob {
        let text = |text: &str| TokenText(text.as_bytes().to_vec());
        let top = top.iter().map(|(token, logprob)| (text(token), *logprob)).collect();
        TokenLogprob { token: text(token), logprob, top }
    }

    #[test]
    fn every_form_is_read_alike() {
        let expected = vec![
            plain("Hi", -0.5, &[("Hi", -0.5), ("He", -1.5)]),
            plain("!", -0.25, &[("!", -0.25)]),
        ];
        for json in [
            r#"{"content":[{"token":"?","bytes":[72,105],"logprob":-0.5,"top_logprobs":[
                {"token":"Hi","logprob":-0.5},{"token":"He","logprob":-1.5,"bytes":null}]},
                {"token":"!","logprob":-0.25,"top_logprobs":[{"token":"!","logprob":-0.25}]}]}"#,
            r#"[{"token":"Hi","logprob":-0.5,"top_logprobs":[{"token":"Hi","logprob":-0.5},
                {"token":"He","logprob":-1.5}]},
                {"token":"!","logprob":-0.25,"top_logprobs":[{"token":"!","logprob":-0.25}]}]"#,
            r#"{"tokens":["Hi","!"],"token_logprobs":[-0.5,-0.25],"text_offset":[0,2],
                "top_logprobs":[{"He":-1.5,"Hi":-0.5},{"!":-0.25}]}"#,
        ] {
            let json: Value = serde_json::from_str(json).expect("JSON");
            assert_eq!(tokens_of(&json), expected, "{json}");
        }
    }

    #[test]
    fn the_first_token_of_a_prompt_keeps_its_place() {
        let json = r#"{"tokens":["Hi","!"],"token_logprobs":[null,-0.25],"text_offset":[0,2],
            "top_logprobs":[null,{"!":-0.25}]}"#;
        let tokens = tokens_of(&serde_json::from_str(json).expect("JSON"));
        assert!(tokens[0].logprob.is_nan() && tokens[0].top.is_empty(), "{tokens:?}");
        assert_eq!(tokens[0].token, TokenText(b"Hi".to_vec()));
        assert_eq!(tokens[1..], [plain("!", -0.25, &[("!", -0.25)])]);
        let alone = r#"{"tokens":["a"],"token_logprobs":[null],"top_logprobs":null}"#;
        assert_eq!(tokens_of(&serde_json::from_str(alone).expect("JSON")).len(), 1);
    }

    #[test]
    fn what_has_no_number_is_left_out() {
        for json in [
            r#"{"content":null}"#,
            r#"{"content":[{"token":"a"},{"logprob":1},7]}"#,
            r#""x""#,
            "null",
        ] {
            let json: Value = serde_json::from_str(json).expect("JSON");
            assert_eq!(tokens_of(&json), [], "{json}");
        }
    }
}
