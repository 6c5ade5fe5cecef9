//! `run`: moves written out in place, granularity, bindings, fresh scratch, callees.

use std::fmt::Write;

use rcc_compiler::elaborate::{self, Elaborated};
use rcc_compiler::limits::Limits;
use rcc_compiler::trace::MoveId;

use crate::support::{ANY, check, elaborate, elaborate_checked, moves, request, shown};

const PAIR: &str = "collective pair on ranks[n] { in a out b[2] ensures for r in 0..0: b[0] @ r == a @ r }";

fn run(text: &str, shape: &[u32]) -> Elaborated {
    elaborate(text, shape, &[]).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

#[test]
fn ranks_map_in_the_order_of_the_set() {
    let callee = "algorithm line on ranks[k] implements any { for i in 1..k { data @ i = data @ i - 1 } }";
    let of = |set: &str, shape: &[u32]| {
        let levels = if shape.len() == 1 { "n" } else { "m, g" };
        let text = format!(
            "{ANY} {callee} algorithm x on ranks[{levels}] implements any {{ run line on {set} with data = data }}"
        );
        moves(&run(&text, shape).trace)
    };
    let chain = |ranks: &[u32]| -> Vec<String> {
        ranks.windows(2).map(|pair| format!("data[0] @ {} = data[0] @ {}", pair[1], pair[0])).collect()
    };
    assert_eq!(of("*", &[3]), chain(&[0, 1, 2]));
    assert_eq!(of("1..4", &[5]), chain(&[1, 2, 3]));
    assert_eq!(of("2..2", &[5]), chain(&[]));
    assert_eq!(of("[3, 0, 2]", &[4]), chain(&[3, 0, 2]));
    assert_eq!(of("[(i * 3 + 1) % 5 for i in 0..5 if i != 1]", &[5]), chain(&[1, 2, 0, 3]));
    assert_eq!(of("(1, *)", &[2, 3]), chain(&[3, 4, 5]));
    assert_eq!(of("(*, 2)", &[2, 3]), chain(&[2, 5]));
    assert_eq!(of("*", &[2, 2]), chain(&[0, 1, 2, 3]));
    assert_eq!(of("(1, 1)", &[2, 2]), chain(&[]));
}

#[test]
fn a_callee_of_several_levels() {
    let text = format!(
        "{ANY} algorithm grid on ranks[p, q] implements any {{ data @ (p - 1, 0) = data @ (0, q - 1) }}
         algorithm x on ranks[a, b, c] implements any {{
            run grid on (1, *, *) with data = data
            run grid on (*, 0, *) with data = data
         }}"
    );
    // 2 x 2 x 3: (1, *, *) is ranks 6 to 11, as 2 x 3; (*, 0, *) is 0, 1, 2, 6, 7, 8.
    assert_eq!(
        moves(&run(&text, &[2, 2, 3]).trace),
        ["data[0] @ 9 = data[0] @ 8", "data[0] @ 6 = data[0] @ 2"]
    );
}

#[test]
fn chunks_of_the_callee_refine_those_of_the_caller() {
    let callee = "algorithm inner on ranks[k] implements any { chunks 3 data[2] @ 1 = data[2] @ 0 data @ 0 = data @ 1 }";
    let of = |chunks: u32, region: &str| {
        let text = format!(
            "{ANY} {callee} algorithm x on ranks[n] implements any {{
                chunks {chunks}
                data[{chunks} - 1] @ 1 = data[{chunks} - 1] @ 0
                run inner on * with data = {region}
            }}"
        );
        let done = run(&text, &[2]);
        (done.trace.cells, moves(&done.trace))
    };
    // The whole block is 3 chunks of the callee: K = lcm(2, 3), one of them is 2 cells.
    let (cells, moved) = of(2, "data");
    assert_eq!(cells, 6);
    assert_eq!(
        moved,
        [
            "data[3..6] @ 1 = data[3..6] @ 0",
            "data[4..6] @ 1 = data[4..6] @ 0",
            "data[0..6] @ 0 = data[0..6] @ 1"
        ]
    );
    // One of 2 chunks is 3 chunks of the callee: K = 6, one of them is 1 cell.
    let (cells, moved) = of(2, "data[1]");
    assert_eq!(cells, 6);
    assert_eq!(
        moved,
        ["data[3..6] @ 1 = data[3..6] @ 0", "data[5] @ 1 = data[5] @ 0", "data[3..6] @ 0 = data[3..6] @ 1"]
    );
    // 3 of 4 chunks are 3 chunks of the callee: nothing is refined.
    let (cells, moved) = of(4, "data[0..3]");
    assert_eq!(cells, 4);
    assert_eq!(moved[1..], ["data[2] @ 1 = data[2] @ 0", "data[0..3] @ 0 = data[0..3] @ 1"]);
    // 2 of 4 chunks, 3 pieces: each is 2/12 of a block, K = 12.
    let (cells, moved) = of(4, "data[1..3]");
    assert_eq!(cells, 12);
    assert_eq!(moved[1..], ["data[7..9] @ 1 = data[7..9] @ 0", "data[3..9] @ 0 = data[3..9] @ 1"]);
}

