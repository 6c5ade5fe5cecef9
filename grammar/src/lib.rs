//! The `.coll` language: text to syntax tree, and back.
//!
//! In: bytes. Out: an [`ast::File`] **and** every syntax error found (never one or the other), or the text in its
//! canonical layout. Knows nothing of ranks, CUDA or IO. The one hard idea: recovery is at item level. A file is
//! cut into items before it is parsed, so an error in one never hides another item or cascades into it.

pub mod ast;
pub mod error;
pub mod span;
