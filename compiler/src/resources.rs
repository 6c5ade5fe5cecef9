//! Which move needs more of a machine than a rank has: V7 (docs/plan.md §7), told in terms of the program.
//!
//! In: a plan of all ranks or a folded one, not verified yet, a target; if it asks too much of that, the trace that it comes from.
//! Out: a [`Fault`] with the move, in the order of the program, whose block, channel end or connection is one too many. What
//! stands for all ranks needs what each of them does; only who is at the other end has to be taken round, and with that the move.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::Hash;

use plan::fold::Folded;
use plan::ids::{BlockId, RankId, SpanId};
use plan::plan::{Channel, Operand, Plan, Section, Step};
use plan::verify::Target;
use rustc_hash::FxHashMap;

use crate::schedule::spans::{self, Spans};
use crate::source::Sources;
use crate::symmetry::Quotient;
use crate::trace::{MoveId, Trace};

/// A rank that needs more than it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The rank, the first there is.
    pub rank: RankId,
    /// Of what.
    pub what: Resource,
    /// How many it needs, all copies together.
    pub needs: u32,
    /// How many it has.
    pub has: u32,
    /// Copies of the program, each of which needs its own blocks and channels.
    pub copies: u32,
    /// Whose.
    pub target: String,
    /// The move that needs one too many; none: no single move is to blame.
    pub mv: Option<MoveId>,
    /// How many times that move is taken round to be the one at the rank, where one stands for all.
    pub times: u32,
    /// The rank at the other end of what is too many.
    pub peer: Option<RankId>,
}

/// What a rank has only so many of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Threads of control.
    Blocks,
    /// Ends of channels, written or read.
    ChannelEnds,
    /// Other ranks that it exchanges messages with, or reaches into the memory of.
    Connections,
}

/// A rank that needs too much, by numbers alone.
pub(crate) struct Over {
    rank: RankId,
    what: Resource,
    /// By one of `each` copies.
    needs: u32,
    has: u32,
    each: u32,
}

/// Something that a rank needs: how it is told from others, and the move that asks for it first.
struct Need {
    /// The first move, or none.
    mv: Option<Turned>,
    peer: Option<RankId>,
}

/// A move, taken round so many times: never, in a plan of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turned {
    mv: MoveId,
    times: u32,
}

/// The first rank that needs too much, of blocks, then of channel ends, then of connections.
pub(crate) fn over(plan: &Plan, target: &Target) -> Option<Over> {
    first_over(&World { plan, folded: None }, target)
}

/// The same of the ranks that stand for all. `quotient` has their moves.
pub(crate) fn over_folded(
    folded: &Folded,
    quotient: &Quotient,
    sources: &Sources,
    target: &Target,
) -> Option<Fault> {
    let world = World { plan: &folded.plan, folded: Some((folded, quotient)) };
    first_over(&world, target).map(|over| over.in_world(&world, &quotient.trace, sources, target))
}

fn first_over(world: &World<'_>, target: &Target) -> Option<Over> {
    let copies = world.plan.header.copies;
    let others = world.plan.header.ranks.saturating_sub(1);
    for (what, has) in [
        (Resource::Blocks, target.blocks_per_rank),
        (Resource::ChannelEnds, target.channel_ends_per_rank),
        (Resource::Connections, target.connections_per_rank),
    ] {
        // No rank meets more others than there are: they need not be counted, of which there may be millions.
        if what == Resource::Connections && others <= has {
            continue;
        }
        let each = if what == Resource::Connections { 1 } else { copies };
        let needs = count(world, what);
        let over = |&(_, &needs): &(usize, &u32)| needs.saturating_mul(each) > has;
        let Some((rank, &needs)) = needs.iter().enumerate().find(over) else { continue };
        return Some(Over { rank: RankId::new(rank), what, needs, has, each });
    }
    None
}

impl Over {
    /// With the move that is to blame, of a plan of all ranks.
    pub(crate) fn blamed(self, plan: &Plan, trace: &Trace, sources: &Sources, target: &Target) -> Fault {
        self.in_world(&World { plan, folded: None }, trace, sources, target)
    }

    fn in_world(self, world: &World<'_>, trace: &Trace, sources: &Sources, target: &Target) -> Fault {
        let Over { rank, what, needs, has, each } = self;
        let mut all = Moves::new(world, trace, &spans::intern(trace, sources)).needs(rank, what);
        // In the order of the program; what no move asks for comes first, and is never to blame.
        all.sort_by(|a, b| world.order(a.mv, b.mv).then(a.peer.cmp(&b.peer)));
        let culprit = all.get((has / each) as usize);
        Fault {
            rank,
            what,
            needs: needs.saturating_mul(each),
            has,
            copies: each,
            target: target.name.clone(),
            mv: culprit.and_then(|need| need.mv).map(|turned| turned.mv),
            times: culprit.and_then(|need| need.mv).map_or(0, |turned| turned.times),
            peer: culprit.and_then(|need| need.peer),
        }
    }
}

