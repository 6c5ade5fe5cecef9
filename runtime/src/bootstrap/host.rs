//! Which machine a rank is on.
//!
//! In: nothing. Out: a [`Host`]: two ranks are on one machine if theirs are equal. A name alone would not do, since two
//! machines may have one by mistake; nor would the number of the boot, since containers of one machine that have names of
//! their own seldom share anything else.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A machine, by its name and its boot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Host {
    /// What it calls itself.
    pub name: String,
    /// The number that its kernel drew when it started; empty where there is none.
    pub boot: String,
}

impl Host {
    /// This one.
    pub fn own() -> Host {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Host { name, boot: boot.trim().to_string() }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
