//! V6: the plan computes the trace's own expressions, bit for bit.
//!
//! In: a trace and what it leaves behind, and a verified plan that claims to be its lowering. Out: nothing, or the promised places
//! whose value in the plan is combined in another order, or rounded elsewhere, than the trace says. V4 has shown
//! that the plan keeps *its* promise; here the promise is also compared with the trace's. The outer part of the operator
//! (avg: the division) is no part of the trace and is looked through; V4 checks it.
//!
//! The one hard idea: one expression DAG is translated into the other, leaf by leaf and node by node in the order of
//! ids (operands come first), so that every node is looked up once, however often it is shared. An expression that
//! the trace never makes has no translation.

use grammar::span::Span;
use plan::collective::{BlockRef, Clause, Promise};
use plan::ids::BufferId;
use plan::plan::{Form, Plan, Role};
use plan::values::{Node, ValueId, Values};
use plan::verify::{Symbolic, VerifiedPlan};

use crate::graph::{ChunkGraph, Ends};
use crate::trace::{BufferKind, Place, Trace};

/// How a plan differs from its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What differs.
    pub kind: FaultKind,
}

impl Fault {
    /// The move that last wrote the place, or the algorithm.
    pub fn span(&self, trace: &Trace, graph: &ChunkGraph) -> Span {
        let writer = match self.kind {
            FaultKind::Value { place, .. } => {
                graph.last(graph.places.index(place)).and_then(|version| graph.writer(version))
            }
            FaultKind::Shape | FaultKind::Buffer { .. } | FaultKind::Promise => None,
        };
        writer.map_or(trace.name_span, |mv| trace.origin(mv).span)
    }
}

/// What differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// The number of ranks or of cells.
    Shape,
    /// A buffer of the trace is not in the plan, or has another size there.
    Buffer {
        /// Its name.
        name: String,
    },
    /// The promise.
    Promise,
    /// The value of a place.
    Value {
        /// The place.
        place: Place,
        /// The buffer's name.
        buffer: String,
        /// Under which alias form of the plan.
        form: Form,
        /// The trace's expression; long ones are cut.
        wanted: String,
        /// The plan's; none: nothing is there.
        found: Option<String>,
        /// How many more places differ.
        others: u32,
    },
}

/// Compares every promised place of a plan with the trace it was made from. (At its moves nobody looks.)
pub fn validate(trace: &Trace, ends: &Ends, plan: &VerifiedPlan) -> Result<(), Vec<Fault>> {
    let fault = |kind| vec![Fault { kind }];
    let header = &plan.header;
    if (header.ranks, header.cells) != (trace.ranks, trace.cells) {
        return Err(fault(FaultKind::Shape));
    }
    let sides = sides(trace, plan).map_err(|name| fault(FaultKind::Buffer { name }))?;
    if !same_promise(trace, &sides, &plan.promise) {
        return Err(fault(FaultKind::Promise));
    }
    let symbolic = plan.symbolic();
    let translation = translate(trace, ends, symbolic, &sides);
    // What differs in one form mostly differs in both: the first is enough.
    let mut served = Form::ALL.into_iter().filter(|&form| header.forms.serves(form));
    let fault = served.find_map(|form| first_difference(trace, ends, symbolic, &sides, &translation, form));
    fault.map_or(Ok(()), |fault| Err(vec![fault]))
}

/// The plan's buffers that stand for a buffer of the trace.
struct Sides {
    /// Holds its entry value.
    send: Option<BufferId>,
    /// Holds what is written.
    recv: Option<BufferId>,
}

/// The sides of each buffer, found by name and role; the name of one that is missing or has another size.
fn sides(trace: &Trace, plan: &Plan) -> Result<Vec<Sides>, String> {
    let find = |name: &str, role| {
        let at = plan.buffers.iter().position(|b| b.role == role && b.name == name);
        at.map(BufferId::new).filter(|id| {
            let known = trace.buffers.iter().find(|b| b.name == name);
            known.is_some_and(|b| b.blocks == plan.buffers[id.index()].blocks)
        })
    };
    let of = |buffer: &crate::trace::Buffer| {
        let (send, recv) = (find(&buffer.name, Role::Send), find(&buffer.name, Role::Recv));
        let right = match buffer.kind {
            BufferKind::In => send.is_some(),
            BufferKind::Out => recv.is_some(),
            BufferKind::Inout => send.is_some() && recv.is_some(),
            BufferKind::Scratch | BufferKind::Signal => return Ok(Sides { send: None, recv: None }),
        };
        if right { Ok(Sides { send, recv }) } else { Err(buffer.name.clone()) }
    };
    trace.buffers.iter().map(of).collect()
}

