//! Programs that several tests share, beside the standard library.

/// A value that one rank sends to several, in all the ways that a compiler must tell apart: to all at once, one by one, in a step,
/// again and again, overwritten in between, sent on by others.
pub const MULTICASTS: &str = r#"
algorithm flat(root: rank) on ranks[n] implements broadcast(root) {
    data @ * = data @ root
}

algorithm on_two_levels(root: rank) on ranks[m, k] implements broadcast(root) {
    data @ * = data @ root
}

algorithm in_pieces(root: rank) on ranks[n] implements broadcast(root) {
    chunks 3
    for c in 0..3 {
        data[c] @ * = data[c] @ root
    }
}

algorithm one_by_one(root: rank) on ranks[n] implements broadcast(root) {
    for hop in 1..n {
        data @ (root + hop) % n = data @ root
    }
}

algorithm together on ranks[n] implements allgather {
    step for r in 0..n {
        output[r] @ * = input @ r
    }
}

algorithm in_turn on ranks[n] implements allgather {
    for r in 0..n {
        output[r] @ * = input @ r
    }
}

algorithm by_way_of_0 on ranks[n] implements allreduce {
    data @ 0 = reduce data @ *
    data @ * = data @ 0
}

algorithm overwritten on ranks[n] implements allgather {
    scratch tmp
    for r in 0..n {
        tmp @ * = input @ r
        for q in 0..n {
            output[r] @ q = tmp @ q
        }
    }
}

collective twice on ranks[n] {
    in input
    out first
    out second
    ensures for r in 0..n: first @ r == reduce(s in 0..n) input @ s
    ensures for r in 0..n: second @ r == reduce(s in 0..n) input @ s
}

algorithm changed_between on ranks[n] implements twice {
    require n == 3, "three ranks"
    scratch up
    scratch x
    up @ 1 = reduce(s in 0..n) input @ s
    x @ 2 = reduce(s in 0..n) input @ (n - 1 - s)
    x @ 0 = up @ 1
    first @ 2 = x @ 2
    x @ 2 = up @ 1
    second @ 2 = x @ 2
    first @ 0 = x @ 0
    second @ 0 = x @ 0
    first @ 1 = up @ 1
    second @ 1 = up @ 1
}

algorithm swapped on ranks[n] implements allgather {
    scratch tmp[2]
    tmp[0] @ * = input @ 0
    tmp[1] @ * = input @ 1
    step {
        tmp[0] @ * = tmp[1] @ 1
        tmp[1] @ * = tmp[0] @ 0
    }
    output[0] @ * = tmp[1] @ n - 1
    output[1] @ * = tmp[0] @ n - 1
    for r in 2..n {
        output[r] @ * = input @ r
    }
}

algorithm there_and_back on ranks[n] implements allgather {
    scratch tmp[n]
    for r in 0..n {
        tmp[r] @ * = input @ r
        output[r] @ (r + 1) % n = tmp[r] @ (r + 1) % n
    }
    for r in 0..n, hop in 1..n {
        output[r] @ (r + 1 + hop) % n = tmp[r] @ (r + 1 + hop) % n
    }
}
"#;
