//! Programs that ask for too much: each ends with a diagnostic, soon, in little memory.

use rcc_compiler::diagnostics;
use rcc_compiler::limits::Limits;
use std::fmt::Write;

use crate::support::{ANY, check_with, elaborate_checked};

/// Seconds of processor time; the bound is for a release build.
const SOON: f64 = if cfg!(debug_assertions) { 20.0 } else { 1.9 };
const MEMORY_KIB: u64 = 1 << 20;

/// The code of the first error, from `check` or from elaborating `x`.
fn code(text: &str, shape: &[u32]) -> String {
    // Without the standard library, whose own time does not count; `allreduce` and the like are not needed.
    let start = processor_seconds();
    let checked = check_with(&[text], &[]);
    let code = match checked.errors.first() {
        Some(error) => {
            let _ = diagnostics::check::error(error);
            error.kind.code().to_owned()
        }
        None => match elaborate_checked(&checked, shape, &[], &Limits::default()) {
            Ok(done) => format!("{} moves", done.trace.moves.len()),
            Err(error) => {
                let _ = diagnostics::elaborate::error(&error, &checked.sources);
                error.code().to_owned()
            }
        },
    };
    let elapsed = processor_seconds() - start;
    assert!(elapsed < SOON, "{elapsed} s for {}", &text[..text.len().min(300)]);
    assert!(peak_kib() < MEMORY_KIB, "{} KiB for {}", peak_kib(), &text[..text.len().min(300)]);
    println!("{elapsed:.2} s {} MiB {code}: {}", peak_kib() >> 10, &text[..text.len().min(200)]);
    code
}