#[test]
fn blocks_of_a_callee_are_equal_pieces() {
    let text = format!(
        "{PAIR} {ANY}
         algorithm inner on ranks[n] implements pair {{ chunks 2 b[1][0] @ 0 = a[0] @ 1 b[0] @ 1 = a @ 0 }}
         algorithm x on ranks[n] implements any {{
            chunks 6
            scratch t[3]
            run inner on * with a = data[4..6], b = data[0..4]
            run inner on * with a = data, b = t[1..3]
            run inner on * with a = t[2], b = t[0..2]
         }}"
    );
    let done = run(&text, &[2]);
    assert_eq!(done.trace.cells, 6);
    assert_eq!(
        moves(&done.trace),
        [
            // A block of `b` is 2 chunks, a half of it one.
            "data[2] @ 0 = data[4] @ 1",
            "data[0..2] @ 1 = data[4..6] @ 0",
            // A block of `b` is a block of `t`; t's block 1 starts at cell 6.
            "t[12..15] @ 0 = data[0..3] @ 1",
            "t[6..12] @ 1 = data[0..6] @ 0",
            "t[6..9] @ 0 = t[12..15] @ 1",
            "t[0..6] @ 1 = t[12..18] @ 0",
        ]
    );
}

#[test]
fn self_is_the_callees_own_rank() {
    let text = format!(
        "{PAIR} {ANY}
         algorithm inner on ranks[n] implements pair {{ b[1] @ 0 = a @ 1 }}
         algorithm x on ranks[n] implements any {{
            chunks 8
            run inner on [2, 1] with a = data[self], b = data[6 - 2 * self .. 8 - 2 * self]
         }}"
    );
    // The callee's rank 0 is rank 2: its b is chunks 6..8. Its rank 1 is rank 1: its a is chunk 1.
    assert_eq!(moves(&run(&text, &[3]).trace), ["data[7] @ 2 = data[1] @ 1"]);
}

#[test]
fn self_copies_through_bindings_vanish() {
    let text = format!(
        "{PAIR} {ANY}
         algorithm inner on ranks[n] implements pair {{
            for r in 0..n, i in 0..2 {{ b[i] @ r = a @ r }}
            b[1] @ 1 = a @ 0
         }}
         algorithm x on ranks[n] implements any {{ chunks 2 run inner on * with a = data[self], b = data }}"
    );
    let done = run(&text, &[2]);
    // b[0] @ 0 and b[1] @ 1 are a @ 0 and a @ 1 themselves.
    let expected = ["data[1] @ 0 = data[0] @ 0", "data[0] @ 1 = data[1] @ 1", "data[1] @ 1 = data[0] @ 0"];
    assert_eq!(moves(&done.trace), expected);
    assert_eq!(done.callees.len(), 1);
    assert_eq!(done.callees[0].trace.moves.len(), 5);
}

