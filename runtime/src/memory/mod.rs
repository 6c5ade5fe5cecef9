//! The memory of a job: what ranks share, and what each keeps to itself.
//!
//! In: a plan and a geometry (slots, bytes of a slot). Out: one shared segment with the board, all channels and the
//! memory that peers may reach into ([`segment`], [`registered`]), reserved and sealed ([`memfd`]), within what the
//! machine has ([`budget`]).

pub mod board;
pub mod budget;
pub mod futex;
pub mod memfd;
pub mod registered;
pub mod segment;
pub mod text;
