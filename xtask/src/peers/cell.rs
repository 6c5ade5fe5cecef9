//! Cells and samples: what is compared, and one program's figure for it in one round.
//!
//! In: names and numbers. Out: plain data; the product of collectives, ranks and sizes; the lines that programs print.

use serde::{Deserialize, Serialize};

/// The collectives that are compared.
pub(crate) const COLLECTIVES: [&str; 5] =
    ["allreduce", "allgather", "reducescatter", "alltoall", "broadcast"];
/// The ranks.
pub(crate) const RANKS: [u32; 3] = [2, 4, 8];
/// Bytes of the larger buffer.
pub(crate) const BYTES: [u64; 8] = [8, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20];

/// A collective, ranks, a size.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) collective: String,
    pub(crate) ranks: u32,
    pub(crate) bytes: u64,
}

/// What a program's buffers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Memory {
    /// As malloc gives them.
    Plain,
    /// Where other ranks may reach into them; of rcc alone.
    Registered,
}

/// What happens to inputs between calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Inputs {
    /// Nothing: a reader may still have them in its own cache.
    Reused,
    /// They are written anew.
    Rewritten,
}

/// One program's figure for a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) memory: Memory,
    pub(crate) inputs: Inputs,
    /// Of a batch.
    pub(crate) calls: u64,
    /// Microseconds of a call: the median and the least of all batches.
    pub(crate) median_us: f64,
    pub(crate) least_us: f64,
    /// Elements that were not what they must be, before and after the timed calls.
    pub(crate) wrong: u64,
}

/// What a program printed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Printed {
    /// The library and its version.
    pub(crate) library: String,
    /// The plans that were taken, for each memory.
    pub(crate) plans: Vec<(Memory, String)>,
    pub(crate) samples: Vec<Sample>,
}

impl Memory {
    fn parse(name: &str) -> Option<Memory> {
        match name {
            "plain" => Some(Memory::Plain),
            "registered" => Some(Memory::Registered),
            _ => None,
        }
    }
}

impl Inputs {
    fn parse(name: &str) -> Option<Inputs> {
        match name {
            "reused" => Some(Inputs::Reused),
            "rewritten" => Some(Inputs::Rewritten),
            _ => None,
        }
    }
}

/// Every cell of a product, the ranks outermost.
pub(crate) fn product(collectives: &[String], ranks: &[u32], bytes: &[u64]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &ranks in ranks {
        for collective in collectives {
            for &bytes in bytes {
                cells.push(Cell { collective: collective.clone(), ranks, bytes });
            }
        }
    }
    cells
}

/// Reads what a program printed for a cell; launchers may have mixed in lines of their own. Every line of ours must be whole
/// and of this cell, and there must be a figure for both kinds of inputs.
pub(crate) fn parse(text: &str, cell: &Cell) -> Result<Printed, String> {
    let mut printed = Printed::default();
    for line in text.lines() {
        let mut fields = line.trim().split(',');
        match fields.next() {
            Some("library") => printed.library = fields.collect::<Vec<_>>().join(","),
            Some("plan") => {
                let memory = fields.next().and_then(Memory::parse);
                let memory = memory.ok_or_else(|| format!("a line makes no sense: {line}"))?;
                printed.plans.push((memory, fields.collect::<Vec<_>>().join(",")));
            }
            Some("cell") => {
                let fields: Vec<&str> = fields.collect();
                let sample = sample(&fields, cell).ok_or_else(|| format!("a line makes no sense: {line}"))?;
                printed.samples.push(sample);
            }
            _ => {}
        }
    }
    for inputs in [Inputs::Reused, Inputs::Rewritten] {
        let of = |sample: &&Sample| sample.memory == Memory::Plain && sample.inputs == inputs;
        match printed.samples.iter().filter(of).count() {
            1 => {}
            found => return Err(format!("{found} figures for plain buffers, {inputs:?}, where one is due")),
        }
    }
    Ok(printed)
}

