//! How much of the prompts a server took from its cache. A warm cache makes the first character come early.
//! Times from a warm cache are not comparable with times from a cold one.

use hob_core::count_text;

/// Cached tokens over prompt tokens, 0 to 1. One pair is one item. `None` without prompt tokens.
pub fn cached_share(items: &[(u32, u32)]) -> Option<f64> {
    let prompt: u64 = items.iter().map(|(prompt, _)| u64::from(*prompt)).sum();
    let cached: u64 = items.iter().map(|(prompt, cached)| u64::from(*cached.min(prompt))).sum();
    (prompt > 0).then(|| cached as f64 / prompt as f64)
}

/// Whether a prompt came from the cache: half of it is more than a system prompt that all items share.
pub fn is_mostly_cached((prompt, cached): (u32, u32)) -> bool {
    cached > 0 && cached >= prompt.div_ceil(2)
}

/// Says how many items were answered from a warm cache. `None`: none was.
pub fn warm_cache_sentence(items: &[(u32, u32)]) -> Option<String> {
    let percent = cached_share(items)? * 100.0;
    let warm = items.iter().filter(|counts| is_mostly_cached(**counts)).count();
    let all = count_text(items.len(), "item");
    (warm > 0).then(|| {
        format!(
            "The prompt cache was warm for {warm} of {all}: {percent:.0} % of the prompt tokens came from it. \
             Times to the first character are too short."
        )
    })
}
