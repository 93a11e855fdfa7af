//! The importance matrix: for each column of each weight, the mean square of the values that a text multiplies it with.
//! llama.cpp's `llama-imatrix` defines it so, and its quantiser can use the result.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path;

use llama_cpp_sys_2 as sys;
use serde::{Deserialize, Serialize};

use super::raw::{RawContext, RawModel, TensorView, WatchTensors, start};
use super::{QuantizeError, TokenCount};

/// Tokens of one pass.
const CONTEXT_TOKENS: usize = 512;
/// Minimum tokens of a product that counts. `llama-imatrix` has the same limit.
const TOKENS_MIN: usize = 16;

/// How much each column of the weights matters, by the weights' names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Importance {
    pub entries: BTreeMap<String, ImportanceEntry>,
}

/// The columns of one weight. If it has experts, their columns follow one another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportanceEntry {
    /// Sums of squares, for each column.
    sums: Vec<f32>,
    /// Number of tokens that were added, for each expert.
    rows: Vec<u64>,
}

impl ImportanceEntry {
    /// Mean squares. They are 1 for an expert that no token reached, because nothing is known about it.
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

/// Entries as llama.cpp takes them, with the names and values that they point to.
pub(super) struct CEntries {
    pub(super) list: Vec<sys::llama_model_imatrix_data>,
    _names: Vec<CString>,
    _values: Vec<Vec<f32>>,
}

impl Importance {
    /// Runs the model over at most `pieces_max` pieces of a text, of 512 tokens each. Calls `progress` after each piece.
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
        let mut importance = Importance::default();
        let mut context = RawContext::new(&model, CONTEXT_TOKENS, threads, Some(&mut importance))?;
        let all = CONTEXT_TOKENS * pieces_max.min(tokens.len() / CONTEXT_TOKENS);
        let mut pieces = tokens[..all].chunks_exact(CONTEXT_TOKENS).enumerate();
        pieces.try_for_each(|(number, piece)| {
            let mut piece = piece.to_vec();
            if let Some(bos) = model.bos_token() {
                piece[0] = bos;
            }
            // Asks for the logits of all tokens: in the last layer, llama.cpp skips tokens without logits.
            context.compute(&piece, 0)?;
            progress(TokenCount { done: (number + 1) * CONTEXT_TOKENS, all });
            Ok::<(), QuantizeError>(())
        })?;
        drop(context);
        Ok(importance)
    }

    /// One entry that belongs to no tensor. With it, a dry run chooses the types that it chooses with a real matrix.
    pub(super) fn of_no_tensor() -> Importance {
        let entry = ImportanceEntry { sums: vec![1.0], rows: vec![1] };
        Importance { entries: BTreeMap::from([("none".to_owned(), entry)]) }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn as_c(&self) -> CEntries {
        let owned = |(name, entry): (&String, &ImportanceEntry)| {
            Some((CString::new(name.as_str()).ok()?, entry.means()))
        };
        let (names, values): (Vec<CString>, Vec<Vec<f32>>) =
            self.entries.iter().filter_map(owned).unzip();
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

impl WatchTensors for Importance {
    fn wants(&self, tensor: &TensorView<'_>) -> bool {
        let (Some(weights), Some(input)) = (tensor.source(0), tensor.source(1)) else {
            return false;
        };
        match tensor.operation() {
            sys::GGML_OP_MUL_MAT_ID => true,
            sys::GGML_OP_MUL_MAT => {
                weights.name().starts_with("blk.")
                    && input.is_f32()
                    && input.sizes()[1] >= TOKENS_MIN
            }
            _ => false,
        }
    }

    fn see(&mut self, tensor: &TensorView<'_>) {
        let (Some(weights), Some(input)) = (tensor.source(0), tensor.source(1)) else { return };
        let (columns, experts) = (input.sizes()[0], weights.sizes()[2]);
        let routes = tensor.source(2).filter(|_| tensor.operation() == sys::GGML_OP_MUL_MAT_ID);
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
                        // The matrices of a stack take turns, as in `llama-imatrix`.
                        entry.add(third % experts, row(second, third), columns);
                    }
                }
            }
            Some(routes) => {
                let (route_bytes, strides) = (routes.bytes(), routes.strides());
                for token in 0..routes.sizes()[1] {
                    for place in 0..routes.sizes()[0] {
                        let at = token * strides[1] + place * strides[0];
                        let Some(expert) = index(&route_bytes, at) else { continue };
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

/// The number of an expert, as ggml stores it: 32 bits.
fn index(bytes: &[u8], at: usize) -> Option<usize> {
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
    fn a_list_for_llama_cpp_has_an_end_and_each_name_its_own_values() {
        let entry = ImportanceEntry { sums: vec![4.0, 2.0], rows: vec![2] };
        let unnamed = ImportanceEntry { sums: vec![0.0], rows: vec![1] };
        let entries = [("a\0".to_owned(), unnamed), ("blk.0.a".to_owned(), entry)];
        let entries = Importance { entries: entries.into() }.as_c();
        assert_eq!((entries.list.len(), entries.list[0].size), (2, 2));
        assert!(entries.list[1].name.is_null());
    }
}
