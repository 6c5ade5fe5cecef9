//! Plans written by hand: for tests, for imports, for tools.
//!
//! In: readable calls (buffers, blocks, channels, steps, promises) in any order. Out: a [`Plan`] in its flat form.
//! The one hard idea: a plan's blocks are sorted by rank and its steps by block and section, so the ids of a plan
//! are known only at the end; until then blocks and steps are named by handles, and [`Built`] says what each
//! became. Nothing is judged here: a wrong plan is built as it is told, for `verify` to refuse.
//!
//! ```
//! use rcc_plan::builder::{PlanBuilder, get, local, put};
//! use rcc_plan::plan::Role;
//!
//! // broadcast from rank 0 to rank 1
//! let mut p = PlanBuilder::new("pair", "broadcast", &[2]);
//! let input = p.buffer("input", Role::Send, 1);
//! let output = p.buffer("output", Role::Recv, 1);
//! let (b0, b1) = (p.block(0), p.block(1));
//! let ch = p.channel(b0, &[b1]);
//! p.step(b0, &[local(input, 0)], &[local(output, 0), put(ch)]);
//! p.step(b1, &[get(ch)], &[local(output, 0)]);
//! for rank in 0..2 {
//!     p.promise((output, rank, 0), &[(input, 0, 0)]);
//! }
//! let plan = p.finish().unwrap().plan;
//! assert_eq!(plan.steps.len(), 2);
//! ```

use rustc_hash::FxHashMap;

use crate::collective::{BlockRef, Clause};
use crate::ids::{BlockId, BufferId, ChannelId, RankId, SpanId, StepId};
use crate::plan::{
    Block, Buffer, Channel, ChannelKind, Forms, Header, Operand, Overlap, Plan, Presence, ProofStatus, Role,
    Section, SourceSpan, SpanTable, Step, Witness,
};
use crate::pre::Pre;
use crate::schedule::Schedule;

/// A block of a [`PlanBuilder`], by the order made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockHandle(u32);

/// A step of a [`PlanBuilder`], by the order made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StepHandle(u32);

/// A block of a buffer: (buffer, rank, block).
pub type Place = (BufferId, u32, u32);

/// A finished plan, and what the handles became.
#[derive(Debug, Clone)]
pub struct Built {
    /// The plan.
    pub plan: Plan,
    steps: Vec<StepId>,
    blocks: Vec<BlockId>,
}

impl Built {
    /// The step that a handle named.
    pub fn step(&self, handle: StepHandle) -> StepId {
        self.steps[handle.0 as usize]
    }

    /// The block that a handle named.
    pub fn block(&self, handle: BlockHandle) -> BlockId {
        self.blocks[handle.0 as usize]
    }
}

/// The plan cannot be written down: some number does not fit its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many {what}: a plan holds at most {most}")]
pub struct TooMany {
    /// What there is too much of.
    pub what: &'static str,
    /// How many fit.
    pub most: u64,
}

/// A plan in the making.
#[derive(Debug, Clone)]
pub struct PlanBuilder {
    plan: Plan,
    blocks: Vec<RankId>,
    channels: Vec<DraftChannel>,
    steps: Vec<DraftStep>,
    witnesses: Vec<(StepHandle, RankId, StepHandle, StepHandle)>,
    lists: FxHashMap<Vec<BlockRef>, u32>,
    spans: FxHashMap<SourceSpan, SpanId>,
}

#[derive(Debug, Clone)]
struct DraftChannel {
    writer: BlockHandle,
    readers: Vec<BlockHandle>,
    kind: ChannelKind,
}

#[derive(Debug, Clone)]
struct DraftStep {
    block: BlockHandle,
    section: Section,
    src: Vec<Operand>,
    dst: Vec<Operand>,
    waits: Vec<StepHandle>,
    step: Step,
}

/// A message received.
pub fn get(channel: ChannelId) -> Operand {
    Operand::Channel(channel)
}

/// A message sent. (Which end a channel operand is follows from the side it stands on; two names read better.)
pub fn put(channel: ChannelId) -> Operand {
    Operand::Channel(channel)
}

/// Cells of the step's own rank.
pub fn local(buffer: BufferId, cell: u32) -> Operand {
    Operand::Local { buffer, cell }
}

