//! What a plan costs: counted, bounded, and run against a clock.
//!
//! In: a verified plan, a promise, a machine. Out: plain numbers; nothing here decides what a plan means.
//!
//! - [`count`]: steps, messages, bytes, rounds, without a machine.
//! - [`bound`]: the least that any algorithm for the promise could do, in blocks, and on a machine in seconds.
//! - [`topology`]: machines, built in or from a text.
//! - `program`, `work`, `simulate`: a plan followed event by event, with ports and cores that are shared.
//! - [`estimate`]: the time of a call, its geometry chosen where it is not given; `path`: what the time is spent on.
//!
//! docs/cost.md says what the model knows and what it does not, and where its numbers come from.

pub mod bound;
pub mod count;
pub mod estimate;
mod path;
mod program;
mod simulate;
pub mod topology;
mod work;

pub use path::{Leg, Path};
pub use program::Program;
pub use simulate::Call;
