//! What the end-to-end tests share: an executor of `.coll` programs that is independent of the compiler, and the
//! runner of golden files.

pub mod golden;
pub mod mutate;
pub mod naive;
