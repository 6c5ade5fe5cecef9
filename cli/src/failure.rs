//! How a command ends other than well, and with which exit status.
//!
//! In: what went wrong. Out: one message on standard error and the status of docs/cli.md: 1 the program at hand is wrong
//! or a run gave wrong results, 2 bad usage, 3 the machine could not do it.

use std::fmt;
use std::io;
use std::path::Path;

use rcc::request::Misuse;

/// Why a command did not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The program is wrong or a result is; all has been said already.
    Wrong,
    /// What was asked makes no sense: a message and, if there is something to do, what.
    Usage(String, Option<String>),
    /// The machine could not do it.
    Machine(String),
    /// Something of the given status; all has been said already.
    Told(u8),
    /// Whoever read standard output is gone: nobody to tell, and not an error.
    OutputClosed,
}

impl Failure {
    /// Bad usage, without advice.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::Usage(message.into(), None)
    }

    /// Bad usage, and what would be right.
    pub(crate) fn usage_help(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Usage(message.into(), Some(help.into()))
    }

    /// A file could not be read or written: the path is at fault, or the machine is.
    pub(crate) fn file(doing: &str, path: &Path, error: &io::Error) -> Failure {
        use io::ErrorKind as Kind;
        let message = format!("cannot {doing} {}: {}", path.display(), plain(error));
        match error.kind() {
            Kind::NotFound
            | Kind::PermissionDenied
            | Kind::IsADirectory
            | Kind::NotADirectory
            | Kind::InvalidInput
            | Kind::InvalidFilename
            | Kind::AlreadyExists => Failure::Usage(message, None),
            _ => Failure::Machine(message),
        }
    }

    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Wrong => 1,
            Failure::Usage(..) => 2,
            Failure::Machine(_) => 3,
            Failure::Told(status) => *status,
            Failure::OutputClosed => 0,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Wrong | Failure::Told(_) | Failure::OutputClosed => Ok(()),
            Failure::Usage(message, None) | Failure::Machine(message) => write!(f, "error: {message}"),
            Failure::Usage(message, Some(help)) => write!(f, "error: {message}\n\n  help: {help}"),
        }
    }
}

impl From<Misuse> for Failure {
    fn from(misuse: Misuse) -> Failure {
        Failure::Usage(misuse.message, misuse.help)
    }
}

/// An error of the system without its number: `no such file or directory`.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().collect::<String>() + letters.as_str())
}
