//! Diagnostics to text, through miette.
//!
//! In: a [`Diagnostic`], the [`Sources`] that its labels point into, and a [`Style`]. Out: the text, at most a few
//! kilobytes whatever the input. The one hard idea: miette draws one source per diagnostic and shows its lines as
//! they are; so what it is given is an excerpt, a text made here of just the lines to be shown. Lines of several files
//! stand in it side by side, a line of a megabyte is cut to a window around its labels, control characters are
//! replaced, and every label is moved to where its text now stands.

use std::fmt;

use grammar::span::FileId;
use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode,
    SourceSpan, SpanContents, ThemeCharacters, ThemeStyles,
};

use super::{Diagnostic, Severity};
use crate::source::Sources;

/// How to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours.
    pub color: bool,
    /// Columns to wrap at.
    pub width: usize,
    /// Line-drawing characters; if not, ASCII.
    pub unicode: bool,
}

impl Default for Style {
    fn default() -> Style {
        Style { color: false, width: 80, unicode: true }
    }
}

/// Draws a diagnostic: code, title, the lines at fault with their labels, help. Ends with a line feed.
pub fn render(diagnostic: &Diagnostic, sources: &Sources, style: Style) -> String {
    let drawn = Drawn {
        code: diagnostic.code,
        severity: match diagnostic.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        },
        title: legible(&diagnostic.title, 600),
        help: diagnostic.help.as_ref().map(|help| legible(help, 1200)),
        excerpt: Excerpt::new(diagnostic, sources, style),
    };
    let theme = GraphicalTheme {
        characters: if style.unicode { ThemeCharacters::unicode() } else { ThemeCharacters::ascii() },
        styles: if style.color { ThemeStyles::ansi() } else { ThemeStyles::none() },
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(style.width.clamp(40, 400))
        .with_urls(false)
        .with_context_lines(SNIPPET)
        .without_syntax_highlighting();
    let mut text = String::new();
    // Writing to a string cannot fail, and `Excerpt::read_span` answers every label it made.
    let drawn_whole = handler.render_report(&mut text, &drawn).is_ok();
    if !drawn_whole {
        text = format!("{}\n\n  {}\n", drawn.code, drawn.title);
    }
    text.lines().map(|line| line.trim_end().to_string() + "\n").collect()
}

/// What miette asks [`Excerpt::read_span`] for a whole snippet with (lines of context); with 0 it asks for the position of a
/// label, for the header.
const SNIPPET: usize = 1;

/// Labels after this many are left out.
const LABELS: usize = 12;

/// A label over more lines than this is shown by its first line.
const LABEL_LINES: usize = 6;

/// Labels with at most this many lines between them share a snippet.
const GAP_LINES: usize = 2;

/// A line longer than this (or than the terminal is wide) is cut to a window around its labels.
const LINE_CHARS: usize = 120;

/// What miette draws.
#[derive(Debug)]
struct Drawn {
    code: &'static str,
    severity: miette::Severity,
    title: String,
    help: Option<String>,
    excerpt: Excerpt,
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title)
    }
}

impl std::error::Error for Drawn {}

impl miette::Diagnostic for Drawn {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.excerpt)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.excerpt.labels.iter().cloned()))
    }
}

/// The lines to be shown, of all files, one after another, and the labels in them.
#[derive(Debug)]
struct Excerpt {
    text: String,
    lines: Vec<Line>,
    labels: Vec<LabeledSpan>,
}

/// A line of the excerpt.
#[derive(Debug)]
struct Line {
    /// Where it starts in the excerpt.
    start: usize,
    /// Its file, by the order in which files are shown.
    name: String,
    /// Its number there, from 0.
    number: usize,
    /// Whether the line before it in the excerpt is the one before it in the file.
    joined: bool,
    /// Characters cut off at its left, less the mark that stands for them.
    cut: usize,
}

