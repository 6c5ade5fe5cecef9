//! V3: every two conflicting accesses to a cell are ordered, in every execution.
//!
//! In: a plan that V0, V1, V2 and V5 have passed, with clocks and fences. Out: nothing, or races: two accesses to
//! one cell, at least one of them a write, of which neither certainly comes first. Under the form `same` cells that
//! overlap are one; a plan that serves `same` is checked under it, which covers `disjoint` (fewer cells are one).
//! Only accesses of one iteration can meet: iterations work on different elements of every cell.
//!
//! Within a rank clocks decide. An access of another rank to this one's memory happens, for this rank, between two
//! of its own steps: READY sent and DONE received. So it comes after whatever is before READY and before whatever is
//! after DONE; two of the same foreign rank may also be ordered over there. The steps are followed in an order that
//! agrees with all of this; then an access needs comparing only with the last write of its cell and, if it writes,
//! the reads since: what came earlier is ordered before those. Cost: linear in the accesses.
//!
//! Within a step, micro-steps may be moved together (L4), so a cell that one micro-step writes must not be read or
//! written by another one of the same step. (The same micro-step may: it reads first.)

use super::clocks::Clocks;
use super::deadlock::Order;
use super::lifetime::Fences;
use super::places::{Cell, Memory, Places};
use super::violation::{Report, Site, Violation};
use crate::ids::{BufferId, RankId, StepId};
use crate::plan::{Form, Operand, Plan};

/// What V3 finds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Two steps race.
    #[error("{first} and {second} of {cell} are not ordered")]
    Race {
        /// The cell.
        cell: Cell,
        /// What the first site does.
        first: Access,
        /// What the second site does.
        second: Access,
    },
    /// Two micro-steps of one step, or two destinations, race.
    #[error(
        "one step {first}s {cell} in its micro-step {first_micro} and writes it in micro-step {second_micro}"
    )]
    WithinStep {
        /// The cell.
        cell: Cell,
        /// Whether it is read or written the other time.
        first: Access,
        /// The micro-step of that.
        first_micro: u32,
        /// The micro-step that writes.
        second_micro: u32,
    },
}

/// Read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Read,
    /// Write.
    Write,
}

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Access::Read => "read",
            Access::Write => "write",
        })
    }
}

impl Fault {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Fault::Race { .. } => "plan::v3_race",
            Fault::WithinStep { .. } => "plan::v3_race_within_step",
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Fault::Race { .. } => {
                "let the later one wait for the earlier one, or put both into one block; for memory of another rank, \
                 move its READY after the earlier one or the later one after its DONE"
            }
            Fault::WithinStep { .. } => "split the step, or let it write the very cells it reads",
        }
    }
}

/// V3.
pub(super) fn check(
    plan: &Plan,
    order: &Order,
    clocks: &Clocks,
    fences: &Fences,
    places: &Places,
) -> Result<(), Vec<Violation>> {
    let form = if plan.header.forms.same { Form::Same } else { Form::Disjoint };
    let memory = Memory::new(plan, places, form);
    let mut races = Races {
        plan,
        clocks,
        fences,
        places,
        memory,
        step_writes: Vec::new(),
        shared: shared_ranks(plan),
        written: Vec::new(),
        reads: Vec::new(),
        read: Vec::new(),
        report: Report::default(),
    };
    for id in (0..plan.steps.len()).map(StepId::new) {
        races.within_step(id);
    }
    if races.shared.contains(&true) {
        for &id in &order.0 {
            races.between_steps(id);
        }
    }
    races.report.verdict()
}

const NOBODY: u32 = u32::MAX;
const NEVER: Mark = Mark { step: NOBODY, closes: NOBODY };

struct Races<'a> {
    plan: &'a Plan,
    clocks: &'a Clocks<'a>,
    fences: &'a Fences,
    places: &'a Places,
    memory: Memory,
    /// What the step at hand writes, kept to save allocations.
    step_writes: Vec<Part>,
    /// Ranks whose memory several blocks access.
    shared: Vec<bool>,
    /// Last write of each place. Empty until needed.
    written: Vec<Mark>,
    /// First of the reads since, an index of `read`. Empty until needed.
    reads: Vec<u32>,
    read: Vec<(Mark, u32)>,
    report: Report,
}

