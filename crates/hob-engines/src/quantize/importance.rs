//! The importance matrix: for each column of each weight, the mean square of what it is multiplied with in a text.
//! The definition is that of llama.cpp's `llama-imatrix`, so that its quantiser can use the result.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path;

use llama_cpp_sys_2 as sys;
use serde::{Deserialize, Serialize};

use super::raw::{RawContext, RawModel, TensorView, WatchTensors, start};
use super::{QuantizeError, TokenCount};

/// Tokens of one pass.
const CONTEXT_TOKENS: usize = 512;
/// A product with fewer columns is one of single tokens, and says little.
const COLUMNS_MIN: usize = 16;

/// How much each column of the weights matters, by the weights' names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Importance {
    pub entries: BTreeMap<String, ImportanceEntry>,
}

/// The columns of one weight; of experts one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportanceEntry {
    /// Sums of squares.
    sums: Vec<f32>,
    /// Rows that were added, for each expert.
    rows: Vec<u64>,
}

impl ImportanceEntry {
    /// Mean squares. An expert that no token reached has 1 everywhere: nothing is known.
    fn means(&self) -> Vec<f32> {
        let columns = self.sums.len() / self.rows.len().max(1);
        let mean = |(at, sum): (usize, &f32)| match self.rows[at / columns.max(1)] {
            0 => 1.0,
            rows => sum / rows as f32,
        };
        self.sums.iter().enumerate().map(mean).collect()
    }

    fn add(&mut self, expert: usize, row: impl Iterator<Item = f32>, columns: usize) {
        self.rows[expert] += 1;
        let sums = &mut self.sums[expert * columns..(expert + 1) * columns];
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += value * value;
        }
    }
}

/// Entries as llama.cpp takes them. The texts and values live here.
pub(super) struct CEntries {
    pub(super) list: Vec<sys::llama_model_imatrix_data>,
    _names: Vec<CString>,
    _values: Vec<Vec<f32>>,
}

impl Importance {
    /// Computes at most `pieces_max` pieces of 512 tokens of a text, and calls `progress` with the tokens that are done and all of them.
    ///
    /// # Errors
    /// The model cannot be loaded, or the text is shorter than one piece.
    pub fn of_text(
        model: &Path,
        text: &str,
        pieces_max: usize,
        threads: usize,
        mut progress: impl FnMut(TokenCount),
    ) -> Result<Importance, QuantizeError> {
        let _backend = start()?;
        let model = RawModel::load(model)?;
        let tokens = model.tokenize(text);
        if tokens.len() < CONTEXT_TOKENS {
            let (tokens, needed) = (tokens.len(), CONTEXT_TOKENS);
            return Err(QuantizeError::ShortText { tokens, needed });
        }
        let mut collector = Collector::default();
        let mut context = RawContext::new(&model, CONTEXT_TOKENS, threads, Some(&mut collector))?;
        let all = CONTEXT_TOKENS * pieces_max.min(tokens.len() / CONTEXT_TOKENS);
        let mut pieces = tokens[..all].chunks_exact(CONTEXT_TOKENS).enumerate();
        pieces.try_for_each(|(number, piece)| {
            let mut piece = piece.to_vec();
            if let Some(bos) = model.bos_token() {
                piece[0] = bos;
            }
            // Every row is computed, also that of the output.
            context.compute(&piece, 0)?;
            progress(TokenCount { done: (number + 1) * CONTEXT_TOKENS, all });
            Ok::<(), QuantizeError>(())
        })?;
        drop(context);
        Ok(Importance { entries: collector.entries })
    }

