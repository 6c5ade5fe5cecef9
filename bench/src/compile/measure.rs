//! One compilation in this process, measured.
//!
//! In: an algorithm of the standard library, a world. Out: milliseconds of each stage, from parsing on; CPU time; the most
//! memory that the process held.

use std::time::Instant;

use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::options::Options;
use compiler::pipeline;
use serde::{Deserialize, Serialize};

/// What a compilation took.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Moves of the trace.
    pub(crate) moves: usize,
    /// Steps of the plan.
    pub(crate) steps: usize,
    /// In order.
    pub(crate) stages: Vec<Stage>,
    /// All stages together.
    pub(crate) total_ms: f64,
    /// CPU time of all threads over all stages.
    pub(crate) cpu_ms: f64,
    /// The most memory that the process held.
    pub(crate) peak_mib: f64,
}

/// A stage of a compilation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Stage {
    /// Its name.
    pub(crate) name: String,
    /// How long it took.
    pub(crate) ms: f64,
    /// CPU time of all threads, also of those that another stage has left running.
    pub(crate) cpu_ms: f64,
    /// The most memory that the process had held by its end.
    pub(crate) peak_mib: f64,
}

/// A moment between two stages.
struct Mark {
    time: Instant,
    cpu_ms: f64,
    peak_mib: f64,
}

impl Mark {
    fn now() -> Mark {
        Mark { time: Instant::now(), cpu_ms: cpu_ms(), peak_mib: peak_mib() }
    }
}

/// Compiles one algorithm.
pub(crate) fn compile(algorithm: &str, shape: &[u32]) -> Result<Measured, String> {
    let limits = Limits::default();
    let mut names = vec!["load"];
    let mut marks = vec![Mark::now()];
    let loaded = pipeline::load(&[], &limits);
    let id = loaded.program.find(algorithm).ok_or_else(|| format!("there is no algorithm `{algorithm}`"))?;
    let request = Request { algorithm: id, shape: shape.to_vec(), params: Default::default() };
    let compiled = pipeline::compile(&loaded, &request, &Options::default(), &limits, &mut |stage| {
        names.push(stage.name());
        marks.push(Mark::now());
        crate::allocator::at(stage);
    });
    marks.push(Mark::now());
    let compiled = compiled.map_err(|failure| format!("{failure:?}"))?;
    let stage = |(name, ends): (&str, &[Mark])| Stage {
        name: name.to_string(),
        ms: (ends[1].time - ends[0].time).as_secs_f64() * 1e3,
        cpu_ms: ends[1].cpu_ms - ends[0].cpu_ms,
        peak_mib: ends[1].peak_mib,
    };
    let stages: Vec<Stage> = names.into_iter().zip(marks.windows(2)).map(stage).collect();
    Ok(Measured {
        moves: compiled.proved.moves,
        steps: compiled.plan.steps.len(),
        total_ms: stages.iter().map(|stage| stage.ms).sum(),
        cpu_ms: stages.iter().map(|stage| stage.cpu_ms).sum(),
        stages,
        peak_mib: peak_mib(),
    })
}

/// CPU time of all threads of this process so far.
fn cpu_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// The most that this process held; 0 where the system does not tell.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<f64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0.0) / 1024.0
}
