//! A plan as text, the `.coll` lines beside the steps.
//!
//! In: any plan, verified or not. Out: what `rcc show` prints: header, buffers, the promise in words, then rank by
//! rank each block's steps, as loops where they follow a rule. Same plan, same text. A rank that does what another one
//! does, turned round the world, is not written out again (`alike`), unless it is asked for by [`Show::only`]. Nothing in
//! the text can move a cursor: names and source lines come from files, so what does not print is written as an escape. Ids
//! that lead nowhere (in a plan that `verify` would refuse) are shown as `?`; such a plan has no loops.
//!
//! Places read as in the language: `data[3]` is a chunk of a one-block buffer, `input[2][1]` a chunk of block 2,
//! `data[0..4]` a run. Where an `inout` buffer appears on both sides, the side that holds the caller's values is
//! `entry data[3]`. `t` and `u` count the repeats of the loops around a step.

mod alike;
mod folded;
mod rules;
mod steps;

use std::fmt::{self, Write as _};

pub use self::folded::{ShowFolded, show_folded};
pub(crate) use self::steps::step_alone;
use crate::collective::BlockRef;
use crate::ids::{BufferId, RankId, SpanId};
use crate::plan::{Buffer, ChannelKind, Overlap, Plan, Presence, ProofStatus, Role};
use crate::schedule::Schedule;

/// A plan that prints itself.
#[derive(Debug, Clone, Copy)]
pub struct Show<'a> {
    plan: &'a Plan,
    only: &'a [RankId],
}

/// `plan` as text, through `Display`.
pub fn show(plan: &Plan) -> Show<'_> {
    Show { plan, only: &[] }
}

impl<'a> Show<'a> {
    /// Of the programs, those of some ranks only, each written out (none: all, those that are alike once).
    pub fn only(self, ranks: &'a [RankId]) -> Show<'a> {
        Show { only: ranks, ..self }
    }
}

/// How many groups of clauses are written out.
const MOST_CLAUSES: usize = 24;
/// How many operands of a promised reduction are written out.
const MOST_OPERANDS: usize = 8;

impl fmt::Display for Show<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header(f)?;
        self.buffers(f)?;
        self.promise(f)?;
        self.programs(f)
    }
}

