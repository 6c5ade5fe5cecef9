//! How many slots channels get: as messages are fastest with, and no more than lets them trade.

extern crate plan as rcc_plan;

mod plans;

use plan::plan::{ChannelKind, Plan};
use plan::verify::{VerifiedPlan, trades};
use rcc_runtime::job::Geometry;

const USUAL: Geometry = Geometry { slots: 4, slot_bytes: 4096 };

/// Bytes of the slots that the busiest rank writes.
fn written(plan: &Plan, geometry: Geometry) -> u64 {
    let of = |rank: u32| {
        let channels = plan.channels.iter().filter(|channel| channel.kind == ChannelKind::Slots);
        let own = channels.filter(|channel| plan.blocks[channel.writer.index()].rank.0 == rank);
        own.count() as u64 * u64::from(plan.header.copies)
    };
    let most = (0..plan.header.ranks).map(of).max().unwrap();
    most * u64::from(geometry.slots) * u64::from(geometry.slot_bytes)
}

#[test]
fn where_messages_go_one_way_slots_are_more_than_a_cache_holds() {
    let plan = plans::ring(3);
    assert!(trades(&plan, u32::MAX).is_empty());
    // A rank for each core: twice a cache of 1 MiB. Three ranks on a core: together one.
    let alone = USUAL.roomy(&plan, 3);
    assert_eq!((written(&plan, alone), alone.slot_bytes), (2 << 20, USUAL.slot_bytes));
    assert_eq!(Geometry { slots: 4, slot_bytes: 16 << 10 }.roomy(&plan, 3).slots, 128);
    let crowded = written(&plan, USUAL.roomy(&plan, 1)) * 3;
    assert!(crowded <= 1 << 20 && crowded + 3 * 4096 > 1 << 20, "{crowded}");
    // Never fewer than before, and not without end.
    let large = Geometry { slots: 4, slot_bytes: 16 << 20 };
    assert_eq!(large.roomy(&plan, 3), large);
    assert_eq!(Geometry { slots: 4, slot_bytes: 64 }.roomy(&plan, 3).slots, 512);
}

#[test]
fn where_they_trade_there_are_the_fewest_that_let_them() {
    let all: Vec<VerifiedPlan> = vec![plans::exchange_in_blocks(), plans::ring(2), plans::multicast(3, 2)];
    let mut found = 0;
    for plan in &all {
        for slots in [1, 2, 4, 9] {
            let asked = Geometry { slots, ..USUAL };
            let fewest = (slots..=64).find(|&k| !trades(plan, k).is_empty());
            let Some(fewest) = fewest else { continue };
            found += 1;
            assert_eq!(asked.roomy(plan, 2).slots, fewest, "{} of {slots}", plan.header.algorithm);
        }
    }
    assert!(found >= 4, "{found}");
}
