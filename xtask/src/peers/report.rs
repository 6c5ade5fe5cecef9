//! What a sitting came to: as a table for people, as data for programs.
//!
//! In: a sitting, or several saved ones. Out: [`Report`], whose fields are the JSON, and text.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::cell::{BYTES, COLLECTIVES, Cell, Inputs, Memory, RANKS, show_bytes};
use super::sitting::{CopyRate, Machine, Rates, Sitting};
use super::table::{self, LOST, Means, OURS, Row, WAYS};

/// What the geometric means must not be above: to Intel MPI, to the best.
const TARGETS: [(Memory, Inputs, Option<f64>, f64); 3] = [
    (Memory::Plain, Inputs::Reused, Some(0.55), 0.65),
    (Memory::Plain, Inputs::Rewritten, Some(0.60), 0.70),
    (Memory::Registered, Inputs::Reused, None, 0.45),
];
/// Whom the first column of ratios is to.
const FIRST: &str = "intel";
/// A machine is quiet on which other work takes no more than this of the CPUs.
const QUIET: f64 = 0.03;
/// Sittings in which a cell must be above the line to be lost.
const SITTINGS: usize = 3;

/// A sitting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) date: String,
    pub(crate) commit: String,
    pub(crate) machine: Machine,
    /// Seconds of a batch, batches, the most seconds.
    pub(crate) effort: [String; 3],
    /// Of every program.
    pub(crate) libraries: BTreeMap<String, String>,
    /// Medians of all that were taken during the sitting.
    pub(crate) rates: Option<Rates>,
    /// The most of all CPUs that other work took while runs were made.
    #[serde(default)]
    pub(crate) others: Option<f64>,
    pub(crate) means: Vec<WayMeans>,
    pub(crate) rows: Vec<Row>,
    /// What we took for each cell.
    pub(crate) plans: Vec<Plan>,
    /// What could not be measured, and what was wrong.
    pub(crate) failed: Vec<String>,
    pub(crate) wrong: Vec<String>,
}

/// Geometric means of one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WayMeans {
    pub(crate) memory: Memory,
    pub(crate) inputs: Inputs,
    #[serde(flatten)]
    pub(crate) all: Means,
    pub(crate) by_ranks: BTreeMap<u32, Means>,
    pub(crate) by_collective: BTreeMap<String, Means>,
}

/// The plan of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    #[serde(flatten)]
    pub(crate) cell: Cell,
    pub(crate) memory: Memory,
    pub(crate) plan: String,
}

impl Report {
    /// Of a sitting, so far.
    pub(crate) fn new(sitting: &Sitting, date: String) -> Report {
        let rows = table::rows(&sitting.measured());
        let mut libraries = BTreeMap::new();
        let mut plans: Vec<Plan> = Vec::new();
        for run in &sitting.runs {
            let Ok(printed) = &run.outcome else { continue };
            libraries.insert(run.program.clone(), printed.library.clone());
            for (memory, plan) in &printed.plans {
                let known = |p: &&Plan| p.cell == run.cell && p.memory == *memory;
                if plans.iter().find(known).is_none() {
                    plans.push(Plan { cell: run.cell.clone(), memory: *memory, plan: plan.clone() });
                }
            }
        }
        let failed = sitting.failed().map(|(run, why)| {
            format!("{} of {}, round {}: {why}", show_cell(&run.cell), run.program, run.round)
        });
        let wrong = sitting.wrong().map(|(run, wrong)| {
            format!("{} of {}, round {}: {wrong} elements", show_cell(&run.cell), run.program, run.round)
        });
        Report {
            date,
            commit: sitting.head.commit.clone(),
            machine: sitting.head.machine.clone(),
            effort: sitting.head.effort.clone(),
            libraries,
            rates: rates(&sitting.rates),
            others: sitting.others.iter().copied().max_by(f64::total_cmp),
            means: WAYS.iter().filter_map(|&way| way_means(&rows, way)).collect(),
            rows,
            plans,
            failed: failed.collect(),
            wrong: wrong.collect(),
        }
    }