/// What this thread has used of a processor: other tests and other processes do not count.
fn processor_seconds() -> f64 {
    #[expect(clippy::disallowed_methods, reason = "a bound on time is what is tested")]
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // User and system time, in ticks of 10 ms.
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The largest amount of memory this process has held.
fn peak_kib() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a bound on memory is what is tested")]
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn body(body: &str, shape: &[u32]) -> String {
    let levels = ["n", "m, n"][shape.len() - 1];
    code(&format!("{ANY} algorithm x on ranks[{levels}] implements any {{ {body} }}"), shape)
}

#[test]
fn loops() {
    let copy = "data @ 0 = data @ 1";
    assert_eq!(body(&format!("for i in 0..4000000000 {{ {copy} }}"), &[2]), "coll::too_many_moves");
    assert_eq!(body("for i in 0..4000000000 { }", &[2]), "coll::too_many_turns");
    assert_eq!(body("for i in 0..9223372036854775807 { }", &[2]), "coll::too_many_turns");
    assert_eq!(body("for i in -9223372036854775807..9223372036854775807 { }", &[2]), "coll::too_many_turns");
    assert_eq!(
        body(&format!("for i in 0..100000, j in 0..100000 {{ {copy} }}"), &[2]),
        "coll::too_many_moves"
    );
    assert_eq!(body("for i in 0..100000, j in 0..100000, k in 0..100000 { }", &[2]), "coll::too_many_turns");
    assert_eq!(body("for i in 0..100000 { for j in 0..100000 { } }", &[2]), "coll::too_many_turns");
    assert_eq!(body("for i in 0..100000, j in 0..i { }", &[2]), "coll::too_many_turns");
    assert_eq!(body("for i in 0..100000 { for j in 0..100000 if i == j { } }", &[2]), "coll::too_many_turns");
    assert_eq!(
        body("for i in 0..100000 { for j in 0..100000 { let k = i * j % 7 } }", &[2]),
        "coll::too_many_turns"
    );
    assert_eq!(body("for i in 0..199999999 { }", &[2]), "0 moves");
}

#[test]
fn loops_of_moves() {
    let copy = "data @ 0 = data @ 1";
    assert_eq!(
        body(&format!("for i in 0..100000 {{ for j in 0..100000 {{ {copy} }} }}"), &[2]),
        "coll::too_many_moves"
    );
}

#[test]
fn multicasts() {
    assert_eq!(body("for i in 0..100000 { data @ * = data @ 0 }", &[100_000]), "coll::too_many_moves");
    assert_eq!(body("for i in 0..100000 { data @ 0 = reduce data @ * }", &[100_000]), "coll::too_many_moves");
}

#[test]
fn sums_and_tables() {
    assert_eq!(body("let a = sum(i in 0..4000000000) i", &[2]), "coll::too_many_turns");
    assert_eq!(body("let a = sum(i in 0..100000, j in 0..100000) i", &[2]), "coll::too_many_turns");
    assert_eq!(
        body("let a = sum(i in 0..100000) (sum(j in 0..100000) (i ^ j))", &[2]),
        "coll::too_many_turns"
    );
    assert_eq!(body("let t = [i for i in 0..1000000000]", &[2]), "coll::too_many_turns");
    assert_eq!(body("let t = [i for i in 0..100000000]", &[2]), "coll::too_many_elements");
    assert_eq!(body("for j in 0..100 { let t = [i for i in 0..1000000] }", &[2]), "0 moves");
    let mut many = String::new();
    for i in 0..100 {
        let _ = write!(many, "let t{i} = [i for i in 0..1000000] ");
    }
    assert_eq!(body(&many, &[2]), "coll::too_many_elements");
    assert_eq!(body("data @ 0 = reduce(i in 0..4000000000) data @ 1", &[2]), "coll::too_many_turns");
}

#[test]
fn places() {
    assert_eq!(body("chunks 1000000000", &[2]), "coll::too_many_places");
    assert_eq!(body("chunks 9223372036854775807", &[2]), "coll::too_many_places");
    assert_eq!(body("chunks 1 << 32", &[2]), "coll::too_many_places");
    assert_eq!(body("scratch s[1000000000]", &[2]), "coll::too_many_places");
    assert_eq!(body("chunks 100000 scratch s[100000]", &[2]), "coll::too_many_places");
    assert_eq!(body("scratch s[100000] chunks 100000", &[2]), "coll::too_many_places");
    assert_eq!(body("chunks n", &[1_000_000]), "coll::too_many_places");
    assert_eq!(body("data @ 0 = data @ 1", &[1_000_000]), "1 moves");
    assert_eq!(body("data @ 0 = data @ 1", &[u32::MAX]), "coll::too_many_places");
    assert_eq!(body("data @ 0 = data @ 1", &[65_536, 65_536]), "coll::bad_shape");
    let all = "collective all on ranks[n] { in a[n] out b[n] ensures for r in 0..n, s in 0..n: b[s] @ r == a[r] @ s }
        algorithm x on ranks[n] implements all { }";
    assert_eq!(code(all, &[1_000_000]), "coll::too_many_places");
}

#[test]
fn promises() {
    let promise = |ensures: &str, shape: u32| {
        code(
            &format!(
                "collective c on ranks[n] {{ in a out b ensures {ensures} }} algorithm x on ranks[n] implements c {{ }}"
            ),
            &[shape],
        )
    };
    assert_eq!(promise("for r in 0..n: b @ r == reduce(s in 0..n) a @ s", 1_000_000), "0 moves");
    assert_eq!(
        promise("for r in 0..n: b @ r == reduce(s in 0..n) a @ (s + r) % n", 1_000_000),
        "coll::too_many_turns"
    );
    assert_eq!(
        promise("for r in 0..n: b @ r == reduce(s in 0..n / 2) a @ (s + r) % n", 12_000),
        "coll::too_many_turns"
    );
    assert_eq!(promise("for r in 0..21000000: b @ 0 == a @ 0", 2), "coll::too_many_elements");
    assert_eq!(promise("for r in 0..100000, s in 0..100000: b @ 0 == a @ 0", 2), "coll::too_many_turns");
    assert_eq!(promise("b @ * == reduce a @ *", 1_000_000), "0 moves");
}

/// A step of the plan counts its operands in 16 bits.
#[test]
fn operands_of_one_reduction() {
    let of = |k: u32| body(&format!("scratch t[{k}] scratch u u @ 0 = reduce(s in 0..{k}) t[s] @ 0"), &[2]);
    assert_eq!(of(65_535), "1 moves");
    assert_eq!(of(65_536), "coll::many_operands");
    let ranks = "scratch t scratch u u @ 0 = reduce t @ *";
    assert_eq!(body(ranks, &[65_535]), "1 moves");
    assert_eq!(body(ranks, &[65_536]), "coll::many_operands");
}

#[test]
fn runs() {
    // Each algorithm runs the next one twice: 2^30 moves.
    let mut doubling = String::from(ANY);
    for i in 0..30 {
        let run = format!("run a{} on * with data = data", i + 1);
        let _ = write!(doubling, " algorithm a{i} on ranks[n] implements any {{ {run} {run} }}");
    }
    doubling += " algorithm a30 on ranks[n] implements any { data @ 0 = data @ 1 }";
    assert_eq!(code(&doubling, &[2]), "coll::too_many_moves");
    // Each runs the next one with two arguments: 2^30 different callees, none of which moves anything.
    let mut arguments = String::from(ANY);
    for i in 0..30 {
        let next = i + 1;
        let run = |k: &str| format!("run a{next}({k}) on * with data = data");
        let (left, right) = (run("2 * k"), run("2 * k + 1"));
        let _ =
            write!(arguments, " algorithm a{i}(k: int = 0) on ranks[n] implements any {{ {left} {right} }}");
    }
    arguments += " algorithm a30(k: int) on ranks[n] implements any { }";
    assert_eq!(code(&arguments, &[2]), "coll::too_many_turns");
    // Chunks of coprime numbers multiply.
    let mut coprime = String::from(ANY);
    let primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41];
    for (i, prime) in primes.iter().enumerate() {
        let inner = match primes.get(i + 1) {
            Some(_) => format!("run a{} on * with data = data", i + 1),
            None => "data @ 0 = data @ 1".to_owned(),
        };
        let _ = write!(coprime, " algorithm a{i} on ranks[n] implements any {{ chunks {prime} {inner} }}");
    }
    assert_eq!(code(&coprime, &[2]), "coll::too_many_places");
    let two = |body: &str, shape: &[u32]| {
        code(
            &format!(
                "{ANY} algorithm x on ranks[n] implements any {{ {body} }}
            algorithm y on ranks[n] implements any {{ scratch t t @ 1 = data @ 0 }}
            algorithm z on ranks[n] implements any {{ }}"
            ),
            shape,
        )
    };
    assert_eq!(two("run y on [i % n for i in 0..1000000000] with data = data", &[2]), "coll::too_many_turns");
    assert_eq!(
        two("for i in 0..1000000 { run z on * with data = data }", &[100_000]),
        "coll::too_many_turns"
    );
    assert_eq!(
        two("for i in 0..1000 { run y on 0..2 with data = data }", &[100_000]),
        "coll::too_many_places"
    );
    assert_eq!(
        two("for i in 0..1000000 { run y on 0..1000 with data = data }", &[1_000]),
        "coll::too_many_elements"
    );
    assert_eq!(two("for i in 0..n - 2 { run y on i..i + 3 with data = data }", &[50_000]), "49998 moves");
    let mut deep = String::from(ANY);
    for i in 0..10_000 {
        let _ = write!(
            deep,
            " algorithm a{i} on ranks[n] implements any {{ run a{} on * with data = data }}",
            i + 1
        );
    }
    deep += " algorithm a10000 on ranks[n] implements any { }";
    assert_eq!(code(&deep, &[2]), "coll::too_deep");
}

