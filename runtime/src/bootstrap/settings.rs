//! Who this rank is and where the others are.
//!
//! In: what the caller says, or the environment. Out: [`Settings`], which make sense by themselves: a rank of its
//! world, an address that has a port.

use std::time::Duration;

use super::environment;
use super::secret::Secret;
use crate::error::{Error, Kind};

/// What [`Bootstrap::connect`](super::Bootstrap::connect) needs to know.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which rank this is.
    pub rank: u32,
    /// How many there are.
    pub world: u32,
    /// Which rank it is among those of its host, where a launcher has said so.
    pub local_rank: Option<u32>,
    /// `host:port`, where rank 0 listens and the others find it; not needed in a world of one.
    pub address: String,
    /// What only the ranks of this job know.
    pub secret: Secret,
    /// For how long others are waited for, each time; then the call ends with [`Kind::Late`].
    pub late: Duration,
    /// After how long those that are missing are named in a warning.
    pub warn_after: Duration,
}

impl Settings {
    /// The most ranks of a world.
    pub const MOST_RANKS: u32 = 1 << 16;

    /// One of the ranks that meet at `address`. Others are waited for for ten minutes, with a warning every 30 seconds.
    pub fn new(rank: u32, world: u32, address: impl Into<String>, secret: Secret) -> Result<Settings, Error> {
        let invalid = |message: String| Err(Error::new(Kind::Invalid, message));
        let address = address.into();
        if world == 0 || world > Settings::MOST_RANKS {
            return invalid(format!("a world has 1 to {} ranks, not {world}", Settings::MOST_RANKS));
        }
        if rank >= world {
            let last = world - 1;
            return invalid(format!(
                "rank {rank} does not exist in a world of {world}: ranks are 0 to {last}"
            ));
        }
        if world > 1 && split(&address).is_none() {
            return invalid(format!(
                "`{address}` is no address: it should read host:port, such as 10.0.0.1:29400"
            ));
        }
        Ok(Settings {
            rank,
            world,
            local_rank: None,
            address,
            secret,
            late: Duration::from_secs(600),
            warn_after: Duration::from_secs(30),
        })
    }

    /// What the launcher that started this process has said; the module [`environment`] says how it is read.
    pub fn from_env() -> Result<Settings, Error> {
        environment::read(&|name| std::env::var_os(name))
    }
}

/// Host and port of an address; the port is not 0.
pub(super) fn split(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let port = port.parse().ok().filter(|&port| port > 0)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match bare {
        Some(host) => Some((host, port)),
        // More colons are an IPv6 address without its brackets, of which nobody can tell where the port begins.
        None if host.is_empty() || host.contains([':', '[', ']', ' ']) => None,
        None => Some((host, port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(split("a.b:80"), Some(("a.b", 80)));
        assert_eq!(split("[::1]:80"), Some(("::1", 80)));
        for wrong in ["", ":", "a", "a:", ":80", "a:0", "a:65536", "a:-1", "::1:80", "a b:80"] {
            assert_eq!(split(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ranks_of_their_world() {
        let settings = |rank, world, address| {
            Settings::new(rank, world, address, Secret::new("s").unwrap()).map(|_| ()).map_err(|e| e.kind)
        };
        assert_eq!(settings(1, 2, "a:1"), Ok(()));
        assert_eq!(settings(0, 1, ""), Ok(()));
        for (rank, world, address) in
            [(2, 2, "a:1"), (0, 0, "a:1"), (0, u32::MAX, "a:1"), (0, 2, ""), (0, 2, "a")]
        {
            assert_eq!(settings(rank, world, address), Err(Kind::Invalid));
        }
    }
}
