//! Where a communicator's plans come from: the standard library, what is selected of it, and the cache.
//!
//! In: options, the other ranks. Out: plans for calls. Selection depends on the machine and on what was measured on it; all ranks
//! agree on both when they join, so that any of them would select alike.

use std::sync::Arc;

use compiler::cost::topology::Topology;
use compiler::diagnostics::render::{Style, render};
use compiler::limits::Limits;
use compiler::pipeline::{self, Failure as PipelineFailure, Loaded};
use runtime::comm::Communicator;
use runtime::error::{Error, Kind};

use crate::communicator::Made;
use crate::machine;
use crate::make::NotMade;
use crate::request::Misuse;
use crate::select::{Ask, Selected, Selection, Unselected};
use crate::settings::Options;

/// Where plans come from.
#[derive(Debug)]
pub(crate) struct Library {
    /// The standard library, read when it is needed first.
    standard: Option<Loaded>,
    selection: Selection,
}

impl Library {
    /// Agrees with all ranks on what selection depends on.
    pub(crate) fn agree(inner: &mut Communicator, _options: &Options) -> Result<Library, Error> {
        let own = machine::Share::own();
        let all = inner.gather("machine", &own.to_bytes())?;
        let shares = all.iter().enumerate().map(|(rank, bytes)| {
            let unknown = || Error::new(Kind::Internal, "a rank did not say which CPUs it has");
            machine::Share::from_bytes(bytes).ok_or_else(|| unknown().culprit(rank as u32))
        });
        let cores = machine::together(&shares.collect::<Result<Vec<_>, _>>()?);
        let selection = Selection::of(machine::cores(cores), None);
        Ok(Library { standard: None, selection })
    }

    /// The machine for the cost model.
    pub(crate) fn topology(&self) -> &Topology {
        &self.selection.topology
    }

    /// The plan for a call of a standard collective.
    pub(crate) fn standard(&mut self, ask: &Ask) -> Result<Made, Error> {
        let loaded = self.standard.get_or_insert_with(|| pipeline::load(&[], &Limits::default()));
        let Selected { plan, geometry, verdict } =
            self.selection.select(loaded, ask).map_err(|why| match why {
                Unselected::NotMade(why) => not_made(why, loaded),
                Unselected::Runtime(error) => error,
            })?;
        tracing::debug!(
            target: "rcc::select",
            collective = ask.collective.name(),
            ranks = ask.ranks,
            bytes = ask.bytes,
            algorithm = verdict.algorithm,
            because = %verdict.because,
        );
        for other in &verdict.others {
            tracing::trace!(target: "rcc::select", algorithm = other.algorithm, why_not = other.why);
        }
        Ok(Made { plan: Arc::new(plan), geometry })
    }
}

/// What makes no sense, as an error of a call.
pub(crate) fn misuse(misuse: Misuse) -> Error {
    let error = Error::new(Kind::Invalid, misuse.message);
    match misuse.help {
        Some(help) => error.help(help),
        None => error,
    }
}

/// Why there is no plan, as an error of a call: what the compiler would print.
pub(crate) fn not_made(why: NotMade, loaded: &Loaded) -> Error {
    match why {
        NotMade::Misuse(why) => misuse(why),
        NotMade::Failed(PipelineFailure::Excluded { diagnostic, .. }) => told(&[*diagnostic], loaded),
        NotMade::Failed(PipelineFailure::Wrong(found)) => told(&found, loaded),
    }
}

/// Diagnostics, as an error of a call.
pub(crate) fn told(found: &[compiler::diagnostics::Diagnostic], loaded: &Loaded) -> Error {
    let drawn: Vec<String> =
        found.iter().map(|diagnostic| render(diagnostic, &loaded.sources, Style::default())).collect();
    let text = drawn.join("\n");
    Error::new(Kind::Invalid, text.trim_end()).help("correct the program")
}
