//! Quantises chat models with llama.cpp, measures which weights matter for a text, and compares two models on a text.
//! All of it blocks, and runs in a worker process of its own: stopping the work is ending the process.

#![expect(
    unsafe_code,
    reason = "llama.cpp quantises through a C interface that has no safe wrapper"
)]

mod importance;
mod raw;
mod scorer;

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};

use llama_cpp_sys_2 as sys;
use serde::{Deserialize, Serialize};

pub use importance::{Importance, ImportanceEntry};
pub use scorer::{ScoredToken, TextPair, TokenCount, check_text};

/// Types of weights that llama.cpp writes, with its number for a file of mostly this type.
const TYPES: [(&str, sys::llama_ftype); 30] = [
    ("F32", sys::LLAMA_FTYPE_ALL_F32),
    ("F16", sys::LLAMA_FTYPE_MOSTLY_F16),
    ("BF16", sys::LLAMA_FTYPE_MOSTLY_BF16),
    ("Q8_0", sys::LLAMA_FTYPE_MOSTLY_Q8_0),
    ("Q6_K", sys::LLAMA_FTYPE_MOSTLY_Q6_K),
    ("Q5_K_M", sys::LLAMA_FTYPE_MOSTLY_Q5_K_M),
    ("Q5_K_S", sys::LLAMA_FTYPE_MOSTLY_Q5_K_S),
    ("Q5_1", sys::LLAMA_FTYPE_MOSTLY_Q5_1),
    ("Q5_0", sys::LLAMA_FTYPE_MOSTLY_Q5_0),
    ("Q4_K_M", sys::LLAMA_FTYPE_MOSTLY_Q4_K_M),
    ("Q4_K_S", sys::LLAMA_FTYPE_MOSTLY_Q4_K_S),
    ("Q4_1", sys::LLAMA_FTYPE_MOSTLY_Q4_1),
    ("Q4_0", sys::LLAMA_FTYPE_MOSTLY_Q4_0),
    ("IQ4_NL", sys::LLAMA_FTYPE_MOSTLY_IQ4_NL),
    ("IQ4_XS", sys::LLAMA_FTYPE_MOSTLY_IQ4_XS),
    ("MXFP4_MOE", sys::LLAMA_FTYPE_MOSTLY_MXFP4_MOE),
    ("Q3_K_L", sys::LLAMA_FTYPE_MOSTLY_Q3_K_L),
    ("Q3_K_M", sys::LLAMA_FTYPE_MOSTLY_Q3_K_M),
    ("Q3_K_S", sys::LLAMA_FTYPE_MOSTLY_Q3_K_S),
    ("IQ3_M", sys::LLAMA_FTYPE_MOSTLY_IQ3_M),
    ("IQ3_S", sys::LLAMA_FTYPE_MOSTLY_IQ3_S),
    ("IQ3_XS", sys::LLAMA_FTYPE_MOSTLY_IQ3_XS),
    ("IQ3_XXS", sys::LLAMA_FTYPE_MOSTLY_IQ3_XXS),
    ("Q2_K", sys::LLAMA_FTYPE_MOSTLY_Q2_K),
    ("Q2_K_S", sys::LLAMA_FTYPE_MOSTLY_Q2_K_S),
    ("IQ2_M", sys::LLAMA_FTYPE_MOSTLY_IQ2_M),
    ("IQ2_S", sys::LLAMA_FTYPE_MOSTLY_IQ2_S),
    ("IQ2_XS", sys::LLAMA_FTYPE_MOSTLY_IQ2_XS),
    ("IQ2_XXS", sys::LLAMA_FTYPE_MOSTLY_IQ2_XXS),
    ("IQ1_M", sys::LLAMA_FTYPE_MOSTLY_IQ1_M),
];
/// Bytes of a text in a GGUF header that llama.cpp can set, its end included.
const HEADER_TEXT_BYTES: usize = 128;
/// Messages of llama.cpp that are kept to explain a failure.
const MESSAGES_MAX: usize = 8;

