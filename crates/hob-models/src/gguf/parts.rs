//! Models in several files, named by `llama-gguf-split`: `NAME-00001-of-00003.gguf`. Parts in
//! safetensors have such names too. The first part in GGUF has the metadata, all parts have tensors. The data of each part
//! is checked separately.

use std::collections::HashSet;

use super::{Gguf, GgufError};

/// Real models have under 200.
const PARTS_MAX: u32 = 1_000;
const DIGITS: usize = 5;

/// A file name with the number of its part and of all parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartName {
    stem: String,
    pub number: u32,
    pub count: u32,
}

impl PartName {
    /// `None` if the name has no such numbers, or impossible ones.
    pub fn parse(file_name: &str) -> Option<PartName> {
        PartName::without_extension(file_name.strip_suffix(".gguf")?)
    }

    /// Parses a file name without its extension.
    pub(crate) fn without_extension(name: &str) -> Option<PartName> {
        let (rest, count) = name.rsplit_once("-of-")?;
        let (stem, number) = rest.rsplit_once('-')?;
        let (number, count) = (digits(number)?, digits(count)?);
        let is_sane = (1..=count).contains(&number) && count <= PARTS_MAX;
        is_sane.then(|| PartName { stem: stem.to_owned(), number, count })
    }

    /// The common beginning of all parts' names.
    pub fn stem(&self) -> &str {
        &self.stem
    }

    /// Names of all parts, in order.
    pub fn all(&self) -> impl Iterator<Item = String> + '_ {
        self.all_with("gguf")
    }

    /// The same names with another extension.
    pub(crate) fn all_with(&self, extension: &str) -> impl Iterator<Item = String> {
        let PartName { stem, count, .. } = self;
        (1..=*count).map(move |number| format!("{stem}-{number:05}-of-{count:05}.{extension}"))
    }
}

fn digits(text: &str) -> Option<u32> {
    let is_number = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

impl Gguf {
    /// Joins the headers of all parts: metadata of the first, tensors of all. For assessing, not for loading.
    ///
    /// # Errors
    /// There is no part, a tensor is in two parts, or the first part states another number of tensors.
    pub fn joined(parts: Vec<Gguf>) -> Result<Gguf, GgufError> {
        let mut parts = parts.into_iter();
        let mut whole = parts.next().ok_or(GgufError::NoWeights)?;
        for part in parts {
            whole.tensors.extend(part.tensors);
            whole.file_bytes = whole.file_bytes.saturating_add(part.file_bytes);
            whole.needed_bytes = whole.needed_bytes.saturating_add(part.needed_bytes);
        }
        let mut names = HashSet::new();
        if let Some(twice) = whole.tensors.iter().find(|tensor| !names.insert(&tensor.name)) {
            return Err(GgufError::duplicate("tensor", &twice.name));
        }
        let found = whole.tensors.len() as u64;
        match whole.number("split.tensors.count") {
            Some(expected) if expected != found => {
                return Err(GgufError::PartsDiffer { found, expected });
            }
            _ => (),
        }
        whole.metadata.retain(|key, _| !key.starts_with("split."));
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts() {
        let part = PartName::parse("a-b-00002-of-00003.gguf").expect("a part");
        assert_eq!((part.stem(), part.number, part.count), ("a-b", 2, 3));
        let all = ["a-b-00001-of-00003.gguf", "a-b-00002-of-00003.gguf", "a-b-00003-of-00003.gguf"];
        assert_eq!(part.all().collect::<Vec<_>>(), all);
        let others = [
            "a.gguf",
            "a-00002-of-00001.gguf",
            "a-00000-of-00001.gguf",
            "a-1-of-2.gguf",
            "a-00001-of-99999.gguf",
            "a-+0001-of-00002.gguf",
            "a-00001-of-00002.bin",
        ];
        assert!(others.into_iter().all(|name| PartName::parse(name).is_none()));
    }
}
