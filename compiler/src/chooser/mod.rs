//! What nobody said of a plan, chosen by the cost model.
//!
//! In: a plan of the usual layout, what is [`Wanted`], a machine, and a way to lay out the same moves otherwise. Out: the
//! plan to take, and a [`Chosen`]: what was taken, what else was tried and how long it was predicted to take. A function of
//! these and nothing else: every command that is asked the same gets the same plan.
//!
//! The one hard idea is what to spend. Slices, copies, slots and the protocol are tried on a plan as it is; another layout
//! (`variants`) must be lowered and verified first. So layouts are tried one kind after another, each around the best so far,
//! and only of plans below [`LAYOUTS`] micro-steps; the model itself is asked only below [`QUICK`] of them, unless a machine
//! was named ([`Effort::Thorough`]). What is left out for that is said ([`Untried`]).

mod variants;

use plan::dtype::Dtype;
use plan::fold::Folded;
use plan::plan::{Forms, Plan};
use plan::schedule::{Protocol, Schedule};
use plan::verify::VerifiedPlan;

use crate::choice::Choice;
use crate::cost::estimate::{self, EstimateError, Question, Search, TRIES};
use crate::cost::topology::Topology;
use crate::cost::{Call, Program};
use crate::options::{Cut, Direct, Multicast, Options, Reach, Tree};

/// The size of the calls that a plan is for, where none is given.
pub const ASSUMED_BYTES: u64 = 64 << 20;
/// Plans of more micro-steps are taken as they are, unless a machine is named.
pub const QUICK: u64 = 4_096;
/// Plans of more micro-steps are laid out in the usual way only.
pub const LAYOUTS: u64 = 20_000;
/// Events of the model that may be followed for that, where no machine is named: some tenths of a second.
const QUICK_EVENTS: u64 = 2_000_000;
/// Another layout must be predicted to be so many times as fast as the usual one: the model is not right to the last percent.
const CLEAR: f64 = 1.05;
/// And than the best so far of the other layouts: what hardly matters is left as it was.
const WORTH: f64 = 1.01;

/// What a plan is wanted for, and what of it is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Bytes of one block times its number of blocks, of the larger of send and receive memory; none: not known.
    pub bytes: Option<u64>,
    /// Of what.
    pub dtype: Dtype,
    /// What the user said.
    pub fixed: Fixed,
    /// The forms that calls will have. A plan may give up others.
    pub forms: Forms,
    /// How much may be tried.
    pub effort: Effort,
}

/// What the user fixes; what a schedule says is fixed, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fixed {
    /// The most blocks of a rank.
    pub blocks: Option<u32>,
    /// Where ranks may reach into each other's memory.
    pub direct: Option<Direct>,
    /// How a value that one rank sends to several reaches them.
    pub multicast: Option<Multicast>,
    /// How wide messages are.
    pub cut: Option<Cut>,
    /// No step is fused.
    pub unfused: bool,
    /// Slots per channel that the plan may count on.
    pub counted_slots: Option<u32>,
    /// Slots that a channel has.
    pub slots: Option<u32>,
    /// Bytes of a slot.
    pub slice_bytes: Option<u32>,
}

/// How much may be tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Effort {
    /// What takes no longer than the compilation itself, or so.
    #[default]
    Quick,
    /// What takes seconds, for plans that are large.
    Thorough,
}

/// What was taken, and instead of what.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The machine.
    pub topology: String,
    /// The size that it was chosen for.
    pub bytes: u64,
    /// That size was assumed: none was given.
    pub assumed: bool,
    /// The layout.
    pub layout: Layout,
    /// The geometry, and the seconds that the model predicts for it; none: nothing was tried.
    pub best: Option<(Call, f64)>,
    /// Its protocol.
    pub protocol: Protocol,
    /// Everything tried, the chosen among it.
    pub tried: Vec<Tried>,
    /// Why nothing was tried, or no other layout.
    pub untried: Option<Untried>,
    /// What was fixed.
    pub given: Vec<&'static str>,
}

/// How moves are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The most blocks of a rank.
    pub blocks: u32,
    /// Slots that it counts on.
    pub counted_slots: u32,
    /// Where ranks reach into each other's memory.
    pub direct: Direct,
    /// Who reaches.
    pub reach: Reach,
    /// How a value that one rank sends to several reaches them.
    pub multicast: Multicast,
    /// How wide messages are.
    pub cut: Cut,
}