/// A type of weights that llama.cpp can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantType(usize);

impl QuantType {
    pub fn all() -> impl Iterator<Item = QuantType> {
        (0..TYPES.len()).map(QuantType)
    }

    /// Upper or lower case.
    pub fn by_name(name: &str) -> Option<QuantType> {
        QuantType::all().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }

    pub fn name(self) -> &'static str {
        TYPES[self.0].0
    }

    /// Whether llama.cpp needs an importance matrix, because the result would be garbage without one.
    pub fn needs_importance(self) -> bool {
        matches!(
            self.name(),
            "IQ3_XXS" | "Q2_K_S" | "IQ2_M" | "IQ2_S" | "IQ2_XS" | "IQ2_XXS" | "IQ1_M"
        )
    }

    /// Whether values are stored as they are, in 16 or 32 bits.
    pub fn is_float(self) -> bool {
        matches!(self.name(), "F32" | "F16" | "BF16")
    }
}

/// What is quantised, and how.
#[derive(Clone, Debug)]
pub struct QuantizeJob {
    /// The first file of a split model.
    pub source: PathBuf,
    /// Must not exist. A failure leaves a partial file.
    pub target: PathBuf,
    pub kind: QuantType,
    pub importance: Importance,
    pub threads: usize,
    /// Texts for the header, by key. Longer than 127 bytes: cut.
    pub header: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum QuantizeError {
    #[error("llama.cpp does not start: {0}")]
    Backend(String),
    #[error("llama.cpp cannot load {path}: {reason}")]
    Load { path: String, reason: String },
    #[error("llama.cpp cannot quantise {path}: {reason}")]
    Quantize { path: String, reason: String },
    #[error("the text has {tokens} tokens (expected at least {needed})")]
    ShortText { tokens: usize, needed: usize },
    #[error("the models have different vocabularies: {one} and {other} tokens")]
    Vocabularies { one: usize, other: usize },
    #[error("llama.cpp cannot compute a text of {tokens} tokens (code {code})")]
    Decode { tokens: usize, code: i32 },
    #[error(
        "{0} is not a path that llama.cpp takes (expected UTF-8 without a zero byte); rename the file"
    )]
    Path(PathBuf),
}

/// The type that llama.cpp's quantiser would give each tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuantizePlan {
    /// Names of tensors with ggml's names of their types, such as `q4_K`.
    pub types: Vec<(String, String)>,
    /// Tensors with rows that the type does not fit; they get another one.
    pub replaced: usize,
}

/// Writes the target file, and calls `progress` with the tensors that are done and all of them.
///
/// # Errors
/// See [`QuantizeError`]; what llama.cpp says is part of the message.
pub fn quantize(
    job: &QuantizeJob,
    mut progress: impl FnMut(usize, usize),
) -> Result<(), QuantizeError> {
    run(job, Log::new(&mut progress), false)?;
    Ok(())
}

/// Asks llama.cpp's quantiser what it would write, with an importance matrix where one is used. Reads the header only.
///
/// # Errors
/// The file is not a model, or llama.cpp has no such type for it.
pub fn planned(source: &Path, kind: QuantType) -> Result<QuantizePlan, QuantizeError> {
    let importance = match kind.is_float() {
        true => Importance::default(),
        false => Importance::of_no_tensor(),
    };
    let job = QuantizeJob {
        source: source.to_owned(),
        target: PathBuf::new(),
        kind,
        importance,
        threads: 1,
        header: Vec::new(),
    };
    let mut no_progress = |_, _| {};
    Ok(run(&job, Log::new(&mut no_progress), true)?.plan)
}

