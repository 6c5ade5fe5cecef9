//! World shapes: level sizes, outermost first.
//!
//! In: a shape. Out: how many ranks it has, and how people write it.

/// Level sizes of a world, outermost first.
pub type Shape = Vec<u32>;

/// The number of ranks of a shape, if it can be told.
pub fn counted(shape: &[u32]) -> Option<u32> {
    shape.iter().try_fold(1u32, |ranks, &level| ranks.checked_mul(level))
}

/// The number of ranks of a shape that has been counted.
pub fn ranks(shape: &[u32]) -> u32 {
    shape.iter().product()
}

/// `8`, `4x8`.
pub fn show(shape: &[u32]) -> String {
    shape.iter().map(u32::to_string).collect::<Vec<_>>().join("x")
}

/// `8 ranks`, `4x8 ranks`, `1 rank`.
pub fn show_ranks(shape: &[u32]) -> String {
    format!("{} {}", show(shape), if ranks(shape) == 1 { "rank" } else { "ranks" })
}
