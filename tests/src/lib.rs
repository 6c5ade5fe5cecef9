//! What the end-to-end tests share: an executor of `.coll` programs that is independent of the compiler, the runner of
//! golden files, an executor of plans without data, counts of what is wasted in a plan, random layouts and schedules.

pub mod draw;
pub mod golden;
pub mod layouts;
pub mod library;
pub mod mutate;
pub mod naive;
pub mod oracle;
pub mod pace;
pub mod pairs;
pub mod programs;
pub mod schedules;
pub mod waste;
