//! All single mutations of a plan, by kind.
//!
//! In: a plan. Out: each plan that differs from it in one respect. The promise is never touched: it is what the rest
//! is judged by.

use rcc_plan::ids::{BlockId, BufferId, ChannelId, RankId, StepId};
use rcc_plan::plan::{ChannelKind, Operand, Plan, Role, Section};

/// What was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    DroppedWait,
    OtherWait,
    SwappedSends,
    SwappedSteps,
    CreditOffByOne,
    WrongCell,
    WrongRank,
    TokenRemoved,
    UnbalancedChannel,
    WrongChannel,
    OtherKindOfChannel,
    OtherReader,
    DroppedOperand,
    DoubledOperand,
    ChangedWidth,
    FlippedPost,
    FlippedPre,
    FlippedRoundEach,
    OtherWitness,
    OtherForm,
    OtherScratch,
}

/// Every mutant of `plan`; each differs from it.
pub(crate) fn mutants(plan: &Plan) -> Vec<(Kind, Plan)> {
    let mut all = Vec::new();
    waits(plan, &mut all);
    orders(plan, &mut all);
    operands(plan, &mut all);
    channels(plan, &mut all);
    flags(plan, &mut all);
    header(plan, &mut all);
    all.retain(|(_, mutant)| mutant != plan);
    all
}

/// One respect in which a step differs.
#[derive(Clone)]
struct Parts {
    src: Vec<Operand>,
    dst: Vec<Operand>,
    waits: Vec<StepId>,
}

impl Parts {
    fn drop(&mut self, written: bool, at: usize) {
        if written { &mut self.dst } else { &mut self.src }.remove(at);
    }
}

fn parts(plan: &Plan, step: usize) -> Parts {
    let step = &plan.steps[step];
    Parts { src: plan.src(step).to_vec(), dst: plan.dst(step).to_vec(), waits: plan.waits(step).to_vec() }
}

/// The plan with some steps' operands and waits replaced, written anew so that nothing is left unused.
fn with(plan: &Plan, changes: &[(usize, Parts)]) -> Plan {
    let mut to = plan.clone();
    to.operands.clear();
    to.waits.clear();
    for i in 0..plan.steps.len() {
        let new =
            changes.iter().find(|(at, _)| *at == i).map_or_else(|| parts(plan, i), |(_, new)| new.clone());
        let step = &mut to.steps[i];
        (step.operands, step.waits) = (to.operands.len() as u32, to.waits.len() as u32);
        (step.sources, step.destinations) = (new.src.len() as u16, new.dst.len() as u16);
        step.wait_count = new.waits.len() as u16;
        to.operands.extend(new.src.iter().chain(&new.dst));
        to.waits.extend(new.waits);
    }
    to
}

fn change(plan: &Plan, step: usize, edit: impl FnOnce(&mut Parts)) -> Plan {
    let mut new = parts(plan, step);
    edit(&mut new);
    with(plan, &[(step, new)])
}

fn block_of(plan: &Plan, step: usize) -> BlockId {
    let holds =
        |b: &rcc_plan::plan::Block| Section::ALL.iter().any(|s| b.section(*s).contains(&(step as u32)));
    BlockId::new(plan.blocks.iter().position(holds).expect("every step is in a block"))
}

fn waits(plan: &Plan, all: &mut Vec<(Kind, Plan)>) {
    for i in 0..plan.steps.len() {
        let rank = plan.blocks[block_of(plan, i).index()].rank;
        for (w, wait) in parts(plan, i).waits.into_iter().enumerate() {
            all.push((Kind::DroppedWait, change(plan, i, |p| p.waits.retain(|o| *o != wait))));
            for other in 0..plan.steps.len() {
                if plan.blocks[block_of(plan, other).index()].rank == rank {
                    all.push((Kind::OtherWait, change(plan, i, |p| p.waits[w] = StepId::new(other))));
                }
            }
        }
    }
}

