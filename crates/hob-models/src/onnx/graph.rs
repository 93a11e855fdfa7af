//! A graph that can be searched, split and rewritten by the names of its values.
//! Every edit keeps nodes in topological order, because engines rely on it.

use std::collections::{HashMap, HashSet};

use prost::Message;
use prost::bytes::{Buf, Bytes};

use super::proto::{
    ATTRIBUTE_INT, ATTRIBUTE_INTS, AttributeProto, DATA_FLOAT, DATA_INT8, DATA_INT64, DATA_UINT8,
    DimensionProto, EntryProto, GraphProto, LOCATION_EXTERNAL, ModelProto, NodeProto,
    OperatorSetIdProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};
use crate::progress::Cancelled;

/// An ONNX model's graph with the operator sets it needs.
#[derive(Clone, Debug)]
pub struct Graph {
    ir_version: i64,
    opsets: Vec<OperatorSetIdProto>,
    nodes: Vec<NodeProto>,
    weights: HashMap<String, TensorProto>,
    inputs: Vec<ValueInfoProto>,
    outputs: Vec<ValueInfoProto>,
}

/// A model that has its large weights apart, in the form of one with external data.
#[derive(Clone, Debug, Default)]
pub struct DetachedGraph {
    pub model: Vec<u8>,
    /// The name and the content of each file that the model reads.
    pub weights: Vec<(String, Vec<u8>)>,
}

/// Smaller weights stay in the model.
const DETACHED_BYTES_MIN: usize = 4096;

