//! Evaluates expressions: a walk over the arena with slots in one stack of frames, and the budget of turns.
//!
//! In: `ExprId`s. Out: 64-bit values (truth values 0 and 1), or a fault. The one hard idea: the hot path allocates
//! nothing and looks nothing up. Turns are charged by loops before they run, for all their turns at once, so a
//! product of lengths that cannot fit is refused at once and the loops themselves count nothing.

use grammar::ast::BinaryOp;
use grammar::span::Span;

use super::columns::Columns;
use super::error::FaultKind;
use super::halt::{Halt, Res};
use super::loops::{self, Host};
use crate::check::checked::{Builtin, ExprId, Function, Node, Program, Slot, TableId};
use crate::limits::Limits;

/// How many expression nodes cost as much as one loop turn.
pub(crate) const NODES_PER_TURN: u64 = 4;
/// What a call costs beside its arguments and its body, in nodes.
const CALL: u64 = 12;

/// Frames, tables and what may still be spent.
pub(crate) struct Machine<'p> {
    pub(super) program: &'p Program,
    stack: Vec<i64>,
    base: usize,
    tables: Vec<Vec<i64>>,
    /// Elements of all tables, and the limit on them.
    elements: u64,
    element_limit: u64,
    /// In nodes.
    spent: u64,
    budget: u64,
    turn_limit: u64,
    /// Of the loop at hand.
    pub(super) columns: Columns,
}

impl<'p> Machine<'p> {
    pub(crate) fn new(program: &'p Program, limits: &Limits) -> Machine<'p> {
        Machine {
            program,
            stack: Vec::new(),
            base: 0,
            tables: vec![Vec::new(); program.tables as usize],
            elements: 0,
            element_limit: limits.moves,
            spent: 0,
            budget: limits.turns.saturating_mul(NODES_PER_TURN),
            turn_limit: limits.turns,
            columns: Columns::default(),
        }
    }

    /// Opens a frame; give what it returns to [`Machine::leave`].
    pub(crate) fn enter(&mut self, slots: u32) -> usize {
        let outer = std::mem::replace(&mut self.base, self.stack.len());
        self.stack.resize(self.base + slots as usize, 0);
        outer
    }

    /// Closes the frame.
    pub(crate) fn leave(&mut self, outer: usize) {
        self.stack.truncate(self.base);
        self.base = outer;
    }

    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> i64 {
        self.stack[self.base + slot.index()]
    }

    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, value: i64) {
        self.stack[self.base + slot.index()] = value;
    }

    pub(crate) fn span(&self, id: ExprId) -> Span {
        self.program.exprs.span(id)
    }

    /// Nodes that an expression costs.
    pub(crate) fn cost(&self, id: ExprId) -> u64 {
        self.program.exprs.cost[id.index()].into()
    }

    /// Whether expressions read only slots below `known`, and no table: they have a value already now.
    pub(crate) fn fixed(&self, exprs: impl IntoIterator<Item = ExprId>, known: u32) -> bool {
        let arena = &self.program.exprs;
        exprs.into_iter().all(|id| {
            // A single node is the usual bound, and quickly looked at.
            match arena.node(id) {
                Node::Int(_) => true,
                Node::Slot(slot) => slot.0 < known,
                _ => {
                    arena.cost[id.index()] < 64
                        && arena.is_plain(id)
                        && !arena.reads(id, &|slot| slot.0 >= known)
                }
            }
        })
    }

    /// Takes `turns` turns of `nodes` nodes each from the budget, before they run.
    #[inline]
    pub(crate) fn charge(&mut self, turns: u64, nodes: u64, span: Span) -> Res<()> {
        let price = turns.saturating_mul(nodes.saturating_add(NODES_PER_TURN));
        self.spent = self.spent.saturating_add(price);
        if self.spent > self.budget {
            let wanted = (self.spent / NODES_PER_TURN).max(turns);
            return Err(Halt::fault(FaultKind::TooManyTurns { limit: self.turn_limit, wanted }, span));
        }
        Ok(())
    }

    /// Refuses turns that are certain to come, without taking them from the budget.
    pub(crate) fn afford(&self, turns: u64, span: Span) -> Res<()> {
        let price = turns.saturating_mul(NODES_PER_TURN).saturating_add(self.spent);
        if price > self.budget {
            let kind = FaultKind::TooManyTurns { limit: self.turn_limit, wanted: price / NODES_PER_TURN };
            return Err(Halt::fault(kind, span));
        }
        Ok(())
    }

