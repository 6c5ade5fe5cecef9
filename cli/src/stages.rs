//! Time and memory of the stages of a compilation.
//!
//! In: the moments at which stages begin. Out: milliseconds of each, and how much memory the process had taken by its end.
//! The compiler has no clock; this is where `--timings` gets its own.

use std::time::{Duration, Instant};

use serde::Serialize;

/// A stage that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    /// Its name.
    pub(crate) name: &'static str,
    /// How long it took.
    pub(crate) time: Duration,
    /// What the process held at its end, in bytes.
    pub(crate) resident: u64,
    /// The most that the process had ever held by then, in bytes.
    pub(crate) peak: u64,
}

/// The same for programs.
#[derive(Debug, Serialize)]
pub(crate) struct Times {
    stages: Vec<Time>,
    total_ms: f64,
    peak_rss_mb: f64,
}

#[derive(Debug, Serialize)]
struct Time {
    name: &'static str,
    ms: f64,
}

/// Measures stages one after another.
pub(crate) struct Stages {
    done: Vec<Stage>,
    current: Option<(&'static str, Instant)>,
}

impl Stages {
    /// Nothing measured yet.
    pub(crate) fn new() -> Stages {
        Stages { done: Vec::new(), current: None }
    }

    /// Ends the stage at hand and begins another.
    pub(crate) fn begin(&mut self, name: &'static str) {
        self.end();
        self.current = Some((name, Instant::now()));
    }

    /// Ends the stage at hand.
    pub(crate) fn end(&mut self) {
        if let Some((name, start)) = self.current.take() {
            let time = start.elapsed();
            let (resident, peak) = memory();
            self.done.push(Stage { name, time, resident, peak });
        }
    }

    /// All stages that have ended.
    #[cfg(test)]
    fn done(&self) -> &[Stage] {
        &self.done
    }

    /// Their time together.
    pub(crate) fn total(&self) -> Duration {
        self.done.iter().map(|stage| stage.time).sum()
    }

    /// The most memory at the end of any.
    pub(crate) fn peak(&self) -> u64 {
        self.done.iter().map(|stage| stage.peak).max().unwrap_or(0)
    }

    /// All of it, for programs.
    pub(crate) fn times(&self) -> Times {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        Times {
            stages: self.done.iter().map(|stage| Time { name: stage.name, ms: ms(stage.time) }).collect(),
            total_ms: ms(self.total()),
            peak_rss_mb: self.peak() as f64 / f64::from(1 << 20),
        }
    }

    /// A table for people.
    pub(crate) fn table(&self) -> String {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let mut text =
            format!("{:<12} {:>12} {:>16} {:>16}\n", "stage", "time (ms)", "resident (MiB)", "peak (MiB)");
        for stage in &self.done {
            let ms = stage.time.as_secs_f64() * 1e3;
            let (resident, peak) = (mib(stage.resident), mib(stage.peak));
            text += &format!("{:<12} {ms:>12.3} {resident:>16.1} {peak:>16.1}\n", stage.name);
        }
        let total = self.total().as_secs_f64() * 1e3;
        text + &format!("{:<12} {total:>12.3} {:>16} {:>16.1}\n", "total", "", mib(self.peak()))
    }
}

/// What this process holds and the most that it ever held, in bytes; 0 where the system does not tell.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    (field("VmRSS:").unwrap_or(0) << 10, field("VmHWM:").unwrap_or(0) << 10)
}

#[cfg(test)]
mod tests {
    use super::Stages;

    #[test]
    fn stages_add_up_and_memory_is_seen() {
        let mut stages = Stages::new();
        stages.begin("one");
        let filled = vec![1u8; 64 << 20];
        stages.begin("two");
        assert_eq!(filled.iter().map(|&b| b as usize).sum::<usize>(), 64 << 20);
        stages.end();
        stages.end();
        let done = stages.done();
        assert_eq!(done.iter().map(|stage| stage.name).collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(stages.total(), done[0].time + done[1].time);
        assert!(stages.peak() >= 64 << 20 && done[0].resident >= 64 << 20);
        assert!(stages.table().contains("total"));
    }
}
