//! Stores large weights of a graph in few bits, and makes the whole graph of them again.
//! Each group of weights keeps its lowest and highest value, and every weight is one of the steps between.

use prost::Message;

use super::GraphError;
use super::proto::{DATA_FLOAT, DATA_INT8, DATA_UINT8, ModelProto, TensorProto};
use crate::progress::Cancelled;

/// Weights that share a range.
const GROUP: usize = 64;
/// Smaller tensors (biases, norms) stay as they are: they take little space and matter much.
const ELEMENTS_MIN: usize = 4096;
/// Shares of a group's range that are tried. A few outliers cost less than coarse steps for all.
const RANGES: [f32; 6] = [1.0, 0.95, 0.9, 0.85, 0.8, 0.7];
/// Before the number of bits, as the name of a packed graph.
const NAME: &str = "hob-packed-";

/// A number of bits in which weights can be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightBits(u8);

impl WeightBits {
    pub const ALL: [WeightBits; 4] = [WeightBits(8), WeightBits(6), WeightBits(4), WeightBits(3)];

    /// From `4-bit`, `4bit`, `int4`, `q4` or `4`.
    pub fn by_name(name: &str) -> Option<WeightBits> {
        let name = name.trim().to_ascii_lowercase();
        let digits = name.trim_start_matches("int").trim_start_matches('q');
        let digits = digits.trim_end_matches("bits").trim_end_matches("bit").trim_end_matches('-');
        let bits: u8 = digits.parse().ok()?;
        WeightBits::ALL.into_iter().find(|known| known.0 == bits)
    }

    pub fn bits(self) -> u8 {
        self.0
    }

    fn steps(self) -> f32 {
        f32::from((1_u16 << self.0) - 1)
    }
}

impl std::fmt::Display for WeightBits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-bit", self.0)
    }
}

/// A graph with packed weights.
#[derive(Clone, Debug)]
pub struct PackedGraph {
    pub bytes: Vec<u8>,
    /// Root mean square error of the packed weights, as a share of their root mean square distance from the
    /// middle of their group's range.
    pub error: f64,
}

/// Packs the large weights of a graph: floats, and integers that need more bits. Calls `check` before each of them.
///
/// # Errors
/// The bytes are not a model, a large weight is not as long as its shape says, or `check` fails.
pub fn pack(
    graph: &[u8],
    bits: WeightBits,
    check: &dyn Fn() -> Result<(), Cancelled>,
) -> Result<PackedGraph, GraphError> {
    let mut model = decode(graph)?;
    let mut loss = Loss::default();
    if let Some(graph) = &mut model.graph {
        graph.name = format!("{NAME}{}", bits.0);
        for tensor in graph.initializer.iter_mut().filter(|tensor| is_packed(tensor, bits)) {
            check()?;
            checked_elements(tensor)?;
            let packed = match tensor.data_type {
                DATA_FLOAT => packed::<4>(&tensor.raw_data, bits, &mut loss, Float),
                DATA_INT8 => packed::<1>(&tensor.raw_data, bits, &mut loss, Signed),
                _ => packed::<1>(&tensor.raw_data, bits, &mut loss, Unsigned),
            };
            tensor.raw_data = packed.into();
        }
    }
    Ok(PackedGraph { bytes: model.encode_to_vec(), error: loss.relative() })
}

/// The bytes of the file that [`pack`] would make, without its few bytes of lengths.
///
/// # Errors
/// The bytes are not a model, or a large weight is not as long as its shape says.
pub fn packed_bytes(graph: &[u8], bits: WeightBits) -> Result<u64, GraphError> {
    let model = decode(graph)?;
    let tensors = model.graph.iter().flat_map(|graph| &graph.initializer);
    let saved = tensors.filter(|tensor| is_packed(tensor, bits)).map(|tensor| {
        let elements = checked_elements(tensor)?;
        let ends = elements.div_ceil(GROUP) * 2 * element_bytes(tensor);
        let packed = elements * usize::from(bits.0) / 8 + ends;
        Ok::<usize, GraphError>(tensor.raw_data.len().saturating_sub(packed))
    });
    Ok((graph.len() - saved.sum::<Result<usize, GraphError>>()?) as u64)
}

