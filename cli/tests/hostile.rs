//! Inputs meant to break it: a diagnostic, soon, in little memory, and never a panic.

#![allow(clippy::disallowed_methods, reason = "tests write files and time what they run")]

mod common;

use common::{RING, broken_ring, confined, file, folder};

#[test]
fn files_that_are_not_there_or_no_files() {
    let folder = folder();
    let missing = folder.path().join("missing.coll");
    let missing = missing.to_str().unwrap();
    for command in ["check", "compile", "run", "bench", "explain", "fmt", "show"] {
        let mut arguments = vec![command, missing];
        if command == "compile" {
            arguments.extend(["--ranks", "2"]);
        }
        confined(&arguments).ends(2).says("missing.coll").says("no such file").soon();
        arguments[1] = folder.path().to_str().unwrap();
        confined(&arguments).ends(2).says("is a directory").soon();
    }
}

#[test]
fn bytes_that_are_no_program() {
    let folder = folder();
    let parens = "(".repeat(10 << 20);
    let line = format!(
        "algorithm a on ranks[n] implements allreduce {{ {} }}",
        "data @ 0 = data @ 1 ".repeat(60_000)
    );
    let inputs: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty.coll", Vec::new(), "coll::nothing_to_check"),
        ("blank.coll", b"  \r\n\t\n".to_vec(), "coll::nothing_to_check"),
        ("nul.coll", vec![0; 4096], "coll::"),
        (
            "latin1.coll",
            b"algorithm r\xe9duire on ranks[n] implements allreduce {}".to_vec(),
            "coll::not_utf8",
        ),
        (
            "random.coll",
            (0..100_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect(),
            "coll::",
        ),
        ("parens.coll", parens.into_bytes(), "coll::"),
        (
            "nested.coll",
            format!(
                "algorithm a on ranks[n] implements allreduce {{ let x = {}1{} }}",
                "(".repeat(100_000),
                ")".repeat(100_000)
            )
            .into_bytes(),
            "coll::nesting_too_deep",
        ),
        (
            "blocks.coll",
            format!("algorithm a on ranks[n] implements allreduce {}", "{ if true ".repeat(100_000))
                .into_bytes(),
            "coll::",
        ),
        ("line.coll", line.into_bytes(), "coll::"),
        ("crlf.coll", broken_ring().replace('\n', "\r\n").into_bytes(), "coll::promise"),
        ("tabs.coll", broken_ring().replace("    ", "\t").into_bytes(), "coll::promise"),
        ("escape.coll", b"algorithm \x1b[2J on ranks[n] implements allreduce {}".to_vec(), "coll::"),
        (
            "name.coll",
            format!("algorithm a on ranks[n] implements {} {{}}", "x".repeat(1 << 20)).into_bytes(),
            "coll::unknown_name",
        ),
    ];
    for (name, bytes, code) in inputs {
        let path = file(&folder, name, &bytes);
        for command in ["check", "run", "fmt"] {
            // What is a wrong program may still have a layout.
            if command == "fmt" && !["coll::not_utf8", "coll::nesting_too_deep"].contains(&code) {
                continue;
            }
            let ran = confined(&[command, &path]).ends(1).says(code).soon();
            assert!(ran.err.len() < 200_000, "{name}: {} bytes of messages", ran.err.len());
            assert!(!ran.err.contains('\x1b'), "{name}");
        }
    }
}

#[test]
fn programs_without_end_or_bounds() {
    let folder = folder();
    let body = |text: &str| format!("algorithm a on ranks[n] implements allreduce {{ {text} }}");
    let programs = [
        ("loop.coll", body("for x in 0..4000000000 { data @ 0 = data @ 1 }"), "coll::too_many_"),
        (
            "idle.coll",
            body("for x in 0..4000000000 if x < 0 { data @ 0 = data @ 1 }"),
            "coll::too_many_turns",
        ),
        (
            "product.coll",
            body("for a in 0..4000000000, b in 0..4000000000, c in 0..4000000000 { data @ 0 = data @ 1 }"),
            "coll::too_many_",
        ),
        ("chunks.coll", body("chunks 4000000000 data @ * = data @ 0"), "coll::"),
        ("scratch.coll", body("scratch tmp[4000000000] tmp @ 0 = data @ 0"), "coll::"),
        ("table.coll", body("let t = [x for x in 0..4000000000] data @ t[0] = data @ 1"), "coll::"),
        ("sum.coll", body("data @ sum(x in 0..4000000000) 0 = data @ 1"), "coll::too_many_turns"),
        ("overflow.coll", body("let x = 9223372036854775807 * n data @ x = data @ 1"), "coll::overflow"),
        ("zero.coll", body("data @ 1 / (n - n) = data @ 1"), "coll::division_by_zero"),
        ("most.coll", body("data @ (0 - 9223372036854775807 - 1) / (0 - 1) = data @ 1"), "coll::overflow"),
        ("recursion.coll", format!("fn f(x) = f(x)\n{}", body("data @ f(0) = data @ 1")), "coll::recursion"),
        ("runs.coll", body("run a on * with data = data"), "coll::recursion"),
    ];
    for (name, text, code) in programs {
        let path = file(&folder, name, text);
        confined(&["check", &path, "--ranks", "2,3"]).ends(1).says(code).soon();
    }
}

#[test]
fn plans_that_were_tampered_with() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    let plan = folder.path().join("ring.plan");
    let plan = plan.to_str().unwrap();
    confined(&["compile", &ring, "--ranks", "4", "-o", plan]).ends(0);
    let good = std::fs::read(plan).unwrap();
    let mut cases: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "plan"),
        (b"hello, this is not a plan at all, but some text".to_vec(), "not a plan file"),
        (good[..good.len() / 2].to_vec(), "cut short"),
        ([&good[..], b"more"].concat(), "follow the plan"),
        (vec![0xff; 4096], "not a plan file"),
    ];
    for at in [60, good.len() / 2, good.len() - 1] {
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        cases.push((bytes, "damaged"));
    }
    for (bytes, hint) in cases {
        let path = file(&folder, "bad.plan", bytes);
        for command in ["show", "run", "bench", "explain"] {
            confined(&[command, &path]).ends(1).says("bad.plan").says(hint).soon();
        }
    }
    confined(&["show", plan]).ends(0).shows("ring");
    confined(&["run", plan, "-n", "5"]).ends(2).says("the plan is for 4 ranks");
    confined(&["check", plan]).ends(2).says("is a plan, not a source file");
}
