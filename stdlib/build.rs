//! Lists the standard library's texts: `collectives.coll` and every `<collective>/<algorithm>.coll`.
//!
//! In: this crate's folder. Out: `$OUT_DIR/files.rs`, an array of (name, text) in sorted order, so that a new file
//! needs no list edited and the order of files never depends on the machine.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));

    // Cargo looks at everything in the folder: new, changed and deleted files all build again.
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = coll_files(&root)?;
    for folder in sorted(&root)?.into_iter().filter(|path| path.is_dir()) {
        files.extend(coll_files(&folder)?);
    }

    let mut list = String::from("&[\n");
    for file in files {
        let inside = file.strip_prefix(&root).expect("it was found in this folder");
        let name = inside.components().map(|part| part.as_os_str().to_string_lossy());
        let name = format!("std/{}", name.collect::<Vec<_>>().join("/"));
        writeln!(list, "    ({name:?}, include_str!({:?})),", file.display().to_string())
            .expect("a string has room");
    }
    list.push_str("]\n");
    let unfinished = out.join("files.rs.new");
    File::create(&unfinished)?.write_all(list.as_bytes())?;
    fs::rename(unfinished, out.join("files.rs"))
}

fn coll_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = sorted(folder)?;
    files.retain(|path| path.is_file() && path.extension().is_some_and(|extension| extension == "coll"));
    Ok(files)
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}