/// The elements of a weight that is not packed yet, if it has as many as its shape says.
fn checked_elements(tensor: &TensorProto) -> Result<usize, GraphError> {
    let found = tensor.raw_data.len() / element_bytes(tensor);
    let (what, expected) = ("elements of a weight", elements(tensor).unwrap_or_default());
    if found != expected {
        return Err(GraphError::Unexpected { what, found, expected });
    }
    Ok(found)
}

/// The bytes of an element of a weight that gets packed.
fn element_bytes(tensor: &TensorProto) -> usize {
    if tensor.data_type == DATA_FLOAT { size_of::<f32>() } else { 1 }
}

/// The bytes of the large weights that have 8 bits each. 0: all are floats.
///
/// # Errors
/// The bytes are not a model.
pub fn integer_bytes(graph: &[u8]) -> Result<u64, GraphError> {
    let model = decode(graph)?;
    let tensors = model.graph.iter().flat_map(|graph| &graph.initializer);
    let large = tensors.filter(|tensor| is_large_integer(tensor));
    Ok(large.map(|tensor| tensor.raw_data.len() as u64).sum())
}

pub(super) fn is_large_integer(tensor: &TensorProto) -> bool {
    matches!(tensor.data_type, DATA_INT8 | DATA_UINT8) && is_large(tensor)
}

fn is_large(tensor: &TensorProto) -> bool {
    elements(tensor).is_some_and(|count| count >= ELEMENTS_MIN)
}

/// The bits of a packed graph, from its name.
pub(super) fn bits_of(name: &str) -> Option<WeightBits> {
    name.strip_prefix(NAME).and_then(WeightBits::by_name)
}

/// The whole graph of a packed one.
///
/// # Errors
/// The bytes are not what [`pack`] writes.
pub fn unpack(packed: &[u8]) -> Result<Vec<u8>, GraphError> {
    let mut model = decode(packed)?;
    let damaged = || GraphError::NotOnnx("its packed weights are damaged".to_owned());
    let graph = model.graph.as_mut().ok_or_else(damaged)?;
    let bits = bits_of(&graph.name).ok_or_else(damaged)?;
    for tensor in graph.initializer.iter_mut().filter(|tensor| is_packed(tensor, bits)) {
        let elements = elements(tensor).ok_or_else(damaged)?;
        let whole = match tensor.data_type {
            DATA_FLOAT => unpacked::<4>(&tensor.raw_data, elements, bits, Float),
            DATA_INT8 => unpacked::<1>(&tensor.raw_data, elements, bits, Signed),
            _ => unpacked::<1>(&tensor.raw_data, elements, bits, Unsigned),
        };
        tensor.raw_data = whole.ok_or_else(damaged)?.into();
    }
    Ok(model.encode_to_vec())
}

fn decode(bytes: &[u8]) -> Result<ModelProto, GraphError> {
    ModelProto::decode(bytes).map_err(|error| GraphError::NotOnnx(error.to_string()))
}

/// Whether a tensor is one that gets packed. The answer is the same before and after packing.
pub(super) fn is_packed(tensor: &TensorProto, bits: WeightBits) -> bool {
    let is_coarser = match tensor.data_type {
        DATA_FLOAT => true,
        DATA_INT8 | DATA_UINT8 => bits.0 < 8,
        _ => false,
    };
    is_coarser && is_large(tensor) && !tensor.raw_data.is_empty()
}

pub(super) fn elements(tensor: &TensorProto) -> Option<usize> {
    let mut sizes = tensor.dims.iter().map(|size| usize::try_from(*size).ok());
    sizes.try_fold(1_usize, |product, size| product.checked_mul(size?))
}

/// How a type of `N` bytes is read and written.
trait Element<const N: usize>: Copy {
    fn read(self, bytes: [u8; N]) -> f32;
    /// The nearest value of the type.
    fn write(self, value: f32) -> [u8; N];
}

#[derive(Clone, Copy)]
struct Float;
#[derive(Clone, Copy)]
struct Signed;
#[derive(Clone, Copy)]
struct Unsigned;