/// Cells of another rank.
pub fn peer(rank: u32, buffer: BufferId, cell: u32) -> Operand {
    Operand::Peer { rank: RankId(rank), buffer, cell }
}

impl PlanBuilder {
    /// An empty plan for a world of the given level sizes: K = 1, one copy, out of place only, k_min = 1.
    pub fn new(algorithm: &str, collective: &str, shape: &[u32]) -> PlanBuilder {
        let ranks = shape.iter().fold(1u32, |n, &level| n.saturating_mul(level));
        let header = Header {
            algorithm: algorithm.to_string(),
            collective: collective.to_string(),
            params: Vec::new(),
            shape: shape.to_vec(),
            ranks,
            cells: 1,
            copies: 1,
            forms: Forms { disjoint: true, same: false },
            serves_post: false,
            serves_pre: false,
            scratch_cells: Vec::new(),
            k_min: 1,
            schedule: Schedule::default(),
            proof: ProofStatus::AllRanks,
        };
        let span = SourceSpan { file: 0, line: 1, column: 1, text: algorithm.to_string(), parent: None };
        let spans = SpanTable { files: vec![format!("{algorithm}.coll")], spans: vec![span.clone()] };
        let plan = Plan::empty(header, Vec::new(), spans);
        PlanBuilder {
            plan,
            blocks: Vec::new(),
            channels: Vec::new(),
            steps: Vec::new(),
            witnesses: Vec::new(),
            lists: FxHashMap::default(),
            spans: FxHashMap::from_iter([(span, SpanId(0))]),
        }
    }

    /// The header, to change what the defaults do not fit. `serves_post` and `serves_pre` are set by [`PlanBuilder::finish`];
    /// `scratch_cells` grows as [`PlanBuilder::scratch`] is called.
    pub fn header(&mut self) -> &mut Header {
        &mut self.plan.header
    }

    /// A buffer at all ranks.
    pub fn buffer(&mut self, name: &str, role: Role, blocks: u32) -> BufferId {
        self.add_buffer(Buffer { name: name.to_string(), role, blocks, at: Presence::All })
    }

    /// A buffer at one rank.
    pub fn buffer_at(&mut self, name: &str, role: Role, blocks: u32, rank: u32) -> BufferId {
        self.add_buffer(Buffer { name: name.to_string(), role, blocks, at: Presence::One(RankId(rank)) })
    }

    /// Scratch at all ranks, `cells` at each. Call it at most once: a plan has one scratch space.
    pub fn scratch(&mut self, cells: u32) -> BufferId {
        self.plan.header.scratch_cells = vec![cells; self.plan.header.ranks as usize];
        self.add_buffer(Buffer {
            name: "scratch".to_string(),
            role: Role::Scratch,
            blocks: 0,
            at: Presence::All,
        })
    }

    /// Under the form `same`, which is thereby served: at `rank`, `cells` cells of `left` (`Send`) from the given
    /// one on are the same memory as those of `right` (`Recv`).
    pub fn overlap(&mut self, rank: u32, left: (BufferId, u32), right: (BufferId, u32), cells: u32) {
        self.plan.header.forms.same = true;
        self.plan.overlaps.push(Overlap {
            rank: RankId(rank),
            left: left.0,
            left_cell: left.1,
            right: right.0,
            right_cell: right.1,
            cells,
        });
    }

    /// A further block of a rank.
    pub fn block(&mut self, rank: u32) -> BlockHandle {
        self.blocks.push(RankId(rank));
        BlockHandle(self.blocks.len() as u32 - 1)
    }

    /// A channel of slots.
    pub fn channel(&mut self, writer: BlockHandle, readers: &[BlockHandle]) -> ChannelId {
        self.add_channel(writer, readers, ChannelKind::Slots)
    }

    /// A channel of tokens.
    pub fn counter(&mut self, writer: BlockHandle, readers: &[BlockHandle]) -> ChannelId {
        self.add_channel(writer, readers, ChannelKind::Counter)
    }

