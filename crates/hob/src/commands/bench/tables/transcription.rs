//! The table of transcription: how many words were wrong, and how long the text took.
//! Below it, word errors by language where there are several, and where the clips came from.

use hob_bench::record::{Record, Stt};
use hob_bench::terms::Metric;

use super::{BADGE, CLIENT, Column, ERRORS, MEMORY, NOTHING, SHAPE, USERS, ms, number, rows};

const STT: [Column; 17] = [
    ("server", &|r| r.engine.name.clone().unwrap_or_default()),
    ("model", &|r| r.model.name.clone()),
    ("clips", SHAPE.1),
    USERS,
    ("streamed", &|r| {
        if stt_of(r).stream == Some(true) { "yes".to_owned() } else { String::new() }
    }),
    ("WER", &|r| percent(stt_of(r).wer)),
    ("CER", &|r| percent(stt_of(r).cer)),
    ("wrong, missing, added", &|r| {
        let counts = [Metric::WordsWrong, Metric::WordsMissing, Metric::WordsAdded];
        counts.map(|metric| number(r, metric, 0)).join(", ")
    }),
    ("first words", &|r| ms(r, Metric::FirstPartialMs, 0)),
    ("final text", &|r| ms(r, Metric::FinalTextMs, 0)),
    ("RTF", &|r| number(r, Metric::Rtf, 3)),
    ("× real time", &|r| number(r, Metric::RealTimeX, 1)),
    ("sound", &|r| stt_of(r).audio_s.map_or(NOTHING.to_owned(), |s| format!("{s:.1} s"))),
    MEMORY,
    ERRORS,
    CLIENT,
    BADGE,
];

fn stt_of(record: &Record) -> Stt {
    record.stt.clone().unwrap_or_default()
}

fn percent(share: Option<f64>) -> String {
    share.map_or(NOTHING.to_owned(), |share| format!("{:.1} %", share * 100.0))
}

pub(super) fn stt(records: &[Record]) -> String {
    let mut text = rows(&STT, records);
    for record in records {
        let stt = stt_of(record);
        let languages = stt.languages.iter().filter(|_| stt.languages.len() > 1);
        for (language, errors) in languages {
            let (wer, cer) = (percent(errors.wer), percent(errors.cer));
            text += &format!("\n{}, {language}: WER {wer}, CER {cer}", SHAPE.1(record));
        }
    }
    match records.iter().find_map(|record| record.stt.as_ref()?.synthetic_by.clone()) {
        Some(model) => format!("{text}\n\nThe clips are synthetic: {model} spoke them."),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use hob_bench::record::{LanguageErrors, RecordKind, RecordSource};

    use super::*;

    #[test]
    fn errors_are_shown_by_language_and_synthetic_clips_are_named() {
        let mut record = Record::new(uuid::Uuid::nil(), RecordKind::Stt, RecordSource::default());
        record.workload.shape = Some("few".to_owned());
        let errors = |wer| LanguageErrors { utterances: 1, wer: Some(wer), cer: None };
        record.stt = Some(Stt {
            wer: Some(0.125),
            synthetic_by: Some("kokoro".to_owned()),
            languages: [("de".to_owned(), errors(0.25)), ("en".to_owned(), errors(0.0))].into(),
            ..Stt::default()
        });
        let shown = stt(&[record]);
        for expected in
            ["12.5 %", "few, de: WER 25.0 %, CER –", "few, en: WER 0.0 %", "kokoro spoke them"]
        {
            assert!(shown.contains(expected), "{expected} in {shown}");
        }
    }
}