/// Something that was tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    /// The layout.
    pub layout: Layout,
    /// The geometry.
    pub call: Call,
    /// How messages are encoded.
    pub protocol: Protocol,
    /// What the model predicts.
    pub seconds: f64,
}

/// Why something was not tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Untried {
    /// Everything is as usual: the plan is too large to follow just so.
    All {
        /// What it has.
        micro_steps: u64,
    },
    /// Other layouts were not tried, or not all: the plan is too large, or takes too long to follow in a call of this size.
    Layouts {
        /// What it has.
        micro_steps: u64,
    },
    /// The model cannot follow it.
    Model(EstimateError),
    /// Of a folded plan all ranks together are more than [`LAYOUTS`], or than the limits: not spelled out, and the model follows them all.
    TooLarge {
        /// What they have.
        micro_steps: u64,
    },
    /// The plan was made before.
    Given,
}

impl Effort {
    /// Events of the model that may be followed.
    fn events(self) -> u64 {
        match self {
            Effort::Quick => QUICK_EVENTS,
            Effort::Thorough => TRIES,
        }
    }

    /// Whether a plan of so many micro-steps is taken as it is.
    pub(crate) fn refuses(self, micro_steps: u64) -> bool {
        micro_steps > QUICK && self == Effort::Quick
    }
}

impl Layout {
    /// Of options.
    pub fn of(options: &Options) -> Layout {
        let Options { blocks, slots, direct, reach, multicast, cut, .. } = *options;
        Layout { blocks, counted_slots: slots, direct, reach, multicast, cut }
    }

    /// Direct access in a word: `none`, `pull` or `push`, with `(out of place)` where the plan gives up calls in place for it.
    pub fn access(&self) -> &'static str {
        match (self.direct, self.reach) {
            (Direct::Never, _) => "none",
            (Direct::WhereBothFormsAllow, Reach::Pull) => "pull",
            (Direct::WhereBothFormsAllow, Reach::Push) => "push",
            (Direct::OutOfPlace, Reach::Pull) => "pull (out of place)",
            (Direct::OutOfPlace, Reach::Push) => "push (out of place)",
        }
    }
}

/// Multicasts in a word, as `--multicast` names them.
pub fn spread(multicast: Multicast) -> String {
    match multicast {
        Multicast::Flat => "flat".to_string(),
        Multicast::Channel => "channel".to_string(),
        Multicast::Tree(Tree::Binomial) => "binomial".to_string(),
        Multicast::Tree(Tree::Chain) => "chain".to_string(),
        Multicast::Tree(Tree::Wide(width)) => format!("tree:{width}"),
        Multicast::ChannelTree(tree) => format!("{}+channel", spread(Multicast::Tree(tree))),
    }
}

/// Where messages are cut, in a word, as `--cut` names it.
pub fn cut(cut: Cut) -> &'static str {
    match cut {
        Cut::Whole => "whole",
        Cut::Parts => "parts",
    }
}

impl Fixed {
    /// The usual layout, but for what is fixed.
    pub fn options(&self, bytes: Option<u64>) -> Options {
        let usual = Options::default();
        Options {
            slots: self.counted_slots.unwrap_or(usual.slots),
            blocks: self.blocks.unwrap_or(usual.blocks),
            fuse: !self.unfused,
            direct: self.direct.unwrap_or(usual.direct),
            multicast: self.multicast.unwrap_or(usual.multicast),
            cut: self.cut.unwrap_or(usual.cut),
            bytes,
            ..usual
        }
    }
}

impl Chosen {
    /// The second of what was tried by time: the best of what differs from what was taken.
    pub fn next(&self) -> Option<&Tried> {
        let (call, _) = self.best?;
        let others = self.tried.iter().filter(|tried| tried.call != call || tried.layout != self.layout);
        others.min_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }

    /// The longest that anything tried would take.
    pub fn worst(&self) -> f64 {
        self.tried.iter().map(|tried| tried.seconds).fold(0.0, f64::max)
    }
}

