//! `rcc compile --rank R`: one rank's program, without those of the others where the algorithm is the same at all ranks.
//!
//! In: a checked program, a shape, a rank. Out: what that rank does, how it was proved, and its steps. Where all ranks do the same
//! one of each orbit is followed instead of all, whatever their number: its steps are a folded plan, which is any rank's program.
//! Else the reason is told, and all are followed, within the usual limits.

use compiler::choice::Choice;
use compiler::chooser::Chosen;
use compiler::diagnostics;
use compiler::elaborate::Request;
use compiler::pipeline::{self, Compiled, CompiledByOne, Kept, Loaded, NotByOne, Proved};
use compiler::symmetry::{self, RankCounts};
use compiler::trace::{Move, Trace};
use plan::display::plural;
use plan::ids::RankId;
use plan::plan::{Plan, ProofStatus};
use plan::verify::{VerifiedFolded, VerifiedPlan};
use rcc::make::{How, Made};
use serde::Serialize;

use crate::allocator;
use crate::args::{self, Stage};
use crate::atomic;
use crate::chosen::{self, Said};
use crate::compile::{self, explain};
use crate::emit;
use crate::failure::Failure;
use crate::output::Output;
use crate::said;
use crate::shape;
use crate::stages::{Stages, Times};

/// More operands than this are not printed as moves of one rank.
const MOST_TOLD: u64 = 20_000_000;

/// What a rank does.
struct Of {
    /// The head of the trace; with `--emit trace` also the moves that write at the rank or read from it, in the order of the program.
    trace: Trace,
    counts: RankCounts,
    status: ProofStatus,
    /// Moves of all ranks.
    all: u64,
    same_bits: Option<bool>,
    steps: Steps,
    /// What was chosen for them; none, where there are none.
    chosen: Option<Chosen>,
}

/// Its steps.
enum Steps {
    /// Not asked for, where they cannot be made alone.
    None,
    /// Its own alone, for all ranks.
    Folded(Box<VerifiedFolded>),
    /// Those of all ranks.
    Whole(Box<VerifiedPlan>),
}

impl Steps {
    /// The plan that they are of.
    fn plan(&self) -> Option<&Plan> {
        match self {
            Steps::None => None,
            Steps::Folded(folded) => Some(&folded.folded().plan),
            Steps::Whole(plan) => Some(plan.plan()),
        }
    }

    /// How many steps and blocks the rank has.
    fn of(&self, rank: RankId) -> Option<(usize, usize)> {
        let plan = self.plan()?;
        let home = match self {
            Steps::Folded(folded) => folded.folded().home(rank).0,
            _ => rank,
        };
        let blocks = plan.blocks_of(home);
        Some((blocks.iter().map(|b| (b.epilogue.end - b.prologue.start) as usize).sum(), blocks.len()))
    }
}

/// Refuses options that speak of a whole plan.
pub(crate) fn refuse(args: &args::Compile) -> Result<(), Failure> {
    let Some(rank) = args.rank else { return Ok(()) };
    let ranks = shape::ranks(&args.ranks);
    if rank >= ranks {
        return Err(Failure::usage(format!("there is no rank {rank}: they are 0 to {}", ranks - 1)));
    }
    let whole = match (args.format.as_str(), args.emit) {
        ("dot", _) => "--target dot",
        (_, Some(Stage::Graph)) => "--emit graph",
        _ => return Ok(()),
    };
    Err(Failure::usage_help(
        format!("{whole} is of all ranks, and --rank {rank} looks at one"),
        "leave out --rank, or print the rank's moves with --emit trace, its steps with --emit plan",
    ))
}

/// What is asked: which rank, of what, made how.
pub(crate) struct Asked<'a> {
    pub(crate) args: &'a args::Compile,
    pub(crate) rank: RankId,
    pub(crate) loaded: &'a Loaded,
    pub(crate) request: &'a Request,
    /// What the schedule comes to.
    pub(crate) choice: &'a Choice,
    pub(crate) how: &'a How,
}

impl Asked<'_> {
    /// Steps are to be seen: those of all ranks, if they cannot be made otherwise.
    fn wants_steps(&self) -> bool {
        self.args.output.is_some() || self.args.emit == Some(Stage::Plan)
    }

    /// Moves alone are to be seen: no steps are made, nor anything chosen for them.
    fn wants_moves_alone(&self) -> bool {
        self.args.emit == Some(Stage::Trace) && self.args.output.is_none() && !self.args.json
    }
}

