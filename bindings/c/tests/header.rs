//! `rcc.h` is what cbindgen makes of the source.
//!
//! `cargo xtask header` runs this test with RCC_REWRITE_HEADER set: then it writes the file.

#![allow(clippy::disallowed_methods, reason = "reads, and writes when asked to, a file of the source tree")]

use std::path::Path;

use cbindgen::{Builder, Config};

#[test]
fn header_is_that_of_the_source() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/rcc.h");
    let text = made();
    if std::env::var_os("RCC_REWRITE_HEADER").is_some() {
        std::fs::write(&place, &text).expect("the header can be written");
        return;
    }
    let committed = std::fs::read_to_string(&place).expect("bindings/c/include/rcc.h is there");
    let mut lines = committed.lines().zip(text.lines()).enumerate();
    let first = lines.find(|(_, (is, due))| is != due).map_or_else(
        || "one is longer than the other".to_string(),
        |(at, (is, due))| format!("line {}\n  is:     {is}\n  should: {due}", at + 1),
    );
    let message = "bindings/c/include/rcc.h is not that of the source: run `cargo xtask header`";
    assert!(committed == text, "{message}\n{first}");
}

/// What the header should be. Headings are those of Rust's comments; C has other words for them.
fn made() -> String {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = Config::from_file(own.join("cbindgen.toml")).expect("cbindgen.toml makes sense");
    let made = Builder::new().with_config(config).with_src(own.join("src/lib.rs")).generate();
    let mut text = Vec::new();
    made.expect("cbindgen reads the source").write(&mut text);
    let text = String::from_utf8(text).expect("a header is text");
    assert!(text.contains(" * # Safety\n"), "cbindgen writes headings otherwise");
    text.replace(" * # Safety\n", " * The caller answers for it that:\n")
}
