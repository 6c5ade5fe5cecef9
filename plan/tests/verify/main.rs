//! `plan::verify`, rule by rule, against hand-made plans, brute force and garbage.
#[path = "../common/mod.rs"]
mod common;

mod accepted;
mod faults;
