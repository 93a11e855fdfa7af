//! A page on which a person hears two models without knowing which is which. It is one file without a network.
//! Error rates do not hear how natural speech is, so a person has to listen.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

const PAGE: &str = include_str!("listening/page.html");
/// Where the page has its data.
const DATA: &str = "/*DATA*/null";

/// What the page knows.
#[derive(Clone, Debug, Serialize)]
pub struct ListeningPage<'a> {
    pub source: &'a str,
    pub target: &'a str,
    pub voice: &'a str,
    pub sentences: Vec<HeardSentence>,
}

/// A sentence as both models say it, as addresses of the sound's data.
#[derive(Clone, Debug, Serialize)]
pub struct HeardSentence {
    text: String,
    source: String,
    target: String,
}

impl HeardSentence {
    /// Takes two sounds that are equally loud, as files of a type that browsers play, such as `audio/flac`.
    pub fn new(text: &str, [source, target]: [&[u8]; 2], media_type: &str) -> HeardSentence {
        let address = |file: &[u8]| format!("data:{media_type};base64,{}", STANDARD.encode(file));
        HeardSentence { text: text.to_owned(), source: address(source), target: address(target) }
    }
}

impl ListeningPage<'_> {
    pub fn html(&self) -> String {
        let data = serde_json::to_string(self).unwrap_or_default();
        // A text must not end the script that it stands in.
        PAGE.replacen(DATA, &data.replace("</", "<\\/"), 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_leave_the_script_of_the_page() {
        let text = "He said </script><script>alert(1)</script>.";
        let sentences = vec![HeardSentence::new(text, [b"fLaC", b"fLaC2"], "audio/flac")];
        let page = ListeningPage { source: "kokoro", target: "small", voice: "v", sentences };
        let html = page.html();
        assert_eq!(html.matches("</script>").count(), 1);
        assert_eq!(html.matches("data:audio/flac;base64,ZkxhQ").count(), 2);
        assert!(!html.contains(DATA));
    }
}
