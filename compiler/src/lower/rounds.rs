//! The order in which the walk meets the moves: by round of data flow, not by line.
//!
//! In: the moves. Out: groups of moves (one move, or one `step`), sorted so that each comes after those it depends on
//! and independent flows keep abreast. Without it a ring written chunk by chunk would send its chunks one after the
//! other, since a channel carries messages in the order of the walk. The round of a group is the length of the longest
//! chain of groups that must come before it: writers of what it reads, readers and writers of what it overwrites.

use std::ops::Range;

use super::events::Walk;
use super::order::counting_sort;
use crate::trace::MoveId;

/// Groups of neighbouring moves, sorted by round; within a round in the order written.
pub(super) fn rounds(walk: &Walk<'_>) -> Vec<Range<usize>> {
    let places = walk.graph.places.len();
    let (mut written, mut read) = (vec![0u32; places], vec![0u32; places]);
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut round: Vec<u32> = Vec::new();
    let moves = &walk.trace.moves;
    let mut start = 0;
    while let Some(first) = moves.get(start) {
        let same_step =
            moves[start..].iter().take_while(|mv| first.step != 0 && mv.step == first.step).count();
        let group = start..start + same_step.max(1);
        let cells = || group.clone().flat_map(|index| walk.cells(MoveId(index as u32)));
        let mut before = 0;
        for cell in cells() {
            let to = walk.written_place(cell) as usize;
            before = before.max(written[to]).max(read[to]);
            for (place, _) in walk.source_places(cell) {
                before = before.max(written[place as usize]);
            }
        }
        for cell in cells() {
            written[walk.written_place(cell) as usize] = before + 1;
            for (place, _) in walk.source_places(cell) {
                let latest = &mut read[place as usize];
                *latest = (*latest).max(before + 1);
            }
        }
        start = group.end;
        groups.push(group);
        round.push(before);
    }
    let sorted = counting_sort(0..groups.len() as u32, |group| round[group as usize]);
    sorted.into_iter().map(|group| groups[group as usize].clone()).collect()
}
