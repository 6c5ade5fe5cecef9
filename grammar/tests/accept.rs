//! The programs of `docs/language.md` parse.

use rcc_grammar::span::FileId;
use rcc_grammar::{ParseLimits, parse};

const RING: &str = r#"
/// Ring AllReduce: 2(n-1) steps, each moving 1/n of the data. Bandwidth-optimal.
algorithm ring on ranks[n] implements allreduce {
    chunks n

    // Reduce-scatter: chunk c sets out from rank c+1 and is complete at rank c.
    for c in 0..n, hop in 1..n {
        data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n
    }

    // All-gather: the complete chunk goes round once more.
    for c in 0..n, hop in 0..n-1 {
        data[c] @ (c + hop + 1) % n = data[c] @ (c + hop) % n
    }
}
"#;

const COLLECTIVES: &str = r#"
/// Every rank ends with the reduction of all ranks' data.
collective allreduce on ranks[n] {
    inout data
    ensures for r in 0..n: data @ r == reduce(s in 0..n) data @ s
}

/// Rank r ends with block r of every rank.
collective alltoall on ranks[n] {
    in  input[n]
    out output[n]
    ensures for r in 0..n, s in 0..n: output[s] @ r == input[r] @ s
}

/// The root ends with the reduction; other ranks need no receive buffer.
collective reduce(root: rank) on ranks[n] {
    in  input
    out output @ root
    inplace input = output
    ensures output @ root == reduce(s in 0..n) input @ s
}

collective barrier on ranks[n] { ensures synchronised }   // no rank leaves before all have entered
"#;

const MOVES: &str = r#"
algorithm moves on ranks[n] implements c {
    scratch tmp[n]
    data[c] @ q  = data[c] @ p                          // copy; between ranks it is a transfer
    data[c] @ q += data[c] @ p                          // combine with the call's operator
    data[c] @ r  = reduce(s in 0..n) tmp[s][c] @ r      // many operands in one pass, combined in the order written
    data[c] @ r  = reduce(data[c] @ r, tmp[c] @ r)      // the same with the operands listed
    data[c] @ *  = data[c] @ root                       // multicast; passes over its source
    data[c] @ r  = reduce data[c] @ *                   // gather-reduce in rank order
}
"#;

const STEPS: &str = r#"
/// Recursive doubling: log2(n) steps, each rank swaps everything with one partner.
algorithm recursive_doubling on ranks[n] implements allreduce {
    require is_power_of_two(n), "recursive doubling pairs ranks by one bit"
    for bit in 0..log2(n) {
        step for r in 0..n { data @ r ^ (1 << bit) += data @ r }
    }
}
"#;

const COMPOSITION: &str = r#"
/// Reduce-scatter inside each node, ring across nodes, all-gather inside each node.
algorithm hierarchical on ranks[m, g] implements allreduce {
    chunks g
    for i in 0..m { run ring_reducescatter on (i, *) with input = data, output = data[self] }
    for j in 0..g { run ring               on (*, j) with data = data[j] }
    for i in 0..m { run ring_allgather     on (i, *) with input = data[self], output = data }
}
"#;

const SCHEDULES: &str = r#"
algorithm ring on ranks[n] implements allreduce {
    'scatter: for c in 0..n, hop in 1..n { data[c] @ hop += data[c] @ c }
    'gather: for c in 0..n, hop in 0..n-1 { data[c] @ hop = data[c] @ c }
    // Words of schedules are names elsewhere.
    let size = 3 let when = size let channel = [when] scratch wire
    for prefer in 0..channel[0] { wire @ prefer = data @ size }
}

schedule for ring {
    channels 4
    pipeline 512 KiB
    threads 512 transport prefer nvlink, shared transport avoid tcp
    via switch wire bf16 protocol auto
    'gather { channel c % 2 }
    when size < 64 KiB { protocol ll     channels 1 }
    when size < 2 MiB  { protocol ll128  channels 2 'gather { channel 0 } }
    when size == 4096 { pipeline 4096 threads 32 }
}
schedule for std::allreduce::ring { }
"#;

const REST: &str = r#"
fn partner(r, bit) = r ^ (1 << bit)
fn first() = if true then 1 else 2
algorithm rest(k: int = 4, root: rank, deep: bool = false,) on ranks[n] implements std::broadcast::reduce(root = root, 3) {
    inplace none
    scratch tmp
    chunks k * n
    let cable = [0, 3, 1, 2]
    let order = [cable[r] for r in 0..4 if r % 2 == 0]
    let total = sum(x in 0..n) x * x + 1
    let f = if not deep and k >> 1 & 1 == 1 then -k else cable[0] - - 1
    for x in 0..-1 step 2 rev, y in x..4000000000 if x != y {
        signal @ x = signal @ y
        if x < y { step { tmp[0][a..b] @ (x, y) = data[0..n-1] @ r } } else if k > 2 { } else { data @ 1 = data @ 0 }
    }
    run std::reduce::binomial(k, root = 3) on [cable[x] for x in 0..k] with a = b, c = data[self][0..2]
    run barrier on *
    run other on 0..n/2
}
"#;

#[test]
fn the_documented_programs_parse() {
    for (name, text) in [
        ("ring", RING),
        ("collectives", COLLECTIVES),
        ("moves", MOVES),
        ("steps", STEPS),
        ("composition", COMPOSITION),
        ("schedules", SCHEDULES),
        ("rest", REST),
    ] {
        let parsed = parse(FileId(0), text, &ParseLimits::default());
        if let Some(error) = parsed.errors.first() {
            panic!("{name}: {} at {:?}: {error:?}", error.title, &text[error.span.range()]);
        }
        assert!(!parsed.file.items.is_empty());
    }
}
