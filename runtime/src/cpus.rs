//! How many CPUs this process may really use, and which of them a rank keeps to.
//!
//! In: the affinity mask, and the CPU quotas of every cgroup (v2 `cpu.max`, v1 `cpu.cfs_quota_us`) that holds this
//! process. Out: one number, at least 1. A waiting loop that is tuned for more CPUs than it gets burns the very time
//! that the rank it waits for needs.
//!
//! More ranks than CPUs: then [`pin`] gives every CPU as many neighbours as any other. Ranks that wait yield instead of
//! sleeping, so to the system all look equally busy, and it puts them together as it likes, at times three on one CPU
//! and one on another. With a CPU for each rank it finds the idle ones by itself, and knows better which of them share a
//! core.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that may be used at once; a part of a CPU does not count, except that there is always one.
pub fn allowed() -> usize {
    let affinity = sched_getaffinity(None).map_or(1, |set| set.count() as usize);
    affinity.min(quota()).max(1)
}

/// Keeps the calling thread, which is `rank` of `ranks`, on one CPU, if there are fewer CPUs than ranks. Not where a quota
/// gives less time than there are CPUs: which of them are the best is then the system's to say.
pub fn pin(rank: u32, ranks: u32) {
    let Ok(mask) = sched_getaffinity(None) else { return };
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| mask.is_set(cpu)).collect();
    if cpus.len() >= ranks as usize || quota() < cpus.len() {
        return;
    }
    let Some(&cpu) = cpus.get(share(rank, ranks, cpus.len())) else { return };
    let mut one = CpuSet::new();
    one.set(cpu);
    // A system that refuses leaves the rank where it is, which is right though slower.
    let _ = sched_setaffinity(None, &one);
}

/// The CPU that the calling thread is on.
pub fn current() -> usize {
    rustix::thread::sched_getcpu()
}

/// The CPUs that the calling thread may use; none where a quota gives less time than there are CPUs: which of them are the best is
/// then the system's to say.
pub fn usable() -> Option<CpuSet> {
    let mask = sched_getaffinity(None).ok()?;
    (quota() >= mask.count() as usize).then_some(mask)
}

/// Moves the calling thread to a CPU, without keeping it there. Whether it could.
pub fn go_to(cpu: usize) -> bool {
    let Ok(mask) = sched_getaffinity(None) else { return false };
    let mut one = CpuSet::new();
    one.set(cpu);
    let moved = mask.is_set(cpu) && sched_setaffinity(None, &one).is_ok();
    // What it may use is what it was.
    moved && sched_setaffinity(None, &mask).is_ok()
}

/// The CPUs of this process that are `rank`'s part, where each of `ranks` gets as many as any other, neighbours together; one
/// that it shares, where there are fewer of them than ranks. None where the system does not say which there are.
pub fn part(rank: u32, ranks: u32) -> Option<CpuSet> {
    let mask = sched_getaffinity(None).ok()?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| mask.is_set(cpu)).collect();
    let mut part = CpuSet::new();
    parts(rank, ranks, cpus.len()).filter_map(|place| cpus.get(place)).for_each(|&cpu| part.set(cpu));
    (part.count() > 0).then_some(part)
}

/// Which of `cpus` CPUs are a rank's part.
fn parts(rank: u32, ranks: u32, cpus: usize) -> std::ops::Range<usize> {
    let start = share(rank, ranks, cpus);
    start..share(rank + 1, ranks, cpus).max(start + 1)
}

/// Which of `cpus` CPUs a rank keeps to: neighbours together, on each as many as on any other or one more.
fn share(rank: u32, ranks: u32, cpus: usize) -> usize {
    (u64::from(rank) * cpus as u64 / u64::from(ranks.max(1))) as usize
}

fn quota() -> usize {
    let quotas = cgroup_dirs("cpu").into_iter().filter_map(|dir| {
        let read = |name: &str| std::fs::read_to_string(format!("{dir}/{name}")).ok();
        match read("cpu.max") {
            Some(text) => quota_v2(&text),
            None => quota_v1(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?),
        }
    });
    quotas.min().unwrap_or(usize::MAX)
}

/// The directories of the cgroups that hold this process and have a say in `controller`, with all their ancestors.
pub fn cgroup_dirs(controller: &str) -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    dirs(controller, &read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
}

/// `$MAX $PERIOD` or `max $PERIOD`.
fn quota_v2(text: &str) -> Option<usize> {
    let mut words = text.split_whitespace();
    ratio(words.next()?.parse().ok()?, words.next()?.parse().ok()?)
}

/// -1 stands for no limit.
fn quota_v1(quota: &str, period: &str) -> Option<usize> {
    ratio(quota.trim().parse().ok()?, period.trim().parse().ok()?)
}

fn ratio(quota: i64, period: i64) -> Option<usize> {
    (quota > 0 && period > 0).then(|| ((quota / period) as usize).max(1))
}

