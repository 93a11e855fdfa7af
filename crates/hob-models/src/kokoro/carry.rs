//! Lets the vocoder's instance normalisations use statistics of earlier windows.
//! Otherwise each window would be normalised alone, which sounds different from the whole sentence.

use crate::onnx::graph::{Dim, node, value};
use crate::onnx::proto::{DATA_FLOAT, NodeProto};
use crate::onnx::{Graph, GraphError};

/// Number of different statistics of the vocoder. It has 58 instance normalisations. In both stages, the first
/// normalisations of the three parallel residual blocks have one input, so they share its mean and variance.
const NORMS: usize = 54;

/// One instance normalisation of the published graph: `mean(x)`, then `x − mean`, its square, and the mean of the
/// squares. Gamma and beta follow, and stay as they are.
struct Norm {
    /// Node that computes `mean(x)`.
    mean_at: usize,
    mean: String,
    variance: String,
    channels: i64,
}

/// Adds the inputs `carried_mean` and `carried_variance` (`[1, channels, 1]`, with the channels of all normalisations) and
/// `carried_share` (0 to 1). Adds the outputs `window_mean` and `window_variance`: the window's own mean, and its mean
/// square distance from the mean that was used.
///
/// With a share of s, each normalisation uses `mean = s·carried + (1−s)·window`, and the variance of carried and window
/// values together, as in Chan, Golub and LeVeque (1979):
/// `s·(carried_variance + (carried_mean − mean)²) + (1−s)·window_mean((x − mean)²)`.
/// With a share of 0, the graph computes the same as without these inputs.
pub(super) fn carry_statistics(graph: &mut Graph) -> Result<(), GraphError> {
    let norms = normalisations(graph)?;
    let (found, expected) = (norms.len(), NORMS);
    if found != expected {
        return Err(GraphError::Unexpected { what: "normalisations", found, expected });
    }
    let sizes: Vec<i64> = norms.iter().map(|norm| norm.channels).collect();
    for norm in norms.iter().rev() {
        blend(graph, norm)?;
    }
    graph.add_ints("carry/sizes", &[sizes.len() as i64], &sizes);
    graph.add_floats("carry/one", &[], &[1.0]);
    let each = |what: &str| -> Vec<String> {
        norms.iter().map(|norm| format!("{}/{what}", norm.mean)).collect()
    };
    graph.insert(
        0,
        [
            split("carried_mean", &each("carried_mean")),
            split("carried_variance", &each("carried_variance")),
            node("Sub", &["carry/one", "carried_share"], &["carry/window_share"]),
        ],
    );
    let channels = sizes.iter().sum();
    let all = [Dim::Fixed(1), Dim::Fixed(channels), Dim::Fixed(1)];
    for name in ["carried_mean", "carried_variance"] {
        graph.add_input(value(name, DATA_FLOAT, &all));
    }
    graph.add_input(value("carried_share", DATA_FLOAT, &[]));
    for output in ["window_mean", "window_variance"] {
        let parts = each(output);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        graph.push(node("Concat", &parts, &[output]).with_int("axis", 1));
        graph.add_output(value(output, DATA_FLOAT, &all));
    }
    Ok(())
}

fn split(packed: &str, parts: &[String]) -> NodeProto {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    node("Split", &[packed, "carry/sizes"], &parts).with_int("axis", 1)
}

/// Replaces the window's own statistics by the blended ones.
fn blend(graph: &mut Graph, norm: &Norm) -> Result<(), GraphError> {
    let named = |what: &str| format!("{}/{what}", norm.mean);
    let (window_variance, window_mean) = (named("window_variance"), named("window_mean"));
    let variance_at = graph.producer(&norm.variance)?;
    window_variance.clone_into(&mut graph.nodes_mut()[variance_at].output[0]);
    let shift = [
        node("Sub", &[&named("carried_mean"), &norm.mean], &[&named("shift")]),
        node("Mul", &[&named("shift"), &named("shift")], &[&named("shift_squared")]),
        node(
            "Add",
            &[&named("carried_variance"), &named("shift_squared")],
            &[&named("shifted_variance")],
        ),
    ];
    let variance =
        average(&named("shifted_variance"), &window_variance, &norm.variance, &named("variance"));
    graph.insert(variance_at + 1, shift.into_iter().chain(variance));

    window_mean.clone_into(&mut graph.nodes_mut()[norm.mean_at].output[0]);
    let mean = average(&named("carried_mean"), &window_mean, &norm.mean, &named("mean"));
    graph.insert(norm.mean_at + 1, mean);
    Ok(())
}

/// `output = share·carried + (1−share)·window`
fn average(carried: &str, window: &str, output: &str, name: &str) -> [NodeProto; 3] {
    let [carried_part, window_part] = ["carried", "window"].map(|part| format!("{name}/{part}"));
    [
        node("Mul", &[carried, "carried_share"], &[&carried_part]),
        node("Mul", &[window, "carry/window_share"], &[&window_part]),
        node("Add", &[&carried_part, &window_part], &[output]),
    ]
}

/// All normalisations: a `ReduceMean` that is followed by `Sub`, `Mul` and `ReduceMean`.
fn normalisations(graph: &Graph) -> Result<Vec<Norm>, GraphError> {
    let mut norms = Vec::new();
    for (mean_at, candidate) in graph.nodes().iter().enumerate() {
        if candidate.op_type != "ReduceMean" {
            continue;
        }
        let mean = &candidate.output[0];
        if let Some(variance) = variance_after(graph, mean) {
            let channels = channels(graph, &candidate.name)?;
            norms.push(Norm { mean_at, mean: mean.clone(), variance, channels });
        }
    }
    Ok(norms)
}

fn variance_after(graph: &Graph, mean: &str) -> Option<String> {
    let follow = |value: &str, op_type: &str| {
        let at =
            graph.consumers(value).into_iter().find(|&at| graph.nodes()[at].op_type == op_type);
        at.map(|at| graph.nodes()[at].output[0].clone())
    };
    let centred = follow(mean, "Sub")?;
    let squared = follow(&centred, "Mul")?;
    follow(&squared, "ReduceMean")
}

/// The channels of a normalisation. The layer `….norm1.fc` gives gamma and beta to `…/norm1/ReduceMean`. Its bias holds
/// both, so it has two values for each channel.
fn channels(graph: &Graph, name: &str) -> Result<i64, GraphError> {
    let layer = name.trim_end_matches("/ReduceMean").trim_start_matches('/').replace('/', ".");
    let bias = format!("{layer}.fc.bias");
    let weight = graph.weight(&bias).ok_or(GraphError::NoSuchValue(bias))?;
    Ok(weight.dims.iter().product::<i64>() / 2)
}