/// A plan, and who is who in it.
struct World<'a> {
    plan: &'a Plan,
    /// What it is of and the moves it comes from, where it is folded.
    folded: Option<(&'a Folded, &'a Quotient)>,
}

impl World<'_> {
    /// Of each reader of a channel: who it is seen from the writer, and who the writer is seen from it.
    fn readers(&self, channel: &Channel) -> impl Iterator<Item = Reader> {
        let rank = |block: BlockId| self.plan.blocks[block.index()].rank;
        let writer = rank(channel.writer);
        (channel.readers.start as usize..channel.readers.end as usize).map(move |at| {
            let block = self.plan.readers[at];
            let reader = rank(block);
            match self.folded {
                None => Reader { block, seen: reader, sees: writer },
                Some((folded, _)) => {
                    let times = folded.times[at];
                    let (seen, sees) = (folded.rank(reader, times), folded.rank(writer, folded.back(times)));
                    Reader { block, seen, sees }
                }
            }
        })
    }

    /// The ranks of a transfer as each of them sees it, if it stands for all: who gives, who takes, how many times it is taken round.
    fn transfer(&self, from: RankId, to: RankId) -> [(RankId, RankId, u32); 2] {
        let Some((folded, _)) = self.folded else { return [(from, to, 0); 2] };
        let (home, times) = folded.home(from);
        let back = folded.back(times);
        [(from, to, 0), (home, folded.rank(to, back), back)]
    }

    /// Which move comes first in the program; none comes before all.
    fn order(&self, a: Option<Turned>, b: Option<Turned>) -> Ordering {
        let by_number = || a.map(|a| a.mv).cmp(&b.map(|b| b.mv));
        match (a, b, self.folded) {
            (Some(a), Some(b), Some((_, quotient))) => {
                quotient.order((a.mv, a.times), (b.mv, b.times)).then_with(by_number)
            }
            _ => by_number(),
        }
    }

    /// The earlier of two moves.
    fn earlier(&self, a: Turned, b: Turned) -> Turned {
        if self.order(Some(b), Some(a)).is_lt() { b } else { a }
    }
}

/// One reader of a channel.
struct Reader {
    block: BlockId,
    /// Its rank, seen from the writer.
    seen: RankId,
    /// The writer's rank, seen from here.
    sees: RankId,
}

/// How many of something each rank needs, for one copy.
fn count(world: &World<'_>, what: Resource) -> Vec<u32> {
    let plan = world.plan;
    let mut needs = vec![0u32; plan.header.ranks as usize];
    match what {
        Resource::Blocks => plan.blocks.iter().for_each(|block| needs[block.rank.index()] += 1),
        Resource::ChannelEnds => {
            for (rank, _) in ends(world) {
                needs[rank.index()] += 1;
            }
        }
        Resource::Connections => {
            let mut pairs: Vec<(RankId, RankId)> = connections(world).collect();
            pairs.sort_unstable();
            pairs.dedup();
            pairs.iter().for_each(|&(rank, _)| needs[rank.index()] += 1);
        }
    }
    needs
}

/// Each end of each channel: its rank, and the rank at the other end (of several readers, the first).
fn ends<'a>(world: &'a World<'a>) -> impl Iterator<Item = (RankId, RankId)> + 'a {
    let rank = |block: BlockId| world.plan.blocks[block.index()].rank;
    world.plan.channels.iter().flat_map(move |channel| {
        let writer = rank(channel.writer);
        let first = world.readers(channel).next().map_or(writer, |reader| reader.seen);
        let readers = world.readers(channel).map(move |reader| (rank(reader.block), reader.sees));
        std::iter::once((writer, first)).chain(readers)
    })
}

/// Every pair of ranks that have to do with each other, seen from both, each any number of times.
fn connections<'a>(world: &'a World<'a>) -> impl Iterator<Item = (RankId, RankId)> + 'a {
    let plan = world.plan;
    let met = plan.channels.iter().flat_map(move |channel| {
        let writer = plan.blocks[channel.writer.index()].rank;
        world.readers(channel).flat_map(move |reader| {
            [(writer, reader.seen), (plan.blocks[reader.block.index()].rank, reader.sees)]
        })
    });
    let reached = plan.blocks.iter().flat_map(move |block| {
        let steps = plan.steps(&block.body);
        let peers = steps.flat_map(move |(_, step)| peers(plan, step));
        peers.flat_map(move |peer| [(block.rank, peer), (peer, block.rank)])
    });
    met.chain(reached).filter(|(one, other)| one != other)
}

/// Ranks that a step reaches into the memory of.
fn peers(plan: &Plan, step: &Step) -> impl Iterator<Item = RankId> {
    plan.src(step).iter().chain(plan.dst(step)).filter_map(|operand| match *operand {
        Operand::Peer { rank, .. } => Some(rank),
        _ => None,
    })
}

