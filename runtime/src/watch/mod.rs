//! Reports: who waits where, and whose fault it is.
//!
//! In: the board, the counters of all channels, and the plan. Out: a position for every rank, and the error for a
//! deadline or a mismatch. The one hard idea: all that a rank waits for can be read from shared memory, so any rank
//! can say of any other whether it has what it needs; a rank that has, and does not go on, is at fault.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;
use std::time::Duration;

use plan::ids::{BlockId, ChannelId, RankId, StepId};
use plan::plan::{ChannelKind, Operand, Plan, Section};

use crate::call::difference;
use crate::error::{Error, Kind, Place, Position, State};
use crate::memory::board::{At, CALLS};
use crate::memory::hall::Hall;
use crate::memory::segment::Segment;

/// Where every rank stands.
pub fn positions(plan: &Plan, segment: &Segment) -> Vec<Position> {
    (0..plan.header.ranks).map(|rank| position(plan, segment, RankId(rank))).collect()
}

/// The ranks that have not entered call `call`.
pub fn absent(hall: &Hall, call: u64) -> Vec<u32> {
    let entered = |&r: &u32| hall.rank(RankId(r)).entered.load(Ordering::Acquire) >= call;
    (0..hall.shape().ranks()).filter(|r| !entered(r)).collect()
}

/// The error for a call that some rank has not entered for `waited`.
pub fn not_entered(hall: &Hall, call: u64, waited: Duration) -> Error {
    let absent = absent(hall, call);
    let message = format!("{} not entered call {call} for {waited:.1?}", name(&absent, "has", "have"));
    Error::new(Kind::Late, message).of(absent)
}

/// The error for a call in which nothing has moved for `waited`, as `rank` sees it.
pub fn nothing_moves(plan: &Plan, segment: &Segment, rank: RankId, call: u64, waited: Duration) -> Error {
    if !absent(segment.hall(), call).is_empty() {
        return not_entered(segment.hall(), call, waited);
    }
    let standing: Vec<u32> = positions(plan, segment)
        .into_iter()
        .filter(|p| p.rank != rank.0)
        .filter(|p| idle(&p.state))
        .map(|p| p.rank)
        .collect();
    stalled(call, waited, standing)
}

/// The error for a call that all have entered, and in which nothing moves; `standing` could, as far as is known.
pub fn stalled(call: u64, waited: Duration, standing: Vec<u32>) -> Error {
    let message = if standing.is_empty() {
        format!("nothing has moved for {waited:.1?} in call {call}")
    } else {
        format!(
            "nothing has moved for {waited:.1?} in call {call}: {} all it needs and does not go on",
            name(&standing, "has", "each have")
        )
    };
    Error::new(Kind::Stalled, message).of(standing)
}

/// An error of a call without a plan, as `rank` sees it: which calls it and the others are in.
pub fn seen(hall: &Hall, rank: RankId, mut error: Error) -> Error {
    let all = (0..hall.shape().ranks()).map(|r| outline(hall, RankId(r)).0);
    let (own, others) = all.partition::<Vec<Position>, _>(|position| position.rank == rank.0);
    error.seen = own.into_iter().next();
    error.others = others;
    error
}

/// A number that changes whenever a rank goes on: in a step, to the next call, or with its work between calls.
pub fn motion(segment: &Segment) -> u64 {
    let mut hasher = DefaultHasher::new();
    for rank in (0..segment.shape().ranks()).map(RankId) {
        let words = segment.rank(rank);
        [&words.entered, &words.left, &words.barriers, &words.work]
            .map(|word| word.load(Ordering::Relaxed))
            .hash(&mut hasher);
        segment.blocks(rank).iter().for_each(|block| block.read().hash(&mut hasher));
    }
    hasher.finish()
}

/// The error for a run in which no rank at all has gone on for `waited`, as its launcher sees it; `running` says which
/// have not ended.
pub fn all_stand_still(
    plan: &Plan,
    segment: &Segment,
    running: impl Fn(u32) -> bool,
    waited: Duration,
) -> Error {
    let mut there = positions(plan, segment);
    there.retain(|p| running(p.rank));
    // Those of which something can be said; if of none, any may be at fault.
    if there.iter().any(at_fault) {
        there.retain(at_fault);
    }
    let culprits: Vec<u32> = there.iter().map(|p| p.rank).collect();
    let message = format!("nothing has moved for {waited:.1?}: {} not go on", name(&culprits, "does", "do"));
    Error::new(Kind::Stalled, message).of(culprits)
}

