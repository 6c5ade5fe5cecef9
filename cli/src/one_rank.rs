//! `rcc compile --rank R`: one rank's moves, without those of the others where the algorithm is the same at all ranks.
//!
//! In: a checked program, a shape, a rank. Out: what that rank does, and how it was proved. Where all ranks do the same
//! one rank is followed instead of all, whatever their number; else the reason is told, and all are followed, within the
//! usual limits.

use std::time::Duration;

use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::pipeline::{self, Loaded, NotByOne};
use compiler::symmetry;
use compiler::trace::{Move, Trace};
use plan::ids::RankId;
use plan::plan::ProofStatus;
use serde::Serialize;

use crate::args::{self, Stage};
use crate::compile::explain;
use crate::emit;
use crate::failure::Failure;
use crate::output::Output;
use crate::said;
use crate::shape;
use crate::stages::Stages;

/// What a rank does.
struct Of {
    /// The moves that write at it or read from it, in the order of the program.
    trace: Trace,
    status: ProofStatus,
    /// Moves of all ranks.
    all: u64,
    same_bits: Option<bool>,
}

/// Refuses options that speak of a whole plan.
pub(crate) fn refuse(args: &args::Compile) -> Result<(), Failure> {
    let Some(rank) = args.rank else { return Ok(()) };
    let ranks = shape::ranks(&args.ranks);
    if rank >= ranks {
        return Err(Failure::usage(format!("there is no rank {rank}: they are 0 to {}", ranks - 1)));
    }
    let whole = match (args.output.is_some(), args.format.as_str(), args.emit) {
        (true, ..) => "-o",
        (_, "dot", _) => "--target dot",
        (_, _, Some(Stage::Graph)) => "--emit graph",
        (_, _, Some(Stage::Plan)) => "--emit plan",
        _ => match args.scheduling.given().or(args.slots.map(|_| "--slots")) {
            Some(option) => {
                return Err(Failure::usage_help(
                    format!(
                        "{option} says how steps are laid out, and --rank {rank} looks at moves, before there are steps"
                    ),
                    format!("leave out {option}, or --rank"),
                ));
            }
            None => return Ok(()),
        },
    };
    Err(Failure::usage_help(
        format!("{whole} is of all ranks, and --rank {rank} looks at one"),
        "leave out --rank, or print the rank's moves with --emit trace",
    ))
}

/// Proves, and prints what the rank does.
pub(crate) fn run(
    args: &args::Compile,
    rank: RankId,
    loaded: &Loaded,
    request: &Request,
    limits: &Limits,
    stages: &mut Stages,
    output: &mut Output,
) -> Result<(), Failure> {
    let busy = output.busy("compiling");
    let by_one =
        pipeline::prove_by_one(loaded, request, args.bytes, limits, &mut |stage| stages.begin(stage.name()));
    let found = match by_one {
        Ok(proved) => {
            let moves = symmetry::of_rank(&proved.quotient, rank);
            let all = proved.quotient.moves;
            stages.end();
            let same_bits = proved.proof.same_bits;
            Of {
                trace: rank_trace(&proved.quotient, &moves),
                status: ProofStatus::BySymmetry,
                all,
                same_bits,
            }
        }
        Err(NotByOne::Unlike(why)) => {
            let whole = pipeline::prove(loaded, request, limits, &mut |stage| stages.begin(stage.name()));
            stages.end();
            output.diagnostic(&why, &loaded.sources);
            let proved = whole.map_err(|failure| explain(failure, loaded, output))?;
            for warning in &proved.warnings {
                output.diagnostic(warning, &loaded.sources);
            }
            let all = proved.trace.moves.len() as u64;
            let same_bits = proved.proof.same_bits;
            Of { trace: touching(proved.trace, rank), status: ProofStatus::AllRanks, all, same_bits }
        }
        Err(NotByOne::Failed(failure)) => {
            stages.end();
            drop(busy);
            return Err(explain(failure, loaded, output));
        }
    };
    drop(busy);
    if args.emit == Some(Stage::Trace) {
        output.text(&emit::trace(&found.trace, &loaded.sources))?;
    }
    let counts = Counts::new(&found.trace, rank);
    if args.json {
        output.json(&Summary::new(&found, rank, counts, stages))?;
    } else if args.emit.is_none() {
        let trace = &found.trace;
        let params: String = trace.params.iter().map(|(name, value)| format!(", {name} = {value}")).collect();
        output.line(&format!(
            "{} implements {} on {} ranks{params}: proved ({})",
            trace.algorithm,
            trace.collective,
            shape::show(&trace.shape),
            said::status(found.status),
        ))?;
        output.line(&format!(
            "rank {}: {} of {} moves: {} in from {} ranks, {} out to {} ranks, {} within",
            rank.0,
            counts.moves,
            found.all,
            counts.into,
            counts.from_ranks,
            counts.out,
            counts.to_ranks,
            counts.within,
        ))?;
    }
    if args.timings && !args.json {
        output.line("")?;
        output.text(&stages.table())?;
    }
    Ok(())
}

