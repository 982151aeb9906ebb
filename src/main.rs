//! The program `compeval`.

fn main() {}
