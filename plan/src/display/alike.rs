//! Ranks that do alike.
//!
//! In: a plan whose ranges are in order, one rank after the other. Out: whether a rank's program is that of an earlier
//! rank with the world turned or mirrored, so that it need not be written out; and the lines that say so.
//!
//! The one hard idea is what "turned" must mean, for a reader to know the other rank's program from the one he sees: each
//! rank p becomes m(p), for one permutation m of the world that takes one rank to the other. Every peer is changed so, and
//! of every buffer either no place is changed or, if it has as many equal parts as there are ranks, part p becomes
//! part m(p). Channels are the same up to their numbers, waits up to where the rank's steps start. All this is compared
//! step by step, so whatever the lines say is true of the plan at hand.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::Show;
use crate::ids::{BlockId, BufferId, ChannelId, RankId};
use crate::plan::{Channel, Operand, Plan, Role, Section, Step};

/// With how many written-out ranks another one is compared.
const MOST_COMPARED: usize = 16;

/// How one rank is taken to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Map {
    /// p + r, modulo the number of ranks.
    Turn,
    /// The same, level by level.
    Levels,
    /// p xor r.
    Mirror,
}

/// What may happen to the places of a buffer: both as long as no place was seen.
const STAYS: u8 = 1;
const TURNS: u8 = 2;

#[derive(Debug)]
struct Group {
    /// The rank that is written out, and its blocks.
    like: RankId,
    blocks: Range<usize>,
    map: Map,
    buffers: Vec<u8>,
    ranks: Vec<u32>,
}

/// Ranks seen so far.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    plan: &'a Plan,
    written: Vec<(RankId, Range<usize>)>,
    groups: Vec<Group>,
    /// The group joined last.
    last: usize,
}

impl<'a> Groups<'a> {
    pub(super) fn new(plan: &'a Plan) -> Groups<'a> {
        Groups { plan, written: Vec::new(), groups: Vec::new(), last: 0 }
    }

    /// Whether `rank`, with these blocks, does as one that was written out; if not, it is to be written out itself.
    pub(super) fn join(&mut self, rank: RankId, blocks: Range<usize>) -> bool {
        let plan = self.plan;
        let known = self.groups.len();
        for at in (self.last..known).chain(0..self.last.min(known)) {
            let group = &mut self.groups[at];
            let mut buffers = group.buffers.clone();
            if alike(plan, (group.like, &group.blocks), (rank, &blocks), group.map, &mut buffers) {
                group.buffers = buffers;
                group.ranks.push(rank.0);
                self.last = at;
                return true;
            }
        }
        for (like, others) in self.written.iter().take(MOST_COMPARED) {
            for map in [Map::Turn, Map::Levels, Map::Mirror] {
                let tried = self.groups.iter().any(|group| group.like == *like && group.map == map);
                let mut buffers = may(plan);
                if !tried && alike(plan, (*like, others), (rank, &blocks), map, &mut buffers) {
                    let ranks = vec![rank.0];
                    self.last = self.groups.len();
                    self.groups.push(Group { like: *like, blocks: others.clone(), map, buffers, ranks });
                    return true;
                }
            }
        }
        self.written.push((rank, blocks));
        false
    }

    /// A line for each group.
    pub(super) fn lines(&self, show: &Show<'_>) -> Vec<String> {
        let line = |group: &Group| {
            let Group { like, map, buffers, ranks, .. } = group;
            let n = self.plan.header.ranks;
            let only = if let [only] = ranks.as_slice() { Some(*only) } else { None };
            let plus = match (only, like.0) {
                (Some(only), like) => format!("p + {}", turned(only, like, 0, n)),
                (None, 0) => "p + r".to_string(),
                (None, like) => format!("p + r - {like}"),
            };
            let becomes = match map {
                Map::Turn => format!("rank ({plus}) % {n}"),
                Map::Levels => {
                    let shape: Vec<_> = self.plan.header.shape.iter().map(u32::to_string).collect();
                    let plus = match (only, like.0) {
                        (Some(only), 0) => format!("p + {only}"),
                        (Some(only), like) => format!("p + {only} - {like}"),
                        _ => plus,
                    };
                    format!("rank {plus}, level by level of {},", shape.join("x"))
                }
                Map::Mirror => match (only, like.0) {
                    (Some(only), like) => format!("rank p xor {}", only ^ like),
                    (None, 0) => "rank p xor r".to_string(),
                    (None, like) => format!("rank p xor r xor {like}"),
                },
            };
            let turned = (0..buffers.len()).filter(|&b| buffers[b] == TURNS);
            let names: Vec<String> = turned.map(|b| show.buffer(BufferId::new(b))).collect();
            let parts = match names.as_slice() {
                [] => String::new(),
                names => format!(", and likewise for the {n} parts of {}", names.join(" and ")),
            };
            let each = if only.is_some() { "" } else { ", each r" };
            format!("{}{each}: as rank {} with {becomes} for rank p{parts}", show.ranks(ranks), like.0)
        };
        self.groups.iter().map(line).collect()
    }
}

/// What may happen to each buffer.
fn may(plan: &Plan) -> Vec<u8> {
    let ranks = u64::from(plan.header.ranks);
    let cells = |blocks: u32| u64::from(blocks) * u64::from(plan.header.cells);
    let parts = |blocks: u32| cells(blocks) > 0 && cells(blocks).is_multiple_of(ranks.max(1));
    plan.buffers
        .iter()
        .map(|b| if b.role != Role::Scratch && parts(b.blocks) { STAYS | TURNS } else { STAYS })
        .collect()
}

/// A permutation of the ranks.
struct Permutation<'a> {
    map: Map,
    from: u32,
    to: u32,
    ranks: u32,
    shape: &'a [u32],
}

