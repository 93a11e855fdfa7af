//! Lets each stage of the vocoder compute only what the next stage reads around a window.
//! All convolutions together need a wide context, but the last and most expensive ones need little of it.

use crate::onnx::graph::{Dim, node, value};
use crate::onnx::proto::DATA_INT64;
use crate::onnx::{Graph, GraphError};

/// The values that are cropped, in the order of the inputs' elements. The decoder has 2 steps per
/// frame, the first stage of the generator 20, the second 120; both stages add the source's noise.
const CROPPED: [&str; 6] = [
    "/decoder/decoder/generator/noise_convs.0/Conv_output_0",
    "/decoder/decoder/generator/noise_res.0/Add_8_output_0",
    "/decoder/decoder/generator/LeakyRelu_output_0",
    "/decoder/decoder/generator/noise_convs.1/Conv_output_0",
    "/decoder/decoder/generator/noise_res.1/Add_8_output_0",
    "/decoder/decoder/generator/LeakyRelu_1_output_0",
];

/// Adds the inputs `crop_starts` and `crop_ends` (steps, one element per cropped value): each value
/// is handed on from its start to its end. From 0 to the length, the graph computes what it did.
pub(super) fn crop_stages(graph: &mut Graph) -> Result<(), GraphError> {
    graph.add_ints("crop/time_axis", &[1], &[2]);
    for name in CROPPED {
        let at = graph.producer(name)?;
        let [cropped, start, end] = ["cropped", "start", "end"].map(|w| format!("{name}/{w}"));
        graph.redirect(name, &cropped);
        let slice = node("Slice", &[name, &start, &end, "crop/time_axis"], &[&cropped]);
        graph.insert(at + 1, [slice]);
    }
    let count = CROPPED.len() as i64;
    graph.add_ints("crop/sizes", &[count], &[1; CROPPED.len()]);
    for (input, part) in [("crop_starts", "start"), ("crop_ends", "end")] {
        let parts = CROPPED.map(|name| format!("{name}/{part}"));
        let parts = parts.each_ref().map(String::as_str);
        graph.insert(0, [node("Split", &[input, "crop/sizes"], &parts).with_int("axis", 0)]);
        graph.add_input(value(input, DATA_INT64, &[Dim::Fixed(count)]));
    }
    Ok(())
}
