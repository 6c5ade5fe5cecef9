//! The source texts of a compilation, by `FileId`.
//!
//! In: names and bytes of the user's files. Out: texts, lines and columns. Bytes that are not UTF-8 are replaced
//! for display and reported by `grammar::parse`.

use grammar::span::{FileId, Span};

/// One source text.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// As the user named it; `std/<collective>/<algorithm>.coll` for the standard library.
    pub name: String,
    /// The text.
    pub text: String,
    /// Byte offset of the first byte of each line.
    lines: Vec<u32>,
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl SourceFile {
    /// The line (from 0) that a byte stands on.
    pub fn line_of(&self, byte: usize) -> usize {
        self.lines.partition_point(|&start| start as usize <= byte).max(1) - 1
    }

    /// The bytes of a line (from 0), its line feed included; empty past the last one.
    pub fn line_range(&self, line: usize) -> std::ops::Range<usize> {
        let at = |line: usize| self.lines.get(line).map_or(self.text.len(), |&start| start as usize);
        at(line)..at(line + 1)
    }
}

impl Sources {
    /// Adds a text and gives it its id.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let ends = text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| i as u32 + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        self.files.push(SourceFile { name: name.into(), text, lines });
        FileId((self.files.len() - 1) as u32)
    }

    /// The text of an id.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// All of them, with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files.iter().enumerate().map(|(id, file)| (FileId(id as u32), file))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The text that a span covers.
    pub fn snippet(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.range()).unwrap_or("")
    }

    /// Line and column (in characters) of a span's start, both from 1.
    pub fn line_column(&self, span: Span) -> (u32, u32) {
        let file = self.file(span.file);
        let line = file.lines.partition_point(|&start| start <= span.start).max(1) - 1;
        let start = file.lines[line] as usize;
        let before = file.text.get(start..span.start as usize).unwrap_or("");
        (line as u32 + 1, before.chars().count() as u32 + 1)
    }
}