impl Permutation<'_> {
    /// None if there is no such permutation of this world.
    fn new(plan: &Plan, map: Map, from: RankId, to: RankId) -> Option<Permutation<'_>> {
        let (ranks, shape) = (plan.header.ranks, plan.header.shape.as_slice());
        let product = shape.iter().try_fold(1u32, |n, &level| n.checked_mul(level));
        let exists = match map {
            Map::Turn => true,
            Map::Levels => shape.len() > 1 && product == Some(ranks),
            Map::Mirror => ranks.is_power_of_two(),
        };
        let exists = exists && from.0 < ranks && to.0 < ranks;
        exists.then_some(Permutation { map, from: from.0, to: to.0, ranks, shape })
    }

    fn of(&self, rank: u32) -> u32 {
        match self.map {
            Map::Turn => turned(rank, self.from, self.to, self.ranks),
            Map::Mirror => rank ^ self.from ^ self.to,
            Map::Levels => {
                let (mut rank, mut from, mut to) = (rank, self.from, self.to);
                let (mut result, mut unit) = (0, 1);
                for &level in self.shape.iter().rev() {
                    result += unit * turned(rank % level, from % level, to % level, level);
                    (rank, from, to) = (rank / level, from / level, to / level);
                    unit *= level;
                }
                result
            }
        }
    }
}

fn turned(digit: u32, from: u32, to: u32, of: u32) -> u32 {
    ((u64::from(digit) + u64::from(of) + u64::from(to) - u64::from(from)) % u64::from(of)) as u32
}

/// Whether two ranks do alike; narrows what happens to the buffers.
fn alike(
    plan: &Plan,
    (like, like_blocks): (RankId, &Range<usize>),
    (rank, blocks): (RankId, &Range<usize>),
    map: Map,
    buffers: &mut [u8],
) -> bool {
    let Some(permutation) = Permutation::new(plan, map, like, rank) else { return false };
    let start = |blocks: &Range<usize>| plan.blocks[blocks.start].prologue.start;
    let mut compare = Compare {
        plan,
        permutation,
        buffers,
        channels: FxHashMap::default(),
        starts: (start(like_blocks), start(blocks)),
    };
    like_blocks.len() == blocks.len()
        && like_blocks.clone().zip(blocks.clone()).all(|(a, b)| {
            let (a, b) = (&plan.blocks[a], &plan.blocks[b]);
            let sections = Section::ALL.map(|section| (a.section(section), b.section(section)));
            a.position == b.position
                && sections.iter().all(|(a, b)| a.len() == b.len())
                && sections.into_iter().all(|(a, b)| {
                    plan.steps(&a).zip(plan.steps(&b)).all(|((_, a), (_, b))| compare.steps(a, b))
                })
        })
}