#[test]
fn functions() {
    let mut doubling = String::from(ANY);
    for i in 0..60 {
        let _ = write!(doubling, " fn f{i}(a) = f{0}(a) + f{0}(a)", i + 1);
    }
    doubling += " fn f60(a) = a algorithm x on ranks[n] implements any { let a = f0(1) }";
    assert_eq!(code(&doubling, &[2]), "coll::too_many_turns");
    let mut chain = String::from(ANY);
    for i in 0..50_000 {
        let _ = write!(chain, " fn f{i}(a) = f{}(a)", i + 1);
    }
    chain += " fn f50000(a) = a algorithm x on ranks[n] implements any { let a = f0(1) }";
    assert_eq!(code(&chain, &[2]), "coll::too_deep");
    let mut circle = String::from(ANY);
    for i in 0..50_000 {
        let _ = write!(circle, " fn f{i}(a) = f0(a) + f{}(a)", (i + 1) % 50_000);
    }
    circle += " algorithm x on ranks[n] implements any { let a = f0(1) }";
    assert_eq!(code(&circle, &[2]), "coll::recursion");
}

#[test]
fn long_texts() {
    let mut lets = String::new();
    for i in 0..40_000 {
        let _ =
            write!(lets, "let a{i} = {} ", if i == 0 { "n".to_owned() } else { format!("a{} + 1", i - 1) });
    }
    assert_eq!(body(&lets, &[2]), "0 moves");
    let unknown = "data @ xyz = data @ zyx ".repeat(20_000);
    assert_eq!(body(&unknown, &[2]), "coll::unknown_name");
    let moves = "data @ 0 = data @ 1 ".repeat(50_000);
    assert_eq!(body(&moves, &[2]), "50000 moves");
    let long = format!("let a = {}1", "1 + ".repeat(150));
    assert_eq!(body(&long, &[2]), "0 moves");
    let nested = format!("{}data @ 0 = data @ 1{}", "for i in 0..1 { ".repeat(0), "");
    assert_eq!(body(&nested, &[2]), "1 moves");
    let mut loops = String::from("data @ 0 = data @ 1");
    for i in 0..90 {
        loops = format!("for i{i} in 0..1 {{ {loops} }}");
    }
    assert_eq!(body(&loops, &[2]), "1 moves");
}

#[test]
fn aliases() {
    // Many runs whose bindings overlap, of wide moves: what is followed is what overlaps, not the world.
    let text = "collective c on ranks[n] { in a out b[n] ensures for r in 0..0: b[0] @ r == a @ r }
        collective any on ranks[n] { inout data ensures for r in 0..0: data @ r == data @ r }
        algorithm y on ranks[n] implements c { b[1] @ 0 = a @ 1 }
        algorithm x on ranks[n] implements any {
            chunks 3000
            for i in 0..2000 { run y on [0, 1, 2] with a = data[1000 * self..1000 * self + 1000], b = data }
        }";
    assert_eq!(code(text, &[3]), "2000 moves");
}
