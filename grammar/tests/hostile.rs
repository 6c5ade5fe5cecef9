//! Inputs made to break the parser: each is an error or a tree, soon, in little memory, without a panic.

#![allow(clippy::disallowed_methods, reason = "the time it takes is what is tested")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rcc_grammar::error::code;
use rcc_grammar::span::FileId;
use rcc_grammar::{ParseLimits, eq_modulo_spans, parse, parse_bytes, print::print};

/// Counts what is in use, and the most there was.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on to `System` unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(used, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const MUCH: usize = 10 << 20;
const SOME: usize = 256 << 10;

fn large() -> ParseLimits {
    ParseLimits { bytes: 64 << 20, ..ParseLimits::default() }
}

/// Parses, and prints what is right; the first error's code, if any.
fn survive(name: &str, text: &str, limits: &ParseLimits) -> Option<&'static str> {
    let start = Instant::now();
    PEAK.store(USED.load(Ordering::Relaxed), Ordering::Relaxed);
    let before = USED.load(Ordering::Relaxed);
    let parsed = parse(FileId(0), text, limits);
    let printed = print(&parsed.file);
    let first = parsed.errors.first().map(|error| error.code);
    assert!(eq_modulo_spans(&parsed.file, &parsed.file));
    drop(parsed);
    let (time, peak) = (start.elapsed(), PEAK.load(Ordering::Relaxed) - before);
    eprintln!("{name}: {first:?}, {time:?}, {} MiB, printed {} bytes", peak >> 20, printed.len());
    // Well under a second in a release build on a quiet machine; this one is neither.
    assert!(time < Duration::from_secs(5), "{name} took {time:?}");
    // A GiB for the 4 MiB that a text may have.
    assert!(peak < (256 << 20) + text.len() * 64, "{name} took {} MiB", peak >> 20);
    first
}

/// Ten megabytes of the worst, one of the rest.
fn of(part: &str) -> String {
    let bytes = if ["(", "[", "-", "1+", "{", "\u{0}"].contains(&part) { MUCH } else { SOME };
    part.repeat(bytes / part.len())
}

// One test, so that the count of memory is its own.
#[test]
fn hostile_texts() {
    let deep = Some(code::NESTING_TOO_DEEP);
    for part in [
        "(", "[", "{", "-", ")", "}", "'", "\"", "\u{0}", "$ ", "$a", "/", "@", "1 ", "a ", "..", "é", "\n",
        "//\n", "///\n",
    ] {
        survive(&format!("{part:?}"), &of(part), &large());
        survive(&format!("{part:?}, limited"), &of(part), &ParseLimits::default());
    }
    for part in [
        "(",
        "[",
        "{",
        "-",
        "- ",
        "not ",
        "f(",
        "a[",
        "sum(x in 0..n) ",
        "if a then ",
        "if a then b else ",
        "if ",
        "1+",
        "1-1*",
        "f(1)+",
        "(1)+",
        "a[1]+",
    ] {
        let code = survive(&format!("fn {part:?}"), &format!("fn f() = {}1", of(part)), &large());
        assert!(code == deep, "{part:?}: {code:?}");
        let body = format!("algorithm x on ranks[n] implements y {{ chunks {}1 }}", of(part));
        assert_eq!(survive(&format!("chunks {part:?}"), &body, &large()), deep);
        let rank = format!("algorithm x on ranks[n] implements y {{ data @ {}1 = data @ 1 }}", of(part));
        assert!(survive(&format!("@ {part:?}"), &rank, &large()).is_some());
    }
    for part in [
        "for r in 0..n { ",
        "step { ",
        "if a { ",
        "if a { } else ",
        "if a { } else { ",
        "step for r in 0..n { ",
    ] {
        let body = format!("algorithm x on ranks[n] implements y {{ {} }}", of(part));
        assert_eq!(survive(part, &body, &large()), deep, "{part}");
    }
    for part in [
        "a@0=b@0 ",
        "let a=1 ",
        "step{}",
        "if a{}",
        "for a in b..c{}",
        "run a on* ",
        "chunks 1 ",
        "inplace none ",
    ] {
        let text = part.repeat(SOME / part.len());
        let body = format!("algorithm x on ranks[n] implements y {{ {text} }}");
        assert_eq!(survive(part, &body, &ParseLimits::default()), None, "{part}");
        let cut = format!("algorithm x on ranks[n] implements y {{ {text}");
        assert_eq!(survive(part, &cut, &ParseLimits::default()), Some(code::UNCLOSED_DELIMITER), "{part}");
    }
    for part in ["1,", "a[1],", "(1),", "-1,", "1 // c\n,"] {
        let text = part.repeat(SOME / part.len());
        let body = format!("algorithm x on ranks[n] implements y {{ let t = [{text}] }}");
        assert_eq!(survive(part, &body, &ParseLimits::default()), None, "{part}");
    }
    for part in [
        "fn ",
        "fn f()=1\n",
        "algorithm ",
        "collective x on ranks[n]{}\n",
        "schedule ",
        "fn f(\n",
        "}\nfn f()=1\n",
        "/// d\nfn f()=1\n",
    ] {
        survive(
            part,
            &part.repeat(SOME / part.len()),
            &ParseLimits { errors: u32::MAX, ..ParseLimits::default() },
        );
        survive(part, &of(part), &large());
    }
    for nothing in ["", "\u{0}", "\u{feff}\u{feff}", "\r", "\\", "/", "//", "\"", "'"] {
        survive(&format!("{nothing:?}"), nothing, &large());
    }
    assert_eq!(parse_bytes(FileId(0), &[0xff; 1 << 20], &large()).errors[0].code, code::NOT_UTF8);
}

#[test]
fn the_deepest_tree_can_be_walked() {
    // At the greatest limit there is, on a thread with Rust's usual stack.
    let most = ParseLimits { nesting: u32::MAX, ..ParseLimits::default() };
    let depth = ParseLimits::MOST_NESTING as usize;
    let walk = move || {
        for (open, close) in [
            ("(", ")"),
            ("-", ""),
            ("not ", ""),
            ("1+", ""),
            ("1 and ", ""),
            ("f(", ")"),
            ("t[", "]"),
            ("sum(x in 0..n) ", ""),
            ("if a then b else ", ""),
            ("if ", " then 1 else 2"),
        ] {
            for count in [depth / 8, depth / 4, depth / 2, depth - 4, depth, depth + 4] {
                let text = format!("fn f() = {}1{}", open.repeat(count), close.repeat(count));
                let parsed = parse(FileId(0), &text, &most);
                if count > depth {
                    assert_eq!(parsed.errors[0].code, code::NESTING_TOO_DEEP, "{open}");
                } else if count <= depth / 4 {
                    assert!(parsed.errors.is_empty(), "{open} {:?}", parsed.errors);
                }
                let printed = print(&parsed.file);
                let again = parse(FileId(0), &printed, &most);
                assert!(eq_modulo_spans(&parsed.file, &again.file), "{open} {count}");
            }
        }
        for open in ["for r in 0..n {", "step {", "if a {", "if a { } else {"] {
            let text = format!(
                "algorithm x on ranks[n] implements y {{ {} {} }}",
                open.repeat(depth / 4),
                "}".repeat(depth / 4)
            );
            let parsed = parse(FileId(0), &text, &most);
            assert!(parsed.errors.is_empty(), "{open}: {:?}", parsed.errors);
            let again = parse(FileId(0), &print(&parsed.file), &most);
            assert!(eq_modulo_spans(&parsed.file, &again.file), "{open}");
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(walk).unwrap().join().unwrap();
}
