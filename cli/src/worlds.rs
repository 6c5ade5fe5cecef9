//! Which world shapes an algorithm is proved for.
//!
//! In: an algorithm's levels, the shapes asked for. Out: those that fit it, each once, and what was left out and why. What a
//! request takes otherwise, `rcc::request` knows.

use crate::shape::{self, Shape};

/// A shape that an algorithm cannot run on, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// The shape as asked for.
    pub(crate) shape: Shape,
    /// Why.
    pub(crate) why: String,
}

/// The shapes for an algorithm of `levels` levels, each once, and those that do not fit it.
pub(crate) fn shapes(levels: usize, asked: &[Shape]) -> (Vec<Shape>, Vec<Skipped>) {
    if asked.is_empty() {
        return (defaults(levels), Vec::new());
    }
    let mut fitting: Vec<Shape> = Vec::new();
    let mut skipped = Vec::new();
    for shape in asked {
        let fitted = match levels {
            1 => Some(vec![shape::ranks(shape)]),
            _ if shape.len() == levels => Some(shape.clone()),
            _ => None,
        };
        match fitted {
            Some(shape) if fitting.contains(&shape) => {}
            Some(shape) => fitting.push(shape),
            None => skipped
                .push(Skipped { shape: shape.clone(), why: format!("runs on worlds of {levels} levels") }),
        }
    }
    (fitting, skipped)
}

/// What an algorithm is proved for if nothing is asked: 2..16; for several levels, small worlds of unlike levels.
fn defaults(levels: usize) -> Vec<Shape> {
    let alternating = |a: u32, b: u32| (0..levels).map(|level| if level % 2 == 0 { a } else { b }).collect();
    match levels {
        1 => (2..=16).map(|n| vec![n]).collect(),
        2 => vec![vec![1, 1], vec![2, 2], vec![2, 3], vec![3, 2], vec![4, 4]],
        _ => vec![alternating(1, 1), alternating(2, 2), alternating(2, 3), alternating(3, 2)],
    }
}
