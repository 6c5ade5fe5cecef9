//! What expressions do under a rotation that is tried.
//!
//! In: expressions, what each variable does. Out: a [`Shift`], or the text that was not understood. A walk over the
//! arena like the machine's, on what values do instead of on values; functions are walked into, with their arguments.

use grammar::ast::BinaryOp;
use grammar::span::Span;

use super::refusal::{Refusal, Why};
use super::shift::Shift;
use crate::check::checked::{Binder, Builtin, ExprId, List, Loops, Node, Program, Slot, TableId};

/// Variables and tables, by what they do.
pub(super) struct Env<'p> {
    pub(super) program: &'p Program,
    slots: Vec<Shift>,
    tables: Vec<Shift>,
    /// Nodes that may still be looked at.
    budget: u64,
}

/// The answer of everything that may be refused.
pub(super) type Answer<T> = Result<T, Refusal>;

impl<'p> Env<'p> {
    /// An environment in which `slots` variables stand still.
    pub(super) fn new(program: &'p Program, budget: u64) -> Env<'p> {
        let tables = vec![Shift::FIXED; program.tables as usize];
        Env { program, slots: Vec::new(), tables, budget }
    }

    /// What may still be spent.
    pub(super) fn left(&self) -> u64 {
        self.budget
    }

    /// Starts a frame anew, with so many variables.
    pub(super) fn open(&mut self, slots: u32) {
        self.slots.clear();
        self.slots.resize(slots as usize, Shift::FIXED);
    }

    /// Says what a variable does.
    pub(super) fn set(&mut self, slot: Slot, value: Shift) {
        self.slots[slot.index()] = value;
    }

    /// What a value does.
    pub(super) fn value(&mut self, id: ExprId) -> Answer<Shift> {
        let span = self.program.exprs.span(id);
        self.budget = self.budget.checked_sub(1).ok_or(Refusal { span, why: Why::TooMuch })?;
        let value = match self.program.exprs.node(id) {
            Node::Int(value) => Some(Shift::constant(value)),
            Node::Slot(slot) => Some(self.slots[slot.index()]),
            Node::Neg(a) => self.value(a)?.negated(),
            Node::Not(a) => truth(&[self.value(a)?]),
            Node::Binary(op, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                binary(op, a, b)
            }
            Node::If(condition, then, otherwise) => {
                let test = self.value(condition)?;
                match test.known() {
                    Some(0) => Some(self.value(otherwise)?),
                    Some(_) => Some(self.value(then)?),
                    None if test.is_fixed() => {
                        let (then, otherwise) = (self.value(then)?, self.value(otherwise)?);
                        then.or(otherwise)
                    }
                    None => None,
                }
            }
            Node::Builtin(builtin, first, count) => {
                let args = self.arguments(first, count)?;
                args.iter().all(|arg| arg.is_fixed()).then(|| of_builtin(builtin, &args))
            }
            Node::Call(function, first, count) => {
                let function = &self.program.fns[function.index()];
                let mut frame = self.arguments(first, count)?;
                frame.resize(function.frame as usize, Shift::FIXED);
                let outer = std::mem::replace(&mut self.slots, frame);
                let value = self.value(function.body);
                self.slots = outer;
                Some(value?)
            }
            Node::Element(table, index) => self.value(index)?.is_fixed().then(|| self.tables[table.index()]),
            Node::Sum(sum) => {
                let each = &self.program.exprs.sums[sum as usize];
                self.standing(&each.loops)?;
                self.value(each.value)?.is_fixed().then_some(Shift::FIXED)
            }
        };
        value.ok_or(Refusal { span, why: Why::Value })
    }

    fn arguments(&mut self, first: u32, count: u32) -> Answer<Vec<Shift>> {
        let program = self.program;
        let args = &program.exprs.args[first as usize..][..count as usize];
        args.iter().map(|&arg| self.value(arg)).collect()
    }

    /// Says what the elements of a table do.
    pub(super) fn table(&mut self, table: TableId, list: &'p List) -> Answer<()> {
        let all = match list {
            List::Items(items) => {
                let mut all: Option<Shift> = None;
                for &item in items {
                    let value = self.value(item)?;
                    let span = self.program.exprs.span(item);
                    let joined = all.map_or(Some(value), |all| all.or(value));
                    all = Some(joined.ok_or(Refusal { span, why: Why::Value })?);
                }
                all
            }
            List::Each(each) => {
                self.standing(&each.loops)?;
                Some(self.value(each.value)?)
            }
        };
        self.tables[table.index()] = all.unwrap_or(Shift::FIXED);
        Ok(())
    }

    /// Loops whose variables all stand still.
    pub(super) fn standing(&mut self, loops: &'p Loops) -> Answer<()> {
        for binder in &loops.binders {
            let range = self.range(binder)?;
            self.set(binder.slot, range.values);
        }
        self.filter(loops)
    }

    /// A filter must decide alike at all ranks.
    pub(super) fn filter(&mut self, loops: &Loops) -> Answer<()> {
        let Some(filter) = loops.filter else { return Ok(()) };
        self.test(filter, &Why::Filter).map(|_| ())
    }

    /// A condition that is the same at all ranks; its value, if it is known.
    pub(super) fn test(&mut self, condition: ExprId, why: &Why) -> Answer<Option<i64>> {
        let refusal = || Refusal { span: self.program.exprs.span(condition), why: why.clone() };
        let refusal = refusal();
        match self.value(condition) {
            Ok(value) if value.is_fixed() => Ok(value.known()),
            Ok(_) => Err(refusal),
            Err(Refusal { why: Why::TooMuch, span }) => Err(Refusal { why: Why::TooMuch, span }),
            Err(_) => Err(refusal),
        }
    }

    /// The range of a binder, which must stand still.
    pub(super) fn range(&mut self, binder: &Binder) -> Answer<Range> {
        let from = self.value(binder.from)?;
        let to = self.value(binder.to)?;
        let step = match binder.step {
            Some(step) => self.value(step)?,
            None => Shift::constant(1),
        };
        if ![from, to, step].iter().all(|value| value.is_fixed()) {
            return Err(Refusal { span: binder.range, why: Why::Bounds });
        }
        let (least, most) = (from.bounds().0, to.bounds().1);
        let below = if most == i64::MAX { most } else { most.saturating_sub(1) };
        let known = from.known().zip(to.known()).zip(step.known()).filter(|&(_, step)| step > 0);
        let known = known.and_then(|((from, to), step)| {
            let length = u64::try_from(i128::from(to) - i128::from(from)).unwrap_or(0);
            Some((from, step, i64::try_from(length.div_ceil(step as u64)).ok()?))
        });
        Ok(Range { values: Shift::between(least, below), known })
    }
}

/// What a loop variable takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    /// As a variable that stands still.
    pub(super) values: Shift,
    /// First, step and count, if they are the same in every turn of the loops around.
    pub(super) known: Option<(i64, i64, i64)>,
}