fn sample(fields: &[&str], cell: &Cell) -> Option<Sample> {
    let &[collective, ranks, bytes, memory, inputs, calls, median, least, wrong] = fields else {
        return None;
    };
    let same =
        collective == cell.collective && ranks.parse() == Ok(cell.ranks) && bytes.parse() == Ok(cell.bytes);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    same.then_some(Sample {
        memory: Memory::parse(memory)?,
        inputs: Inputs::parse(inputs)?,
        calls: calls.parse().ok()?,
        median_us: number(median)?,
        least_us: number(least)?,
        wrong: wrong.parse().ok()?,
    })
}

/// 8 B, 4 KiB, 2 MiB.
pub(crate) fn show_bytes(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// Reads 8, 4K, 2M or 64MiB.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" | "B" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        unit => return Err(format!("`{unit}` is no unit: there are B, K and M")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("`{text}` is no number of bytes"))?;
    let bytes = number.checked_mul(1 << shift).filter(|bytes| (1..=1 << 30).contains(bytes));
    bytes.ok_or_else(|| "sizes are from 1 byte to 1024 MiB".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell() -> Cell {
        Cell { collective: "allreduce".into(), ranks: 2, bytes: 8 }
    }

    #[test]
    fn lines_of_programs_are_found_among_those_of_launchers() {
        let text = "WARNING: something, about a network\nlibrary,A library, of MPI\n\
                    cell,allreduce,2,8,plain,reused,4096,0.4100,0.4000,0\r\n\
                    cell,allreduce,2,8,plain,rewritten,2048,0.5,0.4,3\nbye\n";
        let printed = parse(text, &cell()).unwrap();
        assert_eq!(printed.library, "A library, of MPI");
        assert_eq!(printed.samples.len(), 2);
        let Sample { memory, inputs, calls, median_us, least_us, wrong } = printed.samples[1].clone();
        assert_eq!((memory, inputs, calls, wrong), (Memory::Plain, Inputs::Rewritten, 2048, 3));
        assert_eq!((median_us, least_us), (0.5, 0.4));

        let ours = format!(
            "{text}plan,registered,std::allreduce::ring direct 4 x 64 B\n\
                            cell,allreduce,2,8,registered,reused,1,0.3,0.3,0\n"
        );
        let printed = parse(&ours, &cell()).unwrap();
        assert_eq!(printed.plans, [(Memory::Registered, "std::allreduce::ring direct 4 x 64 B".to_string())]);
        assert_eq!(printed.samples.len(), 3);
    }

    #[test]
    fn what_is_cut_short_or_of_another_cell_is_refused() {
        let reused = "cell,allreduce,2,8,plain,reused,1,0.5,0.4,0\n";
        let rewritten = "cell,allreduce,2,8,plain,rewritten,1,0.5,0.4,0\n";
        assert!(parse(&format!("{reused}{rewritten}"), &cell()).is_ok());
        for text in [
            String::new(),
            reused.to_string(),
            format!("{reused}{reused}{rewritten}"),
            format!("{reused}cell,allreduce,2,8,plain,rewr"),
            format!("{reused}{}", rewritten.replace("allreduce", "alltoall")),
            format!("{reused}{}", rewritten.replace(",2,", ",4,")),
            format!("{reused}{}", rewritten.replace(",8,", ",16,")),
            format!("{reused}{}", rewritten.replace("0.5", "nan")),
            format!("{reused}{}", rewritten.replace("plain", "pinned")),
            format!("{reused}{}", rewritten.replace(",0\n", ",-1\n")),
        ] {
            assert!(parse(&text, &cell()).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_as_they_are_shown() {
        for bytes in BYTES {
            assert_eq!(parse_bytes(&show_bytes(bytes).replace(' ', "")), Ok(bytes));
        }
        assert_eq!(parse_bytes("256K"), Ok(256 << 10));
        for wrong in ["", "K", "0", "-8", "8G", "2048M", "99999999999999999999"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_product_has_every_cell_once() {
        let all = product(&COLLECTIVES.map(String::from), &RANKS, &BYTES);
        assert_eq!(all.len(), 120);
        let apart: std::collections::BTreeSet<&Cell> = all.iter().collect();
        assert_eq!(apart.len(), 120);
    }
}
