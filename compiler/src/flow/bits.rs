//! Sets of small numbers, one bit each.

/// A set of small numbers.
#[derive(Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn new(len: usize) -> Bits {
        Bits(vec![0; len / 64 + 1])
    }

    pub(super) fn add(&mut self, at: u32) {
        self.0[at as usize / 64] |= 1 << (at % 64);
    }

    pub(super) fn has(&self, at: u32) -> bool {
        self.0.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}
