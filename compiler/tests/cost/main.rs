//! The cost model from outside: counts, bounds, topologies, and the standard algorithms on machines.

mod count;
mod hostile;
mod machines;
mod topologies;