    /// Whether all that we did was right.
    pub(crate) fn right(&self) -> bool {
        let ours = |line: &String| line.contains(&format!(" of {OURS}, "));
        self.wrong.is_empty() && !self.failed.iter().any(ours)
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let Machine { model, cpus, memory_gib, kernel } = &self.machine;
        let _ = writeln!(text, "rcc against MPI libraries, {}, commit {}", self.date, self.commit);
        let _ = writeln!(text, "{model}, {cpus} CPUs, {memory_gib} GiB, Linux {kernel}");
        if let Some(rates) = &self.rates {
            let copy = rates.copy.iter().map(|c| format!("{:.0} of {}", c.gbps, show_bytes(c.bytes)));
            let copy = copy.collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "{} cores together copy, GB/s by what each works on: {copy}", rates.cores);
            let _ = writeln!(text, "one way between two cores: {:.0} ns", rates.one_way_ns);
        }
        if let Some(others) = self.others {
            let verdict = if others > QUIET { ": NOT QUIET, these figures tell little" } else { "" };
            let _ = writeln!(text, "other work took {:.1} % of the CPUs meanwhile{verdict}", others * 100.0);
        }
        for (program, library) in &self.libraries {
            let _ = writeln!(text, "{program:<8} {library}");
        }
        let rounds = self.rows.iter().map(|row| row.rounds);
        let (least, most) = (rounds.clone().min().unwrap_or(0), rounds.max().unwrap_or(0));
        let rounds = if least == most { format!("{least}") } else { format!("{least} to {most}") };
        let [batch, batches, longest] = &self.effort;
        let cells = self.of(WAYS[0]).iter().filter(|row| row.best.is_some()).count();
        let all = COLLECTIVES.len() * RANKS.len() * BYTES.len();
        let _ = writeln!(text, "{cells} cells were compared; the whole comparison has {all}");
        let _ = writeln!(
            text,
            "{rounds} rounds; in each, for each program, the median of {batches} batches of {batch} s ({longest} s at most)"
        );
        let _ = writeln!(
            text,
            "\ntime of rcc over that of {FIRST} / of the best of the cell (medians of the rounds' ratios); ! is above {LOST}"
        );
        for way in WAYS {
            self.ratios(way, &mut text);
        }
        self.times(&mut text);
        let above: Vec<&Row> =
            self.rows.iter().filter(|row| row.best.is_some_and(|best| best > LOST)).collect();
        let with_best = self.rows.iter().filter(|row| row.best.is_some()).count();
        let _ = writeln!(
            text,
            "\nabove {LOST} in this sitting: {} of {with_best} (lost are those that are so in {SITTINGS}, see --sittings)",
            above.len()
        );
        for (title, lines) in [("could not be measured", &self.failed), ("WRONG RESULTS", &self.wrong)] {
            if !lines.is_empty() {
                let _ = writeln!(text, "\n{title}:");
                lines.iter().for_each(|line| text += &format!("  {line}\n"));
            }
        }
        text
    }

    fn ratios(&self, way: (Memory, Inputs), text: &mut String) {
        let rows = self.of(way);
        let Some(means) = self.means.iter().find(|means| (means.memory, means.inputs) == way) else { return };
        let show = |row: &Row| {
            let mark = if row.best.is_some_and(|best| best > LOST) { "!" } else { "" };
            format!("{} / {}{mark}", ratio(row.ratios.get(FIRST).copied()), ratio(row.best))
        };
        let _ = writeln!(text, "\n{}", show_way(way));
        grid(&rows, show, text);
        let all =
            |means: &Means| format!("{} / {}", ratio(means.peers.get(FIRST).copied()), ratio(means.best));
        let by = means.by_ranks.iter().map(|(ranks, means)| format!("{ranks} ranks {}", all(means)));
        let by: Vec<String> =
            by.chain(means.by_collective.iter().map(|(c, m)| format!("{c} {}", all(m)))).collect();
        let _ = writeln!(
            text,
            "geometric mean of {} cells: {} ({})",
            means.all.cells,
            all(&means.all),
            by.join(", ")
        );
        let peers: Vec<String> =
            means.all.peers.iter().map(|(peer, mean)| format!("{peer} {}", ratio(Some(*mean)))).collect();
        if !peers.is_empty() {
            let _ = writeln!(text, "to each: {}", peers.join(", "));
        }
        for (_, _, first, best) in TARGETS.iter().filter(|target| (target.0, target.1) == way) {
            let verdict = |found: Option<f64>, most: f64| match found {
                Some(found) if found <= most => "met",
                Some(_) => "missed",
                None => "not measured",
            };
            let first = first.map(|most| {
                format!(
                    "to {FIRST} {most:.2} at most: {}; ",
                    verdict(means.all.peers.get(FIRST).copied(), most)
                )
            });
            let first = first.unwrap_or_default();
            let _ = writeln!(
                text,
                "target: {first}to the best {best:.2} at most: {}",
                verdict(means.all.best, *best)
            );
        }
    }

    /// The times behind the first table.
    fn times(&self, text: &mut String) {
        let way = WAYS[0];
        let show = |row: &Row| {
            let ours = row.us.get(OURS).copied();
            let best =
                row.ratios.iter().max_by(|a, b| a.1.total_cmp(b.1)).and_then(|(peer, _)| row.us.get(peer));
            format!("{} / {}", time(ours), time(best.copied()))
        };
        let rows = self.of(way);
        if !rows.is_empty() {
            let _ = writeln!(text, "\nmicroseconds of rcc / of the best, {}", show_way(way));
            grid(&rows, show, text);
        }
    }

    fn of(&self, way: (Memory, Inputs)) -> Vec<&Row> {
        self.rows.iter().filter(|row| (row.memory, row.inputs) == way).collect()
    }
}

