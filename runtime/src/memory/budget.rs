//! What memory the machine can give, and what a job asks for.
//!
//! In: `/proc/meminfo` and the memory cgroups this process is in. Out: the bytes left, and a refusal that names the
//! figures where a job would need more. Reserving more than the machine has would wake the kernel's out-of-memory
//! killer, which chooses its own victims; so it is asked first.

use crate::cpus::cgroup_dirs;
use crate::error::{Error, Kind};

/// What a job needs, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Needs {
    /// The shared segment: board and channels.
    pub shared: u64,
    /// The callers' buffers, all ranks together.
    pub buffers: u64,
    /// Scratch, all ranks together.
    pub scratch: u64,
}

impl Needs {
    /// All together.
    pub fn total(&self) -> u64 {
        self.shared.saturating_add(self.buffers).saturating_add(self.scratch)
    }

    /// Refuses what is more than `available`.
    pub fn check(&self, available: u64) -> Result<(), Error> {
        if self.total() <= available {
            return Ok(());
        }
        let Needs { shared, buffers, scratch } = self;
        let message = format!(
            "this run needs {} bytes of memory ({buffers} for buffers, {scratch} for scratch, {shared} for channels), \
             but only {available} are available",
            self.total(),
        );
        Err(Error::new(Kind::Resource, message).help("use fewer bytes, fewer ranks or smaller slots"))
    }
}

/// The bytes that may still be used: by the machine, and by every cgroup that holds this process.
pub fn available() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| parse_meminfo(&text)).unwrap_or(u64::MAX);
    let groups = cgroup_dirs("memory").into_iter().filter_map(|dir| {
        let number = |name: &str| read(&format!("{dir}/{name}")).and_then(|t| t.trim().parse::<u64>().ok());
        let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
        let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
        // Pages of files that the kernel would give back first.
        let stat = read(&format!("{dir}/memory.stat")).unwrap_or_default();
        let cached =
            field(&stat, "inactive_file ").or_else(|| field(&stat, "total_inactive_file ")).unwrap_or(0);
        Some(limit.saturating_sub(used.saturating_sub(cached)))
    });
    groups.fold(machine, u64::min)
}

fn parse_meminfo(text: &str) -> Option<u64> {
    field(text, "MemAvailable:").map(|kib| kib.saturating_mul(1024))
}

fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_meminfo() {
        assert_eq!(parse_meminfo("MemTotal: 7 kB\nMemAvailable:       12 kB\n"), Some(12 * 1024));
        assert_eq!(parse_meminfo("MemTotal: 7 kB\n"), None);
        assert!(available() > 1 << 20);
    }

    #[test]
    fn names_the_figures() {
        let needs = Needs { shared: 5, buffers: 6, scratch: u64::MAX };
        assert_eq!(needs.check(u64::MAX), Ok(()));
        let needs = Needs { shared: 5, buffers: 6, scratch: 7 };
        assert_eq!(needs.check(18), Ok(()));
        let error = needs.check(17).unwrap_err();
        assert_eq!(error.kind, Kind::Resource);
        assert!(error.message.contains("18 bytes") && error.message.contains("only 17"), "{error}");
    }
}
