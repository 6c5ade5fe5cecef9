//! Where a communicator's plans come from: the standard library, what is selected of it, and the cache.
//!
//! In: options, the other ranks. Out: plans for calls. Selection depends on the machine and on what was measured on it; all ranks
//! agree on both when they join, so that any of them would select alike.

use std::sync::Arc;

use compiler::cost::topology::Topology;
use compiler::diagnostics::render::{Style, render};
use compiler::limits::Limits;
use compiler::pipeline::{self, Failure as PipelineFailure, Loaded};
use plan::plan::Plan;
use runtime::comm::Communicator;
use runtime::error::{Error, Kind};
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, CacheKey, Entry};
use crate::communicator::{Made, read};
use crate::machine::{self, Share};
use crate::make::NotMade;
use crate::request::Misuse;
use crate::select::tuning::Tuning;
use crate::select::{Ask, Selected, Selection, Unselected};
use crate::settings::Options;

/// Where plans come from.
#[derive(Debug)]
pub(crate) struct Library {
    /// The standard library, read when it is needed first.
    standard: Option<Loaded>,
    selection: Selection,
    cache: Option<Cache>,
}

/// What selection depends on, as a rank says it.
#[derive(Serialize, Deserialize)]
struct Said {
    share: Share,
    /// Of the tuning, if there is one: its digest, and where it comes from.
    tuning: Option<([u8; 32], String)>,
}

impl Library {
    /// Agrees with all ranks on what selection depends on.
    pub(crate) fn agree(inner: &mut Communicator, options: &Options) -> Result<Library, Error> {
        let tuning = options.tuning.as_ref().map(|tuning| (tuning.digest(), tuning.source.clone()));
        let own = postcard::to_stdvec(&Said { share: Share::own(), tuning }).unwrap_or_default();
        let all = inner.gather("what plans are selected by", &own)?;
        let said = (0..).zip(&all).map(|(rank, bytes)| {
            let unknown =
                |_| Error::new(Kind::Internal, "a rank did not say what it selects by").culprit(rank);
            postcard::from_bytes(bytes).map_err(unknown)
        });
        let said: Vec<Said> = said.collect::<Result<_, _>>()?;
        let digest = |said: &Said| said.tuning.as_ref().map(|tuning| tuning.0);
        if let Some(other) = said.iter().position(|one| digest(one) != digest(&said[0])) {
            return Err(differ(&said, other));
        }
        let shares: Vec<Share> = said.into_iter().map(|said| said.share).collect();
        let selection = Selection::of(machine::cores(machine::together(&shares)), options.tuning.clone());
        if let Some(remark) = selection.remark.as_ref().filter(|_| inner.rank().0 == 0) {
            tracing::warn!(target: "rcc::select", "{remark}");
        }
        Ok(Library { standard: None, selection, cache: options.cache.clone().map(Cache::new) })
    }

    /// The machine for the cost model.
    pub(crate) fn topology(&self) -> &Topology {
        &self.selection.topology
    }

    /// The plan for a call of a standard collective.
    pub(crate) fn standard(&mut self, ask: &Ask) -> Result<Made, Error> {
        let key = self.key(ask);
        if let Some(made) = self.cached(&key, &|plan| ask.is_promised_by(plan)) {
            tracing::debug!(
                target: "rcc::select",
                collective = ask.collective.name(),
                ranks = ask.ranks,
                bytes = ask.bytes,
                algorithm = made.plan.header.algorithm,
                because = "selected before, and cached",
            );
            return Ok(made);
        }
        let loaded = self.standard.get_or_insert_with(|| pipeline::load(&[], &Limits::default()));
        let Selected { made, geometry, verdict } =
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
        let made = Made { plan: Arc::new(made.compiled.plan), geometry };
        self.keep(&key, &made);
        Ok(made)
    }

    /// All that the plan for a call depends on.
    fn key(&self, ask: &Ask) -> CacheKey {
        let Selection { topology, tunings, .. } = &self.selection;
        let text = format!("{ask:?} on {topology:?}");
        let digests: Vec<u8> = tunings.iter().flat_map(Tuning::digest).collect();
        CacheKey::of(&[b"standard", text.as_bytes(), &digests])
    }

    /// A plan of the cache, verified, if it is the one that is wanted.
    pub(crate) fn cached(&self, key: &CacheKey, wanted: &dyn Fn(&Plan) -> bool) -> Option<Made> {
        let Entry { geometry, plan } = self.cache.as_ref()?.read(key)?;
        match read(&plan) {
            Ok(plan) if wanted(&plan) && geometry.slots >= plan.header.k_min => {
                Some(Made { plan: Arc::new(plan), geometry })
            }
            Ok(_) => {
                tracing::debug!(target: "rcc::cache", "another plan lies there: compiled anew");
                None
            }
            Err(error) => {
                tracing::debug!(target: "rcc::cache", %error, "refused: compiled anew");
                None
            }
        }
    }

    /// Keeps a plan in the cache, if there is one.
    pub(crate) fn keep(&self, key: &CacheKey, made: &Made) {
        if let Some(cache) = &self.cache {
            cache.write(key, &Entry { geometry: made.geometry, plan: made.plan.plan().to_bytes() });
        }
    }
}

/// The error for ranks whose tunings differ.
fn differ(said: &[Said], other: usize) -> Error {
    let text = |at: usize| match &said[at].tuning {
        None => "none".to_string(),
        Some((digest, source)) => {
            let digest: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
            format!("{source} (content {digest})")
        }
    };
    let (first, second) = (text(0), text(other));
    let message =
        format!("ranks 0 and {other} differ in tuning\n  rank 0: {first}\n  rank {other}: {second}");
    let error = Error::new(Kind::Mismatch, message).of(vec![0, other as u32]);
    error.help("give all ranks one tuning file (RCC_TUNING), or none")
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