/// The error for a barrier between calls that not all ranks have come to.
pub fn late_at_barrier(hall: &Hall, rank: RankId, waited: Duration) -> Error {
    let barriers = |r: u32| hall.rank(RankId(r)).barriers.load(Ordering::Relaxed);
    let own = barriers(rank.0);
    let absent: Vec<u32> = (0..hall.shape().ranks()).filter(|&r| barriers(r) < own).collect();
    let message = format!("{} not come to the next call for {waited:.1?}", name(&absent, "has", "have"));
    Error::new(Kind::Late, message).of(absent)
}

/// The error for a message from `from` that belongs to another call than that of `rank`.
pub fn mismatch(hall: &Hall, rank: RankId, from: RankId, call: u64) -> Error {
    let record = |r: RankId| hall.rank(r).recorded(call);
    let (own, other) = (record(rank), record(from));
    let what = match (&own, &other) {
        // Where one reaches into the other's memory, both must lay out their buffers alike.
        (Some(a), Some(b)) if difference(a, b).is_empty() && a.in_place != b.in_place => "form".to_string(),
        (Some(a), Some(b)) => difference(a, b),
        _ => String::new(),
    };
    let what = if what.is_empty() { "call".to_string() } else { what };
    let text = |record: Option<crate::call::Record>| record.map_or("unknown".to_string(), |r| r.to_string());
    let message = format!(
        "ranks {} and {} differ in {what}\n  rank {}: {}\n  rank {}: {}",
        rank.0,
        from.0,
        rank.0,
        text(own),
        from.0,
        text(other)
    );
    Error::new(Kind::Mismatch, message).of(vec![from.0, rank.0])
}

/// A rank that will never enter `call`, or never end it: it has left, or its process has ended.
pub fn gone(hall: &Hall, rank: RankId, call: u64) -> Option<RankId> {
    let left = |&peer: &RankId| {
        let words = hall.rank(peer);
        let never = words.gone.load(Ordering::Acquire) != 0 && words.entered.load(Ordering::Acquire) < call;
        // Whose process ended when it had done its part is missed by nobody. (Looked at in this order: it does nothing any more.)
        let died = || ended(words.pid.load(Ordering::Relaxed)) && words.left.load(Ordering::Acquire) < call;
        peer != rank && (never || died())
    };
    (0..hall.shape().ranks()).map(RankId).find(left)
}

/// Whether a rank makes no call any more: it has left, or its process has ended.
pub fn lost(hall: &Hall, rank: RankId) -> bool {
    let words = hall.rank(rank);
    words.gone.load(Ordering::Acquire) != 0 || ended(words.pid.load(Ordering::Relaxed))
}

/// The error for a rank that is gone; `others` says where that is noticed.
pub fn has_gone(hall: &Hall, from: RankId, others: &str) -> Error {
    let process = ended(hall.rank(from).pid.load(Ordering::Relaxed));
    let how = if process { "'s process has ended" } else { " has left" };
    let message = format!("rank {}{how}, and {others}", from.0);
    Error::new(Kind::PeerDied, message).culprit(from.0)
}

/// What a rank has come to, in the order in which all ranks do: calls, barriers, and exchanges in which something is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    calls: u64,
    barriers: u64,
    exchanges: u64,
}

fn count(hall: &Hall, rank: RankId) -> Count {
    let words = hall.rank(rank);
    // Of later events first: what is read then is not older than they are.
    let barriers = words.barriers.load(Ordering::Acquire);
    let exchanges = hall.desk(rank).said.load(Ordering::Acquire);
    Count { calls: words.entered.load(Ordering::Acquire), barriers, exchanges }
}

/// The error for a rank that has come to something that `rank` has not come to, while `rank` has come to something that the other has not: they
/// differ in the order of what they do.
pub fn elsewhere(hall: &Hall, rank: RankId) -> Option<Error> {
    let own = count(hall, rank);
    let (other, theirs) = (0..hall.shape().ranks()).map(RankId).find_map(|peer| {
        // Both count upwards only: what is behind now and was ahead before is read twice.
        let (first, second) = (count(hall, peer), count(hall, peer));
        let counts = |c: Count| [c.calls, c.barriers, c.exchanges];
        let pairs = || counts(own).into_iter().zip(counts(second));
        let crossed = pairs().any(|(a, b)| a > b) && pairs().any(|(a, b)| a < b);
        (peer != rank && first == second && crossed).then_some((peer, second))
    })?;
    let text = |c: Count| {
        let Count { calls, barriers, exchanges } = c;
        format!("{calls} calls, {barriers} barriers, {exchanges} exchanges to open plans or communicators")
    };
    let message = format!(
        "ranks {} and {} differ in the order of what they do\n  rank {} has come to: {}\n  rank {} has come to: {}",
        rank.0,
        other.0,
        rank.0,
        text(own),
        other.0,
        text(theirs)
    );
    Some(Error::new(Kind::Mismatch, message).of(vec![other.0, rank.0]))
}

