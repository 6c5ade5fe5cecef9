//! Every order in which a small plan can run, on random 61-bit values: the truth that `verify` is tested against.
//!
//! In: a plan, the form, how many slots, how many iterations. Out: what is wrong with it in some order, if anything.
//! It knows only the plan's data and the words of plan.md; it shares no code with `verify` or `interpret`. Values are
//! numbers modulo the prime 2^61 - 1, the operator is addition, its outer part the multiplication by one random
//! number: two different multisets then have equal sums with probability below 2^-59.
//!
//! A state is: who has entered the call, where each block stands, what each cell holds, and the values in flight.
//! States are kept whole, not as hashes: none is mistaken for another.
//!
//! Faults seen: deadlock; undefined reads; writes to `in` buffers or out of bounds; a reach into the memory of a rank
//! that has not entered or has left; a leave before all have entered, if synchronisation is promised; a result that is
//! not the one promised; messages left over. A race shows as one of these in some order, or harms nobody.

use rustc_hash::{FxHashMap, FxHashSet};

use rcc_plan::ids::{BlockId, BufferId, RankId, StepId};
use rcc_plan::plan::{ChannelKind, Operand, Plan, Role, Section, Step};

/// What exploring found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Right in every order; how many states there are.
    Right(usize),
    /// Wrong in some.
    Wrong(&'static str),
    /// More states than [`MOST_STATES`].
    TooLarge,
}

/// Where exploring gives up.
pub(crate) const MOST_STATES: usize = 2_000_000;

/// How to run it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) in_place: bool,
    pub(crate) slots: u32,
    pub(crate) iterations: u32,
    pub(crate) seed: u64,
}

/// Under every form that the plan says it serves, with `k_min` slots, one iteration.
pub(crate) fn explore(plan: &Plan) -> Verdict {
    explore_with(plan, plan.header.k_min, 1)
}

/// Under every form that the plan says it serves.
pub(crate) fn explore_with(plan: &Plan, slots: u32, iterations: u32) -> Verdict {
    let mut states = 0;
    for in_place in [false, true] {
        if !if in_place { plan.header.forms.same } else { plan.header.forms.disjoint } {
            continue;
        }
        match explore_form(plan, Setting { in_place, slots, iterations, seed: 1 }) {
            Verdict::Right(more) => states += more,
            other => return other,
        }
    }
    Verdict::Right(states)
}

/// Under one form.
pub(crate) fn explore_form(plan: &Plan, setting: Setting) -> Verdict {
    let model = match Model::new(plan, setting) {
        Ok(model) => model,
        Err(fault) => return Verdict::Wrong(fault),
    };
    let start = model.start();
    let mut seen: FxHashSet<State> = FxHashSet::from_iter([start.clone()]);
    let mut open = vec![start];
    while let Some(state) = open.pop() {
        let next = match model.next(&state) {
            Ok(next) => next,
            Err(fault) => return Verdict::Wrong(fault),
        };
        for state in next {
            if seen.len() > MOST_STATES {
                return Verdict::TooLarge;
            }
            if seen.insert(state.clone()) {
                open.push(state);
            }
        }
    }
    Verdict::Right(seen.len())
}

const PRIME: u64 = (1 << 61) - 1;
const UNDEFINED: u64 = u64::MAX;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    entered: Vec<bool>,
    /// Events done, of each block.
    at: Vec<u16>,
    memory: Vec<u64>,
    /// Values in flight: sent and not yet taken by every reader.
    flight: Vec<Vec<u64>>,
}

#[derive(Debug, Clone, Copy)]
struct Event {
    step: StepId,
    micro: u32,
    iteration: u32,
}

struct Model<'a> {
    plan: &'a Plan,
    setting: Setting,
    /// Of each block.
    events: Vec<Vec<Event>>,
    /// Events of each block after which (step, iteration) has finished.
    finished: FxHashMap<(StepId, u32), (BlockId, u16)>,
    /// First cell of (rank, buffer) in memory.
    base: FxHashMap<(RankId, BufferId), usize>,
    cells: usize,
    /// The number of cells of (rank, buffer).
    size: FxHashMap<(RankId, BufferId), u32>,
    entry: Vec<u64>,
    factor: u64,
    /// The operator's inner part, by which what is marked is multiplied.
    inner: u64,
}