/// The bytes are not a model that hob can edit, or not the model that the edit was written for.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum GraphError {
    #[error("the file is not an ONNX model: {0}")]
    NotOnnx(String),
    #[error("the model uses {0}, which hob cannot convert")]
    Unsupported(&'static str),
    #[error("the graph has no value '{0}'; this is not the expected model")]
    NoSuchValue(String),
    #[error("the graph has {found} {what} where {expected} were expected")]
    Unexpected { what: &'static str, found: usize, expected: usize },
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl Graph {
    /// Decodes a model.
    ///
    /// # Errors
    /// Not an ONNX model, or one with functions, sparse or external weights.
    pub fn decode(bytes: &[u8]) -> Result<Graph, GraphError> {
        Graph::read(bytes)
    }

    /// Decodes a model without a copy of its weights: they share the memory of `bytes`.
    ///
    /// # Errors
    /// As [`Graph::decode`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Graph, GraphError> {
        Graph::read(Bytes::from(bytes))
    }

    fn read(bytes: impl Buf) -> Result<Graph, GraphError> {
        let model = ModelProto::decode(bytes).map_err(|e| GraphError::NotOnnx(e.to_string()))?;
        let graph = model.graph.ok_or_else(|| GraphError::NotOnnx("no graph".to_owned()))?;
        refuse_what_would_be_lost(&model.functions, &graph)?;
        Ok(Graph {
            ir_version: model.ir_version,
            opsets: model.opset_import,
            nodes: graph.node,
            weights: graph.initializer.into_iter().map(|t| (t.name.clone(), t)).collect(),
            inputs: graph.input,
            outputs: graph.output,
        })
    }

    /// Encodes the model. The same graph gives the same bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut weights: Vec<TensorProto> = self.weights.values().cloned().collect();
        weights.sort_by(|a, b| a.name.cmp(&b.name));
        let graph = GraphProto {
            node: self.nodes.clone(),
            name: "hob".to_owned(),
            initializer: weights,
            input: self.inputs.clone(),
            output: self.outputs.clone(),
            sparse_initializer: Vec::new(),
        };
        ModelProto {
            ir_version: self.ir_version,
            producer_name: "hob".to_owned(),
            graph: Some(graph),
            opset_import: self.opsets.clone(),
            functions: Vec::new(),
        }
        .encode_to_vec()
    }

    /// Encodes the model with its large weights apart, so that an engine can use them where they lie. Weights that share
    /// memory are copied, and all others are moved.
    pub fn detached(mut self) -> DetachedGraph {
        let mut weights = Vec::new();
        let is_large = |tensor: &&mut TensorProto| tensor.raw_data.len() >= DETACHED_BYTES_MIN;
        for tensor in self.weights.values_mut().filter(is_large) {
            let mut content = Vec::from(std::mem::take(&mut tensor.raw_data));
            // The last weight that shares memory gets all of it.
            content.shrink_to_fit();
            let location = format!("{}.data", weights.len());
            let parts = [
                ("location", location.clone()),
                ("offset", 0.to_string()),
                ("length", content.len().to_string()),
            ];
            let entry = |(key, value): (&str, String)| EntryProto { key: key.to_owned(), value };
            tensor.external_data = parts.map(entry).to_vec();
            tensor.data_location = LOCATION_EXTERNAL;
            weights.push((location, content));
        }
        DetachedGraph { model: self.encode(), weights }
    }

    pub fn nodes(&self) -> &[NodeProto] {
        &self.nodes
    }

    pub fn nodes_mut(&mut self) -> &mut [NodeProto] {
        &mut self.nodes
    }

    pub fn inputs(&self) -> &[ValueInfoProto] {
        &self.inputs
    }

    /// Index of the node that computes `value`.
    ///
    /// # Errors
    /// No node computes it.
    pub fn producer(&self, value: &str) -> Result<usize, GraphError> {
        self.nodes
            .iter()
            .position(|node| node.output.iter().any(|output| output == value))
            .ok_or_else(|| GraphError::NoSuchValue(value.to_owned()))
    }

    /// Indices of the nodes that read `value`, in order.
    pub fn consumers(&self, value: &str) -> Vec<usize> {
        (0..self.nodes.len())
            .filter(|&at| self.nodes[at].input.iter().any(|input| input == value))
            .collect()
    }

    /// Inserts `nodes` before the node at `at`.
    pub fn insert(&mut self, at: usize, nodes: impl IntoIterator<Item = NodeProto>) {
        self.nodes.splice(at..at, nodes);
    }

    /// Replaces the node at `at` by `nodes`.
    pub fn replace(&mut self, at: usize, nodes: impl IntoIterator<Item = NodeProto>) {
        self.nodes.splice(at..=at, nodes);
    }

    /// Appends a node.
    pub fn push(&mut self, node: NodeProto) {
        self.nodes.push(node);
    }

    pub fn add_input(&mut self, input: ValueInfoProto) {
        self.inputs.push(input);
    }

    pub fn add_output(&mut self, output: ValueInfoProto) {
        self.outputs.push(output);
    }

    /// Makes every reader of `from` read `to`.
    pub fn redirect(&mut self, from: &str, to: &str) {
        for input in self.nodes.iter_mut().flat_map(|node| &mut node.input) {
            if input == from {
                to.clone_into(input);
            }
        }
    }

    /// Renames a value where it is computed and where it is read.
    pub fn rename(&mut self, from: &str, to: &str) {
        let outputs = self.nodes.iter_mut().flat_map(|node| &mut node.output);
        for output in outputs.filter(|output| *output == from) {
            to.clone_into(output);
        }
        self.redirect(from, to);
    }

    pub fn add_floats(&mut self, name: &str, dims: &[i64], values: &[f32]) {
        let raw_data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.add_weight(name, dims, DATA_FLOAT, raw_data);
    }

    pub fn add_ints(&mut self, name: &str, dims: &[i64], values: &[i64]) {
        let raw_data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.add_weight(name, dims, DATA_INT64, raw_data);
    }

    /// `raw_data` holds the elements of a `DATA_*` type as little-endian bytes.
    pub fn add_weight(&mut self, name: &str, dims: &[i64], data_type: i32, raw_data: Vec<u8>) {
        let tensor = TensorProto {
            name: name.to_owned(),
            dims: dims.to_vec(),
            data_type,
            raw_data: raw_data.into(),
            ..TensorProto::default()
        };
        self.weights.insert(name.to_owned(), tensor);
    }

    pub fn weight(&self, name: &str) -> Option<&TensorProto> {
        self.weights.get(name)
    }

    /// The elements of a float weight.
    ///
    /// # Errors
    /// No weight has this name, or it has another type.
    pub fn floats(&self, name: &str) -> Result<Vec<f32>, GraphError> {
        let floats = self.weight(name).and_then(TensorProto::floats);
        floats.ok_or_else(|| GraphError::NoSuchValue(name.to_owned()))
    }

    /// The elements of a weight of 64-bit integers.
    ///
    /// # Errors
    /// No weight has this name, or it has another type.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>, GraphError> {
        let ints = self.weight(name).and_then(TensorProto::ints);
        ints.ok_or_else(|| GraphError::NoSuchValue(name.to_owned()))
    }

    /// The same graph without nodes and weights that no output depends on.
    ///
    /// # Errors
    /// As [`Graph::extract`].
    pub fn pruned(&self) -> Result<Graph, GraphError> {
        self.extract(&self.inputs, &self.outputs)
    }

    /// The part of the graph from `inputs` to `outputs`. Everything else that it reads must be a weight.
    ///
    /// # Errors
    /// An output does not exist, or depends on an input that is not given.
    pub fn extract(
        &self,
        inputs: &[ValueInfoProto],
        outputs: &[ValueInfoProto],
    ) -> Result<Graph, GraphError> {
        let producers = self.producers();
        let given: HashSet<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
        let mut kept = vec![false; self.nodes.len()];
        let mut weights = HashMap::new();
        let mut wanted: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
        while let Some(value) = wanted.pop() {
            if value.is_empty() || given.contains(value) {
                continue;
            }
            if let Some(tensor) = self.weights.get(value) {
                weights.insert(value.to_owned(), tensor.clone());
            } else {
                let &at = producers
                    .get(value)
                    .ok_or_else(|| GraphError::NoSuchValue(value.to_owned()))?;
                if !kept[at] {
                    kept[at] = true;
                    wanted.extend(self.nodes[at].input.iter().map(String::as_str));
                }
            }
        }
        let nodes = self.nodes.iter().zip(&kept).filter(|(_, kept)| **kept);
        Ok(Graph {
            ir_version: self.ir_version,
            opsets: self.opsets.clone(),
            nodes: nodes.map(|(node, _)| node.clone()).collect(),
            weights,
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
        })
    }

    fn producers(&self) -> HashMap<&str, usize> {
        self.nodes
            .iter()
            .enumerate()
            .flat_map(|(at, node)| node.output.iter().map(move |output| (output.as_str(), at)))
            .collect()
    }
}

