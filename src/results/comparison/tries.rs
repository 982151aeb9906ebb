//! What of a comparison is a try: each method that has other answers than the baseline, and the mean over those tested.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::Comparison;
use crate::action::Digest;
use crate::results::files::design::Design;
use crate::results::files::manifest::Manifest;
use crate::results::files::tried::Tried;
use crate::results::files::tries::{Tries, Try};
use crate::results::result_set::set::variant_designs;

/// The numbers of tries of a comparison, as far as `known` has them and else by the ledger of the baseline; and the entries
/// that the ledger should have.
pub fn count_tries(
    comparison: &Comparison,
    judged: &Design,
    baseline: &Manifest,
    (ledger, known): (&Tries, &Tried),
    confirms: bool,
) -> (Tried, Vec<Try>) {
    let is_known = known.baseline == baseline.started;
    let confirms = if is_known { known.confirms } else { confirms };
    let fixtures = comparison.fixtures.iter().filter_map(|name| judged.fixture(name));
    let fixtures: BTreeSet<Digest> = fixtures.map(|fixture| fixture.digests.transcript).collect();
    let entry = |method: Option<&str>, design: Digest, known: Option<usize>| {
        let number = known.filter(|_| is_known).unwrap_or_else(|| ledger.number(method, &design));
        Try { method: method.map(str::to_owned), design, number, fixtures: fixtures.clone(), confirms }
    };
    let designs = variant_designs(judged);
    let mut tried = Tried { baseline: baseline.started.clone(), confirms, ..Tried::default() };
    let mut tries = Vec::new();
    let mut tested: BTreeMap<&str, Digest> = BTreeMap::new();
    for (name, method) in comparison.methods.iter().filter(|(_, method)| method.is_try()) {
        let Some(design) = designs.get(name) else { continue };
        let of_method = entry(Some(&method.against), *design, known.methods.get(name).copied());
        tried.methods.insert(name.clone(), of_method.number);
        tries.push(of_method);
        tested.insert(&method.against, *design);
    }
    if comparison.primary.is_some() {
        let of_mean = entry(None, Digest::of_json(&tested), known.mean);
        tried.mean = Some(of_mean.number);
        tries.push(of_mean);
    }
    (tried, tries)
}
