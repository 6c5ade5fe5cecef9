//! Rounds: what must come before what, place by place.
//!
//! In: the nodes of one group (a move, or a `step`), in the order written. Out: their rounds and hazards, and which of their reads
//! another node of the group cuts short. The round of a node is the length of the longest chain of nodes before it: those
//! that wrote what it reads, that wrote or read what it overwrites. Places that a form lays on each other count as one.
//!
//! Within a group all reads come first, so a node of the group that overwrites what another reads is no reason for
//! a later round: the read is told to be done before that node instead.

use super::bits::Bits;
use super::{FRESH, Flow, NEVER, NodeId, Special};
use crate::graph::PlaceTable;
use crate::trace::Place;

/// What is known of each place.
pub(super) struct Hazards<'a> {
    places: &'a PlaceTable,
    cells: Vec<Cell>,
    /// Places that were written with anything but what they held.
    changed: Bits,
    /// By place: the node that wrote it first in the last group of several that wrote it; [`NOBODY`]: none did.
    writer: Vec<u32>,
    /// Who read it in that last round, and one more than the last round in which another one did. Empty if no
    /// rank copies within itself.
    reader: Vec<(u32, u32)>,
    /// Of each node of the group at hand, as in `Flow::hazards`.
    group: Vec<u32>,
}

/// A place, in one line of the cache: there are millions, and they are looked at in no order.
#[derive(Debug, Clone, Copy)]
struct Cell {
    /// One more than the round of the last write; 0: never written.
    written: u32,
    /// One more than the last round of a read since.
    read: u32,
}

const NOBODY: u32 = u32::MAX;

