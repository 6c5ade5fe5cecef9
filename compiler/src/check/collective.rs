//! Collectives: buffers, legal overlaps, promises.
//!
//! In: `ast::Collective`. Out: `checked::Collective`. Sides are checked here: a promise speaks of what `in` and
//! `inout` buffers hold at entry and of what `out` and `inout` buffers hold at exit.

use grammar::ast::{self, Item, Mode};

use super::Checker;
use super::checked::{BufferDecl, Collective, Ensures, EnsuresKind, Equals, InplaceDecl, Loops, Source};
use super::error::ErrorKind;
use super::places::Use;
use super::scope::{BufferInfo, Entity, Scope};

impl Checker<'_> {
    /// Checks all collectives.
    pub(crate) fn collectives(&mut self) {
        let units = self.units;
        for (unit, u) in units.iter().enumerate() {
            for item in &u.ast.items {
                if let Item::Collective(item) = item {
                    let collective = self.collective(unit, item);
                    self.program.collectives.push(collective);
                }
            }
        }
    }

    fn collective(&mut self, unit: usize, item: &ast::Collective) -> Collective {
        let (mut scope, params) = self.head(unit, &item.world, &item.params);
        let buffers: Vec<BufferDecl> = item.buffers.iter().map(|b| self.buffer(&mut scope, b)).collect();
        let inplace = item.inplace.iter().filter_map(|i| self.inplace(&mut scope, i)).collect();
        let ensures: Vec<Ensures> = item.ensures.iter().map(|e| self.ensures(&mut scope, e)).collect();
        if ensures.is_empty() {
            self.error(item.name.span, ErrorKind::PromisesNothing { name: item.name.name.clone() });
        }
        Collective {
            name: item.name.name.clone(),
            name_span: item.name.span,
            file: self.units[unit].file,
            docs: item.docs.clone(),
            levels: item.world.levels.len(),
            standard: self.units[unit].module.is_some(),
            level_names: item.world.levels.iter().map(|level| level.name.clone()).collect(),
            params,
            buffers,
            inplace,
            ensures,
            frame: scope.frame(),
        }
    }

    fn buffer(&mut self, scope: &mut Scope, item: &ast::BufferDecl) -> BufferDecl {
        let blocks = item.blocks.as_ref().map(|blocks| self.int(scope, blocks));
        let at = item.at.as_ref().map(|at| self.int(scope, at));
        let index = scope.buffers.len() as u32;
        self.declare(scope, &item.name, Entity::Buffer(index));
        let (name, span) = (item.name.name.clone(), item.name.span);
        scope.buffers.push(BufferInfo {
            name: name.clone(),
            span,
            mode: Some(item.mode),
            blocks: blocks.is_some(),
        });
        BufferDecl { name, span, mode: item.mode, blocks, at }
    }

    fn inplace(&mut self, scope: &mut Scope, item: &ast::Inplace) -> Option<InplaceDecl> {
        scope.self_allowed = true;
        let left = self.region(scope, &item.left, Use::Promise);
        let right = self.region(scope, &item.right, Use::Promise);
        scope.self_allowed = false;
        let (left, right) = (left?, right?);
        let mode = |buffer: u32| scope.buffers[buffer as usize].mode;
        match (mode(left.buffer), mode(right.buffer)) {
            (Some(Mode::In), Some(Mode::Out)) => Some(InplaceDecl { left, right, span: item.span }),
            (Some(Mode::Out), Some(Mode::In)) => {
                Some(InplaceDecl { left: right, right: left, span: item.span })
            }
            _ => {
                let name = |buffer: u32| scope.buffers[buffer as usize].name.clone();
                let buffers = [name(left.buffer), name(right.buffer)];
                self.error(item.span, ErrorKind::InplaceModes { buffers });
                None
            }
        }
    }

    fn ensures(&mut self, scope: &mut Scope, item: &ast::Ensures) -> Ensures {
        let mark = scope.mark();
        let loops = self.loops(scope, &item.binders, item.filter.as_ref());
        let kind = match &item.kind {
            ast::EnsuresKind::Synchronised => EnsuresKind::Synchronised,
            ast::EnsuresKind::Equals { place, value } => {
                let place = self.place(scope, place, Use::Exit);
                let value = self.source(scope, value, Use::Entry);
                match (place, value) {
                    (Some(place), Some(value)) => {
                        let constant = self.is_constant(&loops, &value);
                        EnsuresKind::Equals(Box::new(Equals { loops, place, value, constant }))
                    }
                    _ => EnsuresKind::Synchronised,
                }
            }
        };
        scope.leave(mark);
        Ensures { span: item.span, kind }
    }

    /// Whether a promised value is the same for every turn of the binders.
    fn is_constant(&self, loops: &Loops, value: &Source) -> bool {
        let Some(first) = loops.binders.first() else { return true };
        let binders = first.slot.0..first.slot.0 + loops.binders.len() as u32;
        let exprs = &self.program.exprs;
        let outer = |slot: super::checked::Slot| binders.contains(&slot.0);
        let (places, inner) = match value {
            Source::Place(place) | Source::Gather { place, .. } => (std::slice::from_ref(place), None),
            Source::Each { loops, place, .. } => (std::slice::from_ref(place), Some(loops)),
            Source::List { places, .. } => (places.as_slice(), None),
        };
        let in_place = |place: &super::checked::Place| {
            place.region.exprs().chain(place.ranks.exprs()).any(|id| exprs.reads(id, &outer))
        };
        !places.iter().any(in_place) && !inner.is_some_and(|loops| exprs.loops_read(loops, &outer))
    }
}
