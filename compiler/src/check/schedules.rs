//! Schedules: for which algorithm, what they say, and which sizes a `when` can meet.
//!
//! In: `ast::Schedule`s of all units. Out: a [`Schedule`] for each algorithm that has one, and the blocks of its labels,
//! whose expressions are checked with the body of the algorithm (`labels`). The one hard idea: sizes are sets of
//! ranges of bytes, so "can never match" is a question about sets: all that a `when` means is taken before.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use grammar::ast::{self, BinaryOp, ClauseKind, Item};
use grammar::span::Span;
use plan::schedule::{Protocol, Transport, Wire};
use rustc_hash::FxHashMap;

use super::Checker;
use super::checked::{AlgorithmId, Clauses, Schedule, When};
use super::error::{ErrorKind, ScheduleWord};

/// The most channels: each is a copy of the whole program.
pub const MOST_CHANNELS: u32 = 256;
/// The most threads of a block: what one block of a GPU may have.
pub const MOST_THREADS: u32 = 1024;
/// The least bytes of a slice: a line of memory.
pub const LEAST_PIPELINE: u32 = 64;
/// How many `when`s that never match are told of one schedule.
const SHOWN: usize = 20;

/// The most bytes of a slice.
pub const MOST_PIPELINE: u32 = 1 << 30;

