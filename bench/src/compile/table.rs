//! What was measured, as a table for people or as data.
//!
//! In: programs and what they took. Out: [`Report`], whose fields are the JSON.

use serde::Serialize;

use crate::measure::Measured;
use crate::programs::{Family, Program};
use crate::slope::slope;

/// Least and greatest slope that we allow.
const SLOPES: [f64; 2] = [0.95, 1.08];

/// All that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    rows: Vec<Row>,
    /// Programs that could not be measured, and why.
    failed: Vec<(String, String)>,
    growth: Vec<Growth>,
    pages: Pages,
    /// Whether all targets are met.
    pub(crate) met: bool,
}

/// How fast memory is touched that the system has free, in GB/s.
#[derive(Debug, Serialize)]
pub(crate) struct Pages {
    /// As the machine was before.
    pub(crate) first_touch: f64,
    /// As the programs that are measured find it.
    pub(crate) touched_before: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    program: String,
    #[serde(flatten)]
    measured: Measured,
    target_ms: Option<f64>,
    /// Time over target.
    ratio: Option<f64>,
    target_mib: Option<f64>,
    msccl: &'static str,
}

#[derive(Debug, Serialize)]
struct Growth {
    algorithm: &'static str,
    /// Ranks, moves, milliseconds.
    points: Vec<(u32, usize, f64)>,
    slope: Option<f64>,
}

impl Report {
    /// Compares with the targets.
    pub(crate) fn new(
        rows: &[(&Program, Result<Measured, String>)],
        families: &[(&Family, Vec<Measured>)],
        pages: Pages,
    ) -> Report {
        let failed: Vec<(String, String)> = rows
            .iter()
            .filter_map(|(program, measured)| Some((program.name(), measured.as_ref().err()?.clone())))
            .collect();
        let rows: Vec<Row> = rows
            .iter()
            .filter_map(|(program, measured)| Some((program, measured.as_ref().ok()?)))
            .map(|(program, measured)| Row {
                program: program.name(),
                measured: measured.clone(),
                target_ms: program.target_ms,
                ratio: program.target_ms.map(|target| measured.total_ms / target),
                target_mib: program.target_mib,
                msccl: program.msccl,
            })
            .collect();
        let growth: Vec<Growth> = families
            .iter()
            .map(|(family, points)| {
                let logs: Vec<(f64, f64)> = points.iter().map(|m| (m.moves as f64, m.total_ms)).collect();
                let points = family.ranks.iter().zip(points).map(|(&n, m)| (n, m.moves, m.total_ms));
                Growth { algorithm: family.algorithm, points: points.collect(), slope: slope(&logs) }
            })
            .collect();
        let in_time = |row: &Row| row.ratio.is_none_or(|ratio| ratio <= 1.0);
        let in_space = |row: &Row| row.target_mib.is_none_or(|target| row.measured.peak_mib <= target);
        let linear = |g: &Growth| g.slope.is_some_and(|slope| (SLOPES[0]..=SLOPES[1]).contains(&slope));
        let met = failed.is_empty()
            && rows.iter().all(|row| in_time(row) && in_space(row))
            && growth.iter().all(linear);
        Report { rows, failed, growth, pages, met }
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let stages: Vec<&str> = match self.rows.first() {
            Some(row) => row.measured.stages.iter().map(|stage| stage.name.as_str()).collect(),
            None => Vec::new(),
        };
        text += &format!("{:<32} {:>9} {:>9}", "program", "moves", "steps");
        for stage in &stages {
            text += &format!(" {stage:>9}");
        }
        text += &format!(
            " {:>9} {:>9} {:>9} {:>9} {:>6}  {}\n",
            "total ms", "cpu ms", "peak MiB", "target", "ratio", "MSCCLang"
        );
        for row in &self.rows {
            let m = &row.measured;
            text += &format!("{:<32} {:>9} {:>9}", row.program, m.moves, m.steps);
            for stage in &m.stages {
                text += &format!(" {:>9.1}", stage.ms);
            }
            let or_dash = |value: Option<f64>, digits: usize| {
                value.map_or("–".to_string(), |value| format!("{value:.digits$}"))
            };
            text += &format!(
                " {:>9.1} {:>9} {:>9.1} {:>9} {:>6}  {}\n",
                m.total_ms,
                format!("{:.1}", m.cpu_ms),
                m.peak_mib,
                or_dash(row.target_ms, 0),
                or_dash(row.ratio, 2),
                row.msccl
            );
            if let Some(target) = row.target_mib {
                let verdict = if m.peak_mib <= target { "within" } else { "over" };
                text += &format!("{:<32} peak {:.1} MiB is {verdict} {target:.0} MiB\n", "", m.peak_mib);
            }
        }
        let Pages { first_touch, touched_before } = self.pages;
        text += &format!(
            "fresh pages: {first_touch:.1} GB/s at first, {touched_before:.1} as the programs find them\n"
        );
        for (program, why) in &self.failed {
            text += &format!("{program}: {why}\n");
        }
        for growth in &self.growth {
            text += &format!("\n{}: time over moves\n", growth.algorithm);
            for (ranks, moves, ms) in &growth.points {
                let each = ms * 1e6 / *moves as f64;
                text += &format!("{ranks:>8} ranks {moves:>9} moves {ms:>9.1} ms {each:>7.1} ns per move\n");
            }
            if let Some(slope) = growth.slope {
                let [least, most] = SLOPES;
                text += &format!("{:>8} {slope:.3} (target {least} to {most})\n", "slope");
            }
        }
        text
    }
}