/// The trace that `symmetry` has, with one rank's moves.
fn rank_trace(quotient: &symmetry::Quotient, moves: &[symmetry::RankMove]) -> Trace {
    let mut trace = quotient.trace.clone();
    trace.moves.clear();
    trace.sources.clear();
    for mv in moves {
        let first_source = trace.sources.len() as u32;
        trace.sources.extend_from_slice(&mv.sources);
        let like = &quotient.trace.moves[mv.of.0 as usize];
        trace.moves.push(Move { to: mv.to, first_source, ..*like });
    }
    trace
}

/// Of a whole trace, the moves that touch a rank.
fn touching(mut trace: Trace, rank: RankId) -> Trace {
    let sources = std::mem::take(&mut trace.sources);
    let of = |mv: &Move| &sources[mv.first_source as usize..][..mv.source_count as usize];
    trace.moves.retain(|mv| mv.to.rank == rank || of(mv).iter().any(|source| source.rank == rank));
    let mut kept = Vec::new();
    for mv in &mut trace.moves {
        let first_source = kept.len() as u32;
        kept.extend_from_slice(of(mv));
        mv.first_source = first_source;
    }
    trace.sources = kept;
    trace
}

/// How many moves, and with how many other ranks.
#[derive(Debug, Clone, Copy, Serialize)]
struct Counts {
    moves: usize,
    into: usize,
    from_ranks: usize,
    out: usize,
    to_ranks: usize,
    within: usize,
}

impl Counts {
    fn new(trace: &Trace, rank: RankId) -> Counts {
        let (mut from, mut to) = (Vec::new(), Vec::new());
        let (mut into, mut out, mut within) = (0, 0, 0);
        for mv in &trace.moves {
            let remote =
                trace.sources(mv).iter().map(|source| source.rank).filter(|source| *source != mv.to.rank);
            if mv.to.rank != rank {
                out += 1;
                to.push(mv.to.rank);
                continue;
            }
            let before = from.len();
            from.extend(remote);
            if from.len() == before { within += 1 } else { into += 1 }
        }
        let distinct = |list: &mut Vec<RankId>| {
            list.sort_unstable();
            list.dedup();
            list.len()
        };
        Counts {
            moves: trace.moves.len(),
            into,
            from_ranks: distinct(&mut from),
            out,
            to_ranks: distinct(&mut to),
            within,
        }
    }
}

#[derive(Serialize)]
struct Summary {
    algorithm: String,
    ranks: u32,
    rank: u32,
    proof: &'static str,
    same_bits: Option<bool>,
    all_moves: u64,
    #[serde(flatten)]
    counts: Counts,
    stages: Vec<StageTime>,
    total_ms: f64,
    peak_rss_mb: f64,
}

#[derive(Serialize)]
struct StageTime {
    name: &'static str,
    ms: f64,
}

impl Summary {
    fn new(found: &Of, rank: RankId, counts: Counts, stages: &Stages) -> Summary {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        Summary {
            algorithm: found.trace.algorithm.clone(),
            ranks: found.trace.ranks,
            rank: rank.0,
            proof: said::status(found.status),
            same_bits: found.same_bits,
            all_moves: found.all,
            counts,
            stages: stages.done().iter().map(|s| StageTime { name: s.name, ms: ms(s.time) }).collect(),
            total_ms: ms(stages.total()),
            peak_rss_mb: stages.peak() as f64 / f64::from(1 << 20),
        }
    }
}