/// What several sittings say together.
pub(crate) fn compare(names: &[String], reports: &[Report]) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "geometric means to {FIRST} / to the best");
    for way in WAYS {
        let _ = writeln!(text, "\n{}", show_way(way));
        for (name, report) in names.iter().zip(reports) {
            let means = report.means.iter().find(|means| (means.memory, means.inputs) == way);
            let shown = means.map_or_else(
                || "-".to_string(),
                |m| {
                    format!(
                        "{} / {} of {} cells",
                        ratio(m.all.peers.get(FIRST).copied()),
                        ratio(m.all.best),
                        m.all.cells
                    )
                },
            );
            let _ = writeln!(text, "  {shown:<32} {} {} {name}", report.date, report.commit);
        }
    }
    let rows: Vec<Vec<Row>> = reports.iter().map(|report| report.rows.clone()).collect();
    let (lost, missing) = table::lost(&rows);
    let _ = writeln!(text, "\nabove {LOST} in all {} sittings: {}", reports.len(), lost.len());
    for (row, ratios) in &lost {
        let ratios: Vec<String> = ratios.iter().map(|r| ratio(Some(*r))).collect();
        let _ = writeln!(
            text,
            "  {}, {}: {}",
            show_cell(&row.cell),
            show_way((row.memory, row.inputs)),
            ratios.join(", ")
        );
    }
    if missing > 0 {
        let _ = writeln!(text, "figures that are not in all sittings, and not compared: {missing}");
    }
    if reports.len() < SITTINGS {
        let _ = writeln!(
            text,
            "a cell is lost only if it is so in {SITTINGS} sittings; these are {}",
            reports.len()
        );
    }
    text
}

