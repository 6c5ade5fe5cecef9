//! What a number does when the ranks are rotated: the arithmetic behind `find`.
//!
//! In: what the variables of an expression do. Out: what its value does. The one hard idea: a [`Shift`] says that under
//! the rotation a value v becomes some v' with v' ≡ v + `by` (mod `modulus`), and that it always lies in `least..=most`;
//! modulus 0 means v' = v + by exactly. An index that lies in 0..m and whose modulus is a multiple of m therefore turns
//! in a circle of m, exactly. Whatever is not understood is refused, never guessed.
//!
//! Bounds matter twice: an index must be in range at all ranks, not only where it is evaluated, and no operation may
//! overflow at another rank that does not at this one.

use crate::elaborate::machine::gcd;

/// Beyond this a number that turns is refused: far from overflow, wherever the rotation takes it.
const MOST: i64 = 1 << 60;

/// What a value does under the rotation, and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shift {
    by: i64,
    modulus: i64,
    least: i64,
    most: i64,
}

impl Shift {
    /// Stands still; nothing is known of where it lies.
    pub(super) const FIXED: Shift = Shift { by: 0, modulus: 0, least: i64::MIN, most: i64::MAX };

    /// One number.
    pub(super) fn constant(value: i64) -> Shift {
        Shift { by: 0, modulus: 0, least: value, most: value }
    }

    /// Stands still, somewhere in `least..=most`.
    pub(super) fn between(least: i64, most: i64) -> Shift {
        Shift { by: 0, modulus: 0, least, most }
    }

    /// Turns by `by` in the circle of `modulus`, somewhere in `least..=most`.
    pub(super) fn turning(by: i64, modulus: i64, least: i64, most: i64) -> Option<Shift> {
        let fits = modulus > 0 && modulus <= MOST && -MOST <= least && most <= MOST;
        fits.then(|| Shift { by: by.rem_euclid(modulus), modulus, least, most })
    }

    /// It is the same at all ranks.
    pub(super) fn is_fixed(self) -> bool {
        self.modulus == 0 && self.by == 0
    }

    /// The one number that it is.
    pub(super) fn known(self) -> Option<i64> {
        (self.least == self.most && self.is_fixed()).then_some(self.least)
    }

    /// The least and the greatest that it can be.
    pub(super) fn bounds(self) -> (i64, i64) {
        (self.least, self.most)
    }

    /// As an index of `0..size`, it turns by exactly `by`: it is in range wherever the rotation takes it.
    pub(super) fn turns(self, by: i64, size: i64) -> bool {
        if size < 1 {
            return false;
        }
        let by = by.rem_euclid(size);
        if self.is_fixed() {
            return by == 0;
        }
        let inside = 0 <= self.least && self.most < size;
        inside && self.modulus % size == 0 && self.by.rem_euclid(size) == by
    }

    /// `self + other`.
    pub(super) fn plus(self, other: Shift) -> Option<Shift> {
        let (least, most) = (self.least.checked_add(other.least), self.most.checked_add(other.most));
        self.linear(other, self.by.checked_add(other.by)?, least.zip(most))
    }

    /// `self - other`.
    pub(super) fn minus(self, other: Shift) -> Option<Shift> {
        let (least, most) = (self.least.checked_sub(other.most), self.most.checked_sub(other.least));
        self.linear(other, self.by.checked_sub(other.by)?, least.zip(most))
    }

    /// `-self`.
    pub(super) fn negated(self) -> Option<Shift> {
        Shift::constant(0).minus(self)
    }

    fn linear(self, other: Shift, by: i64, bounds: Option<(i64, i64)>) -> Option<Shift> {
        let unbounded = |shift: Shift| shift.least == i64::MIN || shift.most == i64::MAX;
        let bounds = bounds.filter(|_| !unbounded(self) && !unbounded(other));
        let modulus = gcd(self.modulus as u64, other.modulus as u64) as i64;
        if modulus == 0 && by == 0 {
            return Some(bounds.map_or(Shift::FIXED, |(least, most)| Shift::between(least, most)));
        }
        let (least, most) = bounds?;
        Shift::turning(by, modulus, least, most)
    }

    /// `self * other`.
    pub(super) fn times(self, other: Shift) -> Option<Shift> {
        let (factor, value) = match (self.known(), other.known()) {
            (Some(factor), _) => (factor, other),
            (None, Some(factor)) => (factor, self),
            _ if self.is_fixed() && other.is_fixed() => return Some(self.product(other)),
            _ => return None,
        };
        if value.is_fixed() || factor == 0 {
            return Some(Shift::constant(factor).product(if factor == 0 {
                Shift::constant(0)
            } else {
                value
            }));
        }
        let modulus = value.modulus.checked_mul(factor)?.checked_abs()?;
        let ends = (value.least.checked_mul(factor)?, value.most.checked_mul(factor)?);
        let by = i128::from(value.by) * i128::from(factor);
        let by = by.rem_euclid(modulus.into()) as i64;
        Shift::turning(by, modulus, ends.0.min(ends.1), ends.0.max(ends.1))
    }

