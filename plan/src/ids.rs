//! Typed indices: a rank is never mistaken for a block, a channel or a cell.
//!
//! In: nothing. Out: `u32` newtypes with `index()` for flat arrays. An id is only meaningful within the plan that
//! it came from; `verify` (V0) checks every id of a loaded plan once, so that later code may index freely.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index of a flat array.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The id that stands for index `i`; `i` must fit 32 bits, as every limit here ensures.
            #[inline]
            pub fn new(i: usize) -> $name {
                debug_assert!(u32::try_from(i).is_ok());
                $name(i as u32)
            }
        }
    };
}

id!(
    /// A virtual rank `0..ranks`; a communicator binds virtual to real ranks by a permutation.
    RankId
);
id!(
    /// A buffer of the plan (`Plan::buffers`).
    BufferId
);
id!(
    /// A block: a sequential thread of control of one rank (`Plan::blocks`).
    BlockId
);
id!(
    /// A channel (`Plan::channels`).
    ChannelId
);
id!(
    /// A step (`Plan::steps`), numbered through the whole plan.
    StepId
);
id!(
    /// A source position (`Plan::spans`).
    SpanId
);
