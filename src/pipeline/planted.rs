//! `[planted]`: which items are planted into the sessions.

use std::sync::Arc;

use super::file::tables::{GateTable, PlantedTable};
use super::file::value;
use super::model::{LoadedFixture, PlantedDesign};
use super::problem::{Problem, Problems};
use super::validation::ValidationContext;
use crate::action::Digest;
use crate::planted::{PlantedSet, Session, plant};

/// Variants of a session where the pipeline does not say.
const VARIANTS: u32 = 4;

/// The items of the pipeline and the seed that they are drawn with.
pub(super) struct Items {
    set: PlantedSet,
    seed: u64,
    pub(super) design: PlantedDesign,
}

/// What is planted; `None` where nothing is, or if the set has an error. `is_all` says whether nothing else is run.
pub(super) fn items(
    context: &mut ValidationContext<'_>,
    table: &PlantedTable,
    gate: &GateTable,
    seed: u64,
    [is_wanted, is_all]: [bool; 2],
) -> Option<Items> {
    let variants = value(&table.variants).unwrap_or(VARIANTS);
    let set = match &table.set {
        None => PlantedSet::built_in().clone(),
        Some(path) => {
            let source = context.text_file("set of planted items", path)?;
            match PlantedSet::read(&source.text) {
                Ok(set) => set,
                Err(fault) => {
                    let problem = Problem::error(&fault.message).at(&source, fault.place);
                    context.problems.push(problem.help(fault.help));
                    return None;
                }
            }
        }
    };
    let design = PlantedDesign {
        path: table.set.as_ref().map(|path| path.value.clone()),
        digest: Digest::of_json(&(&set, PlantedSet::built_in(), seed, variants)),
        variants,
        is_all,
        is_tested: value(&gate.planted).unwrap_or(true),
    };
    is_wanted.then_some(Items { set, seed, design })
}

/// Plants the items into the fixtures, and reports what is left out.
pub(super) fn plant_all(items: &Items, fixtures: &mut [LoadedFixture], problems: &mut Problems) {
    for (place, loaded) in fixtures.iter_mut().enumerate() {
        let fixture = &loaded.fixture;
        let end = loaded.points.first().copied();
        let session = Session {
            name: &fixture.name,
            messages: &fixture.messages,
            span: (fixture.start(), end.unwrap_or(fixture.messages.len())),
            place,
        };
        let planting = plant(&items.set, session, items.design.variants, items.seed);
        for sentence in planting.left_out {
            let help =
                "longer sessions take more items; an own `set` in [planted] may have other objects";
            problems.push(Problem::warning(sentence).help(help));
        }
        if planting.variants.is_empty() {
            let message = format!(
                "nothing can be planted in {}: it is too short",
                fixture.name
            );
            problems
                .push(Problem::warning(message).help("its figures of planted items are missing"));
        }
        loaded.variants = planting.variants.into_iter().map(Arc::new).collect();
    }
}