/// Proves, makes steps, and prints what the rank does.
pub(crate) fn run(asked: &Asked<'_>, stages: &mut Stages, output: &mut Output) -> Result<(), Failure> {
    let Asked { args, rank, loaded, choice, .. } = *asked;
    let busy = output.busy("compiling");
    let found = find(asked, stages, output);
    drop(busy);
    let found = found?;
    match (args.emit, &found.steps) {
        (Some(Stage::Trace), _) => output.text(&emit::trace(&found.trace, &loaded.sources))?,
        (Some(Stage::Plan), Steps::Folded(folded)) => {
            output.text(&plan::display::show_folded(folded, &[rank]).to_string())?;
        }
        (Some(Stage::Plan), Steps::Whole(plan)) => {
            output.text(&plan::display::show(plan.plan()).only(&[rank]).to_string())?;
        }
        _ => {}
    }
    if let Some(path) = &args.output {
        stages.begin("write");
        match &found.steps {
            Steps::Folded(folded) => atomic::write(path, &folded.folded().to_bytes())?,
            Steps::Whole(plan) => atomic::write(path, &plan.plan().to_bytes())?,
            Steps::None => {}
        }
        stages.end();
    }
    if args.json {
        output.json(&Summary::new(&found, rank, choice, stages))?;
    } else if args.emit.is_none() {
        tell(args, &found, rank, choice, output)?;
    }
    compile::timings(args, stages, output)
}

fn tell(
    args: &args::Compile,
    found: &Of,
    rank: RankId,
    choice: &Choice,
    output: &mut Output,
) -> Result<(), Failure> {
    let Of { trace, counts, .. } = found;
    output.line(&said::proved(
        &trace.algorithm,
        &trace.collective,
        &trace.shape,
        &trace.params,
        found.status,
    ))?;
    output.line(&format!(
        "rank {}: {} of {}: {} in from {}, {} out to {}, {} within",
        rank.0,
        counts.moves,
        plural(found.all, "move", "moves"),
        counts.into,
        plural(counts.from_ranks, "rank", "ranks"),
        counts.out,
        plural(counts.to_ranks, "rank", "ranks"),
        counts.within,
    ))?;
    if let (Some((steps, blocks)), Some(plan)) = (found.steps.of(rank), found.steps.plan()) {
        let whose = match &found.steps {
            Steps::Folded(folded) => format!("as at each of {} ranks", folded.folded().order()),
            _ => format!("of {} of all ranks", plan.steps.len()),
        };
        output.line(&format!(
            "its program: {} in {}, {whose}, k_min = {}",
            plural(steps as u64, "step", "steps"),
            plural(blocks as u64, "block", "blocks"),
            plan.header.k_min
        ))?;
        if let Some(line) = said::schedule(choice) {
            output.line(&line)?;
        }
        if let Some(chosen) = &found.chosen {
            output.line(&format!("chosen {}", chosen::line(chosen)))?;
        }
        said::no_size(choice, output);
    }
    if let Some(path) = &args.output {
        let what = match &found.steps {
            Steps::Folded(folded) if folded.folded().rotation.step == 1 => {
                "one rank's program, which is every rank's, "
            }
            Steps::Folded(_) => "the programs of the ranks that stand for all, ",
            _ => "",
        };
        output.line(&format!("{what}written to {}", path.display()))?;
    }
    Ok(())
}

/// By symmetry, or else as a whole.
fn find(asked: &Asked<'_>, stages: &mut Stages, output: &mut Output) -> Result<Of, Failure> {
    let Asked { args, rank, loaded, request, how, .. } = *asked;
    let How { topology, limits, .. } = how;
    let mut at_stage = |stage: pipeline::Stage| stages.begin(stage.name());
    let by_one = if asked.wants_moves_alone() {
        pipeline::prove_by_one(loaded, request, args.bytes, limits, &mut at_stage)
            .map(|proved| (proved, None, None))
    } else {
        let wanted = how.wanted(args.bytes);
        pipeline::compile_by_one_for(loaded, request, &wanted, topology, limits, &mut at_stage)
            .map(|(CompiledByOne { proved, plan }, chosen)| (proved, Some(plan), chosen))
    };
    stages.end();
    let (proved, plan, mut chosen) = match by_one {
        Ok(compiled) => compiled,
        Err(NotByOne::Failed(failure)) => return Err(explain(failure, loaded, output)),
        Err(NotByOne::Unlike(why)) => {
            output.diagnostic(&why, &loaded.sources);
            return whole(asked, stages, output);
        }
    };
    let quotient = &proved.quotient;
    let (counts, operands) = symmetry::count_of_rank(quotient, rank);
    let mut trace = head(&quotient.trace);
    if args.emit == Some(Stage::Trace) {
        if operands > MOST_TOLD {
            return Err(Failure::usage(format!(
                "the moves of rank {} have {operands} operands: more than {MOST_TOLD} are not printed",
                rank.0
            )));
        }
        fill(&mut trace, quotient, &symmetry::of_rank(quotient, rank));
    }
    let mut status = ProofStatus::BySymmetry;
    let steps = match plan {
        None => Steps::None,
        Some(Ok(folded)) => Steps::Folded(Box::new(folded)),
        Some(Err(why)) => {
            output.diagnostic(&diagnostics::symmetry::unfolded(&why, &quotient.trace), &loaded.sources);
            if asked.wants_steps() {
                let made = how.make(loaded, request, args.bytes, &mut |stage| {
                    stages.begin(stage.name());
                    allocator::at(stage);
                });
                stages.end();
                let made = made.map_err(|failure| explain(failure, loaded, output))?;
                status = ProofStatus::AllRanks;
                chosen = Some(made.chosen);
                Steps::Whole(Box::new(made.compiled.plan))
            } else {
                Steps::None
            }
        }
    };
    let same_bits = proved.proof.same_bits;
    Ok(Of { trace, counts, status, all: quotient.moves, same_bits, steps, chosen })
}

