//! V1: what is sent is received.
//!
//! In: a plan that V0 has passed. Out: for every reader of every channel and each section, as many receiving steps
//! as sending ones, the i-th pair of equal width. Decided here: widths agree step by step, not only in total. The
//! pairs of steps are then the messages: micro-step j of the one meets micro-step j of the other, and every later
//! rule (and executor) may follow messages step by step. The length class of a message is that of its value, which
//! V4 knows.

use std::ops::Range;

use super::links::{EndId, Links, ends};
use super::violation::{ChannelName, Report, Site, Violation};
use crate::display::plural;
use crate::ids::{ChannelId, StepId};
use crate::join::join;
use crate::plan::{Plan, Section};

/// What V1 finds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// More is sent than received, or less.
    #[error("{channel}: {sent} sending steps but {received} receiving steps in the {section:?}")]
    Unbalanced {
        /// The channel.
        channel: ChannelName,
        /// Where.
        section: Section,
        /// Steps that send.
        sent: usize,
        /// Steps that receive.
        received: usize,
    },
    /// A step sends more cells than the matching one receives, or fewer.
    #[error("{channel}: step {number} of the {section:?} sends {}, and {received} are received", plural((*sent).into(), "cell", "cells"))]
    Width {
        /// The channel.
        channel: ChannelName,
        /// Where.
        section: Section,
        /// The number of the pair among those of the section, from 0.
        number: usize,
        /// Cells sent.
        sent: u32,
        /// Cells received.
        received: u32,
    },
}

impl Fault {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Fault::Unbalanced { .. } => "plan::v1_unbalanced_channel",
            Fault::Width { .. } => "plan::v1_width_mismatch",
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Fault::Unbalanced { .. } => {
                "give every send its receive in the same section, e.g. a third `recv` for a third `send`"
            }
            Fault::Width { .. } => {
                "let the i-th send and the i-th receive move equally many cells, e.g. both 4"
            }
        }
    }
}

/// V1.
pub(super) fn check(plan: &Plan, links: &Links) -> Result<(), Vec<Violation>> {
    let (all, middle) = (plan.channels.len(), plan.channels.len() / 2);
    let alike = Alike {
        only_body: plan.blocks.iter().all(|block| block.prologue.is_empty() && block.epilogue.is_empty()),
        width: plan.steps.windows(2).all(|pair| pair[0].width == pair[1].width),
    };
    let some = |channels| some(plan, links, channels, alike);
    let (mut report, rest) = join(all > 1 << 14, || some(0..middle), || some(middle..all));
    report.append(rest);
    report.verdict()
}

/// What is so of all steps, and need not be looked up for both ends of each message: they lie far apart.
#[derive(Clone, Copy)]
struct Alike {
    /// They are in the body of their block.
    only_body: bool,
    /// They have one width.
    width: bool,
}

fn some(plan: &Plan, links: &Links, channels: Range<usize>, alike: Alike) -> Report {
    let mut report = Report::default();
    for channel in channels.map(ChannelId::new) {
        let sends = by_section(plan, links, links.senders(channel), alike.only_body);
        for end in ends(plan, channel) {
            let receives = by_section(plan, links, links.receivers(end), alike.only_body);
            for ((section, sends), receives) in Section::ALL.into_iter().zip(sends).zip(receives) {
                if alike.width && sends.len() == receives.len() {
                    continue;
                }
                pair(plan, channel, end, section, sends, receives, &mut report);
            }
        }
    }
    report
}

fn pair(
    plan: &Plan,
    channel: ChannelId,
    end: EndId,
    section: Section,
    sends: &[StepId],
    receives: &[StepId],
    report: &mut Report,
) {
    let name = || ChannelName::of(plan, channel, plan.readers[end.index()]);
    for (number, (&send, &receive)) in sends.iter().zip(receives).enumerate() {
        let [sent, received] = [send, receive].map(|step| plan.steps[step.index()].width);
        if sent != received {
            report.add(|| {
                let fault = Fault::Width { channel: name(), section, number, sent, received };
                let sites = vec![Site::of(plan, send, "sent by"), Site::of(plan, receive, "received by")];
                (super::Fault::Channels(fault), sites)
            });
            return;
        }
    }
    let (sent, received) = (sends.len(), receives.len());
    if sent != received {
        report.add(|| {
            let fault = Fault::Unbalanced { channel: name(), section, sent, received };
            let site = match (sends.get(received), receives.get(sent)) {
                (Some(&send), _) => Some(Site::of(plan, send, "sent, never received")),
                (_, Some(&receive)) => Some(Site::of(plan, receive, "waits for a message that nobody sends")),
                _ => None,
            };
            (super::Fault::Channels(fault), site.into_iter().collect())
        });
    }
}

/// Splits steps of one block (in program order) by section; `only_body`: no block has another one.
fn by_section<'a>(plan: &Plan, links: &Links, steps: &'a [StepId], only_body: bool) -> [&'a [StepId]; 3] {
    if only_body {
        return [&[], steps, &[]];
    }
    let Some(first) = steps.first() else { return [&[]; 3] };
    let block = &plan.blocks[links.block_of[first.index()].index()];
    let (prologue, rest) = steps.split_at(steps.partition_point(|step| step.0 < block.prologue.end));
    let (body, epilogue) = rest.split_at(rest.partition_point(|step| step.0 < block.body.end));
    [prologue, body, epilogue]
}
