//! The programs of the ranks as text.
//!
//! In: a plan. Out: a line for each step, its source line beside it; a line before each loop. Steps that are alike in
//! every word are one line, and ranks that are alike but for their place in the world are one line at the end.

use std::fmt::{self, Write as _};
use std::ops::Range;

use super::alike::Groups;
use super::{Show, rules};
use crate::ids::{BlockId, RankId, StepId};
use crate::plan::{Channel, ChannelKind, Operand as PlanOperand, Plan, Section};
use crate::roll::{self, Affine, Item, Operand, Step};

/// The column of the `.coll` line is at most this many characters to the right of the step.
const MOST_INDENT: usize = 88;

/// The loops around a step: how often each repeats, and by how many steps.
type Around = Vec<(u32, usize)>;

/// The most characters of a step that is told alone.
const MOST_ALONE: usize = 160;

/// What one step does, in a line of bounded length. Total, as long as the step and its block exist.
pub(crate) fn step_alone(plan: &Plan, block: BlockId, id: StepId) -> String {
    let show = super::show(plan);
    let [Item::Step(step)] = &show.plain(id.0..id.0 + 1)[..] else { return "?".to_string() };
    let text = show.step(step, block.index(), &Vec::new()).0;
    match text.char_indices().nth(MOST_ALONE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[derive(PartialEq)]
struct Row {
    /// The step's number; none for a loop.
    number: Number,
    text: String,
    line: String,
}

#[derive(PartialEq)]
enum Number {
    None,
    /// So many steps from one on.
    Run(usize, usize),
    Rule(String),
}

impl Show<'_> {
    pub(super) fn programs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        let in_order = roll::in_order(plan);
        let mut groups = Groups::new(plan);
        let mut first = 0;
        for blocks in plan.blocks.chunk_by(|a, b| a.rank == b.rank) {
            let ids = first..first + blocks.len();
            first = ids.end;
            let rank = blocks[0].rank;
            let written = if self.only.is_empty() {
                !in_order || !groups.join(rank, ids.clone())
            } else {
                self.only.contains(&rank)
            };
            if !written {
                continue;
            }
            writeln!(f)?;
            for block in ids {
                writeln!(f, "rank {} block {}", rank.0, plan.blocks[block].position)?;
                let program = in_order.then(|| roll::program(plan, BlockId::new(block)));
                for (at, section) in Section::ALL.into_iter().enumerate() {
                    let range = plan.blocks[block].section(section);
                    let items = match &program {
                        Some(program) => program.sections[at].clone(),
                        None => self.plain(range.clone()),
                    };
                    self.section(f, block, section, (range.start, &items))?;
                }
            }
        }
        groups.lines(self).iter().try_for_each(|line| write!(f, "\n{line}\n"))
    }

    /// Steps of which nothing is known, one by one.
    fn plain(&self, range: Range<u32>) -> Vec<Item> {
        let plan = self.plan;
        let end = range.end.min(plan.steps.len() as u32);
        let operand = |operand: &PlanOperand| match *operand {
            PlanOperand::Channel(channel) => Operand::Channel(Affine::constant(channel.0)),
            PlanOperand::Local { buffer, cell } => Operand::Local { buffer, cell: Affine::constant(cell) },
            PlanOperand::Peer { rank, buffer, cell } => {
                Operand::Peer { rank: Affine::constant(rank.0), buffer, cell: Affine::constant(cell) }
            }
        };
        let step = |id: u32| {
            let step = &plan.steps[id as usize];
            let (first, waits) = (step.operands as usize, step.waits as usize);
            let middle = first + usize::from(step.sources);
            let side = |range: Range<usize>| plan.operands.get(range).unwrap_or(&[]).iter().map(operand);
            let waits = plan.waits.get(waits..waits + usize::from(step.wait_count)).unwrap_or(&[]);
            Item::Step(Step {
                first: StepId(id),
                sources: side(first..middle).collect(),
                destinations: side(middle..middle + usize::from(step.destinations)).collect(),
                waits: waits.iter().map(|wait| Affine::constant(wait.0)).collect(),
            })
        };
        (range.start..end).map(step).collect()
    }

    fn section(
        &self,
        f: &mut fmt::Formatter<'_>,
        block: usize,
        section: Section,
        (start, items): (u32, &[Item]),
    ) -> fmt::Result {
        if items.is_empty() {
            return Ok(());
        }
        match section {
            Section::Prologue => writeln!(f, "  once, first")?,
            Section::Body => writeln!(f, "  for each slice")?,
            Section::Epilogue => writeln!(f, "  once, last")?,
        }
        let mut rows = Vec::new();
        self.rows(block, start, items, &mut Vec::new(), &mut rows);
        let width = rows.iter().map(|row| row.text.chars().count()).max().unwrap_or(0).min(MOST_INDENT);
        for Row { number, text, line } in rows {
            let number = match number {
                Number::None => String::new(),
                Number::Run(first, 1) => first.to_string(),
                Number::Run(first, count) => format!("{first}..{}", first + count),
                Number::Rule(rule) => rule,
            };
            let row = format!("  {number:>6}  {text:<width$}  {line}");
            writeln!(f, "{}", row.trim_end())?;
        }
        Ok(())
    }

    /// Appends the rows of items that stand in the loops `around`.
    fn rows(&self, block: usize, start: u32, items: &[Item], around: &mut Around, rows: &mut Vec<Row>) {
        let indent = "  ".repeat(around.len());
        for item in items {
            match item {
                Item::Step(step) => {
                    let (text, line) = self.step(step, block, around);
                    let number = number(step.first.0.saturating_sub(start) as usize, around);
                    push(rows, Row { number, text: format!("{indent}{text}"), line });
                }
                Item::Loop { count, body } => {
                    let steps = expanded(body);
                    if let ([Item::Step(step)], true) = (body.as_slice(), around.is_empty())
                        && fixed(step)
                    {
                        let (text, line) = self.step(step, block, around);
                        let number = Number::Run((step.first.0 - start) as usize, *count as usize);
                        push(rows, Row { number, text, line });
                        continue;
                    }
                    let name = rules::NAMES[around.len().min(rules::NAMES.len() - 1)];
                    let text = format!("{indent}for {name} in 0..{count}");
                    rows.push(Row { number: Number::None, text, line: String::new() });
                    around.push((*count, steps));
                    self.rows(block, start, body, around, rows);
                    around.pop();
                }
            }
        }
    }

    /// A step, and the line that it comes from.
    fn step(&self, step: &Step, block: usize, around: &Around) -> (String, String) {
        let flat = &self.plan.steps[step.first.index()];
        let own = self.plan.blocks[block].rank;
        let counts: Vec<u32> = around.iter().map(|&(count, _)| count).collect();
        let operands = |side: &[Operand], written, between: &str| -> String {
            let texts: Vec<_> =
                side.iter().map(|o| self.operand(o, flat.width, (own, written), &counts)).collect();
            texts.join(between)
        };
        let src = operands(&step.sources, false, " + ");
        let dst = operands(&step.destinations, true, ", ");
        let mut text = match (src.as_str(), dst.as_str()) {
            ("", "") => "nothing".to_string(),
            (_, "") => src,
            ("", _) => dst,
            _ => format!("{src} → {dst}"),
        };
        if flat.post {
            text.push_str("; avg divides here");
        }
        if flat.round_each && flat.sources > 2 {
            text.push_str("; each rounded");
        }
        for wait in &step.waits {
            let _ = write!(text, "; after {}", self.step_name(wait));
        }
        (text, self.line(flat.span))
    }

    /// A step of the same rank, as it is numbered in the text.
    fn step_name(&self, wait: &Affine) -> String {
        let first = wait.at(&[]);
        // Blocks lie in the order of their steps.
        let at = self.plan.blocks.partition_point(|b| i64::from(b.epilogue.end) <= first);
        let Some(block) = self.plan.blocks.get(at) else { return "?".to_string() };
        let within = |&s: &Section| {
            let range = block.section(s);
            (i64::from(range.start)..i64::from(range.end)).contains(&first)
        };
        let Some(section) = Section::ALL.into_iter().find(within) else { return "?".to_string() };
        let before = if section == Section::Prologue { "first " } else { "" };
        let number = rules::text(wait, -i64::from(block.section(section).start));
        format!("block {} step {before}{number}", block.position)
    }

    fn operand(
        &self,
        operand: &Operand,
        width: u32,
        (own, written): (RankId, bool),
        counts: &[u32],
    ) -> String {
        match operand {
            Operand::Local { buffer, cell } => self.place(*buffer, cell, width, counts),
            Operand::Peer { rank, buffer, cell } => {
                let cells = self.place(*buffer, cell, width, counts);
                format!("{cells} at rank {}", rules::text(rank, 0))
            }
            Operand::Channel(id) => self.message(id, own, written, counts),
        }
    }

    fn message(&self, id: &Affine, own: RankId, written: bool, counts: &[u32]) -> String {
        let plan = self.plan;
        let number = match id.fixed() {
            Some(id) => id.to_string(),
            None => format!("({})", rules::text(id, 0)),
        };
        let ids = rules::values(id, counts).into_iter();
        let channels: Option<Vec<&Channel>> = ids.map(|id| plan.channels.get(id as usize)).collect();
        let Some(channels) = channels else { return format!("ch{number} ?") };
        let [first, ..] = channels.as_slice() else { return format!("ch{number} ?") };
        let token = if first.kind == ChannelKind::Counter { "token " } else { "" };
        let rank = |block: BlockId| plan.blocks.get(block.index()).map_or(own, |b| b.rank).0;
        if !written {
            let ranks: Vec<u32> = channels.iter().map(|channel| rank(channel.writer)).collect();
            return format!("recv {token}ch{number} ← {}", self.rank_by_rule(&ranks, counts));
        }
        let readers = |channel: &Channel| -> Vec<u32> {
            let range = channel.readers.start as usize..channel.readers.end as usize;
            plan.readers.get(range).unwrap_or(&[]).iter().map(|&reader| rank(reader)).collect()
        };
        let all: Vec<Vec<u32>> = channels.iter().map(|channel| readers(channel)).collect();
        let to = if all.iter().all(|readers| *readers == all[0]) {
            self.ranks(&all[0])
        } else if all.iter().all(|readers| readers.len() == 1) {
            self.rank_by_rule(&all.concat(), counts)
        } else {
            "its readers".to_string()
        };
        format!("send {token}ch{number} → {to}")
    }

    /// Ranks, one for each repeat of the loops around.
    fn rank_by_rule(&self, ranks: &[u32], counts: &[u32]) -> String {
        if ranks.iter().all(|&rank| rank == ranks[0]) {
            return format!("rank {}", ranks[0]);
        }
        match roll::rule(ranks, self.plan.header.ranks) {
            Some(rule) if counts.len() == 1 => format!("rank {}", rules::text(&rule, 0)),
            _ => format!("{} in turn", self.ranks(ranks)),
        }
    }
}

