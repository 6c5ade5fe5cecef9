//! Origins of a trace to the span table of a plan, and back from a line of it.
//!
//! In: the trace's origins, the sources. Out: the table, and the id that stands for each origin. A parent always
//! has a smaller id than its children, so that a loaded table is checked in one pass.

use grammar::span::{FileId, Span};
use plan::ids::SpanId;
use plan::plan::{SourceSpan, SpanTable};
use plan::verify::{Line, clean_text};

use crate::source::Sources;
use crate::trace::{OriginId, Trace};

/// The longest text kept of a move.
const TEXT_CHARS: usize = 120;

/// The span table, and what it holds for whom.
pub(crate) struct Spans {
    pub(crate) table: SpanTable,
    /// The span of each origin.
    pub(crate) of_origin: Vec<SpanId>,
    /// The span of the `implements` clause: steps that no move asks for.
    pub(crate) implements: SpanId,
}

/// Interns the origins of a trace.
pub(crate) fn intern(trace: &Trace, sources: &Sources) -> Spans {
    let mut table = SpanTable::default();
    let mut files = Vec::new();
    let mut of_origin: Vec<Option<SpanId>> = vec![None; trace.origins.len()];
    for index in 0..trace.origins.len() {
        // Parents first: climb to the nearest known one, then come back down.
        let mut chain = Vec::new();
        let mut next = Some(OriginId(index as u32));
        while let Some(origin) = next.filter(|o| of_origin[o.0 as usize].is_none()) {
            chain.push(origin);
            next = trace.origins[origin.0 as usize].parent;
        }
        while let Some(origin) = chain.pop() {
            let data = trace.origins[origin.0 as usize];
            let parent = data.parent.and_then(|p| of_origin[p.0 as usize]);
            of_origin[origin.0 as usize] = Some(add(&mut table, &mut files, data.span, parent, sources));
        }
    }
    let implements = add(&mut table, &mut files, trace.implements, None, sources);
    Spans { table, of_origin: of_origin.into_iter().flatten().collect(), implements }
}

/// Where a line of a span table stands, which tells no more than where it begins and its first line. None if no source has it.
pub(crate) fn find(line: &Line, sources: &Sources) -> Option<Span> {
    let kept = line.text.trim_end_matches('…');
    sources.iter().filter(|(_, file)| clean_text(&file.name, TEXT_CHARS) == line.file).find_map(
        |(id, file)| {
            let range = file.line_range(line.line.checked_sub(1)? as usize);
            let (at, _) =
                file.text.get(range.clone())?.char_indices().nth(line.column.checked_sub(1)? as usize)?;
            let rest = file.text[range.start + at..range.end].trim_end();
            let len = rest.char_indices().nth(kept.chars().count()).map_or(rest.len(), |(end, _)| end);
            // Two files may have one name.
            let same = len > 0 && clean_text(&rest[..len], TEXT_CHARS) == kept.trim_end();
            same.then(|| Span::new(id, range.start + at, range.start + at + len))
        },
    )
}

fn add(
    table: &mut SpanTable,
    files: &mut Vec<FileId>,
    span: Span,
    parent: Option<SpanId>,
    sources: &Sources,
) -> SpanId {
    let file = files.iter().position(|&f| f == span.file).unwrap_or_else(|| {
        files.push(span.file);
        table.files.push(clean_text(&sources.file(span.file).name, TEXT_CHARS));
        files.len() - 1
    });
    let (line, column) = sources.line_column(span);
    let text = clean_text(sources.snippet(span).lines().next().unwrap_or(""), TEXT_CHARS);
    table.spans.push(SourceSpan { file: file as u32, line, column, text, parent });
    SpanId::new(table.spans.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_table_leads_back_to_its_text() {
        let long = format!("data[{}] @ 1 = data @ 0", "0 + ".repeat(60) + "0");
        let text = format!("// ä\n  ö = 1\n\t{long}\n    run ring on *\n        with data = data\n");
        let mut sources = Sources::default();
        sources.add("a.coll", "something else\n");
        let file = sources.add("a.coll", text.clone());
        let span = |part: &str| {
            let start = text.find(part).expect("a part of the text");
            Span::new(file, start, start + part.len())
        };
        let whole = "run ring on *\n        with data = data";
        for (of, first) in
            [(span("ö = 1"), "ö = 1"), (span(&long), &long[..119]), (span(whole), "run ring on *")]
        {
            let (mut table, mut files) = (SpanTable::default(), Vec::new());
            add(&mut table, &mut files, of, None, &sources);
            let SourceSpan { line, column, text, .. } = table.spans[0].clone();
            let line = Line { file: table.files[0].clone(), line, column, text };
            let found = find(&line, &sources).expect("it is there");
            assert_eq!((found.start, sources.snippet(found)), (of.start, first));
            for wrong in [
                Line { line: 99, ..line.clone() },
                Line { line: 0, ..line.clone() },
                Line { column: 0, ..line.clone() },
                Line { column: 999, ..line.clone() },
                Line { column: line.column + 1, ..line.clone() },
                Line { file: "b.coll".to_string(), ..line.clone() },
                Line { text: String::new(), ..line.clone() },
            ] {
                assert_eq!(find(&wrong, &sources), None, "{wrong:?}");
            }
        }
    }
}