impl Element<4> for Float {
    fn read(self, bytes: [u8; 4]) -> f32 {
        f32::from_le_bytes(bytes)
    }

    fn write(self, value: f32) -> [u8; 4] {
        value.to_le_bytes()
    }
}

impl Element<1> for Signed {
    fn read(self, bytes: [u8; 1]) -> f32 {
        f32::from(i8::from_le_bytes(bytes))
    }

    fn write(self, value: f32) -> [u8; 1] {
        (value.round() as i8).to_le_bytes()
    }
}

impl Element<1> for Unsigned {
    fn read(self, bytes: [u8; 1]) -> f32 {
        f32::from(bytes[0])
    }

    fn write(self, value: f32) -> [u8; 1] {
        [value.round() as u8]
    }
}

#[derive(Debug, Default)]
struct Loss {
    square_error: f64,
    square: f64,
}

impl Loss {
    fn relative(&self) -> f64 {
        if self.square > 0.0 { (self.square_error / self.square).sqrt() } else { 0.0 }
    }
}

/// The lowest and highest value that the steps of a group reach.
#[derive(Clone, Copy)]
struct Range {
    low: f32,
    high: f32,
}

impl Range {
    fn step(self, value: f32, steps: f32) -> f32 {
        let width = self.high - self.low;
        if width > 0.0 {
            ((value - self.low) / width * steps).round().clamp(0.0, steps)
        } else {
            0.0
        }
    }

    fn value(self, step: f32, steps: f32) -> f32 {
        self.low + (self.high - self.low) * step / steps
    }
}

/// For each group: its lowest value, its highest value, and the steps of its weights, lowest bits first.
fn packed<const N: usize>(
    raw: &[u8],
    bits: WeightBits,
    loss: &mut Loss,
    kind: impl Element<N>,
) -> Vec<u8> {
    let values: Vec<f32> = raw.as_chunks::<N>().0.iter().map(|bytes| kind.read(*bytes)).collect();
    let steps = bits.steps();
    let mut packed = Vec::with_capacity(raw.len() / N * usize::from(bits.0) / 8);
    for group in values.chunks(GROUP) {
        let (range, square_error) = best_range(group, steps, kind);
        loss.square_error += square_error;
        let middle = f64::midpoint(range.low.into(), range.high.into());
        loss.square += group.iter().map(|value| (f64::from(*value) - middle).powi(2)).sum::<f64>();
        packed.extend(kind.write(range.low).into_iter().chain(kind.write(range.high)));
        let (mut waiting, mut waiting_bits) = (0_u32, 0);
        for value in group {
            waiting |= (range.step(*value, steps) as u32) << waiting_bits;
            waiting_bits += u32::from(bits.0);
            while waiting_bits >= 8 {
                packed.push(waiting as u8);
                waiting >>= 8;
                waiting_bits -= 8;
            }
        }
        if waiting_bits > 0 {
            packed.push(waiting as u8);
        }
    }
    packed
}

