//! The `rcc` command.
fn main() {}