/// Which move asks for what.
struct Moves<'a> {
    world: &'a World<'a>,
    /// By span, from, to: the first move.
    between: FxHashMap<(SpanId, RankId, RankId), Turned>,
    /// By from, to: the first move of any line. A step that sends entry values along as it copies them is of no line.
    pairs: FxHashMap<(RankId, RankId), Turned>,
    /// By span and a rank that it reads or writes: the first move.
    at: FxHashMap<(SpanId, RankId), Turned>,
}

impl<'a> Moves<'a> {
    fn new(world: &'a World<'a>, trace: &Trace, spans: &Spans) -> Moves<'a> {
        let (mut between, mut at) = (FxHashMap::default(), FxHashMap::default());
        let mut pairs = FxHashMap::default();
        for (m, mv) in trace.moves.iter().enumerate() {
            let (mv_id, span) = (MoveId(m as u32), spans.of_origin[mv.origin.0 as usize]);
            let here = Turned { mv: mv_id, times: 0 };
            keep(world, &mut at, (span, mv.to.rank), here);
            for source in trace.sources(mv) {
                for (from, to, times) in world.transfer(source.rank, mv.to.rank) {
                    let turned = Turned { mv: mv_id, times };
                    keep(world, &mut between, (span, from, to), turned);
                    keep(world, &mut pairs, (from, to), turned);
                    keep(world, &mut at, (span, from), turned);
                }
            }
        }
        Moves { world, between, pairs, at }
    }

    /// All that a rank needs of something.
    fn needs(&self, rank: RankId, what: Resource) -> Vec<Need> {
        let plan = self.world.plan;
        let blocks = || plan.blocks.iter().filter(move |block| block.rank == rank);
        let steps = |block: &'a plan::plan::Block| {
            let of = |section| plan.steps(&block.section(section)).map(|(_, step)| step).collect::<Vec<_>>();
            Section::ALL.into_iter().flat_map(of)
        };
        if what == Resource::Blocks {
            let first = |block: &'a plan::plan::Block| {
                let moves = steps(block).filter_map(|step| self.at.get(&(step.span, rank)).copied());
                moves.reduce(|a, b| self.world.earlier(a, b))
            };
            return blocks().map(|block| Need { mv: first(block), peer: None }).collect();
        }
        // By what tells one from another: the channel and the side for ends, the other rank for connections.
        let mut found: BTreeMap<(u32, bool), Need> = BTreeMap::new();
        for (block, step) in (plan.blocks.iter().enumerate())
            .filter(|(_, block)| block.rank == rank)
            .flat_map(|(at, block)| steps(block).map(move |step| (BlockId::new(at), step)))
        {
            let sources = plan.src(step).iter().map(|operand| (operand, true));
            let destinations = plan.dst(step).iter().map(|operand| (operand, false));
            for (&operand, taken) in sources.chain(destinations) {
                let others: Vec<(RankId, Option<u32>)> = match operand {
                    Operand::Local { .. } => continue,
                    Operand::Peer { rank, .. } => vec![(rank, None)],
                    Operand::Channel(id) => {
                        let readers = self.world.readers(&plan.channels[id.index()]);
                        match taken {
                            true => {
                                let own = readers.filter(|reader| reader.block == block);
                                own.map(|reader| (reader.sees, Some(id.0))).collect()
                            }
                            false => readers.map(|reader| (reader.seen, Some(id.0))).collect(),
                        }
                    }
                };
                for (peer, channel) in others {
                    let key = match (what, channel) {
                        (Resource::ChannelEnds, Some(channel)) => (channel, taken),
                        (Resource::ChannelEnds, None) => continue,
                        _ if peer == rank => continue,
                        _ => (peer.0, false),
                    };
                    let mv = self.of(step, rank, peer);
                    let need = found.entry(key).or_insert(Need { mv, peer: Some(peer) });
                    need.mv = match (need.mv, mv) {
                        (Some(one), Some(other)) => Some(self.world.earlier(one, other)),
                        (one, other) => one.or(other),
                    };
                }
            }
        }
        found.into_values().collect()
    }

    /// The first move of a step's line between two ranks, whichever way; else of any line; else the first that has to do with the
    /// rank.
    fn of(&self, step: &Step, rank: RankId, peer: RankId) -> Option<Turned> {
        let earlier = |a, b| self.world.earlier(a, b);
        let ways = [(step.span, rank, peer), (step.span, peer, rank)];
        let between = ways.iter().filter_map(|way| self.between.get(way).copied()).reduce(earlier);
        let any = || {
            let pairs = [(rank, peer), (peer, rank)];
            pairs.iter().filter_map(|pair| self.pairs.get(pair).copied()).reduce(earlier)
        };
        between.or_else(any).or_else(|| self.at.get(&(step.span, rank)).copied())
    }
}

/// Notes a move, unless an earlier one is known.
fn keep<K: Eq + Hash>(world: &World<'_>, known: &mut FxHashMap<K, Turned>, key: K, turned: Turned) {
    known.entry(key).and_modify(|first| *first = world.earlier(*first, turned)).or_insert(turned);
}
