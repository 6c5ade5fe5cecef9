//! `check` and `elaborate` against expectations written by hand, and against hostile input.

mod moves;
mod support;
