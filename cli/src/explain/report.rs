//! What is told of one plan at one size.
//!
//! In: a plan, a machine, a size. Out: a [`Report`], which is the JSON document's element and what `text` prints.

use compiler::chooser::{self, Untried};
use compiler::cost::Program;
use compiler::cost::bound::{self, Bound};
use compiler::cost::count::{Counts, RankCounts, count};
use compiler::cost::estimate::{self, EstimateError, Search};
use compiler::cost::topology::protocol_name;
use plan::plan::{ChannelKind, ProofStatus};
use serde::Serialize;

use super::measure::Measured;
use super::subject::Subject;
use crate::args;
use crate::chosen::{self, Other};
use crate::failure::Failure;

/// One plan at one size.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Report {
    pub(super) algorithm: String,
    pub(super) collective: String,
    pub(super) ranks: u32,
    pub(super) shape: String,
    pub(super) topology: String,
    #[serde(skip)]
    pub(super) about: String,
    pub(super) bytes: u64,
    pub(super) count: u64,
    pub(super) dtype: &'static str,
    pub(super) time_us: f64,
    pub(super) algbw_gbps: f64,
    pub(super) busbw_gbps: f64,
    /// The least times that the promise allows on the topology, and how many times as long this takes.
    pub(super) bandwidth_bound_us: f64,
    pub(super) latency_bound_us: f64,
    pub(super) bandwidth_ratio: Option<f64>,
    pub(super) latency_ratio: Option<f64>,
    /// Whether the time is what following every event gives.
    pub(super) exact: bool,
    /// What calls take on this machine, and how far two must differ to be told apart (the sum of theirs).
    #[serde(flatten)]
    pub(super) measured: Option<Measured>,
    pub(super) counts: Counted,
    pub(super) plan: Facts,
    pub(super) chosen: Chosen,
    pub(super) path: Path,
}

/// What was counted, and the least that is possible.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Counted {
    pub(super) rounds: u64,
    pub(super) rounds_least: u32,
    /// Of the busiest rank.
    pub(super) bytes_sent: u64,
    pub(super) bytes_sent_least: u64,
    pub(super) bytes_received: u64,
    pub(super) bytes_received_least: u64,
    pub(super) bytes_total: u64,
    pub(super) bytes_total_least: u64,
    /// Steps of a rank, the fewest and the most; all with what one copy of the program does.
    pub(super) steps: [u64; 2],
    pub(super) sends: [u64; 2],
    pub(super) chain: u64,
    pub(super) messages: u64,
    pub(super) tokens: u64,
    pub(super) links: usize,
    pub(super) busiest_link: Option<Link>,
}

/// Messages from one rank to another.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Link {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: u64,
    pub(super) messages: u64,
}

/// What the plan is.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Facts {
    pub(super) blocks: u32,
    pub(super) channels: u32,
    pub(super) cells: u32,
    pub(super) scratch_cells: u32,
    pub(super) k_min: u32,
    pub(super) proof: &'static str,
    /// Which part of the algorithm's schedule holds; none: it has none.
    pub(super) schedule: Option<String>,
    /// Its `when`s, and why they hold or not.
    pub(super) whens: Vec<When>,
}

/// A `when`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct When {
    pub(super) text: String,
    pub(super) verdict: &'static str,
}

/// How it is run, and what else was tried.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Chosen {
    pub(super) copies: u32,
    pub(super) slots: u32,
    pub(super) slice_bytes: u32,
    pub(super) slices: u64,
    pub(super) protocol: &'static str,
    /// The most blocks of a rank, slots that the plan counts on, direct access.
    pub(super) blocks: u32,
    pub(super) counted_slots: u32,
    pub(super) direct: &'static str,
    pub(super) multicast: String,
    pub(super) cut: &'static str,
    /// Which of these the plan or the command line says.
    pub(super) given: Vec<&'static str>,
    /// What was not tried, and why.
    pub(super) untried: Option<String>,
    pub(super) tried: Vec<Other>,
    /// The same in a line.
    #[serde(skip)]
    pub(super) why: String,
}

/// What the time is spent on.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Path {
    pub(super) moving_us: f64,
    pub(super) latency_us: f64,
    pub(super) queueing_us: f64,
    pub(super) cores_us: f64,
    pub(super) hops: u64,
    pub(super) lines: Vec<Leg>,
}

/// A line of the source on the critical path.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Leg {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) text: String,
    pub(super) events: u64,
    pub(super) bytes: u64,
    pub(super) us: f64,
}

