//! How deep the tree of some tokens can get, without building it.
//!
//! In: the tokens of one item. Out: the first token at which the tree would be deeper than the limit. The one hard
//! idea: the tree is built, compared, printed and dropped by recursion, so its depth must be bounded before there is
//! one. Depth comes from brackets and blocks, but also from operators (`1+1+1+…` leans to the left, one level each),
//! from `if … else if …`, and from `sum(…) sum(…) …`. So each open bracket keeps a bound for the expression now being
//! read in it: its operators, and the deepest bracket closed in it; what comes out is at most that sum.

use crate::token::{Kind, Token};

/// What is known of one open bracket.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Operators of the expression being read.
    operators: u32,
    /// The deepest bracket closed within it.
    deepest: u32,
    /// The deepest expression so far.
    best: u32,
    /// The bracket belongs to `sum(…)`, which goes on behind it.
    prefix: bool,
}

/// The index of the first token that makes the tree deeper than `limit`.
pub(crate) fn too_deep(tokens: &[Token], limit: u32) -> Option<usize> {
    let mut levels = vec![Level::default()];
    // Whether what was read last wants an operand behind it.
    let mut open = true;
    for (index, token) in tokens.iter().enumerate() {
        let kind = token.kind;
        let nested = levels.len() as u32;
        let Some(level) = levels.last_mut() else { break };
        if kind.opens() {
            let prefix = index > 0 && tokens[index - 1].kind == Kind::Sum;
            levels.push(Level { prefix, ..Level::default() });
            if nested + 1 > limit {
                return Some(index);
            }
            open = true;
        } else if kind.closes() {
            if nested > 1 {
                let depth = level.best.max(level.depth());
                open = level.prefix;
                levels.pop();
                if let Some(outer) = levels.last_mut() {
                    outer.deepest = outer.deepest.max(depth);
                }
            }
        } else if kind.is_operator() || matches!(kind, Kind::Then | Kind::Else | Kind::Sum) {
            if kind == Kind::Sum && !open {
                level.finish();
            }
            level.operators += 1;
            open = true;
        } else if kind == Kind::If {
            if !open {
                level.finish();
            }
            level.operators += 1;
            open = true;
        } else if kind.is_name() || matches!(kind, Kind::Number | Kind::True | Kind::False | Kind::SelfRank) {
            if !open {
                level.finish();
            }
            open = false;
        } else {
            level.finish();
            open = true;
        }
        if levels.last().is_some_and(|level| level.depth() > limit) {
            return Some(index);
        }
    }
    None
}

impl Level {
    fn depth(self) -> u32 {
        self.operators.saturating_add(self.deepest).saturating_add(1)
    }

    /// The expression is over; another one begins.
    fn finish(&mut self) {
        self.best = self.best.max(self.depth());
        self.operators = 0;
        self.deepest = 0;
    }
}
