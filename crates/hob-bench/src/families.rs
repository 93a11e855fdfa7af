//! Finds a model's family and its first release by the start of its name.
//! Months are those of the makers' announcements; unknown months are absent.

/// Models that share a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Start of the name, in small letters, digits and dots.
    start: &'static str,
    pub name: &'static str,
    /// Year and month.
    pub released: Option<&'static str>,
}

const fn family(start: &'static str, name: &'static str, released: &'static str) -> Family {
    let released = if released.is_empty() { None } else { Some(released) };
    Family { start, name, released }
}

const FAMILIES: [Family; 49] = [
    family("chatterbox", "Chatterbox", "2025-05"),
    family("csm", "CSM", "2025-03"),
    family("deepseekr1", "DeepSeek-R1", "2025-01"),
    family("deepseekv2", "DeepSeek-V2", "2024-05"),
    family("deepseekv3", "DeepSeek-V3", "2024-12"),
    family("dia", "Dia", "2025-04"),
    family("gemma2", "Gemma 2", "2024-06"),
    family("gemma2b", "Gemma", "2024-02"),
    family("gemma3", "Gemma 3", "2025-03"),
    family("gemma4", "Gemma 4", "2026-04"),
    family("gemma7b", "Gemma", "2024-02"),
    family("gptoss", "gpt-oss", "2025-08"),
    family("kokoro", "Kokoro", "2024-12"),
    family("kugelaudio", "KugelAudio", ""),
    family("lfm2", "LFM2", "2025-07"),
    family("llama2", "Llama 2", "2023-07"),
    family("llama3", "Llama 3", "2024-04"),
    family("llama3.1", "Llama 3.1", "2024-07"),
    family("llama3.2", "Llama 3.2", "2024-09"),
    family("llama3.3", "Llama 3.3", "2024-12"),
    family("longcat", "LongCat", ""),
    family("metallama3", "Llama 3", "2024-04"),
    family("metallama3.1", "Llama 3.1", "2024-07"),
    family("minicpmv", "MiniCPM-V", "2024-08"),
    family("ming", "Ming Omni", ""),
    family("mistral7b", "Mistral 7B", "2023-09"),
    family("mistralnemo", "Mistral Nemo", "2024-07"),
    family("mistralsmall", "Mistral Small", "2024-09"),
    family("mixtral", "Mixtral", "2023-12"),
    family("orpheus", "Orpheus", "2025-03"),
    family("outetts", "OuteTTS", ""),
    family("phi4", "Phi-4", "2024-12"),
    family("qwen2.5", "Qwen2.5", "2024-09"),
    family("qwen2.5coder", "Qwen2.5-Coder", "2024-09"),
    family("qwen2.5vl", "Qwen2.5-VL", "2025-01"),
    family("qwen3", "Qwen3", "2025-04"),
    family("qwen3.5", "Qwen3.5", "2026-02"),
    family("qwen3.6", "Qwen3.6", "2026-04"),
    family("qwen3coder", "Qwen3-Coder", "2025-07"),
    family("qwen3tts", "Qwen3-TTS", "2026-01"),
    family("qwen3vl", "Qwen3-VL", "2025-09"),
    family("silerovad", "Silero VAD", ""),
    family("smollm2", "SmolLM2", "2024-11"),
    family("soprano", "Soprano", ""),
    family("spark", "Spark TTS", "2025-03"),
    family("tinyllama", "TinyLlama", "2023-09"),
    family("voicellm", "Voice LLM", ""),
    family("voxtral", "Voxtral", ""),
    family("whisper", "Whisper", "2022-09"),
];

/// The family with the longest matching start, or none.
pub fn family_of_model(model: &str) -> Option<&'static Family> {
    // A maker before a slash is not part of the name.
    let name = model.rsplit('/').next().unwrap_or(model);
    // The dot is kept: Qwen3 with 5 billion parameters is not Qwen3.5.
    let letters = name.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '.');
    let name: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    let fits = FAMILIES.iter().filter(|family| name.starts_with(family.start));
    fits.max_by_key(|family| family.start.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_begins_with_its_family() {
        let rows = [
            ("qwen3:8b", Some("Qwen3")),
            ("qwen3:30b-a3b", Some("Qwen3")),
            ("Qwen/Qwen3-5B", Some("Qwen3")),
            ("qwen3.5:35b-a3b", Some("Qwen3.5")),
            ("qwen3.5-abliterated:35b-a3b", Some("Qwen3.5")),
            ("qwen3.6:27b", Some("Qwen3.6")),
            ("gemma4:e4b", Some("Gemma 4")),
            ("gemma:2b", Some("Gemma")),
            ("gemma2:2b", Some("Gemma 2")),
            ("mistral-nemo", Some("Mistral Nemo")),
            ("Qwen3 TTS 1.7B Base", Some("Qwen3-TTS")),
            ("qwen2.5-coder:7b", Some("Qwen2.5-Coder")),
            ("qwen2.5vl:3b", Some("Qwen2.5-VL")),
            ("llama3.1:latest", Some("Llama 3.1")),
            ("Kokoro-82M", Some("Kokoro")),
            ("HuggingFaceTB/SmolLM2-135M-Instruct", Some("SmolLM2")),
            ("9B", None),
            ("", None),
        ];
        for (name, expected) in rows {
            assert_eq!(family_of_model(name).map(|family| family.name), expected, "{name}");
        }
    }
}
