//! Which channels trade slots: those of exchanges, and only where nobody can get stuck by it.

mod common;

use rcc_plan::builder::{PlanBuilder, get, local, put};
use rcc_plan::ids::ChannelId;
use rcc_plan::plan::{Plan, Role};
use rcc_plan::verify::trades;

const PAIR: [[ChannelId; 2]; 1] = [[ChannelId(0), ChannelId(1)]];

/// Rank 0 sends so many messages before it receives as many; rank 1 the other way round, or both at once.
fn ping_pong(messages: u32, at_once: bool, width: u32) -> Plan {
    let mut p = PlanBuilder::new("test", "test", &[2]);
    p.header().cells = messages * width;
    let entry = p.buffer("in", Role::Send, 1);
    let exit = p.buffer("out", Role::Recv, 1);
    let blocks = [p.block(0), p.block(1)];
    let channels = [p.channel(blocks[0], &[blocks[1]]), p.channel(blocks[1], &[blocks[0]])];
    for rank in 0..2 {
        let receives_first = rank == 1 && !at_once;
        for receives in [receives_first, !receives_first] {
            for message in 0..messages {
                let cell = message * width;
                match receives {
                    true => {
                        p.step(blocks[rank], &[get(channels[1 - rank])], &[local(exit, cell)]).width(width)
                    }
                    false => p.step(blocks[rank], &[local(entry, cell)], &[put(channels[rank])]).width(width),
                };
            }
        }
    }
    p.finish().unwrap().plan
}

#[test]
fn an_exchange_trades_with_as_many_slots_as_are_sent_ahead() {
    for at_once in [false, true] {
        let plan = ping_pong(3, at_once, 1);
        assert_eq!(trades(&plan, 2), [[ChannelId(0); 2]; 0], "at once: {at_once}");
        assert_eq!(trades(&plan, 3), PAIR, "at once: {at_once}");
        assert_eq!(trades(&plan, u32::MAX), PAIR, "at once: {at_once}");
    }
    assert_eq!(trades(&ping_pong(1, false, 1), 1), PAIR);
}

#[test]
fn what_is_no_exchange_of_single_cells_does_not_trade() {
    // Messages of several cells may be grouped in ways of their own.
    assert_eq!(trades(&ping_pong(3, true, 2), 8), [[ChannelId(0); 2]; 0]);
    // A ring of three goes one way; of two, both.
    assert!(trades(&common::plans::ring_allreduce(3), 8).is_empty());
    assert_eq!(trades(&common::plans::ring_allreduce(2), 8), PAIR);
}
