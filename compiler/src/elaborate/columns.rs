//! Expressions of an innermost loop, evaluated for many of its turns at once.
//!
//! In: what the body of a loop evaluates, the values of its variable. Out: a column of values for each expression, which the
//! turns then read. The one hard idea: nothing can be told from a column that evaluating turn by turn would not give. A column
//! exists only if no turn of it fails (else the turns evaluate for themselves, and the one at fault says so), and what its
//! calls cost is charged by whoever reads it.

use grammar::ast::BinaryOp;

use super::machine::{Machine, apply, call_price};
use crate::check::checked::{ExprId, For, Node, Slot, Source, Stmt};

/// How many turns are evaluated at once.
pub(crate) const LANES: u64 = 512;
/// Fewer turns than this are not worth it.
pub(crate) const LEAST: u64 = 16;

/// Nodes evaluated for one expression at most, those of functions each time they are called: functions that call each other
/// twice soon have more than anyone can pay for, and columns are made before anyone pays.
const NODES: u32 = 1000;

/// Bodies that do more, and expressions of more nodes, are evaluated turn by turn: columns take memory, and each of their nodes is
/// looked for among all that the body keeps.
const TASKS: usize = 64;
const WIDEST: u64 = 64;

/// The columns at hand.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    /// By expression: one more than its number in `list`, 0 for none; as long as needed.
    of: Vec<u32>,
    list: Vec<(ExprId, Priced)>,
    /// The turn at hand.
    pub lane: usize,
    /// How many more nodes may be evaluated for the expression at hand.
    left: u32,
}

/// The values of an expression, one per turn.
#[derive(Debug, Clone)]
enum Column {
    Same(i64),
    Each(Vec<i64>),
}

/// A column, and what its calls cost in each turn.
#[derive(Debug, Clone)]
struct Priced {
    column: Column,
    price: u64,
}

/// What the body of a loop does that matters here, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Task {
    /// It evaluates an expression.
    Value(ExprId),
    /// The same, and keeps the value.
    Let(Slot, ExprId),
    /// It keeps some value.
    Unknown(Slot),
}

/// What is known of slots that differ from turn to turn, the last entry of a slot first.
type Known = Vec<(Slot, Option<Priced>)>;

impl Columns {
    /// The value of an expression in the turn at hand, and what its calls cost.
    #[inline]
    pub(crate) fn get(&self, id: ExprId) -> Option<(i64, u64)> {
        let at = self.of.get(id.index()).copied().unwrap_or(0).checked_sub(1)?;
        let Priced { column, price } = &self.list[at as usize].1;
        let value = match column {
            Column::Same(value) => *value,
            Column::Each(values) => values[self.lane],
        };
        Some((value, *price))
    }

    /// Forgets them.
    pub(crate) fn clear(&mut self) {
        for (id, _) in self.list.drain(..) {
            self.of[id.index()] = 0;
        }
    }

    fn add(&mut self, id: ExprId, column: Priced) {
        if self.of.len() <= id.index() {
            self.of.resize(id.index() + 1, 0);
        }
        self.list.push((id, column));
        self.of[id.index()] = self.list.len() as u32;
    }
}

/// Lists what a body does, if it is nothing but moves from place to place, choices and `let`s.
pub(crate) fn tasks(item: &For, tasks: &mut Vec<Task>) {
    tasks.clear();
    if item.loops.filter.is_some() || !collect(&item.body, false, tasks) || tasks.len() > TASKS {
        tasks.clear();
    }
}

fn collect(body: &[Stmt], chosen: bool, tasks: &mut Vec<Task>) -> bool {
    body.iter().all(|statement| match statement {
        _ if tasks.len() > TASKS => false,
        Stmt::Let { slot, value, .. } => {
            tasks.push(if chosen { Task::Unknown(*slot) } else { Task::Let(*slot, *value) });
            true
        }
        Stmt::If { condition, then, otherwise } => {
            tasks.push(Task::Value(*condition));
            collect(then, true, tasks) && collect(otherwise, true, tasks)
        }
        Stmt::Move(mv) => {
            let Source::Place(from) = &mv.from else { return false };
            for place in [&mv.to, from] {
                tasks.extend(place.region.exprs().map(Task::Value));
                tasks.extend(place.ranks.exprs().into_iter().map(Task::Value));
            }
            true
        }
        _ => false,
    })
}

/// Evaluates what is to be done for `count` turns, in which `slot` has the values `first`, `first + step`, …; what cannot be
/// evaluated so is not tried again.
pub(crate) fn fill(
    machine: &mut Machine<'_>,
    tasks: &mut Vec<Task>,
    slot: Slot,
    first: i64,
    step: i64,
    count: u64,
) {
    let variable = (0..count as i64).map(|turn| first.wrapping_add(step.wrapping_mul(turn))).collect();
    let mut known: Known = vec![(slot, Some(Priced { column: Column::Each(variable), price: 0 }))];
    tasks.retain_mut(|task| {
        let (id, kept) = match *task {
            Task::Value(id) => (id, None),
            Task::Let(slot, id) => (id, Some(slot)),
            Task::Unknown(slot) => {
                known.push((slot, None));
                return true;
            }
        };
        machine.columns.left = NODES;
        let found = if machine.cost(id) > WIDEST { None } else { evaluate(machine, id, &known, true) };
        if let Some(slot) = kept {
            // Whoever reads the slot pays for no call.
            known.push((slot, found.clone().map(|found| Priced { price: 0, ..found })));
        }
        match (found, kept) {
            (Some(found), _) => {
                // A slot or a number is read as it is.
                if !matches!(machine.program.exprs.node(id), Node::Int(_) | Node::Slot(_)) {
                    machine.columns.add(id, found);
                }
                true
            }
            (None, Some(slot)) => {
                *task = Task::Unknown(slot);
                true
            }
            (None, None) => false,
        }
    });
}

