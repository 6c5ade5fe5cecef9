//! Plans written by hand, for tests.

use rcc_plan::collective::Promise;
use rcc_plan::plan::{Buffer, Forms, Header, Plan, Presence, ProofStatus, Role, SpanTable};

/// A plan without steps.
pub(crate) fn empty(ranks: u32) -> Plan {
    Plan {
        header: Header {
            algorithm: "test".to_string(),
            collective: "test".to_string(),
            params: Vec::new(),
            shape: vec![ranks],
            ranks,
            cells: 1,
            copies: 1,
            forms: Forms { disjoint: true, same: false },
            serves_post: false,
            scratch_cells: vec![0; ranks as usize],
            k_min: 1,
            proof: ProofStatus::None,
        },
        buffers: Vec::new(),
        overlaps: Vec::new(),
        channels: Vec::new(),
        readers: Vec::new(),
        blocks: Vec::new(),
        steps: Vec::new(),
        operands: Vec::new(),
        waits: Vec::new(),
        witnesses: Vec::new(),
        promise: Promise::default(),
        spans: SpanTable::default(),
    }
}

/// A buffer at all ranks.
pub(crate) fn buffer(name: &str, role: Role, blocks: u32) -> Buffer {
    Buffer { name: name.to_string(), role, blocks, at: Presence::All }
}
