//! Runs binders: every value of each, the first slowest, the filter last.
//!
//! In: `checked::Loops` and what to do per turn. Out: that, done. Used by `for`, `sum`, reductions, lists and promises
//! alike. All turns of a product of ranges are charged before the first one runs.

use super::columns::LANES;
use super::error::{FaultKind, Var, VarKind};
use super::halt::{Halt, Res};
use super::machine::Machine;
use crate::check::checked::{Binder, Loops, Slot};

/// Whoever has a machine.
pub(crate) trait Host<'p> {
    /// The machine.
    fn machine(&mut self) -> &mut Machine<'p>;

    /// Turns of an innermost loop without a filter are about to begin: so many, in which `slot` has the values `first`,
    /// `first + step`, …
    #[inline]
    fn turns(&mut self, _slot: Slot, _first: i64, _step: i64, _count: u64) {}

    /// One of them is about to run. (Not for loops within an expression, which run amid a turn of another.)
    #[inline]
    fn lane(&mut self, _lane: usize) {}
}

/// The values of a binder: `first`, `first + step`, …, `count` of them.
#[derive(Debug, Clone, Copy, Default)]
struct Values {
    first: i64,
    step: i64,
    count: u64,
}

/// How many ranges are kept; the bounds of further binders are evaluated again by every turn around them.
const KEPT: usize = 4;

/// Runs `body` for every turn; `cost` is what one evaluates, in nodes.
pub(crate) fn run<'p, H: Host<'p>>(
    host: &mut H,
    loops: &'p Loops,
    cost: u64,
    body: &mut impl FnMut(&mut H) -> Res<()>,
) -> Res<()> {
    let cost = cost + loops.filter.map_or(0, |filter| host.machine().cost(filter));
    let mut kept = [Values::default(); KEPT];
    if loops.independent {
        let mut turns = 1u64;
        for (i, binder) in loops.binders.iter().enumerate() {
            let values = values(host.machine(), binder)?;
            turns = turns.saturating_mul(values.count);
            if turns == 0 {
                return Ok(());
            }
            if i < KEPT {
                kept[i] = values;
            }
        }
        if let (Some(first), Some(last)) = (loops.binders.first(), loops.binders.last()) {
            host.machine().charge(turns, cost, first.span.to(last.span))?;
        }
    }
    level(host, loops, 0, &kept, cost, body)
}

/// The number of turns that are certain, without running any. Bounds may read only slots below `known` (0 if one
/// reads another, or cannot be evaluated: then nothing is certain).
pub(crate) fn certain_turns<'p>(machine: &mut Machine<'p>, loops: &'p Loops, known: u32) -> u64 {
    if !loops.independent {
        return 0;
    }
    let mut turns = 1u64;
    for binder in &loops.binders {
        let fixed = [Some(binder.from), Some(binder.to), binder.step].into_iter().flatten();
        if !machine.fixed(fixed, known) {
            return 0;
        }
        turns = turns.saturating_mul(values(machine, binder).map_or(0, |values| values.count));
        if turns == 0 {
            break;
        }
    }
    turns
}

/// The certain turns of `inner` within `outer`, if both are certain.
pub(crate) fn certain_product<'p>(machine: &mut Machine<'p>, outer: &'p Loops, inner: &'p Loops) -> u64 {
    if outer.filter.is_some() {
        return 0;
    }
    let known = first_slot(outer);
    let turns = certain_turns(machine, outer, known);
    if turns < 2 { 0 } else { turns.saturating_mul(certain_turns(machine, inner, known)) }
}

/// The first slot that these loops set: all before it stand still while they run.
pub(crate) fn first_slot(loops: &Loops) -> u32 {
    loops.binders.first().map_or(u32::MAX, |binder| binder.slot.0)
}

fn level<'p, H: Host<'p>>(
    host: &mut H,
    loops: &'p Loops,
    index: usize,
    kept: &[Values; KEPT],
    cost: u64,
    body: &mut impl FnMut(&mut H) -> Res<()>,
) -> Res<()> {
    let Some(binder) = loops.binders.get(index) else {
        let wanted = match loops.filter {
            Some(filter) => host.machine().test(filter)?,
            None => true,
        };
        return if wanted { body(host) } else { Ok(()) };
    };
    let innermost = index + 1 == loops.binders.len();
    let values = if loops.independent && index < KEPT {
        kept[index]
    } else {
        let values = values(host.machine(), binder)?;
        if !loops.independent {
            host.machine().charge(values.count, if innermost { cost } else { 0 }, binder.span)?;
        }
        values
    };
    let at = |turn: u64| {
        let turn = if binder.rev { values.count - 1 - turn } else { turn };
        // It lies below the end of the range, so it fits.
        values.first.wrapping_add(values.step.wrapping_mul(turn as i64))
    };
    let plain = innermost && loops.filter.is_none();
    for turn in 0..values.count {
        if plain {
            let lane = turn % LANES;
            if lane == 0 {
                let step = if binder.rev { values.step.wrapping_neg() } else { values.step };
                host.turns(binder.slot, at(turn), step, LANES.min(values.count - turn));
            }
            host.lane(lane as usize);
        }
        host.machine().set(binder.slot, at(turn));
        let done = if plain { body(host) } else { level(host, loops, index + 1, kept, cost, body) };
        if let Err(halt) = done {
            return Err(halt.var(|| var(binder, &values, at(turn), loops.levels[index].clone())));
        }
    }
    Ok(())
}

#[cold]
fn var(binder: &Binder, values: &Values, value: i64, level: Option<String>) -> Var {
    let greatest = values.first.wrapping_add(values.step.wrapping_mul(values.count.saturating_sub(1) as i64));
    let last = if binder.rev { values.first } else { greatest };
    let kind = VarKind::Loop { least: values.first, greatest, last, range: binder.range, level };
    Var { name: binder.name.clone(), value, span: binder.span, kind }
}

fn values(machine: &mut Machine<'_>, binder: &Binder) -> Res<Values> {
    let first = machine.eval(binder.from)?;
    let to = machine.eval(binder.to)?;
    let step = match binder.step {
        Some(step) => machine.eval(step)?,
        None => 1,
    };
    if step < 1 {
        let span = binder.step.map_or(binder.span, |step| machine.span(step));
        return Err(Halt::fault(FaultKind::LoopStep { value: step }, span));
    }
    if to <= first {
        return Ok(Values { first, step, count: 0 });
    }
    let length = to.wrapping_sub(first) as u64;
    Ok(Values { first, step, count: length.div_ceil(step as u64) })
}