/// A rank that has entered `call` with something else than `rank` has, if their records tell; or a call before, where this rank's was a
/// small one (what comes before is part of a small call: it may be the reason that this one does not end). And which call.
pub fn otherwise(hall: &Hall, rank: RankId, call: u64) -> Option<(RankId, u64)> {
    let words = hall.rank(rank);
    let earlier =
        (1..CALLS as u64).filter_map(|back| call.checked_sub(back)).filter(|&at| words.was_small(at));
    std::iter::once(call).chain(earlier).find_map(|at| {
        let own = words.recorded(at)?;
        let differs = |&peer: &RankId| {
            let words = hall.rank(peer);
            words.entered.load(Ordering::Acquire) >= at
                && words.recorded(at).is_some_and(|record| !difference(&own, &record).is_empty())
        };
        let peer = (0..hall.shape().ranks()).map(RankId).find(differs)?;
        Some((peer, at))
    })
}

/// Whether a rank that stands still has nobody to wait for, or cannot run.
fn at_fault(position: &Position) -> bool {
    !position.note.is_empty() || idle(&position.state)
}

/// Whether some block has all it needs, or has not even begun, and yet stands still.
fn idle(state: &State) -> bool {
    match state {
        State::At(places) => places.is_empty() || places.iter().any(|place| place.waits.is_empty()),
        State::Outside | State::Finished => false,
    }
}

fn position(plan: &Plan, segment: &Segment, rank: RankId) -> Position {
    let (outline, outside) = outline(segment.hall(), rank);
    if outside {
        return outline;
    }
    let mut places: Vec<Place> = Vec::new();
    let mut finished = true;
    let first = plan.blocks.partition_point(|b| b.rank < rank);
    for (b, block) in plan.blocks_of(rank).iter().enumerate() {
        for copy in 0..plan.header.copies {
            let id = BlockId::new(first + b);
            let (at, iteration) = segment.block(rank, id, copy).read();
            finished &= at == At::Done;
            // A word read while a rank dies may be anything.
            if let At::Step(step) = at
                && (step as usize) < plan.steps.len()
            {
                let waiting = needs(plan, segment, (rank, id), copy, StepId(step), iteration);
                if places.len() < State::SHOWN {
                    places.push(place(plan, block.position, StepId(step), iteration, &waiting));
                } else if waiting.is_empty() && places.iter().all(|place| !place.waits.is_empty()) {
                    // Of very many blocks, one that has all it needs tells most.
                    places.pop();
                    places.push(place(plan, block.position, StepId(step), iteration, &waiting));
                }
            }
        }
    }
    let state = if finished { State::Finished } else { State::At(places) };
    Position { state, ..outline }
}

/// Where a rank stands as far as can be told without a plan; whether it is outside of any call.
fn outline(hall: &Hall, rank: RankId) -> (Position, bool) {
    let words = hall.rank(rank);
    let (entered, left) = (words.entered.load(Ordering::Relaxed), words.left.load(Ordering::Relaxed));
    let note = process_note(words.pid.load(Ordering::Relaxed));
    let outside = entered == left;
    let state = if outside { State::Outside } else { State::At(Vec::new()) };
    (Position { rank: rank.0, call: entered, state, note }, outside)
}

fn place(plan: &Plan, block: u32, id: StepId, iteration: u64, waits: &[String]) -> Place {
    let (line, text) = source(plan, id);
    Place { block, step: id.0, iteration, line, text, waits: waits.join(" and ") }
}

/// `file:line` and the text of a step's origin.
fn source(plan: &Plan, id: StepId) -> (String, String) {
    let span = plan.spans.spans.get(plan.steps[id.index()].span.index());
    match span {
        Some(span) => {
            let file = plan.spans.files.get(span.file as usize).map_or("?", String::as_str);
            (format!("{file}:{}", span.line), span.text.clone())
        }
        None => ("?".to_string(), String::new()),
    }
}