/// As a whole: every rank is followed, and steps are made only if they are asked for.
fn whole(asked: &Asked<'_>, stages: &mut Stages, output: &mut Output) -> Result<Of, Failure> {
    let Asked { args, rank, loaded, request, how, .. } = *asked;
    let mut at_stage = |stage: pipeline::Stage| {
        stages.begin(stage.name());
        allocator::at(stage);
    };
    let made = match asked.wants_steps() {
        true => how.make(loaded, request, args.bytes, &mut at_stage).and_then(|made| {
            let (trace, _) = pipeline::traced(loaded, request, args.bytes, &how.limits)?;
            let Made { compiled: Compiled { proved, plan }, chosen, .. } = made;
            let Kept { proof, warnings, .. } = proved;
            Ok((trace, proof, warnings, Steps::Whole(Box::new(plan)), Some(chosen)))
        }),
        false => pipeline::prove(loaded, request, &how.limits, &mut at_stage).map(|proved| {
            let Proved { trace, proof, warnings, .. } = proved;
            (trace, proof, warnings, Steps::None, None)
        }),
    };
    stages.end();
    let (trace, proof, warnings, steps, chosen) = made.map_err(|failure| explain(failure, loaded, output))?;
    for warning in &warnings {
        output.diagnostic(warning, &loaded.sources);
    }
    let all = trace.moves.len() as u64;
    let same_bits = proof.same_bits;
    let trace = touching(trace, rank);
    let counts = count(&trace, rank);
    Ok(Of { trace, counts, status: ProofStatus::AllRanks, all, same_bits, steps, chosen })
}

/// A trace without its moves.
fn head(trace: &Trace) -> Trace {
    Trace { origins: trace.origins.clone(), ..trace.without_moves() }
}

/// Puts one rank's moves into a trace that has none.
fn fill(trace: &mut Trace, quotient: &symmetry::Quotient, moves: &[symmetry::RankMove]) {
    for mv in moves {
        let first_source = trace.sources.len() as u32;
        trace.sources.extend_from_slice(&mv.sources);
        let like = &quotient.trace.moves[mv.of.0 as usize];
        trace.moves.push(Move { to: mv.to, first_source, ..*like });
    }
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

/// How many moves of such a trace there are, and with how many other ranks.
fn count(trace: &Trace, rank: RankId) -> RankCounts {
    let (mut from, mut to) = (Vec::new(), Vec::new());
    let mut counts = RankCounts { moves: trace.moves.len() as u64, ..RankCounts::default() };
    for mv in &trace.moves {
        if mv.to.rank != rank {
            counts.out += 1;
            to.push(mv.to.rank);
            continue;
        }
        let before = from.len();
        let sources = trace.sources(mv).iter().map(|source| source.rank);
        from.extend(sources.filter(|source| *source != mv.to.rank));
        if from.len() == before { counts.within += 1 } else { counts.into += 1 }
    }
    let distinct = |mut list: Vec<RankId>| {
        list.sort_unstable();
        list.dedup();
        list.len() as u64
    };
    (counts.from_ranks, counts.to_ranks) = (distinct(from), distinct(to));
    counts
}

#[derive(Serialize)]
struct Summary {
    algorithm: String,
    ranks: u32,
    rank: u32,
    proof: &'static str,
    same_bits: Option<bool>,
    all_moves: u64,
    moves: u64,
    into: u64,
    from_ranks: u64,
    out: u64,
    to_ranks: u64,
    within: u64,
    /// Of the rank; null where no steps were made.
    steps: Option<usize>,
    blocks: Option<usize>,
    k_min: Option<u32>,
    /// Which part of the schedule holds.
    schedule: Option<String>,
    /// What the compiler chose; null where no steps were made.
    chosen: Option<Said>,
    #[serde(flatten)]
    times: Times,
}

impl Summary {
    fn new(found: &Of, rank: RankId, choice: &Choice, stages: &Stages) -> Summary {
        let RankCounts { moves, into, from_ranks, out, to_ranks, within } = found.counts;
        let of = found.steps.of(rank);
        Summary {
            algorithm: found.trace.algorithm.clone(),
            ranks: found.trace.ranks,
            rank: rank.0,
            proof: said::status(found.status),
            same_bits: found.same_bits,
            all_moves: found.all,
            moves,
            into,
            from_ranks,
            out,
            to_ranks,
            within,
            steps: of.map(|(steps, _)| steps),
            blocks: of.map(|(_, blocks)| blocks),
            k_min: found.steps.plan().map(|plan| plan.header.k_min),
            schedule: choice.said().map(str::to_string),
            chosen: found.chosen.as_ref().map(|chosen| Said::whole(chosen, &[])),
            times: stages.times(),
        }
    }
}
