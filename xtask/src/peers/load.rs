//! How much else the machine does.
//!
//! In: what the system has counted at two times. Out: the part of all CPUs that neither this process nor what it has started
//! and waited for used in between. A comparison on a busy machine says little, and says so.

/// Ticks since the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// Of all CPUs.
    all: u64,
    idle: u64,
    /// Of this process and of what it has waited for.
    own: u64,
}

/// What is counted now; none where the system does not tell.
pub(crate) fn now() -> Option<Ticks> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    parse(&read("/proc/stat")?, &read("/proc/self/stat")?)
}

/// The part that others used, between 0 and 1.
pub(crate) fn others(before: Ticks, after: Ticks) -> Option<f64> {
    let all = after.all.checked_sub(before.all).filter(|&all| all > 0)?;
    let idle = after.idle.saturating_sub(before.idle);
    let own = after.own.saturating_sub(before.own);
    Some(all.saturating_sub(idle).saturating_sub(own) as f64 / all as f64)
}

/// The first line counts all CPUs: user, nice, system, idle, waiting for a disk, interrupts (two), stolen, and guests, who are
/// counted as users already. A process counts itself and its children behind its name, which may hold anything.
fn parse(stat: &str, own: &str) -> Option<Ticks> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let counts: Vec<u64> = line.split_whitespace().take(8).map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let idle = counts.get(3)? + counts.get(4)?;
    let after_name = &own[own.rfind(')')? + 1..];
    // The state is the third field of the line, the four times are the fourteenth to the seventeenth.
    let times: Vec<u64> =
        after_name.split_whitespace().skip(11).take(4).map(|n| n.parse().ok()).collect::<Option<_>>()?;
    (times.len() == 4).then(|| Ticks { all: counts.iter().sum(), idle, own: times.iter().sum() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_what_is_neither_idle_nor_ours() {
        let own = |time| format!("42 (a) b) R 1 2 3 4 5 6 7 8 9 10 {time} 1 2 3 20 0 1");
        let before = parse("cpu  100 0 50 800 10 0 0 0 7 7\ncpu0 1\n", &own(10)).unwrap();
        assert_eq!(before, Ticks { all: 960, idle: 810, own: 16 });
        let after = parse("cpu  150 0 70 820 20 0 0 0 9 9\n", &own(50)).unwrap();
        // 100 ticks, 30 of them idle, 40 ours.
        assert_eq!(others(before, after), Some(0.3));
        assert_eq!(others(after, after), None);
        for (stat, own) in [("", own(1)), ("cpu 1 2", own(1)), ("cpu  1 2 3 4 5 6 7 8", "42 (a".to_string())]
        {
            assert_eq!(parse(stat, &own), None);
        }
    }

    #[test]
    fn the_system_tells() {
        let before = now().unwrap();
        let after = now().unwrap();
        assert!(after.all >= before.all && after.own >= before.own);
    }
}
