//! Plans as files.
//!
//! In: a plan, or bytes from anywhere. Out: bytes, or a plan that is well formed (and nothing more: `verify` judges
//! it). A file is a preface of fixed size, then the plan:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `rccplan\0` |
//! | 4 | the format's version, little endian |
//! | 8 | the length of what follows the preface, little endian |
//! | 32 | its SHA-256 |
//! | 1 | 0: steps are loops; 1: steps are spelled out |
//!
//! With loops, the header, buffers and source positions follow in postcard's form, then all tables as `roll` writes them.
//! Spelled out, which is only done for plans whose tables are not in order, the plan follows in postcard's form.
//!
//! Safe on bytes from anywhere: the length is limited and compared before anything is read; how much each table will take
//! is compared with [`LoadLimits::expanded`] before memory is taken for it; a file's own bytes explain the rest. So memory
//! is at most three times that limit and some hundred times the file's size, and time is linear in it. The hash in the
//! preface is against accidents, not against malice: who can write a file can hash it.
//!
//! The [`ContentHash`] is that of the plan, not of a file: loops are found anew by each version of rcc, and two ranks that
//! run the same steps run the same plan.

use std::fmt;
use std::io::{self, BufWriter, Write};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::display::plural;
use crate::plan::{Buffer, Header, Plan, SpanTable};
use crate::roll;
use crate::roll::wire::{Fault, Writer};
use crate::verify::Limits;

/// The version of the format that is written, and the only one that is read.
pub const FORMAT_VERSION: u32 = 3;

const MAGIC: [u8; 8] = *b"rccplan\0";
const PREFACE: usize = 8 + 4 + 8 + 32;
const LOOPS: u8 = 0;
const SPELLED_OUT: u8 = 1;
/// Bytes of memory for each byte of a plan spelled out, at worst: operand lists that are empty.
const WORST: u64 = 24;

/// How much a file may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadLimits {
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of memory that the plan's tables take when all loops are spelled out.
    pub expanded: u64,
}

impl Default for LoadLimits {
    fn default() -> LoadLimits {
        LoadLimits { bytes: 128 << 20, expanded: 4 << 30 }
    }
}

impl LoadLimits {
    /// In proportion to what `verify` is allowed: who raises one limit need not know of the other.
    pub fn of(limits: &Limits) -> LoadLimits {
        let (usual, load) = (Limits::default(), LoadLimits::default());
        let scaled =
            |now: u64, usual: u64| u128::from(load.expanded) * u128::from(now) / u128::from(usual.max(1));
        let most = scaled(limits.steps, usual.steps)
            .max(scaled(limits.accesses, usual.accesses))
            .max(scaled(limits.places, usual.places));
        LoadLimits { expanded: load.expanded.max(u64::try_from(most).unwrap_or(u64::MAX)), ..load }
    }
}

/// Why bytes are not a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// More bytes than allowed.
    #[error("the file has {}, more than the limit of {limit}", count(*bytes))]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The plan takes more memory than allowed.
    #[error("the plan takes {} of memory or more; the limit is {limit}", count(*bytes))]
    Expands {
        /// How many bytes, as far as they were counted.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Something else.
    #[error("this is not a plan file of rcc: it does not begin with `rccplan`")]
    NotAPlan,
    /// Written by a later rcc.
    #[error("the plan has format version {found}; this rcc reads version {read}: use a newer rcc")]
    Newer {
        /// Its version.
        found: u32,
        /// The version that is read.
        read: u32,
    },
    /// Written by an earlier rcc.
    #[error("the plan has format version {found}; this rcc reads version {read}: compile it again")]
    Older {
        /// Its version.
        found: u32,
        /// The version that is read.
        read: u32,
    },
    /// The end is missing.
    #[error("the file is cut short: it has {found} of {}", count(*expected))]
    Truncated {
        /// Bytes that there should be.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// Something follows the plan.
    #[error("{} the plan", plural(*extra, "byte follows", "bytes follow"))]
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

/// The SHA-256 of a plan in postcard's form, steps spelled out: equal plans have equal hashes, whoever made them and
/// however their files hold them.
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

/// What is stored of a plan beside its tables.
#[derive(Serialize, Deserialize)]
struct Head {
    header: Header,
    buffers: Vec<Buffer>,
    spans: SpanTable,
    synchronised: bool,
}

/// What a file begins with: of plans, and of folded plans.
pub(crate) struct Preface {
    pub(crate) magic: [u8; 8],
    pub(crate) version: u32,
}

const OF_PLANS: Preface = Preface { magic: MAGIC, version: FORMAT_VERSION };

impl Preface {
    /// A file with this content.
    pub(crate) fn write(&self, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; PREFACE];
        bytes.extend_from_slice(content);
        self.fill(&mut bytes);
        bytes
    }

    /// Writes the preface into the room left for it.
    fn fill(&self, bytes: &mut [u8]) {
        let (preface, content) = bytes.split_at_mut(PREFACE);
        let length = (content.len() as u64).to_le_bytes();
        let parts = [&self.magic[..], &self.version.to_le_bytes(), &length, &hash(content).0].concat();
        preface.copy_from_slice(&parts);
    }

    /// What follows the preface, as it was written.
    pub(crate) fn open<'b>(&self, bytes: &'b [u8], limits: &LoadLimits) -> Result<&'b [u8], LoadError> {
        let found = bytes.len() as u64;
        if found > limits.bytes {
            return Err(LoadError::TooLarge { bytes: found, limit: limits.bytes });
        }
        if !bytes.starts_with(&self.magic) {
            // The beginning of a plan file, or nothing at all, is one cut short.
            let cut = self.magic.starts_with(bytes) && !bytes.is_empty();
            let truncated = LoadError::Truncated { expected: PREFACE as u64, found };
            return Err(if cut { truncated } else { LoadError::NotAPlan });
        }
        let Some((preface, content)) = bytes.split_first_chunk::<PREFACE>() else {
            return Err(LoadError::Truncated { expected: PREFACE as u64, found });
        };
        let (version, rest) = take::<4>(&preface[self.magic.len()..]);
        match u32::from_le_bytes(version) {
            found if found == self.version => {}
            found if found > self.version => return Err(LoadError::Newer { found, read: self.version }),
            found => return Err(LoadError::Older { found, read: self.version }),
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
        Ok(content)
    }
}

