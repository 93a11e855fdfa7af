//! What Ollama's names say behind the colon: `latest`, `135m`, `8b-instruct-q4_K_M`.
//! A tag is taken where the model's own file says the same; any other names another model.

use hob_core::ChatCard;

/// Parameters of a model, as parts of what its name says. Names are rounded, and those of small models leave
/// the embeddings out: Qwen3-0.6B has 752 million parameters.
const OF_THE_NAMED: std::ops::RangeInclusive<f64> = 0.9..=1.27;

/// Whether every part of `tag` is true of the model.
pub fn is_tag_of(tag: &str, card: &ChatCard) -> bool {
    let says_so = |part: &str| {
        part == "latest"
            || is_size(part, card.parameters)
            || part.eq_ignore_ascii_case(&card.quantization)
            || (["instruct", "it", "chat"].contains(&part) && card.template.is_some())
    };
    tag.split('-').all(says_so)
}

/// `135m`, `0.6b`.
fn is_size(part: &str, parameters: u64) -> bool {
    let Some((at, unit)) = part.char_indices().next_back() else { return false };
    let unit = match unit.to_ascii_lowercase() {
        'm' => 1e6,
        'b' => 1e9,
        _ => return false,
    };
    let named = part[..at].parse::<f64>().ok().filter(|named| named.is_normal());
    named.is_some_and(|named| OF_THE_NAMED.contains(&(parameters as f64 / (named * unit))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_taken_where_the_file_says_the_same() {
        let card = |parameters, quantization: &str| ChatCard {
            parameters,
            quantization: quantization.to_owned(),
            template: Some(String::new()),
            ..ChatCard::default()
        };
        let smol = card(134_515_008, "Q4_1");
        let qwen = card(751_632_384, "Q4_K_M");
        let bare = ChatCard { template: None, ..smol.clone() };
        for (tag, card, expect) in [
            ("latest", &smol, true),
            ("135m", &smol, true),
            ("135M", &smol, true),
            ("135m-instruct-q4_1", &smol, true),
            ("135m-instruct", &bare, false),
            ("135m-instruct-q8_0", &smol, false),
            ("360m", &smol, false),
            ("1.7b", &smol, false),
            ("0.6b", &qwen, true),
            ("0.6b-q4_K_M", &qwen, true),
            ("1.7b", &qwen, false),
            ("", &smol, false),
            ("m", &smol, false),
            ("0m", &smol, false),
            ("infm", &smol, false),
            ("-135m", &smol, false),
            ("cloud", &smol, false),
        ] {
            assert_eq!(is_tag_of(tag, card), expect, "{tag}");
        }
    }
}