    /// Empties a table, to be filled anew.
    pub(crate) fn clear_table(&mut self, table: TableId) {
        let table = &mut self.tables[table.index()];
        self.elements -= table.len() as u64;
        table.clear();
    }

    /// Appends to a table.
    pub(crate) fn push_element(&mut self, table: TableId, value: i64, span: Span) -> Res<()> {
        if self.elements >= self.element_limit {
            return Err(Halt::fault(FaultKind::TooManyElements { limit: self.element_limit }, span));
        }
        self.elements += 1;
        self.tables[table.index()].push(value);
        Ok(())
    }

    /// The value of an expression.
    #[inline]
    pub(crate) fn eval(&mut self, id: ExprId) -> Res<i64> {
        match self.program.exprs.nodes[id.index()] {
            Node::Int(value) => Ok(value),
            Node::Slot(slot) => Ok(self.get(slot)),
            node => self.compound(id, node),
        }
    }

    /// The same; of an expression that stands in the body of a loop, it may be known already.
    #[inline]
    pub(crate) fn value(&mut self, id: ExprId) -> Res<i64> {
        match self.program.exprs.nodes[id.index()] {
            Node::Int(value) => Ok(value),
            Node::Slot(slot) => Ok(self.get(slot)),
            node => match self.columns.get(id) {
                Some((value, price)) if self.spent.saturating_add(price) <= self.budget => {
                    self.spent += price;
                    Ok(value)
                }
                _ => self.compound(id, node),
            },
        }
    }

    /// The elements of a table.
    pub(super) fn table(&self, table: TableId) -> &[i64] {
        &self.tables[table.index()]
    }

    /// The truth value of an expression.
    #[inline]
    pub(crate) fn test(&mut self, id: ExprId) -> Res<bool> {
        Ok(self.eval(id)? != 0)
    }

    fn compound(&mut self, id: ExprId, node: Node) -> Res<i64> {
        match node {
            Node::Int(value) => Ok(value),
            Node::Slot(slot) => Ok(self.get(slot)),
            Node::Neg(a) => {
                let a = self.eval(a)?;
                a.checked_neg().ok_or_else(|| self.overflow(id, format!("-({a})")))
            }
            Node::Not(a) => Ok(i64::from(!self.test(a)?)),
            Node::Binary(op, a, b) => self.binary(id, op, a, b),
            Node::If(condition, then, otherwise) => {
                let branch = if self.test(condition)? { then } else { otherwise };
                self.eval(branch)
            }
            Node::Builtin(builtin, first, count) => self.builtin(id, builtin, first, count),
            Node::Call(function, first, count) => {
                let program = self.program;
                let function: &Function = &program.fns[function.index()];
                self.charge(1, CALL + self.cost(function.body), self.span(id))?;
                let start = self.stack.len();
                for &arg in &program.exprs.args[first as usize..][..count as usize] {
                    let value = self.eval(arg)?;
                    self.stack.push(value);
                }
                self.stack.resize(start + function.frame as usize, 0);
                let outer = std::mem::replace(&mut self.base, start);
                let value = self.eval(function.body);
                self.base = outer;
                self.stack.truncate(start);
                value
            }
            Node::Element(table, index) => {
                let value = self.eval(index)?;
                let table = &self.tables[table.index()];
                let len = table.len();
                let element = usize::try_from(value).ok().and_then(|i| table.get(i)).copied();
                element.ok_or_else(|| Halt::fault(FaultKind::TableIndex { value, len }, self.span(index)))
            }
            Node::Sum(sum) => self.sum(id, sum),
        }
    }

    #[inline]
    fn binary(&mut self, id: ExprId, op: BinaryOp, left: ExprId, right: ExprId) -> Res<i64> {
        let a = self.eval(left)?;
        match op {
            BinaryOp::And if a == 0 => return Ok(0),
            BinaryOp::Or if a != 0 => return Ok(1),
            _ => {}
        }
        let b = self.eval(right)?;
        match apply(op, a, b) {
            Some(value) => Ok(value),
            None => Err(self.without_value(id, op, a, b, right)),
        }
    }

    #[cold]
    fn without_value(&self, id: ExprId, op: BinaryOp, a: i64, b: i64, right: ExprId) -> Box<Halt> {
        match op {
            BinaryOp::Div | BinaryOp::Rem if b == 0 => {
                let kind = FaultKind::DivisionByZero { remainder: op == BinaryOp::Rem, value: a };
                Halt::fault(kind, self.span(id))
            }
            BinaryOp::Shl | BinaryOp::Shr if !(0..64).contains(&b) => {
                Halt::fault(FaultKind::ShiftOutOfRange { value: b }, self.span(right))
            }
            _ => self.overflow(id, format!("{a} {} {b}", sign(op))),
        }
    }

