//! Comments on their way back into the text.
//!
//! In: the comments of a file and where its lines began. Out: which of them stand in a byte range and have not been
//! printed yet. Each is printed once, whoever asks for it first.

use super::doc::Doc;
use crate::ast::{Comment, File};

/// The comments of a file, and its lines.
pub(super) struct Comments<'a> {
    list: &'a [Comment],
    printed: Vec<bool>,
    /// All before this one are printed.
    first: usize,
    lines: &'a [u32],
}

impl<'a> Comments<'a> {
    pub(super) fn new(file: &'a File) -> Comments<'a> {
        Comments {
            list: &file.comments,
            printed: vec![false; file.comments.len()],
            first: 0,
            lines: &file.lines,
        }
    }

    /// Those that begin in `from..to` and are not printed yet; they are now.
    pub(super) fn take(&mut self, from: u32, to: u32) -> Vec<&'a Comment> {
        while self.printed.get(self.first) == Some(&true) {
            self.first += 1;
        }
        let start = self.list.partition_point(|comment| comment.span.start < from).max(self.first);
        let mut taken = Vec::new();
        for (comment, printed) in self.list.iter().zip(&mut self.printed).skip(start) {
            if comment.span.start >= to {
                break;
            }
            if !std::mem::replace(printed, true) {
                taken.push(comment);
            }
        }
        taken
    }

    /// The first in `from..to`, if it stands behind something on its line.
    pub(super) fn take_trailing(&mut self, from: u32, to: u32) -> Option<&'a Comment> {
        let start = self.list.partition_point(|comment| comment.span.start < from);
        let (comment, printed) = self.list.get(start).zip(self.printed.get_mut(start))?;
        if comment.span.start >= to || comment.own_line || *printed {
            return None;
        }
        *printed = true;
        Some(comment)
    }

    /// Whether any begins in `from..to`, printed or not.
    pub(super) fn any(&self, from: u32, to: u32) -> bool {
        let start = self.list.partition_point(|comment| comment.span.start < from);
        self.list.get(start).is_some_and(|comment| comment.span.start < to)
    }

    /// How many lines begin behind `from` up to `to`.
    pub(super) fn lines_between(&self, from: u32, to: u32) -> usize {
        let upto = self.lines.partition_point(|&line| line <= to);
        upto.saturating_sub(self.lines.partition_point(|&line| line <= from))
    }

    /// The comments in `from..to`, for the gap between two elements of a list: each ends its line.
    pub(super) fn gap(&mut self, from: u32, to: u32) -> Vec<Doc> {
        let mut parts = Vec::new();
        for (index, comment) in self.take(from, to).into_iter().enumerate() {
            parts.push(if comment.own_line || index > 0 { Doc::Line } else { Doc::Word(" ") });
            parts.push(Doc::Comment(text(comment)));
        }
        parts
    }
}

/// A comment as it is written.
pub(super) fn text(comment: &Comment) -> String {
    format!("//{}", comment.text)
}
