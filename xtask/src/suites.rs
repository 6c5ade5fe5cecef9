//! The suites, by name, on one screen.
//!
//! In: whether to run full matrices. Out: a list of [`Suite`]s, each a function that fails with an error. To add a
//! suite, add a line to `tests` and a function below.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use xshell::{Shell, cmd};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A named group of checks.
pub(crate) struct Suite {
    /// Its name, for `--only`.
    pub(crate) name: &'static str,
    /// What it checks.
    pub(crate) about: &'static str,
    body: Box<dyn Fn(&Shell) -> Outcome>,
}

/// All suites of `xtask test`, in the order they run.
pub(crate) fn tests(full: bool) -> Vec<Suite> {
    let mut suites = vec![
        suite("format", "rustfmt", |sh| ok(cmd!(sh, "cargo fmt --all --check").run())),
        suite("lint", "clippy, warnings are errors", |sh| {
            ok(cmd!(sh, "cargo clippy -q --workspace --all-targets -- -D warnings").run())
        }),
        suite("build", "the command and the tests' helpers, in release", |sh| {
            ok(cmd!(sh, "cargo build -q --release --workspace --bins").run())
        }),
        suite("readme", "the README's first command", |sh| {
            ok(cmd!(sh, "cargo run -q --release -- run examples/02_ring.coll -n 4 --bytes 16MiB").run())
        }),
        suite("unit", "every crate's own tests and the end-to-end tests", move |sh| unit(sh, full)),
        suite(
            "loom",
            "channels, small calls and the gate of communicators in every order of their steps",
            |sh| {
                let tests = ["--test", "loom", "--test", "loom_small", "--test", "loom_gate"];
                ok(cmd!(sh, "cargo test -q -p rcc-runtime {tests...}").run())
            },
        ),
        suite("miri", "runtime's unit tests under Miri, where nightly has it", miri),
        suite("race", "ranks as threads under ThreadSanitizer", race),
        suite(
            "peers",
            "the comparison with MPI libraries, one cell of rcc alone (--full: with every library)",
            move |_| crate::peers::smoke(full),
        ),
        suite("docs", "documentation builds without warnings; its examples run", docs),
    ];
    if full {
        suites.push(suite("random", "half an hour of random calls on four ranks, in release", |sh| {
            let _long = sh.push_env("RCC_RANDOM_SECONDS", "1800");
            ok(cmd!(sh, "cargo test -q --release -p rcc-tests --test random_calls -- --nocapture").run())
        }));
        suites.push(suite("aborts", "10,200 calls ended at random points, in release", |sh| {
            let _often = sh.push_env("RCC_ABORTS", "1700");
            ok(cmd!(sh, "cargo test -q --release -p rcc-runtime --test aborts -- --nocapture").run())
        }));
        suites.push(suite(
            "matrix",
            "every standard algorithm × ranks × count × type × operator, in release",
            matrix,
        ));
        suites.push(suite(
            "layouts",
            "every standard algorithm × ranks × layout × size, schedules at random and their mutants, in release",
            layouts,
        ));
    }
    suites
}

