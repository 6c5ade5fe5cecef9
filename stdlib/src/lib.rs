//! The standard library as text: what the standard collectives promise, and algorithms for them.
//!
//! In: the `.coll` files beside this crate, found when it is built. Out: [`FILES`], which the compiler parses and
//! checks like any user's file; nothing in it is trusted. The one hard idea is the naming: the main algorithm of
//! `allreduce/ring.coll` is called `ring`, and `std::allreduce::ring` from anywhere else.

/// All texts by name, sorted: `std/collectives.coll`, then `std/<collective>/<algorithm>.coll`.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The collective whose folder a file lies in: `Some("allreduce")` for `std/allreduce/ring.coll`, and none for
/// `std/collectives.coll` and names that are not of [`FILES`]' form.
pub fn module(name: &str) -> Option<&str> {
    let (folder, _) = name.strip_prefix("std/")?.split_once('/')?;
    Some(folder)
}

/// The name of a file's main algorithm: `Some("ring")` for `std/allreduce/ring.coll`; none where [`module`] is none.
pub fn algorithm(name: &str) -> Option<&str> {
    let (_, file) = name.strip_prefix("std/")?.split_once('/')?;
    file.strip_suffix(".coll")
}
