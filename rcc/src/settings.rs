//! What a communicator may be told, and what the environment says of it.
//!
//! In: variables of the environment, read here and nowhere else in this crate. Out: [`Options`].

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use runtime::comm;
use runtime::error::{Error, Kind};

use crate::convention;
use crate::select::tuning::{self, Tuning};

/// More than this is no tuning file.
const MOST_TUNING: u64 = 4 << 20;

/// A way to look up a variable. Those here name files, which need not be text.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// What a communicator may be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What ranks share: registered memory, calls under way at once, deadlines. The same at all ranks.
    pub ranks: comm::Options,
    /// The folder of compiled plans, which every process of the user may share; none: they are compiled anew by every job.
    pub cache: Option<PathBuf>,
    /// What was measured on this machine, by which plans are selected; the same at all ranks. None: what is built in, and the cost model.
    pub tuning: Option<Tuning>,
}

impl Default for Options {
    /// One call of a plan at a time, no registered memory, nothing kept on disk, nothing measured.
    fn default() -> Options {
        // Calls here return when they are done: a second lane for each plan would only take memory, and cache.
        Options {
            ranks: comm::Options { in_flight: 1, ..comm::Options::default() },
            cache: None,
            tuning: None,
        }
    }
}

impl Options {
    /// What the environment says: plans lie in `RCC_CACHE_DIR`, else in `rcc` below `XDG_CACHE_HOME` or `~/.cache`. (`RCC_CACHE_DIR`
    /// that is empty: nowhere.) What was measured is in the file that `RCC_TUNING` names, else in `rcc/tuning.toml` below `XDG_CONFIG_HOME`
    /// or `~/.config`, if that is there; one that was not named counts only on the machine that it is of. (`RCC_TUNING` that is empty:
    /// nowhere.)
    ///
    /// # Errors
    /// [`Kind::Invalid`] if the tuning file cannot be read, or is none.
    pub fn from_env() -> Result<Options, Error> {
        let tuning = match tuning_file(&variable) {
            None => None,
            Some(File { path, named: false }) if !path.exists() => None,
            Some(File { path, named }) => Some(Tuning { named, ..read_tuning(&path)? }),
        };
        Ok(Options { cache: cache_folder(&variable), tuning, ..Options::default() })
    }

    /// With so many bytes of registered memory for each rank.
    #[must_use]
    pub fn registered(mut self, bytes: u64) -> Options {
        self.ranks.registered = bytes;
        self
    }
}

/// Reads a tuning file.
///
/// # Errors
/// [`Kind::Invalid`], with its name, if it cannot be read, or is none.
pub fn read_tuning(path: &Path) -> Result<Tuning, Error> {
    let name = path.display().to_string();
    let wrong = |why: String| {
        let error = Error::new(Kind::Invalid, format!("the tuning file {name} cannot be used: {why}"));
        error.help("write it anew with `rcc tune`, or name another with RCC_TUNING (empty: none)")
    };
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(MOST_TUNING + 1).read_to_end(&mut bytes));
    read.map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > MOST_TUNING {
        return Err(wrong(format!("it has more than {}", convention::show(MOST_TUNING))));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is not text in UTF-8".to_string()))?;
    tuning::parse(&text, &name).map_err(wrong)
}

/// Where `rcc tune` writes, and programs read, if nothing else is said.
pub fn tuning_place() -> Option<PathBuf> {
    place(&variable, "XDG_CONFIG_HOME", ".config").map(|folder| folder.join("tuning.toml"))
}

/// The folder of compiled plans that the environment names.
pub fn cache_place() -> Option<PathBuf> {
    cache_folder(&variable)
}

/// A file of the environment.
#[derive(Debug, PartialEq)]
struct File {
    path: PathBuf,
    /// It was named, not only looked for.
    named: bool,
}

fn tuning_file(variable: Lookup<'_>) -> Option<File> {
    match variable("RCC_TUNING") {
        Some(said) if said.is_empty() => None,
        Some(said) => Some(File { path: said.into(), named: true }),
        None => {
            let folder = place(variable, "XDG_CONFIG_HOME", ".config")?;
            Some(File { path: folder.join("tuning.toml"), named: false })
        }
    }
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Where compiled plans lie.
fn cache_folder(variable: Lookup<'_>) -> Option<PathBuf> {
    match variable("RCC_CACHE_DIR") {
        Some(said) if said.is_empty() => None,
        Some(said) => Some(said.into()),
        None => place(variable, "XDG_CACHE_HOME", ".cache"),
    }
}

/// `rcc` in a folder that a variable names, else in one of the home folder. Relative ones do not count, as the specification of base
/// directories says.
fn place(variable: Lookup<'_>, name: &str, of_home: &str) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute(name).or_else(|| absolute("HOME").map(|home| home.join(of_home)));
    base.map(|base| base.join("rcc"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::path::{Path, PathBuf};

    use runtime::error::Kind;

    use super::{File, cache_folder, read_tuning, tuning_file};

    #[test]
    fn plans_lie_where_the_environment_says() {
        let folder = |set: &[(&str, &str)]| {
            cache_folder(&|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
        };
        let home = ("HOME", "/home/me");
        assert_eq!(folder(&[home]), Some(PathBuf::from("/home/me/.cache/rcc")));
        assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "/caches")]), Some(PathBuf::from("/caches/rcc")));
        assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "caches")]), Some(PathBuf::from("/home/me/.cache/rcc")));
        assert_eq!(folder(&[home, ("RCC_CACHE_DIR", "here")]), Some(PathBuf::from("here")));
        assert_eq!(folder(&[home, ("RCC_CACHE_DIR", "")]), None);
        assert_eq!(folder(&[]), None);
    }

    #[test]
    fn tuning_lies_where_the_environment_says() {
        let file = |set: &[(&str, &str)]| {
            tuning_file(&|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
        };
        let of = |path: &str, named| Some(File { path: path.into(), named });
        assert_eq!(file(&[("HOME", "/me")]), of("/me/.config/rcc/tuning.toml", false));
        assert_eq!(file(&[("RCC_TUNING", "t.toml"), ("HOME", "/me")]), of("t.toml", true));
        assert_eq!(file(&[("RCC_TUNING", ""), ("HOME", "/me")]), None);
    }

    #[test]
    fn files_of_any_name_are_found_and_read_no_further_than_makes_sense() {
        let strange = OsString::from_vec(b"/caf\xe9/tuning.toml".to_vec());
        let set = |name: &str| (name == "RCC_TUNING" || name == "RCC_CACHE_DIR").then(|| strange.clone());
        assert_eq!(tuning_file(&set), Some(File { path: strange.clone().into(), named: true }));
        assert_eq!(cache_folder(&set), Some(strange.clone().into()));
        let error = read_tuning(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.kind, Kind::Invalid);
        assert!(error.message.contains("/dev/zero cannot be used: it has more than 4 MiB"), "{error}");
    }
}