/// Writes `bindings/c/include/rcc.h` anew: the test that compares it does so when it is told to.
pub(crate) fn header() -> ExitCode {
    let outcome = Shell::new().map_err(Into::into).and_then(|sh| {
        sh.change_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        sh.set_var("RCC_REWRITE_HEADER", "1");
        ok(cmd!(sh, "cargo test -q -p rcc-c --test header").run())
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Licences, sources and bans.
pub(crate) fn deny() -> Suite {
    suite("deny", "licences, sources and bans of all dependencies", |sh| {
        let tools = PathBuf::from("target/tools");
        let tool = tools.join("bin/cargo-deny");
        if !tool.exists() {
            cmd!(sh, "cargo install -q cargo-deny --locked --root {tools}").run()?;
        }
        ok(cmd!(sh, "{tool} check bans licenses sources").run())
    })
}

/// Runs suites, prints their times and the seed of their random choices; success only if all passed.
pub(crate) fn run(suites: &[Suite], only: Option<&str>, seed: Option<u64>) -> ExitCode {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() % 1_000_000);
    let seed = seed.unwrap_or_else(clock);
    // Before anything can stop it.
    eprintln!("random choices: --seed {seed}");
    let outcome = Shell::new().map_err(Into::into).and_then(|sh| {
        sh.change_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        sh.set_var("RCC_TEST_SEED", seed.to_string());
        run_all(&sh, suites, only)
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(sh: &Shell, suites: &[Suite], only: Option<&str>) -> Result<bool, Box<dyn std::error::Error>> {
    let chosen: Vec<&Suite> =
        suites.iter().filter(|s| only.is_none_or(|part| s.name.contains(part))).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = suites.iter().map(|s| s.name).collect();
        return Err(format!(
            "no suite's name contains `{}`; there are {}",
            only.unwrap_or(""),
            names.join(", ")
        )
        .into());
    }
    let mut results: Vec<(&str, Duration, Outcome)> = Vec::new();
    for suite in chosen {
        eprintln!("── {}: {}", suite.name, suite.about);
        let start = Instant::now();
        let outcome = (suite.body)(sh);
        results.push((suite.name, start.elapsed(), outcome));
    }
    eprintln!();
    let mut passed = true;
    for (name, time, outcome) in &results {
        let verdict = match outcome {
            Ok(()) => "passed".to_string(),
            Err(error) => format!("FAILED: {error}"),
        };
        passed &= outcome.is_ok();
        eprintln!("{name:<10} {:>7.1} s  {verdict}", time.as_secs_f64());
    }
    Ok(passed)
}

/// Full runs try random programs, plans and mutants many times as often.
fn unit(sh: &Shell, full: bool) -> Outcome {
    let often = [("PROPTEST_CASES", "4096"), ("RCC_MUTANTS", "20000")];
    let _often: Vec<_> =
        often.iter().filter(|_| full).map(|(name, value)| sh.push_env(name, value)).collect();
    // nextest runs each test in a process of its own and all binaries at once; plain cargo does without.
    if cmd!(sh, "cargo nextest --version").quiet().ignore_stderr().ignore_stdout().run().is_ok() {
        ok(cmd!(
            sh,
            "cargo nextest run --workspace --no-fail-fast --status-level slow --final-status-level fail"
        )
        .run())
    } else {
        ok(cmd!(sh, "cargo test -q --workspace --no-fail-fast --all-targets").run())
    }
}

fn matrix(sh: &Shell) -> Outcome {
    let _full = sh.push_env("RCC_TEST_FULL", "1");
    ok(cmd!(sh, "cargo test -q --release -p rcc-cli --test matrix").run())
}

fn layouts(sh: &Shell) -> Outcome {
    let _full = sh.push_env("RCC_TEST_FULL", "1");
    let tests = ["deadlock", "lemmas", "schedules", "broken", "lowered_mutants"];
    let tests = tests.into_iter().flat_map(|test| ["--test", test]);
    ok(cmd!(sh, "cargo test -q --release -p rcc-tests {tests...}").run())
}

/// The unit tests of runtime that Miri can follow, by a part of their names: those that need no shared mapping, no file and no CPU, and end
/// within minutes.
const MIRI: [&str; 6] = [
    "exec::operator",
    "small::buffers",
    "memory::text",
    "comm::meeting",
    "bootstrap::message",
    "bootstrap::secret::",
];

/// Miri is a component of nightly toolchains; where it is not installed this says so.
fn miri(sh: &Shell) -> Outcome {
    if !there(cmd!(sh, "cargo +nightly miri --version")) {
        eprintln!(
            "miri: NOT RUN: `cargo +nightly miri` is not there (rustup component add miri --toolchain nightly)"
        );
        return Ok(());
    }
    let _target = sh.push_env("CARGO_TARGET_DIR", "target/miri");
    // Deadlines look at the clock.
    let _flags = sh.push_env("MIRIFLAGS", "-Zmiri-disable-isolation");
    ok(cmd!(sh, "cargo +nightly miri test -q -p rcc-runtime --lib -- {MIRI...}").run())
}

/// With the sources of the standard library (nightly's `rust-src`) that is instrumented, too. Without, `tsan.supp` names what looks like a race
/// in it, and communicators are left out: they share what a `Mutex` guards, which looks like a race where it is contended. In a
/// target folder of its own, or each other build would begin anew.
fn race(sh: &Shell) -> Outcome {
    let about = cmd!(sh, "rustc -vV").read()?;
    let host =
        about.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc does not tell its host")?;
    if !["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"].contains(&host) {
        return Err(format!("ThreadSanitizer is not there for {host}").into());
    }
    let _flags = sh.push_env("RUSTFLAGS", "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer");
    let of = |tests: &[&'static str]| tests.iter().flat_map(|test| ["--test", *test]).collect::<Vec<_>>();
    let plans = ["threads", "calls", "direct", "small_threads"];
    let communicators = ["comm", "family", "meetings", "wakers", "operators", "aborts"];
    let sysroot = cmd!(sh, "rustc +nightly --print sysroot").quiet().ignore_stderr().read();
    let source = sysroot.map(|root| PathBuf::from(root).join("lib/rustlib/src/rust/library/Cargo.lock"));
    if source.is_ok_and(|source| source.exists()) {
        let _target = sh.push_env("CARGO_TARGET_DIR", "target/tsan-std");
        let tests = of(&[&plans[..], &communicators].concat());
        return ok(cmd!(
            sh,
            "cargo +nightly test -q -Zbuild-std -p rcc-runtime --target {host} {tests...} -- --test-threads=1"
        )
        .run());
    }
    eprintln!(
        "race: NOT RUN: {} (rustup component add rust-src --toolchain nightly)",
        communicators.join(", ")
    );
    let suppressions = sh.current_dir().join("runtime/tests/tsan.supp");
    let _options = sh.push_env("TSAN_OPTIONS", format!("suppressions={}", suppressions.display()));
    let _unstable = sh.push_env("RUSTC_BOOTSTRAP", "1");
    let _target = sh.push_env("CARGO_TARGET_DIR", "target/tsan");
    let tests = of(&plans);
    ok(cmd!(sh, "cargo test -q -p rcc-runtime --target {host} {tests...} -- --test-threads=1").run())
}

/// Whether a command can be run.
fn there(command: xshell::Cmd<'_>) -> bool {
    command.quiet().ignore_stdout().ignore_stderr().run().is_ok()
}

fn docs(sh: &Shell) -> Outcome {
    let _deny = sh.push_env("RUSTDOCFLAGS", "-D warnings");
    cmd!(sh, "cargo doc -q --workspace --no-deps").run()?;
    ok(cmd!(sh, "cargo test -q --workspace --doc").run())
}

fn suite(name: &'static str, about: &'static str, body: impl Fn(&Shell) -> Outcome + 'static) -> Suite {
    Suite { name, about, body: Box::new(body) }
}

fn ok(result: xshell::Result<()>) -> Outcome {
    result.map_err(Into::into)
}