/// The median of what was measured at several times.
fn rates(all: &[Rates]) -> Option<Rates> {
    let first = all.first()?;
    let middle =
        |of: &dyn Fn(&Rates) -> Option<f64>| table::median(&all.iter().filter_map(of).collect::<Vec<_>>());
    let copy = first.copy.iter().enumerate().filter_map(|(i, copy)| {
        Some(CopyRate { bytes: copy.bytes, gbps: middle(&|rates| Some(rates.copy.get(i)?.gbps))? })
    });
    Some(Rates {
        cores: first.cores,
        one_way_ns: middle(&|rates| Some(rates.one_way_ns))?,
        copy: copy.collect(),
    })
}

fn way_means(rows: &[Row], (memory, inputs): (Memory, Inputs)) -> Option<WayMeans> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.memory == memory && row.inputs == inputs).collect();
    if rows.is_empty() {
        return None;
    }
    let of = |keep: &dyn Fn(&Cell) -> bool| table::means(rows.iter().copied().filter(|row| keep(&row.cell)));
    let by_ranks =
        rows.iter().map(|row| row.cell.ranks).map(|ranks| (ranks, of(&|cell| cell.ranks == ranks)));
    let by_collective = rows
        .iter()
        .map(|row| &row.cell.collective)
        .map(|name| (name.clone(), of(&|cell| cell.collective == *name)));
    Some(WayMeans {
        memory,
        inputs,
        all: of(&|_| true),
        by_ranks: by_ranks.collect(),
        by_collective: by_collective.collect(),
    })
}

