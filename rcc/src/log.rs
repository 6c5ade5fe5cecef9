//! What rcc is doing, on standard error, for programs that ask for it.
//!
//! In: `RCC_LOG`, directives of tracing such as `debug` or `rcc::call=debug,warn`. Out: a subscriber of `tracing`, if there is none yet.
//! The library never installs one by itself.
//!
//! | target | says |
//! |---|---|
//! | `rcc::select` | which plan was selected for calls of a size, and what for (debug), and why the others were not (trace) |
//! | `rcc::call` | which plan each call runs (debug) |
//! | `rcc::cache` | what was found damaged, and what could not be written (debug) |
//! | `rcc_runtime` | who has been waited for so long (warn) |

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use runtime::error::{Error, Kind};
use tracing_subscriber::EnvFilter;

/// Writes what `RCC_LOG` asks for to standard error; whether it asks for anything, and nobody listened before.
///
/// # Errors
/// [`Kind::Invalid`] if it makes no sense.
pub fn to_stderr() -> Result<bool, Error> {
    let asked = match std::env::var_os("RCC_LOG").map(OsString::into_string) {
        None => return Ok(false),
        Some(Err(_)) => {
            return Err(Error::new(Kind::Invalid, "the value of RCC_LOG is not text in UTF-8"));
        }
        Some(Ok(asked)) if asked.trim().is_empty() => return Ok(false),
        Some(Ok(asked)) => asked,
    };
    let filter = EnvFilter::builder().parse(&asked).map_err(|error| {
        let error = Error::new(Kind::Invalid, format!("RCC_LOG={asked} makes no sense: {error}"));
        error.help("say a level, or levels for targets, as in RCC_LOG=rcc::call=debug,warn")
    })?;
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    Ok(subscriber.with_ansi(io::stderr().is_terminal()).try_init().is_ok())
}