/// Appends a row, or lengthens the last one.
fn push(rows: &mut Vec<Row>, row: Row) {
    if let (Some(last), Number::Run(next, more)) = (rows.last_mut(), &row.number)
        && let Number::Run(first, count) = &mut last.number
        && (*first + *count, &last.text, &last.line) == (*next, &row.text, &row.line)
    {
        *count += more;
        return;
    }
    rows.push(row);
}

/// The number of a step whose first instance has number `first`.
fn number(first: usize, around: &Around) -> Number {
    match around.as_slice() {
        [] => Number::Run(first, 1),
        [(count, 1)] => Number::Rule(format!("{first}..{}", first + *count as usize)),
        _ => {
            let mut rule = first.to_string();
            for ((_, steps), name) in around.iter().zip(rules::NAMES) {
                let times = if *steps == 1 { String::new() } else { steps.to_string() };
                let _ = write!(rule, "+{times}{name}");
            }
            Number::Rule(rule)
        }
    }
}

/// How many steps items are.
fn expanded(items: &[Item]) -> usize {
    let steps = |item: &Item| match item {
        Item::Step(_) => 1,
        Item::Loop { count, body } => *count as usize * expanded(body),
    };
    items.iter().map(steps).sum()
}

/// Whether a step is the same in all repeats.
fn fixed(step: &Step) -> bool {
    let mut operands = step.sources.iter().chain(&step.destinations);
    let operand = |operand: &Operand| match operand {
        Operand::Channel(number) | Operand::Local { cell: number, .. } => number.fixed().is_some(),
        Operand::Peer { rank, cell, .. } => rank.fixed().is_some() && cell.fixed().is_some(),
    };
    operands.all(operand) && step.waits.iter().all(|wait| wait.fixed().is_some())
}
