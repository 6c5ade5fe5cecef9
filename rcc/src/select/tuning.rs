//! What was measured: tuning files.
//!
//! In: a text in TOML, as `rcc tune` writes it (docs/tuning.md has the format). Out: a [`Tuning`]: for each call that was measured the
//! candidates, fastest first. What is no such file is refused with the row at fault.

use std::fmt::Write;

use compiler::cost::topology::{Engine, Topology};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::Ask;
use crate::collective::Collective;
use crate::convention;
use crate::make::Candidate;

/// The number of the format; it changes with every change of meaning.
pub const FORMAT: u32 = 1;

/// A row counts for calls up to so many times as large, or as small.
const REACH: f64 = 8.0;

/// What is built in, and for how many cores.
const BUILTIN: [(u32, &str); 1] = [(2, include_str!("2-cores.toml"))];

/// What was measured on a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// Where it comes from, for reports.
    pub source: String,
    /// It was asked for by its name: then it counts on every machine. One that was only looked for counts on its own.
    pub named: bool,
    /// The machine, as `/proc/cpuinfo` calls it.
    pub machine: String,
    /// How many cores ranks could use.
    pub cores: u32,
    /// When, as `2026-11-30`.
    pub date: String,
    /// The version of rcc.
    pub version: String,
    /// What was measured.
    pub rows: Vec<Row>,
}

/// Calls of one kind and size.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Of what.
    pub collective: Collective,
    /// Among how many ranks.
    pub ranks: u32,
    /// Their size.
    pub bytes: u64,
    /// Bytes of an element.
    pub element: u32,
    /// Whether peers could reach into the buffers.
    pub registered: bool,
    /// What was measured, fastest first; at least one.
    pub candidates: Vec<Entry>,
}

/// A candidate.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The algorithm: its full name.
    pub algorithm: String,
    /// Microseconds of a call: the median of the rounds.
    pub us: f64,
    /// Half of the rounds were within so many microseconds.
    #[serde(default)]
    pub spread: f64,
    /// The most blocks of a rank; none: the model's choice. So for the others.
    pub blocks: Option<u32>,
    /// Slots of a channel.
    pub slots: Option<u32>,
    /// Bytes of a slot.
    pub slice_bytes: Option<u32>,
    /// By messages alone, also where ranks could reach into each other's memory.
    #[serde(default)]
    pub messages: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "format")]
    _format: u32,
    #[serde(default)]
    machine: String,
    cores: u32,
    #[serde(default)]
    date: String,
    #[serde(default)]
    rcc: String,
    #[serde(default)]
    row: Vec<FileRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRow {
    collective: String,
    ranks: u32,
    bytes: u64,
    #[serde(default = "four")]
    element: u32,
    #[serde(default)]
    memory: MemoryKind,
    candidates: Vec<Entry>,
}

#[derive(Deserialize, Default, PartialEq)]
#[serde(rename_all = "lowercase")]
enum MemoryKind {
    #[default]
    Plain,
    Registered,
}

fn four() -> u32 {
    4
}

/// The cores that ranks share on a machine.
pub(crate) fn cores(topology: &Topology) -> Option<u32> {
    match topology.engine {
        Engine::Shared { cores, .. } => Some(cores),
        Engine::Own { .. } => None,
    }
}

/// What is built in for machines like this one.
pub(super) fn builtin(topology: &Topology) -> Option<Tuning> {
    let cores = cores(topology)?;
    let (_, text) = BUILTIN.iter().find(|(has, _)| *has == cores)?;
    parse(text, &format!("built in, for {cores} cores")).ok()
}

/// Reads a tuning file; `source` is what reports call it.
///
/// # Errors
/// What is wrong, with the row.
pub fn parse(text: &str, source: &str) -> Result<Tuning, String> {
    // The number of the format first: a later one may have anything else.
    #[derive(Deserialize)]
    struct Head {
        format: Option<u32>,
    }
    let plain = |error: toml::de::Error| error.to_string().trim_end().to_string();
    let head: Head = toml::from_str(text).map_err(plain)?;
    match head.format {
        Some(FORMAT) => {}
        Some(other) => {
            return Err(format!("it has format {other}, and this rcc reads format {FORMAT}: tune anew"));
        }
        None => return Err("it is no tuning file: it has no `format`".to_string()),
    }
    let file: File = toml::from_str(text).map_err(plain)?;
    let rows = file.row.into_iter().enumerate();
    let rows = rows.map(|(at, row)| read(row).map_err(|why| format!("row {}: {why}", at + 1)));
    Ok(Tuning {
        source: source.to_string(),
        named: true,
        machine: file.machine,
        cores: file.cores,
        date: file.date,
        version: file.rcc,
        rows: rows.collect::<Result<_, _>>()?,
    })
}

