//! Which sources of a step are entry values: what the inner part of an operator (premulsum: the factor) acts on.
//!
//! In: for each source of a step that folds two or more, whether it is an entry value. Out: a mark in 32 bits. Why there:
//! an entry value is combined for the first time exactly once on its way into a sum, wherever it has travelled before, as
//! it was. Multiplied just there, in the type that the step accumulates in, it is multiplied once and not rounded for it.

use serde::{Deserialize, Serialize};

/// Marks of the sources of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pre(pub u32);

/// From here on all sources have one mark.
const REST: usize = 31;

impl Pre {
    /// No source is marked.
    pub const NONE: Pre = Pre(0);

    /// Marks for sources in order; none if those after the first 31 are not all alike.
    pub fn of(marks: impl IntoIterator<Item = bool>) -> Option<Pre> {
        let mut pre = Pre::NONE;
        for (source, mark) in marks.into_iter().enumerate() {
            if source > REST && pre.has(source) != mark {
                return None;
            }
            pre.0 |= u32::from(mark) << source.min(REST);
        }
        Some(pre)
    }

    /// Whether a source is marked.
    #[inline]
    pub fn has(self, source: usize) -> bool {
        self.0 >> source.min(REST) & 1 == 1
    }

    /// Whether none is.
    #[inline]
    pub fn is_none(self) -> bool {
        self == Pre::NONE
    }

    /// Whether only sources are marked that a step of so many has.
    pub fn is_within(self, sources: usize) -> bool {
        sources > REST || self.0 >> sources == 0
    }
}

#[cfg(test)]
mod tests {
    use super::Pre;

    #[test]
    fn marks_are_kept_where_they_can_be() {
        for count in [0, 1, 2, 30, 31, 32, 33, 100] {
            for marks in [
                vec![true; count],
                vec![false; count],
                (0..count).map(|i| i % 3 == 0).collect(),
                (0..count).map(|i| i < 31 && i % 2 == 1).collect(),
                (0..count).map(|i| i >= 31).collect(),
            ] {
                let pre = Pre::of(marks.iter().copied());
                if count > 32 && marks[31..].iter().any(|mark| *mark != marks[31]) {
                    assert_eq!(pre, None);
                    continue;
                }
                let pre = pre.expect("the last ones are alike");
                assert!((0..count).all(|i| pre.has(i) == marks[i]), "{count}");
                assert!(pre.is_within(count));
                assert_eq!(pre.is_none(), !marks.contains(&true));
            }
        }
        assert!(!Pre(2).is_within(1) && Pre(2).is_within(2));
    }
}
