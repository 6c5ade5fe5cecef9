//! The program that embeds rcc runs under every launcher: `rcc launch`, torchrun's variables, Open MPI's mpirun.

#![allow(clippy::disallowed_methods, reason = "tests start programs in folders of their own")]

mod common;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::{command, finish, folder, rcc};

/// The example, which is built beside the tests.
fn example() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let built = own.parent().and_then(Path::parent).unwrap().join("examples/embed");
    assert!(built.exists(), "{} is not built: build all targets of this package", built.display());
    built
}

fn says_pi(out: &str, world: u32) {
    assert_eq!(out, format!("pi is 3.1415926536, say {world} ranks\n"));
}

#[test]
fn under_rcc_launch() {
    let folder = folder();
    let plans = folder.path().join("plans");
    for world in [1, 4, 4] {
        let example = example();
        let mut launch = command(&["launch", "-n", &world.to_string(), "--", example.to_str().unwrap()]);
        launch.env("RCC_CACHE_DIR", &plans).env("RCC_TUNING", "").env("RCC_LOG", "rcc::select=debug");
        let ran = finish(launch).ends(0);
        says_pi(&ran.out, world);
        // Rank 0 alone selects: once, of whatever it was asked for.
        assert_eq!(ran.err.matches("collective=\"allreduce\"").count(), 1, "{}", ran.err);
    }
    // One for each world and each plan that is not a small call's.
    assert_eq!(std::fs::read_dir(&plans).unwrap().count(), 4);
}

#[test]
fn with_torchruns_variables() {
    let folder = folder();
    let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = theirs.local_addr().unwrap().port().to_string();
    let run = format!("embedding, {}", std::process::id());
    let start = |rank: u32| -> Child {
        let mut command = Command::new(example());
        command.envs([("RANK", rank.to_string()), ("LOCAL_RANK", rank.to_string())]);
        command.envs([("WORLD_SIZE", "4"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &port)]);
        command.envs([
            ("TORCHELASTIC_RUN_ID", run.as_str()),
            ("RCC_SECRET", "of this test"),
            ("RCC_TUNING", ""),
        ]);
        command.env("RCC_CACHE_DIR", folder.path()).env_remove("RCC_RANK");
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    for (rank, child) in [0, 1, 2, 3].map(start).into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "rank {rank}");
        let out = String::from_utf8(output.stdout).unwrap();
        if rank == 0 { says_pi(&out, 4) } else { assert_eq!(out, "") }
    }
}

/// Where Open MPI is installed.
#[test]
fn under_mpirun() {
    let version = Command::new("mpirun").arg("--version").output();
    if !version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("Open MPI")) {
        eprintln!("left out: there is no mpirun of Open MPI");
        return;
    }
    let folder = folder();
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "-n", "4"]).arg(example()).env("RCC_SECRET", "of this test");
    command.envs([
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("RCC_TUNING", ""),
    ]);
    command.env("RCC_CACHE_DIR", folder.path()).env_remove("RCC_RANK");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    says_pi(&String::from_utf8(output.stdout).unwrap(), 4);
}

#[test]
fn a_log_that_makes_no_sense_is_refused() {
    let mut check = command(&["check", "std::barrier"]);
    check.env("RCC_LOG", "rcc::call=loud");
    finish(check).ends(2).says("RCC_LOG=rcc::call=loud makes no sense");
    rcc(&["check", "std::barrier"]).ends(0);
}