#[test]
fn scratch_is_fresh_at_every_rank() {
    let text = format!(
        "{ANY}
         algorithm inner on ranks[n] implements any {{ scratch tmp[2] tmp[1] @ 0 = data @ 1 data @ 1 = tmp[1] @ 0 }}
         algorithm middle on ranks[n] implements any {{ run inner on * with data = data }}
         algorithm x on ranks[n] implements any {{
            chunks 2
            for r in 0..n step 2 {{ run inner on r..r+2 with data = data[0] }}
            run inner on 1..3 with data = data[1]
            run middle on 0..2 with data = data
         }}"
    );
    let done = run(&text, &[4]);
    let buffers: Vec<(&str, u32)> = done.trace.buffers.iter().map(|b| (b.name.as_str(), b.blocks)).collect();
    // `data[0]` is half a block, so `tmp[2]` is one block; two runs on different ranks share it, a third at the same
    // rank gets another. A whole block bound: two blocks.
    assert_eq!(buffers, [("data", 1), ("inner.tmp", 1), ("inner.tmp.2", 1), ("middle.inner.tmp", 2)]);
    assert_eq!(
        moves(&done.trace),
        [
            "inner.tmp[1] @ 0 = data[0] @ 1",
            "data[0] @ 1 = inner.tmp[1] @ 0",
            "inner.tmp[1] @ 2 = data[0] @ 3",
            "data[0] @ 3 = inner.tmp[1] @ 2",
            "inner.tmp.2[1] @ 1 = data[1] @ 2",
            "data[1] @ 2 = inner.tmp.2[1] @ 1",
            "middle.inner.tmp[2..4] @ 0 = data[0..2] @ 1",
            "data[0..2] @ 1 = middle.inner.tmp[2..4] @ 0",
        ]
    );
}

#[test]
fn steps_and_signals_of_callees() {
    let text = format!(
        "{ANY}
         algorithm inner on ranks[n] implements any {{
            step {{ data @ 0 = data @ 1 data @ 1 = data @ 0 }}
            signal @ 1 = signal @ 0
            data @ 0 = data @ 1
            step {{ data @ 1 = data @ 0 }}
         }}
         algorithm x on ranks[n] implements any {{
            chunks 3
            step {{ data[0] @ 0 = data[0] @ 1 }}
            run inner on [2, 0] with data = data[1..3]
            run inner on [0, 1] with data = data[1..3]
            step {{ data[0] @ 1 = data[0] @ 0 }}
         }}"
    );
    let numbers: Vec<u32> = run(&text, &[3]).trace.moves.iter().map(|mv| mv.step).collect();
    // Neighbours share a number exactly if they are of one step.
    assert_eq!(numbers.len(), 12);
    let groups: Vec<usize> = numbers.chunk_by(|a, b| *a != 0 && a == b).map(<[u32]>::len).collect();
    assert_eq!(groups, [1, 2, 1, 1, 1, 2, 1, 1, 1, 1]);
    let mut distinct: Vec<u32> = numbers.iter().copied().filter(|&step| step != 0).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 6);
    let moved = moves(&run(&text, &[3]).trace);
    assert!(moved[3].starts_with("signal[0] @ 0 = signal[0] @ 2"), "{moved:?}");
}

#[test]
fn arguments_and_defaults() {
    let text = format!(
        "{ANY}
         algorithm inner(k: int, root: rank = n - 1, up: bool = false) on ranks[n] implements any {{
            chunks k
            if up {{ data[k - 1] @ root = data[k - 1] @ 0 }} else {{ data[0] @ 0 = data[0] @ root }}
         }}
         algorithm x on ranks[n] implements any {{
            run inner(2) on 1..4 with data = data
            run inner(root = 1, k = 2, up = n == 4) on 1..4 with data = data
         }}"
    );
    let done = run(&text, &[4]);
    assert_eq!(moves(&done.trace), ["data[0] @ 1 = data[0] @ 3", "data[1] @ 2 = data[1] @ 1"]);
    assert_eq!(done.callees.len(), 2);
}

#[test]
fn callees_come_once_and_innermost_first() {
    let text = format!(
        "{ANY}
         algorithm a on ranks[n] implements any {{ data @ n - 1 = data @ 0 }}
         algorithm b on ranks[n] implements any {{ run a on 0..2 with data = data run a on * with data = data }}
         algorithm x on ranks[n] implements any {{ for i in 0..5 {{ run b on 0..3 with data = data run a on 1..3 with data = data }} }}"
    );
    let done = run(&text, &[4]);
    let callees: Vec<(&str, u32)> =
        done.callees.iter().map(|c| (c.trace.algorithm.as_str(), c.trace.ranks)).collect();
    assert_eq!(callees, [("a", 2), ("a", 3), ("b", 3)]);
    assert_eq!(done.trace.moves.len(), 15);
}

#[test]
fn empty_regions_run_nothing() {
    let text = format!(
        "{ANY} algorithm inner on ranks[n] implements any {{ data @ 1 = data @ 0 }}
         algorithm x on ranks[n] implements any {{
            chunks 2
            run inner on * with data = data[1..1]
            data[0] @ 1 = data[0] @ 0
         }}"
    );
    assert_eq!(moves(&run(&text, &[2]).trace), ["data[0] @ 1 = data[0] @ 0"]);
}

