//! The memory of a job: what ranks share, and what each keeps to itself.
//!
//! In: a plan and a geometry (slots, bytes of a slot). Out: what ranks share whatever they call ([`hall`]), with the memory that
//! peers may reach into ([`registered`]), and the channels of a plan ([`segment`]), reserved and sealed ([`memfd`]), within what the
//! machine has ([`budget`]).

pub mod board;
pub mod budget;
pub mod caches;
pub mod desk;
pub mod futex;
pub mod hall;
pub mod memfd;
pub mod registered;
pub mod segment;
pub mod text;