impl Range {
    /// There is no turn.
    pub(super) fn is_empty(self) -> bool {
        let (least, most) = self.values.bounds();
        most < least || self.known.is_some_and(|(_, _, count)| count == 0)
    }
}

/// A truth value made of what stands still.
fn truth(parts: &[Shift]) -> Option<Shift> {
    parts.iter().all(|part| part.is_fixed()).then_some(Shift::between(0, 1))
}

fn binary(op: BinaryOp, a: Shift, b: Shift) -> Option<Shift> {
    let fixed = a.is_fixed() && b.is_fixed();
    let both = a.known().zip(b.known());
    let decided = |test: fn(&i64, &i64) -> bool| {
        let known = both.map(|(a, b)| Shift::constant(test(&a, &b).into()));
        known.or(truth(&[a, b]))
    };
    match op {
        BinaryOp::Add => a.plus(b),
        BinaryOp::Sub => a.minus(b),
        BinaryOp::Mul => a.times(b),
        BinaryOp::Div => a.divided(b),
        BinaryOp::Rem => a.modulo(b),
        BinaryOp::Shl => a.shifted_left(b),
        BinaryOp::Shr | BinaryOp::BitXor | BinaryOp::BitOr => {
            let (least, most) = (a.bounds().0.min(b.bounds().0), a.bounds().1.max(b.bounds().1));
            // Of numbers that are not negative, all bits lie below those of the greater.
            let small = least >= 0 && most < 1 << 61;
            let known = || Shift::between(0, ((most + 1) as u64).next_power_of_two() as i64 - 1);
            fixed.then(|| if small { known() } else { Shift::FIXED })
        }
        BinaryOp::BitAnd => {
            let small = a.bounds().0 >= 0 && b.bounds().0 >= 0;
            let most = a.bounds().1.min(b.bounds().1);
            fixed.then(|| if small { Shift::between(0, most) } else { Shift::FIXED })
        }
        BinaryOp::Eq => both.map(|(a, b)| Shift::constant((a == b).into())).or_else(|| a.equality(b)),
        BinaryOp::Ne => both.map(|(a, b)| Shift::constant((a != b).into())).or_else(|| a.equality(b)),
        BinaryOp::Lt => decided(i64::lt),
        BinaryOp::Le => decided(i64::le),
        BinaryOp::Gt => decided(i64::gt),
        BinaryOp::Ge => decided(i64::ge),
        BinaryOp::And | BinaryOp::Or => {
            let all = |a: i64, b: i64| if op == BinaryOp::And { a != 0 && b != 0 } else { a != 0 || b != 0 };
            both.map(|(a, b)| Shift::constant(all(a, b).into())).or_else(|| truth(&[a, b]))
        }
    }
}

fn of_builtin(builtin: Builtin, args: &[Shift]) -> Shift {
    let bounds = || args.iter().map(|arg| arg.bounds());
    let least = |all: fn(i64, i64) -> i64| bounds().map(|b| b.0).reduce(all).unwrap_or(i64::MIN);
    let most = |all: fn(i64, i64) -> i64| bounds().map(|b| b.1).reduce(all).unwrap_or(i64::MAX);
    let (low, high) = args[0].bounds();
    match builtin {
        Builtin::Min => Shift::between(least(i64::min), most(i64::min)),
        Builtin::Max => Shift::between(least(i64::max), most(i64::max)),
        Builtin::Log2 => match args[0].known() {
            Some(value) if value > 0 => Shift::constant(value.ilog2().into()),
            _ => Shift::between(0, if high > 0 { high.ilog2().into() } else { 0 }),
        },
        Builtin::CeilLog2 => {
            let of = |value: i64| if value <= 1 { 0 } else { i64::from((value - 1).ilog2()) + 1 };
            Shift::between(of(low), of(high))
        }
        Builtin::IsPowerOfTwo => match args[0].known() {
            Some(value) => Shift::constant((value > 0 && value & (value - 1) == 0).into()),
            None => Shift::between(0, 1),
        },
        Builtin::Popcount => Shift::between(0, 64),
        Builtin::Abs | Builtin::Gcd | Builtin::Lowbit => Shift::FIXED,
    }
}

/// The text of a refusal that something else explains better.
pub(super) fn instead(refusal: Refusal, span: Span, why: Why) -> Refusal {
    match refusal.why {
        Why::TooMuch => refusal,
        _ => Refusal { span, why },
    }
}