    /// A step at the end of a block's body, of width 1.
    pub fn step(&mut self, block: BlockHandle, src: &[Operand], dst: &[Operand]) -> StepDraft<'_> {
        self.step_in(Section::Body, block, src, dst)
    }

    /// A step at the end of a section, of width 1.
    pub fn step_in(
        &mut self,
        section: Section,
        block: BlockHandle,
        src: &[Operand],
        dst: &[Operand],
    ) -> StepDraft<'_> {
        let step = Step {
            operands: 0,
            sources: 0,
            destinations: 0,
            waits: 0,
            wait_count: 0,
            round_each: false,
            post: false,
            pre: Pre::NONE,
            width: 1,
            span: SpanId(0),
        };
        let handle = StepHandle(self.steps.len() as u32);
        let (src, dst) = (src.to_vec(), dst.to_vec());
        let draft = self.steps.push_mut(DraftStep { block, section, src, dst, waits: Vec::new(), step });
        StepDraft { draft, handle, table: &mut self.plan.spans, spans: &mut self.spans }
    }

    /// `step` starts only after `target` has finished (as [`StepDraft::wait`], for steps made in any order).
    pub fn wait(&mut self, step: StepHandle, target: StepHandle) {
        self.steps[step.0 as usize].waits.push(target);
    }

    /// The tokens that fence a `Peer` access of `step` to memory of `owner`.
    pub fn witness(&mut self, step: StepHandle, owner: u32, ready: StepHandle, done: StepHandle) {
        self.witnesses.push((step, RankId(owner), ready, done));
    }

    /// `place` must hold the reduction over `operands` (one: its value).
    pub fn promise(&mut self, place: Place, operands: &[Place]) {
        let to_ref = |&(buffer, rank, block): &Place| BlockRef { buffer, rank: RankId(rank), block };
        let list: Vec<BlockRef> = operands.iter().map(to_ref).collect();
        let promise = &mut self.plan.promise;
        let list = *self.lists.entry(list).or_insert_with_key(|list| {
            promise.lists.push(list.clone());
            promise.lists.len() as u32 - 1
        });
        promise.clauses.push(Clause { place: to_ref(&place), list });
    }

    /// No rank leaves before all have entered.
    pub fn promise_synchronised(&mut self) {
        self.plan.promise.synchronised = true;
    }

    /// The plan. Blocks of a rank keep the order in which they were made, steps of a section likewise.
    pub fn finish(mut self) -> Result<Built, TooMany> {
        let plan = &mut self.plan;
        plan.header.scratch_cells.resize(plan.header.ranks as usize, 0);
        plan.header.serves_post =
            self.steps.iter().any(|s| s.step.post) || plan.promise.lists.iter().all(|list| list.len() < 2);
        let is_data = |operand: &Operand| match *operand {
            Operand::Channel(id) => {
                self.channels.get(id.index()).is_some_and(|channel| channel.kind == ChannelKind::Slots)
            }
            Operand::Local { .. } | Operand::Peer { .. } => true,
        };
        let combines = |s: &DraftStep| s.src.iter().filter(|&operand| is_data(operand)).count() > 1;
        plan.header.serves_pre =
            self.steps.iter().any(|s| !s.step.pre.is_none()) || !self.steps.iter().any(combines);
        let (order, blocks) = sorted(self.blocks.len(), |b| self.blocks[b].0);
        let block_id = |handle: BlockHandle| BlockId(blocks[handle.0 as usize]);
        let (step_order, numbers) =
            sorted(self.steps.len(), |s| (block_id(self.steps[s].block), self.steps[s].section));
        let step_id = |handle: StepHandle| StepId(numbers[handle.0 as usize]);

        for &b in &order {
            let rank = self.blocks[b as usize];
            let position = plan.blocks.iter().rev().take_while(|other| other.rank == rank).count();
            plan.blocks.push(Block {
                rank,
                position: position as u32,
                prologue: 0..0,
                body: 0..0,
                epilogue: 0..0,
            });
        }
        let mut counts = vec![[0u32; 3]; order.len()];
        for &s in &step_order {
            let draft = &self.steps[s as usize];
            counts[block_id(draft.block).index()][draft.section as usize] += 1;
            let mut step = draft.step;
            step.operands = fit("operands", plan.operands.len())?;
            step.sources = fit("sources of a step", draft.src.len())?;
            step.destinations = fit("destinations of a step", draft.dst.len())?;
            step.waits = fit("waits", plan.waits.len())?;
            step.wait_count = fit("waits of a step", draft.waits.len())?;
            plan.operands.extend(draft.src.iter().chain(&draft.dst));
            plan.waits.extend(draft.waits.iter().map(|&handle| step_id(handle)));
            plan.steps.push(step);
        }
        let mut next = 0;
        for (block, [prologue, body, epilogue]) in plan.blocks.iter_mut().zip(counts) {
            let mut take = |count| {
                next += count;
                next - count..next
            };
            (block.prologue, block.body, block.epilogue) = (take(prologue), take(body), take(epilogue));
        }
        for draft in &self.channels {
            let first: u32 = fit("readers", plan.readers.len())?;
            plan.readers.extend(draft.readers.iter().map(|&handle| block_id(handle)));
            let readers = first..fit("readers", plan.readers.len())?;
            plan.channels.push(Channel { writer: block_id(draft.writer), readers, kind: draft.kind });
        }
        plan.witnesses.extend(self.witnesses.iter().map(|&(step, owner, ready, done)| Witness {
            step: step_id(step),
            owner,
            ready: step_id(ready),
            done: step_id(done),
        }));
        plan.witnesses.sort_by_key(|w| (w.step, w.owner));
        let _: u32 = fit("steps", plan.steps.len())?;
        Ok(Built {
            plan: self.plan,
            steps: numbers.into_iter().map(StepId).collect(),
            blocks: blocks.into_iter().map(BlockId).collect(),
        })
    }

    fn add_buffer(&mut self, buffer: Buffer) -> BufferId {
        self.plan.buffers.push(buffer);
        BufferId::new(self.plan.buffers.len() - 1)
    }

    fn add_channel(&mut self, writer: BlockHandle, readers: &[BlockHandle], kind: ChannelKind) -> ChannelId {
        self.channels.push(DraftChannel { writer, readers: readers.to_vec(), kind });
        ChannelId::new(self.channels.len() - 1)
    }
}

