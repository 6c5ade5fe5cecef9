//! What an expert would not improve by hand: claims about the plans of the standard algorithms, counted over the plan
//! by code that knows nothing of how it was made.

use std::collections::BTreeSet;

use compiler::chooser::{Effort, Fixed, Wanted};
use compiler::cost::topology::builtin;
use compiler::graph::ChunkGraph;
use compiler::limits::Limits;
use compiler::options::{Cut, Direct, Multicast, Options};
use compiler::pipeline::{self, Compiled, Loaded, load, traced};
use compiler::trace::{Move, MoveKind, Trace};
use plan::dtype::Dtype;
use plan::ids::{BlockId, RankId};
use plan::plan::{Forms, Operand, Plan};
use rcc_tests::library;
use rcc_tests::waste::{Count, Use, count, only_copies};

/// A standard algorithm compiled with default options; none if it excludes the shape.
fn compiled(loaded: &Loaded, name: &str, shape: &[u32]) -> Option<Compiled> {
    let algorithm = loaded.program.find(name).expect("a standard algorithm");
    let request = library::request(loaded, algorithm, shape.to_vec());
    library::compiled(loaded, &request, &Options::default(), &Limits::default())
        .unwrap_or_else(|what| panic!("{name} at {shape:?}: {what}"))
}

fn library() -> Loaded {
    load(&[], &Limits::default())
}

#[test]
fn a_fused_ring_allreduce_has_one_step_per_message_and_one_more() {
    let loaded = library();
    for n in 2..=32 {
        let compiled = compiled(&loaded, "std::allreduce::ring", &[n]).unwrap();
        let plan = compiled.plan.plan();
        for rank in (0..n).map(RankId) {
            let steps: usize = plan.blocks_of(rank).iter().map(|block| block.body.len()).sum();
            assert!(steps < 2 * n as usize, "{n} ranks: rank {} has {steps} steps", rank.0);
        }
        assert_eq!(plan.channels.len(), n as usize, "one channel to the next rank");
        // Two slots let every rank fold and send at once.
        assert!(plan.header.k_min <= 2);
    }
}

#[test]
fn a_ring_allgather_copies_its_own_block_as_it_sends_it() {
    let loaded = library();
    for n in 2..=16 {
        let compiled = compiled(&loaded, "std::allgather::ring", &[n]).unwrap();
        let plan = compiled.plan.plan();
        let copies = plan.steps.iter().filter(|step| only_copies(plan, step)).count();
        assert_eq!(copies, 0, "{n} ranks");
        for rank in (0..n).map(RankId) {
            let steps: usize = plan.blocks_of(rank).iter().map(|block| block.body.len()).sum();
            assert_eq!(steps, n as usize, "{n} ranks: one step for each block");
        }
    }
}

/// `@ *` is as good as a copy of one's own and a multicast from there.
#[test]
fn who_keeps_what_it_sends_to_all_does_both_in_one_step() {
    let text =
        "algorithm all on ranks[n] implements allgather { for r in 0..n { output[r] @ * = input @ r } }
        algorithm root on ranks[n] implements broadcast(0) { data @ * = data @ 0 }";
    let loaded = load(&[("own.coll".to_string(), text.into())], &Limits::default());
    for n in 2..=8 {
        for (name, sends) in [("all", n as usize), ("root", 1)] {
            let compiled = compiled(&loaded, name, &[n]).unwrap();
            let plan = compiled.plan.plan();
            let count = plan.steps.len();
            // One for each rank that sends, one for each message.
            assert_eq!(count, sends * n as usize, "{name}, {n} ranks");
            assert_eq!(
                plan.steps.iter().filter(|step| only_copies(plan, step)).count(),
                0,
                "{name}, {n} ranks"
            );
        }
    }
}

#[test]
fn a_chain_broadcast_has_one_step_per_rank() {
    let loaded = library();
    for n in 2..=16 {
        let compiled = compiled(&loaded, "std::broadcast::chain", &[n]).unwrap();
        let plan = compiled.plan.plan();
        for rank in (0..n).map(RankId) {
            let steps: usize = plan.blocks_of(rank).iter().map(|block| block.body.len()).sum();
            assert_eq!(steps, 1, "{n} ranks, rank {}", rank.0);
        }
    }
}

