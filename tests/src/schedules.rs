//! Schedules at random: labels on the statements of any program, and texts that address them.
//!
//! In: a syntax tree, random numbers. Out: the same program with labels on some of its statements and a schedule for each
//! of its algorithms, as text, with the sizes at which other parts of it hold. The one hard idea: what a label's channel
//! is computed from must be in scope where the label stands, so the walk that puts labels on carries the names along;
//! and of several `when`s each must be reached by some size, so their bounds rise.

use grammar::ast::{self, Item, ParamType, Stmt};
use grammar::print::print;
use grammar::span::{FileId, Span};

use crate::draw::Draw;
use crate::mutate::Dice;

/// A program with schedules.
#[derive(Debug, Clone)]
pub struct Scheduled {
    /// All of it.
    pub text: String,
    /// Bytes of calls for which different parts hold.
    pub sizes: Vec<u64>,
}

/// What schedules may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Anything that there is.
    Anything,
    /// What ranks on CPUs have: channels, slices, and which channels moves take.
    WhatCpusHave,
}

/// A label, and the whole numbers in scope there.
struct Label {
    name: String,
    variables: Vec<String>,
}

/// Labels and schedules for every algorithm of a file without any.
pub fn scheduled(file: &ast::File, asked: Asked, draw: &mut Draw) -> Scheduled {
    let mut file = file.clone();
    let mut schedules = String::new();
    let mut sizes = Vec::new();
    for item in &mut file.items {
        let Item::Algorithm(algorithm) = item else { continue };
        let labels = label(algorithm, draw);
        schedules += &schedule(&algorithm.name.name, &labels, asked, draw, &mut sizes);
    }
    sizes.sort_unstable();
    sizes.dedup();
    Scheduled { text: format!("{}\n{schedules}", print(&file)), sizes }
}

/// Puts labels on about every third statement that may have one.
fn label(algorithm: &mut ast::Algorithm, draw: &mut Draw) -> Vec<Label> {
    let mut names: Vec<String> = algorithm.world.levels.iter().map(|level| level.name.clone()).collect();
    let numbers = algorithm.params.iter().filter(|param| param.ty != ParamType::Bool);
    names.extend(numbers.map(|param| param.name.name.clone()));
    let mut labels = Vec::new();
    statements(&mut algorithm.body, &names, draw, &mut labels);
    labels
}

fn statements(body: &mut [Stmt], names: &[String], draw: &mut Draw, labels: &mut Vec<Label>) {
    for stmt in body {
        let variables = with_binders(stmt, names);
        if inside(stmt, names, draw, labels) && draw.chance(35) {
            let name = format!("at{}", labels.len());
            let label = ast::Ident { name: name.clone(), span: NOWHERE };
            let body = Box::new(std::mem::replace(stmt, Stmt::OutOfPlaceOnly(NOWHERE)));
            *stmt = Stmt::Labelled(ast::Labelled { label, body, span: NOWHERE });
            labels.push(Label { name, variables });
        }
    }
}

/// Labels on what stands in a statement; whether it may have one itself.
fn inside(stmt: &mut Stmt, names: &[String], draw: &mut Draw, labels: &mut Vec<Label>) -> bool {
    let inner = with_binders(stmt, names);
    match stmt {
        Stmt::For(own) => statements(&mut own.body, &inner, draw, labels),
        Stmt::Step(own) => match &mut own.body[..] {
            // Of `step for`, the loop is no statement of its own.
            [Stmt::For(only)] => statements(&mut only.body, &inner, draw, labels),
            body => statements(body, names, draw, labels),
        },
        Stmt::If(own) => {
            statements(&mut own.then, names, draw, labels);
            match &mut own.otherwise[..] {
                // Nor is the second `if` of `else if`.
                [next @ Stmt::If(_)] => {
                    inside(next, names, draw, labels);
                }
                otherwise => statements(otherwise, names, draw, labels),
            }
        }
        Stmt::Move(_) | Stmt::Run(_) => {}
        _ => return false,
    }
    true
}

const NOWHERE: Span = Span { file: FileId(0), start: 0, end: 0 };

/// The names in scope at a label of this statement.
fn with_binders(stmt: &Stmt, names: &[String]) -> Vec<String> {
    let binders: &[ast::Binder] = match stmt {
        Stmt::For(inside) => &inside.binders,
        Stmt::Step(ast::Step { body, .. }) => match &body[..] {
            [Stmt::For(only)] => &only.binders,
            _ => &[],
        },
        _ => &[],
    };
    names.iter().cloned().chain(binders.iter().map(|binder| binder.name.name.clone())).collect()
}

