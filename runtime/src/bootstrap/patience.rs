//! For how long others are waited for.
//!
//! In: the settings, and a moment to count from. Out: when to warn and when to give up; a wait for descriptors that is
//! never longer than that.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};

use super::settings::Settings;

/// For how long those who are told that it is over may take to hear it.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// For how long somebody unknown may take to show who it is.
pub(super) const GREETING_TIME: Duration = Duration::from_secs(5);

/// A wait with an end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    since: Instant,
    late: Duration,
    warn_after: Duration,
    next_warning: Option<Duration>,
}

impl Patience {
    pub(super) fn of(settings: &Settings) -> Patience {
        Patience {
            since: Instant::now(),
            late: settings.late,
            warn_after: settings.warn_after,
            next_warning: Some(settings.warn_after),
        }
    }

    /// One without warnings.
    pub(super) fn just(late: Duration) -> Patience {
        Patience { since: Instant::now(), late, warn_after: Duration::MAX, next_warning: None }
    }

    /// The same, with so much more time at its end: who hears from rank 0 lets it speak first.
    pub(super) fn and(mut self, more: Duration) -> Patience {
        self.late = self.late.saturating_add(more);
        self
    }

    pub(super) fn waited(&self) -> Duration {
        self.since.elapsed()
    }

    pub(super) fn over(&self) -> bool {
        self.waited() >= self.late
    }

    pub(super) fn left(&self) -> Duration {
        self.late.saturating_sub(self.waited())
    }

    /// Whether it is time to warn: again and again, at equal distances.
    pub(super) fn warns(&mut self) -> bool {
        let waited = self.waited();
        let due = self.next_warning.is_some_and(|at| waited >= at);
        if due {
            self.next_warning = waited.checked_add(self.warn_after);
        }
        due
    }

    /// Waits for descriptors, and no longer than until something is to be done; at most half a second.
    pub(super) fn poll(&self, fds: &mut [PollFd<'_>]) {
        let warning = self.next_warning.map_or(Duration::MAX, |at| at.saturating_sub(self.waited()));
        let most = self.left().min(warning).min(Duration::from_millis(500)) + Duration::from_millis(1);
        let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
        // An interrupted wait is one that was shorter.
        let _ = poll(fds, Some(&most));
    }
}

/// Ranks in words: `rank 3`, `ranks 1, 5`, and not all of very many.
pub(super) fn name(ranks: &[u32]) -> String {
    const MOST: usize = 16;
    let shown: Vec<String> = ranks.iter().take(MOST).map(u32::to_string).collect();
    let word = if ranks.len() == 1 { "rank" } else { "ranks" };
    match ranks.len().checked_sub(MOST) {
        Some(more) if more > 0 => format!("{word} {} and {more} more", shown.join(", ")),
        _ => format!("{word} {}", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_in_words() {
        assert_eq!(name(&[3]), "rank 3");
        assert_eq!(name(&[3, 4]), "ranks 3, 4");
        let all: Vec<u32> = (0..40).collect();
        assert!(name(&all).ends_with("14, 15 and 24 more"));
    }

    #[test]
    fn warnings_come_again() {
        let mut patience = Patience::just(Duration::from_secs(9));
        assert!(!patience.warns() && !patience.over());
        patience.warn_after = Duration::from_millis(20);
        patience.next_warning = Some(Duration::ZERO);
        assert!(patience.warns() && !patience.warns());
        std::thread::sleep(Duration::from_millis(30));
        assert!(patience.warns());
        assert!(Patience::just(Duration::ZERO).over());
    }
}
