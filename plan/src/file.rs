//! Plans as files.
//!
//! In: a plan, or bytes from anywhere. Out: bytes, or a plan that is well formed (and nothing more: `verify` judges
//! it). A file is a preface of fixed size, then the plan in postcard's form:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `rccplan\0` |
//! | 4 | the format's version, little endian |
//! | 8 | the length of the plan's bytes, little endian |
//! | 32 | their SHA-256: the plan's [`ContentHash`] |
//!
//! Safe on bytes from anywhere: the length is limited and compared before anything is read; tables grow only as
//! elements are really there (each takes at least a byte), so memory is at most some eighty times the file's size,
//! and time is linear in it. The hash is against accidents, not against malice: who can write a file can hash it.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::plan::Plan;

/// The version of the format that is written, and the only one that is read.
pub const FORMAT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"rccplan\0";
const PREFACE: usize = 8 + 4 + 8 + 32;

/// How much a file may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadLimits {
    /// Bytes of the file.
    pub bytes: u64,
}

impl Default for LoadLimits {
    fn default() -> LoadLimits {
        LoadLimits { bytes: 128 << 20 }
    }
}

/// Why bytes are not a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// More bytes than allowed.
    #[error("the file has {bytes} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Something else.
    #[error("this is not a plan file of rcc: it does not begin with `rccplan`")]
    NotAPlan,
    /// Written by a later rcc.
    #[error("the plan has format version {found}; this rcc reads version {FORMAT_VERSION}: use a newer rcc")]
    Newer {
        /// Its version.
        found: u32,
    },
    /// Written by an earlier rcc.
    #[error("the plan has format version {found}; this rcc reads version {FORMAT_VERSION}: compile it again")]
    Older {
        /// Its version.
        found: u32,
    },
    /// The end is missing.
    #[error("the file is cut short: it has {found} bytes of {expected}")]
    Truncated {
        /// Bytes that there should be.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// Something follows the plan.
    #[error("{extra} bytes follow the plan")]
    Trailing {
        /// How many.
        extra: u64,
    },
    /// Some byte has changed since it was written.
    #[error("the file is damaged: its content has the hash {found}, not {expected}")]
    Damaged {
        /// What the preface says.
        expected: ContentHash,
        /// What is true.
        found: ContentHash,
    },
    /// The bytes are as they were written, but no plan.
    #[error("the file does not hold a plan: {why}")]
    Malformed {
        /// What the decoder says.
        why: String,
    },
}

/// The SHA-256 of a plan's bytes: equal plans have equal hashes, whoever made them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash(pub [u8; 32]);

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHash({self})")
    }
}

impl Plan {
    /// The plan as a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = encode(self, vec![0; PREFACE]);
        let (length, hash) = (bytes.len() - PREFACE, hash(&bytes[PREFACE..]));
        let preface =
            [&MAGIC[..], &FORMAT_VERSION.to_le_bytes(), &(length as u64).to_le_bytes(), &hash.0].concat();
        bytes[..PREFACE].copy_from_slice(&preface);
        bytes
    }

    /// A plan from a file. It is well formed and nothing more: run `verify` before anything else.
    pub fn from_bytes(bytes: &[u8], limits: &LoadLimits) -> Result<Plan, LoadError> {
        let found = bytes.len() as u64;
        if found > limits.bytes {
            return Err(LoadError::TooLarge { bytes: found, limit: limits.bytes });
        }
        if !bytes.starts_with(&MAGIC) {
            // The beginning of a plan file, or nothing at all, is one cut short.
            let cut = MAGIC.starts_with(bytes) && !bytes.is_empty();
            let truncated = LoadError::Truncated { expected: PREFACE as u64, found };
            return Err(if cut { truncated } else { LoadError::NotAPlan });
        }
        let Some((preface, content)) = bytes.split_first_chunk::<PREFACE>() else {
            return Err(LoadError::Truncated { expected: PREFACE as u64, found });
        };
        let (version, rest) = take::<4>(&preface[MAGIC.len()..]);
        match u32::from_le_bytes(version) {
            FORMAT_VERSION => {}
            found if found > FORMAT_VERSION => return Err(LoadError::Newer { found }),
            found => return Err(LoadError::Older { found }),
        }
        let (length, rest) = take::<8>(rest);
        let (length, length_found) = (u64::from_le_bytes(length), content.len() as u64);
        if length > length_found {
            let expected = length.saturating_add(PREFACE as u64);
            return Err(LoadError::Truncated { expected, found });
        }
        if length < length_found {
            return Err(LoadError::Trailing { extra: length_found - length });
        }
        let (expected, found) = (ContentHash(take::<32>(rest).0), hash(content));
        if expected != found {
            return Err(LoadError::Damaged { expected, found });
        }
        match postcard::take_from_bytes::<Plan>(content) {
            Ok((plan, [])) => Ok(plan),
            Ok((_, rest)) => Err(LoadError::Malformed { why: format!("{} bytes are left over", rest.len()) }),
            Err(error) => Err(LoadError::Malformed { why: error.to_string() }),
        }
    }

    /// The hash that the plan's file carries.
    pub fn content_hash(&self) -> ContentHash {
        hash(&encode(self, Vec::new()))
    }
}

/// Appends the plan's bytes.
fn encode(plan: &Plan, before: Vec<u8>) -> Vec<u8> {
    // Writing into memory cannot fail, and every type of a plan has a length known beforehand.
    postcard::to_extend(plan, before).expect("a plan can always be written into memory")
}

fn hash(bytes: &[u8]) -> ContentHash {
    ContentHash(Sha256::digest(bytes).into())
}

/// The first N bytes of a part of the preface, whose size is known.
fn take<const N: usize>(bytes: &[u8]) -> ([u8; N], &[u8]) {
    let mut first = [0; N];
    let (head, rest) = bytes.split_at(N);
    first.copy_from_slice(head);
    (first, rest)
}