/// Ranks and collectives down, sizes across.
fn grid(rows: &[&Row], show: impl Fn(&Row) -> String, text: &mut String) {
    let mut sizes: Vec<u64> = rows.iter().map(|row| row.cell.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut ranks: Vec<u32> = rows.iter().map(|row| row.cell.ranks).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let width = rows.iter().map(|row| show(row).len()).max().unwrap_or(0).max(8) + 2;
    let head: String = sizes.iter().map(|&bytes| format!("{:>width$}", show_bytes(bytes))).collect();
    let _ = writeln!(text, "{:<18}{head}", "ranks");
    for &ranks in &ranks {
        for collective in COLLECTIVES {
            let of = |bytes: u64| {
                rows.iter().find(|row| {
                    (row.cell.ranks, row.cell.bytes) == (ranks, bytes) && row.cell.collective == collective
                })
            };
            if sizes.iter().any(|&bytes| of(bytes).is_some()) {
                let cells = sizes.iter().map(|&bytes| of(bytes).map_or("-".to_string(), |row| show(row)));
                let cells: String = cells.map(|cell| format!("{cell:>width$}")).collect();
                let _ = writeln!(text, "{ranks:<3}{collective:<15}{cells}");
            }
        }
    }
}

fn ratio(ratio: Option<f64>) -> String {
    match ratio {
        None => "-".to_string(),
        Some(ratio) if ratio < 9.995 => format!("{ratio:.2}"),
        Some(ratio) => format!("{ratio:.0}"),
    }
}

fn time(us: Option<f64>) -> String {
    match us {
        None => "-".to_string(),
        Some(us) if us < 10.0 => format!("{us:.2}"),
        Some(us) if us < 100.0 => format!("{us:.1}"),
        Some(us) => format!("{us:.0}"),
    }
}

fn show_way((memory, inputs): (Memory, Inputs)) -> String {
    let memory = match memory {
        Memory::Plain => "plain buffers",
        Memory::Registered => "registered buffers (the others' plain)",
    };
    let inputs = match inputs {
        Inputs::Reused => "reused",
        Inputs::Rewritten => "inputs rewritten before each call",
    };
    format!("{memory}, {inputs}")
}

/// A cell in words.
pub(crate) fn show_cell(cell: &Cell) -> String {
    format!("{}, {} ranks, {}", cell.collective, cell.ranks, show_bytes(cell.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::cell::{Printed, Sample};
    use crate::peers::sitting::{Head, Run};

    fn report(times: &[(&str, u32, u64, f64)]) -> Report {
        let path =
            std::env::temp_dir().join(format!("rcc-report-{}-{}.jsonl", std::process::id(), times.len()));
        let machine = Machine { model: "a machine".into(), cpus: 2, memory_gib: 24, kernel: "6".into() };
        let head = Head { commit: "abc".into(), machine, effort: ["1", "2", "3"].map(String::from) };
        let mut sitting = Sitting::begin(&path, head).unwrap();
        for &(program, round, bytes, us) in times {
            let cell = Cell { collective: "allreduce".into(), ranks: 2, bytes };
            let sample =
                |memory, inputs| Sample { memory, inputs, calls: 1, median_us: us, least_us: us, wrong: 0 };
            let ways = if program == OURS { &WAYS[..] } else { &WAYS[..2] };
            let samples = ways.iter().map(|&(memory, inputs)| sample(memory, inputs)).collect();
            let printed = Printed { library: format!("library of {program}"), plans: Vec::new(), samples };
            sitting.run(Run { program: program.into(), round, cell, outcome: Ok(printed) }).unwrap();
        }
        for gbps in [10.0, 30.0, 20.0] {
            let copy = vec![CopyRate { bytes: 8, gbps }];
            sitting.rates(Rates { cores: 2, one_way_ns: 10.0 * gbps, copy }).unwrap();
        }
        sitting.others(0.01).unwrap();
        sitting.others(0.2).unwrap();
        std::fs::remove_file(&path).unwrap();
        Report::new(&sitting, "today".into())
    }

    #[test]
    fn a_report_says_what_was_measured_and_what_it_comes_to() {
        let found = report(&[
            ("rcc", 0, 8, 1.0),
            ("intel", 0, 8, 4.0),
            ("mpich", 0, 8, 2.0),
            ("rcc", 0, 512, 8.0),
            ("intel", 0, 512, 4.0),
            ("mpich", 0, 512, 16.0),
        ]);
        let rates = found.rates.clone().unwrap();
        assert_eq!((rates.one_way_ns, rates.copy[0].gbps), (200.0, 20.0));
        let text = found.text();
        // 0.25 and 2 to Intel MPI; 0.5 and 2 to the best.
        for due in [
            "0.25 / 0.50",
            "2.00 / 2.00!",
            "geometric mean of 2 cells: 0.71 / 1.00",
            "to intel 0.55 at most: missed; to the best 0.65 at most: missed",
            "1.00 / 2.00",
            "above 1.15 in this sitting: 4 of 8",
            "intel    library of intel",
            "2 cells were compared; the whole comparison has 120",
            "one way between two cores: 200 ns",
            "other work took 20.0 % of the CPUs meanwhile: NOT QUIET",
        ] {
            assert!(text.contains(due), "{due} is not in\n{text}");
        }
        assert!(found.right());
        let read: Report = serde_json::from_str(&serde_json::to_string(&found).unwrap()).unwrap();
        assert_eq!(read.rows.len(), found.rows.len());
    }

    #[test]
    fn sittings_are_compared_by_what_they_have_in_common() {
        let one =
            report(&[("rcc", 0, 8, 2.0), ("intel", 0, 8, 1.0), ("rcc", 0, 512, 2.0), ("intel", 0, 512, 1.0)]);
        let two = report(&[("rcc", 0, 8, 3.0), ("intel", 0, 8, 1.0)]);
        let text = compare(&["one".into(), "two".into()], &[one, two]);
        for due in [
            "above 1.15 in all 2 sittings: 4",
            "allreduce, 2 ranks, 8 B, plain buffers, reused: 2.00, 3.00",
            "not compared: 4",
            "only if it is so in 3 sittings; these are 2",
        ] {
            assert!(text.contains(due), "{due} is not in\n{text}");
        }
    }
}