impl Plan {
    /// The plan as a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = Head {
            header: Header { scratch_cells: Vec::new(), ..self.header.clone() },
            buffers: self.buffers.clone(),
            spans: self.spans.clone(),
            synchronised: self.promise.synchronised,
        };
        let mut bytes = vec![0; PREFACE];
        bytes.push(LOOPS);
        let mut out = Writer { bytes: encode(&head, bytes) };
        if !roll::pack(&mut out, self) {
            out.bytes.truncate(PREFACE);
            out.bytes.push(SPELLED_OUT);
            out.bytes = encode(self, out.bytes);
        }
        let mut bytes = out.bytes;
        OF_PLANS.fill(&mut bytes);
        bytes
    }

    /// A plan from a file. It is well formed and nothing more: run `verify` before anything else.
    pub fn from_bytes(bytes: &[u8], limits: &LoadLimits) -> Result<Plan, LoadError> {
        let content = OF_PLANS.open(bytes, limits)?;
        decode(content, limits)
    }

    /// The plan's hash. Takes about a tenth of a second for two million steps: see `VerifiedPlan::content_hash`.
    pub fn content_hash(&self) -> ContentHash {
        let out = BufWriter::with_capacity(1 << 16, Hashing(Sha256::new()));
        let out = postcard::to_io(self, out).expect("a plan can always be hashed");
        let Ok(Hashing(hasher)) = out.into_inner() else { unreachable!("hashing has no errors") };
        ContentHash(hasher.finalize().into())
    }
}

/// A plan from what follows the preface.
fn decode(content: &[u8], limits: &LoadLimits) -> Result<Plan, LoadError> {
    let malformed = |why: &dyn fmt::Display| LoadError::Malformed { why: why.to_string() };
    let expands = |bytes: u64| LoadError::Expands { bytes, limit: limits.expanded };
    match content.split_first() {
        Some((&LOOPS, rest)) => {
            let (head, tables): (Head, _) = postcard::take_from_bytes(rest).map_err(|e| malformed(&e))?;
            let Head { header, buffers, spans, synchronised } = head;
            if !header.scratch_cells.is_empty() {
                return Err(malformed(&"scratch cells stand in the header"));
            }
            let mut plan = Plan::empty(header, buffers, spans);
            plan.promise.synchronised = synchronised;
            match roll::unpack(tables, &mut plan, limits.expanded) {
                Ok(()) => Ok(plan),
                Err(Fault::Malformed(why)) => Err(malformed(&why)),
                Err(Fault::TooLarge { bytes }) => Err(expands(bytes)),
            }
        }
        Some((&SPELLED_OUT, rest)) => {
            let worst = (rest.len() as u64).saturating_mul(WORST);
            if worst > limits.expanded {
                return Err(expands(worst));
            }
            match postcard::take_from_bytes::<Plan>(rest) {
                Ok((plan, [])) => Ok(plan),
                Ok((_, rest)) => Err(malformed(&format!("{} left over", count(rest.len() as u64)))),
                Err(error) => Err(malformed(&error)),
            }
        }
        Some(_) => Err(malformed(&"its steps are written in an unknown way")),
        None => Err(malformed(&"it is empty")),
    }
}

/// Appends a value in postcard's form.
pub(crate) fn encode(value: &impl Serialize, before: Vec<u8>) -> Vec<u8> {
    // Writing into memory cannot fail, and every type of a plan has a length known beforehand.
    postcard::to_extend(value, before).expect("a plan can always be written into memory")
}

fn hash(bytes: &[u8]) -> ContentHash {
    ContentHash(Sha256::digest(bytes).into())
}

/// Hashes what is written to it.
struct Hashing(Sha256);

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The first N bytes of a part of the preface, whose size is known.
fn take<const N: usize>(bytes: &[u8]) -> ([u8; N], &[u8]) {
    let mut first = [0; N];
    let (head, rest) = bytes.split_at(N);
    first.copy_from_slice(head);
    (first, rest)
}

fn count(bytes: u64) -> String {
    plural(bytes, "byte", "bytes")
}
