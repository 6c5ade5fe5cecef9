//! Collectives for programs that embed rcc: compiled, proved and selected where they run.
//!
//! In: ranks (`runtime::comm`), typed buffers; or a `.coll` text, or a plan file. Out: calls whose plans are selected by the
//! collective, the number of ranks, the size and the machine, compiled from the standard library when they are needed first, and
//! cached.

#![allow(
    clippy::disallowed_methods,
    reason = "the cache is files, the environment is read by `Settings::from_env`"
)]

pub mod collective;
pub mod convention;
pub mod machine;
pub mod make;
pub mod request;
pub mod select;
pub mod world;
