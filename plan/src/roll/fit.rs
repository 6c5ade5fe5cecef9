//! Whether numbers follow an affine rule, perhaps modulo a constant.
//!
//! In: numbers one after the other. Out: the rule that all of them follow, found as they come. The one hard idea:
//! numbers that step by `d` inside a window of m numbers, and are carried back by m whenever they would leave it, have two
//! differences, d and d - m or d + m. So the second difference seen gives m, and from then on numbers follow the rule if
//! they are congruent to it and the window that holds them all is not wider than m.

/// A rule in the making.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fit {
    /// The first number.
    pub(super) first: i64,
    /// The difference, modulo `modulus`.
    pub(super) stride: i64,
    /// The width of the window; 0: none.
    pub(super) modulus: i64,
    /// How many numbers there were.
    pub(super) len: usize,
    /// How many there were when the window was found; 0: none was, or it is `natural`.
    guessed: usize,
    /// A width that is no surprise (of a buffer, of the world); 0: none.
    natural: i64,
    last: i64,
    low: i64,
    high: i64,
}

impl Fit {
    /// One number.
    pub(super) fn new(first: i64, natural: i64) -> Fit {
        Fit {
            first,
            stride: 0,
            modulus: 0,
            len: 1,
            guessed: 0,
            natural,
            last: first,
            low: first,
            high: first,
        }
    }

    /// No number at all.
    pub(super) fn none() -> Fit {
        Fit { len: 0, ..Fit::new(0, 0) }
    }

    /// One number, of which all that follow keep the window `0..modulus`.
    pub(super) fn within(first: i64, modulus: i64) -> Fit {
        Fit { modulus, ..Fit::new(first, modulus) }
    }

    /// Whether the next number follows; if not, the rule is spoilt.
    #[inline]
    pub(super) fn push(&mut self, next: i64) -> bool {
        let step = next - self.last;
        self.low = self.low.min(next);
        self.high = self.high.max(next);
        if self.len == 1 {
            self.stride = step;
        } else if step != self.stride {
            let gap = (step - self.stride).abs();
            if self.modulus == 0 {
                self.modulus = gap;
                self.guessed = if gap == self.natural { 0 } else { self.len };
            } else if gap != self.modulus {
                return false;
            }
        }
        self.last = next;
        self.len += 1;
        self.modulus == 0 || self.high - self.low < self.modulus
    }

    /// Whether the window was guessed from the last number alone.
    pub(super) fn guessed_last(&self) -> bool {
        self.guessed > 0 && self.guessed + 1 == self.len
    }

    /// If little speaks for the window (its last number alone, or numbers that do not go round it), how many numbers there
    /// were before it was guessed: likely what lies beyond is another row of numbers, not the same one carried back.
    pub(super) fn doubt(&self) -> Option<usize> {
        let rounds = (self.len as i64 + 3) * self.stride().abs() >= self.modulus;
        (self.guessed > 0 && (self.guessed_last() || !rounds)).then_some(self.guessed)
    }

    /// Where the window starts.
    pub(super) fn window(&self) -> i64 {
        if self.modulus == 0 {
            return 0;
        }
        let aligned = self.low.div_euclid(self.modulus) * self.modulus;
        if self.high < aligned + self.modulus { aligned } else { self.low }
    }

    /// The difference, as small as it can be.
    pub(super) fn stride(&self) -> i64 {
        if self.modulus == 0 {
            return self.stride;
        }
        let stride = self.stride.rem_euclid(self.modulus);
        if stride > self.modulus / 2 { stride - self.modulus } else { stride }
    }
}

#[cfg(test)]
mod tests {
    use super::Fit;

    fn fit(numbers: &[i64]) -> Option<Fit> {
        let mut fit = Fit::new(numbers[0], 0);
        numbers[1..].iter().all(|&n| fit.push(n)).then_some(fit)
    }

    fn at(fit: &Fit, i: i64) -> i64 {
        let (low, n) = (fit.window(), fit.first + fit.stride() * i);
        if fit.modulus == 0 { n } else { low + (n - low).rem_euclid(fit.modulus) }
    }

    #[test]
    fn rules_say_what_they_were_made_of() {
        for (start, stride, modulus, low) in
            [(3, -1, 8, 0), (0, 7, 8, 0), (9, 3, 8, 8), (5, -3, 7, 2), (4, 0, 9, 0), (10, 4, 1000, 0)]
        {
            let numbers: Vec<i64> =
                (0..50).map(|i| low + (start - low + i * stride as i64).rem_euclid(modulus)).collect();
            let fit = fit(&numbers).unwrap_or_else(|| panic!("{numbers:?}"));
            let again: Vec<i64> = (0..50).map(|i| at(&fit, i)).collect();
            assert_eq!(numbers, again);
        }
    }

    #[test]
    fn what_follows_no_rule_is_refused() {
        for numbers in [&[0, 1, 2, 9][..], &[0, 3, 1, 3], &[5, 4, 3, 5, 3], &[0, 0, 1, 2], &[1, 2, 0, 2]] {
            assert_eq!(fit(numbers), None, "{numbers:?}");
        }
        assert_eq!(fit(&[2, 3, 0]).unwrap().doubt(), Some(2));
        assert_eq!(fit(&[2, 3, 0, 1]).unwrap().doubt(), None);
        // Two rows, each going down.
        assert_eq!(fit(&[3, 2, 1, 0, 15, 14, 13, 12]).unwrap().doubt(), Some(4));
        assert_eq!(fit(&[3, 2, 1, 0, 7, 6, 5, 4]).unwrap().doubt(), None);
    }
}
