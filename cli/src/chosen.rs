//! What the compiler chose, for people and for programs.
//!
//! In: a [`Chosen`]. Out: lines, and plain data to serialise (docs/cli.md has the fields).

use compiler::chooser::{self, Chosen, LAYOUTS, Layout, QUICK, Tried, Untried};
use compiler::cost::Call;
use compiler::cost::topology::protocol_name;
use compiler::options::Cut;
use plan::schedule::Protocol;
use rcc::make::Candidate;
use serde::Serialize;

use crate::size;

/// What was chosen, for programs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Said {
    topology: String,
    /// The size that it was chosen for, and whether that was assumed.
    bytes: u64,
    assumed: bool,
    /// The most blocks of a rank, slots that the plan counts on, direct access.
    blocks: u32,
    counted_slots: u32,
    direct: &'static str,
    multicast: String,
    cut: &'static str,
    /// What the model was asked for: null, where it was not.
    copies: Option<u32>,
    slots: Option<u32>,
    slice_bytes: Option<u32>,
    protocol: &'static str,
    predicted_us: Option<f64>,
    given: Vec<&'static str>,
    untried: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tried: Option<Vec<Other>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    algorithms: Vec<Algorithm>,
}

/// Something that was tried.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Other {
    pub(crate) blocks: u32,
    pub(crate) counted_slots: u32,
    pub(crate) direct: &'static str,
    pub(crate) multicast: String,
    pub(crate) cut: &'static str,
    pub(crate) copies: u32,
    pub(crate) slots: u32,
    pub(crate) slice_bytes: u32,
    pub(crate) protocol: &'static str,
    pub(crate) time_us: f64,
}

/// An algorithm that was tried, where only a collective was named.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Algorithm {
    algorithm: String,
    /// Null, where the model was not asked.
    time_us: Option<f64>,
}

impl From<&Candidate> for Algorithm {
    fn from(candidate: &Candidate) -> Algorithm {
        let time_us = candidate.seconds.map(|seconds| seconds * 1e6);
        Algorithm { algorithm: candidate.algorithm.clone(), time_us }
    }
}

impl Said {
    /// What was chosen, and instead of which algorithms; without what was tried beside.
    pub(crate) fn brief(chosen: &Chosen, algorithms: &[Candidate]) -> Said {
        let call = chosen.best.map(|best| best.0);
        Said {
            topology: chosen.topology.clone(),
            bytes: chosen.bytes,
            assumed: chosen.assumed,
            blocks: chosen.layout.blocks,
            counted_slots: chosen.layout.counted_slots,
            direct: chosen.layout.access(),
            multicast: chooser::spread(chosen.layout.multicast),
            cut: chooser::cut(chosen.layout.cut),
            copies: call.map(|call| call.copies),
            slots: call.map(|call| call.slots),
            slice_bytes: call.map(|call| call.slice_bytes),
            protocol: protocol_name(chosen.protocol),
            predicted_us: chosen.best.map(|best| best.1 * 1e6),
            given: chosen.given.clone(),
            untried: chosen.untried.as_ref().map(untried),
            tried: None,
            algorithms: algorithms.iter().map(Algorithm::from).collect(),
        }
    }

    /// The same with everything that was tried.
    pub(crate) fn whole(chosen: &Chosen, algorithms: &[Candidate]) -> Said {
        Said { tried: Some(chosen.tried.iter().map(Other::new).collect()), ..Said::brief(chosen, algorithms) }
    }
}

impl Other {
    pub(crate) fn new(tried: &Tried) -> Other {
        let Tried { layout, call, protocol, seconds } = tried;
        Other {
            blocks: layout.blocks,
            counted_slots: layout.counted_slots,
            direct: layout.access(),
            multicast: chooser::spread(layout.multicast),
            cut: chooser::cut(layout.cut),
            copies: call.copies,
            slots: call.slots,
            slice_bytes: call.slice_bytes,
            protocol: protocol_name(*protocol),
            time_us: seconds * 1e6,
        }
    }
}

/// What was chosen, instead of what, in one line.
pub(crate) fn line(chosen: &Chosen) -> String {
    let assumed = if chosen.assumed { " (assumed: no size is given)" } else { "" };
    let whom = format!("for {}{assumed} on {}", size::show(chosen.bytes), chosen.topology);
    format!("{whom}: {}", why(chosen))
}

/// What was chosen, without for what and why.
pub(crate) fn how_alone(chosen: &Chosen) -> String {
    let layout = match chosen.untried {
        Some(Untried::Given) => String::new(),
        _ => format!("{}, ", layout(&chosen.layout)),
    };
    match chosen.best {
        Some((call, _)) => format!("{layout}{}", how(&call, chosen.protocol)),
        None => format!("{layout}as usual"),
    }
}