/// Runs the quantiser; without writing anything where `is_dry`.
fn run<'a>(job: &QuantizeJob, mut log: Log<'a>, is_dry: bool) -> Result<Log<'a>, QuantizeError> {
    let _backend = raw::start()?;
    let (source, target) = (c_path(&job.source)?, c_path(&job.target)?);
    let entries = job.importance.as_c();
    let header = overrides(&job.header);
    // SAFETY: the call takes nothing and returns a plain struct.
    let mut params = unsafe { sys::llama_model_quantize_default_params() };
    params.nthread = i32::try_from(job.threads).unwrap_or(i32::MAX);
    params.ftype = TYPES[job.kind.0].1;
    // The caller has decided what may be quantised again.
    params.allow_requantize = true;
    params.kv_overrides = header.as_ptr();
    if !job.importance.is_empty() {
        params.imatrix = entries.list.as_ptr();
    }
    params.dry_run = is_dry;
    // SAFETY: the log outlives the call, is used by this thread only, and is taken back below.
    unsafe {
        sys::llama_log_set(Some(read_log), (&raw mut log).cast::<c_void>());
    }
    // SAFETY: texts and lists live until the end of this function, and each list ends with an empty entry.
    let code =
        unsafe { sys::llama_model_quantize(source.as_ptr(), target.as_ptr(), &raw const params) };
    // SAFETY: `None` restores llama.cpp's own log.
    unsafe { sys::llama_log_set(None, std::ptr::null_mut()) };
    match code {
        0 => Ok(log),
        _ => Err(QuantizeError::Quantize {
            path: job.source.display().to_string(),
            reason: log.messages.join("; "),
        }),
    }
}

fn c_path(path: &Path) -> Result<CString, QuantizeError> {
    let text = path.to_str().and_then(|text| CString::new(text).ok());
    text.ok_or_else(|| QuantizeError::Path(path.to_owned()))
}

/// Header fields as llama.cpp takes them; the last one is empty.
fn overrides(header: &[(String, String)]) -> Vec<sys::llama_model_kv_override> {
    // SAFETY: zeros are a valid value of each field: an empty key and an empty text.
    let empty = || unsafe { std::mem::zeroed::<sys::llama_model_kv_override>() };
    let entry = |(key, value): &(String, String)| {
        let mut entry = empty();
        entry.tag = sys::LLAMA_KV_OVERRIDE_TYPE_STR;
        fill(&mut entry.key, key);
        // SAFETY: a text is one of the union's members, and zeros are a text.
        fill(unsafe { &mut entry.__bindgen_anon_1.val_str }, value);
        entry
    };
    header.iter().map(entry).chain([empty()]).collect()
}

/// Copies a text that is followed by a zero.
fn fill(place: &mut [c_char; HEADER_TEXT_BYTES], text: &str) {
    let mut end = text.len().min(HEADER_TEXT_BYTES - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    for (to, from) in place.iter_mut().zip(text.as_bytes()[..end].iter()) {
        *to = *from as c_char;
    }
}

/// Progress and errors, as far as llama.cpp tells them only in its log.
struct Log<'a> {
    progress: &'a mut dyn FnMut(usize, usize),
    /// The last errors.
    messages: Vec<String>,
    plan: QuantizePlan,
}