fn read(row: FileRow) -> Result<Row, String> {
    let FileRow { collective, ranks, bytes, element, memory, mut candidates } = row;
    let collective = Collective::named(&collective).map_err(|misuse| misuse.to_string())?;
    if ranks == 0 || ![1, 2, 4, 8].contains(&element) {
        return Err(format!("there is no world of {ranks} ranks with elements of {element} bytes"));
    }
    if candidates.is_empty() {
        return Err("it has no candidates".to_string());
    }
    let prefix = format!("std::{collective}::");
    for Entry { algorithm, us, spread, blocks, slots, slice_bytes, messages: _ } in &candidates {
        if !algorithm.starts_with(&prefix) {
            return Err(format!("`{algorithm}` is no algorithm of {collective}"));
        }
        if !(us.is_finite() && *us >= 0.0 && spread.is_finite() && *spread >= 0.0) {
            return Err(format!("`{algorithm}` takes no number of microseconds"));
        }
        let within = |value: Option<u32>, least, most| value.is_none_or(|v| (least..=most).contains(&v));
        if !within(*blocks, 1, 1024) || !within(*slots, 1, 1024) || !within(*slice_bytes, 64, 1 << 30) {
            return Err(format!("`{algorithm}`: blocks and slots are 1 to 1024, slice_bytes 64 to 2^30"));
        }
    }
    candidates.sort_by(|a, b| a.us.total_cmp(&b.us));
    Ok(Row { collective, ranks, bytes, element, registered: memory == MemoryKind::Registered, candidates })
}

impl Tuning {
    /// The row for a call: of its collective, number of ranks and kind of memory that of the nearest size, and of these that of the
    /// nearest size of an element; none, if all are far away.
    pub fn row(&self, ask: &Ask) -> Option<&Row> {
        let far = |row: &Row| (row.bytes.max(1) as f64 / ask.bytes.max(1) as f64).ln().abs();
        let element = |row: &Row| row.element.trailing_zeros().abs_diff(ask.dtype.size().trailing_zeros());
        let of = |row: &&Row| {
            (row.collective, row.ranks, row.registered) == (ask.collective, ask.ranks, ask.registered)
        };
        let nearest = self.rows.iter().filter(of).min_by(|a, b| {
            far(a).total_cmp(&far(b)).then(element(a).cmp(&element(b))).then(a.bytes.cmp(&b.bytes))
        });
        nearest.filter(|row| far(row) <= REACH.ln() + 1e-9)
    }

    /// Whether it was measured on the machine of this name.
    pub fn is_of(&self, machine: &str) -> bool {
        self.machine == plain(machine)
    }

    /// What is different on the machine that it was measured on, if anything is.
    pub(super) fn differs(&self, machine: &str, cores: Option<u32>) -> Option<String> {
        let machine = plain(machine);
        match cores.filter(|&cores| cores != self.cores) {
            _ if self.machine != machine => {
                Some(format!("it is of `{}`, and this is `{machine}`", self.machine))
            }
            Some(cores) => {
                Some(format!("it is of {} cores, and ranks have {cores} together here", self.cores))
            }
            None => None,
        }
    }

    /// As a file.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "# Written by `rcc tune`; docs/tuning.md says what it means.\nformat = {FORMAT}\nmachine = {}\ncores = {}\n\
             date = {}\nrcc = {}\n",
            quoted(&self.machine),
            self.cores,
            quoted(&self.date),
            quoted(&self.version)
        );
        for Row { collective, ranks, bytes, element, registered, candidates } in &self.rows {
            let memory = if *registered { "registered" } else { "plain" };
            let _ = write!(
                text,
                "\n[[row]]\ncollective = \"{collective}\"\nranks = {ranks}\nbytes = {bytes}\nelement = {element}\n\
                 memory = \"{memory}\"\ncandidates = [\n"
            );
            for Entry { algorithm, us, spread, blocks, slots, slice_bytes, messages } in candidates {
                let _ = write!(
                    text,
                    "  {{ algorithm = {}, us = {us:.3}, spread = {spread:.3}",
                    quoted(algorithm)
                );
                for (name, value) in [("blocks", blocks), ("slots", slots), ("slice_bytes", slice_bytes)] {
                    if let Some(value) = value {
                        let _ = write!(text, ", {name} = {value}");
                    }
                }
                text.push_str(if *messages { ", messages = true },\n" } else { " },\n" });
            }
            text.push_str("]\n");
        }
        text
    }

    /// What tells two tunings apart.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.to_text()).into()
    }
}

impl Entry {
    /// An algorithm laid out as the model chooses.
    pub(super) fn free(candidate: &Candidate) -> Entry {
        Entry { algorithm: candidate.algorithm.clone(), ..Entry::default() }
    }

    /// The same in other layouts.
    pub(super) fn otherwise(&self) -> Vec<Entry> {
        let sizes = [16 << 10, 64 << 10, 256 << 10];
        let sizes = sizes.map(|size| Entry { slice_bytes: Some(size), ..self.clone() });
        [Entry { blocks: Some(1), ..self.clone() }].into_iter().chain(sizes).collect()
    }

    /// How it is laid out, where that is not left to the model.
    pub fn layout(&self) -> Option<String> {
        let parts = [
            self.blocks.map(|blocks| match blocks {
                1 => "1 block".to_string(),
                blocks => format!("up to {blocks} blocks"),
            }),
            self.slots.map(|slots| format!("{slots} slots")),
            self.slice_bytes.map(|bytes| format!("slots of {}", convention::show(bytes.into()))),
            self.messages.then(|| "by messages alone".to_string()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// A string of TOML: what is not printable is left out.
fn quoted(text: &str) -> String {
    format!("\"{}\"", plain(text).replace('\\', "\\\\").replace('"', "\\\""))
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
