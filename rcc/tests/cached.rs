//! Plans on disk: used again, never trusted, rebuilt where they are damaged or others lie in their place.

#![allow(clippy::disallowed_methods, reason = "damages files")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rcc::cache::Cache;
use rcc::{Communicator, Op, Options, Source};
use sha2::{Digest, Sha256};

const PROGRAM: &str = "collective twice on ranks[n] {\n    in a\n    out b\n    ensures for r in 0..n: b @ r == a @ (r + 1) % n\n}\n\
    algorithm shift on ranks[n] implements twice {\n    for r in 0..n {\n        b @ r = a @ (r + 1) % n\n    }\n}\n";

/// Calls that need three plans, checked.
fn job(folder: &Path) {
    let options = Options { cache: Some(folder.to_path_buf()), ..Options::default() };
    let all = Communicator::threads(3, &options).unwrap();
    std::thread::scope(|scope| {
        for mut comm in all {
            scope.spawn(move || {
                let mut data = vec![comm.rank() as f32; 10_000];
                comm.all_reduce_in_place(&mut data, Op::Sum).unwrap();
                assert_eq!(data, [3.0; 10_000]);
                let mut data = vec![comm.rank() as i32; 10_000];
                comm.broadcast(&mut data, 2).unwrap();
                assert_eq!(data, [2; 10_000]);
                let shift = comm.compile(&Source::new("shift.coll", PROGRAM)).unwrap();
                let (a, mut b) = ([comm.rank() as u8; 500], [9; 500]);
                let arguments = rcc::Arguments::new().send("a", &a).recv("b", &mut b);
                comm.call(shift, Op::Sum, arguments).unwrap();
                assert_eq!(b, [((comm.rank() + 1) % 3) as u8; 500]);
            });
        }
    });
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

fn contents(folder: &Path) -> Vec<Vec<u8>> {
    entries(folder).iter().map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn plans_are_kept_and_used_again() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let (first, names) = (contents(folder.path()), entries(folder.path()));
    assert_eq!(first.len(), 3);
    assert_eq!(Cache::new(folder.path()).contents().unwrap().entries, 3);
    // Read, not written: the files are the same, and only their times move.
    let before: Vec<u64> = names.iter().map(|path| inode(path)).collect();
    let old = SystemTime::now() - std::time::Duration::from_secs(1000);
    names.iter().for_each(|path| fs::File::open(path).unwrap().set_modified(old).unwrap());
    job(folder.path());
    assert_eq!(names.iter().map(|path| inode(path)).collect::<Vec<_>>(), before);
    assert!(names.iter().all(|path| fs::metadata(path).unwrap().modified().unwrap() > old), "all were used");
    assert_eq!(Cache::new(folder.path()).clear().unwrap().entries, 3);
    job(folder.path());
    assert_eq!(contents(folder.path()), first);
}

fn inode(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap())
}

#[test]
fn damaged_and_foreign_entries_are_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let (names, right) = (entries(folder.path()), contents(folder.path()));
    let (head, digest) = (8 + 32, 32);
    let whole =
        |key: &[u8], content: &[u8]| -> Vec<u8> { [key, &Sha256::digest(content)[..], content].concat() };
    let key = |at: usize| &right[at][..head];
    let content = |at: usize| &right[at][head + digest..];
    type Spoil<'a> = &'a dyn Fn(usize) -> Vec<u8>;
    let spoil: [(&str, Spoil<'_>); 6] = [
        ("empty", &|_| Vec::new()),
        ("cut", &|at| right[at][..right[at].len() - 1].to_vec()),
        ("a bit", &|at| {
            let mut bytes = right[at].clone();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            bytes
        }),
        ("another's file", &|at| right[(at + 1) % 3].clone()),
        // As if it had been written so: only what the plan promises can tell.
        ("another's plan under this key", &|at| whole(key(at), content((at + 1) % 3))),
        ("no slots", &|at| whole(key(at), &[&[0; 4], &content(at)[4..]].concat())),
    ];
    for (how, spoilt) in spoil {
        for (at, path) in names.iter().enumerate() {
            fs::write(path, spoilt(at)).unwrap();
        }
        job(folder.path());
        assert_eq!(contents(folder.path()), right, "{how}");
    }
}

/// A plan that is right, of a program of the same name, buffers and world, that does something else: under the key of the program it is
/// not run.
#[test]
fn a_plan_of_another_program_is_rebuilt() {
    let compiled = |folder: &Path, text: &str| {
        let options = Options { cache: Some(folder.to_path_buf()), ..Options::default() };
        let all = Communicator::threads(3, &options).unwrap();
        let text = &Source::new("shift.coll", text);
        std::thread::scope(|scope| {
            let part = |mut comm: Communicator| {
                let shift = comm.compile(text).unwrap();
                let (a, mut b) = ([comm.rank() as u8; 500], [9; 500]);
                let arguments = rcc::Arguments::new().send("a", &a).recv("b", &mut b);
                comm.call(shift, Op::Sum, arguments).unwrap();
                b[7]
            };
            let threads: Vec<_> = all.into_iter().map(|comm| scope.spawn(move || part(comm))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<u8>>()
        })
    };
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let backwards = PROGRAM.replace("(r + 1)", "(r + 2)");
    assert_eq!(compiled(folders[0].path(), PROGRAM), [1, 2, 0]);
    assert_eq!(compiled(folders[1].path(), &backwards), [2, 0, 1]);
    let [right, other] = folders.each_ref().map(|folder| contents(folder.path()).remove(0));
    let content = &other[8 + 32 + 32..];
    let planted = [&right[..8 + 32], &Sha256::digest(content)[..], content].concat();
    fs::write(&entries(folders[0].path())[0], planted).unwrap();
    assert_eq!(compiled(folders[0].path(), PROGRAM), [1, 2, 0]);
    assert_eq!(contents(folders[0].path()), [right]);
}

#[test]
fn a_folder_that_cannot_be_written_costs_nothing_but_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a file");
    fs::write(&file, "not a folder").unwrap();
    job(&file);
    job(&file.join("below"));
    assert_eq!(fs::read(&file).unwrap(), b"not a folder");
}