fn refuse_what_would_be_lost(functions: &[Vec<u8>], graph: &GraphProto) -> Result<(), GraphError> {
    if !functions.is_empty() {
        return Err(GraphError::Unsupported("local functions"));
    }
    if !graph.sparse_initializer.is_empty() {
        return Err(GraphError::Unsupported("sparse weights"));
    }
    if graph.initializer.iter().any(|tensor| !tensor.external_data.is_empty()) {
        return Err(GraphError::Unsupported("weights in other files"));
    }
    Ok(())
}

impl TensorProto {
    /// The elements, if they are floats.
    pub fn floats(&self) -> Option<Vec<f32>> {
        if self.data_type != DATA_FLOAT {
            return None;
        }
        if self.raw_data.is_empty() {
            return Some(self.float_data.clone());
        }
        let words = self.raw_data.as_chunks::<4>().0;
        Some(words.iter().map(|word| f32::from_le_bytes(*word)).collect())
    }

    /// The elements, if they are 64-bit integers.
    pub fn ints(&self) -> Option<Vec<i64>> {
        if self.data_type != DATA_INT64 {
            return None;
        }
        if self.raw_data.is_empty() {
            return Some(self.int64_data.clone());
        }
        let words = self.raw_data.as_chunks::<8>().0;
        Some(words.iter().map(|word| i64::from_le_bytes(*word)).collect())
    }

    /// The elements without a sign, if they are 8-bit integers. Signed ones become 128 larger, as their zero point does.
    pub fn unsigned(&self) -> Option<Bytes> {
        let shift = match self.data_type {
            DATA_UINT8 => 0,
            DATA_INT8 => 128,
            _ => return None,
        };
        let shifted = |byte: u8| byte.wrapping_add(shift);
        Some(if self.raw_data.is_empty() {
            self.int32_data.iter().map(|value| shifted(*value as u8)).collect()
        } else if shift == 0 {
            self.raw_data.clone()
        } else {
            self.raw_data.iter().map(|byte| shifted(*byte)).collect()
        })
    }
}

/// A node of the default operator set, named after its first output.
pub fn node(op_type: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        input: inputs.iter().map(|&name| name.to_owned()).collect(),
        output: outputs.iter().map(|&name| name.to_owned()).collect(),
        name: outputs[0].to_owned(),
        op_type: op_type.to_owned(),
        ..NodeProto::default()
    }
}

impl NodeProto {
    #[must_use]
    pub fn with_int(mut self, name: &str, value: i64) -> NodeProto {
        self.attribute.push(AttributeProto {
            name: name.to_owned(),
            i: Some(value),
            kind: ATTRIBUTE_INT,
            ..AttributeProto::default()
        });
        self
    }