/// A label on whole lines of its file.
struct Placed {
    /// Index among the diagnostic's labels; 0 is the primary one.
    index: usize,
    file: FileId,
    /// Byte range, on character boundaries, within lines `first..=last`.
    start: usize,
    end: usize,
    first: usize,
    last: usize,
}

impl Excerpt {
    fn new(diagnostic: &Diagnostic, sources: &Sources, style: Style) -> Excerpt {
        let mut excerpt = Excerpt { text: String::new(), lines: Vec::new(), labels: Vec::new() };
        let placed: Vec<Placed> = (diagnostic.labels.iter().take(LABELS).enumerate())
            .filter(|(_, label)| (label.span.file.0 as usize) < sources.len())
            .map(|(index, label)| place(index, label.span, sources))
            .collect();
        let mut files: Vec<FileId> = Vec::new();
        for label in &placed {
            if !files.contains(&label.file) {
                files.push(label.file);
            }
        }
        for file in files {
            let here: Vec<&Placed> = placed.iter().filter(|label| label.file == file).collect();
            excerpt.add_file(diagnostic, sources, file, &here, style);
        }
        excerpt
    }

    /// Appends the lines of one file that its labels stand on, and the labels.
    fn add_file(
        &mut self,
        diagnostic: &Diagnostic,
        sources: &Sources,
        file: FileId,
        here: &[&Placed],
        style: Style,
    ) {
        let source = sources.file(file);
        let mut shown: Vec<usize> = here.iter().flat_map(|label| label.first..=label.last).collect();
        shown.sort_unstable();
        shown.dedup();
        let gaps = shown.windows(2).filter(|w| w[1] - w[0] <= GAP_LINES + 1).flat_map(|w| w[0] + 1..w[1]);
        let gaps: Vec<usize> = gaps.collect();
        shown.extend(gaps);
        shown.sort_unstable();

        // Of each label: where it starts and ends in the excerpt.
        let mut moved = vec![(0, 0); here.len()];
        let mut before = None;
        for &number in &shown {
            let range = source.line_range(number);
            let text = source.text[range.clone()].trim_end_matches(['\n', '\r']);
            let line_end = range.start + text.len();
            let of_line = here.iter().filter(|label| (label.first..=label.last).contains(&number));
            let first = of_line.map(|label| label.start.max(range.start).min(line_end) - range.start).min();
            let window = Window::new(text, first.unwrap_or(0), style);
            self.lines.push(Line {
                start: self.text.len(),
                name: legible(&source.name, 200),
                number,
                joined: before.is_some_and(|before: usize| before + 1 == number),
                cut: window.cut,
            });
            before = Some(number);
            for (label, moved) in here.iter().zip(&mut moved) {
                if label.first == number {
                    moved.0 = self.text.len() + window.offset(text, label.start - range.start);
                }
                if label.last == number {
                    moved.1 = self.text.len() + window.offset(text, label.end.min(line_end) - range.start);
                }
            }
            self.text.push_str(&window.text);
            self.text.push('\n');
        }
        for (label, (start, end)) in here.iter().zip(moved) {
            let text = &diagnostic.labels[label.index].text;
            let text = (!text.is_empty()).then(|| legible(text, 200));
            let span = (start, end.max(start) - start);
            self.labels.push(match label.index {
                0 => LabeledSpan::new_primary_with_span(text, span),
                _ => LabeledSpan::new_with_span(text, span),
            });
        }
    }

    /// The excerpt line that an offset stands on.
    fn line_at(&self, offset: usize) -> usize {
        self.lines.partition_point(|line| line.start <= offset).saturating_sub(1)
    }
}

