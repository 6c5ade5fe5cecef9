//! Text in shared memory.
//!
//! In: a string, cut at a character if it is too long. Out: the same string, in any process that maps the memory.
//! Words are atomic, so that a reader that comes too early sees nonsense (replaced characters) but no undefined
//! behaviour; who needs the whole text orders its read after the write by other means.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A string of at most `8 * WORDS` bytes. Zeroed memory is the empty string.
#[repr(C, align(8))]
#[derive(Debug)]
pub struct Text<const WORDS: usize> {
    len: AtomicU32,
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Text<WORDS> {
    /// Stores a string; what does not fit is cut off.
    pub fn store(&self, text: &str) {
        let most = 8 * WORDS;
        let end = if text.len() <= most { text.len() } else { floor_char_boundary(text, most) };
        let bytes = &text.as_bytes()[..end];
        for (word, chunk) in self.words.iter().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
        }
        self.len.store(end as u32, Ordering::Relaxed);
    }

    /// The string stored.
    pub fn load(&self) -> String {
        let len = (self.len.load(Ordering::Relaxed) as usize).min(8 * WORDS);
        let mut bytes: Vec<u8> = self.words[..len.div_ceil(8)]
            .iter()
            .flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes())
            .collect();
        bytes.truncate(len);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn floor_char_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_and_cuts_at_a_character() {
        let text = Text::<2> { len: AtomicU32::new(0), words: Default::default() };
        assert_eq!(text.load(), "");
        text.store("ring");
        assert_eq!(text.load(), "ring");
        text.store("fünfzehn Bytes → mehr");
        assert_eq!(text.load(), "fünfzehn Bytes ");
    }
}