impl<'a> Model<'a> {
    fn new(plan: &'a Plan, setting: Setting) -> Result<Model<'a>, &'static str> {
        // Where no reduction is promised, the outer part is that of one operand: nothing.
        let outer = plan.header.serves_post && plan.promise.lists.iter().any(|list| list.len() > 1);
        let mut model = Model {
            plan,
            setting,
            events: Vec::new(),
            finished: FxHashMap::default(),
            base: FxHashMap::default(),
            cells: 0,
            size: FxHashMap::default(),
            entry: Vec::new(),
            factor: if outer { random(setting.seed, 77) } else { 1 },
            inner: if plan.header.serves_pre { random(setting.seed, 78) | 1 } else { 1 },
        };
        for (b, block) in plan.blocks.iter().enumerate() {
            let mut events = Vec::new();
            for section in Section::ALL {
                let turns = if section == Section::Body { setting.iterations } else { 1 };
                for iteration in 0..turns {
                    for step in block.section(section).map(StepId) {
                        let width = plan.steps[step.index()].width;
                        if width == 0 || width > 1000 {
                            return Err("bounds");
                        }
                        events.extend((0..width).map(|micro| Event { step, micro, iteration }));
                        model.finished.insert((step, iteration), (BlockId::new(b), events.len() as u16));
                    }
                }
            }
            model.events.push(events);
        }
        for rank in (0..plan.header.ranks).map(RankId) {
            for (i, buffer) in plan.buffers.iter().enumerate() {
                if !buffer.at.holds(rank) {
                    continue;
                }
                let id = BufferId::new(i);
                let cells = match buffer.role {
                    Role::Scratch => plan.header.scratch_cells[rank.index()],
                    _ => buffer.blocks * plan.header.cells,
                };
                model.base.insert((rank, id), model.cells);
                model.size.insert((rank, id), cells);
                model.cells += cells as usize;
                for cell in 0..cells {
                    // One value per iteration, for as many as are run.
                    let value = random(
                        setting.seed,
                        u64::from(rank.0) << 40 | u64::from(id.0) << 32 | u64::from(cell),
                    );
                    model.entry.push(if buffer.role == Role::Send { value } else { UNDEFINED });
                }
            }
        }
        for o in &plan.overlaps {
            for (buffer, cell) in [(o.left, o.left_cell), (o.right, o.right_cell)] {
                if model.size.get(&(o.rank, buffer)).is_none_or(|&cells| cell + o.cells > cells) {
                    return Err("bounds");
                }
            }
        }
        Ok(model)
    }

    fn start(&self) -> State {
        let mut memory = vec![UNDEFINED; self.cells * self.setting.iterations as usize];
        for iteration in 0..self.setting.iterations as usize {
            for (&(rank, buffer), &base) in &self.base {
                for cell in 0..self.size[&(rank, buffer)] {
                    let value = self.entry[base + cell as usize];
                    if value != UNDEFINED {
                        let at = self.place(rank, buffer, cell);
                        memory[iteration * self.cells + at] =
                            self.entry_value(base + cell as usize, iteration);
                    }
                }
            }
        }
        State {
            entered: vec![!self.watches_entry(); self.plan.header.ranks as usize],
            at: vec![0; self.plan.blocks.len()],
            memory,
            flight: vec![Vec::new(); self.plan.channels.len()],
        }
    }

    /// Whether it matters when ranks enter.
    fn watches_entry(&self) -> bool {
        self.plan.promise.synchronised || self.plan.operands.iter().any(|o| matches!(o, Operand::Peer { .. }))
    }

    fn entry_value(&self, at: usize, iteration: usize) -> u64 {
        add(self.entry[at], multiply(iteration as u64, 0x0123_4567_89AB_CDEF))
    }

    /// Where a cell lies, in place the common place of both sides.
    fn place(&self, rank: RankId, buffer: BufferId, cell: u32) -> usize {
        if self.setting.in_place {
            for o in &self.plan.overlaps {
                if o.rank == rank && o.left == buffer && (o.left_cell..o.left_cell + o.cells).contains(&cell)
                {
                    return self.base[&(rank, o.right)] + (o.right_cell + cell - o.left_cell) as usize;
                }
            }
        }
        self.base[&(rank, buffer)] + cell as usize
    }