    /// An entry that no tensor uses: a dry run then chooses types as it does with an importance matrix.
    pub(super) fn of_no_tensor() -> Importance {
        let entry = ImportanceEntry { sums: vec![1.0], rows: vec![1] };
        Importance { entries: BTreeMap::from([("none".to_owned(), entry)]) }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn as_c(&self) -> CEntries {
        let names: Vec<CString> =
            self.entries.keys().filter_map(|name| CString::new(name.as_str()).ok()).collect();
        let values: Vec<Vec<f32>> = self.entries.values().map(ImportanceEntry::means).collect();
        let entry = |(name, values): (&CString, &Vec<f32>)| sys::llama_model_imatrix_data {
            name: name.as_ptr(),
            data: values.as_ptr(),
            size: values.len(),
        };
        let end = sys::llama_model_imatrix_data {
            name: std::ptr::null(),
            data: std::ptr::null(),
            size: 0,
        };
        let list = names.iter().zip(&values).map(entry).chain([end]).collect();
        CEntries { list, _names: names, _values: values }
    }
}

#[derive(Debug, Default)]
struct Collector {
    entries: BTreeMap<String, ImportanceEntry>,
}

impl WatchTensors for Collector {
    fn wants(&self, tensor: &TensorView<'_>) -> bool {
        let (Some(weights), Some(input)) = (tensor.source(0), tensor.source(1)) else {
            return false;
        };
        match tensor.operation() {
            sys::GGML_OP_MUL_MAT_ID => true,
            sys::GGML_OP_MUL_MAT => {
                weights.name().starts_with("blk.")
                    && input.is_f32()
                    && input.sizes()[1] >= COLUMNS_MIN
            }
            _ => false,
        }
    }

    fn see(&mut self, tensor: &TensorView<'_>) {
        let (Some(weights), Some(input)) = (tensor.source(0), tensor.source(1)) else { return };
        let (columns, experts) = (input.sizes()[0], weights.sizes()[2]);
        let routes = tensor.source(2).filter(|_| tensor.operation() == sys::GGML_OP_MUL_MAT_ID);
        // Without routes, each matrix of a stack sees the rows of its own.
        let entry = self.entries.entry(weights.name()).or_default();
        if entry.sums.is_empty() {
            entry.sums = vec![0.0; columns * experts];
            entry.rows = vec![0; experts];
        }
        let bytes = input.bytes();
        let row = |second: usize, third: usize| {
            let strides = input.strides();
            floats(&bytes, second * strides[1] + third * strides[2], columns)
        };
        match routes {
            None => {
                for third in 0..input.sizes()[2] {
                    for second in 0..input.sizes()[1] {
                        entry.add(third % experts, row(second, third), columns);
                    }
                }
            }
            Some(routes) => {
                let (route_bytes, strides) = (routes.bytes(), routes.strides());
                for token in 0..routes.sizes()[1] {
                    for place in 0..routes.sizes()[0] {
                        let at = token * strides[1] + place * strides[0];
                        let Some(expert) = whole(&route_bytes, at) else { continue };
                        if expert < experts {
                            entry.add(expert, row(place % input.sizes()[1], token), columns);
                        }
                    }
                }
            }
        }
    }
}

fn floats(bytes: &[u8], at: usize, count: usize) -> impl Iterator<Item = f32> + '_ {
    let part = bytes.get(at..at + count * size_of::<f32>()).unwrap_or_default();
    part.chunks_exact(size_of::<f32>()).map(|four| {
        // `chunks_exact` gives four bytes.
        f32::from_ne_bytes(four.try_into().unwrap_or_default())
    })
}

fn whole(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..at + size_of::<i32>())?;
    usize::try_from(i32::from_ne_bytes(four.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_squares_by_row_and_an_unused_expert_has_ones() {
        let mut entry = ImportanceEntry { sums: vec![0.0; 4], rows: vec![0; 2] };
        entry.add(0, [1.0, 2.0].into_iter(), 2);
        entry.add(0, [3.0, 0.0].into_iter(), 2);
        assert_eq!(entry.means(), [5.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn a_list_for_llama_cpp_has_an_end() {
        let entry = ImportanceEntry { sums: vec![4.0, 2.0], rows: vec![2] };
        let importance = Importance { entries: [("blk.0.a".to_owned(), entry)].into() };
        let entries = importance.as_c();
        assert_eq!((entries.list.len(), entries.list[0].size), (2, 2));
        assert!(entries.list[1].name.is_null());
    }
}
