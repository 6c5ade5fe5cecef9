//! Texts to programs and traces, and moves as one line each, for comparing with what the language says by hand.

use grammar::ParseLimits;
use rcc_compiler::check::checked::Program;
use rcc_compiler::check::{self, Unit};
use rcc_compiler::elaborate::{self, Elaborated, Request};
use rcc_compiler::limits::Limits;
use rcc_compiler::source::Sources;
use rcc_compiler::trace::{MoveKind, Params, Place, Trace};

/// The user's text and the standard library, checked.
pub(crate) struct Checked {
    pub sources: Sources,
    pub program: Program,
    pub errors: Vec<check::Error>,
}

/// Checks `text` beside the standard library.
pub(crate) fn check(text: &str) -> Checked {
    check_with(&[text], stdlib::FILES)
}

/// Checks texts of a user beside standard ones.
pub(crate) fn check_with(texts: &[&str], standard: &[(&str, &str)]) -> Checked {
    let mut sources = Sources::default();
    let mut files = Vec::new();
    for (i, text) in texts.iter().enumerate() {
        files.push((sources.add(format!("test{i}.coll"), *text), None, *text));
    }
    for (name, text) in standard {
        let module = stdlib::module(name).unwrap_or("");
        files.push((sources.add(*name, *text), Some(module), *text));
    }
    let trees: Vec<_> =
        files.iter().map(|(id, _, text)| grammar::parse(*id, text, &ParseLimits::default())).collect();
    for tree in &trees {
        assert!(tree.errors.is_empty(), "syntax errors in a test's text: {:?}", tree.errors);
    }
    let units: Vec<Unit<'_>> = files
        .iter()
        .zip(&trees)
        .map(|(&(file, module, _), tree)| Unit { file, module, ast: &tree.file })
        .collect();
    let (program, errors) = check::check(&units);
    Checked { sources, program, errors }
}

/// Elaborates the algorithm `x` (or the only one) of a text that has no errors.
pub(crate) fn elaborate(
    text: &str,
    shape: &[u32],
    params: &[(&str, i64)],
) -> Result<Elaborated, elaborate::Error> {
    let checked = check(text);
    assert!(checked.errors.is_empty(), "{:?}", shown(&checked));
    elaborate_checked(&checked, shape, params, &Limits::default())
}

/// Elaborates the algorithm `x`, or the first one.
pub(crate) fn elaborate_checked(
    checked: &Checked,
    shape: &[u32],
    params: &[(&str, i64)],
    limits: &Limits,
) -> Result<Elaborated, elaborate::Error> {
    elaborate::elaborate(&checked.program, &request(checked, shape, params), limits)
}

/// What [`elaborate_checked`] asks for.
pub(crate) fn request(checked: &Checked, shape: &[u32], params: &[(&str, i64)]) -> Request {
    let algorithm = checked.program.find("x").or_else(|| checked.program.algorithms().next());
    let params: Params = params.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    Request { algorithm: algorithm.expect("an algorithm"), shape: shape.to_vec(), params }
}

/// Code and text at fault of each error.
pub(crate) fn shown(checked: &Checked) -> Vec<(String, String)> {
    checked
        .errors
        .iter()
        .map(|error| (error.kind.code().to_owned(), checked.sources.snippet(error.span).to_owned()))
        .collect()
}

/// Each move as text: `data[2..4] @ 1 += data[2..4] @ 0 'step`; indices count cells through all blocks.
pub(crate) fn moves(trace: &Trace) -> Vec<String> {
    trace
        .moves
        .iter()
        .map(|mv| {
            let sources: Vec<String> = trace.sources(mv).iter().map(|&p| place(trace, p, mv.width)).collect();
            let to = place(trace, mv.to, mv.width);
            let step = if mv.step == 0 { String::new() } else { format!(" '{}", mv.step) };
            let sources = sources.join(", ");
            match mv.kind {
                MoveKind::Copy => format!("{to} = {sources}{step}"),
                MoveKind::Multicast => format!("{to} *= {sources}{step}"),
                MoveKind::Combine => format!("{to} += {sources}{step}"),
                MoveKind::Reduce => format!("{to} = reduce({sources}){step}"),
                MoveKind::GatherReduce => format!("{to} = gather({sources}){step}"),
            }
        })
        .collect()
}

fn place(trace: &Trace, place: Place, width: u32) -> String {
    let name = &trace.buffer(place).name;
    let rank = place.rank.0;
    match width {
        1 => format!("{name}[{}] @ {rank}", place.cell),
        _ => format!("{name}[{}..{}] @ {rank}", place.cell, place.cell + width),
    }
}

/// A collective that promises nothing in particular of one `inout` buffer.
pub(crate) const ANY: &str =
    "collective any on ranks[n] { inout data ensures for r in 0..0: data @ r == data @ r }";
