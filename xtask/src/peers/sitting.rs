//! A sitting: all runs of one comparison, kept as they are made.
//!
//! In: runs. Out: a file with a line of JSON for each, so that a sitting which was stopped goes on where it was
//! (`--resume`), and the samples of all runs. What is begun anew begins with an empty file.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cell::{Cell, Printed};
use super::table::Measured;

/// What a sitting is of. One can go on only with the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Of the program that is measured.
    pub(crate) commit: String,
    pub(crate) machine: Machine,
    /// Seconds of a batch, batches, the most seconds: what every program is told.
    pub(crate) effort: [String; 3],
}

/// Where it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) model: String,
    pub(crate) cpus: usize,
    pub(crate) memory_gib: u64,
    pub(crate) kernel: String,
}

/// What the machine did at the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rates {
    pub(crate) cores: usize,
    pub(crate) one_way_ns: f64,
    pub(crate) copy: Vec<CopyRate>,
}

/// What all cores copy together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CopyRate {
    /// What a core works on: both buffers together.
    pub(crate) bytes: u64,
    pub(crate) gbps: f64,
}

/// One program, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) program: String,
    pub(crate) round: u32,
    pub(crate) cell: Cell,
    /// What it printed, or why there is nothing.
    pub(crate) outcome: Result<Printed, String>,
}

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Head(Head),
    Rates(Rates),
    /// What part of all CPUs other work took while runs were made.
    Others(f64),
    Run(Run),
}

/// A sitting, with its file.
#[derive(Debug)]
pub(crate) struct Sitting {
    file: File,
    pub(crate) head: Head,
    pub(crate) rates: Vec<Rates>,
    pub(crate) others: Vec<f64>,
    pub(crate) runs: Vec<Run>,
}

impl Sitting {
    /// Begins anew.
    pub(crate) fn begin(path: &Path, head: Head) -> Result<Sitting, String> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut sitting =
            Sitting { file, head: head.clone(), rates: Vec::new(), others: Vec::new(), runs: Vec::new() };
        sitting.write(&Line::Head(head))?;
        Ok(sitting)
    }

    /// Goes on with what is there.
    pub(crate) fn resume(path: &Path, head: &Head) -> Result<Sitting, String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
        let Kept { head: there, rates, others, runs } =
            read(&text).map_err(|why| format!("{shown}: {why}"))?;
        let there = there.ok_or_else(|| format!("{shown}: it does not say what it is of"))?;
        if there != *head {
            return Err(format!("the sitting is of {there:?}, and this would be {head:?}: begin anew"));
        }
        // A line that was cut short goes.
        let whole = text.rfind('\n').map_or(0, |end| end + 1) as u64;
        let file = OpenOptions::new().append(true).open(path).map_err(|error| format!("{shown}: {error}"))?;
        file.set_len(whole).map_err(|error| format!("{shown}: {error}"))?;
        Ok(Sitting { file, head: there, rates, others, runs })
    }

    /// Keeps a run.
    pub(crate) fn run(&mut self, run: Run) -> Result<(), String> {
        self.write(&Line::Run(run.clone()))?;
        self.runs.push(run);
        Ok(())
    }

    /// Keeps what the machine did.
    pub(crate) fn rates(&mut self, rates: Rates) -> Result<(), String> {
        self.write(&Line::Rates(rates.clone()))?;
        self.rates.push(rates);
        Ok(())
    }

    /// Keeps how much other work there was.
    pub(crate) fn others(&mut self, part: f64) -> Result<(), String> {
        self.write(&Line::Others(part))?;
        self.others.push(part);
        Ok(())
    }

    /// Whether a run has been made; or need not be, because the program has failed in this cell before.
    pub(crate) fn done(&self, program: &str, round: u32, cell: &Cell) -> bool {
        let mut same = self.runs.iter().filter(|run| run.program == program && run.cell == *cell);
        same.any(|run| run.round == round || run.outcome.is_err())
    }

    /// Every sample.
    pub(crate) fn measured(&self) -> Vec<Measured<'_>> {
        fn of(run: &Run) -> impl Iterator<Item = Measured<'_>> {
            let Run { program, round, cell, outcome } = run;
            let samples = outcome.iter().flat_map(|printed: &Printed| &printed.samples);
            samples.map(move |sample| Measured { program, round: *round, cell, sample })
        }
        self.runs.iter().flat_map(of).collect()
    }

    /// Runs that came to nothing.
    pub(crate) fn failed(&self) -> impl Iterator<Item = (&Run, &str)> {
        self.runs.iter().filter_map(|run| Some((run, run.outcome.as_ref().err()?.as_str())))
    }

    /// Runs with wrong elements, and how many.
    pub(crate) fn wrong(&self) -> impl Iterator<Item = (&Run, u64)> {
        let of = |run: &Run| match &run.outcome {
            Ok(printed) => printed.samples.iter().map(|sample| sample.wrong).max().unwrap_or(0),
            Err(_) => 0,
        };
        self.runs.iter().map(move |run| (run, of(run))).filter(|(_, wrong)| *wrong > 0)
    }

    fn write(&mut self, line: &Line) -> Result<(), String> {
        let mut text = serde_json::to_string(line).map_err(|error| error.to_string())?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(|error| format!("a run cannot be kept: {error}"))
    }
}