fn orders(plan: &Plan, all: &mut Vec<(Kind, Plan)>) {
    let is_send = |o: &Operand| matches!(o, Operand::Channel(_));
    for block in &plan.blocks {
        for section in Section::ALL {
            let steps: Vec<usize> = block.section(section).map(|s| s as usize).collect();
            for pair in steps.windows(2) {
                let mut mutant = plan.clone();
                mutant.steps.swap(pair[0], pair[1]);
                all.push((Kind::SwappedSteps, mutant));
            }
            for (n, &a) in steps.iter().enumerate() {
                for &b in &steps[n + 1..] {
                    let (mut x, mut y) = (parts(plan, a), parts(plan, b));
                    let (Some(i), Some(j)) = (x.dst.iter().position(is_send), y.dst.iter().position(is_send))
                    else {
                        continue;
                    };
                    if x.dst[i] == y.dst[j] {
                        // What the one sends, the other sends now.
                        std::mem::swap(&mut x.src, &mut y.src);
                    } else {
                        std::mem::swap(&mut x.dst[i], &mut y.dst[j]);
                    }
                    all.push((Kind::SwappedSends, with(plan, &[(a, x), (b, y)])));
                }
            }
        }
    }
}

fn operands(plan: &Plan, all: &mut Vec<(Kind, Plan)>) {
    for i in 0..plan.steps.len() {
        let Parts { src, dst, .. } = parts(plan, i);
        let rank = plan.blocks[block_of(plan, i).index()].rank;
        let sides =
            src.iter().enumerate().map(|o| (false, o)).chain(dst.iter().enumerate().map(|o| (true, o)));
        for (written, (at, &operand)) in sides {
            let replaced =
                |new: Operand| change(plan, i, |p| if written { p.dst[at] = new } else { p.src[at] = new });
            let dropped = || change(plan, i, |p| p.drop(written, at));
            match operand {
                Operand::Channel(_) => {
                    for other in 0..=plan.channels.len() {
                        all.push((Kind::WrongChannel, replaced(Operand::Channel(ChannelId::new(other)))));
                    }
                    all.push((Kind::UnbalancedChannel, dropped()));
                }
                Operand::Local { .. } => {
                    for (buffer, cell) in places(plan, rank) {
                        all.push((Kind::WrongCell, replaced(Operand::Local { buffer, cell })));
                    }
                    all.push((Kind::DroppedOperand, dropped()));
                    if !written {
                        all.push((Kind::DoubledOperand, change(plan, i, |p| p.src.push(operand))));
                    }
                }
                Operand::Peer { rank: owner, buffer, cell } => {
                    for (buffer, cell) in places(plan, owner) {
                        all.push((Kind::WrongCell, replaced(Operand::Peer { rank: owner, buffer, cell })));
                    }
                    for other in 0..=plan.header.ranks {
                        let rank = RankId(other);
                        all.push((Kind::WrongRank, replaced(Operand::Peer { rank, buffer, cell })));
                    }
                    all.push((Kind::WrongRank, replaced(Operand::Local { buffer, cell })));
                    all.push((Kind::DroppedOperand, dropped()));
                    if !written {
                        all.push((Kind::DoubledOperand, change(plan, i, |p| p.src.push(operand))));
                    }
                }
            }
        }
    }
}

/// All cells at a rank, and one too many of each buffer.
fn places(plan: &Plan, rank: RankId) -> Vec<(BufferId, u32)> {
    let mut places = Vec::new();
    for (i, buffer) in plan.buffers.iter().enumerate() {
        let cells = match buffer.role {
            Role::Scratch => plan.header.scratch_cells[rank.index()],
            Role::Send | Role::Recv => buffer.blocks * plan.header.cells,
        };
        places.extend((0..=cells).map(|cell| (BufferId::new(i), cell)));
    }
    places
}

