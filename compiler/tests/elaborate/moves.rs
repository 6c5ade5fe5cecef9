//! The moves of small programs, construct by construct.

use crate::support::{elaborate, moves};

#[test]
fn ring() {
    let text = "algorithm ring on ranks[n] implements allreduce {
        chunks n
        for c in 0..n, hop in 1..n { data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n }
        for c in 0..n, hop in 0..n-1 { data[c] @ (c + hop + 1) % n = data[c] @ (c + hop) % n }
    }";
    let done = elaborate(text, &[2], &[]).expect("it is right");
    assert_eq!(done.trace.cells, 2);
    assert_eq!(
        moves(&done.trace),
        [
            "data[0] @ 0 += data[0] @ 1",
            "data[1] @ 1 += data[1] @ 0",
            "data[0] @ 1 = data[0] @ 0",
            "data[1] @ 0 = data[1] @ 1",
        ]
    );
    assert!(done.callees.is_empty());
    assert_eq!(done.trace.promise.clauses.len(), 2);
    assert_eq!(done.trace.promise.lists.len(), 1);
}
