//! Looks: fixtures are added until a comparison has a verdict, so that unnecessary fixtures are not paid for.
//!
//! There is a look after each of [`LOOKS`] fixtures, in the order of the transcripts' digests, which nobody chooses.
//! Every look tests at [`stats::thresholds::LOOK_ALPHA`], so that all looks together find a nonexistent difference no
//! more often than one comparison at 5%. A look is a run of the label that only adds to the previous look.

use super::comparison::{check_baseline, find_baseline};
use super::error::EvaluationError;
use super::project::open_project;
use super::request::Request;
use crate::pipeline::{MatrixSelection, Pipeline};
use crate::results::{Design, Label, Manifest, ResultsFolder};

/// The numbers of fixtures after which there is a look.
const LOOKS: [usize; 3] = [4, 8, 12];

/// The looks of a run that have not yet taken place.
#[derive(Clone, Debug)]
pub struct Looks {
    /// The selected fixtures that the baseline also has, in the order in which they are added.
    fixtures: Vec<String>,
    /// The numbers of fixtures after which there is a look.
    pub sizes: Vec<usize>,
}

impl Looks {
    /// The fixtures of the look after `size` fixtures.
    pub fn fixtures(&self, size: usize) -> Vec<String> {
        self.fixtures.iter().take(size).cloned().collect()
    }

    /// The number of fixtures of the last look.
    pub fn most(&self) -> usize {
        self.sizes.last().copied().unwrap_or_default()
    }
}

/// The looks of a request for `label`.
///
/// # Errors
/// The project has faults; the baseline cannot be read, shares too few fixtures or measured something else.
pub fn looks(request: &Request, label: &Label) -> Result<Looks, EvaluationError> {
    let pipeline = open_project(&request.project)?.pipeline;
    let baseline = request
        .baseline
        .as_ref()
        .map(|baseline| baseline.side.as_str())
        .unwrap_or_default();
    let known = find_baseline(&pipeline, baseline)?.manifest()?.design;
    let shared = pipeline
        .fixtures
        .iter()
        .filter(|loaded| known.fixture(loaded.name()).is_some());
    let mut ordered: Vec<(String, String)> = shared
        .map(|loaded| {
            (
                loaded.digests.transcript.to_string(),
                loaded.name().to_owned(),
            )
        })
        .collect();
    ordered.sort();
    let fixtures: Vec<String> = ordered.into_iter().map(|(_, name)| name).collect();
    let [first, .., largest] = LOOKS;
    if fixtures.len() < first {
        return Err(EvaluationError::TooFewFixtures {
            needed: first,
            found: fixtures.len(),
        });
    }
    let earlier = ResultsFolder::new(&pipeline.results, label)
        .manifest()
        .ok()
        .filter(|_| !request.replace);
    // The fixtures of the looks that already took place.
    let begun = earlier.and_then(|earlier| {
        fixtures
            .iter()
            .rposition(|name| earlier.design.fixture(name).is_some())
    });
    let begun = begun.map_or(0, |at| at + 1);
    let last = largest.min(fixtures.len());
    let sizes = LOOKS
        .into_iter()
        .filter(|size| *size < last && *size >= begun)
        .chain([last])
        .collect();
    let looks = Looks { fixtures, sizes };
    check_last_look(&looks, &pipeline, request)?;
    Ok(looks)
}

/// Refuses before the first look what the last one would be refused for: it has the fixtures of all.
fn check_last_look(
    looks: &Looks,
    pipeline: &Pipeline,
    request: &Request,
) -> Result<(), EvaluationError> {
    let Some(baseline) = &request.baseline else {
        return Ok(());
    };
    let fixtures = looks.fixtures(looks.most());
    let mut design = Design::from_pipeline(pipeline);
    design.fixtures.retain(|info| fixtures.contains(&info.name));
    let selection = MatrixSelection {
        fixtures: Some(fixtures),
        ..request.project.selection.clone()
    };
    check_baseline(pipeline, &design, baseline, &selection)
}

/// Adds what the previous look sent and paid.
pub(super) fn add_look(manifest: &mut Manifest, before: &Manifest) {
    manifest.started.clone_from(&before.started);
    manifest.wall_s += before.wall_s;
    for (stage, counts) in &mut manifest.stages {
        let executed = before
            .stages
            .get(stage)
            .map_or(0, |before| before.executed)
            .min(counts.cached);
        counts.executed += executed;
        counts.cached -= executed;
    }
    manifest.add_spending(before);
    if before.requests_sent > 0 {
        manifest.saved_by_prompt_cache += before.saved_by_prompt_cache;
        manifest.forecast = None;
    }
}