/// The step just added, to say more about it.
#[derive(Debug)]
pub struct StepDraft<'a> {
    draft: &'a mut DraftStep,
    handle: StepHandle,
    table: &'a mut SpanTable,
    spans: &'a mut FxHashMap<SourceSpan, SpanId>,
}

impl StepDraft<'_> {
    /// Acts on so many cells, one after the other.
    pub fn width(self, width: u32) -> Self {
        self.draft.step.width = width;
        self
    }

    /// Starts only after `step` has finished.
    pub fn wait(self, step: StepHandle) -> Self {
        self.draft.waits.push(step);
        self
    }

    /// Applies the operator's outer part.
    pub fn post(self) -> Self {
        self.draft.step.post = true;
        self
    }

    /// The sources that are entry values: the operator's inner part acts on them.
    pub fn pre(self, pre: Pre) -> Self {
        self.draft.step.pre = pre;
        self
    }

    /// Rounds after each operand.
    pub fn round_each(self) -> Self {
        self.draft.step.round_each = true;
        self
    }

    /// Comes from this line of the first source file.
    pub fn line(self, line: u32, text: &str) -> Self {
        let span = SourceSpan { file: 0, line, column: 1, text: text.to_string(), parent: None };
        let table = &mut self.table.spans;
        let id = *self.spans.entry(span).or_insert_with_key(|span| {
            table.push(span.clone());
            SpanId::new(table.len() - 1)
        });
        self.draft.step.span = id;
        self
    }

    /// Its handle.
    pub fn handle(self) -> StepHandle {
        self.handle
    }
}

/// A stable order of `0..len` by `key`, and its inverse.
fn sorted<K: Ord>(len: usize, key: impl Fn(usize) -> K) -> (Vec<u32>, Vec<u32>) {
    let mut order: Vec<u32> = (0..len as u32).collect();
    order.sort_by_key(|&i| key(i as usize));
    let mut inverse = vec![0; len];
    for (at, &i) in order.iter().enumerate() {
        inverse[i as usize] = at as u32;
    }
    (order, inverse)
}

fn fit<T: TryFrom<usize>>(what: &'static str, count: usize) -> Result<T, TooMany> {
    let most = (1u64 << (8 * size_of::<T>())) - 1;
    T::try_from(count).map_err(|_| TooMany { what, most })
}
