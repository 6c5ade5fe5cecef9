//! Layout of one construct: on one line if it fits, else broken where it may be.
//!
//! In: a [`Doc`]. Out: text. The one hard idea is Wadler's: a group is laid out flat if everything up to the next
//! possible line break behind it fits in the width; otherwise its own breaks become line ends, and the groups
//! inside it are tried in turn.

/// Columns of a line.
pub(super) const WIDTH: usize = 110;
/// Columns of a level of indentation.
pub(super) const INDENT: usize = 4;

/// A text that may be broken into lines.
#[derive(Debug, Clone)]
pub(super) enum Doc {
    /// Never broken.
    Text(String),
    /// Never broken, and known beforehand.
    Word(&'static str),
    /// One after the other.
    Sequence(Vec<Doc>),
    /// Flat as a whole or broken at its own `Line`s and `Soft`s.
    Group(Box<Doc>),
    /// One level further in.
    Nest(Box<Doc>),
    /// A blank, or the end of a line.
    Line,
    /// Nothing, or the end of a line.
    Soft,
    /// A sign that stands only where its group is broken.
    Broken(&'static str),
    /// `// …`: what stands behind it must be a `Line` or `Soft`, and its groups are broken.
    Comment(String),
}

impl Doc {
    /// A group of a sequence.
    pub(super) fn group(parts: Vec<Doc>) -> Doc {
        Doc::Group(Box::new(Doc::Sequence(parts)))
    }

    /// A sequence one level further in.
    pub(super) fn nest(parts: Vec<Doc>) -> Doc {
        Doc::Nest(Box::new(Doc::Sequence(parts)))
    }

    /// On one line, if it has at most `width` bytes.
    pub(super) fn flat(&self, width: usize) -> Option<String> {
        let mut text = String::new();
        self.flat_into(&mut text, width).then_some(text)
    }

    fn flat_into(&self, text: &mut String, width: usize) -> bool {
        match self {
            Doc::Text(part) => text.push_str(part),
            Doc::Word(part) => text.push_str(part),
            Doc::Line => text.push(' '),
            Doc::Soft | Doc::Broken(_) => {}
            Doc::Group(inner) | Doc::Nest(inner) => return inner.flat_into(text, width),
            Doc::Sequence(parts) => return parts.iter().all(|part| part.flat_into(text, width)),
            Doc::Comment(_) => return false,
        }
        text.len() <= width
    }

    /// Appends it to `out`, which ends at `column` of a line that is indented by `indent`; `tail` columns more
    /// follow on the last line.
    pub(super) fn lay_out(&self, out: &mut String, indent: usize, column: usize, tail: usize) {
        let mut column = column;
        let mut todo = vec![(indent, false, self)];
        while let Some((indent, flat, doc)) = todo.pop() {
            match doc {
                Doc::Text(part) => column += push(out, part),
                Doc::Word(part) => column += push(out, part),
                Doc::Sequence(parts) => todo.extend(parts.iter().rev().map(|part| (indent, flat, part))),
                Doc::Nest(inner) => todo.push((indent + INDENT, flat, inner)),
                Doc::Group(inner) => {
                    let flat = flat || fits(inner, &todo, WIDTH.saturating_sub(column), tail);
                    todo.push((indent, flat, inner));
                }
                Doc::Line if flat => column += push(out, " "),
                Doc::Soft if flat => {}
                Doc::Line | Doc::Soft => {
                    out.truncate(out.trim_end_matches(' ').len());
                    out.push('\n');
                    out.extend(std::iter::repeat_n(' ', indent));
                    column = indent;
                }
                Doc::Broken(part) if !flat => column += push(out, part),
                Doc::Broken(_) => {}
                Doc::Comment(text) => column += push(out, text),
            }
        }
    }
}

fn push(out: &mut String, part: &str) -> usize {
    out.push_str(part);
    part.chars().count()
}

/// Whether `doc`, laid out flat, and what follows it up to the next line break fit in `room` columns.
fn fits(doc: &Doc, behind: &[(usize, bool, &Doc)], room: usize, tail: usize) -> bool {
    let mut room = room;
    let mut behind = behind.iter().rev();
    let mut todo = vec![(true, doc)];
    loop {
        let Some((flat, doc)) = todo.pop() else {
            match behind.next() {
                Some(&(_, flat, doc)) => todo.push((flat, doc)),
                None => return tail <= room,
            }
            continue;
        };
        let width = match doc {
            Doc::Text(part) => part.chars().count(),
            Doc::Word(part) => part.len(),
            Doc::Sequence(parts) => {
                todo.extend(parts.iter().rev().map(|part| (flat, part)));
                0
            }
            Doc::Nest(inner) | Doc::Group(inner) => {
                todo.push((flat, inner));
                0
            }
            Doc::Line if flat => 1,
            Doc::Line | Doc::Soft if !flat => return true,
            Doc::Broken(part) if !flat => part.len(),
            // What stands behind may have a comment at its first line end; what is laid out flat may not.
            Doc::Comment(_) => return !flat,
            Doc::Line | Doc::Soft | Doc::Broken(_) => 0,
        };
        if width > room {
            return false;
        }
        room -= width;
    }
}
