//! Loads at the same time: of models that have room together, and of one that is loaded with others or after them.

use hob_core::MemoryReservation;
use tokio::task::yield_now;

use super::*;

async fn begun(model_memory: &ModelMemory) -> MemoryReservation {
    let asked = model_memory.queue().try_reserve().await;
    let MemoryDecision::Granted(reservation) = asked else { panic!("{asked:?}") };
    reservation
}

#[tokio::test]
async fn models_load_at_the_same_time_if_they_have_room_together() {
    for (free_mb, max_mb) in [(500, None), (64_000, Some(500))] {
        let planner = Planner::new(free_mb, max_mb);
        let [(a, in_a), (b, in_b), (c, _)] = ["a", "b", "c"].map(|name| planner.model(name, 200));
        let loads = [begun(&a).await, begun(&b).await];
        let mut waiting = c.queue();
        let asked = waiting.try_reserve().await;
        assert!(matches!(asked, MemoryDecision::Soon), "{asked:?}");
        in_a.load();
        let asked = waiting.try_reserve().await;
        assert!(matches!(asked, MemoryDecision::Soon), "b is on its way: {asked:?}");
        assert!(in_a.is_loaded(), "no model is unloaded during a load");
        in_b.load();
        drop(loads);
        let asked = waiting.try_reserve().await;
        assert!(matches!(asked, MemoryDecision::Granted(_)), "{asked:?}");
        assert_ne!(in_a.is_loaded(), in_b.is_loaded(), "one has made room");
    }
}

#[tokio::test]
async fn a_load_that_has_ended_counts_no_more() {
    let planner = Planner::new(300, None);
    let (a, b) = (planner.model("a", 200).0, planner.model("b", 200).0);
    drop(begun(&a).await);
    drop(begun(&b).await);
}

/// Loads `ears` with `voice` and `chat`, each of 200 MB. Returns whether it had room, what happened in which order, and which
/// of the three are loaded.
async fn loaded_next_to(free_mb: u64) -> (bool, Vec<&'static str>, [bool; 3]) {
    let planner = Planner::new(free_mb, None);
    let models = ["voice", "chat", "ears"].map(|name| planner.model(name, 200).1);
    let order = Mutex::new(Vec::new());
    let happens = |what: &'static str| locked(&order).push(what);
    let others = async {
        happens("the others begin");
        yield_now().await;
        models[..2].iter().for_each(|model| model.load());
        happens("the others are loaded");
    };
    let loading = async {
        happens("it is loaded");
        models[2].load();
    };
    let names = ["voice", "chat"];
    let had_room = planner.memory.load_next_to((&names[..], others), ("ears", loading)).await;
    let are_loaded = [0, 1, 2].map(|at: usize| models[at].is_loaded());
    (had_room, order.into_inner().expect("not poisoned"), are_loaded)
}

#[tokio::test]
async fn a_model_is_loaded_with_the_others_if_all_have_room_together() {
    let order = vec!["the others begin", "it is loaded", "the others are loaded"];
    assert_eq!(loaded_next_to(630).await, (true, order, [true; 3]));
}

#[tokio::test]
async fn otherwise_it_is_loaded_after_them_if_they_have_left_room() {
    let order = vec!["the others begin", "the others are loaded", "it is loaded"];
    assert_eq!(loaded_next_to(620).await, (true, order, [true; 3]));
}

#[tokio::test]
async fn no_model_is_unloaded_for_one_that_is_loaded_next_to_others() {
    let order = vec!["the others begin", "the others are loaded"];
    assert_eq!(loaded_next_to(500).await, (false, order, [true, true, false]));
}

#[tokio::test]
async fn a_load_that_a_request_has_caused_counts_too() {
    let planner = Planner::new(400, None);
    let [pulled, _ears] = ["pulled", "ears"].map(|name| planner.model(name, 200).0);
    let others: &[&str] = &[];
    let has_room =
        async || planner.memory.load_next_to((others, async {}), ("ears", async {})).await;
    let load = begun(&pulled).await;
    assert!(!has_room().await, "420 MB are needed");
    drop(load);
    assert!(has_room().await);
}