fn schedule(name: &str, labels: &[Label], asked: Asked, draw: &mut Draw, sizes: &mut Vec<u64>) -> String {
    let mut text = format!("\nschedule for {name} {{{}", clauses(labels, asked, draw));
    let mut least = 1u64;
    let whens = draw.below(4);
    for i in 0..whens {
        // Some size below this bound is above the one before.
        let bytes = least + [0, 1, 7, 64, 1000, 4096, 1 << 16, 1 << 20][draw.below(8)];
        least = bytes + 2;
        let all: &[&str] = if i + 1 == whens { &["<", "<=", "==", "!=", ">", ">="] } else { &["<", "<="] };
        let op = draw.of(all);
        let written = match draw.below(3) {
            0 if bytes.is_multiple_of(1024) => format!("{} KiB", bytes / 1024),
            1 => format!("{bytes} B"),
            _ => bytes.to_string(),
        };
        text += &format!("{}when size {op} {written} {{{}}}", blank(draw), clauses(labels, asked, draw));
        sizes.extend([bytes - 1, bytes, bytes + 1]);
    }
    text + "}\n"
}

/// Each at most once, in any order.
fn clauses(labels: &[Label], asked: Asked, draw: &mut Draw) -> String {
    let mut all: Vec<String> = Vec::new();
    let mut perhaps = |draw: &mut Draw, percent, clause: &dyn Fn(&mut Draw) -> String| {
        if draw.chance(percent) {
            all.push(clause(draw));
        }
    };
    perhaps(draw, 50, &|draw| format!("channels {}", 1 + draw.below(4)));
    perhaps(draw, 30, &|draw| {
        format!("pipeline {}", draw.of(&["64", "100 B", "1 KiB", "4096", "512 KiB", "1 GiB"]))
    });
    if asked == Asked::Anything {
        perhaps(draw, 30, &|draw| format!("protocol {}", draw.of(&["simple", "ll", "ll128", "auto"])));
        perhaps(draw, 30, &|draw| format!("threads {}", draw.of(&["1", "32", "512", "1024"])));
        // What is preferred here is never avoided, so that no two clash.
        perhaps(draw, 20, &|draw| {
            format!("transport prefer {}", draw.of(&["nvlink", "shared, nvlink", "shared"]))
        });
        perhaps(draw, 20, &|draw| format!("transport avoid {}", draw.of(&["rdma", "tcp, rdma", "tcp"])));
        perhaps(draw, 15, &|_| "via switch".to_owned());
        perhaps(draw, 15, &|draw| format!("wire {}", draw.of(&["bf16", "f16", "fp8"])));
    }
    for label in labels {
        perhaps(draw, 40, &|draw| {
            format!("'{} {{ channel {} }}", label.name, channel(&label.variables, draw))
        });
    }
    let mut text = String::new();
    while !all.is_empty() {
        text += blank(draw);
        text += &all.swap_remove(draw.below(all.len()));
    }
    text + blank(draw)
}

/// What may stand between two clauses.
fn blank(draw: &mut Draw) -> &'static str {
    const ALL: [&str; 5] = [" ", "\n", "  \n\n ", " // why\n", "\n// first\n// second\n"];
    ALL[draw.below(ALL.len())]
}

/// One of the channels from 0 to 3, by a formula.
fn channel(variables: &[String], draw: &mut Draw) -> String {
    match draw.below(4) {
        0 => draw.below(4).to_string(),
        _ => format!("({}) % {}", number(variables, draw, 2), 1 + draw.below(4)),
    }
}

fn number(variables: &[String], draw: &mut Draw, depth: usize) -> String {
    if depth == 0 || draw.chance(30) {
        return match variables {
            [] => draw.below(9).to_string(),
            _ if draw.chance(25) => draw.below(9).to_string(),
            _ => draw.of(variables).clone(),
        };
    }
    let mut inner = || number(variables, draw, depth - 1);
    let (a, b, c) = (inner(), inner(), inner());
    match draw.below(7) {
        0 => format!("{a} + {b}"),
        1 => format!("{a} * ({b})"),
        2 => format!("{a} - ({b})"),
        3 => format!("({a}) / {}", 1 + draw.below(3)),
        4 => format!("max({a}, {b})"),
        5 => format!("(if {a} < {b} then {c} else {a})"),
        _ => format!("((({a}) & 7) ^ (({b}) & 3))"),
    }
}
