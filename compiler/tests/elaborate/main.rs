//! `check` and `elaborate` against expectations written by hand, and against hostile input.

mod columns;
mod faults;
mod hostile;
mod moves;
mod properties;
mod runs;
mod scale;
mod shape_faults;
mod support;
mod wording;