/// The algorithms that one was taken of.
pub(crate) fn algorithms(candidates: &[Candidate]) -> Option<String> {
    let short = |candidate: &Candidate| {
        let name = candidate.algorithm.rsplit("::").next().unwrap_or_default().to_string();
        match candidate.seconds {
            Some(seconds) => format!("{name} {}", time(seconds * 1e6)),
            None => name,
        }
    };
    match candidates {
        [] => None,
        [one] => Some(format!("{}: the table's for this size", short(one))),
        several => Some(several.iter().map(short).collect::<Vec<_>>().join(", ")),
    }
}

/// What was chosen and why, without for what.
pub(crate) fn why(chosen: &Chosen) -> String {
    let how = how_alone(chosen);
    let Some((_, seconds)) = chosen.best else {
        let why = chosen.untried.as_ref().map_or(String::new(), |why| format!(" ({})", untried(why)));
        return format!("{how}{why}");
    };
    let next = match chosen.next() {
        None => format!("{} predicted, nothing else was tried", time(seconds * 1e6)),
        Some(next) => {
            let other = match next.layout == chosen.layout {
                true => self::how(&next.call, next.protocol),
                false => format!("{}, {}", layout(&next.layout), self::how(&next.call, next.protocol)),
            };
            let gain = seconds / next.seconds - 1.0;
            let [best, next, worst] = [seconds, next.seconds, chosen.worst()].map(|s| time(s * 1e6));
            let count = chosen.tried.len();
            let told = if gain > 0.0 {
                // What was taken stays where something else gains little.
                let gain = match gain * 100.0 {
                    gain if gain < 0.05 => "less than 0.1 % faster".to_string(),
                    gain => format!("{gain:.1} % faster"),
                };
                format!(
                    "predicted; of {count} tried the best is {next} with {other}, {gain}: too little to tell"
                )
            } else {
                format!("predicted, best of {count} tried; next {next} with {other}")
            };
            format!("{best} {told}; worst {worst}")
        }
    };
    let fixed = match chosen.given.is_empty() {
        true => String::new(),
        false => format!("; not free: {}", chosen.given.join(", ").replace("slice_bytes", "slices")),
    };
    let left = match &chosen.untried {
        None | Some(Untried::Given) => String::new(),
        Some(why) => format!("; {}", untried(why)),
    };
    format!("{how}; {next}{fixed}{left}")
}

/// A layout in a few words.
fn layout(layout: &Layout) -> String {
    let access = match layout.access() {
        "none" => "no direct access".to_string(),
        way => format!("direct access by {way}"),
    };
    let blocks =
        if layout.blocks == 1 { "1 block".to_string() } else { format!("up to {} blocks", layout.blocks) };
    let slots = match layout.counted_slots {
        usual if usual == compiler::options::Options::default().slots => String::new(),
        1 => " that do with 1 slot".to_string(),
        slots => format!(" that count on {slots} slots"),
    };
    let spread = match chooser::spread(layout.multicast) {
        one if one == "flat" => String::new(),
        one => format!(", multicast by {one}"),
    };
    let cut = if layout.cut == Cut::Parts { ", messages cut in parts" } else { "" };
    format!("{blocks}{slots}, {access}{spread}{cut}")
}

/// A geometry in a few words.
fn how(call: &Call, protocol: Protocol) -> String {
    let plural =
        |number: u32, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
    format!(
        "{}, {} of {}, {}",
        plural(call.copies, "copy", "copies"),
        plural(call.slots, "slot", "slots"),
        size::show(call.slice_bytes.into()),
        protocol_name(protocol)
    )
}

/// Why something was not tried.
pub(crate) fn untried(why: &Untried) -> String {
    match why {
        Untried::All { micro_steps } => format!(
            "nothing is tried of {micro_steps} micro-steps, more than {QUICK}, unless a machine is named with --topology"
        ),
        Untried::Layouts { micro_steps } if *micro_steps > LAYOUTS => {
            format!("other layouts are not tried of {micro_steps} micro-steps, more than {LAYOUTS}")
        }
        Untried::Layouts { .. } => {
            "a call of this size takes long to follow: not all layouts are tried".to_string()
        }
        Untried::TooLarge { micro_steps } => {
            format!(
                "nothing is tried of {micro_steps} micro-steps of all ranks, whom the model follows: too many to be spelled out{}",
                if *micro_steps > LAYOUTS { format!(", more than {LAYOUTS}") } else { String::new() }
            )
        }
        Untried::Model(error) => error.to_string(),
        Untried::Given => "the steps of a plan are what they are".to_string(),
    }
}

/// Three digits and a unit.
pub(crate) fn time(us: f64) -> String {
    let (value, unit) = match us {
        us if us < 1000.0 => (us, "us"),
        us if us < 1e6 => (us / 1e3, "ms"),
        _ => (us / 1e6, "s"),
    };
    match value {
        v if v < 10.0 => format!("{v:.2} {unit}"),
        v if v < 100.0 => format!("{v:.1} {unit}"),
        v => format!("{v:.0} {unit}"),
    }
}
