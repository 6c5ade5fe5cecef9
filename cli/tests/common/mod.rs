//! The real `rcc`, run and looked at.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a run of `rcc` left.
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Duration,
}

/// `rcc` with its arguments; no terminal, no variables of a launcher.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rcc"));
    command.args(arguments).stdin(Stdio::null()).env("RCC_TUNING", "").env("RCC_CACHE_DIR", "");
    for name in [
        "RCC_LOG",
        "RCC_RANK",
        "RANK",
        "WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
        "PMI_RANK",
        "PMIX_RANK",
        "SLURM_PROCID",
        "NO_COLOR",
    ] {
        command.env_remove(name);
    }
    command
}

/// Runs it.
pub(crate) fn rcc(arguments: &[&str]) -> Ran {
    finish(command(arguments))
}

/// Runs it with at most 1 GiB of address space.
pub(crate) fn confined(arguments: &[&str]) -> Ran {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 1048576; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_rcc")]).args(arguments);
    command.stdin(Stdio::null());
    finish(command)
}

pub(crate) fn finish(mut command: Command) -> Ran {
    let start = Instant::now();
    let output = command.output().expect("rcc starts");
    Ran {
        status: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).expect("output is UTF-8"),
        err: String::from_utf8(output.stderr).expect("messages are UTF-8"),
        took: start.elapsed(),
    }
}

impl Ran {
    /// Asserts the exit status.
    #[track_caller]
    pub(crate) fn ends(self, status: i32) -> Ran {
        assert_eq!(self.status, status, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    /// Asserts that standard error says something.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Ran {
        assert!(self.err.contains(text), "`{text}` is not in:\n{}", self.err);
        self
    }

    /// Asserts that standard output says something.
    #[track_caller]
    pub(crate) fn shows(self, text: &str) -> Ran {
        assert!(self.out.contains(text), "`{text}` is not in:\n{}", self.out);
        self
    }

    /// Standard output as the one JSON document that it is.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}:\n{}", self.out))
    }

    /// Asserts that it was quick (release: 2 seconds; unoptimised builds get more).
    #[track_caller]
    pub(crate) fn soon(self) -> Ran {
        let most = if cfg!(debug_assertions) { Duration::from_secs(10) } else { Duration::from_secs(2) };
        assert!(self.took < most, "took {:?}", self.took);
        self
    }
}

/// A folder of this test.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Writes a file and gives its path as an argument.
pub(crate) fn file(folder: &tempfile::TempDir, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.path().join(name);
    fs::write(&path, content).expect("a writable folder");
    path.to_str().expect("a plain path").to_string()
}

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All `.coll` files of the standard library and the examples.
pub(crate) fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("stdlib"), root().join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a source folder") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "coll") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 20);
    found
}

/// A ring that is right.
pub(crate) const RING: &str = "\
algorithm ring on ranks[n] implements allreduce {
    chunks n
    for c in 0..n, hop in 1..n {
        data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n
    }
    for c in 0..n, hop in 0..n-1 {
        data[c] @ (c + hop + 1) % n = data[c] @ (c + hop) % n
    }
}
";

/// A ring whose last round is missing.
pub(crate) fn broken_ring() -> String {
    RING.replace("0..n-1", "0..n-2")
}
