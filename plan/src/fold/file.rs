//! Folded plans as files.
//!
//! In: a folded plan, or bytes from anywhere. Out: bytes, or a folded plan that is well formed (and nothing more:
//! `verify_folded` judges it). The preface is that of a plan's file (`crate::file`) but for what it begins with,
//! `rccfold\0`, and the version, which counts for itself. Then, in postcard's form, the world's shape and the rotation; then
//! the standing ranks' programs as the file of a plan of that many ranks. The same limits hold.

use serde::{Deserialize, Serialize};

use super::{Folded, Rotation};
use crate::file::{LoadError, LoadLimits, Preface, encode};
use crate::plan::{Header, Plan};

/// The version of the format of folded plans that is written, and the only one that is read.
pub const FOLDED_VERSION: u32 = 2;

const PREFACE: Preface = Preface { magic: *b"rccfold\0", version: FOLDED_VERSION };

/// What is stored beside the standing ranks' programs.
#[derive(Serialize, Deserialize)]
struct Head {
    shape: Vec<u32>,
    ranks: u32,
    rotation: Rotation,
    times: Vec<u32>,
}

impl Folded {
    /// Whether bytes begin as the file of a folded plan does.
    pub fn begins(bytes: &[u8]) -> bool {
        bytes.starts_with(&PREFACE.magic)
    }

    /// The folded plan as a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = &self.plan.header;
        let head = Head {
            shape: header.shape.clone(),
            ranks: header.ranks,
            rotation: self.rotation.clone(),
            times: self.times.clone(),
        };
        let step = self.rotation.step;
        let standing =
            Plan { header: Header { shape: vec![step], ranks: step, ..header.clone() }, ..self.plan.clone() };
        let mut content = encode(&head, Vec::new());
        content.extend(standing.to_bytes());
        PREFACE.write(&content)
    }

    /// A folded plan from a file. It is well formed and nothing more.
    pub fn from_bytes(bytes: &[u8], limits: &LoadLimits) -> Result<Folded, LoadError> {
        let content = PREFACE.open(bytes, limits)?;
        let (head, rest): (Head, _) = postcard::take_from_bytes(content)
            .map_err(|error| LoadError::Malformed { why: error.to_string() })?;
        let Head { shape, ranks, rotation, times } = head;
        let mut plan = Plan::from_bytes(rest, limits)?;
        plan.header = Header { shape, ranks, ..plan.header };
        Ok(Folded { plan, rotation, times })
    }
}
