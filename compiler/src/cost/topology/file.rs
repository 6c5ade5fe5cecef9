//! Topologies as TOML. docs/cost.md has the format with an example.
//!
//! In: a text from anywhere. Out: a [`Topology`], or what is wrong and in which line. Unknown keys are errors: a key that
//! was misspelt must not leave a default behind.

use plan::display::plural;
use plan::schedule::Protocol;
use serde::Deserialize;

use super::units::{Bytes, Rate, Seconds};
use super::{Encoding, Engine, Level, Reach, Resources, Topology};

/// Why a text is no topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct FileError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong there.
    pub message: String,
}

/// The most bytes of a text.
const MOST_BYTES: usize = 1 << 20;
/// The most levels.
const MOST_LEVELS: usize = 8;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    name: toml::Spanned<String>,
    #[serde(default)]
    about: String,
    slots: Option<toml::Spanned<u32>>,
    slices: Option<toml::Spanned<Vec<Bytes>>>,
    copies: Option<toml::Spanned<u32>>,
    level: toml::Spanned<Vec<LevelText>>,
    engine: Option<toml::Spanned<EngineText>>,
    resources: Option<toml::Spanned<ResourcesText>>,
    #[serde(default)]
    protocol: Vec<toml::Spanned<ProtocolText>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelText {
    name: toml::Spanned<String>,
    size: Option<toml::Spanned<u32>>,
    latency: Seconds,
    port: Option<Rate>,
    uplink: Option<Rate>,
    #[serde(default)]
    multicast: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct EngineText {
    cores: Option<u32>,
    event: Option<Seconds>,
    switch: Option<Seconds>,
    message: Option<Rate>,
    send: Option<Rate>,
    rate: Option<Rate>,
    memory: Option<MemoryText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResourcesText {
    blocks: Option<u32>,
    channels: Option<u32>,
    connections: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum MemoryText {
    Reaches(Vec<ReachText>),
    Rate(Rate),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReachText {
    bytes: Bytes,
    read: Rate,
    write: Rate,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProtocolText {
    name: ProtocolName,
    bandwidth: f64,
    latency: Vec<Seconds>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProtocolName {
    Simple,
    Ll,
    Ll128,
}

/// The least part of a message that may be data: one byte of a kilobyte, so that times stay finite.
const LEAST_DATA: f64 = 0.001;

/// Reads a topology.
pub fn parse(text: &str) -> Result<Topology, FileError> {
    let at = |offset: usize, message: String| {
        let before = text.as_bytes().iter().take(offset);
        FileError { line: 1 + before.filter(|&&byte| byte == b'\n').count() as u32, message }
    };
    if text.len() > MOST_BYTES {
        return Err(FileError { line: 1, message: format!("the file is longer than {MOST_BYTES} bytes") });
    }
    let read: Text = toml::from_str(text).map_err(|error| {
        // A missing key is told of the table that lacks it; without a place it is the end of the file.
        let message = error.message().replace("expected u32", "expected a whole number below 4294967296");
        at(error.span().map_or(text.len(), |span| span.start), message)
    })?;

    if read.name.get_ref().trim().is_empty() || read.name.get_ref().chars().any(char::is_control) {
        return Err(at(
            read.name.span().start,
            "a topology needs a name of printable characters".to_string(),
        ));
    }
    let number = |value: &Option<toml::Spanned<u32>>, default: u32, what: &str, most: u32| match value {
        None => Ok(default),
        Some(value) if (1..=most).contains(value.get_ref()) => Ok(*value.get_ref()),
        Some(value) => {
            Err(at(value.span().start, format!("`{what}` is {}: it must be 1 to {most}", value.get_ref())))
        }
    };
    let slots = number(&read.slots, 4, "slots", 1 << 16)?;
    let copies = number(&read.copies, 32, "copies", 1 << 10)?;
    let slices = match &read.slices {
        None => vec![16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20],
        Some(given) => {
            let mut sizes: Vec<u32> = Vec::new();
            for &Bytes(bytes) in given.get_ref() {
                match u32::try_from(bytes).ok().filter(|bytes| (16..=1 << 30).contains(bytes)) {
                    Some(bytes) => sizes.push(bytes),
                    None => {
                        let message = format!("`slices`: {bytes} bytes: a slot has 16 B to 1 GiB");
                        return Err(at(given.span().start, message));
                    }
                }
            }
            sizes.sort_unstable();
            sizes.dedup();
            if sizes.is_empty() || sizes.len() > 16 {
                return Err(at(given.span().start, "`slices` needs 1 to 16 sizes".to_string()));
            }
            sizes
        }
    };

    let span = read.level.span().start;
    let levels = read.level.into_inner();
    if levels.is_empty() || levels.len() > MOST_LEVELS {
        return Err(at(span, format!("there must be 1 to {MOST_LEVELS} levels")));
    }
    let last = levels.len() - 1;
    let mut made = Vec::new();
    for (l, level) in levels.into_iter().enumerate() {
        let name = level.name.get_ref();
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return Err(at(
                level.name.span().start,
                "a level needs a name of printable characters".to_string(),
            ));
        }
        match &level.size {
            Some(size) if *size.get_ref() == 0 => {
                return Err(at(
                    size.span().start,
                    "`size` is 0: a group has at least one member".to_string(),
                ));
            }
            None if l < last => {
                let message = format!("level `{name}` needs a `size`: only the last may hold all there are");
                return Err(at(level.name.span().start, message));
            }
            _ => {}
        }
        made.push(Level {
            name: level.name.into_inner(),
            size: level.size.map(toml::Spanned::into_inner),
            latency: level.latency.0,
            port: level.port.map(|rate| rate.0),
            uplink: level.uplink.map(|rate| rate.0),
            multicast: level.multicast,
        });
    }

    let engine_at = read.engine.as_ref().map_or(0, |engine| engine.span().start);
    let engine = engine(read.engine.map(toml::Spanned::into_inner).unwrap_or_default())
        .map_err(|message| at(engine_at, message))?;

    let mut encodings: Vec<Encoding> = Vec::new();
    for protocol in read.protocol {
        let span = protocol.span().start;
        let ProtocolText { name, bandwidth, latency } = protocol.into_inner();
        if !(LEAST_DATA..=1.0).contains(&bandwidth) {
            let message =
                format!("`bandwidth` is {bandwidth}: it is the part that is data, {LEAST_DATA} to 1");
            return Err(at(span, message));
        }
        if latency.len() != made.len() {
            let message = {
                let (values, levels) = (latency.len() as u64, made.len() as u64);
                let (values, levels) = (plural(values, "value", "values"), plural(levels, "level", "levels"));
                format!("`latency` has {values}, and there is one for each of {levels}")
            };
            return Err(at(span, message));
        }
        let protocol = match name {
            ProtocolName::Simple => Protocol::Simple,
            ProtocolName::Ll => Protocol::Ll,
            ProtocolName::Ll128 => Protocol::Ll128,
        };
        if encodings.iter().any(|known| known.protocol == protocol) {
            return Err(at(span, "this protocol is there twice".to_string()));
        }
        encodings.push(Encoding { protocol, bandwidth, latency: latency.iter().map(|s| s.0).collect() });
    }
    if encodings.is_empty() {
        encodings.push(Encoding {
            protocol: Protocol::Simple,
            bandwidth: 1.0,
            latency: vec![0.0; made.len()],
        });
    }

    let resources_at = read.resources.as_ref().map_or(0, |resources| resources.span().start);
    let ResourcesText { blocks, channels, connections } =
        read.resources.map(toml::Spanned::into_inner).unwrap_or_default();
    if [blocks, channels, connections].contains(&Some(0)) {
        return Err(at(resources_at, "`resources`: a rank without any can run nothing".to_string()));
    }
    let resources = Resources { blocks, channels, connections };

    let (name, about) = (read.name.into_inner(), clean(&read.about));
    Ok(Topology { name, about, levels: made, engine, encodings, slots, slices, copies, resources })
}

/// With `cores` the ranks share them; without, every block has an engine of its own.
fn engine(text: EngineText) -> Result<Engine, String> {
    let event = text.event.map_or(0.0, |seconds| seconds.0);
    let Some(cores) = text.cores else {
        if text.switch.is_some() || text.message.is_some() || text.send.is_some() {
            return Err("`switch`, `message` and `send` are of engines with `cores`".to_string());
        }
        let memory = match text.memory {
            None => None,
            Some(MemoryText::Rate(rate)) => Some(rate.0),
            Some(MemoryText::Reaches(_)) => {
                return Err(
                    "a list of `memory` is for engines with `cores`; others have one bandwidth".to_string()
                );
            }
        };
        return Ok(Engine::Own { rate: text.rate.map(|rate| rate.0), event, memory });
    };
    if cores == 0 || cores > 1 << 16 {
        return Err(format!("`cores` is {cores}: it must be 1 to 65536"));
    }
    if text.rate.is_some() {
        return Err(
            "`rate` is of engines without `cores`; with cores, `memory` says how fast they are".to_string()
        );
    }
    let mut memory = match text.memory {
        Some(MemoryText::Reaches(reaches)) if !reaches.is_empty() => reaches,
        _ => return Err("an engine with `cores` needs a list `memory` of { bytes, read, write }".to_string()),
    };
    memory.sort_by_key(|reach| reach.bytes.0);
    let memory: Vec<Reach> = memory
        .iter()
        .map(|reach| Reach { bytes: reach.bytes.0 as f64, read: reach.read.0, write: reach.write.0 })
        .collect();
    let message = text.message.map_or(memory[0].read, |rate| rate.0);
    let send = text.send.map_or(memory[0].write, |rate| rate.0);
    Ok(Engine::Shared { cores, event, switch: text.switch.map_or(0.0, |s| s.0), message, send, memory })
}

/// A description on one line that cannot move a cursor.
fn clean(about: &str) -> String {
    about.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}