const PROTOCOLS: [(&str, Protocol); 4] = [
    ("simple", Protocol::Simple),
    ("ll", Protocol::Ll),
    ("ll128", Protocol::Ll128),
    ("auto", Protocol::Auto),
];
const TRANSPORTS: [(&str, Transport); 4] = [
    ("nvlink", Transport::Nvlink),
    ("shared", Transport::Shared),
    ("rdma", Transport::Rdma),
    ("tcp", Transport::Tcp),
];
const WIRES: [(&str, Wire); 3] = [("bf16", Wire::Bf16), ("f16", Wire::F16), ("fp8", Wire::Fp8)];
const UNITS: [(&str, u32); 5] = [("B", 0), ("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];

/// A schedule and what it says of labels.
pub(crate) struct Found<'a> {
    /// The unit it stands in.
    pub unit: usize,
    /// How far it goes before others: a standard text's, the user's, one that replaces.
    rank: u8,
    span: Span,
    /// Of every block: which `when` it stands in (0: none, 1: the first), and the block.
    pub labels: Vec<(usize, &'a ast::LabelBlock)>,
    /// Of every label: its blocks in `labels`.
    pub by_label: FxHashMap<&'a str, Vec<u32>>,
}

impl<'a> Checker<'a> {
    /// Checks all schedules; `replacing` is the unit whose schedules go before all others.
    pub(crate) fn schedules(&mut self, replacing: Option<usize>) {
        self.schedules.resize_with(self.program.algorithms.len(), || None);
        let units = self.units;
        for (unit, u) in units.iter().enumerate() {
            let rank = if replacing == Some(unit) { 2 } else { u8::from(u.module.is_none()) };
            for item in &u.ast.items {
                if let Item::Schedule(item) = item {
                    self.schedule(unit, rank, replacing, item);
                }
            }
        }
    }

    fn schedule(&mut self, unit: usize, rank: u8, replacing: Option<usize>, item: &'a ast::Schedule) {
        let id = self.scheduled(unit, replacing, &item.algorithm);
        let mut labels = Vec::new();
        let mut whens: Vec<When> = Vec::new();
        let mut spans = Spans::default();
        let outside = self.clauses(&item.clauses, &mut spans, 0, &mut labels);
        let mut taken = Taken::default();
        let mut never = 0;
        for clause in &item.clauses {
            let ClauseKind::When(when) = &clause.kind else { continue };
            let index = whens.len() + 1;
            let mut inner = Spans::default();
            let clauses = self.clauses(&when.clauses, &mut inner, index, &mut labels);
            let text = format!("when size {} {}", sign(when.op), size_text(&when.size));
            let sizes = self.size(&when.size).map(|bytes| sizes(when.op, bytes));
            if let Some(sizes) = &sizes {
                if sizes.iter().all(|range| taken.holds(range)) {
                    let earlier = whens.iter().find(|w| !sizes.is_empty() && covers(&w.sizes, sizes));
                    let earlier = earlier.map(|w| Span { end: w.span.start + w.text.len() as u32, ..w.span });
                    let header = Span { end: when.size.span.end, ..clause.span };
                    // Told for a few; each looks for the one to blame.
                    if never < SHOWN {
                        self.error(header, ErrorKind::NeverMatches { earlier, sizes: !sizes.is_empty() });
                    }
                    never += 1;
                }
                sizes.iter().for_each(|range| taken.add(range));
            }
            // Together with what stands outside, unless that is wrong by itself.
            self.transports(&clauses.over(&outside), &inner.over(&spans), Some(&spans));
            whens.push(When { text, span: clause.span, sizes: sizes.unwrap_or_default(), clauses });
        }
        self.transports(&outside, &spans, None);
        let Some(id) = id else { return };
        let mut by_label: FxHashMap<&str, Vec<u32>> = FxHashMap::default();
        for (i, (_, block)) in labels.iter().enumerate() {
            by_label.entry(block.label.name.as_str()).or_default().push(i as u32);
        }
        let found = Found { unit, rank, span: item.algorithm.span, labels, by_label };
        let known = self.schedules[id.index()].as_ref().map(|known| (known.rank, known.span));
        if let Some((other, first)) = known {
            if other == rank {
                let name = self.program.algorithm(id).name.clone();
                self.error(item.algorithm.span, ErrorKind::ScheduleTwice { name, first });
            }
            if other >= rank {
                return;
            }
        }
        self.schedules[id.index()] = Some(found);
        let file = self.units[unit].file;
        let schedule = Schedule { file, span: item.span, outside, whens };
        self.program.algorithms[id.index()].schedule = Some(schedule);
    }

    /// The algorithm that a schedule is for. One in a text of its own speaks of the program that it is given for.
    fn scheduled(&mut self, unit: usize, replacing: Option<usize>, path: &ast::Path) -> Option<AlgorithmId> {
        if let (true, [name]) = (replacing == Some(unit), path.segments.as_slice()) {
            let units = self.units;
            let user = |&other: &usize| units[other].module.is_none() && other != unit;
            let mut users = (0..units.len()).filter(user);
            if let Some(id) = users.find_map(|other| self.own_algorithm(other, &name.name)) {
                return Some(id);
            }
        }
        self.algorithm_of(unit, "", path)
    }

    /// The clauses of one level; label blocks are put into `labels`, `when`s left to the caller.
    fn clauses(
        &mut self,
        list: &'a [ast::ScheduleClause],
        spans: &mut Spans,
        level: usize,
        labels: &mut Vec<(usize, &'a ast::LabelBlock)>,
    ) -> Clauses {
        let mut said = Clauses::default();
        let mut blocks: FxHashMap<&str, Span> = FxHashMap::default();
        for clause in list {
            let span = clause.span;
            let (name, first) = match &clause.kind {
                ClauseKind::Channels(_) => ("channels", &mut spans.channels),
                ClauseKind::Protocol(_) => ("protocol", &mut spans.protocol),
                ClauseKind::Pipeline(_) => ("pipeline", &mut spans.pipeline),
                ClauseKind::Threads(_) => ("threads", &mut spans.threads),
                ClauseKind::Prefer(_) => ("transport prefer", &mut spans.prefer),
                ClauseKind::Avoid(_) => ("transport avoid", &mut spans.avoid),
                ClauseKind::ViaSwitch => ("via switch", &mut spans.via),
                ClauseKind::Wire(_) => ("wire", &mut spans.wire),
                ClauseKind::When(_) => {
                    if level > 0 {
                        self.error(span, ErrorKind::NestedWhen);
                    }
                    continue;
                }
                ClauseKind::Label(block) => {
                    let name = block.label.name.as_str();
                    match blocks.get(name) {
                        Some(&first) => {
                            let kind = ErrorKind::ClauseTwice { clause: format!("'{name}"), first };
                            self.error(block.label.span, kind);
                        }
                        None => {
                            blocks.insert(name, block.label.span);
                            self.label_block(block);
                            labels.push((level, block));
                            said.labels.push(name.to_owned());
                        }
                    }
                    continue;
                }
            };
            if let Some(first) = *first {
                self.error(span, ErrorKind::ClauseTwice { clause: name.to_owned(), first });
                continue;
            }
            *first = Some(span);
            match &clause.kind {
                ClauseKind::Channels(count) => said.channels = self.number(count, "channels", MOST_CHANNELS),
                ClauseKind::Threads(count) => said.threads = self.number(count, "threads", MOST_THREADS),
                ClauseKind::Pipeline(size) => said.pipeline = self.slice(size),
                ClauseKind::Protocol(word) => {
                    said.protocol = self.word(word, ScheduleWord::Protocol, &PROTOCOLS);
                }
                ClauseKind::Wire(word) => said.wire = self.word(word, ScheduleWord::Wire, &WIRES),
                ClauseKind::Prefer(words) => said.prefer = Some(self.transport_list(words)),
                ClauseKind::Avoid(words) => said.avoid = Some(self.transport_list(words)),
                ClauseKind::ViaSwitch => said.via_switch = true,
                ClauseKind::When(_) | ClauseKind::Label(_) => {}
            }
        }
        said
    }

    fn label_block(&mut self, block: &ast::LabelBlock) {
        match &block.channels[..] {
            [] => {
                let name = block.label.name.clone();
                self.error(block.label.span, ErrorKind::LabelSaysNothing { name });
            }
            [(_, first), rest @ ..] => {
                for &(_, span) in rest {
                    let clause = "channel".to_owned();
                    self.error(span, ErrorKind::ClauseTwice { clause, first: *first });
                }
            }
        }
    }

    fn transport_list(&mut self, words: &[ast::Ident]) -> Vec<Transport> {
        let mut list: Vec<Transport> = Vec::new();
        let mut spans: Vec<Span> = Vec::new();
        for word in words {
            let Some(one) = self.word(word, ScheduleWord::Transport, &TRANSPORTS) else { continue };
            if let Some(at) = list.iter().position(|&known| known == one) {
                let kind = ErrorKind::ClauseTwice { clause: word.name.clone(), first: spans[at] };
                self.error(word.span, kind);
                continue;
            }
            list.push(one);
            spans.push(word.span);
        }
        list
    }

    /// Refuses what is both preferred and avoided, and what leaves none. `outside`: the clauses around a `when`; what is
    /// wrong with those alone is told there.
    fn transports(&mut self, said: &Clauses, spans: &Spans, outside: Option<&Spans>) {
        let own = |span: Option<Span>, outer: fn(&Spans) -> Option<Span>| {
            span.filter(|_| outside.is_none_or(|outside| outer(outside) != span))
        };
        let (prefer, avoid) = (own(spans.prefer, |s| s.prefer), own(spans.avoid, |s| s.avoid));
        let Some(at) = avoid.or(prefer) else { return };
        let (preferred, avoided) =
            (said.prefer.as_deref().unwrap_or_default(), said.avoid.as_deref().unwrap_or_default());
        if let Some(both) = preferred.iter().find(|one| avoided.contains(one)) {
            let other = if avoid.is_some() { spans.prefer } else { spans.avoid };
            let transport = both.name().to_owned();
            self.error(at, ErrorKind::TransportClash { transport, other: other.unwrap_or(at) });
        } else if avoid.is_some() && avoided.len() == TRANSPORTS.len() {
            self.error(at, ErrorKind::NoTransport);
        }
    }

    fn number(&mut self, number: &ast::Number, clause: &'static str, most: u32) -> Option<u32> {
        let value = u32::try_from(number.value).ok().filter(|value| (1..=most).contains(value));
        if value.is_none() {
            let small = number.value < 1;
            let limit = if small { 1 } else { most }.to_string();
            let value = number.value.to_string();
            self.error(number.span, ErrorKind::ScheduleNumber { clause, value, limit, small });
        }
        value
    }

    fn slice(&mut self, size: &ast::Size) -> Option<u32> {
        let bytes = self.size(size)?;
        let slice = u32::try_from(bytes).ok();
        let slice = slice.filter(|slice| (LEAST_PIPELINE..=MOST_PIPELINE).contains(slice));
        if slice.is_none() {
            let small = bytes < u64::from(LEAST_PIPELINE);
            let limit = if small { "64 bytes" } else { "1 GiB" }.to_owned();
            let value = size_text(size);
            self.error(size.span, ErrorKind::ScheduleNumber { clause: "pipeline", value, limit, small });
        }
        slice
    }

    /// A size in bytes.
    fn size(&mut self, size: &ast::Size) -> Option<u64> {
        let shift = match &size.unit {
            Some(unit) => self.word(unit, ScheduleWord::Unit, &UNITS)?,
            None => 0,
        };
        let bytes = u64::try_from(size.number.value).ok().and_then(|number| number.checked_mul(1 << shift));
        if bytes.is_none() {
            let small = size.number.value < 0;
            let (value, limit) = (size_text(size), if small { "0" } else { "16 EiB" }.to_owned());
            self.error(size.span, ErrorKind::ScheduleNumber { clause: "size", value, limit, small });
        }
        bytes
    }

    /// What a word of a schedule means, or an error.
    fn word<T: Copy>(&mut self, word: &ast::Ident, what: ScheduleWord, known: &[(&str, T)]) -> Option<T> {
        let found = known.iter().find(|(name, _)| *name == word.name);
        if found.is_none() {
            let names = known.iter().map(|(name, _)| *name);
            let lower = word.name.to_ascii_lowercase();
            // `KB`, `kib`, `LL128`
            let alike = |name: &&str| {
                let name = name.to_ascii_lowercase();
                name == lower || name.replace('i', "") == lower || name.trim_end_matches("ib") == lower
            };
            let nearest = names.clone().find(alike).map(str::to_owned);
            let nearest = nearest.or_else(|| self.nearest(&word.name, names.clone()).pop());
            let known = names.map(str::to_owned).collect();
            self.error(word.span, ErrorKind::UnknownWord { what, word: word.name.clone(), nearest, known });
        }
        found.map(|&(_, value)| value)
    }
}

/// Where the clauses of one level stand.
#[derive(Debug, Clone, Copy, Default)]
struct Spans {
    channels: Option<Span>,
    protocol: Option<Span>,
    pipeline: Option<Span>,
    threads: Option<Span>,
    prefer: Option<Span>,
    avoid: Option<Span>,
    via: Option<Span>,
    wire: Option<Span>,
}

impl Spans {
    /// As [`Clauses::over`], as far as `transports` asks.
    fn over(&self, outside: &Spans) -> Spans {
        Spans { prefer: self.prefer.or(outside.prefer), avoid: self.avoid.or(outside.avoid), ..*self }
    }
}

/// The sizes for which `size OP bytes` holds.
fn sizes(op: BinaryOp, bytes: u64) -> Vec<RangeInclusive<u64>> {
    let below = |end: u64| end.checked_sub(1).map(|last| 0..=last);
    let above = |end: u64| end.checked_add(1).map(|first| first..=u64::MAX);
    match op {
        BinaryOp::Lt => below(bytes).into_iter().collect(),
        BinaryOp::Le => vec![0..=bytes],
        BinaryOp::Gt => above(bytes).into_iter().collect(),
        BinaryOp::Ge => vec![bytes..=u64::MAX],
        BinaryOp::Ne => below(bytes).into_iter().chain(above(bytes)).collect(),
        // The grammar takes comparisons only.
        _ => vec![bytes..=bytes],
    }
}

/// Whether each of `inner` lies in one of `outer`; what a comparison holds for is never split.
fn covers(outer: &[RangeInclusive<u64>], inner: &[RangeInclusive<u64>]) -> bool {
    inner.iter().all(|i| outer.iter().any(|o| o.start() <= i.start() && i.end() <= o.end()))
}

/// A set of sizes: ranges by their start, which neither overlap nor touch.
#[derive(Debug, Default)]
struct Taken(BTreeMap<u64, u64>);

impl Taken {
    /// Whether all of `range` is in it.
    fn holds(&self, range: &RangeInclusive<u64>) -> bool {
        let before = self.0.range(..=*range.start()).next_back();
        before.is_some_and(|(_, end)| range.end() <= end)
    }

    fn add(&mut self, range: &RangeInclusive<u64>) {
        let (mut start, mut end) = range.clone().into_inner();
        // Those that overlap it or touch it begin at most one behind its end.
        while let Some((&first, &last)) = self.0.range(..=end.saturating_add(1)).next_back() {
            if last.saturating_add(1) < start {
                break;
            }
            self.0.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.0.insert(start, end);
    }
}

/// `64 KiB`, as written.
fn size_text(size: &ast::Size) -> String {
    match &size.unit {
        Some(unit) => format!("{} {}", size.number.value, unit.name),
        None => size.number.value.to_string(),
    }
}

fn sign(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::Ne => "!=",
        _ => "==",
    }
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use grammar::ast::BinaryOp;

    use super::{Taken, covers, sizes};

    fn holds(op: BinaryOp, size: u64, bytes: u64) -> bool {
        match op {
            BinaryOp::Lt => size < bytes,
            BinaryOp::Le => size <= bytes,
            BinaryOp::Gt => size > bytes,
            BinaryOp::Ge => size >= bytes,
            BinaryOp::Ne => size != bytes,
            _ => size == bytes,
        }
    }

    const OPS: [BinaryOp; 6] =
        [BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge, BinaryOp::Ne, BinaryOp::Eq];
    const EDGES: [u64; 8] = [0, 1, 2, 3, 4, u64::MAX - 2, u64::MAX - 1, u64::MAX];

    fn within(ranges: &[RangeInclusive<u64>], size: u64) -> bool {
        ranges.iter().any(|range| range.contains(&size))
    }

    #[test]
    fn ranges_hold_what_comparisons_hold() {
        for op in OPS {
            for bytes in EDGES {
                for size in EDGES {
                    assert_eq!(
                        within(&sizes(op, bytes), size),
                        holds(op, size, bytes),
                        "{size} {op:?} {bytes}"
                    );
                }
            }
        }
    }

    /// Every pair and every triple of comparisons, against a look at each size.
    #[test]
    fn what_is_taken_is_what_some_comparison_holds_for() {
        let all = |op, bytes| EDGES.into_iter().filter(move |&size| holds(op, size, bytes));
        for op in OPS {
            for other in OPS {
                for third in OPS {
                    let mut taken = Taken::default();
                    for range in [sizes(other, 2), sizes(third, u64::MAX - 1)].concat() {
                        taken.add(&range);
                    }
                    for bytes in EDGES {
                        let found = sizes(op, bytes).iter().all(|range| taken.holds(range));
                        let within = |size| holds(other, size, 2) || holds(third, size, u64::MAX - 1);
                        // Sizes between the edges are all alike, and 5 stands for them.
                        let between = !holds(op, 5, bytes) || within(5);
                        let wanted = all(op, bytes).all(within) && between;
                        assert_eq!(found, wanted, "{op:?} {bytes} {other:?} {third:?}");
                    }
                }
                for bytes in EDGES {
                    let found = covers(&sizes(other, 2), &sizes(op, bytes));
                    let wanted = all(op, bytes).all(|size| holds(other, size, 2));
                    let between = !holds(op, 5, bytes) || holds(other, 5, 2);
                    assert_eq!(found, wanted && between, "{op:?} {bytes} in {other:?} 2");
                }
            }
        }
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let mut taken = Taken::default();
        for range in [10..=19, 30..=39, 0..=4, 40..=40, 20..=29, 5..=8] {
            taken.add(&range);
        }
        assert_eq!(taken.0.into_iter().collect::<Vec<_>>(), [(0, 8), (10, 40)]);
        let mut all = Taken::default();
        all.add(&(0..=u64::MAX));
        all.add(&(3..=u64::MAX));
        assert!(all.holds(&(0..=u64::MAX)) && all.0.len() == 1);
    }
}