/// The range with the least square error.
fn best_range<const N: usize>(group: &[f32], steps: f32, kind: impl Element<N>) -> (Range, f64) {
    let (low, high) = group
        .iter()
        .fold((f32::MAX, f32::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
    let stored = |value: f32| kind.read(kind.write(value));
    let tried = RANGES.map(|share| {
        let cut = (1.0 - share) / 2.0 * (high - low);
        let range = Range { low: stored(low + cut), high: stored(high - cut) };
        let error = group.iter().map(|value| {
            let near = stored(range.value(range.step(*value, steps), steps));
            f64::from(near - value).powi(2)
        });
        (range, error.sum::<f64>())
    });
    let best = |best: (Range, f64), one: (Range, f64)| if one.1 < best.1 { one } else { best };
    tried.into_iter().reduce(best).unwrap_or((Range { low, high }, 0.0))
}

/// `None` where the length is wrong.
fn unpacked<const N: usize>(
    packed: &[u8],
    elements: usize,
    bits: WeightBits,
    kind: impl Element<N>,
) -> Option<Vec<u8>> {
    let steps = bits.steps();
    let width = u32::from(bits.0);
    // A damaged shape must not take memory.
    if elements > packed.len() * 8 / usize::from(bits.0) {
        return None;
    }
    let mut raw = Vec::with_capacity(elements * N);
    let (mut rest, mut left) = (packed, elements);
    while left > 0 {
        let here = left.min(GROUP);
        let (low, behind) = rest.split_first_chunk::<N>()?;
        let (high, behind) = behind.split_first_chunk::<N>()?;
        let range = Range { low: kind.read(*low), high: kind.read(*high) };
        let (codes, behind) = behind.split_at_checked((here * usize::from(bits.0)).div_ceil(8))?;
        let mut codes = codes.iter();
        let (mut waiting, mut waiting_bits) = (0_u32, 0);
        for _ in 0..here {
            while waiting_bits < width {
                waiting |= u32::from(*codes.next()?) << waiting_bits;
                waiting_bits += 8;
            }
            let step = (waiting & ((1 << width) - 1)) as f32;
            raw.extend(kind.write(range.value(step, steps)));
            waiting >>= width;
            waiting_bits -= width;
        }
        (rest, left) = (behind, left - here);
    }
    rest.is_empty().then_some(raw)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::onnx::proto::GraphProto;

    fn model(data_type: i32, raw_data: Vec<u8>, elements: usize) -> Vec<u8> {
        let tensor = |name: &str, size: usize, raw_data: Vec<u8>| TensorProto {
            name: name.to_owned(),
            dims: vec![size as i64],
            data_type,
            raw_data: raw_data.into(),
            ..TensorProto::default()
        };
        let small = raw_data[..raw_data.len() / elements * 10].to_vec();
        let initializer = vec![tensor("large", elements, raw_data), tensor("small", 10, small)];
        let graph = GraphProto { initializer, name: "hob".to_owned(), ..GraphProto::default() };
        ModelProto { graph: Some(graph), ..ModelProto::default() }.encode_to_vec()
    }

    fn pack(graph: &[u8], bits: WeightBits) -> Result<PackedGraph, GraphError> {
        super::pack(graph, bits, &|| Ok(()))
    }

    fn weights(model: &[u8]) -> Vec<Vec<u8>> {
        let graph = decode(model).expect("a model").graph.expect("a graph");
        graph.initializer.into_iter().map(|tensor| tensor.raw_data.to_vec()).collect()
    }

    /// Bytes that look like weights: most are near the middle.
    fn bytes(count: usize) -> Vec<u8> {
        let mut state = 7_u32;
        let mut draw = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as i32 - 128
        };
        (0..count).map(|_| ((draw() + draw() + draw()) / 3 + 128) as u8).collect()
    }

    #[test]
    fn fewer_bits_take_less_room_and_lose_more() {
        let raw = bytes(64 * 100 + 7);
        let whole = model(DATA_UINT8, raw.clone(), raw.len());
        let mut before = 0.0;
        for (bits, share, error_max) in [(6, 0.79, 0.03), (4, 0.54, 0.12), (3, 0.42, 0.25)] {
            let bits = WeightBits::by_name(&bits.to_string()).expect("known");
            let packed = pack(&whole, bits).expect("packs");
            let size = packed.bytes.len() as f64 / whole.len() as f64;
            assert!((size - share).abs() < 0.01, "{bits}: {size}");
            let told = packed_bytes(&whole, bits).expect("a model") as usize;
            assert!(told.abs_diff(packed.bytes.len()) < 32, "{told}");
            assert!(packed.error > before && packed.error < error_max, "{bits}: {}", packed.error);
            before = packed.error;
            let back = weights(&unpack(&packed.bytes).expect("unpacks"));
            assert_eq!(back[1], raw[..10], "a small tensor stays as it is");
            let step = 255.0 / bits.steps();
            let far = back[0].iter().zip(&raw).map(|(a, b)| a.abs_diff(*b)).max().expect("some");
            assert!(f32::from(far) < 2.5 * step, "{bits}: {far}");
        }
    }

    #[test]
    fn eight_bits_leave_integers_and_shrink_floats() {
        let eight = WeightBits::by_name("int8").expect("known");
        let whole = model(DATA_INT8, bytes(5000), 5000);
        let packed = pack(&whole, eight).expect("packs");
        assert_eq!((weights(&packed.bytes), packed.error), (weights(&whole), 0.0));
        assert_eq!(integer_bytes(&whole), Ok(5000), "the small tensor does not count");
        let floats: Vec<f32> =
            bytes(5000).iter().map(|byte| f32::from(*byte) / 77.0 - 1.0).collect();
        let raw = floats.iter().flat_map(|value| value.to_le_bytes()).collect();
        let whole = model(DATA_FLOAT, raw, 5000);
        assert_eq!(integer_bytes(&whole), Ok(0));
        let packed = pack(&whole, eight).expect("packs");
        let back = &weights(&unpack(&packed.bytes).expect("unpacks"))[0];
        for (bytes, value) in back.as_chunks::<4>().0.iter().zip(floats) {
            assert!((f32::from_le_bytes(*bytes) - value).abs() < 0.5, "{value}");
        }
        assert!(packed.error < 0.01, "{}", packed.error);
    }

    #[test]
    fn packing_ends_before_the_next_weight_when_it_is_cancelled() {
        let whole = model(DATA_UINT8, bytes(5000), 5000);
        let four = WeightBits::by_name("4").expect("known");
        let packed = super::pack(&whole, four, &|| Err(Cancelled));
        assert_eq!(packed.err(), Some(GraphError::Cancelled(Cancelled)));
    }

    #[test]
    fn a_weight_with_a_false_shape_is_refused() {
        let four = WeightBits::by_name("4").expect("known");
        let mut whole = decode(&model(DATA_UINT8, bytes(5000), 5000)).expect("a model");
        for size in [4999, 5001, i64::MAX] {
            whole.graph.as_mut().expect("a graph").initializer[0].dims = vec![size];
            let graph = whole.encode_to_vec();
            let refused = packed_bytes(&graph, four).expect_err("a false shape");
            let says = format!("has 5000 elements of a weight where {size} were expected");
            assert!(refused.to_string().contains(&says), "{refused}");
            assert_eq!(pack(&graph, four).err(), Some(refused));
        }
    }

    #[test]
    fn names_of_a_number_of_bits_are_read_as_people_write_them() {
        for name in ["4-bit", "4bit", "int4", "Q4", "4", " 4 bits"] {
            let bits = WeightBits::by_name(&name.replace(' ', "")).map(WeightBits::bits);
            assert_eq!(bits, Some(4), "{name}");
        }
        for name in ["5", "16", "Q4_K_M", "", "bit"] {
            assert_eq!(WeightBits::by_name(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_no_packed_graph_is_refused() {
        let whole = model(DATA_UINT8, bytes(5000), 5000);
        assert!(unpack(&whole).is_err(), "not packed");
        assert!(unpack(b"\xff\xff").is_err());
        let four = WeightBits::by_name("4").expect("known");
        let packed = decode(&pack(&whole, four).expect("packs").bytes).expect("a model");
        let damaged = |damage: fn(&mut TensorProto)| {
            let mut model = packed.clone();
            damage(&mut model.graph.as_mut().expect("a graph").initializer[0]);
            unpack(&model.encode_to_vec())
        };
        assert!(damaged(|large| large.raw_data.truncate(large.raw_data.len() - 1)).is_err(), "cut");
        assert!(damaged(|large| large.dims = vec![i64::MAX]).is_err(), "a false shape");
    }

    proptest! {
        #[test]
        fn any_group_of_bytes_stays_within_its_range(
            raw in proptest::collection::vec(any::<u8>(), 1..200), at in 0_usize..3,
        ) {
            let bits = [WeightBits(6), WeightBits(4), WeightBits(3)][at];
            let packed = packed::<1>(&raw, bits, &mut Loss::default(), Signed);
            let back = unpacked::<1>(&packed, raw.len(), bits, Signed).expect("unpacks");
            for (back, group) in back.chunks(GROUP).zip(raw.chunks(GROUP)) {
                let signed = |bytes: &[u8]| -> Vec<i8> { bytes.iter().map(|b| *b as i8).collect() };
                let (back, group) = (signed(back), signed(group));
                prop_assert!(back.iter().min() >= group.iter().min());
                prop_assert!(back.iter().max() <= group.iter().max());
            }
        }
    }
}
