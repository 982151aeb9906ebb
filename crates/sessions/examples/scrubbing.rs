//! Measures how much the scrubber removes: `cargo run --example scrubbing` prints the shares over a corpus of secrets
//! in the settings of real sessions, and over texts without secrets, with every text that it got wrong.

#![allow(clippy::print_stdout)]

#[path = "../tests/import/scrubbing_settings/mod.rs"]
mod scrubbing_settings;

fn main() {
    let measured = scrubbing_settings::measure();
    for text in &measured.missed {
        println!("stays:   {text:?}");
    }
    for text in &measured.harmed {
        println!("removed: {text}");
    }
    let (secrets, missed) = (measured.secrets, measured.missed.len());
    println!(
        "{} of {secrets} secrets in {} settings removed: {:.1}% ({} of the {missed} that stay are listed by the audit)",
        secrets - missed,
        measured.settings,
        measured.removed_share() * 100.0,
        measured.listed,
    );
    println!(
        "{} of {} texts without a secret changed: {:.1}%",
        measured.harmed.len(),
        measured.decoys,
        measured.harmed_share() * 100.0
    );
}