    #[must_use]
    pub fn with_ints(mut self, name: &str, values: &[i64]) -> NodeProto {
        self.attribute.push(AttributeProto {
            name: name.to_owned(),
            ints: values.to_vec(),
            kind: ATTRIBUTE_INTS,
            ..AttributeProto::default()
        });
        self
    }

    pub fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.attribute.iter().find(|attribute| attribute.name == name)
    }

    pub fn attribute_mut(&mut self, name: &str) -> Option<&mut AttributeProto> {
        self.attribute.iter_mut().find(|attribute| attribute.name == name)
    }
}

/// Declares an input or output with its element type and shape. A text is a free length.
pub fn value(name: &str, elem_type: i32, shape: &[Dim]) -> ValueInfoProto {
    let dim = shape.iter().map(|dim| dim.to_proto()).collect();
    let tensor = TensorTypeProto { elem_type, shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { tensor_type: Some(tensor) }) }
}

/// One dimension of a declared shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim {
    Fixed(i64),
    Free(&'static str),
}

impl Dim {
    fn to_proto(self) -> DimensionProto {
        match self {
            Dim::Fixed(size) => DimensionProto { dim_value: Some(size), dim_param: None },
            Dim::Free(name) => DimensionProto { dim_value: None, dim_param: Some(name.to_owned()) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(data_type: i32, raw_data: &[u8]) -> TensorProto {
        let raw_data = Bytes::copy_from_slice(raw_data);
        TensorProto { data_type, raw_data, ..TensorProto::default() }
    }

    #[test]
    fn signed_and_unsigned_weights_differ_from_their_zero_points_alike() {
        let unsigned = |tensor: &TensorProto| tensor.unsigned().map(|bytes| bytes.to_vec());
        assert_eq!(unsigned(&tensor(DATA_UINT8, &[0, 63, 255])), Some(vec![0, 63, 255]));
        assert_eq!(unsigned(&tensor(DATA_INT8, &[0x80, 0xff, 127])), Some(vec![0, 127, 255]));
        assert_eq!(unsigned(&tensor(DATA_FLOAT, &[0; 4])), None);
        let int32_data = vec![-128, 0, 127, i32::MAX];
        let in_words = TensorProto { int32_data, ..tensor(DATA_INT8, &[]) };
        assert_eq!(unsigned(&in_words), Some(vec![0, 128, 255, 127]));
    }

    /// A model with weights of these sizes, each of one value.
    fn detached(sizes: &[(&str, u8, i64)]) -> DetachedGraph {
        let initializer = sizes.iter().map(|(name, value, bytes)| TensorProto {
            name: (*name).to_owned(),
            dims: vec![*bytes],
            ..tensor(DATA_UINT8, &vec![*value; *bytes as usize])
        });
        let graph = GraphProto { initializer: initializer.collect(), ..GraphProto::default() };
        let model = ModelProto { graph: Some(graph), ..ModelProto::default() };
        Graph::from_bytes(model.encode_to_vec()).expect("a graph").detached()
    }

    #[test]
    fn large_weights_are_apart_and_hold_no_other_memory() {
        let DetachedGraph { model, weights } = detached(&[("a", 1, 5000), ("b", 2, 6000)]);
        let decoded = ModelProto::decode(&model[..]).expect("a model").graph.expect("a graph");
        let mut apart = Vec::new();
        for tensor in &decoded.initializer {
            let value = |key: &str| {
                let entry = tensor.external_data.iter().find(|entry| entry.key == key);
                entry.map(|entry| entry.value.clone()).expect("an entry")
            };
            let file = weights.iter().find(|file| file.0 == value("location"));
            let (_, content) = file.expect("its file");
            assert_eq!(value("length"), content.len().to_string());
            assert_eq!((value("offset").as_str(), tensor.data_location), ("0", LOCATION_EXTERNAL));
            assert!(tensor.raw_data.is_empty());
            // An allocator may round up.
            assert!(content.capacity() < content.len() + 64, "{}", content.capacity());
            apart.push((tensor.name.as_str(), content.clone()));
        }
        assert_eq!(apart, [("a", vec![1; 5000]), ("b", vec![2; 6000])]);
        assert!(detached(&[("small", 3, 10)]).weights.is_empty());
    }
}
