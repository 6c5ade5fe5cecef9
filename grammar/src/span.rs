//! Where a piece of text stands: a file and a byte range in it.
//!
//! In: nothing. Out: `FileId` and `Span`, copied into every node of the tree and carried through every later
//! stage to the last step of a plan, so that an error at run time can still name a line of the `.coll` source.

use std::ops::Range;

/// One source text of a compilation: the user's files and those of the standard library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A byte range `start..end` of one source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The text.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end` of `file`.
    pub fn new(file: FileId, start: usize, end: usize) -> Span {
        Span { file, start: start as u32, end: end as u32 }
    }

    /// The smallest span that covers both; both must lie in one file.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The byte range, to slice the text with.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}