/// Chooses. `plan` is of the layout `options`, which are those of [`Fixed::options`]; its header says what the schedule asks
/// for. `lower` lays the same moves out otherwise; nothing, if the machine has no room for that.
pub fn choose<E>(
    plan: VerifiedPlan,
    options: &Options,
    wanted: &Wanted,
    asked: &Choice,
    topology: &Topology,
    lower: &mut dyn FnMut(&Options) -> Result<Option<VerifiedPlan>, E>,
) -> Result<(VerifiedPlan, Chosen), E> {
    let mut trial = match first(&plan, options, wanted, asked.copies, topology) {
        Ok(trial) => trial,
        Err(chosen) => return Ok((plan, *chosen)),
    };
    let micro_steps = micro_steps(&plan);
    // The first geometry of each is always followed: not where the budget is spent.
    if micro_steps > LAYOUTS || trial.left < trial.each {
        trial.chosen.untried = Some(Untried::Layouts { micro_steps });
        return Ok((plan, trial.chosen));
    }
    // The usual layout is left for one that is clearly better; among others the best is taken.
    let usual = trial.found.seconds;
    let mut best = (plan, *options, trial.found);
    let mut seen: Vec<VerifiedPlan> = Vec::new();
    for kind in variants::KINDS {
        let mut better: Option<(VerifiedPlan, Options, Search)> = None;
        for options in kind(&best.0, &best.1, wanted, topology) {
            if trial.left < trial.each {
                trial.chosen.untried = Some(Untried::Layouts { micro_steps });
                break;
            }
            let Some(plan) = lower(&options)? else { continue };
            let serves = plan.header.forms;
            let lost = (wanted.forms.disjoint && best.0.header.forms.disjoint && !serves.disjoint)
                || (wanted.forms.same && best.0.header.forms.same && !serves.same);
            // The same steps are known already.
            if lost || plan.plan() == best.0.plan() || seen.iter().any(|known| known.plan() == plan.plan()) {
                continue;
            }
            let program = Program::new(&plan);
            let Ok(found) = estimate::search(&program, topology, &trial.question, trial.left) else {
                continue;
            };
            trial.left = trial.left.saturating_sub(found.events);
            trial.chosen.add(&options, topology, &found);
            let to_beat = better.as_ref().map_or(best.2.seconds / WORTH, |better| better.2.seconds);
            if found.seconds < to_beat && found.seconds * CLEAR < usual {
                if let Some((plan, ..)) = better.replace((plan, options, found)) {
                    seen.push(plan);
                }
            } else {
                seen.push(plan);
            }
        }
        if let Some(better) = better {
            seen.push(std::mem::replace(&mut best, better).0);
        }
    }
    let (plan, options, found) = best;
    trial.chosen.take(&options, topology, &found);
    Ok((plan, trial.chosen))
}

/// Chooses for a plan whose steps are what they are: the geometry alone. `copies` is given where they are, too.
pub fn geometry(plan: &VerifiedPlan, wanted: &Wanted, copies: Option<u32>, topology: &Topology) -> Chosen {
    let options = Options { slots: plan.header.k_min, ..wanted.fixed.options(wanted.bytes) };
    match first(plan, &options, wanted, copies, topology) {
        Ok(trial) => Chosen { untried: Some(Untried::Given), ..trial.chosen },
        Err(chosen) => *chosen,
    }
}

/// What a plan is to ask for, by what was chosen: its copies and its schedule.
pub fn asking(plan: &Plan, chosen: &Chosen, topology: &Topology, fixed: &Fixed) -> (u32, Schedule) {
    let header = &plan.header;
    let mut schedule = header.schedule.clone();
    let Some((call, _)) = chosen.best else { return (header.copies, schedule) };
    if schedule.slice_bytes.is_none() && fixed.slice_bytes.is_none() {
        // A slot is no longer than the longest message, which is another in calls of other sizes.
        let whole = topology.slices.iter().copied().find(|&size| size >= call.slice_bytes);
        schedule.slice_bytes = Some(whole.unwrap_or(call.slice_bytes));
    }
    if topology.encodings.len() > 1 {
        schedule.protocol = chosen.protocol;
    }
    (call.copies, schedule)
}

/// Elements of a block in a call of so many bytes; none: the plan's blocks hold nothing.
pub fn elements(plan: &Plan, bytes: u64, dtype: Dtype) -> u64 {
    let side = plan.call_blocks().saturating_mul(dtype.size().into());
    bytes.checked_div(side).unwrap_or(0)
}

