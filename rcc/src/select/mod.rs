//! Which algorithm serves a call, laid out how, and why not another.
//!
//! In: a call ([`Ask`]), the machine, what has been measured ([`tuning`]). Out: a plan, its channels' geometry, and a [`Verdict`]: what it
//! was taken for, and for each other algorithm why not. In this order: what was measured on this machine (a tuning file), what was
//! measured on a machine of this class (built in), what the cost model predicts, and for worlds too large to compile all algorithms
//! a [`table`]. The one hard idea: it is a function of what all ranks share, so all that select select alike.

mod ask;
pub mod table;
pub mod tuning;
mod verdict;

use compiler::chooser::{Effort, Fixed};
use compiler::cost::topology::Topology;
use compiler::limits::Limits;
use compiler::options::Direct;
use compiler::pipeline::Loaded;
use plan::plan::Plan;
use plan::verify::VerifiedPlan;
use runtime::error::Error;
use runtime::exec::Shape;
use runtime::job::{Geometry, Job};

pub use self::ask::{Ask, StandardCall};
pub(crate) use self::ask::{class, size};
use self::tuning::{Entry, Row, Tuning};
pub use self::verdict::{Because, Other, Verdict};
use crate::collective::Collective;
use crate::definition;
use crate::machine;
use crate::make::{self, Candidate, Excluded, How, Made, NotMade, Open};

/// What is predicted to take longer than so many times the fastest is not worth measuring.
pub const WORTH: f64 = 4.0;

/// What selection knows of the machine.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The machine for the cost model.
    pub topology: Topology,
    /// What was measured, first what counts first.
    pub tunings: Vec<Tuning>,
    /// What was measured on another machine: what became of it, and why.
    pub remark: Option<String>,
}

/// What was selected.
#[derive(Debug)]
pub struct Selected {
    /// The plan, and what was chosen for it.
    pub made: Made,
    /// Of its channels.
    pub geometry: Geometry,
    /// What for, and instead of what.
    pub verdict: Verdict,
}

/// Why nothing could be selected.
#[derive(Debug)]
pub enum Unselected {
    /// No algorithm has a plan for it.
    NotMade(NotMade),
    /// A plan has no geometry for it.
    Runtime(Error),
}

impl Selection {
    /// For this machine as the cost model sees it, by a tuning and by what was measured on machines of its class. A tuning of another machine,
    /// or of other cores, is passed over if it was only looked for.
    pub fn of(topology: Topology, tuning: Option<Tuning>) -> Selection {
        let remark = tuning.as_ref().and_then(|tuning| {
            let why = tuning.differs(&machine::name(), tuning::cores(&topology))?;
            let what = if tuning.named { "used, since it is named" } else { "passed over" };
            Some(format!("{} is {what}: {why}", tuning.source))
        });
        let tuning = tuning.filter(|tuning| tuning.named || remark.is_none());
        let tunings = tuning.into_iter().chain(tuning::builtin(&topology)).collect();
        Selection { topology, tunings, remark }
    }

    /// By no more than tunings that are named, and the cost model.
    pub fn only(topology: Topology, tunings: Vec<Tuning>) -> Selection {
        Selection { topology, tunings, remark: None }
    }

    /// The plan for a call.
    ///
    /// # Errors
    /// Why no algorithm has one.
    pub fn select(&self, loaded: &Loaded, ask: &Ask) -> Result<Selected, Unselected> {
        if let Some(selected) = self.by_measure(loaded, ask) {
            return Ok(selected);
        }
        let how = self.how(ask, &Entry::default());
        let (_, made) =
            how.fastest(loaded, &ask.open(), Some(ask.bytes), &mut |_| {}).map_err(Unselected::NotMade)?;
        let verdict = Verdict::predicted(&made, &self.topology);
        self.selected(made, ask, &Entry::default(), verdict).map_err(Unselected::Runtime)
    }

