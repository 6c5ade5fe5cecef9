//! Installs the C library: what C programs are built and linked with, in the usual folders.
//!
//! In: a prefix such as `/usr/local`. Out: `lib/librcc.so`, `lib/librcc.a`, `include/rcc.h` and `lib/pkgconfig/rcc.pc` below it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args as ClapArgs;
use xshell::{Shell, cmd};

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Where: its folders `lib` and `include` are made if they are not there.
    #[arg(long)]
    prefix: PathBuf,
    /// The profile that it is built in.
    #[arg(long, default_value = "release")]
    profile: String,
}

/// What a static library of Rust needs besides (`rustc --print native-static-libs`).
const NATIVE: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc";

/// Builds and installs it.
pub(crate) fn run(args: &Args) -> ExitCode {
    match install(args) {
        Ok(files) => {
            files.iter().for_each(|file| println!("{}", file.display()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn install(args: &Args) -> Result<Vec<PathBuf>, Box<dyn std::error::Error>> {
    // The prefix is the caller's: relative to where the caller is.
    let prefix = std::path::absolute(&args.prefix)?;
    let sh = Shell::new()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    sh.change_dir(&root);
    let profile = &args.profile;
    let said = cmd!(sh, "cargo build -p rcc-c --profile {profile} --message-format=json-render-diagnostics");
    let made = made(&said.read()?);
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let packages = lib.join("pkgconfig");
    for folder in [&lib, &include, &packages] {
        fs::create_dir_all(folder)?;
    }
    let mut files = Vec::new();
    let mut put = |from: &Path, to: PathBuf| -> std::io::Result<()> {
        // A new file under the old name: programs that run keep the old one.
        let beside = to.with_extension("new");
        fs::copy(from, &beside)?;
        fs::rename(&beside, &to)?;
        files.push(to);
        Ok(())
    };
    for name in ["librcc.so", "librcc.a"] {
        let found = made.iter().rev().find(|path| path.file_name().is_some_and(|file| file == name));
        put(found.ok_or_else(|| format!("cargo made no {name}"))?, lib.join(name))?;
    }
    put(&root.join("bindings/c/include/rcc.h"), include.join("rcc.h"))?;
    let package = packages.join("rcc.pc");
    fs::write(&package, described(&prefix))?;
    files.push(package);
    Ok(files)
}

/// The files that cargo says it has made.
fn made(said: &str) -> Vec<PathBuf> {
    said.lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|line| line["reason"] == "compiler-artifact")
        .flat_map(|line| line["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|name| name.as_str().map(PathBuf::from))
        .collect()
}

/// What pkg-config reads.
fn described(prefix: &Path) -> String {
    let (prefix, version) = (prefix.display(), env!("CARGO_PKG_VERSION"));
    format!(
        "prefix={prefix}\n\
         libdir=${{prefix}}/lib\n\
         includedir=${{prefix}}/include\n\
         \n\
         Name: rcc\n\
         Description: Collectives for programs: compiled, proved and selected where they run\n\
         Version: {version}\n\
         Cflags: -I${{includedir}}\n\
         Libs: -L${{libdir}} -lrcc\n\
         Libs.private: {NATIVE}\n"
    )
}
