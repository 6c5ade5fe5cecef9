//! The contract between rcc's compiler and its executors: per-rank step programs, what they mean, what is checked.
//!
//! In: a [`plan::Plan`], from the compiler or from a file. Out: a `VerifiedPlan`, its meaning (`interpret`), its
//! layout in bytes for given counts (`layout`). Depends on nothing else of rcc, so that a plan can be judged by
//! code that shares nothing with what made it.

pub mod arith;
pub mod builder;
pub mod collective;
pub mod display;
pub mod dtype;
pub mod file;
pub mod float8;
pub mod fold;
pub mod ids;
pub mod interpret;
pub mod join;
pub mod layout;
pub mod plan;
pub mod pre;
mod random;
pub mod reference;
pub mod roll;
pub mod schedule;
pub mod signature;
pub mod values;
pub mod verify;