impl SourceCode for Excerpt {
    /// The whole lines of a span (with context 0: just its position). A span over lines that are not neighbours in
    /// one file is refused, and miette then draws two snippets.
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        _after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let (start, end) = (span.offset(), span.offset() + span.len());
        if self.lines.is_empty() || end > self.text.len() {
            return Err(MietteError::OutOfBounds);
        }
        // No label ends past the text of its line, so `end` is on the last line also if nothing before it is there.
        let (first, last) = (self.line_at(start), self.line_at(end));
        if self.lines[first + 1..=last].iter().any(|line| !line.joined) {
            return Err(MietteError::OutOfBounds);
        }
        let line = &self.lines[first];
        let bytes = self.text.as_bytes();
        let (data, column) = if before == 0 {
            (start..end, self.text[line.start..start].chars().count() + line.cut)
        } else {
            (line.start..self.lines.get(last + 1).map_or(bytes.len(), |next| next.start), 0)
        };
        let whole = (data.start, data.len()).into();
        let lines = last - first + 1 + GAP_LINES;
        Ok(Box::new(MietteSpanContents::new_named(
            line.name.clone(),
            &bytes[data],
            whole,
            line.number,
            column,
            lines,
        )))
    }
}

/// A line as shown: cut if it is too long, with nothing in it that a terminal would obey.
struct Window {
    text: String,
    /// The bytes of the line that are shown.
    from: usize,
    to: usize,
    /// Bytes of the mark at the left.
    mark: usize,
    /// See [`Line::cut`].
    cut: usize,
}

impl Window {
    /// The part of `line` around byte `focus`.
    fn new(line: &str, focus: usize, style: Style) -> Window {
        let mark = if style.unicode { "…" } else { "..." };
        let room = LINE_CHARS.max(style.width.min(400));
        let fits = line.char_indices().nth(room).is_none();
        if fits {
            return Window { text: harmless(line), from: 0, to: line.len(), mark: 0, cut: 0 };
        }
        let back = line[..focus].char_indices().rev().nth(room / 4 - 1);
        let from = back.map_or(0, |(at, _)| at);
        let to = line[from..].char_indices().nth(room).map_or(line.len(), |(at, _)| from + at);
        let left = if from > 0 { mark } else { "" };
        let right = if to < line.len() { mark } else { "" };
        let cut = line[..from].chars().count().saturating_sub(left.chars().count());
        Window {
            text: format!("{left}{}{right}", harmless(&line[from..to])),
            from,
            to,
            mark: left.len(),
            cut,
        }
    }

    /// Where byte `at` of the line stands in the window's text.
    fn offset(&self, line: &str, at: usize) -> usize {
        if at > self.to {
            return self.text.len();
        }
        match line.get(self.from..at) {
            Some(before) => self.mark + harmless(before).len(),
            None => 0,
        }
    }
}

/// Clips a label's span to its text, to whole characters, and to few lines.
fn place(index: usize, span: grammar::span::Span, sources: &Sources) -> Placed {
    let source = sources.file(span.file);
    let text = &source.text;
    // What is missing at the end of a file is shown at the end of its last line that has text.
    let end_of_text = text.trim_end().len();
    let mut start = (span.start as usize).min(text.len());
    if start > end_of_text && text[floor(text, start)..].trim().is_empty() {
        start = end_of_text;
    }
    let start = floor(text, start);
    let mut end = ceil(text, (span.end as usize).clamp(start, text.len()));
    if text.get(start..end).is_some_and(|inner| !inner.is_empty() && inner.trim_end().is_empty()) {
        end = start;
    }
    let first = source.line_of(start);
    let mut last = source.line_of(end.max(start + 1) - 1).max(first);
    if last - first >= LABEL_LINES {
        last = first;
        let line = &text[source.line_range(first)];
        end = source.line_range(first).start + line.trim_end().len();
    }
    Placed { index, file: span.file, start, end: end.max(start), first, last }
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// At most `most` characters, none of which a terminal obeys; line feeds stay.
fn legible(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => harmless(&text[..at]) + "…",
        None => harmless(text),
    }
}

/// Replaces what would move the cursor, change colours or reverse the writing direction.
fn harmless(text: &str) -> String {
    let obeyed = |c: char| {
        (c.is_control() && c != '\t' && c != '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if obeyed(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests;
