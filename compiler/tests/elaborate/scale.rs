//! Large worlds: numbers of moves that can be counted by hand, and time for those who ask (`--no-capture`).

use std::time::Instant;

use rcc_compiler::elaborate::{self, Request};
use rcc_compiler::limits::Limits;
use rcc_compiler::trace::Params;

use crate::support::check;

#[test]
fn large_worlds() {
    let checked = check("collective nothing on ranks[n] { in a ensures for r in 0..0: a @ r == a @ r }");
    let n = 1024usize;
    let cases: [(&str, &[u32], Option<usize>); 7] = [
        ("std::allreduce::ring", &[256], Some(256 * 255 * 2)),
        ("std::allreduce::ring", &[1024], Some(n * (n - 1) * 2)),
        ("std::alltoall::direct", &[1024], Some(n * n)),
        ("std::allreduce::hierarchical", &[128, 8], None),
        ("std::allreduce::halving_doubling", &[1024], None),
        ("std::alltoall::two_level", &[32, 16], None),
        ("std::alltoall::bruck", &[512], None),
    ];
    for (name, shape, expected) in cases {
        let algorithm = checked.program.find(name).expect("a standard algorithm");
        let request = Request { algorithm, shape: shape.to_vec(), params: Params::new() };
        #[expect(clippy::disallowed_methods, reason = "shown, never judged")]
        let start = Instant::now();
        let done = elaborate::elaborate(&checked.program, &request, &Limits::default());
        let elapsed = start.elapsed();
        let done = done.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        println!(
            "{name} {shape:?}: {} moves, {} cells, {elapsed:?}",
            done.trace.moves.len(),
            done.trace.cells
        );
        if let Some(expected) = expected {
            assert_eq!(done.trace.moves.len(), expected, "{name}");
        }
    }
}