#[test]
fn a_run_without_buffers() {
    let text = "collective meet on ranks[n] { ensures synchronised }
         algorithm inner on ranks[n] implements meet {
            chunks 3
            scratch t
            signal @ 1 = signal @ 0
            t[1] @ 1 = t[0] @ 0
         }
         algorithm x on ranks[n] implements allreduce { chunks 2 run inner on * }";
    let checked = check(text);
    assert_eq!(shown(&checked), []);
    let done = elaborate_checked(&checked, &[2], &[], &Limits::default()).expect("it is right");
    assert_eq!(done.trace.cells, 6);
    let names: Vec<&str> = done.trace.buffers.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["data", "inner.t", "signal"]);
    assert_eq!(
        moves(&done.trace),
        ["signal[0] @ 1 = signal[0] @ 0", "inner.t[2..4] @ 1 = inner.t[0..2] @ 0"]
    );
}

#[test]
fn origins_lead_through_the_runs() {
    let text = format!(
        "{ANY} algorithm a on ranks[n] implements any {{ data @ 1 = data @ 0 }}
         algorithm b on ranks[n] implements any {{ run a on 0..2 with data = data }}
         algorithm x on ranks[n] implements any {{ data @ 0 = data @ 1 run b on * with data = data }}"
    );
    let checked = check(&text);
    let done = elaborate_checked(&checked, &[2], &[], &Limits::default()).expect("it is right");
    let chain = |i: usize| {
        let mut texts = Vec::new();
        let mut at = Some(done.trace.moves[i].origin);
        while let Some(origin) = at.map(|id| done.trace.origins[id.0 as usize]) {
            texts.push(checked.sources.snippet(origin.span).to_owned());
            at = origin.parent;
        }
        texts
    };
    assert_eq!(chain(0), ["data @ 0 = data @ 1"]);
    assert_eq!(
        chain(1),
        ["data @ 1 = data @ 0", "run a on 0..2 with data = data", "run b on * with data = data"]
    );
}

#[test]
fn bindings_are_the_loop_variables_as_they_stood() {
    let text = format!(
        "{PAIR} {ANY}
         algorithm inner(k: int) on ranks[n] implements pair {{
            for r in 0..n, i in 0..2 if r + i != 1 {{ let q = (r + k) % n b[i] @ r = a @ q }}
         }}
         algorithm x on ranks[n] implements any {{
            chunks 4
            for c in 0..4 rev {{ data[c] @ 1 = data[c] @ 0 }}
            for j in 0..2 {{ for h in 4..7 step 2 {{ run inner(h) on * with a = data[2 * j], b = data[2 * j .. 2 * j + 2] }} }}
            for z in 7..8 {{ data[0] @ 1 = data[0] @ 0 }}
         }}"
    );
    let checked = check(&text);
    assert_eq!(shown(&checked), []);
    let limits = Limits::default();
    let request = request(&checked, &[2], &[]);
    let done = match elaborate::elaborate(&checked.program, &request, &limits) {
        Ok(done) => done,
        Err(error) => panic!("{error:?}"),
    };
    let shown: Vec<String> = (0..done.trace.moves.len() as u32)
        .map(|mv| {
            let bindings = elaborate::bindings(&checked.program, &request, &limits, MoveId(mv));
            let mut text = String::new();
            for (name, value) in &bindings.0 {
                let _ = write!(text, "{name}={value} ");
            }
            assert_eq!(bindings.0.len(), bindings.1.len());
            text.trim_end().to_owned()
        })
        .collect();
    let mut expected: Vec<String> = [3, 2, 1, 0].map(|c| format!("c={c}")).to_vec();
    for j in 0..2 {
        for h in [4, 6] {
            // (r, i) with r + i != 1: (0, 0) and (1, 1). q = r, so b[0] @ 0 is a @ 0 itself, which vanishes.
            expected.push(format!("j={j} h={h} r=1 i=1"));
        }
    }
    expected.push("z=7".to_owned());
    assert_eq!(shown, expected);
    let beyond = elaborate::bindings(&checked.program, &request, &limits, MoveId(1_000));
    assert!(beyond.0.is_empty());
}