/// What goes up must not wait for what comes down.
#[test]
fn many_messages_of_a_pair_in_one_round_are_a_pipeline() {
    // Swing sends single chunks: n/2 in the first step, from each rank to one other. A rank takes 2(n - 1) messages; each is part of a
    // step. All but what it has at entry goes on in the step that makes it as long as slots last: with two, a step for
    // every other message is more than enough.
    let loaded = library();
    for n in [4, 8, 16, 32, 64] {
        let compiled = compiled(&loaded, "std::allreduce::swing", &[n]).unwrap();
        let plan = compiled.plan.plan();
        assert!(plan.header.k_min <= 2);
        assert_eq!(plan.header.scratch_cells, vec![0; n as usize], "nothing is put aside");
        for rank in (0..n).map(RankId) {
            let steps: usize = plan.blocks_of(rank).iter().map(|block| block.body.len()).sum();
            assert!(steps <= 3 * (n as usize - 1), "{n} ranks: rank {} has {steps} steps", rank.0);
        }
    }
}

#[test]
fn a_tree_goes_up_and_down_in_blocks_of_their_own() {
    let loaded = library();
    for n in 2..=16u32 {
        let compiled = compiled(&loaded, "std::allreduce::tree", &[n]).unwrap();
        let plan = compiled.plan.plan();
        let blocks = |from: u32, to: u32| -> Vec<(BlockId, BlockId)> {
            let of = |block: BlockId| plan.blocks[block.index()].rank.0;
            let ends = plan.channels.iter().map(|channel| (channel.writer, plan.readers(channel)[0]));
            ends.filter(|&(writer, reader)| (of(writer), of(reader)) == (from, to)).collect()
        };
        for rank in 1..n {
            let parent = (rank - 1) / 2;
            let up: BTreeSet<BlockId> = blocks(rank, parent).iter().map(|ends| ends.0).collect();
            let down: BTreeSet<BlockId> = blocks(parent, rank).iter().map(|ends| ends.1).collect();
            assert!(!up.is_empty() && !down.is_empty(), "{n} ranks, rank {rank}");
            assert!(up.is_disjoint(&down), "{n} ranks, rank {rank}: {up:?} and {down:?}");
        }
    }
}

/// Cells that the program itself moves between ranks, each version once to each rank.
fn moved(trace: &Trace, graph: &ChunkGraph) -> u64 {
    let mut wanted = BTreeSet::new();
    for (m, mv) in trace.moves.iter().enumerate() {
        let id = compiler::trace::MoveId(m as u32);
        let arity = compiler::graph::arity(trace, mv);
        for i in 0..mv.width {
            for &read in graph.read(id, i, arity) {
                let place = graph.places.place(graph.version(read).place);
                if place.rank != mv.to.rank {
                    wanted.insert((read, mv.to.rank));
                }
            }
        }
    }
    wanted.len() as u64
}

/// Cells that end, out of place, in a buffer of the rank that holds them at entry, and that are sent to nobody: only
/// these need a step that copies. What is sent is stored by the step that sends it.
fn must_be_copied(plan: &Plan) -> u64 {
    let sent = |rank: RankId, buffer, cell| {
        plan.blocks_of(rank).iter().any(|block| {
            plan.steps(&block.body).any(|(_, step)| {
                let reads = plan.src(step).iter().any(|o| {
                    matches!(*o, Operand::Local { buffer: b, cell: c } if b == buffer && (c..c + step.width).contains(&cell))
                });
                reads && plan.src(step).len() == 1 && plan.dst(step).iter().any(|o| matches!(o, Operand::Channel(_)))
            })
        })
    };
    let mut cells = 0;
    for clause in &plan.promise.clauses {
        let [operand] = plan.promise.lists[clause.list as usize][..] else { continue };
        if operand.rank == clause.place.rank {
            let first = operand.block * plan.header.cells;
            let all = first..first + plan.header.cells;
            cells += all.filter(|&cell| !sent(operand.rank, operand.buffer, cell)).count() as u64;
        }
    }
    cells
}

/// Cells that the program copies within a rank.
fn copied_by_the_program(trace: &Trace) -> u64 {
    let within = |mv: &&Move| trace.sources(mv)[0].rank == mv.to.rank && mv.kind == MoveKind::Copy;
    trace.moves.iter().filter(within).map(|mv| u64::from(mv.width)).sum()
}

