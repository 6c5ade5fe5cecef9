//! Whether a plan that comes from elsewhere is of a program.
//!
//! In: a verified plan (it keeps the promise that it carries), a program. Out: whether that promise, and the buffers that calls name, are the
//! program's. Who sends what to whom is not compared: that is for verification, and there are many ways. It costs the program's moves, and
//! none of what is made of them.

use plan::plan::{Buffer, Plan, Role};

use crate::check::checked::Program;
use crate::elaborate::{self, Request};
use crate::limits::Limits;
use crate::schedule::memory;

/// Whether a plan promises what the algorithm of a request does, of the same buffers.
pub fn is_of(plan: &Plan, program: &Program, request: &Request, limits: &Limits) -> bool {
    let Ok(elaborated) = elaborate::elaborate(program, request, limits) else { return false };
    let trace = elaborated.trace;
    let due = memory::assign(&trace);
    let header = &plan.header;
    let called = |buffers: &[Buffer]| -> Vec<Buffer> {
        buffers.iter().filter(|buffer| buffer.role != Role::Scratch).cloned().collect()
    };
    header.algorithm == trace.algorithm
        && header.collective == trace.collective
        && header.params == trace.params
        && header.shape == trace.shape
        && called(&plan.buffers) == called(&due.buffers)
        && plan.promise == due.promise
        // In place it may be served or not; but only as the program says.
        && (!header.forms.same || (header.cells == trace.cells && plan.overlaps == due.overlaps))
}
