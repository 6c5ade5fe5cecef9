//! Numbers as bytes: seven bits to a byte, lowest first.
//!
//! In: numbers, or bytes from anywhere. Out: bytes, or numbers within 32 bits (63 with a sign) and never a panic.

/// Why bytes do not hold a plan's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// They hold something else.
    Malformed(&'static str),
    /// What they hold would take more memory than allowed.
    TooLarge {
        /// How many bytes (or more).
        bytes: u64,
    },
}

/// What all readers here return.
pub(crate) type Read<T> = Result<T, Fault>;

/// Bytes in the making.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// What has been written.
    pub(crate) bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn unsigned(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    pub(super) fn len(&mut self, len: usize) {
        self.unsigned(len as u64);
    }

    pub(super) fn signed(&mut self, number: i64) {
        self.unsigned(((number << 1) ^ (number >> 63)) as u64);
    }
}

/// Bytes being read.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn unsigned(&mut self) -> Read<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let Some((&byte, rest)) = self.bytes.split_first() else {
                return Err(Fault::Malformed("it ends in the middle of a table"));
            };
            self.bytes = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Fault::Malformed("a number has more than 64 bits"))
    }

    pub(super) fn signed(&mut self) -> Read<i64> {
        let number = self.unsigned()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(super) fn small(&mut self) -> Read<u32> {
        narrow(self.unsigned()?)
    }
}

/// A number that must fit 32 bits.
pub(super) fn narrow(number: impl TryInto<u32>) -> Read<u32> {
    number.try_into().map_err(|_| Fault::Malformed("a number does not fit 32 bits"))
}
