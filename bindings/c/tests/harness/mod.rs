//! C programs, built against the library as users build theirs, and run.
//!
//! The library is no part of what a test of this package is linked with, so cargo does not build it for them: the first test that needs it does.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::disallowed_methods, reason = "tests start compilers and programs")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// What C programs and their launchers need.
pub(crate) struct Built {
    /// librcc.so
    pub(crate) shared: PathBuf,
    /// librcc.a
    pub(crate) archive: PathBuf,
    /// The command.
    pub(crate) rcc: PathBuf,
}

/// A program, and how it is built.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) folder: TempDir,
}

/// The same flags everywhere.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];

/// What a static library of Rust needs besides (`rustc --print native-static-libs`).
const NATIVE: [&str; 7] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"];

/// The variables of launchers, which a test run under one would hand on.
const LAUNCHERS: [&str; 8] = [
    "RCC_LOG",
    "RCC_RANK",
    "RCC_WORLD",
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_RANK",
    "SLURM_PROCID",
];

/// The folder of this package.
pub(crate) fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The library and the command, built if they are not yet.
pub(crate) fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "build",
            "-q",
            "-p",
            "rcc-c",
            "-p",
            "rcc-cli",
            "--message-format=json-render-diagnostics",
        ]);
        // In the profile that this test is built in: the folder's name.
        let exe = std::env::current_exe().expect("a test knows its own file");
        if exe.components().any(|part| part.as_os_str() == "release") {
            cargo.arg("--release");
        }
        let output = cargo.current_dir(own("")).stderr(Stdio::inherit()).output().expect("cargo starts");
        assert!(output.status.success(), "cargo could not build the library");
        let text = String::from_utf8(output.stdout).expect("cargo writes text");
        let lines = || text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let made: Vec<PathBuf> = lines()
            .filter(|line| line["reason"] == "compiler-artifact")
            .flat_map(|line| line["filenames"].as_array().cloned().unwrap_or_default())
            .filter_map(|name| name.as_str().map(PathBuf::from))
            .collect();
        let named = |name: &str| {
            let found = made.iter().rev().find(|path| path.file_name().is_some_and(|file| file == name));
            found.unwrap_or_else(|| panic!("cargo made no {name}")).clone()
        };
        Built { shared: named("librcc.so"), archive: named("librcc.a"), rcc: named("rcc") }
    })
}

/// How a program is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Shared,
    Static,
}

/// Builds a program of this package, warnings being errors.
#[track_caller]
pub(crate) fn compile(compiler: &str, standard: &str, source: &str, link: Link) -> Program {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let path = folder.path().join("program");
    let mut cc = Command::new(compiler);
    cc.arg(format!("-std={standard}")).args(STRICT).args(["-g", "-O1", "-pthread"]);
    cc.arg("-I").arg(own("include")).arg(own(source)).arg("-o").arg(&path);
    let Built { shared, archive, .. } = built();
    let beside = shared.parent().expect("a file lies in a folder").display();
    match link {
        Link::Shared => {
            cc.arg(format!("-L{beside}")).arg("-lrcc").arg(format!("-Wl,-rpath,{beside}")).arg("-lm");
        }
        Link::Static => {
            cc.arg(archive).args(NATIVE);
        }
    }
    let output = cc.output().unwrap_or_else(|error| panic!("{compiler} does not start: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{source} does not compile:\n{said}");
    Program { path, folder }
}

/// A command without anything of launchers, tuning or cached plans.
pub(crate) fn clean(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in LAUNCHERS {
        command.env_remove(name);
    }
    command.env("RCC_TUNING", "").env("RCC_CACHE_DIR", "").stdin(Stdio::null());
    command
}

/// `rcc launch -n WORLD -- PROGRAM`
pub(crate) fn launch(world: u32, program: &Path) -> Command {
    let mut command = clean(&built().rcc);
    command.args(["launch", "-n", &world.to_string(), "--"]).arg(program);
    command
}

/// Runs a command, which must succeed; what it printed.
#[track_caller]
pub(crate) fn passes(mut command: Command) -> String {
    let output: Output = command.output().expect("a program starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\nstdout:\n{out}\nstderr:\n{err}", output.status);
    out.into_owned()
}
