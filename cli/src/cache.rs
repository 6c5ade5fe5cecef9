//! `rcc cache`: the compiled plans that programs keep.
//!
//! In: nothing, or `clear`. Out: where they lie and how much there is; or that they are gone.

use plan::display::plural;
use rcc::cache::{Cache, Contents};
use rcc::settings;
use serde::Serialize;

use crate::args;
use crate::failure::Failure;
use crate::output::Output;
use crate::size;

#[derive(Serialize)]
struct Told {
    folder: String,
    entries: u64,
    bytes: u64,
    cleared: bool,
}

/// Runs the command.
pub(crate) fn run(args: &args::Cache, output: &mut Output) -> Result<(), Failure> {
    let Some(folder) = settings::cache_place() else {
        return Err(Failure::usage_help(
            "no plans are kept: RCC_CACHE_DIR is empty, or there is no home folder",
            "name a folder with RCC_CACHE_DIR",
        ));
    };
    let cache = Cache::new(&folder);
    let cleared = args.action == Some(args::CacheAction::Clear);
    let (doing, found) = if cleared { ("clear", cache.clear()) } else { ("read", cache.contents()) };
    let Contents { entries, bytes } = found.map_err(|error| Failure::file(doing, &folder, &error))?;
    let folder = folder.display().to_string();
    if args.json {
        return output.json(&Told { folder, entries, bytes, cleared });
    }
    let what = format!("{}, {}", plural(entries, "plan", "plans"), size::show(bytes));
    output.line(&if cleared { format!("{folder}: {what} removed") } else { format!("{folder}: {what}") })
}
