//! V0, blocks and channels: who there is and who talks to whom.
//!
//! In: a plan whose header is checked. Out: blocks in order of (rank, position) whose sections tile the steps in
//! the order prologue, body, epilogue; channels with one writer and at least one reader, each on its own rank, whose
//! ranges tile `Plan::readers` (so that an index into it names one end of one channel).

use super::{Fault, Faults};
use crate::display::plural;
use crate::ids::ChannelId;
use crate::plan::Section;

pub(super) fn check(faults: &mut Faults) {
    blocks(faults);
    channels(faults);
}

fn blocks(faults: &mut Faults) {
    let plan = faults.plan;
    let mut last = None;
    let mut next = 0;
    for (at, block) in plan.blocks.iter().enumerate() {
        let ranks = plan.header.ranks as usize;
        if faults.index(|| format!("the rank of block {at}"), u64::from(block.rank.0), ranks) {
            let expected = match last {
                Some((rank, position)) if rank == block.rank => Some(position + 1),
                Some((rank, _)) if rank > block.rank => None,
                _ => Some(0),
            };
            if expected != Some(block.position) {
                let (rank, position) = (block.rank.0, block.position);
                faults.add(|| Fault::Blocks {
                    what: format!("block {at} (rank {rank}, position {position}) is out of order"),
                });
            }
            last = Some((block.rank, block.position.min(u32::MAX - 1)));
        }
        for section in Section::ALL {
            let range = block.section(section);
            if range.start != next || range.end < range.start || range.end as usize > plan.steps.len() {
                let (start, end, steps) = (range.start, range.end, plan.steps.len());
                faults.add(|| Fault::Blocks {
                    what: format!(
                        "the {section:?} of block {at} is steps {start}..{end} of {steps}, not from step {next} on"
                    ),
                });
            }
            next = range.end;
        }
    }
    if next as usize != plan.steps.len() {
        let steps = plan.steps.len();
        faults.add(|| Fault::Blocks {
            what: format!("the blocks hold {next} of {}", plural(steps as u64, "step", "steps")),
        });
    }
}

fn channels(faults: &mut Faults) {
    let plan = faults.plan;
    let blocks = plan.blocks.len();
    for (at, &reader) in plan.readers.iter().enumerate() {
        faults.index(|| format!("reader {at}"), u64::from(reader.0), blocks);
    }
    let mut next = 0;
    let mut channel_of_rank = vec![u32::MAX; plan.header.ranks as usize];
    for (at, channel) in plan.channels.iter().enumerate() {
        faults.index(|| format!("the writer of channel {at}"), u64::from(channel.writer.0), blocks);
        let range = channel.readers.clone();
        let mut wrong = |what: String| {
            faults.add(|| Fault::Channel { channel: ChannelId(at as u32), what });
        };
        if range.start != next || range.end as usize > plan.readers.len() {
            wrong(format!("its readers {}..{} do not follow those before ({next})", range.start, range.end));
            return;
        }
        if range.end <= range.start {
            wrong("it has no reader".to_string());
            return;
        }
        next = range.end;
        for reader in plan.readers(channel) {
            let Some(rank) = plan.blocks.get(reader.index()).map(|block| block.rank) else { continue };
            if let Some(seen) = channel_of_rank.get_mut(rank.index())
                && std::mem::replace(seen, at as u32) == at as u32
            {
                wrong(format!("it has two readers on rank {}", rank.0));
            }
        }
    }
    if next as usize != plan.readers.len() {
        let readers = plan.readers.len();
        faults.add(|| Fault::Index {
            what: "the table of readers goes on after the last channel, which".to_string(),
            found: u64::from(next),
            len: readers as u64,
        });
    }
}
