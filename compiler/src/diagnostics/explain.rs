//! The pages of `rcc explain CODE`: each code at length, with a program that is refused and one that is not.
//!
//! In: a code. Out: its page, in Markdown. `build.rs` lists the pages: `explain/NAME.md` explains `coll::NAME`. Programs
//! in them are fenced as `coll,fail` (refused with exactly that code) and `coll,pass` (proved); a test holds them to it.

/// All pages, sorted by file name.
static PAGES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/explain.rs"));

/// The page of a code, in Markdown.
pub fn explain(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _)| *known == code).map(|&(_, page)| page)
}

/// All codes that have a page.
pub fn codes() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|&(code, _)| code)
}

/// The code most like one that has no page: one with the same name after the `::`, or few letters away.
pub fn nearest(code: &str) -> Option<&'static str> {
    let name = |code: &str| code.rsplit("::").next().unwrap_or(code).to_ascii_lowercase().replace('-', "_");
    let given = name(code);
    let (known, distance) = (codes().map(|known| (known, strsim::osa_distance(&name(known), &given))))
        .min_by_key(|&(_, distance)| distance)?;
    let part = codes().find(|known| given.len() >= 4 && name(known).contains(&given));
    if distance * 3 <= given.len() { Some(known) } else { part }
}
