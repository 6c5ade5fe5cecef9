//! What a communicator may be told, and what the environment says of it.
//!
//! In: variables of the environment, read here and nowhere else in this crate. Out: [`Options`].

use std::path::PathBuf;

use runtime::comm;
use runtime::error::Error;

/// What a communicator may be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// What ranks share: registered memory, calls under way at once, deadlines. The same at all ranks.
    pub ranks: comm::Options,
    /// The folder of compiled plans, which every process of the user may share; none: they are compiled anew by every job.
    pub cache: Option<PathBuf>,
}

impl Options {
    /// What the environment says: plans lie in `RCC_CACHE_DIR`, else in `rcc` below `XDG_CACHE_HOME` or `~/.cache`. (`RCC_CACHE_DIR`
    /// that is empty: nowhere.)
    ///
    /// # Errors
    /// None so far.
    pub fn from_env() -> Result<Options, Error> {
        Ok(Options { cache: cache_folder(&variable), ..Options::default() })
    }

    /// With so many bytes of registered memory for each rank.
    #[must_use]
    pub fn registered(mut self, bytes: u64) -> Options {
        self.ranks.registered = bytes;
        self
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Where compiled plans lie.
fn cache_folder(variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    match variable("RCC_CACHE_DIR") {
        Some(said) if said.is_empty() => None,
        Some(said) => Some(said.into()),
        None => absolute("XDG_CACHE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
            .map(|caches| caches.join("rcc")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::cache_folder;

    #[test]
    fn plans_lie_where_the_environment_says() {
        let folder = |set: &[(&str, &str)]| {
            cache_folder(&|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
            })
        };
        let home = ("HOME", "/home/me");
        assert_eq!(folder(&[home]), Some(PathBuf::from("/home/me/.cache/rcc")));
        assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "/caches")]), Some(PathBuf::from("/caches/rcc")));
        // As the specification of base directories says: relative ones do not count.
        assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "caches")]), Some(PathBuf::from("/home/me/.cache/rcc")));
        assert_eq!(folder(&[home, ("RCC_CACHE_DIR", "here")]), Some(PathBuf::from("here")));
        assert_eq!(folder(&[home, ("RCC_CACHE_DIR", "")]), None);
        assert_eq!(folder(&[]), None);
    }
}
