//! The sessions that ship with the program, as its own scrubber sees them.

use compeval::probe::ParsedBank;
use sessions::import::{ScrubSettings, audit, scrub};
use sessions::transcript::ParsedFixture;

#[test]
fn the_shipped_fixtures_need_no_scrubbing() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("fixtures") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a fixture");
        let before = ParsedFixture::read(&text).expect("sound").fixture;
        let mut after = before.clone();
        let report = scrub(
            &mut after,
            &ScrubSettings {
                facts: facts(&before.name),
                ..ScrubSettings::default()
            },
        );
        assert_eq!(report.replaced, Default::default(), "{}", path.display());
        assert!(after == before, "{}", path.display());
        let certain: Vec<_> = audit(&after)
            .into_iter()
            .filter(|found| found.kind.is_certain())
            .collect();
        assert_eq!(certain, [], "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 3);
}

/// The spellings of the facts of a shipped bank, which are not cut away from long outputs.
fn facts(name: &str) -> Vec<String> {
    let path = format!("{}/probes/{name}.probes.json", env!("CARGO_MANIFEST_DIR"));
    let bank = ParsedBank::read(&std::fs::read_to_string(path).expect("a bank"))
        .expect("sound")
        .bank;
    bank.probes
        .into_iter()
        .flat_map(|probe| probe.expected_facts)
        .flat_map(|fact| fact.spellings)
        .collect()
}
