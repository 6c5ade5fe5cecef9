//! Places, regions, ranks, and the right sides of moves and promises.
//!
//! In: `ast::Place` and friends, and what they are used for. Out: `checked::Place`, or `None` after an error. Whether
//! one index means a chunk or a block is decided here, by how the buffer is declared.

use grammar::ast::{self, Coord, Index, Mode};
use grammar::span::Span;

use super::Checker;
use super::checked::{Cut, Place, Ranks, Region, Source};
use super::error::{ErrorKind, NameKind, SignalMisuse};
use super::exprs::entity_kind;
use super::scope::{Entity, Scope};

/// The buffer index that stands for `signal`.
pub(crate) const SIGNAL: u32 = u32::MAX;

/// What a place is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Read by a move.
    Read,
    /// An operand of a reduction.
    Operand,
    /// Written by a copy: may be at many ranks.
    Copied,
    /// Written by `+=` or a reduction.
    Combined,
    /// The left side of an `ensures`.
    Exit,
    /// The right side of an `ensures`.
    Entry,
    /// A side of `inplace`.
    Promise,
    /// Bound to a callee's buffer.
    Bound,
}

impl Checker<'_> {
    /// A place.
    pub(crate) fn place(&mut self, scope: &mut Scope, place: &ast::Place, purpose: Use) -> Option<Place> {
        let region = self.region(scope, &place.region, purpose);
        let ranks = self.ranks(scope, &place.rank);
        let (region, ranks) = (region?, ranks?);
        let many = match purpose {
            Use::Copied | Use::Exit => true,
            Use::Read | Use::Operand | Use::Combined | Use::Entry | Use::Promise | Use::Bound => false,
        };
        if ranks.many() && !many {
            let destination = purpose == Use::Combined;
            self.error(ranks_span(&place.rank), ErrorKind::ManyRanks { destination });
            return None;
        }
        Some(Place { region, ranks, span: place.span })
    }

    /// A part of a buffer.
    pub(crate) fn region(&mut self, scope: &mut Scope, region: &ast::Region, purpose: Use) -> Option<Region> {
        let name = &region.buffer;
        let info = match scope.get(&name.name) {
            Some((Entity::Buffer(index), _)) => Some((index, scope.buffers[index as usize].clone())),
            None if name.name == "signal" => None,
            other => {
                let is = other.map(|(entity, _)| entity_kind(entity));
                let nearest = {
                    let known = scope.buffers.iter().map(|b| b.name.as_str()).chain(["signal"]);
                    self.nearest(&name.name, known)
                };
                let (kind, text) = (NameKind::Buffer, name.name.clone());
                let kind = ErrorKind::UnknownName { kind, name: text, nearest, is, of: None };
                self.error(name.span, kind);
                self.skip_indices(scope, &region.indices);
                return None;
            }
        };
        let Some((buffer, info)) = info else {
            return self.signal(scope, region, purpose);
        };
        if info.mode == Some(Mode::In) && matches!(purpose, Use::Copied | Use::Combined) {
            let (buffer, declared) = (info.name, info.span);
            self.error(region.span, ErrorKind::InWritten { buffer, declared, bound_to: None });
            self.skip_indices(scope, &region.indices);
            return None;
        }
        let side = match purpose {
            Use::Exit if info.mode == Some(Mode::In) => Some(true),
            Use::Entry if info.mode == Some(Mode::Out) => Some(false),
            _ => None,
        };
        if let Some(left) = side {
            let (buffer, declared) = (info.name, info.span);
            self.error(region.span, ErrorKind::EnsuresSide { buffer, declared, left });
            self.skip_indices(scope, &region.indices);
            return None;
        }
        // A promise speaks of blocks: how they are cut is the algorithm's business.
        let promise = matches!(purpose, Use::Exit | Use::Entry | Use::Promise);
        let most = usize::from(info.blocks) + usize::from(!promise);
        if region.indices.len() > most {
            let found = region.indices.len();
            let kind =
                ErrorKind::IndexCount { buffer: info.name, blocks: info.blocks, declared: info.span, found };
            self.error(region.span, kind);
            self.skip_indices(scope, &region.indices);
            return None;
        }
        let cut = match (info.blocks, region.indices.as_slice()) {
            (_, []) => Cut::All,
            (false, [Index::One(chunk)]) => Cut::Chunk(self.int(scope, chunk)),
            (false, [Index::Range { from, to, .. }]) => {
                Cut::Chunks(self.int(scope, from), self.int(scope, to))
            }
            (true, [Index::One(block)]) => Cut::Block(self.int(scope, block)),
            (true, [Index::Range { from, to, .. }]) => {
                Cut::Blocks(self.int(scope, from), self.int(scope, to))
            }
            (true, [Index::One(block), Index::One(chunk)]) => {
                Cut::BlockChunk(self.int(scope, block), self.int(scope, chunk))
            }
            (true, [Index::One(block), Index::Range { from, to, .. }]) => {
                Cut::BlockChunks(self.int(scope, block), self.int(scope, from), self.int(scope, to))
            }
            (_, indices) => {
                self.error(region.span, ErrorKind::IndexAfterRange { buffer: info.name });
                self.skip_indices(scope, indices);
                return None;
            }
        };
        Some(Region { buffer, cut, span: region.span })
    }

    fn signal(&mut self, scope: &mut Scope, region: &ast::Region, purpose: Use) -> Option<Region> {
        let misuse = match purpose {
            Use::Read | Use::Copied if region.indices.is_empty() => {
                return Some(Region { buffer: SIGNAL, cut: Cut::All, span: region.span });
            }
            Use::Read | Use::Copied => SignalMisuse::Indexed,
            Use::Operand => SignalMisuse::Reduced,
            Use::Combined => SignalMisuse::Combined,
            Use::Bound => SignalMisuse::Bound,
            Use::Exit | Use::Entry | Use::Promise => SignalMisuse::Promised,
        };
        self.skip_indices(scope, &region.indices);
        self.error(region.span, ErrorKind::Signal(misuse));
        None
    }

    /// Finds what is wrong in brackets that are not used any more.
    fn skip_indices(&mut self, scope: &mut Scope, indices: &[Index]) {
        for index in indices {
            match index {
                Index::One(e) => {
                    self.int(scope, e);
                }
                Index::Range { from, to, .. } => {
                    self.int(scope, from);
                    self.int(scope, to);
                }
            }
        }
    }

    /// What stands after `@`.
    pub(crate) fn ranks(&mut self, scope: &mut Scope, ranks: &ast::Ranks) -> Option<Ranks> {
        match ranks {
            ast::Ranks::One(rank) => Some(Ranks::One(self.int(scope, rank))),
            ast::Ranks::All(_) => Some(Ranks::All),
            ast::Ranks::Tuple(coords, span) => {
                let checked = coords
                    .iter()
                    .map(|coord| match coord {
                        Coord::At(e) => Some(self.int(scope, e)),
                        Coord::All(_) => None,
                    })
                    .collect();
                if coords.len() != scope.levels {
                    let (expected, found) = (scope.levels, coords.len());
                    self.error(*span, ErrorKind::Coordinates { expected, found, declared: scope.world });
                    return None;
                }
                Some(Ranks::Tuple(checked, *span))
            }
        }
    }

    /// The right side of a move or of an `ensures`; `single` is what a lone place is for.
    pub(crate) fn source(&mut self, scope: &mut Scope, source: &ast::Source, single: Use) -> Option<Source> {
        let operand = if single == Use::Entry { Use::Entry } else { Use::Operand };
        match source {
            ast::Source::Place(place) => Some(Source::Place(self.place(scope, place, single)?)),
            ast::Source::Each { binders, filter, place, span } => {
                let mark = scope.mark();
                let loops = self.loops(scope, binders, filter.as_ref());
                let place = self.place(scope, place, operand);
                scope.leave(mark);
                Some(Source::Each { loops, place: place?, span: *span })
            }
            ast::Source::List { places, span } => {
                let checked: Vec<_> = places.iter().map(|place| self.place(scope, place, operand)).collect();
                Some(Source::List { places: checked.into_iter().collect::<Option<_>>()?, span: *span })
            }
            ast::Source::Gather { place, span } => {
                let region = self.region(scope, &place.region, operand);
                let ranks = self.ranks(scope, &place.rank);
                let (region, ranks) = (region?, ranks?);
                if !ranks.many() {
                    self.error(*span, ErrorKind::OneRank);
                    return None;
                }
                Some(Source::Gather { place: Place { region, ranks, span: place.span }, span: *span })
            }
        }
    }
}

/// The text of what stands after `@`.
fn ranks_span(ranks: &ast::Ranks) -> Span {
    match ranks {
        ast::Ranks::One(e) => e.span,
        ast::Ranks::All(span) | ast::Ranks::Tuple(_, span) => *span,
    }
}