/// What a file keeps.
#[derive(Debug, Default)]
struct Kept {
    head: Option<Head>,
    rates: Vec<Rates>,
    others: Vec<f64>,
    runs: Vec<Run>,
}

/// The lines of a file; the last one may be cut short.
fn read(text: &str) -> Result<Kept, String> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut kept = Kept::default();
    for line in whole.lines() {
        match serde_json::from_str(line).map_err(|error| format!("a line makes no sense: {error}"))? {
            Line::Head(found) => kept.head = Some(found),
            Line::Rates(found) => kept.rates.push(found),
            Line::Others(found) => kept.others.push(found),
            Line::Run(found) => kept.runs.push(found),
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::cell::{Inputs, Memory, Sample};

    fn head() -> Head {
        let machine = Machine { model: "a machine".into(), cpus: 2, memory_gib: 24, kernel: "6".into() };
        Head { commit: "abc".into(), machine, effort: ["1", "2", "3"].map(String::from) }
    }

    #[test]
    fn what_was_stopped_goes_on_where_it_was() {
        let folder = std::env::temp_dir().join(format!("rcc-sitting-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("sitting.jsonl");
        let cell = Cell { collective: "alltoall".into(), ranks: 4, bytes: 512 };
        let sample = Sample {
            memory: Memory::Plain,
            inputs: Inputs::Rewritten,
            calls: 9,
            median_us: 0.1,
            least_us: 0.05,
            wrong: 2,
        };
        let printed = Printed { library: "L".into(), samples: vec![sample], ..Printed::default() };
        let run = |program: &str, round, outcome| Run {
            program: program.into(),
            round,
            cell: cell.clone(),
            outcome,
        };
        let mut sitting = Sitting::begin(&path, head()).unwrap();
        sitting.rates(Rates { cores: 2, one_way_ns: 155.0, copy: Vec::new() }).unwrap();
        sitting.others(0.25).unwrap();
        sitting.run(run("rcc", 0, Ok(printed))).unwrap();
        sitting.run(run("mpich", 0, Err("late".into()))).unwrap();
        drop(sitting);
        // The machine went down in the middle of a line.
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"run\":{\"pro").unwrap();

        let mut sitting = Sitting::resume(&path, &head()).unwrap();
        assert_eq!((sitting.rates.len(), sitting.runs.len(), sitting.measured().len()), (1, 2, 1));
        assert_eq!(sitting.others, [0.25]);
        assert!(sitting.done("rcc", 0, &cell) && !sitting.done("rcc", 1, &cell));
        assert!(!sitting.done("openmpi", 0, &cell));
        // Not tried again in the next round.
        assert!(sitting.done("mpich", 1, &cell));
        assert_eq!(sitting.failed().map(|(_, why)| why).collect::<Vec<_>>(), ["late"]);
        assert_eq!(sitting.wrong().map(|(_, wrong)| wrong).collect::<Vec<_>>(), [2]);
        sitting.run(run("rcc", 1, Err("no".into()))).unwrap();
        drop(sitting);
        assert_eq!(Sitting::resume(&path, &head()).unwrap().runs.len(), 3);
        assert!(Sitting::resume(&path, &Head { commit: "other".into(), ..head() }).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