/// `len` cells of memory from `start` on, touched by the micro-steps from `micro` on; the first of them is known as
/// `place`.
#[derive(Debug, Clone, Copy)]
struct Part {
    start: usize,
    len: usize,
    micro: u32,
    place: usize,
}

impl Part {
    /// The micro-step that touches a cell of it.
    fn at(&self, memory: usize) -> u32 {
        self.micro + (memory - self.start) as u32
    }
}

/// An access that has been: the step, and the step of the owner that comes after it (for the owner's own: itself).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    step: u32,
    closes: u32,
}

/// An access that is to be: the step, and the step of the owner that comes before it (for the owner's own: itself).
#[derive(Debug, Clone, Copy)]
struct Coming {
    step: StepId,
    opens: StepId,
    mark: Mark,
}

impl Races<'_> {
    /// The cells of an operand in memory, if it has any: where they start as places, whose they are, of which buffer.
    #[inline]
    fn place(&self, id: StepId, operand: Operand) -> Option<(usize, RankId, BufferId)> {
        let (rank, buffer, cell) = match operand {
            Operand::Channel(_) => return None,
            Operand::Local { buffer, cell } => (self.clocks.rank(id), buffer, cell),
            Operand::Peer { rank, buffer, cell } => (rank, buffer, cell),
        };
        Some((self.places.of(rank, buffer, cell), rank, buffer))
    }

    /// No micro-step may touch a cell that another one writes; none may write a cell twice.
    fn within_step(&mut self, id: StepId) {
        let step = &self.plan.steps[id.index()];
        let (src, dst) = (self.plan.src(step), self.plan.dst(step));
        let in_memory = |operand: &&Operand| !matches!(operand, Operand::Channel(_));
        let stored = dst.iter().filter(in_memory).count();
        // One cell, written once: nothing can meet.
        if stored == 0 || (step.width == 1 && stored == 1) {
            return;
        }
        let mut writes = std::mem::take(&mut self.step_writes);
        writes.clear();
        for &operand in dst {
            writes.extend(self.parts(id, operand, step.width));
        }
        writes.sort_unstable_by_key(|part| (part.start, part.micro));
        let twice = writes.windows(2).find(|pair| pair[1].start < pair[0].start + pair[0].len);
        if let Some([one, other]) = twice {
            let (first, second) = (one.at(other.start), other.micro);
            self.add_within(id, other.place, Access::Write, first.min(second), first.max(second));
        } else if let Some((place, read, write)) = self.read_of_another(id, src, step.width, &writes) {
            self.add_within(id, place, Access::Read, read, write);
        }
        self.step_writes = writes;
    }

    /// A cell that one micro-step reads and another one writes. What is written lies apart, so a part that is read meets
    /// what stands between two places of the list.
    fn read_of_another(
        &self,
        id: StepId,
        src: &[Operand],
        width: u32,
        writes: &[Part],
    ) -> Option<(usize, u32, u32)> {
        src.iter().flat_map(|&operand| self.parts(id, operand, width)).find_map(|read| {
            let first = writes.partition_point(|write| write.start + write.len <= read.start);
            let met = writes[first..].iter().take_while(|write| write.start < read.start + read.len);
            met.map(|write| {
                let meet = read.start.max(write.start);
                (read.place + (meet - read.start), read.at(meet), write.at(meet))
            })
            .find(|&(_, read, write)| read != write)
        })
    }

    /// The stretches of memory that an operand covers.
    fn parts(&self, id: StepId, operand: Operand, width: u32) -> impl Iterator<Item = Part> {
        let known = self.place(id, operand);
        let ranges = known.map(|(place, rank, buffer)| {
            let mut micro = 0;
            self.memory.ranges(rank, buffer, place, width as usize).map(move |memory| {
                let part =
                    Part { start: memory.start, len: memory.len(), micro, place: place + micro as usize };
                micro += part.len as u32;
                part
            })
        });
        ranges.into_iter().flatten()
    }

    fn add_within(&mut self, id: StepId, place: usize, first: Access, first_micro: u32, second_micro: u32) {
        let (plan, places) = (self.plan, self.places);
        self.report.add(|| {
            let cell = places.cell(plan, place);
            let fault = Fault::WithinStep { cell, first, first_micro, second_micro };
            (super::Fault::Races(fault), vec![Site::of(plan, id, "")])
        });
    }

    fn between_steps(&mut self, id: StepId) {
        let step = &self.plan.steps[id.index()];
        let (src, dst) = (self.plan.src(step), self.plan.dst(step));
        for (access, operands) in [(Access::Read, src), (Access::Write, dst)] {
            for &operand in operands {
                let Some((first, owner, buffer)) = self.place(id, operand) else { continue };
                if !self.shared[owner.index()] {
                    continue;
                }
                if self.written.is_empty() {
                    self.written = vec![NEVER; self.places.total()];
                    self.reads = vec![NOBODY; self.places.total()];
                }
                let coming = self.coming(id, owner);
                let (mut place, width) = (first, step.width as usize);
                let (mut done, mut known) = (0, NEVER);
                while done < width {
                    let (memory, len) = self.memory.of(owner, buffer, place);
                    let len = len.min(width - done);
                    for i in 0..len {
                        match access {
                            Access::Read => self.read(coming, memory + i, place + i, &mut known),
                            Access::Write => self.write(coming, memory + i, place + i, &mut known),
                        }
                    }
                    (place, done) = (place + len, done + len);
                }
            }
        }
    }

    fn coming(&self, step: StepId, owner: RankId) -> Coming {
        let fence = self.fences.of(self.plan, step, owner).filter(|_| self.clocks.rank(step) != owner);
        let (opens, closes) = fence.map_or((step, step), |fence| (fence.opens, fence.closes));
        Coming { step, opens, mark: Mark { step: step.0, closes: closes.0 } }
    }

    /// `known` is the access that `coming` was last compared with: neighbouring cells mostly have the same.
    #[inline]
    fn read(&mut self, coming: Coming, memory: usize, place: usize, known: &mut Mark) {
        self.compare(self.written[memory], Access::Write, coming, Access::Read, place, known);
        // A later read of the same block stands for the earlier one: whatever comes after it comes after both.
        let head = self.reads[memory];
        if let Some((mark, _)) = self.read.get_mut(head as usize)
            && self.clocks.block(StepId(mark.step)) == self.clocks.block(coming.step)
        {
            *mark = coming.mark;
            return;
        }
        self.reads[memory] = self.read.len() as u32;
        self.read.push((coming.mark, head));
    }

    #[inline]
    fn write(&mut self, coming: Coming, memory: usize, place: usize, known: &mut Mark) {
        self.compare(self.written[memory], Access::Write, coming, Access::Write, place, known);
        let mut next = std::mem::replace(&mut self.reads[memory], NOBODY);
        while let Some(&(mark, rest)) = self.read.get(next as usize) {
            self.compare(mark, Access::Read, coming, Access::Write, place, known);
            next = rest;
        }
        self.written[memory] = coming.mark;
    }

    #[inline]
    fn compare(
        &mut self,
        earlier: Mark,
        first: Access,
        coming: Coming,
        second: Access,
        place: usize,
        known: &mut Mark,
    ) {
        if earlier == NEVER || earlier == *known || earlier.step == coming.step.0 {
            return;
        }
        if self.ordered(earlier, coming) {
            *known = earlier;
            return;
        }
        let (plan, places) = (self.plan, self.places);
        self.report.add(|| {
            let fault = Fault::Race { cell: places.cell(plan, place), first, second };
            let sites = [(StepId(earlier.step), first), (coming.step, second)];
            let sites = sites.map(|(step, access)| Site::of(plan, step, access.to_string())).to_vec();
            (super::Fault::Races(fault), sites)
        });
    }

    fn ordered(&self, earlier: Mark, coming: Coming) -> bool {
        let (step, closes) = (StepId(earlier.step), StepId(earlier.closes));
        let over_there =
            self.clocks.rank(step) == self.clocks.rank(coming.step) && self.clocks.before(step, coming.step);
        // One token step may receive DONE and send the next READY.
        over_there || closes == coming.opens || self.clocks.before(closes, coming.opens)
    }
}

/// Ranks of several blocks, and ranks that others reach into.
fn shared_ranks(plan: &Plan) -> Vec<bool> {
    let mut shared = vec![false; plan.header.ranks as usize];
    for block in plan.blocks.iter().filter(|block| block.position > 0) {
        shared[block.rank.index()] = true;
    }
    for operand in &plan.operands {
        if let Operand::Peer { rank, .. } = *operand
            && let Some(shared) = shared.get_mut(rank.index())
        {
            *shared = true;
        }
    }
    shared
}