struct Compare<'a, 'b> {
    plan: &'a Plan,
    permutation: Permutation<'a>,
    buffers: &'b mut [u8],
    /// Which channel became which.
    channels: FxHashMap<ChannelId, ChannelId>,
    /// Where the steps of the two ranks start.
    starts: (u32, u32),
}

impl Compare<'_, '_> {
    fn steps(&mut self, a: &Step, b: &Step) -> bool {
        let plan = self.plan;
        let form = |s: &Step| {
            (s.sources, s.destinations, s.wait_count, s.round_each, s.post, s.pre, s.width, s.span)
        };
        form(a) == form(b)
            && plan.src(a).iter().zip(plan.src(b)).all(|(a, b)| self.operands(*a, *b))
            && plan.dst(a).iter().zip(plan.dst(b)).all(|(a, b)| self.operands(*a, *b))
            && plan
                .waits(a)
                .iter()
                .zip(plan.waits(b))
                .all(|(a, b)| a.0.wrapping_sub(self.starts.0) == b.0.wrapping_sub(self.starts.1))
    }

    fn operands(&mut self, a: Operand, b: Operand) -> bool {
        match (a, b) {
            (Operand::Channel(a), Operand::Channel(b)) => self.channel(a, b),
            (Operand::Local { buffer: a, cell: x }, Operand::Local { buffer: b, cell: y }) => {
                a == b && self.cells(a, x, y)
            }
            (
                Operand::Peer { rank: p, buffer: a, cell: x },
                Operand::Peer { rank: q, buffer: b, cell: y },
            ) => a == b && self.permutation.of(p.0) == q.0 && self.cells(a, x, y),
            _ => false,
        }
    }

    fn cells(&mut self, buffer: BufferId, a: u32, b: u32) -> bool {
        let Some(may) = self.buffers.get_mut(buffer.index()) else { return false };
        let blocks = self.plan.buffers[buffer.index()].blocks;
        let part = u64::from(blocks) * u64::from(self.plan.header.cells) / u64::from(self.permutation.ranks);
        let part = u32::try_from(part).unwrap_or(0).max(1);
        let turns = *may & TURNS != 0 && a / part < self.permutation.ranks && {
            let first = u64::from(self.permutation.of(a / part)) * u64::from(part);
            first + u64::from(a % part) == u64::from(b)
        };
        *may &= if turns { TURNS } else { 0 } | if a == b { STAYS } else { 0 };
        *may != 0
    }

    /// That a channel joins what it must.
    fn channel(&mut self, a: ChannelId, b: ChannelId) -> bool {
        if let Some(&known) = self.channels.get(&a) {
            return known == b;
        }
        let plan = self.plan;
        let (Some(from), Some(to)) = (plan.channels.get(a.index()), plan.channels.get(b.index())) else {
            return false;
        };
        let place = |id: BlockId| plan.blocks.get(id.index()).map(|block| (block.rank.0, block.position));
        let becomes = |(rank, position): (u32, u32)| (self.permutation.of(rank), position);
        let readers =
            |channel: &Channel| plan.readers(channel).iter().map(|&id| place(id)).collect::<Vec<_>>();
        let mut expected: Vec<_> = readers(from).into_iter().map(|place| place.map(becomes)).collect();
        let mut found = readers(to);
        expected.sort_unstable();
        found.sort_unstable();
        self.channels.insert(a, b);
        from.kind == to.kind && place(from.writer).map(becomes) == place(to.writer) && expected == found
    }
}