/// What a step of a block still lacks, each as `for …`.
fn needs(
    plan: &Plan,
    segment: &Segment,
    (rank, block): (RankId, BlockId),
    copy: u32,
    id: StepId,
    iteration: u64,
) -> Vec<String> {
    let step = &plan.steps[id.index()];
    let rank_of = |block: BlockId| plan.blocks[block.index()].rank;
    let memory_of = |channel: ChannelId| segment.channel(segment.shape().instance(channel, copy));
    let mut needs = Vec::new();
    for &operand in plan.src(step) {
        let Operand::Channel(channel) = operand else { continue };
        let description = &plan.channels[channel.index()];
        let Some(reader) = plan.readers(description).iter().position(|&b| b == block) else {
            continue;
        };
        let memory = memory_of(channel);
        let published = memory.head.published.load(Ordering::Relaxed);
        if published <= memory.tails[reader].consumed.load(Ordering::Relaxed) {
            let what = match description.kind {
                ChannelKind::Slots => "message",
                ChannelKind::Counter => "token",
            };
            needs.push(format!("for a {what} from rank {}", rank_of(description.writer).0));
        }
    }
    for &operand in plan.dst(step) {
        let Operand::Channel(channel) = operand else { continue };
        let other = segment.shape().traded(channel);
        let memory = memory_of(channel);
        let published = memory.head.published.load(Ordering::Relaxed);
        if let Some(other) = other {
            // Its credit is what this rank has received of the other.
            let received =
                memory_of(other).tails.first().map_or(0, |tail| tail.consumed.load(Ordering::Relaxed));
            if published.saturating_sub(received) >= memory.credit {
                let from = rank_of(plan.channels[other.index()].writer);
                needs.push(format!("for a message from rank {}, in whose slot it writes", from.0));
            }
            continue;
        }
        for (tail, &reader) in memory.tails.iter().zip(plan.readers(&plan.channels[channel.index()])) {
            if published.saturating_sub(tail.consumed.load(Ordering::Relaxed)) >= memory.credit {
                needs.push(format!("for rank {} to read what was sent", rank_of(reader).0));
            }
        }
    }
    for &wanted in plan.waits(step) {
        let Some((owner, once)) = holder(plan, rank, wanted) else { continue };
        let (at, there) = segment.block(rank, owner, copy).read();
        let done = match at {
            At::Done => true,
            // A step of a prologue has one run, which every later step comes after.
            At::Step(step) => step > wanted.0 && (once || there == iteration) || (!once && there > iteration),
            At::Nowhere => false,
        };
        if !done {
            let (line, _) = source(plan, wanted);
            needs.push(format!("for block {} to finish {line}", plan.blocks[owner.index()].position));
        }
    }
    needs
}

/// The block of a rank that has a step, and whether the step runs once in a call.
fn holder(plan: &Plan, rank: RankId, step: StepId) -> Option<(BlockId, bool)> {
    let first = plan.blocks.partition_point(|b| b.rank < rank);
    plan.blocks_of(rank).iter().enumerate().find_map(|(b, block)| {
        let section = Section::ALL.into_iter().find(|&s| block.section(s).contains(&step.0))?;
        Some((BlockId::new(first + b), section != Section::Body))
    })
}

/// Whether a rank's process has ended; one that is a thread (0) has not.
pub fn ended(pid: u32) -> bool {
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat"));
    pid != 0
        && stat()
            .map_or(true, |stat| stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X'])))
}

/// What the kernel says about a rank's process, if that explains why it does not go on.
fn process_note(pid: u32) -> String {
    if pid == 0 {
        return String::new();
    }
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return "its process has ended".to_string();
    };
    match stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()) {
        Some('T' | 't') => "its process is stopped, by a signal or a debugger".to_string(),
        Some('Z' | 'X') => "its process has ended".to_string(),
        _ => String::new(),
    }
}

/// `rank 3 has` or `ranks 3, 4 have`.
fn name(ranks: &[u32], one: &str, more: &str) -> String {
    match ranks {
        [] => format!("some rank {one}"),
        [rank] => format!("rank {rank} {one}"),
        _ => {
            let shown: Vec<String> = ranks.iter().take(16).map(u32::to_string).collect();
            let rest = if ranks.len() > 16 { ", …" } else { "" };
            format!("ranks {}{rest} {more}", shown.join(", "))
        }
    }
}