fn dirs(controller: &str, cgroup: &str, mountinfo: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in cgroup.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let unified = controllers.is_empty();
        if !unified && !controllers.split(',').any(|c| c == controller) {
            continue;
        }
        for mount in mountinfo.lines() {
            let Some((root, point)) = mounted(mount, unified, controller) else { continue };
            // Within a cgroup namespace or a container the mount shows only a part of the hierarchy.
            let inner = match path.strip_prefix(root.trim_end_matches('/')) {
                Some(inner) if inner.is_empty() || inner.starts_with('/') => inner.trim_matches('/'),
                _ => "",
            };
            let mut dir = point.trim_end_matches('/').to_string();
            found.push(dir.clone());
            for part in inner.split('/').filter(|part| !part.is_empty() && *part != "..") {
                dir = format!("{dir}/{part}");
                found.push(dir.clone());
            }
        }
    }
    found
}

/// Root and mount point of a line of mountinfo, if it mounts the hierarchy asked for.
fn mounted<'a>(line: &'a str, unified: bool, controller: &str) -> Option<(&'a str, &'a str)> {
    let (left, right) = line.split_once(" - ")?;
    let mut right = right.split(' ');
    let (kind, _source, options) = (right.next()?, right.next()?, right.next()?);
    let fits = match kind {
        "cgroup2" => unified,
        "cgroup" => !unified && options.split(',').any(|o| o == controller),
        _ => false,
    };
    let mut left = left.split(' ').skip(3);
    fits.then(|| Some((left.next()?, left.next()?)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_quotas() {
        assert_eq!(quota_v2("max 100000\n"), None);
        assert_eq!(quota_v2("250000 100000\n"), Some(2));
        assert_eq!(quota_v2("50000 100000\n"), Some(1));
        assert_eq!(quota_v1("-1\n", "100000\n"), None);
        assert_eq!(quota_v1("400000\n", "100000\n"), Some(4));
        assert!(allowed() >= 1);
    }

    #[test]
    fn neighbours_share_a_cpu_and_none_has_two_more_than_another() {
        let all = |ranks, cpus| (0..ranks).map(|rank| share(rank, ranks, cpus)).collect::<Vec<_>>();
        assert_eq!(all(4, 2), [0, 0, 1, 1]);
        assert_eq!(all(5, 2), [0, 0, 0, 1, 1]);
        for (ranks, cpus) in [(3, 2), (7, 3), (64, 48), (9, 8), (1000, 7)] {
            let all = all(ranks, cpus);
            let counts = (0..cpus).map(|cpu| all.iter().filter(|&&at| at == cpu).count());
            let (least, most) = (counts.clone().min().unwrap(), counts.max().unwrap());
            assert!(all.is_sorted() && least > 0 && most - least <= 1, "{ranks} on {cpus}: {all:?}");
        }
    }

    #[test]
    fn parts_are_disjoint_and_leave_nothing_where_there_are_cpus_enough() {
        for (ranks, cpus) in [(1u32, 8usize), (2, 8), (3, 8), (8, 8), (5, 64)] {
            let all: Vec<usize> = (0..ranks).flat_map(|rank| parts(rank, ranks, cpus)).collect();
            assert_eq!(all, (0..cpus).collect::<Vec<_>>());
        }
        for rank in 0..9 {
            let part = parts(rank, 9, 2);
            assert!(part.len() == 1 && part.end <= 2);
        }
        let whole = sched_getaffinity(None).unwrap();
        assert_eq!(part(0, 1), Some(whole));
    }

    #[test]
    fn a_rank_keeps_to_one_cpu_only_where_ranks_must_share() {
        std::thread::spawn(|| {
            let before = sched_getaffinity(None).unwrap();
            pin(0, 1);
            assert_eq!(sched_getaffinity(None).unwrap(), before);
            pin(4095, 4096);
            let after = sched_getaffinity(None).unwrap();
            if quota() >= before.count() as usize && before.count() < 4096 {
                let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| before.is_set(cpu)).unwrap();
                assert!(after.count() == 1 && after.is_set(last));
            } else {
                assert_eq!(after, before);
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn who_goes_to_another_cpu_may_use_the_same_as_before() {
        std::thread::spawn(|| {
            let before = sched_getaffinity(None).unwrap();
            let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| before.is_set(cpu)).unwrap();
            assert!(go_to(last) && !go_to(last + 1));
            assert_eq!(sched_getaffinity(None).unwrap(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn finds_every_ancestor() {
        let v2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(
            dirs("cpu", "0::/user.slice/a.scope\n", v2),
            ["/sys/fs/cgroup", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup/user.slice/a.scope"]
        );
        let v1 = "33 32 0:29 /docker/7 /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n\
                  34 32 0:30 / /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let cgroup = "4:cpu,cpuacct:/docker/7/x\n2:memory:/\n";
        assert_eq!(dirs("cpu", cgroup, v1), ["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct/x"]);
        assert_eq!(dirs("memory", cgroup, v1), ["/sys/fs/cgroup/memory"]);
    }
}