    /// The product of two that stand still.
    fn product(self, other: Shift) -> Shift {
        let ends = [
            self.least.checked_mul(other.least),
            self.least.checked_mul(other.most),
            self.most.checked_mul(other.least),
            self.most.checked_mul(other.most),
        ];
        let known = |shift: Shift| shift.least != i64::MIN && shift.most != i64::MAX;
        match ends {
            [Some(a), Some(b), Some(c), Some(d)] if known(self) && known(other) => {
                Shift::between(a.min(b).min(c).min(d), a.max(b).max(c).max(d))
            }
            _ => Shift::FIXED,
        }
    }

    /// `self % other`.
    pub(super) fn modulo(self, other: Shift) -> Option<Shift> {
        let size = other.known().filter(|&size| size > 0);
        let Some(size) = size else {
            let most = if other.least > 0 { other.most } else { i64::MAX };
            let range = if most == i64::MAX { Shift::FIXED } else { Shift::between(0, most - 1) };
            return (self.is_fixed() && other.is_fixed()).then_some(range);
        };
        let inside = 0 <= self.least && self.most < size;
        let (least, most) = if inside { (self.least, self.most) } else { (0, size - 1) };
        if self.is_fixed() {
            return Some(Shift::between(least, most));
        }
        let modulus = gcd(self.modulus as u64, size as u64) as i64;
        let by = self.by.rem_euclid(modulus);
        // What lies in one turn of the circle and comes back to where it was has not moved.
        match (modulus == size && by == 0, inside) {
            (true, _) => Some(Shift::between(least, most)),
            // Taken once more, it turns as it did.
            (false, true) => Some(self),
            (false, false) => Shift::turning(by, modulus, least, most),
        }
    }

    /// `self / other`.
    pub(super) fn divided(self, other: Shift) -> Option<Shift> {
        let by = other.known().filter(|&by| by > 0);
        let Some(by) = by else { return (self.is_fixed() && other.is_fixed()).then_some(Shift::FIXED) };
        if self.is_fixed() {
            let bound = |end: i64| if end == i64::MIN || end == i64::MAX { end } else { end.div_euclid(by) };
            return Some(Shift::between(bound(self.least), bound(self.most)));
        }
        let whole = self.modulus % by == 0 && self.by % by == 0;
        let (least, most) = (self.least.div_euclid(by), self.most.div_euclid(by));
        if whole { Shift::turning(self.by / by, self.modulus / by, least, most) } else { None }
    }

    /// `self << other`.
    pub(super) fn shifted_left(self, other: Shift) -> Option<Shift> {
        if !self.is_fixed() || !other.is_fixed() {
            return None;
        }
        let bounded = 0 <= self.least && self.most <= MOST && 0 <= other.least && other.most < 62;
        let most = if bounded { self.most.checked_mul(1 << other.most) } else { None };
        Some(most.map_or(Shift::FIXED, |most| Shift::between(self.least << other.least, most)))
    }

    /// Whether `self == other` is the same at all ranks.
    pub(super) fn equality(self, other: Shift) -> Option<Shift> {
        let difference = self.minus(other)?;
        // Two of one circle, less than a turn apart: they meet everywhere or nowhere.
        let near = difference.modulus > 0
            && difference.by == 0
            && -difference.modulus < difference.least
            && difference.most < difference.modulus;
        (difference.is_fixed() || near).then_some(Shift::between(0, 1))
    }

    /// Either of the two; which, is the same at all ranks.
    pub(super) fn or(self, other: Shift) -> Option<Shift> {
        let (least, most) = (self.least.min(other.least), self.most.max(other.most));
        if self.is_fixed() && other.is_fixed() {
            return Some(Shift::between(least, most));
        }
        let modulus = gcd(self.modulus as u64, other.modulus as u64) as i64;
        if modulus == 0 || self.by.rem_euclid(modulus) != other.by.rem_euclid(modulus) {
            return None;
        }
        Shift::turning(self.by, modulus, least, most)
    }
}

#[cfg(test)]
mod tests {
    use super::Shift;

    /// A loop variable of `0..n` that turns by one.
    fn var(n: i64) -> Shift {
        Shift::turning(1, n, 0, n - 1).expect("small")
    }

    #[test]
    fn the_next_rank_turns() {
        let next = var(8).plus(Shift::constant(1)).and_then(|v| v.modulo(Shift::constant(8))).expect("turns");
        assert!(next.turns(1, 8));
        assert!(!next.turns(0, 8) && !next.turns(2, 8));
    }

    #[test]
    fn without_modulus_the_next_rank_leaves_the_circle() {
        let next = var(8).plus(Shift::constant(1)).expect("turns modulo 8");
        assert!(!next.turns(1, 8), "8 is not a rank");
    }

