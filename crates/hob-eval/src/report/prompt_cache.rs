//! How much of the prompts a server took from its cache. A warm cache makes the first character come early.
//! Times from a warm cache are not comparable with times from a cold one.

use hob_core::count_text;

/// Cached tokens over prompt tokens, 0 to 1. One pair is one item. `None` without prompt tokens.
pub fn cached_share(items: &[(u32, u32)]) -> Option<f64> {
    let prompt: u64 = items.iter().map(|(prompt, _)| u64::from(*prompt)).sum();
    let cached: u64 = items.iter().map(|(prompt, cached)| u64::from(*cached.min(prompt))).sum();
    (prompt > 0).then(|| cached as f64 / prompt as f64)
}

/// Says whether items were answered from a warm cache. `None` without prompt tokens.
pub fn cache_sentence(items: &[(u32, u32)]) -> Option<String> {
    let percent = cached_share(items)? * 100.0;
    // Half of a prompt is more than a system prompt that all items share.
    let is_warm = |(prompt, cached): &&(u32, u32)| *cached > 0 && *cached >= prompt.div_ceil(2);
    let (warm, all) = (items.iter().filter(is_warm).count(), count_text(items.len(), "item"));
    Some(if warm == 0 {
        format!("The prompt cache was cold: {percent:.0} % of the prompt tokens came from it.")
    } else {
        format!(
            "The prompt cache was warm for {warm} of {all}: {percent:.0} % of the prompt tokens came from it. \
             Times to the first character are too short."
        )
    })
}