impl<'a> Log<'a> {
    fn new(progress: &'a mut dyn FnMut(usize, usize)) -> Log<'a> {
        Log { progress, messages: Vec::new(), plan: QuantizePlan::default() }
    }

    fn read(&mut self, text: &str) {
        if let Some((done, all)) = tensors(text) {
            self.plan.types.extend(tensor_type(text));
            (self.progress)(done, all);
        } else if let Some(kind) = new_type(text)
            && let Some((_, last)) = self.plan.types.last_mut()
        {
            *last = kind.to_owned();
        } else if text.contains("falling back to") {
            self.plan.replaced += 1;
        }
    }
}

unsafe extern "C" fn read_log(level: sys::ggml_log_level, text: *const c_char, log: *mut c_void) {
    // SAFETY: `quantize` passes a log that lives during its call, and llama.cpp passes a text that ends with a zero.
    let (log, text) = unsafe { (&mut *log.cast::<Log<'_>>(), CStr::from_ptr(text)) };
    let text = text.to_string_lossy();
    log.read(&text);
    if level == sys::GGML_LOG_LEVEL_ERROR && !text.trim().is_empty() {
        if log.messages.len() == MESSAGES_MAX {
            log.messages.remove(0);
        }
        log.messages.push(text.trim().to_owned());
    }
}

/// Reads `[  12/ 272]` at the beginning of a line.
fn tensors(line: &str) -> Option<(usize, usize)> {
    let (inside, _) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let (done, all) = inside.split_once('/')?;
    Some((done.trim().parse().ok()?, all.trim().parse().ok()?))
}

/// Reads the name and the present type of `[  12/ 272] NAME - [dims], type =   f16, `.
fn tensor_type(line: &str) -> Option<(String, String)> {
    let (_, rest) = line.split_once(']')?;
    let name = rest.split_whitespace().next()?;
    let (_, kind) = rest.rsplit_once("type =")?;
    Some((name.to_owned(), kind.trim_matches([' ', ',']).to_owned()))
}

/// Reads the new type of `size =  10.0 MiB ->  3.0 MiB (q4_K)`, which a dry run says.
fn new_type(line: &str) -> Option<&str> {
    let (_, sizes) = line.split_once("size =")?;
    let (_, kind) = sizes.trim_end().strip_suffix(')')?.rsplit_once('(')?;
    Some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_says_the_type_of_each_tensor() {
        let lines = [
            "warning: blk.0.a.weight - ncols    576 not divisible by 256 (required for type    q4_K) ",
            "-> falling back to    q5_0\n",
            "[   1/   2] blk.0.a.weight        - [  576,   576,     1,     1], type =    f16, ",
            "size =     0.63 MiB ->     0.22 MiB (q5_0)\n",
            "[   2/   2] blk.0.norm.weight     - [  576,     1,     1,     1], type =    f32, ",
            "size =    0.002 MiB\n",
        ];
        let mut seen = Vec::new();
        let mut progress = |done, all| seen.push((done, all));
        let mut log = Log::new(&mut progress);
        lines.iter().for_each(|line| log.read(line));
        let pair = |name: &str, kind: &str| (name.to_owned(), kind.to_owned());
        assert_eq!(
            log.plan.types,
            [pair("blk.0.a.weight", "q5_0"), pair("blk.0.norm.weight", "f32")]
        );
        assert_eq!(log.plan.replaced, 1);
        assert_eq!(seen, [(1, 2), (2, 2)]);
    }

    #[test]
    fn progress_is_read_from_the_log() {
        let rows = [
            ("[   1/ 272]                    token_embd.weight - [  576, 49152]", Some((1, 272))),
            ("[272/272] blk", Some((272, 272))),
            ("[abc] 1/2", None),
            ("llama_model_quantize: 1/2", None),
        ];
        for (line, expected) in rows {
            assert_eq!(tensors(line), expected, "{line}");
        }
    }

    #[test]
    fn every_type_has_one_name() {
        for kind in QuantType::all() {
            assert_eq!(QuantType::by_name(&kind.name().to_lowercase()), Some(kind));
        }
        assert_eq!(QuantType::by_name("Q4"), None);
    }

    #[test]
    fn a_long_header_text_is_cut_between_characters() {
        let list = overrides(&[("hob.source".to_owned(), "é".repeat(100))]);
        assert_eq!(list.len(), 2, "an empty entry ends the list");
        // SAFETY: the entry was made with a text.
        let text = unsafe { list[0].__bindgen_anon_1.val_str };
        let bytes: Vec<u8> =
            text.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
        assert_eq!(String::from_utf8(bytes).expect("text").chars().count(), 63);
    }
}