    #[test]
    fn a_difference_modulo_n_stands_still() {
        let difference = var(8).minus(var(8)).expect("turns");
        assert!(!difference.is_fixed(), "7 - 0 and 0 - 1 are not the same");
        assert!(difference.modulo(Shift::constant(8)).expect("known").is_fixed());
    }

    #[test]
    fn halves_of_two_chunks_per_rank() {
        let chunk = Shift::turning(2, 16, 0, 15).expect("small");
        assert!(chunk.divided(Shift::constant(2)).expect("whole").turns(1, 8));
        assert!(chunk.modulo(Shift::constant(2)).expect("known").is_fixed());
        assert!(chunk.divided(Shift::constant(4)).is_none());
    }

    #[test]
    fn doubling_turns_twice_as_far() {
        let twice = var(8).times(Shift::constant(2)).expect("turns");
        assert!(twice.turns(2, 16));
        assert!(twice.plus(Shift::constant(1)).expect("turns").turns(2, 16));
        assert!(!twice.turns(2, 8), "it reaches 14");
        assert!(twice.modulo(Shift::constant(8)).expect("turns").turns(2, 8));
    }

    #[test]
    fn equality_of_two_of_one_circle() {
        assert!(var(8).equality(var(8)).is_some());
        assert!(var(8).equality(Shift::constant(3)).is_none());
        let far = var(8).plus(Shift::constant(8)).expect("turns");
        assert!(var(8).equality(far).is_none(), "0 == 8 no, but the circle says yes");
    }

    /// Every operation, against the definition: over all values of two variables of a small circle, and all turns.
    #[test]
    fn operations_agree_with_the_definition() {
        type Op = (fn(Shift, Shift) -> Option<Shift>, fn(i64, i64) -> Option<i64>);
        let operations: [Op; 6] = [
            (Shift::plus, |a, b| Some(a + b)),
            (Shift::minus, |a, b| Some(a - b)),
            (Shift::times, |a, b| Some(a * b)),
            (Shift::modulo, |a, b| a.checked_rem_euclid(b)),
            (Shift::divided, |a, b| a.checked_div_euclid(b)),
            (Shift::equality, |a, b| Some(i64::from(a == b))),
        ];
        let circle = 12i64;
        // What a variable is, and its value after one step of the rotation.
        let turn = |v: i64, by: i64| (v + by).rem_euclid(circle);
        let mut variables: Vec<(Shift, i64)> = (1..4)
            .map(|k| (k, -k))
            .flat_map(|(a, b)| [a, b])
            .chain([5])
            .map(|by| (Shift::turning(by, circle, 0, circle - 1).expect("small"), by))
            .collect();
        variables.push((Shift::between(0, circle - 1), 0));
        let constants = (-3..14).map(|c| (Shift::constant(c), c));
        let mut judged = 0;
        for &(left, left_by) in &variables {
            let rights: Vec<(Shift, Option<i64>, i64)> = variables
                .iter()
                .map(|&(s, by)| (s, None, by))
                .chain(constants.clone().map(|(s, c)| (s, Some(c), 0)))
                .collect();
            for (right, fixed, right_by) in rights {
                for &(abstracted, concrete) in &operations {
                    // A second operation on top, so that more than one circle is seen.
                    for outer in 1..14 {
                        let Some(once) = abstracted(left, right) else { continue };
                        for (result, wrap) in [
                            (Some(once), 0),
                            (once.modulo(Shift::constant(outer)), 1),
                            (once.divided(Shift::constant(outer)), 2),
                        ] {
                            let Some(result) = result else { continue };
                            judged += 1;
                            let value = |a: i64, b: i64| {
                                let v = concrete(a, b)?;
                                Some(match wrap {
                                    0 => v,
                                    1 => v.rem_euclid(outer),
                                    _ => v.div_euclid(outer),
                                })
                            };
                            for a in 0..circle {
                                for b in 0..if fixed.is_some() { 1 } else { circle } {
                                    let b = fixed.unwrap_or(b);
                                    let after_b = if fixed.is_some() { b } else { turn(b, right_by) };
                                    let now = value(a, b);
                                    let then = value(turn(a, left_by), after_b);
                                    let (Some(now), Some(then)) = (now, then) else {
                                        assert_eq!(now.is_none(), then.is_none(), "fails at some ranks only");
                                        continue;
                                    };
                                    let (least, most) = result.bounds();
                                    assert!((least..=most).contains(&now), "{result:?} {now}");
                                    let moved = then - now - result.by;
                                    let right = match result.modulus {
                                        0 => moved == 0,
                                        m => moved % m == 0,
                                    };
                                    assert!(right, "{left:?} {right:?} {result:?}: {now} became {then}");
                                    for size in 1..30 {
                                        for by in 0..size {
                                            if result.turns(by, size) && by != 0 {
                                                assert_eq!((now + by) % size, then);
                                                assert!((0..size).contains(&now));
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        assert!(judged > 1000, "{judged}");
    }
}