/// What is said of a plan for which nothing was tried.
pub(crate) fn untried(
    plan: &Plan,
    options: &Options,
    wanted: &Wanted,
    copies: Option<u32>,
    topology: &Topology,
    why: Untried,
) -> Chosen {
    Chosen { untried: Some(why), ..as_usual(plan, options, wanted, copies, topology) }
}

/// What choosing goes on from: the first plan, followed.
struct Trial {
    question: Question,
    chosen: Chosen,
    found: Search,
    /// Events that may still be followed.
    left: u64,
    /// Events that it takes to follow it once, on average.
    each: u64,
}

/// Follows the first plan, or says why not.
fn first(
    plan: &VerifiedPlan,
    options: &Options,
    wanted: &Wanted,
    copies: Option<u32>,
    topology: &Topology,
) -> Result<Trial, Box<Chosen>> {
    let mut chosen = as_usual(plan, options, wanted, copies, topology);
    let micro_steps = micro_steps(plan);
    if wanted.effort.refuses(micro_steps) {
        return Err(Box::new(Chosen { untried: Some(Untried::All { micro_steps }), ..chosen }));
    }
    let Fixed { slots, slice_bytes, .. } = wanted.fixed;
    let count = elements(plan, chosen.bytes, wanted.dtype);
    let question = Question { count, dtype: wanted.dtype, slots, slice_bytes, copies };
    let found = match estimate::search(&Program::new(plan), topology, &question, wanted.effort.events()) {
        Ok(found) => found,
        Err(error) => return Err(Box::new(Chosen { untried: Some(Untried::Model(error)), ..chosen })),
    };
    chosen.add(options, topology, &found);
    chosen.take(options, topology, &found);
    let left = wanted.effort.events().saturating_sub(found.events);
    let each = found.events / (found.tried.len().max(1) as u64);
    Ok(Trial { question, chosen, found, left, each })
}

/// Nothing chosen yet: what is asked, and what of it is given.
fn as_usual(
    plan: &Plan,
    options: &Options,
    wanted: &Wanted,
    copies: Option<u32>,
    topology: &Topology,
) -> Chosen {
    let header = &plan.header;
    let fixed = &wanted.fixed;
    let given = [
        ("blocks", fixed.blocks.is_some()),
        ("direct", fixed.direct.is_some() || fixed.unfused),
        ("multicast", fixed.multicast.is_some() || fixed.unfused),
        ("cut", fixed.cut.is_some() || fixed.unfused),
        ("copies", copies.is_some() || header.copies > 1),
        ("slots", fixed.slots.is_some()),
        ("slice_bytes", fixed.slice_bytes.is_some() || header.schedule.slice_bytes.is_some()),
        ("protocol", header.schedule.protocol != Protocol::Auto || topology.encodings.len() == 1),
    ];
    Chosen {
        topology: topology.name.clone(),
        bytes: wanted.bytes.unwrap_or(ASSUMED_BYTES),
        assumed: wanted.bytes.is_none(),
        layout: Layout::of(options),
        best: None,
        protocol: header.schedule.protocol,
        tried: Vec::new(),
        untried: None,
        given: given.into_iter().filter(|given| given.1).map(|given| given.0).collect(),
    }
}

impl Chosen {
    fn add(&mut self, options: &Options, topology: &Topology, found: &Search) {
        let layout = Layout::of(options);
        self.tried.extend(found.tried.iter().map(|&(call, seconds)| Tried {
            layout,
            call,
            protocol: topology.encodings[call.encoding].protocol,
            seconds,
        }));
    }

    fn take(&mut self, options: &Options, topology: &Topology, found: &Search) {
        self.layout = Layout::of(options);
        self.best = Some((found.call, found.seconds));
        self.protocol = topology.encodings[found.call.encoding].protocol;
    }
}

/// Micro-steps of all ranks of a folded plan.
pub(crate) fn micro_steps_folded(folded: &Folded) -> u64 {
    micro_steps(&folded.plan).saturating_mul(folded.order().into())
}

/// Micro-steps of all blocks.
fn micro_steps(plan: &Plan) -> u64 {
    plan.blocks.iter().flat_map(|block| plan.steps(&block.body)).map(|(_, step)| u64::from(step.width)).sum()
}
