//! Which algorithm serves a call, and why not another.

pub mod table;