impl<'a> Hazards<'a> {
    pub(super) fn new(places: &'a PlaceTable, copies: bool) -> Hazards<'a> {
        let len = places.len();
        Hazards {
            places,
            cells: vec![Cell { written: 0, read: 0 }; len],
            changed: Bits::new(len),
            writer: Vec::new(),
            group: Vec::new(),
            reader: if copies { vec![(NOBODY, 0); len] } else { Vec::new() },
        }
    }

    /// Whether a place, an index, ever held anything but its entry value.
    pub(super) fn is_changed(&self, place: u32) -> bool {
        self.changed.has(place)
    }

    /// Gives the nodes from `first` on their rounds: one group, whose nodes are of one move if `alone`.
    pub(super) fn group(&mut self, flow: &mut Flow, first: usize, alone: bool) {
        self.group.clear();
        if first + 1 == flow.nodes.len() {
            self.single(flow, first);
        } else {
            self.several(flow, first);
        }
        if !self.reader.is_empty() {
            flow.hazards.extend(self.group.iter().map(|&hazard| if alone { hazard } else { NEVER }));
        }
    }

    /// A node that is a group: what it reads and writes of the same places is its own business. (The cells of a node follow
    /// each other.)
    fn single(&mut self, flow: &mut Flow, id: usize) {
        let node = flow.nodes[id];
        let width = node.width as usize;
        let cells = |place: Place| {
            let start = self.places.index(place) as usize;
            start..start + width
        };
        let home = cells(home(flow, id));
        let written = |cells: &[Cell]| cells.iter().map(|cell| cell.written).max().unwrap_or(0);
        let mut round = 0;
        for operand in &mut flow.operands[Flow::range(&node)] {
            let read = written(&self.cells[cells(operand.place)]);
            operand.set(FRESH, read == 0);
            round = round.max(read);
        }
        let touched = self.cells[home.clone()].iter().map(|cell| cell.written.max(cell.read));
        let hazard = touched.max().unwrap_or(0);
        if let Some(but_for) = self.but_for_its_reader(flow, id) {
            flow.hazard_but_for.insert(NodeId(id as u32), but_for);
        }
        let round = round.max(hazard);
        flow.nodes[id].round = round;
        self.group.push(hazard);
        self.cells[home.clone()].fill(Cell { written: round + 1, read: 0 });
        self.change(flow, id);
        if let Some(readers) = self.reader.get_mut(home.clone()) {
            readers.fill((NOBODY, 0));
        }
        for at in Flow::range(&node) {
            let start = self.places.index(flow.operands[at].place) as usize;
            for index in start..start + width {
                if !home.contains(&index) {
                    self.note_read(index, id as u32, round + 1);
                }
            }
        }
    }

    fn several(&mut self, flow: &mut Flow, first: usize) {
        if self.writer.is_empty() {
            self.writer = vec![NOBODY; self.cells.len()];
        }
        // 1. What the group finds, and what it will overwrite.
        for id in first..flow.nodes.len() {
            let node = flow.nodes[id];
            let mut round = 0;
            for operand in &mut flow.operands[Flow::range(&node)] {
                let written = |i| self.cells[self.places.index(operand.place.plus(i)) as usize].written;
                let read = (0..node.width).map(written).max().unwrap_or(0);
                operand.set(FRESH, read == 0);
                round = round.max(read);
            }
            let mut hazard = 0;
            for i in 0..node.width {
                let at = self.places.index(home(flow, id).plus(i)) as usize;
                hazard = hazard.max(self.cells[at].written).max(self.cells[at].read);
                if !self.in_group(at, first) {
                    self.writer[at] = id as u32;
                }
            }
            let hazard_but_for = self.but_for_its_reader(flow, id);
            if let Some(but_for) = hazard_but_for {
                flow.hazard_but_for.insert(NodeId(id as u32), but_for);
            }
            flow.nodes[id].round = round;
            self.group.push(hazard);
        }
        if first + 1 < flow.nodes.len() {
            // Who overwrites what another one reads comes no earlier than all that this one reads is there.
            let ready: Vec<u32> = flow.nodes[first..].iter().map(|node| node.round).collect();
            for id in first..flow.nodes.len() {
                let node = flow.nodes[id];
                for at in Flow::range(&node) {
                    for i in 0..node.width {
                        let index = self.places.index(flow.operands[at].place.plus(i)) as usize;
                        if self.in_group(index, first) {
                            let writer = &mut flow.nodes[self.writer[index] as usize];
                            writer.round = writer.round.max(ready[id - first]);
                        }
                    }
                }
            }
        }
        // 2. Its writes, in the order written: a `+=` follows those before it into the same place.
        for id in first..flow.nodes.len() {
            let (to, width) = (home(flow, id), flow.nodes[id].width);
            let mut round = flow.nodes[id].round.max(self.group[id - first]);
            for i in 0..width {
                // Of those before it in the group, if some wrote the place.
                round = round.max(self.cells[self.places.index(to.plus(i)) as usize].written);
            }
            flow.nodes[id].round = round;
            self.change(flow, id);
            for i in 0..width {
                let at = self.places.index(to.plus(i)) as usize;
                self.cells[at] = Cell { written: round + 1, read: 0 };
                if let Some(reader) = self.reader.get_mut(at) {
                    *reader = (NOBODY, 0);
                }
            }
        }
        // 3. Its reads.
        for id in first..flow.nodes.len() {
            let node = flow.nodes[id];
            for at in Flow::range(&node) {
                let place = flow.operands[at].place;
                // The left operand of a `+=` is what the group has left there so far.
                let own = at == node.first as usize && place == home(flow, id);
                for i in 0..node.width {
                    let index = self.places.index(place.plus(i)) as usize;
                    if !self.in_group(index, first) {
                        self.note_read(index, id as u32, node.round + 1);
                    } else if !own && !node.is_signal() && self.writer[index] != id as u32 {
                        // (A signal may also be told later: it then tells of more arrivals.)
                        self.cut_short(flow, at, NodeId(self.writer[index]));
                    }
                }
            }
        }
    }

    /// Notes what a node changes: nothing, if it copies places onto themselves, as forms may have it.
    fn change(&mut self, flow: &Flow, id: usize) {
        let (node, to) = (&flow.nodes[id], self.places.index(home(flow, id)));
        let from = flow.operands(node).first().filter(|_| node.copies());
        if from.is_none_or(|operand| self.places.index(operand.place) != to) {
            (to..to + node.width).for_each(|place| self.changed.add(place));
        }
    }

    fn note_read(&mut self, place: usize, node: u32, round: u32) {
        let read = self.cells[place].read;
        if let Some((reader, others)) = self.reader.get_mut(place) {
            if round > read {
                (*reader, *others) = (node, if *reader == node { *others } else { read });
            } else if *reader != node {
                *others = (*others).max(round);
            }
        }
        self.cells[place].read = read.max(round);
    }

    /// The one node that read all of the node's home last, if it read the very cells, and the hazard but for that.
    fn but_for_its_reader(&self, flow: &Flow, id: usize) -> Option<(NodeId, u32)> {
        let node = &flow.nodes[id];
        let first = self.places.index(home(flow, id));
        let reader = self.reader.get(first as usize).map(|&(reader, _)| reader);
        let reader = NodeId(reader.filter(|&reader| reader != NOBODY && node.copies())?);
        let of_reader = flow.node(reader);
        let same = |place: Place| self.places.index(place) == first;
        if of_reader.width != node.width || !flow.operands(of_reader).iter().any(|o| same(o.place)) {
            return None;
        }
        let mut hazard = 0;
        for at in first as usize..(first + node.width) as usize {
            let (other, others) = self.reader[at];
            if other != reader.0 {
                return None;
            }
            hazard = hazard.max(self.cells[at].written).max(others);
        }
        Some((reader, hazard))
    }

    /// Whether a node of the group that begins with node `first` writes a place.
    fn in_group(&self, place: usize, first: usize) -> bool {
        self.writer[place] != NOBODY && self.writer[place] as usize >= first
    }

    /// `by` overwrites what an operand of the same group reads. Which of several does so first is settled with the order of all
    /// nodes; until then the one of the earliest round stands for them.
    fn cut_short(&self, flow: &mut Flow, operand: usize, by: NodeId) {
        let special = flow.special(operand);
        let Some(known) = special.guard else {
            return flow.set_special(operand, Special { guard: Some(by), ..special });
        };
        if known != by && !flow.guards(special).any(|guard| guard == by) {
            let earlier = flow.node(by).round < flow.node(known).round;
            let (guard, other) = if earlier { (by, known) } else { (known, by) };
            flow.other_guards.push((other, special.others));
            let others = flow.other_guards.len() as u32;
            flow.set_special(operand, Special { guard: Some(guard), others, ..special });
        }
    }
}

fn home(flow: &Flow, id: usize) -> Place {
    let node = &flow.nodes[id];
    Place { buffer: node.home.buffer, rank: node.rank, cell: node.home.cell }
}
