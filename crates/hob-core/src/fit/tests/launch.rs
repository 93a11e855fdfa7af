//! Flags that put the layers where the plan has them.
//! Which name they give to the model is tested next to the plans.

use super::*;

/// The first plan's flags for all engines.
fn said(gpus: &[f64], model: &Model, options: &FitOptions) -> String {
    let gpus = gpus.iter().map(|free_gb| card(*free_gb)).collect();
    let machine = Machine { gpus, ..bare(64) };
    let assessed = assess(&machine, model, options).expect("an answer");
    let told = flags(&machine, model, assessed.best().expect("it fits"), 1);
    told.into_iter().map(|flags| flags.text).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_model_that_is_on_a_card_leaves_no_layer_to_the_processor() {
    let whole = said(&[8.0], &dense(), &options(4_096));
    // A file may have layers that decode nothing, which engines count.
    for part in ["gpu_layers = 999", "-ngl 999", "num_gpu 999"] {
        assert!(whole.contains(part), "{part}: {whole}");
    }
    let split = said(&[4.0], &dense(), &options(4_096));
    // Five layers and the output.
    for part in ["gpu_layers = 6", "-ngl 6", "num_gpu 6"] {
        assert!(split.contains(part), "{part}: {split}");
    }
    let experts = said(&[4.0], &experts(), &options(4_096));
    assert!(experts.contains("-ngl 999 --n-cpu-moe 8"), "{experts}");
}

#[test]
fn engines_use_as_many_cards_as_the_plan() {
    let alone = said(&[8.0, 8.0], &dense(), &options(4_096));
    for part in ["-ngl 999 -sm none -mg 0", "# device: the name of GPU 0 in `hob doctor`"] {
        assert!(alone.contains(part), "{part}: {alone}");
    }
    let both = said(&[5.0, 5.0], &dense(), &options(4_096));
    assert!(both.contains("-ngl 999"), "{both}");
    assert!(!both.contains("-mg") && !both.contains("device"), "{both}");
    let awq = Model { format: Format::Awq, ..dense() };
    let options = FitOptions { engine: None, ..options(4_096) };
    let alone = said(&[8.0, 8.0], &awq, &options);
    assert!(alone.contains("vllm serve") && !alone.contains("parallel-size"), "{alone}");
    let both = said(&[5.0, 5.0], &awq, &options);
    // 3.2 GB of 5 on the first card, and 2.6 on the second.
    assert!(both.contains("--pipeline-parallel-size 2 --gpu-memory-utilization 0.6"), "{both}");
}
