//! Errors as users read them, against text written by hand.

use rcc_compiler::diagnostics;
use rcc_compiler::diagnostics::render::{Style, render};
use rcc_compiler::limits::Limits;
use rcc_compiler::source::Sources;

use crate::support::{check_with, elaborate_checked};

#[test]
fn a_rank_out_of_range_as_the_architecture_shows_it() {
    let text = "algorithm ring on ranks[n] implements allgather {\n    for r in 0..n {\n        output[r] @ r + 1 = input @ r\n    }\n}\n";
    let checked = check_with(&[text], stdlib::FILES);
    let error = elaborate_checked(&checked, &[8], &[], &Limits::default()).expect_err("rank 8");
    let diagnostic = diagnostics::elaborate::error(&error, &checked.sources);
    println!("{}", render(&diagnostic, &checked.sources, Style::default()));
    assert_eq!(diagnostic.code, "coll::rank_out_of_range");
    assert_eq!(diagnostic.title, "rank 8 does not exist: this algorithm runs on ranks 0 to 7");
    let labels: Vec<(&str, &str)> =
        diagnostic.labels.iter().map(|l| (checked.sources.snippet(l.span), l.text.as_str())).collect();
    assert_eq!(
        labels,
        [("r + 1", "`r + 1` is 8 when r = 7"), ("r in 0..n", "r takes the values 0 to 7, from `--ranks 8`"),]
    );
    assert_eq!(diagnostic.help.as_deref(), Some("wrap around the ring with `(r + 1) % n`"));
    let _: &Sources = &checked.sources;
}