    fn next(&self, state: &State) -> Result<Vec<State>, &'static str> {
        let mut next = Vec::new();
        for rank in 0..state.entered.len() {
            if !state.entered[rank] {
                let mut state = state.clone();
                state.entered[rank] = true;
                if self.plan.promise.synchronised
                    && self.left(&state, RankId::new(rank))
                    && state.entered.contains(&false)
                {
                    return Err("leaves early");
                }
                next.push(state);
            }
        }
        let mut all_done = true;
        for b in 0..self.events.len() {
            let Some(&event) = self.events[b].get(state.at[b] as usize) else { continue };
            all_done = false;
            if state.entered[self.plan.blocks[b].rank.index()]
                && self.enabled(state, BlockId::new(b), event)?
            {
                next.push(self.act(state, BlockId::new(b), event)?);
            }
        }
        if next.is_empty() {
            if !all_done {
                return Err("deadlock");
            }
            self.check_end(state)?;
        }
        Ok(next)
    }

    fn enabled(&self, state: &State, block: BlockId, event: Event) -> Result<bool, &'static str> {
        let step = &self.plan.steps[event.step.index()];
        if event.micro == 0 {
            for &wait in self.plan.waits(step) {
                // From an epilogue, for the last iteration of a body; for a prologue, its only one.
                let later = self.section_of(event.step) == Section::Epilogue;
                let iteration = if later { self.setting.iterations - 1 } else { event.iteration };
                let target = self.finished.get(&(wait, iteration)).or_else(|| self.finished.get(&(wait, 0)));
                let &(other, events) = target.ok_or("waits for nothing")?;
                if self.plan.blocks[other.index()].rank != self.plan.blocks[block.index()].rank {
                    return Err("waits for another rank");
                }
                if state.at[other.index()] < events {
                    return Ok(false);
                }
            }
        }
        for &operand in self.plan.src(step) {
            let Operand::Channel(id) = operand else { continue };
            let channel = self.plan.channels.get(id.index()).ok_or("bounds")?;
            if !self.plan.readers(channel).contains(&block) {
                return Err("reads another block's channel");
            }
            if self.sent(state, id.index()) <= self.taken(state, id.index(), block) {
                return Ok(false);
            }
        }
        for &operand in self.plan.dst(step) {
            let Operand::Channel(id) = operand else { continue };
            let channel = self.plan.channels.get(id.index()).ok_or("bounds")?;
            if channel.writer != block {
                return Err("writes another block's channel");
            }
            let waiting = self.sent(state, id.index()) - self.slowest(state, id.index());
            if channel.kind == ChannelKind::Slots && waiting >= self.setting.slots as usize {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn act(&self, state: &State, block: BlockId, event: Event) -> Result<State, &'static str> {
        let step = &self.plan.steps[event.step.index()];
        let rank = self.plan.blocks[block.index()].rank;
        let mut value = None;
        for (i, &operand) in self.plan.src(step).iter().enumerate() {
            let read = match operand {
                Operand::Channel(id) => {
                    if self.plan.src(step)[..i].contains(&operand) {
                        return Err("one channel twice");
                    }
                    let first = self.slowest(state, id.index());
                    let read = state.flight[id.index()][self.taken(state, id.index(), block) - first];
                    if self.plan.channels[id.index()].kind == ChannelKind::Counter {
                        continue;
                    }
                    read
                }
                place => state.memory[self.locate(state, rank, place, event)?.0],
            };
            if read == UNDEFINED {
                return Err("undefined");
            }
            let read = if step.pre.has(i) { multiply(read, self.inner) } else { read };
            value = Some(value.map_or(read, |sum| add(sum, read)));
        }
        if step.post {
            value = value.map(|value| multiply(value, self.factor));
        }
        let mut next = state.clone();
        for (i, &operand) in self.plan.dst(step).iter().enumerate() {
            match operand {
                Operand::Channel(id) => {
                    if self.plan.dst(step)[..i].contains(&operand) {
                        return Err("one channel twice");
                    }
                    let counter = self.plan.channels[id.index()].kind == ChannelKind::Counter;
                    let sent = if counter { 0 } else { value.ok_or("nothing to send")? };
                    next.flight[id.index()].push(sent);
                }
                place => {
                    let (at, role) = self.locate(state, rank, place, event)?;
                    if role == Role::Send {
                        return Err("writes `in`");
                    }
                    next.memory[at] = value.ok_or("nothing to store")?;
                }
            }
        }
        next.at[block.index()] += 1;
        for &operand in self.plan.src(step) {
            // What every reader has taken is no longer in flight.
            if let Operand::Channel(id) = operand {
                let gone = self.slowest(&next, id.index()) - self.slowest(state, id.index());
                next.flight[id.index()].drain(..gone);
            }
        }
        if self.plan.promise.synchronised && self.left(&next, rank) && next.entered.contains(&false) {
            return Err("leaves early");
        }
        Ok(next)
    }

    fn locate(
        &self,
        state: &State,
        own: RankId,
        operand: Operand,
        event: Event,
    ) -> Result<(usize, Role), &'static str> {
        let (rank, buffer, cell) = match operand {
            Operand::Local { buffer, cell } => (own, buffer, cell),
            Operand::Peer { rank, buffer, cell } => {
                if rank.0 >= self.plan.header.ranks {
                    return Err("bounds");
                }
                if rank != own && (!state.entered[rank.index()] || self.left(state, rank)) {
                    return Err("reaches outside a call");
                }
                (rank, buffer, cell)
            }
            Operand::Channel(_) => return Err("no place"),
        };
        let cell = cell + event.micro;
        if self.size.get(&(rank, buffer)).is_none_or(|&cells| cell >= cells) {
            return Err("bounds");
        }
        let at = event.iteration as usize * self.cells + self.place(rank, buffer, cell);
        Ok((at, self.plan.buffers[buffer.index()].role))
    }

    /// Whether all blocks of a rank have ended.
    fn left(&self, state: &State, rank: RankId) -> bool {
        let mut of = (0..self.plan.blocks.len()).filter(|&b| self.plan.blocks[b].rank == rank);
        of.all(|b| state.at[b] as usize == self.events[b].len())
    }

    fn check_end(&self, state: &State) -> Result<(), &'static str> {
        if state.flight.iter().any(|messages| !messages.is_empty()) {
            return Err("messages left over");
        }
        let k = self.plan.header.cells;
        for clause in &self.plan.promise.clauses {
            let list = &self.plan.promise.lists[clause.list as usize];
            for iteration in 0..self.setting.iterations as usize {
                for cell in 0..k {
                    let entry = |b: &rcc_plan::collective::BlockRef| {
                        let at = self.base[&(b.rank, b.buffer)] + (b.block * k + cell) as usize;
                        self.entry_value(at, iteration)
                    };
                    let sum = list.iter().map(entry).fold(0, add);
                    let whole = multiply(multiply(sum, self.inner), self.factor);
                    let expected = if list.len() > 1 { whole } else { sum };
                    let place = clause.place;
                    let at = self.place(place.rank, place.buffer, place.block * k + cell);
                    let got = state.memory[iteration * self.cells + at];
                    if got != expected {
                        return Err("promise");
                    }
                }
            }
        }
        Ok(())
    }

    fn section_of(&self, step: StepId) -> Section {
        let within = |s: &Section| self.plan.blocks.iter().any(|b| b.section(*s).contains(&step.0));
        Section::ALL.into_iter().find(within).unwrap_or(Section::Body)
    }

    fn sent(&self, state: &State, channel: usize) -> usize {
        let writer = self.plan.channels[channel].writer;
        self.count(state, channel, writer, |step| self.plan.dst(step))
    }

    fn taken(&self, state: &State, channel: usize, reader: BlockId) -> usize {
        self.count(state, channel, reader, |step| self.plan.src(step))
    }

    fn slowest(&self, state: &State, channel: usize) -> usize {
        let readers = self.plan.readers(&self.plan.channels[channel]);
        readers.iter().map(|&reader| self.taken(state, channel, reader)).min().unwrap_or(0)
    }

    /// How many events that a block has done name a channel on one side.
    fn count<'b>(
        &self,
        state: &State,
        channel: usize,
        block: BlockId,
        side: impl Fn(&'b Step) -> &'b [Operand],
    ) -> usize
    where
        'a: 'b,
    {
        let plan: &'a Plan = self.plan;
        let names = |e: &&Event| {
            side(&plan.steps[e.step.index()])
                .iter()
                .any(|o| matches!(o, Operand::Channel(c) if c.index() == channel))
        };
        self.events[block.index()][..state.at[block.index()] as usize].iter().filter(names).count()
    }
}

fn add(a: u64, b: u64) -> u64 {
    (a + b) % PRIME
}

fn multiply(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64
}

/// A number below the prime, by SHA-like mixing of a seed and a key.
fn random(seed: u64, key: u64) -> u64 {
    let mut x = seed.wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ key;
    for _ in 0..4 {
        x ^= x >> 32;
        x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        x ^= x >> 29;
        x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    }
    x % (PRIME - 1) + 1
}
