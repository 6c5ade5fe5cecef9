//! The example in C runs under every launcher: `rcc launch`, torchrun's variables, Open MPI's mpirun.

#![allow(clippy::disallowed_methods, reason = "tests start programs")]

mod harness;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use harness::{Link, Program, clean, compile, launch, passes};

const EXAMPLE: &str = "examples/allreduce.c";

fn says_pi(out: &str, world: u32) {
    assert_eq!(out, format!("pi is 3.1415926536, say {world} ranks\n"));
}

#[test]
fn under_rcc_launch() {
    let Program { path, folder } = compile("cc", "c11", EXAMPLE, Link::Shared);
    let plans = folder.path().join("plans");
    // The third time with the plans of the second.
    for world in [1, 4, 4] {
        let mut launch = launch(world, &path);
        launch.env("RCC_CACHE_DIR", &plans);
        says_pi(&passes(launch), world);
    }
    assert!(std::fs::read_dir(&plans).unwrap().count() > 0);
}

/// The log is for those who ask for it.
#[test]
fn nothing_is_printed_unless_the_log_is_asked_for() {
    let Program { path, folder } = compile("cc", "c11", EXAMPLE, Link::Shared);
    let said = |log: &str| {
        // The command would heed it, too.
        let mut launch = launch(2, Path::new("env"));
        let output = launch.arg(format!("RCC_LOG={log}")).arg(&path).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(said(""), (true, String::new()));
    let (well, selected) = said("rcc::select=debug");
    assert!(well && selected.contains("collective=\"allreduce\""), "{selected}");
    let (well, refused) = said("rcc::select=loud");
    assert!(
        !well && refused.contains("RCC_ERROR_INVALID: RCC_LOG=rcc::select=loud makes no sense"),
        "{refused}"
    );
    drop(folder);
}

#[test]
fn linked_with_the_archive() {
    let Program { path, folder } = compile("cc", "c11", EXAMPLE, Link::Static);
    says_pi(&passes(launch(2, &path)), 2);
    drop(folder);
}

/// As `cargo xtask library` installs it, and pkg-config, where that is, finds it.
#[test]
fn installed() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("below/here");
    let mut install = clean(env!("CARGO"));
    install.args(["xtask", "library", "--profile", "dev", "--prefix"]).arg(&prefix);
    let said = passes(install);
    for file in ["lib/librcc.so", "lib/librcc.a", "include/rcc.h", "lib/pkgconfig/rcc.pc"] {
        assert!(prefix.join(file).exists() && said.contains(file), "{file}: {said}");
    }
    let lib = prefix.join("lib");
    let mut flags = vec![
        format!("-I{}", prefix.join("include").display()),
        format!("-L{}", lib.display()),
        "-lrcc".to_string(),
    ];
    let mut config = Command::new("pkg-config");
    config.args(["--cflags", "--libs", "rcc"]).env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
    match config.output() {
        Ok(found) => {
            let found = String::from_utf8(found.stdout).unwrap();
            assert_eq!(found.split_whitespace().collect::<Vec<_>>(), flags);
        }
        Err(_) => eprintln!("not asked: there is no pkg-config"),
    }
    flags.push(format!("-Wl,-rpath,{}", lib.display()));
    let program = folder.path().join("program");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-o"]).arg(&program).arg(harness::own(EXAMPLE)).args(&flags);
    passes(cc);
    says_pi(&passes(launch(2, &program)), 2);
}

#[test]
fn with_torchruns_variables() {
    let Program { path, folder } = compile("cc", "c11", EXAMPLE, Link::Shared);
    let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = theirs.local_addr().unwrap().port().to_string();
    let run = format!("embedding C, {}", std::process::id());
    let start = |rank: u32| -> Child {
        let mut command = clean(&path);
        command.envs([("RANK", rank.to_string()), ("LOCAL_RANK", rank.to_string())]);
        command.envs([("WORLD_SIZE", "4"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &port)]);
        command.envs([("TORCHELASTIC_RUN_ID", run.as_str()), ("RCC_SECRET", "of this test")]);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    for (rank, child) in [0, 1, 2, 3].map(start).into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "rank {rank}");
        let out = String::from_utf8(output.stdout).unwrap();
        if rank == 0 { says_pi(&out, 4) } else { assert_eq!(out, "") }
    }
    drop(folder);
}

/// Where Open MPI is installed.
#[test]
fn under_mpirun() {
    let version = Command::new("mpirun").arg("--version").output();
    if !version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("Open MPI")) {
        eprintln!("left out: there is no mpirun of Open MPI");
        return;
    }
    let Program { path, folder } = compile("cc", "c11", EXAMPLE, Link::Shared);
    let mut mpirun = clean("mpirun");
    mpirun.args(["--oversubscribe", "-n", "4"]).arg(&path).env("RCC_SECRET", "of this test");
    mpirun.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    says_pi(&passes(mpirun), 4);
    drop(folder);
}
