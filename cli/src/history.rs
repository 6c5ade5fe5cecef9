//! `rcc check --trace PLACE`: what one place held from entry to exit.
//!
//! In: one program at one shape, a place as the user wrote it. Out: its versions, the line that wrote each and what it was made of.
//! A program whose promise is broken is followed too: that is when one asks.

use compiler::diagnostics::graph::fault;
use compiler::diagnostics::history::answer;
use compiler::elaborate::{self, Request};
use compiler::graph::{self, Form};
use compiler::limits::Limits;
use compiler::pipeline::Loaded;

use crate::failure::Failure;
use crate::output::Output;

/// Runs the command.
pub(crate) fn run(
    place: &str,
    loaded: &Loaded,
    request: &Request,
    limits: &Limits,
    output: &mut Output,
) -> Result<(), Failure> {
    let elaborated = match elaborate::elaborate(&loaded.program, request, limits) {
        Ok(elaborated) => elaborated,
        Err(error) => {
            let diagnostic = compiler::diagnostics::elaborate::error(&error, &loaded.sources);
            output.diagnostic(&diagnostic, &loaded.sources);
            return Err(Failure::Wrong);
        }
    };
    let trace = &elaborated.trace;
    let mut bindings = |mv| elaborate::bindings(&loaded.program, request, limits, mv);
    let graph = match graph::build(trace, Form::Disjoint) {
        Ok(graph) => graph,
        Err(faults) => {
            for found in &faults {
                output.diagnostic(&fault(found, trace, &mut bindings), &loaded.sources);
            }
            return Err(Failure::Wrong);
        }
    };
    let text = answer(place, trace, &graph, &loaded.sources, &mut bindings)
        .map_err(|why| Failure::usage_help(format!("--trace: {why}"), "a place looks like data[3] @ 1"))?;
    output.line(text.trim_end())?;
    match graph::promise(trace, &graph) {
        Ok(_) => Ok(()),
        Err(_) => {
            output.note("note: the promise is broken; `rcc check` without --trace says where");
            Err(Failure::Wrong)
        }
    }
}