/// Whether a promise in terms of the plan's buffers is the trace's.
fn same_promise(trace: &Trace, sides: &[Sides], found: &Promise) -> bool {
    let promise = &trace.promise;
    let send = |b: &BlockRef| Some(BlockRef { buffer: sides[b.buffer.index()].send?, ..*b });
    let recv = |b: BlockRef| Some(BlockRef { buffer: sides[b.buffer.index()].recv?, ..b });
    let same_clause =
        |(c, found): (&Clause, &Clause)| recv(c.place) == Some(found.place) && c.list == found.list;
    let same_list = |(list, found): (&Vec<BlockRef>, &Vec<BlockRef>)| {
        list.len() == found.len() && list.iter().zip(found).all(|(b, found)| send(b) == Some(*found))
    };
    promise.synchronised == found.synchronised
        && promise.clauses.len() == found.clauses.len()
        && promise.clauses.iter().zip(&found.clauses).all(same_clause)
        && promise.lists.len() == found.lists.len()
        && promise.lists.iter().zip(&found.lists).all(same_list)
}

/// Of each value of the plan: the same expression among the trace's values, if the trace makes it.
struct Translation(Vec<u32>);

/// The trace makes no such expression.
const NONE: u32 = u32::MAX;

impl Translation {
    fn of(&self, value: ValueId) -> Option<ValueId> {
        let same = self.0[value.0 as usize];
        (same != NONE).then_some(ValueId(same))
    }
}

fn translate(trace: &Trace, ends: &Ends, symbolic: &Symbolic, sides: &[Sides]) -> Translation {
    let mut same = Translation(vec![NONE; symbolic.values.len()]);
    let mut entries = (0..).zip(ends.entries()).peekable();
    while let Some(&(_, first)) = entries.peek() {
        // They come in the order of their places: those of one buffer at one rank follow each other.
        let (Place { buffer, rank, cell }, len) = ends.places.stretch(first);
        let holds_data = trace.buffers[buffer.index()].kind != BufferKind::Signal;
        let send = sides[buffer.index()].send.filter(|_| holds_data);
        while let Some((value, place)) = entries.next_if(|&(_, place)| place - first < len) {
            let entry = send.and_then(|send| symbolic.entry(send, rank, cell + (place - first)));
            if let Some(entry) = entry {
                same.0[entry.0 as usize] = value;
            }
        }
    }
    for v in 0..same.0.len() {
        match symbolic.values.node(ValueId(v as u32)) {
            Node::Leaf(_) => {}
            Node::Post(inner) => same.0[v] = same.0[inner.0 as usize],
            Node::Combined { left, right, rounded } => {
                if let (Some(left), Some(right)) = (same.of(left), same.of(right))
                    && let Some(found) = ends.values.find(left, right, rounded)
                {
                    same.0[v] = found.0;
                }
            }
        }
    }
    same
}

fn first_difference(
    trace: &Trace,
    ends: &Ends,
    symbolic: &Symbolic,
    sides: &[Sides],
    translation: &Translation,
    form: Form,
) -> Option<Fault> {
    let mut first = None;
    let mut differ = 0u32;
    for clause in &trace.promise.clauses {
        let BlockRef { buffer, rank, block } = clause.place;
        let recv = sides[buffer.index()].recv?;
        for cell in block * trace.cells..(block + 1) * trace.cells {
            let place = Place { buffer, rank, cell };
            let wanted = ends.last(ends.places.index(place));
            let found = symbolic.exit(form, recv, rank, cell);
            if found.and_then(|value| translation.of(value)) != wanted || wanted.is_none() {
                differ += 1;
                first = first.or(Some((place, wanted, found)));
            }
        }
    }
    let (place, wanted, found) = first?;
    let leaf = |value: ValueId| match ends.values.node(value) {
        Node::Leaf(key) => entry_value(trace, ends.places.place(key)),
        Node::Combined { .. } | Node::Post(_) => "?".to_string(),
    };
    let in_trace = |value: ValueId| leaf(value);
    let in_plan = |value: ValueId| translation.of(value).map_or("?".to_string(), leaf);
    let kind = FaultKind::Value {
        place,
        buffer: trace.buffer(place).name.clone(),
        form,
        wanted: wanted.map_or("nothing".to_string(), |value| expression(&ends.values, value, &in_trace)),
        found: found.map(|value| expression(&symbolic.values, value, &in_plan)),
        others: differ - 1,
    };
    Some(Fault { kind })
}

fn entry_value(trace: &Trace, place: Place) -> String {
    format!("{}[{}] @ {}", trace.buffer(place).name, place.cell, place.rank.0)
}

/// A value as text: `(a + b)` is rounded, `{a + b}` is not; what lies deeper than a few levels is `…`.
fn expression(values: &Values, value: ValueId, leaf: &dyn Fn(ValueId) -> String) -> String {
    const LEVELS: u32 = 4;
    fn write(
        values: &Values,
        value: ValueId,
        leaf: &dyn Fn(ValueId) -> String,
        levels: u32,
        out: &mut String,
    ) {
        match values.node(value) {
            Node::Leaf(_) => *out += &leaf(value),
            Node::Post(inner) => write(values, inner, leaf, levels, out),
            Node::Combined { .. } if levels == 0 => out.push('…'),
            Node::Combined { left, right, rounded } => {
                out.push(if rounded { '(' } else { '{' });
                write(values, left, leaf, levels - 1, out);
                *out += " + ";
                write(values, right, leaf, levels - 1, out);
                out.push(if rounded { ')' } else { '}' });
            }
        }
    }
    let mut out = String::new();
    write(values, value, leaf, LEVELS, &mut out);
    out
}
