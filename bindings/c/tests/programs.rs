//! Programs in C that look at the whole interface, each one a test.

mod harness;

use harness::{Link, built, clean, compile, launch, passes};

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

#[test]
fn collectives_do_what_they_promise() {
    let program = compile("cc", "c11", "tests/programs/collectives.c", Link::Shared);
    for world in [1, 2, 3] {
        let said = passes(launch(world, &program.path));
        assert_eq!(said.matches("right at rank").count(), world as usize);
    }
}

#[test]
fn what_is_wrong_is_told() {
    let program = compile("cc", "c11", "tests/programs/errors.c", Link::Shared);
    assert_eq!(passes(clean(&program.path)), "all was told\n");
}

#[test]
fn calls_go_on_side_by_side() {
    let program = compile("cc", "c11", "tests/programs/calls.c", Link::Shared);
    for world in [2, 3] {
        let plan = program.folder.path().join("ring.plan");
        let mut compile = clean(&built().rcc);
        compile.args(["compile", "std::allreduce::ring", "-n", &world.to_string(), "-o"]).arg(&plan);
        passes(compile);
        let mut launch = launch(world, &program.path);
        launch.arg(&plan);
        assert_eq!(passes(launch).matches("right at rank").count(), world as usize);
    }
}

#[test]
fn those_that_are_left_go_on() {
    let program = compile("cc", "c11", "tests/programs/survivors.c", Link::Shared);
    assert_eq!(passes(clean(&program.path)), "two are left\n");
}

#[test]
fn threads_that_use_each_others_handles_break_nothing() {
    let program = compile("cc", "c11", "tests/programs/abuse.c", Link::Shared);
    assert_eq!(passes(clean(&program.path)), "nothing broke\n");
}
