//! Builds, tests and checks rcc.
fn main() {}
