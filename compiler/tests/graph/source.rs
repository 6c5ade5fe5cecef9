//! Wording from real sources, through every stage: what needs loops and `run`s to be told.

use rcc_compiler::diagnostics::render::{Style, render};
use rcc_compiler::elaborate::Request;
use rcc_compiler::limits::Limits;
use rcc_compiler::pipeline::{Failure, load, prove};
use rcc_compiler::trace::Params;

fn told(text: &str, shape: &[u32]) -> String {
    let limits = Limits::default();
    let loaded = load(&[("user.coll".to_string(), text.as_bytes().to_vec())], &limits);
    let mut diagnostics = loaded.diagnostics.clone();
    let own = |&id: &_| loaded.files.contains(&loaded.program.algorithm(id).file);
    for algorithm in loaded.program.algorithms().filter(own) {
        let request = Request { algorithm, shape: shape.to_vec(), params: Params::new() };
        match prove(&loaded, &request, &limits, &mut |_| {}) {
            Ok(proved) => diagnostics.extend(proved.warnings),
            Err(Failure::Wrong(found)) => diagnostics.extend(found),
            Err(Failure::Excluded { why, .. }) => panic!("{why}"),
        }
    }
    let texts: Vec<String> =
        diagnostics.iter().map(|d| render(d, &loaded.sources, Style::default())).collect();
    texts.join("\n")
}

#[test]
fn loops_that_stop_one_turn_too_early() {
    let ring = told(
        "algorithm ring on ranks[n] implements allgather {
    for r in 0..n { output[r] @ r = input @ r }
    for hop in 0..n-2, r in 0..n {
        output[r] @ (r + hop + 1) % n = output[r] @ (r + hop) % n
    }
}
",
        &[5],
    );
    assert!(ring.contains("rank 0 never receives the `output[1]` that allgather promises it"), "{ring}");
    assert!(ring.contains("hop stops at 2 with 5 ranks"), "{ring}");
    assert!(ring.contains("the last copy, at hop = 2, reaches rank 4"), "{ring}");
    assert!(ring.contains("one more turn of hop brings it from rank 4 to"), "{ring}");

    let barrier = told(
        "algorithm star on ranks[n] implements barrier {
    for r in 1..n { signal @ 0 = signal @ r }
    for r in 1..n-1 { signal @ r = signal @ 0 }
}
",
        &[4],
    );
    assert!(barrier.contains("rank 3 may leave barrier before rank 0 has entered (4 ranks)"), "{barrier}");
    assert!(barrier.contains("r stops at 2 with 4 ranks"), "{barrier}");
    assert!(barrier.contains("one more turn of r brings it from rank 0 to"), "{barrier}");

    // Here no loop is to blame: the last chunk is not in the range, rank 0's block is not copied.
    for (text, shape) in [
        (
            "algorithm chain on ranks[n] implements broadcast(0) {
    chunks 3
    for r in 0..n-1, c in 0..2 { data[c] @ r + 1 = data[c] @ r }
}
",
            [4],
        ),
        (
            "algorithm direct on ranks[n] implements alltoall {
    for r in 0..n, s in 0..n if s != r { output[r] @ s = input[s] @ r }
}
",
            [3],
        ),
    ] {
        let told = told(text, &shape);
        assert!(told.contains("no move writes `"), "{told}");
        assert!(!told.contains("one more turn"), "{told}");
    }
}

#[test]
fn a_run_is_shown_with_the_line_of_the_callee() {
    let told = told(
        "algorithm two_level on ranks[m, g] implements allreduce {
    chunks g
    for i in 0..m { run std::reducescatter::ring on (i, *) with input = data, output = data[self] }
    for j in 0..g-1 { run std::allreduce::ring on (*, j) with data = data[j] }
    for i in 0..m { run std::allgather::ring on (i, *) with input = data[self], output = data }
}
",
        &[2, 3],
    );
    assert!(told.contains("two_level does not do what allreduce promises (2x3 ranks)"), "{told}");
    assert!(told.contains("std/allgather/ring.coll") && told.contains("╰── here, with i = 0"), "{told}");
    assert!(told.contains("[user.coll:5:21]") && told.contains("last written here, in this run"), "{told}");
    assert!(told.contains("it lacks those of ranks (1, 0) to (1, 2)"), "{told}");
}

/// No warning for what is idiomatic: a run that does more than its caller needs, a multicast of which some copies
/// are of no use, a copy to itself through a binding. But a whole run, or a whole multicast, for nothing is told.
#[test]
fn warnings_are_silent_when_in_doubt() {
    let quiet = [
        // Rank 0 alone needs the result.
        "algorithm lazy on ranks[n] implements reduce(0) {
    scratch tmp
    for r in 0..n { tmp @ r = input @ r }
    run std::allreduce::ring on * with data = tmp
    output @ 0 = tmp @ 0
}
",
        "algorithm wide on ranks[n] implements alltonext {
    scratch tmp
    tmp @ * = input @ 0
    if n > 1 { output @ 1 = tmp @ 1 }
    for r in 1..n-1 { output @ r + 1 = input @ r }
}
",
    ];
    for text in quiet {
        assert_eq!(told(text, &[4]), "");
    }
    let run = told(
        "algorithm twice on ranks[n] implements allreduce {
    scratch tmp
    for r in 0..n { tmp @ r = data @ r }
    run std::allreduce::one_shot on * with data = tmp
    run std::allreduce::ring on * with data = data
}
",
        &[3],
    );
    assert!(run.contains("moves of this run write is never used"), "{run}");
    assert!(run.contains("in this run") && run.matches("coll::").count() == 1, "{run}");
    let multicast = told(
        "algorithm next on ranks[n] implements alltonext {
    scratch tmp
    tmp @ * = input @ 0
    for r in 0..n-1 { output @ r + 1 = input @ r }
}
",
        &[3],
    );
    assert!(multicast.contains("coll::never_read"), "{multicast}");
    assert!(multicast.contains("what all 3 moves of this line write is never used"), "{multicast}");
}
