//! The `//@ key = value` lines of a golden file.
//!
//! In: a program's text. Out: what it asks for. A list is written `a, b`, or as in JSON; a key may stand on several lines. An
//! unknown key is an error, so that no header does nothing.

use compiler::limits::Limits;
use compiler::trace::Params;

use super::Failure;

/// What a file asks of the runner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// `ranks = 4, 2x3`: the shapes to try.
    pub shapes: Vec<Vec<u32>>,
    /// `algorithm = ring`: only these of the file's.
    pub algorithms: Vec<String>,
    /// `show = plan, trace`: the stages that have a snapshot.
    pub show: Vec<Stage>,
    /// `params = root = 1, k = 2`: values of parameters; each line is one more set to try.
    pub params: Vec<Params>,
    /// `limit = moves = 10`, named as `rcc --limit` names them.
    pub limits: Vec<(String, u64)>,
    /// `warn = coll::wasted_transfer`: the codes of all warnings of an accepted file.
    pub warn: Vec<String>,
    /// `same_bits = false`: what the proof must say of the ranks' bits.
    pub same_bits: Option<bool>,
    /// `code = coll::promise`: the codes of a rejected file's diagnostics, in order.
    pub codes: Vec<String>,
    /// `line = 12`: on which line each of them has its primary label.
    pub lines: Vec<u32>,
}

/// What of a program has a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The syntax tree.
    Ast,
    /// The program as `rcc fmt` prints it.
    Fmt,
    /// The concrete moves.
    Trace,
    /// The versions of every cell.
    Graph,
    /// The plan.
    Plan,
}

impl Stage {
    /// All of them, in the order of the pipeline.
    pub const ALL: [Stage; 5] = [Stage::Ast, Stage::Fmt, Stage::Trace, Stage::Graph, Stage::Plan];

    /// Its name in `show` and in the name of the snapshot.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Ast => "ast",
            Stage::Fmt => "fmt",
            Stage::Trace => "trace",
            Stage::Graph => "graph",
            Stage::Plan => "plan",
        }
    }
}

impl Header {
    /// Reads the `//@` lines of a text.
    pub fn parse(text: &str) -> Result<Header, Failure> {
        let mut header = Header::default();
        for line in text.lines().filter_map(|line| line.trim().strip_prefix("//@")) {
            let (key, value) = line.split_once('=').ok_or_else(|| format!("no `key = value`: //@{line}"))?;
            header.add(key.trim(), value).map_err(|why| format!("//@{line}: {}", why.0))?;
        }
        Ok(header)
    }

    /// The sets of parameters to try; one empty set if none is given.
    pub fn params(&self) -> Vec<Params> {
        if self.params.is_empty() { vec![Params::default()] } else { self.params.clone() }
    }

    /// The limits of the compilation.
    pub fn limits(&self) -> Result<Limits, Failure> {
        let mut limits = Limits::default();
        for (name, value) in &self.limits {
            match name.as_str() {
                "moves" => limits.moves = *value,
                "turns" => limits.turns = *value,
                "places" => limits.places = *value,
                "source-bytes" => limits.source_bytes = *value,
                "nesting" => limits.nesting = u32::try_from(*value)?,
                "blocks" => limits.resources.blocks = Some(u32::try_from(*value)?),
                "channels" => limits.resources.channels = Some(u32::try_from(*value)?),
                "connections" => limits.resources.connections = Some(u32::try_from(*value)?),
                _ => return Err(format!("no limit is called {name}").into()),
            }
        }
        Ok(limits)
    }

    fn add(&mut self, key: &str, value: &str) -> Result<(), Failure> {
        let bare = value.trim().trim_start_matches('[').trim_end_matches(']');
        let list = bare.split(',').map(|part| part.trim().trim_matches('"')).filter(|part| !part.is_empty());
        match key {
            "ranks" => {
                for shape in list {
                    let sizes: Result<_, _> = shape.split('x').map(str::parse::<u32>).collect();
                    self.shapes.push(sizes?);
                }
            }
            "algorithm" => self.algorithms.extend(list.map(str::to_string)),
            "show" => {
                for name in list {
                    let stage = Stage::ALL.into_iter().find(|stage| stage.name() == name);
                    self.show.push(stage.ok_or_else(|| format!("no stage is called {name}"))?);
                }
            }
            "params" => {
                let mut set = Params::default();
                for param in list {
                    let (name, value) = pair(param)?;
                    let value = match value {
                        "true" => 1,
                        "false" => 0,
                        number => number.parse()?,
                    };
                    set.insert(name.to_string(), value);
                }
                self.params.push(set);
            }
            "limit" => {
                for limit in list {
                    let (name, value) = pair(limit)?;
                    self.limits.push((name.to_string(), value.parse()?));
                }
            }
            "warn" => self.warn.extend(list.map(str::to_string)),
            "same_bits" => self.same_bits = Some(bare.trim().parse()?),
            "code" => self.codes.extend(list.map(str::to_string)),
            "line" => {
                for line in list {
                    self.lines.push(line.parse()?);
                }
            }
            _ => return Err(format!("no header is called {key}").into()),
        }
        Ok(())
    }
}

fn pair(text: &str) -> Result<(&str, &str), Failure> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME = VALUE"))?;
    Ok((name.trim(), value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_bare_or_json() {
        let header = Header::parse("//@ ranks = 4, 2x3\nalgorithm\n  //@ show = [\"plan\", \"trace\"]\n");
        let header = header.expect("a right header");
        assert_eq!(header.shapes, vec![vec![4], vec![2, 3]]);
        assert_eq!(header.show, vec![Stage::Plan, Stage::Trace]);
        let header =
            Header::parse("//@ params = root = 1, deep = true\n//@ params = root = 2").expect("right");
        let sets: Vec<Vec<i64>> = header.params.iter().map(|p| p.values().copied().collect()).collect();
        assert_eq!(sets, vec![vec![1, 1], vec![2]]);
    }

    #[test]
    fn what_means_nothing_is_an_error() {
        for wrong in ["//@ rank = 4", "//@ show = cuda", "//@ ranks", "//@ ranks = 2y3", "//@ limit = x = 1"]
        {
            let header = Header::parse(wrong);
            assert!(header.is_err() || header.is_ok_and(|h| h.limits().is_err()), "{wrong}");
        }
    }
}