    /// What is worth measuring for a call: the algorithms that the model predicts to take at most [`WORTH`] times as long as the fastest, at
    /// most so many, and the first (where that is more than three, two) laid out otherwise; for registered buffers also those that would be the first
    /// by messages alone. No two have one plan and one geometry.
    ///
    /// # Errors
    /// Why no algorithm has a plan.
    pub fn candidates(
        &self,
        loaded: &Loaded,
        ask: &Ask,
        most: usize,
    ) -> Result<Vec<(Entry, Selected)>, Unselected> {
        let how = self.how(ask, &Entry::default());
        let made = how.fastest(loaded, &ask.open(), Some(ask.bytes), &mut |_| {});
        let (_, made) = made.map_err(Unselected::NotMade)?;
        let least = made.candidates.first().and_then(|first| first.seconds).unwrap_or(f64::INFINITY);
        let worth = |candidate: &&Candidate| candidate.seconds.is_none_or(|s| s <= least * WORTH);
        let mut entries: Vec<Entry> =
            made.candidates.iter().filter(worth).take(most).map(Entry::free).collect();
        if entries.is_empty() {
            let algorithm = made.compiled.plan.header.algorithm.clone();
            entries.push(Entry { algorithm, ..Entry::default() });
        }
        let variants: Vec<Entry> = {
            let first = entries.iter().take(if most > 3 { 2 } else { 1 });
            first.flat_map(Entry::otherwise).collect()
        };
        // What is best by messages alone need not be what is best where peers reach into each other's memory.
        let by_messages: Vec<Entry> = if ask.registered {
            let plain = Ask { registered: false, ..ask.clone() };
            let made = self.how(&plain, &Entry::default()).fastest(
                loaded,
                &plain.open(),
                Some(ask.bytes),
                &mut |_| {},
            );
            let candidates = made.map(|(_, made)| made.candidates).unwrap_or_default();
            let first = candidates.iter().take(if most > 3 { 2 } else { 1 });
            let first = first.map(|candidate| Entry { messages: true, ..Entry::free(candidate) });
            first.flat_map(|entry| [vec![entry.clone()], entry.otherwise()].concat()).collect()
        } else {
            Vec::new()
        };
        let mut found: Vec<(Entry, Selected)> = Vec::new();
        for entry in entries.into_iter().chain(variants).chain(by_messages) {
            let Ok(selected) = self.candidate(loaded, ask, &entry) else { continue };
            let same = |known: &Selected| {
                known.geometry == selected.geometry && known.plan().plan() == selected.plan().plan()
            };
            if !found.iter().any(|(_, known)| same(known)) {
                found.push((entry, selected));
            }
        }
        Ok(found)
    }

    /// The plan of one candidate.
    ///
    /// # Errors
    /// Why there is none, or why it does not serve the call.
    pub fn candidate(&self, loaded: &Loaded, ask: &Ask, entry: &Entry) -> Result<Selected, Excluded> {
        let excluded = |why: String| Excluded { algorithm: entry.algorithm.clone(), why };
        let (how, open) = (self.how(ask, entry), ask.open());
        let id = loaded.program.find(&entry.algorithm);
        let id = id.ok_or_else(|| excluded("it is not in the standard library".to_string()))?;
        let request = how.request(loaded, id, &open).map_err(|misuse| excluded(misuse.message))?;
        let made = how.make(loaded, &request, Some(ask.bytes), &mut |_| {});
        let made = made.map_err(|failure| excluded(NotMade::Failed(failure).brief()))?;
        match how.refusal(&made.compiled.plan.header, &open) {
            Some(why) => Err(excluded(why)),
            None => {
                let verdict = Verdict::predicted(&made, &self.topology);
                self.selected(made, ask, entry, verdict).map_err(|error| excluded(error.message.clone()))
            }
        }
    }

