//! Exchanges of everyone with everyone, written in all manner of ways: loops in either order and direction, offsets for
//! ranks, steps, chunks, scratch, multicasts. All mean the same; what differs is in which order moves are met.
//!
//! In: random choices. Out: programs that are right and mostly symmetric, whose folded plans, in any layout, must be right
//! for all ranks.

use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::test_runner::TestRunner;
use rcc_compiler::options::{Direct, Options};

use crate::folded::{compare_if_alike, loaded};
use crate::layouts;

/// Who sends and who receives, from two loop variables that both take all ranks.
const PAIRS: [(&str, &str); 7] = [
    ("a", "b"),
    ("b", "a"),
    ("a", "(a + b) % n"),
    ("(a + b) % n", "a"),
    ("(a + n - b) % n", "a"),
    ("b", "(b + n - a) % n"),
    ("(a + b + 1) % n", "b"),
];

#[derive(Debug, Clone, Copy)]
struct Loops {
    /// The order of a, b and the chunk.
    order: usize,
    rev: [bool; 3],
    /// Loops each by itself, or in one header.
    nested: bool,
    chunks: bool,
    /// No step, one around all, or one around the innermost loop.
    step: usize,
}

fn loops() -> impl Strategy<Value = Loops> {
    (0..6usize, any::<[bool; 3]>(), any::<bool>(), any::<bool>(), 0..3usize)
        .prop_map(|(order, rev, nested, chunks, step)| Loops { order, rev, nested, chunks, step })
}

impl Loops {
    /// The loops around some moves. `b` may begin at 1.
    fn around(&self, moves: &str, b_from: u32, may_step: bool) -> String {
        const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let binders: Vec<String> = ORDERS[self.order]
            .into_iter()
            .filter(|&which| which < 2 || self.chunks)
            .map(|which| {
                let range = ["a in 0..n".to_string(), format!("b in {b_from}..n"), "c in 0..2".to_string()];
                format!("{}{}", range[which], if self.rev[which] { " rev" } else { "" })
            })
            .collect();
        let step = if may_step { self.step } else { 0 };
        match (self.nested || step == 2, step) {
            (false, 0) => format!("for {} {{ {moves} }}", binders.join(", ")),
            (false, _) => format!("step for {} {{ {moves} }}", binders.join(", ")),
            (true, step) => {
                let last = binders.len() - 1;
                let mut text =
                    format!("{}for {} {{ {moves} }}", if step == 2 { "step " } else { "" }, binders[last]);
                for binder in binders[..last].iter().rev() {
                    text = format!("for {binder} {{ {text} }}");
                }
                if step == 1 { format!("step {{ {text} }}") } else { text }
            }
        }
    }

    fn chunk(&self) -> &'static str {
        if self.chunks { "[c]" } else { "" }
    }

    fn head(&self) -> &'static str {
        if self.chunks { "chunks 2\n" } else { "" }
    }
}

/// Everyone's block, or a block for each, straight or by way of scratch of the receiver.
fn straight() -> impl Strategy<Value = String> {
    (loops(), select(&PAIRS[..]), any::<bool>(), prop_oneof![3 => Just(false), 1 => Just(true)]).prop_map(
        |(loops, (from, to), alltoall, by_scratch)| {
            let (chunk, head) = (loops.chunk(), loops.head());
            let (collective, own) =
                if alltoall { ("alltoall", format!("[{to}]")) } else { ("allgather", String::new()) };
            let place = |buffer: &str| format!("{buffer}[{from}]{chunk} @ {to}");
            let source = format!("input{own}{chunk} @ {from}");
            let (scratch, moves) = match by_scratch {
                false => ("", format!("{} = {source}", place("output"))),
                true => {
                    let (tmp, output) = (place("tmp"), place("output"));
                    ("scratch tmp[n]\n", format!("{tmp} = {source}\n{output} = {tmp}"))
                }
            };
            let body = loops.around(&moves, 0, !by_scratch);
            format!("algorithm x on ranks[n] implements {collective} {{\n{head}{scratch}{body}\n}}")
        },
    )
}

/// Everyone's block to all at once.
fn multicast() -> impl Strategy<Value = String> {
    (any::<[bool; 2]>(), any::<bool>(), 0..3usize).prop_map(|(rev, step, chunked)| {
        let rev = rev.map(|rev| if rev { " rev" } else { "" });
        let word = if step { "step for" } else { "for" };
        let (head, binders, chunk) = match chunked {
            0 => ("", format!("a in 0..n{}", rev[0]), ""),
            1 => ("chunks 2\n", format!("a in 0..n{}, c in 0..2{}", rev[0], rev[1]), "[c]"),
            _ => ("chunks 2\n", format!("c in 0..2{}, a in 0..n{}", rev[1], rev[0]), "[c]"),
        };
        format!(
            "algorithm x on ranks[n] implements allgather {{
{head}{word} {binders} {{ output[a]{chunk} @ * = input{chunk} @ a }}
}}"
        )
    })
}

/// Everyone adds up its own block, one rank after the other.
fn sums() -> impl Strategy<Value = String> {
    loops().prop_map(|loops| {
        let (chunk, head) = (loops.chunk(), loops.head());
        let own = loops.around(&format!("if b == 1 {{ output{chunk} @ a = input[a]{chunk} @ a }}"), 1, false);
        let add = loops.around(&format!("output{chunk} @ a += input[a]{chunk} @ (a + b) % n"), 1, false);
        format!("algorithm x on ranks[n] implements reducescatter {{\ninplace none\n{head}{own}\n{add}\n}}")
    })
}

#[test]
fn folded_exchanges_are_right_however_they_are_written() {
    let given = ProptestConfig::default();
    // As many as usual, and more if more are asked for.
    let cases = given.cases.saturating_mul(600) / 256;
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..given });
    let (folded, none, unlike) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
    let programs = prop_oneof![4 => straight(), 1 => multicast(), 2 => sums()];
    let result = runner.run(&(programs, 2..6u32, layouts::strategy()), |(text, n, options)| {
        let loaded = loaded(&text);
        let options = Options { direct: Direct::Never, ..options };
        let count = match compare_if_alike(&loaded, "x", &[n], &options) {
            Ok(Ok(_)) => &folded,
            Ok(Err(_)) => &none,
            Err(_) => &unlike,
        };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let (folded, none, unlike) = (folded.into_inner(), none.into_inner(), unlike.into_inner());
    println!("{folded} folded, {none} times there is no folded plan, {unlike} not seen to be alike");
    assert!(folded > cases / 3, "{folded} folded, {none} not, {unlike} not alike");
}
