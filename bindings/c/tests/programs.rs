//! Programs in C that look at the whole interface, each one a test.

mod harness;

use harness::{Link, clean, compile, passes};

#[test]
fn the_header_is_c_of_every_standard() {
    for standard in ["c99", "c11", "c17"] {
        let program = compile("cc", standard, "tests/programs/header.c", Link::Shared);
        passes(clean(&program.path));
    }
}

/// Where g++ is installed: a fresh machine needs only gcc.
#[test]
fn the_header_is_cpp() {
    if clean("g++").arg("--version").output().is_err() {
        eprintln!("left out: there is no g++");
        return;
    }
    for standard in ["c++11", "c++17", "c++20"] {
        let program = compile("g++", standard, "tests/programs/header.cpp", Link::Shared);
        passes(clean(&program.path));
    }
}