/// Where messages are as wide as their moves, a value that goes on as a part of the run it came in, or in other company, is stored in
/// between, and copied if the program says so. Everything else is as if it were not; and where they are cut in parts, all is.
#[test]
fn nothing_is_stored_copied_or_sent_in_vain() {
    let loaded = library();
    let mut wrong = Vec::new();
    println!(
        "{:<36}{:>8} {:>6}{:>6}{:>7}{:>9}{:>9}{:>9}{:>9}{:>9}{:>7}{:>6}",
        "algorithm",
        "shape",
        "cut",
        "steps",
        "blocks",
        "sends",
        "least",
        "apart",
        "copies",
        "least",
        "waits",
        "slots"
    );
    for algorithm in library::algorithms(&loaded) {
        let name = loaded.program.algorithm(algorithm).name.clone();
        let requests = (2..=16).flat_map(|n| library::requests(&loaded, algorithm, n));
        for (request, cut) in
            requests.flat_map(|request| [Cut::Whole, Cut::Parts].map(|cut| (request.clone(), cut)))
        {
            let options = Options { cut, ..Options::default() };
            let shape = format!("{:?}", request.shape);
            let compiled = match library::compiled(&loaded, &request, &options, &Limits::default()) {
                Ok(Some(compiled)) => compiled,
                Ok(None) => continue,
                Err(what) => {
                    wrong.push(format!("{name} at {shape}, {cut:?}: {what}"));
                    continue;
                }
            };
            let plan = compiled.plan.plan();
            let counted = count(plan);
            let Count { steps, copies, sends, sends_apart, blocks, waits, .. } = counted;
            let (trace, graph) = traced(&loaded, &request, None, &Limits::default()).unwrap();
            let (least_sends, least_copies) = (moved(&trace, &graph), must_be_copied(plan));
            println!(
                "{name:<36}{shape:>8} {:>6}{steps:>6}{blocks:>7}{sends:>9}{least_sends:>9}{sends_apart:>9}{copies:>9}{least_copies:>9}{waits:>7}{:>6}",
                format!("{cut:?}"),
                plan.header.k_min
            );
            let mut at = |what: String| wrong.push(format!("{name} at {shape}, {cut:?}: {what}"));
            if sends > least_sends {
                at(format!("{sends} cells are sent, {least_sends} would do"));
            }
            let regroups = cut == Cut::Whole && counted.of(Use::SentOn) + counted.of(Use::CopiedOn) > 0;
            let most_copies = match regroups {
                true => copied_by_the_program(&trace) + least_copies,
                false => least_copies,
            };
            if copies > most_copies {
                at(format!("{copies} cells are copied, {most_copies} would do"));
            }
            for used in [Use::Unread, Use::FoldedOnce, Use::SentOn, Use::CopiedOn] {
                let times = counted.of(used);
                let excused = regroups && matches!(used, Use::SentOn | Use::CopiedOn);
                if times > 0 && !excused {
                    let first = counted.stored.iter().find(|stored| stored.used == used).unwrap();
                    at(format!("{times} cells are stored in vain ({used:?}): {first}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

/// What the compiler takes if nothing is said: no value is stored that only passes through; or the same moves cut in parts were tried,
/// and the model has them slower, or so little faster that it is not to be relied on (docs/decisions/0021).
#[test]
fn what_passes_through_is_stored_only_where_that_is_faster() {
    let loaded = library();
    let machine = builtin("2-cores").unwrap();
    let (mut stored, mut cut) = (BTreeSet::new(), BTreeSet::new());
    for algorithm in library::algorithms(&loaded) {
        let name = loaded.program.algorithm(algorithm).name.clone();
        for request in [4, 8].into_iter().flat_map(|n| library::requests(&loaded, algorithm, n)) {
            for bytes in [4 << 10, 64 << 20] {
                let wanted = Wanted {
                    bytes: Some(bytes),
                    dtype: Dtype::F32,
                    fixed: Fixed {
                        direct: Some(Direct::Never),
                        multicast: Some(Multicast::Flat),
                        ..Fixed::default()
                    },
                    forms: Forms { disjoint: true, same: true },
                    effort: Effort::Quick,
                };
                let Ok((compiled, chosen)) = pipeline::compile_for(
                    &loaded,
                    &request,
                    &wanted,
                    &machine,
                    &Limits::default(),
                    &mut |_| (),
                ) else {
                    continue;
                };
                let at = format!("{name} at {:?}, {bytes} bytes", request.shape);
                let passes = count(compiled.plan.plan())
                    .stored
                    .iter()
                    .any(|stored| matches!(stored.used, Use::SentOn | Use::CopiedOn));
                let (_, taken) = chosen.best.unwrap_or_else(|| panic!("{at}: nothing was tried"));
                if chosen.layout.cut == Cut::Parts {
                    assert!(!passes, "{at}");
                    cut.insert(name.clone());
                } else if passes {
                    let in_parts = chosen.tried.iter().filter(|tried| tried.layout.cut == Cut::Parts);
                    let least = in_parts.map(|tried| tried.seconds).min_by(f64::total_cmp);
                    let least = least.unwrap_or_else(|| panic!("{at}: parts were not tried"));
                    // 5 % for another layout, and of a layout not always its very fastest geometry.
                    assert!(least * 1.12 >= taken, "{at}: {least} s in parts, {taken} s as taken");
                    stored.insert(name.clone());
                }
            }
        }
    }
    // Either comes by.
    println!("stored at some size: {stored:?}\nin parts at some size: {cut:?}");
    assert!(!stored.is_empty() && !cut.is_empty());
}
