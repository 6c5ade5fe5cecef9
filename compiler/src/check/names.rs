//! Which declaration a plain name or a path of a file means, and which known name is most like an unknown one.
//!
//! In: the items of all units. Out: ids. A plain name means this file's declaration, else (for collectives) the
//! standard one; `std::<collective>::<algorithm>` names a standard algorithm from anywhere.

use grammar::ast::{self, Item};
use grammar::span::Span;
use rustc_hash::FxHashMap;

use super::Checker;
use super::checked::{AlgorithmId, Builtin, CollectiveId, FnId};
use super::error::{ErrorKind, NameKind};

/// How many unknown names get a suggestion.
pub(crate) const SUGGESTIONS: u32 = 100;
/// How many known names each is compared with.
const CANDIDATES: usize = 2_000;

/// The names that one file declares.
#[derive(Debug, Default)]
pub(crate) struct FileNames {
    algorithms: FxHashMap<String, (AlgorithmId, Span)>,
    collectives: FxHashMap<String, (CollectiveId, Span)>,
    fns: FxHashMap<String, (FnId, Span)>,
    algorithm_names: Vec<String>,
    collective_names: Vec<String>,
    pub fn_names: Vec<String>,
}

/// The names of the standard library.
#[derive(Debug, Default)]
pub(crate) struct Standard {
    /// By full name.
    algorithms: FxHashMap<String, (AlgorithmId, Span)>,
    collectives: FxHashMap<String, (CollectiveId, Span)>,
    algorithm_names: Vec<String>,
    collective_names: Vec<String>,
}

