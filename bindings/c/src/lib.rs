//! rcc for C: what `rcc.h` declares.
//!
//! In: handles, pointers, numbers, as C has them. Out: calls of the crate `rcc`, of which this is a thin skin: everything handed in
//! is looked at first, every error becomes a status with a text, no panic gets out. The one hard idea is in `handle`: handles are
//! looked up, never followed.
//!
//! | file | what |
//! |---|---|
//! | `status` | how calls end; where panics end |
//! | `handle` | handles: tables of values |
//! | `values` | types, operators and collectives by their numbers |
//! | `strings` | pointers, looked at before they are used |
//! | `options`, `comm`, `memory` | communicators, and what belongs to them |
//! | `functions` | what makes calls |
//! | `calls` | the collectives, at once, started, or as a group |
//! | `request` | calls under way |
//! | `operator` | operators that are made |
//! | `algorithm` | a user's own algorithms |
//! | `version` | versions, the log |
//!
//! The header is made of this source by cbindgen (`cargo xtask header`); doc comments of what is public are its comments, so they
//! speak of C.

#![allow(non_camel_case_types, reason = "names of C")]
#![allow(clippy::disallowed_methods, reason = "programs are files")]

pub mod algorithm;
pub mod calls;
pub mod comm;
pub mod functions;
mod handle;
pub mod memory;
pub mod operator;
pub mod options;
pub mod request;
pub mod status;
mod strings;
pub mod values;
pub mod version;
