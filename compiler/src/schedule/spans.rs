//! Origins of a trace to the span table of a plan.
//!
//! In: the trace's origins, the sources. Out: the table, and the id that stands for each origin. A parent always
//! has a smaller id than its children, so that a loaded table is checked in one pass.

use grammar::span::{FileId, Span};
use plan::ids::SpanId;
use plan::plan::{SourceSpan, SpanTable};
use plan::verify::clean_text;

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