impl Checker<'_> {
    /// Numbers all declarations in the order of the units and their items, and reports names declared twice.
    pub(crate) fn declare_all(&mut self) {
        let (mut algorithms, mut collectives, mut fns) = (0, 0, 0);
        for unit in self.units {
            let mut names = FileNames::default();
            let mut nothing = unit.module.is_none();
            for item in &unit.ast.items {
                let (name, first) = match item {
                    Item::Algorithm(a) => {
                        let id = AlgorithmId(algorithms);
                        algorithms += 1;
                        nothing = false;
                        names.algorithm_names.push(a.name.name.clone());
                        let mut first = add(&mut names.algorithms, &a.name.name, id, a.name.span);
                        if let Some(module) = unit.module {
                            let full = full_name(module, &a.name.name);
                            self.standard.algorithm_names.push(full.clone());
                            let other = add(&mut self.standard.algorithms, &full, id, a.name.span);
                            first = first.or(other);
                        }
                        (&a.name, first)
                    }
                    Item::Collective(c) => {
                        let id = CollectiveId(collectives);
                        collectives += 1;
                        nothing = false;
                        names.collective_names.push(c.name.name.clone());
                        let mut first = add(&mut names.collectives, &c.name.name, id, c.name.span);
                        if unit.module.is_some() {
                            self.standard.collective_names.push(c.name.name.clone());
                            let other = add(&mut self.standard.collectives, &c.name.name, id, c.name.span);
                            first = first.or(other);
                        }
                        (&c.name, first)
                    }
                    Item::Schedule(_) => {
                        nothing = false;
                        continue;
                    }
                    Item::Fn(f) => {
                        let id = FnId(fns);
                        fns += 1;
                        names.fn_names.push(f.name.name.clone());
                        if Builtin::ALL.iter().any(|(name, _)| *name == f.name.name) {
                            let name = f.name.name.clone();
                            self.errors
                                .push(super::Error { span: f.name.span, kind: ErrorKind::Reserved { name } });
                        }
                        (&f.name, add(&mut names.fns, &f.name.name, id, f.name.span))
                    }
                };
                if let Some(first) = first {
                    let kind = ErrorKind::DuplicateName { name: name.name.clone(), first };
                    self.errors.push(super::Error { span: name.span, kind });
                }
            }
            if nothing {
                let span = Span::new(unit.file, 0, 0);
                self.errors.push(super::Error { span, kind: ErrorKind::NothingToCheck { file: unit.file } });
            }
            self.files.push(names);
        }
    }

    /// The function of that name in a unit.
    pub(crate) fn function_of(&self, unit: usize, name: &str) -> Option<FnId> {
        self.files[unit].fns.get(name).map(|&(id, _)| id)
    }

    /// The algorithm of that name in a unit.
    pub(crate) fn own_algorithm(&self, unit: usize, name: &str) -> Option<AlgorithmId> {
        self.files[unit].algorithms.get(name).map(|&(id, _)| id)
    }

    /// The collective that a path means, or an error.
    pub(crate) fn collective_of(&mut self, unit: usize, path: &ast::Path) -> Option<CollectiveId> {
        let own = &self.files[unit];
        let found = match path.segments.as_slice() {
            [name] => own.collectives.get(&name.name).or_else(|| self.standard.collectives.get(&name.name)),
            [std, name] if std.name == "std" => self.standard.collectives.get(&name.name),
            _ => None,
        };
        if let Some(&(id, _)) = found {
            return Some(id);
        }
        let name = joined(path);
        let is = own.algorithms.contains_key(&name).then_some(NameKind::Algorithm);
        let nearest = {
            let known = own.collective_names.iter().chain(&self.standard.collective_names);
            self.nearest(&name, known.map(String::as_str))
        };
        let kind = ErrorKind::UnknownName { kind: NameKind::Collective, name, nearest, is, of: None };
        self.error(path.span, kind);
        None
    }

    /// The algorithm that a path means, or an error; one for `collective` is most likely meant.
    pub(crate) fn algorithm_of(
        &mut self,
        unit: usize,
        collective: &str,
        path: &ast::Path,
    ) -> Option<AlgorithmId> {
        let name = joined(path);
        let own = &self.files[unit];
        let found = match path.segments.len() {
            1 => own.algorithms.get(&name),
            _ => self.standard.algorithms.get(&name),
        };
        if let Some(&(id, _)) = found {
            return Some(id);
        }
        let last = path.segments.last().map_or("", |last| &last.name);
        let promised = own.collectives.contains_key(&name) || self.standard.collectives.contains_key(&name);
        let is = promised.then_some(NameKind::Collective);
        // A plain name that some standard algorithm ends in is most likely that one.
        let ending = format!("::{last}");
        let standard = self.standard.algorithm_names.iter().filter(|full| full.ends_with(&ending));
        let same = full_name(collective, last);
        let mut nearest: Vec<String> = match standard.clone().find(|full| **full == same) {
            Some(same) => vec![same.clone()],
            None => standard.cloned().collect(),
        };
        if nearest.is_empty() {
            let known = own.algorithm_names.iter().chain(&self.standard.algorithm_names);
            nearest.extend(nearest_within(&mut self.suggestions, &name, known.map(String::as_str)));
        }
        let kind = ErrorKind::UnknownName { kind: NameKind::Algorithm, name, nearest, is, of: None };
        self.error(path.span, kind);
        None
    }

    /// The name most like `name`, if one is near enough: one or none.
    pub(crate) fn nearest<'n>(&self, name: &str, known: impl Iterator<Item = &'n str>) -> Vec<String> {
        let mut budget = self.suggestions.saturating_sub(self.errors.len() as u32);
        Vec::from_iter(nearest_within(&mut budget, name, known))
    }
}

/// `std::allreduce::ring`.
pub(crate) fn full_name(module: &str, name: &str) -> String {
    format!("std::{module}::{name}")
}

fn add<T>(map: &mut FxHashMap<String, (T, Span)>, name: &str, id: T, span: Span) -> Option<Span> {
    match map.get(name) {
        Some(&(_, first)) => Some(first),
        None => {
            map.insert(name.to_owned(), (id, span));
            None
        }
    }
}

fn joined(path: &ast::Path) -> String {
    let names: Vec<&str> = path.segments.iter().map(|segment| segment.name.as_str()).collect();
    names.join("::")
}

fn nearest_within<'n>(budget: &mut u32, name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    if *budget == 0 || name.len() > 64 {
        return None;
    }
    *budget -= 1;
    let known = known.take(CANDIDATES).filter(|known| known.len() <= 64);
    let (nearest, distance) = known
        .map(|known| (known, strsim::osa_distance(known, name)))
        .min_by_key(|&(_, distance)| distance)?;
    let near = distance <= (name.chars().count() / 3).max(1) && distance < name.chars().count();
    near.then(|| nearest.to_owned())
}
