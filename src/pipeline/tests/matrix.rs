//! The matrix: what is counted is what is walked, in the order that is promised.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Project, STAGES};
use crate::action::{BuiltInStrategy, Digest, Repetition};
use crate::compress::{Method, Strategy as Compression};
use crate::pipeline::{AnswererIx, LoadedFixture, Matrix, Pipeline, PlantedDesign, ProbeIx, Runs};

/// A project whose answerer is a model that is asked.
fn project() -> Pipeline {
    let text = STAGES.replacen("model = \"lexical\"", "model = \"ollama/m\"", 1);
    Project::new(&text).opened().pipeline
}

fn matrices() -> impl Strategy<Value = Pipeline> {
    let project = project();
    let fixture = proptest::collection::vec(0_usize..4, 1..4);
    let method = (
        proptest::collection::btree_set(0_usize..3, 1..3),
        any::<bool>(),
        any::<bool>(),
    );
    let fixtures = proptest::collection::vec(fixture, 1..4);
    let methods = proptest::collection::vec(method, 1..4);
    (
        fixtures,
        methods,
        1_usize..3,
        (1_u32..4, 1_u32..3, 1_u32..3),
    )
        .prop_map(move |(fixtures, methods, judges, runs)| {
            let (asked, rules) = (&project.answerers[0].model, &project.judges[0].model);
            let mut answerers = vec![project.answerers[0].clone(); 3];
            answerers[1].model = rules.clone();
            let fixture = |(at, counts): (usize, Vec<usize>)| LoadedFixture {
                points: (1..=counts.len()).collect(),
                selected: numbered(counts),
                variants: vec![Arc::default(); at % 3],
                ..project.fixtures[0].clone()
            };
            let method = |keeps_state, is_deterministic| Method {
                strategy: match (keeps_state, is_deterministic) {
                    (true, true) => Compression::Opaque {
                        model: rules.clone(),
                    },
                    (true, false) => Compression::Opaque {
                        model: asked.clone(),
                    },
                    (false, true) => Compression::Rule(BuiltInStrategy::Full),
                    (false, false) => Compression::Rule(BuiltInStrategy::Recorded),
                },
                ..project.methods[0].clone()
            };
            let (compress, answer, judge) = runs;
            let runs = Runs {
                compress,
                answer,
                judge,
            };
            let planted = PlantedDesign {
                path: None,
                digest: Digest::hash(""),
                variants: 2,
                is_all: compress == 3,
                is_tested: true,
            };
            let mut pipeline = Pipeline {
                methods: Vec::new(),
                method_answerers: Vec::new(),
                fixtures: fixtures.into_iter().enumerate().map(fixture).collect(),
                answerers,
                judges: vec![project.judges[0].clone(); judges],
                planted: Some(planted),
                ..project.clone()
            };
            pipeline.settings.runs = runs;
            for (answerers, keeps_state, is_deterministic) in methods {
                pipeline.methods.push(method(keeps_state, is_deterministic));
                let answerers = answerers.into_iter().map(AnswererIx).collect();
                pipeline.method_answerers.push(answerers);
            }
            pipeline
        })
}

/// Probes numbered through the bank, so many at each point.
fn numbered(counts: Vec<usize>) -> Vec<Vec<ProbeIx>> {
    let mut ids = (0..).map(ProbeIx);
    counts
        .into_iter()
        .map(|count| ids.by_ref().take(count).collect())
        .collect()
}

proptest! {
    #[test]
    fn counts_equal_the_walk(pipeline in matrices()) {
        let matrix = Matrix(&pipeline);
        let compressions: Vec<_> = matrix.chains().flat_map(|chain| matrix.compressions(chain)).collect();
        let answers: Vec<_> = compressions.iter().flat_map(|cell| matrix.answers(*cell)).collect();
        let rows: Vec<_> = matrix.cells().collect();
        let counts = matrix.counts();
        prop_assert_eq!(counts.compress, compressions.len() as u64);
        prop_assert_eq!(counts.answer, answers.len() as u64);
        prop_assert_eq!(counts.judge, rows.len() as u64);
        prop_assert!(compressions.is_sorted() && answers.is_sorted() && rows.is_sorted());
    }

    #[test]
    fn the_ordinal_of_a_row_is_its_place_in_the_walk(pipeline in matrices()) {
        let matrix = Matrix(&pipeline);
        for (place, cell) in matrix.cells().enumerate() {
            prop_assert_eq!(matrix.ordinal(&cell), place as u64);
        }
    }

    #[test]
    fn a_chain_ends_at_a_point_with_probes_and_state_skips_no_point(pipeline in matrices()) {
        let matrix = Matrix(&pipeline);
        for chain in matrix.chains().filter(|chain| chain.variant.is_none()) {
            let points: Vec<usize> = matrix.compressions(chain).map(|cell| cell.point.0).collect();
            if matrix.keeps_state(chain.method) {
                prop_assert_eq!(&points, &(0..points.len()).collect::<Vec<_>>());
            }
            let last = points.last().map(|last| crate::pipeline::PointIx(*last));
            prop_assert!(last.is_none_or(|last| !pipeline.fixture(chain.fixture).selected[last.0].is_empty()));
        }
    }
}

#[test]
fn deterministic_work_is_shared_and_the_rest_has_its_path() {
    let pipeline = project();
    let matrix = Matrix(&pipeline);
    let row = matrix.cells().last().expect("a row");
    assert_eq!(
        matrix.compress_repetition(&row.answer.compress),
        Repetition::NONE
    );
    let own = Repetition {
        compress: Some(3),
        answer: Some(1),
        judge: None,
    };
    assert_eq!(matrix.answer_repetition(&row.answer), own);
    assert_eq!(matrix.judge_repetition(&row), Repetition::NONE);
}

#[test]
fn coordinates_are_names_for_people() {
    let pipeline = Project::new(STAGES).opened().pipeline;
    let matrix = Matrix(&pipeline);
    let row = matrix.cells().next().expect("a row");
    let name = row.place(&pipeline);
    assert_eq!(
        name.to_string(),
        "tiny · full · run 1 · point 1 · probe first · agent 1 · judge 1"
    );
    let json = serde_json::to_value(row.answer.compress.place(&pipeline)).expect("plain data");
    assert_eq!(
        json,
        serde_json::json!({"fixture": "tiny", "point": 1, "method": "full", "run": 1})
    );
    assert_eq!(matrix.counts().judge, 9);
}
