//! When a move happens: its place in the order of the program, as a list of numbers.
//!
//! In: the statements and turns on the way to each move. Out: comparison of two moves, also after rotating either of
//! them. The one hard idea: a key is what the program counter would be: number of the statement, turn of the loop,
//! number of the statement in its body, and so on; the order of moves is the order of keys. The rotation changes only the turns
//! of variables that go round. So two moves keep their order wherever they are taken, unless the first part in
//! which their keys differ is such a turn.
//!
//! Moves that read before any of them writes (those of one `step`, the copies of one multicast, the cells of one move)
//! share a key up to a part of its own, the phase: reads come before writes.

use std::cmp::Ordering;

use grammar::span::Span;

use super::action::turned;
use crate::trace::{Bindings, Looped};

/// What a number of a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A statement, or the turn of a variable that stands still.
    Still,
    /// A turn that goes round: how far, of how many.
    Turn { by: u32, count: u32 },
    /// 0 for what is read, 1 for what is written.
    Phase,
}

/// The keys of all moves.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// By site: what the parts are. All moves of a site have the same way to them.
    pub(super) parts: Vec<Vec<Part>>,
    /// By site: its loop variables.
    pub(super) variables: Vec<Vec<Variable>>,
    /// Parts of all moves.
    pub(super) flat: Vec<u32>,
    /// By move: its site and where its parts start.
    pub(super) moves: Vec<(u32, u32)>,
}

/// A loop variable, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: String,
    /// The range as written.
    pub(super) text: Span,
    /// Which part of the key it is.
    pub(super) part: usize,
    /// First, step and number of its values, if they are the same for all moves of the site.
    pub(super) range: Option<(i64, i64, u64)>,
    pub(super) rev: bool,
}

/// What a move does to a place at the moment that is compared, and where it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) mv: u32,
    /// How many times σ is applied to it.
    pub(super) times: u32,
    pub(super) writes: bool,
}

impl Keys {
    fn of(&self, mv: u32) -> (&[Part], &[u32]) {
        let (site, start) = self.moves[mv as usize];
        let parts = &self.parts[site as usize][..];
        (parts, &self.flat[start as usize..][..parts.len()])
    }

    /// Which comes first, and whether that is so wherever they are taken.
    pub(super) fn compare(&self, a: Moment, b: Moment) -> (Ordering, bool) {
        let (parts, of_a) = self.of(a.mv);
        let (_, of_b) = self.of(b.mv);
        // Up to the first difference both have taken the same way, so that their parts are alike.
        for ((&part, &x), &y) in parts.iter().zip(of_a).zip(of_b) {
            let (x, y, lasting) = match part {
                Part::Still => (x, y, true),
                Part::Phase => (a.writes.into(), b.writes.into(), true),
                Part::Turn { by, count } => {
                    (turned(x, by, a.times, count), turned(y, by, b.times, count), false)
                }
            };
            if x != y {
                return (x.cmp(&y), lasting);
            }
        }
        (Ordering::Equal, true)
    }

    /// Which of two orbits of moves comes first wherever they conflict: by all that does not go round. And whether they are of one
    /// `step`, as far as such turns leave that open: those of its other turns do not conflict with these.
    pub(super) fn compare_orbits(&self, a: u32, b: u32) -> (Ordering, bool) {
        let (parts, of_a) = self.of(a);
        let (_, of_b) = self.of(b);
        let mut together = false;
        // Turns that differ are of one loop: both take the same way on from there, as long as statements are the same.
        for ((&part, &x), &y) in parts.iter().zip(of_a).zip(of_b) {
            match part {
                Part::Phase => together = true,
                Part::Turn { .. } => {}
                Part::Still if x != y => return (x.cmp(&y), together),
                Part::Still => {}
            }
        }
        (Ordering::Equal, together)
    }

    /// Whether two writes are made together, at the end of one group: nothing differs up to the phase.
    pub(super) fn together(&self, a: Moment, b: Moment) -> bool {
        let (parts, of_a) = self.of(a.mv);
        let (_, of_b) = self.of(b.mv);
        for ((&part, &x), &y) in parts.iter().zip(of_a).zip(of_b) {
            match part {
                Part::Phase => return true,
                Part::Still if x == y => {}
                Part::Turn { by, count }
                    if turned(x, by, a.times, count) == turned(y, by, b.times, count) => {}
                _ => return false,
            }
        }
        false
    }

    /// The loop variables of a move, taken round so many times, as far as they are known.
    pub(super) fn bindings(&self, mv: u32, times: u32) -> Bindings {
        let (site, _) = self.moves[mv as usize];
        let (parts, key) = self.of(mv);
        let turn = |part: usize| match parts[part] {
            Part::Turn { by, count } => turned(key[part], by, times, count),
            Part::Still | Part::Phase => key[part],
        };
        let mut found = Bindings::default();
        for variable in &self.variables[site as usize] {
            let Some((first, step, count)) = variable.range else { continue };
            let at = |turn: u64| first + step * if variable.rev { count - 1 - turn } else { turn } as i64;
            found.0.push((variable.name.clone(), at(turn(variable.part).into())));
            let last = at(count - 1);
            found.1.push(Looped { variable: variable.name.clone(), range: variable.text, last });
        }
        found
    }

    /// Takes a move elsewhere for good.
    pub(super) fn take(&mut self, mv: u32, times: u32) {
        let (site, start) = self.moves[mv as usize];
        for (i, &part) in self.parts[site as usize].iter().enumerate() {
            if let Part::Turn { by, count } = part {
                let value = &mut self.flat[start as usize + i];
                *value = turned(*value, by, times, count);
            }
        }
    }

    /// The order of all moves as they are.
    pub(super) fn sorted(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.moves.len() as u32).collect();
        let moment = |mv: u32| Moment { mv, times: 0, writes: true };
        let before = |&a: &u32, &b: &u32| self.compare(moment(a), moment(b)).0;
        if !order.is_sorted_by(|a, b| before(a, b) != Ordering::Greater) {
            order.sort_by(before);
        }
        order
    }

    /// Puts moves into another order.
    pub(super) fn arrange(&mut self, order: &[u32]) {
        self.moves = order.iter().map(|&mv| self.moves[mv as usize]).collect();
    }
}
