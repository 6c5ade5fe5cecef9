//! Faults and warnings as users see them.

use grammar::span::{FileId, Span};
use rcc_compiler::diagnostics::graph::{fault, warnings};
use rcc_compiler::diagnostics::render::{Style, render};
use rcc_compiler::graph::{Form, build, promise};
use rcc_compiler::source::Sources;
use rcc_compiler::trace::{Bindings, BufferKind, Looped, MoveId, MoveKind, Origin, OriginId, Trace};

use crate::traces::{Builder, allgather, allreduce, alltoall, at, block, dissemination, ring};

/// A program's text, and the values of its loops move by move.
struct Program {
    sources: Sources,
    values: Vec<Vec<(&'static str, i64)>>,
    loops: Vec<(&'static str, Span, i64)>,
}

impl Program {
    fn new(name: &str, text: &str) -> Program {
        let mut sources = Sources::default();
        sources.add(name, text);
        Program { sources, values: Vec::new(), loops: Vec::new() }
    }

    /// The span of a part of the text.
    fn at(&self, part: &str) -> Span {
        let start = self.sources.file(FileId(0)).text.find(part).expect("the text has it");
        Span::new(FileId(0), start, start + part.len())
    }

    /// Moves `from..` come from `part`, with these loop values each.
    fn place(&mut self, b: &mut Builder, part: &str, values: Vec<Vec<(&'static str, i64)>>) {
        let from = self.values.len();
        let span = self.at(part);
        let origin = OriginId(from as u32);
        b.trace.origins[from] = Origin { span, parent: None };
        b.trace.moves[from..from + values.len()].iter_mut().for_each(|mv| mv.origin = origin);
        self.values.extend(values);
    }

    fn bindings(&self, mv: MoveId) -> Bindings {
        let values =
            self.values[mv.0 as usize].iter().map(|&(name, value)| (name.to_string(), value)).collect();
        let looped =
            |&(name, range, last): &(&str, Span, i64)| Looped { variable: name.to_string(), range, last };
        Bindings(values, self.loops.iter().map(looped).collect())
    }

    fn show(&self, trace: &Trace, form: Form) -> String {
        let mut ask = |mv: MoveId| self.bindings(mv);
        let diagnostics = match build(trace, form).and_then(|graph| promise(trace, &graph)) {
            Ok(proof) => warnings(&proof.warnings, trace, &mut ask),
            Err(faults) => faults.iter().map(|f| fault(f, trace, &mut ask)).collect(),
        };
        for label in diagnostics.iter().flat_map(|d| &d.labels) {
            assert!(label.text.chars().count() <= 50, "{label:?}");
        }
        let texts: Vec<String> =
            diagnostics.iter().map(|d| render(d, &self.sources, Style::default())).collect();
        texts.join("\n")
    }
}

/// The example of docs/language.md, "Errors": the all-gather's move that brings chunk 3 on from rank 0 to rank 1
/// copies, when it is done, what lacks one contribution.
#[test]
fn a_reduction_that_lacks_one() {
    let text = "\
algorithm ring on ranks[n] implements allreduce {
    chunks n
    for c in 0..n, hop in 1..n-1 {
        data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n
    }
    for c in 0..n, hop in 0..n-1 {
        data[c] @ (c + hop) % n = data[c] @ (c + hop + n - 1) % n
    }
}
";
    let n = 8i64;
    let mut program = Program::new("ring.coll", text);
    let mut b = allreduce(8, 8);
    b.trace.algorithm = "ring".to_string();
    b.trace.collective = "allreduce".to_string();
    let (mut first, mut second) = (vec![], vec![]);
    for c in 0..n {
        for hop in 1..n - 1 {
            first.push(vec![("c", c), ("hop", hop)]);
            b.add(at(0, ((c + hop + 1) % n) as u32, c as u32), at(0, ((c + hop) % n) as u32, c as u32));
        }
    }
    for c in 0..n {
        for hop in 0..n - 1 {
            second.push(vec![("c", c), ("hop", hop)]);
            b.copy(at(0, ((c + hop) % n) as u32, c as u32), at(0, ((c + hop + n - 1) % n) as u32, c as u32));
        }
    }
    program.place(&mut b, "data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n", first);
    program.place(&mut b, "data[c] @ (c + hop) % n = data[c] @ (c + hop + n - 1) % n", second);
    b.trace.implements = program.at("implements allreduce");
    b.trace.clause_spans.iter_mut().for_each(|span| *span = Span { file: FileId(7), ..*span });
    let wanted = "\
coll::promise

  × ring does not do what allreduce promises (8 ranks)
   ╭─[ring.coll:7:9]
 7 │         data[c] @ (c + hop) % n = data[c] @ (c + hop + n - 1) % n
   ·         ────────────────────────────┬────────────────────────────
   ·                                     ╰── last written here, with c = 0, hop = 0
   ╰────
  help: data[0] @ 0 must hold the reduction over ranks 0 to 7; it lacks rank
        0's; 63 more places are wrong
";
    assert_eq!(program.show(&b.trace, Form::Disjoint), wanted);
}

/// The second example of ARCHITECTURE.md, "Diagnostics".
#[test]
fn a_chain_that_ends_too_early() {
    let text = "\
algorithm chain on ranks[n] implements broadcast(0) {
    for r in 0..n-2 {
        data @ r + 1 = data @ r
    }
}
";
    let mut program = Program::new("chain.coll", text);
    let mut b = broadcast(4);
    for r in 0..2 {
        b.copy(at(0, r + 1, 0), at(0, r, 0));
    }
    program.place(&mut b, "data @ r + 1 = data @ r", vec![vec![("r", 0)], vec![("r", 1)]]);
    program.loops.push(("r", program.at("0..n-2"), 1));
    let wanted = "\
coll::promise

  × rank 3 never receives the value broadcast promises it
   ╭─[chain.coll:3:9]
 2 │     for r in 0..n-2 {
   ·              ───┬──
   ·                 ╰── r stops at 1 with 4 ranks
 3 │         data @ r + 1 = data @ r
   ·         ───────────┬───────────
   ·                    ╰── the last copy, at r = 1, reaches rank 2
   ╰────
  help: `..` leaves out its end: one more turn of r brings it from rank 2 to
        rank 3
";
    assert_eq!(program.show(&b.trace, Form::Disjoint), wanted);

    // Where no line goes that way, the `implements` clause is to blame.
    b.trace.moves.pop();
    b.trace.implements = program.at("implements broadcast(0)");
    b.trace.name_span = program.at("chain");
    b.trace.clause_spans.iter_mut().for_each(|span| *span = Span { file: FileId(7), ..*span });
    let wanted = "\
coll::promise

  × rank 2 never receives the value broadcast promises it
   ╭─[chain.coll:1:29]
 1 │ algorithm chain on ranks[n] implements broadcast(0) {
   ·                             ───────────┬───────────
   ·                                        ╰── no move writes `data @ 2`
   ╰────
  help: data @ 2 must hold what data @ 0 held at entry; it holds nothing; 1
        more place is wrong
";
    assert_eq!(program.show(&b.trace, Form::Disjoint), wanted);
}

fn broadcast(n: u32) -> Builder {
    let b = Builder::new(n, 1).buffer("data", BufferKind::Inout, 1);
    let mut b = (0..n).fold(b, |b, r| b.ensures(block(0, r, 0), vec![block(0, 0, 0)]));
    b.trace.algorithm = "chain".to_string();
    b.trace.collective = "broadcast".to_string();
    b
}

/// One of each of the other kinds, on lines that show where they come from.
fn lines(b: &mut Builder) -> Program {
    let mut text = String::from("implements what is promised\n");
    for m in 0..b.trace.moves.len() {
        text += &format!("    this is the text of move {m:2}\n");
    }
    let mut program = Program::new("hand.coll", &text);
    for m in 0..b.trace.moves.len() {
        let part = format!("this is the text of move {m:2}");
        program.place(b, &part, vec![vec![("turn", m as i64), ("the_second_variable", 1000)]]);
    }
    b.trace.implements = program.at("implements what is promised");
    b.trace.name_span = b.trace.implements;
    let elsewhere = Span { file: FileId(7), ..b.trace.name_span };
    b.trace.clause_spans.fill(elsewhere);
    b.trace.buffers.iter_mut().for_each(|buffer| buffer.span = elsewhere);
    program
}

fn shown(mut b: Builder) -> String {
    let program = lines(&mut b);
    program.show(&b.trace, Form::Disjoint)
}

/// All the others, each next to what it looks like.
#[test]
fn one_of_each_kind() {
    let mut texts = Vec::new();
    let mut show = |name: &str, text: String| texts.push(format!("### {name}\n\n{text}"));

    let mut b = allgather(3, 2).buffer("tmp", BufferKind::Scratch, 2);
    b.copy(at(1, 0, 1), at(2, 1, 3));
    b.copy(at(2, 1, 3), at(0, 1, 1));
    show("read before it is written", shown(b));

    let mut b = allgather(3, 2).buffer("tmp", BufferKind::Scratch, 2);
    b.step(|b| {
        b.copy(at(2, 1, 3), at(0, 1, 1));
        b.copy(at(1, 0, 1), at(2, 1, 3));
    });
    b.copy(at(1, 0, 3), at(1, 1, 3));
    show("read in the step that writes it; an out buffer", shown(b));

    let mut b = broadcast(3);
    b.copy(at(0, 0, 0), at(0, 2, 0));
    show("working space of an inout buffer", shown(b));

    let mut b = alltoall(3, 1).buffer("tmp", BufferKind::Scratch, 1);
    b.trace.shape = vec![3, 1];
    b.add(at(2, 1, 0), at(0, 1, 0));
    show("combine into nothing", shown(b));

    let mut b = allreduce(3, 1);
    b.step(|b| {
        b.copy(at(0, 0, 0), at(0, 1, 0));
        b.add(at(0, 0, 0), at(0, 2, 0));
    });
    show("conflicting writes", shown(b));

    let mut b = allreduce(3, 1);
    b.step(|b| {
        b.copy(at(0, 0, 0), at(0, 1, 0));
        b.copy(at(0, 0, 0), at(0, 2, 0));
    });
    let program = lines(&mut b);
    b.trace.moves[1].origin = b.trace.moves[0].origin;
    show("conflicting writes of one line", program.show(&b.trace, Form::Disjoint));

    let mut b = allgather(2, 1);
    b.copy(at(0, 1, 0), at(0, 0, 0));
    let mut program = lines(&mut b);
    b.trace.buffers[0].span = program.at("what is promised");
    show("an in buffer written", program.show(&b.trace, Form::Disjoint));
    b.trace.origins.push(Origin { span: program.at("implements"), parent: None });
    b.trace.origins[0].parent = Some(OriginId(1));
    program.values[0][1].0 = "an_even_longer_second_variable";
    show("within a run", program.show(&b.trace, Form::Disjoint));

    let mut b = allreduce(2, 4);
    b.trace.chunks = 2;
    b.copy(at(0, 0, 2), at(0, 1, 1));
    b.add(at(0, 0, 3), at(0, 1, 0));
    show("positions, in chunks of two cells", shown(b));

    let mut b = ring(4);
    b.add(at(0, 1, 2), at(0, 0, 2));
    show("twice", shown(b));

    let mut b = alltoall(2, 1);
    for r in 0..2 {
        b.copy(at(1, r, r), at(0, r, r));
        b.copy(at(1, r, 1 - r), at(0, 1 - r, r));
    }
    b.copy(at(1, 1, 0), at(0, 1, 0));
    show("another value", shown(b));

    let mut b = allgather(2, 1);
    b.copy(at(1, 0, 0), at(0, 1, 0));
    b.copy(at(1, 0, 1), at(0, 1, 0));
    b.copy(at(1, 1, 0), at(0, 0, 0));
    b.copy(at(1, 0, 0), at(0, 0, 0));
    b.copy(at(1, 1, 1), at(0, 1, 0));
    let program = lines(&mut b);
    show("out of place: a value that nobody reads", program.show(&b.trace, Form::Disjoint));
    show("in place: a value that is gone", program.show(&b.trace, Form::Same));

    let mut b = dissemination(5);
    b.trace.moves.truncate(6);
    show("a barrier", shown(b));

    let mut b = ring(3);
    b.mv(MoveKind::Copy, at(0, 1, 2), &[at(0, 0, 2)], 1);
    show("a wasted transfer", shown(b));

    insta::assert_snapshot!(texts.join("\n"));
}