/// Counts and estimates a plan.
pub(super) fn report(subject: &Subject, bytes: u64, args: &args::Explain) -> Result<Report, Failure> {
    let plan = &*subject.plan;
    let header = &plan.header;
    let convention = subject.convention();
    let count_ = convention.count(bytes, args.dtype);
    let size = convention.bytes(count_, args.dtype).unwrap_or(0);
    let block = count_.saturating_mul(args.dtype.size().into());
    let (chosen, machine) = (&subject.chosen, &*subject.machine);
    let Some((call, seconds)) = chosen.best else {
        let why = match &chosen.untried {
            Some(Untried::Model(error)) => refused(error),
            // A machine is always named here, so that the model is always asked.
            why => Failure::Machine(format!("{} is not followed: {why:?}", subject.name())),
        };
        return Err(why);
    };
    let program = Program::new(plan);
    let found = Search { call, seconds, tried: Vec::new(), events: 0 };
    let estimate = estimate::follow(&program, machine, found);
    let counts = count(&program, count_, args.dtype);
    let least = bound::bound(&plan.promise, header.ranks);
    let (algbw_gbps, busbw_gbps) = convention.bandwidths(size, estimate.seconds);
    let ratio = |bound: f64| (bound > 0.0).then(|| estimate.seconds / bound);

    let path = &estimate.path;
    Ok(Report {
        algorithm: subject.name(),
        collective: header.collective.clone(),
        ranks: header.ranks,
        shape: subject.shape(),
        topology: machine.name.clone(),
        about: machine.about.clone(),
        bytes: size,
        count: count_,
        dtype: args.dtype.name(),
        time_us: estimate.seconds * 1e6,
        algbw_gbps,
        busbw_gbps,
        bandwidth_bound_us: estimate.least.bandwidth * 1e6,
        latency_bound_us: estimate.least.latency * 1e6,
        bandwidth_ratio: ratio(estimate.least.bandwidth),
        latency_ratio: ratio(estimate.least.latency),
        exact: estimate.exact,
        measured: None,
        counts: counted(&counts, &least, block),
        plan: facts(subject),
        chosen: Chosen {
            copies: call.copies,
            slots: call.slots,
            slice_bytes: call.slice_bytes,
            slices: estimate.slices,
            protocol: protocol_name(chosen.protocol),
            blocks: chosen.layout.blocks,
            counted_slots: chosen.layout.counted_slots,
            direct: chosen.layout.access(),
            multicast: chooser::spread(chosen.layout.multicast),
            cut: chooser::cut(chosen.layout.cut),
            given: chosen.given.clone(),
            untried: chosen.untried.as_ref().map(chosen::untried),
            tried: chosen.tried.iter().map(Other::new).collect(),
            why: chosen::why(chosen),
        },
        path: Path {
            moving_us: path.moving * 1e6,
            latency_us: path.latency * 1e6,
            queueing_us: path.queueing * 1e6,
            cores_us: path.cores * 1e6,
            hops: path.hops,
            lines: path
                .legs
                .iter()
                .map(|leg| Leg {
                    file: leg.file.clone(),
                    line: leg.line,
                    text: leg.text.clone(),
                    events: leg.events,
                    bytes: leg.bytes,
                    us: leg.seconds * 1e6,
                })
                .collect(),
        },
    })
}

fn counted(counts: &Counts, least: &Bound, block: u64) -> Counted {
    let values = |of: fn(&RankCounts) -> u64| {
        let all = || counts.ranks.iter().map(of);
        [all().min().unwrap_or(0), all().max().unwrap_or(0)]
    };
    let blocks = |blocks: f64| (blocks * block as f64).ceil() as u64;
    let busiest =
        counts.links.iter().max_by_key(|&(link, traffic)| (traffic.bytes, std::cmp::Reverse(*link)));
    Counted {
        rounds: counts.rounds,
        rounds_least: least.rounds,
        bytes_sent: values(|rank| rank.sent.bytes)[1],
        bytes_sent_least: blocks(least.sent),
        bytes_received: values(|rank| rank.received.bytes)[1],
        bytes_received_least: blocks(least.received),
        bytes_total: counts.ranks.iter().map(|rank| rank.sent.bytes).fold(0, u64::saturating_add),
        bytes_total_least: blocks(least.total),
        steps: values(|rank| rank.steps),
        sends: values(|rank| rank.sent.messages),
        chain: counts.chain,
        messages: counts.links.values().map(|traffic| traffic.messages).sum(),
        tokens: counts.tokens,
        links: counts.links.len(),
        busiest_link: busiest.map(|(&(from, to), traffic)| Link {
            from,
            to,
            bytes: traffic.bytes,
            messages: traffic.messages,
        }),
    }
}

fn facts(subject: &Subject) -> Facts {
    use compiler::choice::Verdict;
    let plan = &*subject.plan;
    let header = &plan.header;
    let mut blocks = vec![0; header.ranks as usize];
    plan.blocks.iter().for_each(|block| blocks[block.rank.index()] += 1);
    let mut channels = vec![0; header.ranks as usize];
    for channel in plan.channels.iter().filter(|channel| channel.kind == ChannelKind::Slots) {
        channels[plan.blocks[channel.writer.index()].rank.index()] += 1;
    }
    let whens = subject.choice.iter().flat_map(|choice| &choice.tried).map(|tried| When {
        text: tried.text.clone(),
        verdict: match tried.verdict {
            Verdict::Holds => "holds",
            Verdict::OtherSize => "is for other sizes",
            Verdict::Later => "comes after one that holds",
            Verdict::NoSize => "needs a size",
        },
    });
    Facts {
        blocks: blocks.into_iter().max().unwrap_or(0),
        channels: channels.into_iter().max().unwrap_or(0),
        cells: header.cells,
        scratch_cells: header.scratch_cells.iter().max().copied().unwrap_or(0),
        k_min: header.k_min,
        proof: match header.proof {
            ProofStatus::AllRanks => "all ranks",
            ProofStatus::BySymmetry => "by symmetry",
            ProofStatus::None => "none",
        },
        schedule: subject.choice.as_ref().and_then(|choice| choice.said()).map(str::to_string),
        whens: whens.collect(),
    }
}

fn refused(error: &EstimateError) -> Failure {
    match error {
        EstimateError::TooManyRanks { .. }
        | EstimateError::Protocol { .. }
        | EstimateError::Slots { .. }
        | EstimateError::TooLong { .. } => Failure::usage(error.to_string()),
        EstimateError::Stuck { .. } => Failure::Machine(error.to_string()),
    }
}