/// The column of an expression; none if some turn fails, or may evaluate only a part of it. `outer`: slots that are not
/// known stand still in the frame at hand; else there are none.
fn evaluate(machine: &mut Machine<'_>, id: ExprId, known: &Known, outer: bool) -> Option<Priced> {
    machine.columns.left = machine.columns.left.checked_sub(1)?;
    let exprs = &machine.program.exprs;
    let is_known = |slot: Slot| known.iter().any(|&(known, _)| known == slot);
    let free = |column| Some(Priced { column, price: 0 });
    match exprs.node(id) {
        Node::Int(value) => free(Column::Same(value)),
        Node::Slot(slot) if is_known(slot) => {
            known.iter().rev().find(|&&(known, _)| known == slot).and_then(|(_, column)| column.clone())
        }
        Node::Slot(slot) => outer.then(|| Priced { column: Column::Same(machine.get(slot)), price: 0 }),
        // What stands still.
        _ if outer && exprs.is_plain(id) && !exprs.reads(id, &is_known) => {
            free(Column::Same(machine.eval(id).ok()?))
        }
        Node::Neg(a) => evaluate(machine, a, known, outer)?.map(i64::checked_neg),
        Node::Not(a) => evaluate(machine, a, known, outer)?.map(|a| Some(i64::from(a == 0))),
        Node::Binary(BinaryOp::And | BinaryOp::Or, ..) => None,
        Node::Binary(op, a, b) => {
            let a = evaluate(machine, a, known, outer)?;
            let b = evaluate(machine, b, known, outer)?;
            binary(op, &a, &b)
        }
        Node::Call(function, first, count) => {
            let function = &machine.program.fns[function.index()];
            let mut args: Known = Vec::with_capacity(count as usize);
            let mut price = call_price(machine.cost(function.body));
            for (slot, &arg) in exprs.args[first as usize..][..count as usize].iter().enumerate() {
                let arg = evaluate(machine, arg, known, outer)?;
                price = price.saturating_add(arg.price);
                args.push((Slot(slot as u32), Some(Priced { price: 0, ..arg })));
            }
            let value = evaluate(machine, function.body, &args, false)?;
            Some(Priced { price: price.saturating_add(value.price), ..value })
        }
        Node::Element(table, index) => {
            let index = evaluate(machine, index, known, outer)?;
            let table = machine.table(table);
            index.map(|index| usize::try_from(index).ok().and_then(|index| table.get(index)).copied())
        }
        Node::If(..) | Node::Builtin(..) | Node::Sum(_) => None,
    }
}

impl Priced {
    /// A function of each value; none if it has none for one.
    fn map(self, of: impl Fn(i64) -> Option<i64>) -> Option<Priced> {
        let column = match self.column {
            Column::Same(value) => Column::Same(of(value)?),
            Column::Each(values) => Column::Each(values.into_iter().map(of).collect::<Option<_>>()?),
        };
        Some(Priced { column, ..self })
    }
}

fn binary(op: BinaryOp, a: &Priced, b: &Priced) -> Option<Priced> {
    // The usual ones in loops of their own.
    let column = match op {
        BinaryOp::Add => zip(a, b, |a, b| apply(BinaryOp::Add, a, b)),
        BinaryOp::Sub => zip(a, b, |a, b| apply(BinaryOp::Sub, a, b)),
        BinaryOp::Mul => zip(a, b, |a, b| apply(BinaryOp::Mul, a, b)),
        BinaryOp::Div => zip(a, b, |a, b| apply(BinaryOp::Div, a, b)),
        BinaryOp::Rem => zip(a, b, |a, b| apply(BinaryOp::Rem, a, b)),
        _ => zip(a, b, |a, b| apply(op, a, b)),
    }?;
    Some(Priced { column, price: a.price.saturating_add(b.price) })
}

#[inline]
fn zip(a: &Priced, b: &Priced, of: impl Fn(i64, i64) -> Option<i64>) -> Option<Column> {
    Some(match (&a.column, &b.column) {
        (Column::Same(a), Column::Same(b)) => Column::Same(of(*a, *b)?),
        (Column::Same(a), Column::Each(b)) => {
            Column::Each(b.iter().map(|&b| of(*a, b)).collect::<Option<_>>()?)
        }
        (Column::Each(a), Column::Same(b)) => {
            Column::Each(a.iter().map(|&a| of(a, *b)).collect::<Option<_>>()?)
        }
        (Column::Each(a), Column::Each(b)) => {
            Column::Each(a.iter().zip(b).map(|(&a, &b)| of(a, b)).collect::<Option<_>>()?)
        }
    })
}