    /// The plan for a call by what was measured; none, if nothing was that is near.
    pub fn by_measure(&self, loaded: &Loaded, ask: &Ask) -> Option<Selected> {
        self.tunings.iter().find_map(|tuning| self.measured(loaded, ask, tuning, tuning.row(ask)?))
    }

    /// The first of a row that serves.
    fn measured(&self, loaded: &Loaded, ask: &Ask, tuning: &Tuning, row: &Row) -> Option<Selected> {
        let mut excluded = Vec::new();
        for (at, entry) in row.candidates.iter().enumerate() {
            match self.candidate(loaded, ask, entry) {
                Err(why) => excluded.push(why),
                Ok(Selected { mut made, geometry, .. }) => {
                    let verdict = Verdict::measured(tuning, row, at, excluded, loaded, ask.collective);
                    let measured = row.candidates.iter().map(|entry| Candidate {
                        algorithm: entry.algorithm.clone(),
                        seconds: Some(entry.us * 1e-6),
                    });
                    made.candidates = measured.collect();
                    return Some(Selected { made, geometry, verdict });
                }
            }
        }
        None
    }

    /// With the geometry of its channels: as was chosen, or fixed; for messages of all calls of the size's class, where they are longer. Where
    /// nothing fixes how many slots, there are as many as help.
    fn selected(&self, made: Made, ask: &Ask, entry: &Entry, verdict: Verdict) -> Result<Selected, Error> {
        let plan = &made.compiled.plan;
        let shape = Shape {
            elements: ask.elements.saturating_mul(4),
            dtype: ask.dtype,
            op: ask.op,
            in_place: !plan.header.forms.disjoint,
        };
        let slots = entry.slots.or(made.chosen.best.map(|best| best.0.slots));
        let job = Job { slots, slot_bytes: entry.slice_bytes, ..Job::new(shape) };
        let geometry = Geometry::of(plan, &job)?;
        let cores = tuning::cores(&self.topology).unwrap_or(u32::MAX);
        let geometry = if entry.slots.is_none() { geometry.roomy(plan, cores) } else { geometry };
        Ok(Selected { made, geometry, verdict })
    }

    /// How plans for a call are made.
    fn how(&self, ask: &Ask, entry: &Entry) -> How {
        let fixed = Fixed {
            blocks: entry.blocks,
            // What peers cannot reach into, they do not.
            direct: (!ask.registered || entry.messages).then_some(Direct::Never),
            slots: entry.slots,
            slice_bytes: entry.slice_bytes,
            ..Fixed::default()
        };
        How {
            fixed,
            dtype: ask.dtype,
            forms: ask.forms,
            effort: Effort::Quick,
            topology: self.topology.clone(),
            limits: Limits::default(),
        }
    }
}

impl Ask {
    /// Whether a plan promises what the call is to do, in every form that is asked.
    pub(crate) fn is_promised_by(&self, plan: &Plan) -> bool {
        let (wanted, has) = (self.forms, plan.header.forms);
        definition::promises(plan, self.collective, self.root, self.ranks)
            && (has.disjoint || !wanted.disjoint)
            && (has.same || !wanted.same)
            && plan.header.serves(self.op)
    }

    /// The same as what `make` is asked.
    fn open(&self) -> Open {
        let root = self.root.map(|root| ("root".to_string(), root.to_string()));
        Open {
            collective: self.collective,
            shape: vec![self.ranks],
            params: root.into_iter().collect(),
            op: self.op,
            every_form: true,
        }
    }
}

impl Selected {
    /// The plan.
    pub fn plan(&self) -> &VerifiedPlan {
        &self.made.compiled.plan
    }
}

/// The standard algorithms of a collective that are neither the one taken nor among those told of.
fn untold(loaded: &Loaded, collective: Collective, told: &[&str]) -> Vec<String> {
    let all = make::algorithms(loaded, collective).into_iter();
    let names = all.map(|id| loaded.program.algorithm(id).name.clone());
    names.filter(|name| !told.contains(&name.as_str())).collect()
}
