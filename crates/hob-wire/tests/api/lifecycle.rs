//! hob's own words for being in memory, as the command line and the page read them.
//! Every state has its form.

use std::time::{Duration, SystemTime};

use hob_core::fit::Pool;
use hob_core::{KeepAlive, Kind, MemoryUse, ModelState, PoolUse};
use hob_wire::{
    ResidenceRequest, ResidentModel, loading_line, parse_residence, resident, residents,
};

fn entry(name: &str, state: &ModelState) -> ResidentModel {
    ResidentModel::new(name, Kind::Speech, state, MemoryUse::default(), None)
}

#[test]
fn models_are_told_with_what_they_take() {
    let loading = ModelState::Loading { ready_in: Duration::from_millis(1500) };
    let down = ModelState::Down { reason: "no such file".to_owned() };
    let memory_use = MemoryUse {
        resident_bytes: Some(150_000_000),
        predicted_bytes: Some(160_000_000),
        vram_bytes: 7,
        pools: vec![
            PoolUse { pool: Pool::Ram, predicted_bytes: 4, taken_bytes: None },
            PoolUse { pool: Pool::Vram(0), predicted_bytes: 8, taken_bytes: Some(7) },
        ],
        placement_note: Some("it runs on the processor".to_owned()),
        in_flight: 2,
        expires_at: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_793_491_200)),
        load_took: Some(Duration::from_micros(812_345)),
    };
    let warm = ResidentModel::new("smol", Kind::Chat, &ModelState::Ready, memory_use, Some(8192));
    let others = [("kokoro", &ModelState::Cold), ("a", &loading), ("b", &down)];
    let others = others.map(|(name, state)| entry(name, state));
    let lines = [
        residents(std::iter::once(warm.clone()).chain(others).collect()),
        resident(&warm),
        loading_line(&loading),
        loading_line(&ModelState::Cold),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"models":[{"name":"smol","kind":"chat","state":"warm","ready_in_s":null,"resident_bytes":150000000,"predicted_bytes":160000000,"vram_bytes":7,"pools":[{"pool":"RAM","predicted_bytes":4,"taken_bytes":null},{"pool":"GPU 0","predicted_bytes":8,"taken_bytes":7}],"placement_note":"it runs on the processor","in_flight":2,"expires_at":"2026-11-01T00:00:00.000000000Z","context_length":8192,"load_ms":812},{"name":"kokoro","kind":"speech","state":"cold","ready_in_s":null,"resident_bytes":null,"vram_bytes":0,"in_flight":0,"expires_at":null,"context_length":null,"load_ms":null},{"name":"a","kind":"speech","state":"loading","ready_in_s":1.5,"resident_bytes":null,"vram_bytes":0,"in_flight":0,"expires_at":null,"context_length":null,"load_ms":null},{"name":"b","kind":"speech","state":"down","ready_in_s":null,"resident_bytes":null,"vram_bytes":0,"in_flight":0,"expires_at":null,"context_length":null,"load_ms":null}]}
    {"name":"smol","kind":"chat","state":"warm","ready_in_s":null,"resident_bytes":150000000,"predicted_bytes":160000000,"vram_bytes":7,"pools":[{"pool":"RAM","predicted_bytes":4,"taken_bytes":null},{"pool":"GPU 0","predicted_bytes":8,"taken_bytes":7}],"placement_note":"it runs on the processor","in_flight":2,"expires_at":"2026-11-01T00:00:00.000000000Z","context_length":8192,"load_ms":812}
    {"state":"loading","ready_in_s":1.5}
    {"state":"loading","ready_in_s":null}
    "#);
}

#[test]
fn a_wish_names_its_model() {
    for (body, expected) in [
        (r#"{"model":"smol"}"#, Ok((None, false))),
        (
            r#"{"model":"smol","keep_alive":"5m","stream":true}"#,
            Ok((Some(KeepAlive::For(Duration::from_secs(300))), true)),
        ),
        ("{}", Err("'model' is missing")),
        (r#"{"model":1}"#, Err("'model' must be a string, and is a number")),
    ] {
        let expected = expected.map(|(keep_alive, reports_progress)| ResidenceRequest {
            model: "smol".to_owned(),
            keep_alive,
            reports_progress,
            ignored: Vec::new(),
        });
        let read = parse_residence(body.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(read, expected.map_err(str::to_owned), "{body}");
    }
}