fn channels(plan: &Plan, all: &mut Vec<(Kind, Plan)>) {
    let steps_with = |channel: usize, written: bool| -> Vec<usize> {
        let named = Operand::Channel(ChannelId::new(channel));
        let side = |i: &usize| {
            let Parts { src, dst, .. } = parts(plan, *i);
            if written { dst.contains(&named) } else { src.contains(&named) }
        };
        (0..plan.steps.len()).filter(side).collect()
    };
    for (c, channel) in plan.channels.iter().enumerate() {
        let named = Operand::Channel(ChannelId::new(c));
        let mut mutant = plan.clone();
        mutant.channels[c].kind = match channel.kind {
            ChannelKind::Slots => ChannelKind::Counter,
            ChannelKind::Counter => ChannelKind::Slots,
        };
        all.push((Kind::OtherKindOfChannel, mutant));
        // One message more: sent, and perhaps received, by any step of the block that does not do so yet.
        for i in 0..plan.steps.len() {
            let Parts { src, dst, .. } = parts(plan, i);
            if block_of(plan, i) == channel.writer && !dst.contains(&named) {
                all.push((Kind::UnbalancedChannel, change(plan, i, |p| p.dst.push(named))));
            }
            if plan.readers(channel).contains(&block_of(plan, i)) && !src.contains(&named) {
                all.push((Kind::UnbalancedChannel, change(plan, i, |p| p.src.push(named))));
            }
        }
        if channel.kind == ChannelKind::Counter && channel.readers.len() == 1 {
            for (send, receive) in steps_with(c, true).into_iter().zip(steps_with(c, false)) {
                let mut mutant = change(plan, send, |p| p.dst.retain(|o| *o != named));
                mutant = change(&mutant, receive, |p| p.src.retain(|o| *o != named));
                all.push((Kind::TokenRemoved, mutant));
            }
        }
    }
    for r in 0..plan.readers.len() {
        for b in 0..plan.blocks.len() {
            let mut mutant = plan.clone();
            mutant.readers[r] = BlockId::new(b);
            all.push((Kind::OtherReader, mutant));
        }
    }
}

fn flags(plan: &Plan, all: &mut Vec<(Kind, Plan)>) {
    for i in 0..plan.steps.len() {
        let mut edit = |kind, edit: &dyn Fn(&mut rcc_plan::plan::Step)| {
            let mut mutant = plan.clone();
            edit(&mut mutant.steps[i]);
            all.push((kind, mutant));
        };
        edit(Kind::ChangedWidth, &|s| s.width += 1);
        edit(Kind::ChangedWidth, &|s| s.width = s.width.saturating_sub(1));
        edit(Kind::FlippedPost, &|s| s.post = !s.post);
        edit(Kind::FlippedPre, &|s| s.pre.0 ^= 1);
        edit(Kind::FlippedPre, &|s| s.pre.0 ^= 1 << s.sources.clamp(1, 32).saturating_sub(1));
        edit(Kind::FlippedRoundEach, &|s| s.round_each = !s.round_each);
    }
    for w in 0..plan.witnesses.len() {
        let mut gone = plan.clone();
        gone.witnesses.remove(w);
        all.push((Kind::OtherWitness, gone));
        for step in (0..plan.steps.len()).map(StepId::new) {
            let mut mutant = plan.clone();
            mutant.witnesses[w].ready = step;
            all.push((Kind::OtherWitness, mutant));
            let mut mutant = plan.clone();
            mutant.witnesses[w].done = step;
            all.push((Kind::OtherWitness, mutant));
        }
        for rank in 0..plan.header.ranks {
            let mut mutant = plan.clone();
            mutant.witnesses[w].owner = RankId(rank);
            all.push((Kind::OtherWitness, mutant));
        }
    }
}

fn header(plan: &Plan, all: &mut Vec<(Kind, Plan)>) {
    let mut edit = |kind, edit: &dyn Fn(&mut Plan)| {
        let mut mutant = plan.clone();
        edit(&mut mutant);
        all.push((kind, mutant));
    };
    edit(Kind::CreditOffByOne, &|p| p.header.k_min += 1);
    edit(Kind::CreditOffByOne, &|p| p.header.k_min = p.header.k_min.saturating_sub(1));
    edit(Kind::FlippedPost, &|p| p.header.serves_post = !p.header.serves_post);
    edit(Kind::FlippedPre, &|p| p.header.serves_pre = !p.header.serves_pre);
    edit(Kind::OtherForm, &|p| p.header.forms.same = !p.header.forms.same);
    edit(Kind::OtherForm, &|p| p.header.forms.disjoint = !p.header.forms.disjoint);
    for o in 0..plan.overlaps.len() {
        edit(Kind::OtherForm, &|p| {
            p.overlaps.remove(o);
        });
        edit(Kind::OtherForm, &|p| p.overlaps[o].right_cell += p.header.cells);
    }
    for rank in 0..plan.header.scratch_cells.len() {
        edit(Kind::OtherScratch, &|p| {
            p.header.scratch_cells[rank] = p.header.scratch_cells[rank].saturating_sub(1);
        });
        edit(Kind::OtherScratch, &|p| p.header.scratch_cells[rank] += 1);
    }
}
