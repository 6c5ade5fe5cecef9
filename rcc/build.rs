//! What tells one compiler from another: a digest of its sources.
//!
//! In: the source files of all that a plan depends on. Out: `RCC_COMPILER`, which goes into the key of every cached plan: a plan that
//! another compiler made is none of this one's.

#![allow(clippy::disallowed_methods, reason = "reads the source tree at build time")]

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let mut files = Vec::new();
    for folder in ["../grammar/src", "../plan/src", "../compiler/src", "../runtime/src", "../stdlib", "src"] {
        println!("cargo::rerun-if-changed={folder}");
        list(Path::new(folder), &mut files);
    }
    files.sort();
    let mut hashes = [0xcbf2_9ce4_8422_2325u64, 0x6c62_272e_07bb_0142];
    for path in files {
        let bytes = fs::read(&path).unwrap_or_else(|why| panic!("cannot read {}: {why}", path.display()));
        for byte in path.to_string_lossy().bytes().chain([0]).chain(bytes) {
            hashes[0] = (hashes[0] ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            hashes[1] = hashes[1].wrapping_mul(0x100_0000_01b3) ^ u64::from(byte);
        }
    }
    println!("cargo::rustc-env=RCC_COMPILER={:016x}{:016x}", hashes[0], hashes[1]);
}

/// All files below a folder.
fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    let refused = |why| panic!("cannot read {}: {why}", folder.display());
    for entry in fs::read_dir(folder).unwrap_or_else(refused) {
        let path = entry.unwrap_or_else(|why| panic!("cannot read {}: {why}", folder.display())).path();
        if path.is_dir() { list(&path, files) } else { files.push(path) }
    }
}