impl Show<'_> {
    fn header(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        let header = &plan.header;
        let shape: Vec<_> = header.shape.iter().map(u32::to_string).collect();
        let ranks = plural(header.ranks.into(), "rank", "ranks");
        write!(f, "{}: {} on {ranks}", Clean(&header.algorithm), Clean(&header.collective))?;
        if shape.len() > 1 {
            write!(f, " ({})", shape.join("x"))?;
        }
        writeln!(f)?;
        if !header.params.is_empty() {
            let params: Vec<_> = header.params.iter().map(|(k, v)| format!("{} = {v}", Clean(k))).collect();
            writeln!(f, "  with       {}", params.join(", "))?;
        }
        writeln!(
            f,
            "  cells      {} per block, {}",
            header.cells,
            plural(header.copies.into(), "copy", "copies")
        )?;
        if header.schedule != Schedule::default() {
            writeln!(f, "  schedule   {}", header.schedule)?;
        }
        let micros: u64 = plan.steps.iter().map(|s| u64::from(s.width)).sum();
        let steps = plural(plan.steps.len() as u64, "step", "steps");
        let blocks = plural(plan.blocks.len() as u64, "block", "blocks");
        writeln!(f, "  program    {blocks}, {steps}, {micros} micro-steps")?;
        let tokens = plan.channels.iter().filter(|c| c.kind == ChannelKind::Counter).count();
        let several = plan.channels.iter().filter(|c| c.readers.len() > 1).count();
        write!(f, "  channels   {} of slots", plan.channels.len() - tokens)?;
        if tokens > 0 {
            write!(f, ", {tokens} of tokens")?;
        }
        if several > 0 {
            write!(f, "; {several} with several readers")?;
        }
        writeln!(f, "; at least {} each", plural(header.k_min.into(), "slot", "slots"))?;
        let forms = match (header.forms.disjoint, header.forms.same) {
            (true, true) => "in place and out of place",
            (true, false) => "out of place",
            (false, true) => "in place",
            (false, false) => "in no form",
        };
        let operators = match (header.serves_post, header.serves_pre) {
            (true, true) => "any operator",
            (false, true) => "any operator but avg",
            (true, false) => "any operator but premulsum",
            (false, false) => "any operator but avg and premulsum",
        };
        writeln!(f, "  serves     {forms}; {operators}")?;
        let proof = match header.proof {
            ProofStatus::AllRanks => "every rank was followed",
            ProofStatus::BySymmetry => "one rank of each symmetric set was followed",
            ProofStatus::None => "nothing",
        };
        writeln!(f, "  proved     {proof}")
    }

    fn buffers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        writeln!(f, "buffers")?;
        for (i, buffer) in plan.buffers.iter().enumerate() {
            let name = self.buffer(BufferId::new(i));
            match buffer.role {
                Role::Scratch => {
                    let cells = &plan.header.scratch_cells;
                    let most = cells.iter().copied().max().unwrap_or(0);
                    let least = cells.iter().copied().min().unwrap_or(0);
                    let range = if least == most { String::new() } else { format!("{least} to ") };
                    writeln!(
                        f,
                        "  {name:<10} working space, {range}{} per rank",
                        plural(most.into(), "cell", "cells")
                    )?;
                }
                Role::Send | Role::Recv => {
                    let role = if buffer.role == Role::Send { "read" } else { "written" };
                    let at = match buffer.at {
                        Presence::All => "at every rank".to_string(),
                        Presence::One(rank) => format!("at rank {}", rank.0),
                    };
                    let blocks = plural(buffer.blocks.into(), "block", "blocks");
                    writeln!(f, "  {name:<10} {role}, {blocks} {at}")?;
                }
            }
        }
        self.overlaps(f)
    }

    /// Overlaps alike at many ranks are one line.
    fn overlaps(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: Vec<(Overlap, Vec<u32>)> = Vec::new();
        for overlap in &self.plan.overlaps {
            let key = Overlap { rank: RankId(0), ..*overlap };
            match groups.iter().position(|(known, _)| *known == key) {
                Some(at) => groups[at].1.push(overlap.rank.0),
                None if groups.len() < MOST_CLAUSES => groups.push((key, vec![overlap.rank.0])),
                None => return writeln!(f, "  in place   {} overlaps", self.plan.overlaps.len()),
            }
        }
        for (o, ranks) in groups {
            let (left, right) =
                (self.cells(o.left, o.left_cell, o.cells), self.cells(o.right, o.right_cell, o.cells));
            writeln!(f, "  in place   {left} is {right} at {}", self.ranks(&ranks))?;
        }
        Ok(())
    }

    fn promise(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let promise = &self.plan.promise;
        writeln!(f, "promise")?;
        if promise.synchronised {
            writeln!(f, "  no rank leaves before all have entered")?;
        }
        // Neighbouring clauses that differ in the rank alone are one line.
        let mut groups: Vec<(BlockRef, u32, Vec<u32>)> = Vec::new();
        for clause in &promise.clauses {
            let place = BlockRef { rank: RankId(0), ..clause.place };
            match groups.last_mut() {
                Some((known, list, ranks)) if (*known, *list) == (place, clause.list) => {
                    ranks.push(clause.place.rank.0);
                }
                _ => groups.push((place, clause.list, vec![clause.place.rank.0])),
            }
        }
        for (place, list, ranks) in groups.iter().take(MOST_CLAUSES) {
            let place = self.block(place.buffer, place.block);
            writeln!(f, "  {place} at {} holds {}", self.ranks(ranks), self.list(*list))?;
        }
        if groups.len() > MOST_CLAUSES {
            writeln!(f, "  and {} more", groups.len() - MOST_CLAUSES)?;
        }
        Ok(())
    }

    /// An operand list: as one phrase if it is the same block at several ranks in rank order.
    fn list(&self, list: u32) -> String {
        let Some(list) = self.plan.promise.lists.get(list as usize) else { return "?".to_string() };
        let [first, ..] = list.as_slice() else { return "nothing".to_string() };
        let same = |b: &BlockRef| (b.buffer, b.block) == (first.buffer, first.block);
        let place = self.block(first.buffer, first.block);
        if list.len() == 1 {
            return format!("{place} of rank {}", first.rank.0);
        }
        if list.iter().all(same) && list.is_sorted_by_key(|b| b.rank) {
            let ranks: Vec<u32> = list.iter().map(|b| b.rank.0).collect();
            return format!("the reduction of {place} over {}", self.ranks(&ranks));
        }
        let mut text = "the reduction of ".to_string();
        for (i, b) in list.iter().take(MOST_OPERANDS).enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            let _ = write!(text, "{comma}{} of rank {}", self.block(b.buffer, b.block), b.rank.0);
        }
        if list.len() > MOST_OPERANDS {
            let _ = write!(text, " and {} more", list.len() - MOST_OPERANDS);
        }
        text
    }

    fn line(&self, span: SpanId) -> String {
        let spans = &self.plan.spans;
        let Some(found) = spans.spans.get(span.index()) else { return String::new() };
        let file = |i: u32| spans.files.get(i as usize).map_or("?", String::as_str);
        let mut text = format!("{}:{}  {}", Clean(file(found.file)), found.line, Clean(&found.text));
        if let Some(run) = found.parent.and_then(|p| spans.spans.get(p.index())) {
            let _ = write!(text, "  (run at {}:{})", Clean(file(run.file)), run.line);
        }
        text
    }

    fn buffer(&self, id: BufferId) -> String {
        let Some(buffer) = self.plan.buffers.get(id.index()) else { return "?".to_string() };
        let twin = |other: &Buffer| other.role == Role::Recv && other.name == buffer.name;
        let entry = buffer.role == Role::Send && self.plan.buffers.iter().any(twin);
        format!("{}{}", if entry { "entry " } else { "" }, Clean(&buffer.name))
    }

    fn block(&self, id: BufferId, block: u32) -> String {
        let one = self.plan.buffers.get(id.index()).is_some_and(|b| b.blocks == 1);
        let name = self.buffer(id);
        if one && block == 0 { name } else { format!("{name}[{block}]") }
    }

    /// A run of cells as the language writes it.
    fn cells(&self, id: BufferId, first: u32, width: u32) -> String {
        let name = self.buffer(id);
        let run = |from: u32, len: u32| match len {
            1 => from.to_string(),
            _ => format!("{from}..{}", u64::from(from) + u64::from(len)),
        };
        let k = self.plan.header.cells.max(1);
        let Some(buffer) = self.plan.buffers.get(id.index()) else {
            return format!("{name}[{}]", run(first, width));
        };
        if buffer.role == Role::Scratch {
            return format!("{name} {}", run(first, width));
        }
        let one = buffer.blocks == 1;
        let (block, cell) = (first / k, first % k);
        if cell == 0 && width.is_multiple_of(k) {
            let blocks = width / k;
            return if one && blocks == 1 && block == 0 {
                name
            } else {
                format!("{name}[{}]", run(block, blocks))
            };
        }
        if one {
            return format!("{name}[{}]", run(first, width));
        }
        if u64::from(cell) + u64::from(width) <= u64::from(k) {
            return format!("{name}[{block}][{}]", run(cell, width));
        }
        let last = first.saturating_add(width.saturating_sub(1));
        format!("{name}[{block}][{cell}] to {name}[{}][{}]", last / k, last % k)
    }

    /// `every rank`, `rank 3`, `ranks 0..4`, `ranks 1, 3, 4`, `rank 0 and 7 more`.
    fn ranks(&self, ranks: &[u32]) -> String {
        let consecutive = ranks.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        match *ranks {
            [] => "no rank".to_string(),
            [one] => format!("rank {one}"),
            [0, ..] if consecutive && ranks.len() == self.plan.header.ranks as usize => {
                "every rank".to_string()
            }
            [first, ..] if consecutive => format!("ranks {first}..{}", first as usize + ranks.len()),
            _ if ranks.len() <= MOST_OPERANDS => {
                let all: Vec<_> = ranks.iter().map(u32::to_string).collect();
                format!("ranks {}", all.join(", "))
            }
            [first, ..] => format!("rank {first} and {} more", ranks.len() - 1),
        }
    }
}

/// Text from a file: what does not print, or turns the direction of writing, as an escape.
struct Clean<'a>(&'a str);

impl fmt::Display for Clean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            let turns = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
            if c.is_control() || turns { write!(f, "{}", c.escape_unicode())? } else { f.write_char(c)? }
        }
        Ok(())
    }
}

/// `1 slot`, `2 slots`.
pub fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