    fn builtin(&mut self, id: ExprId, builtin: Builtin, first: u32, count: u32) -> Res<i64> {
        let args = &self.program.exprs.args[first as usize..][..count as usize];
        let a = self.eval(args[0])?;
        match builtin {
            Builtin::Min | Builtin::Max => {
                let mut best = a;
                for &arg in &args[1..] {
                    let b = self.eval(arg)?;
                    best = if builtin == Builtin::Min { best.min(b) } else { best.max(b) };
                }
                Ok(best)
            }
            Builtin::Abs => a.checked_abs().ok_or_else(|| self.overflow(id, format!("abs({a})"))),
            Builtin::Log2 | Builtin::CeilLog2 if a < 1 => {
                Err(Halt::fault(FaultKind::NoLogarithm { value: a }, self.span(args[0])))
            }
            Builtin::Log2 => Ok(a.ilog2().into()),
            Builtin::CeilLog2 => Ok(if a == 1 { 0 } else { i64::from((a - 1).ilog2()) + 1 }),
            Builtin::IsPowerOfTwo => Ok((a > 0 && a & (a - 1) == 0).into()),
            Builtin::Gcd => {
                let b = self.eval(args[1])?;
                let gcd = gcd(a.unsigned_abs(), b.unsigned_abs());
                i64::try_from(gcd).map_err(|_| self.overflow(id, format!("gcd({a}, {b})")))
            }
            Builtin::Popcount => Ok(a.count_ones().into()),
            Builtin::Lowbit => Ok(a & a.wrapping_neg()),
        }
    }

    fn sum(&mut self, id: ExprId, sum: u32) -> Res<i64> {
        let program = self.program;
        let each = &program.exprs.sums[sum as usize];
        let mut total = 0i64;
        let cost = self.cost(each.value);
        if let Node::Sum(inner) = program.exprs.node(each.value) {
            let inner = &program.exprs.sums[inner as usize].loops;
            let turns = loops::certain_product(self, &each.loops, inner);
            self.afford(turns, self.span(id))?;
        }
        loops::run(self, &each.loops, cost, &mut |machine: &mut Machine<'p>| {
            let value = machine.eval(each.value)?;
            let sum = total.checked_add(value);
            total = sum.ok_or_else(|| machine.overflow(id, format!("{total} + {value}")))?;
            Ok(())
        })?;
        Ok(total)
    }

    #[cold]
    fn overflow(&self, id: ExprId, operation: String) -> Box<Halt> {
        Halt::fault(FaultKind::Overflow { operation }, self.span(id))
    }
}

impl<'p> Host<'p> for Machine<'p> {
    #[inline]
    fn machine(&mut self) -> &mut Machine<'p> {
        self
    }
}

/// What an operator makes of two values (of `and` and `or`: if the left one leaves it open); none if it makes nothing.
#[inline]
pub(super) fn apply(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    let small = (a | b) >> 31 == 0;
    match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div | BinaryOp::Rem if b == 0 => None,
        // Two small operands, nearly always: a 32-bit division is several times faster.
        BinaryOp::Div if small => Some((a as u32 / b as u32).into()),
        BinaryOp::Rem if small => Some((a as u32 % b as u32).into()),
        BinaryOp::Div => a.checked_div_euclid(b),
        BinaryOp::Rem => Some(a.wrapping_rem_euclid(b)),
        BinaryOp::Shl | BinaryOp::Shr if !(0..64).contains(&b) => None,
        BinaryOp::Shl => Some(a << b).filter(|shifted| shifted >> b == a),
        BinaryOp::Shr => Some(a >> b),
        BinaryOp::BitAnd => Some(a & b),
        BinaryOp::BitXor => Some(a ^ b),
        BinaryOp::BitOr => Some(a | b),
        BinaryOp::Eq => Some((a == b).into()),
        BinaryOp::Ne => Some((a != b).into()),
        BinaryOp::Lt => Some((a < b).into()),
        BinaryOp::Le => Some((a <= b).into()),
        BinaryOp::Gt => Some((a > b).into()),
        BinaryOp::Ge => Some((a >= b).into()),
        BinaryOp::And | BinaryOp::Or => Some(b),
    }
}

/// What a call costs beside its arguments, in nodes; the body costs so many.
pub(super) fn call_price(body: u64) -> u64 {
    (CALL + body).saturating_add(NODES_PER_TURN)
}

pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// An operator as it is written.
fn sign(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Rem => "%",
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitXor => "^",
        BinaryOp::BitOr => "|",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
    }
}
