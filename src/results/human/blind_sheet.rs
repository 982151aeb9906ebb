//! A sheet of answers for people to grade, without the names of methods, models, runs and judges.
//!
//! The id of an answer is a short digest of its place and its text, which reveals nothing to the grader, and which no
//! other answer in this place has. The lines are in the order of these ids, which mixes the methods. `judge agreement`
//! finds the places again from the results. Ceiling and floor are left out, as in the comparison. An answer that several
//! places share occurs once.

use std::collections::{BTreeMap, BTreeSet};

use crate::action::{Digest, DigestBuilder};
use crate::judge::Dimension;
use crate::results::{Design, Row};

/// Answers on a sheet: enough for 30 pairs of each common dimension, and an hour or two of work.
const ANSWERS: usize = 40;

const HEADING: [&str; 7] = [
    "id",
    "dimension",
    "score",
    "question",
    "expected_facts",
    "answer",
    "comment",
];

/// The id that a blind sheet has for the answer of a row.
pub(super) fn answer_id(row: &Row) -> String {
    let mut builder = DigestBuilder::new("answer of a blind sheet");
    builder
        .field("fixture", &row.fixture)
        .field("method", &row.method)
        .field("probe", &row.probe);
    builder
        .field("answerer", &row.answerer)
        .field("answer", &row.answer);
    for number in [row.point, row.run, row.answer_n] {
        builder.field("number", number.to_le_bytes());
    }
    builder.finish().to_string().chars().take(12).collect()
}

/// Makes the sheet as CSV: a line for each graded dimension of an answer, with an empty score.
///
/// # Errors
/// A row that cannot be read.
pub fn blind_sheet<E>(
    design: &Design,
    rows: impl Iterator<Item = Result<Row, E>>,
) -> Result<Result<Vec<u8>, csv::Error>, E> {
    let mut answers: BTreeMap<String, Row> = BTreeMap::new();
    let mut seen: BTreeSet<Digest> = BTreeSet::new();
    for row in rows {
        let row = row?;
        let is_candidate = design
            .method(&row.method)
            .is_some_and(|info| !info.is_anchor())
            && design.is_tested(&row);
        if is_candidate && seen.insert(row.keys.answer.0) {
            answers.insert(answer_id(&row), row);
            // Only those with the lowest ids are needed: a matrix may have more answers than fit into memory.
            if answers.len() > ANSWERS {
                answers.pop_last();
            }
        }
    }
    Ok(write_sheet(design, answers.into_iter()))
}

fn write_sheet(
    design: &Design,
    answers: impl Iterator<Item = (String, Row)>,
) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADING)?;
    for (id, row) in answers {
        let facts: Vec<&str> = row.facts.iter().map(|fact| fact.fact.as_str()).collect();
        let (question, facts) = (question(design, &row), facts.join(" | "));
        for dimension in row.dimensions.keys().copied().map(Dimension::name) {
            writer.write_record([&*id, dimension, "", question, &*facts, &*row.answer, ""])?;
        }
    }
    writer
        .into_inner()
        .map_err(|error| csv::Error::from(std::io::Error::other(error.to_string())))
}

fn question<'d>(design: &'d Design, row: &Row) -> &'d str {
    design
        .probe(&row.fixture, row.point, &row.probe)
        .map_or("", |probe| &probe.question)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fakes::row;

    #[test]
    fn an_id_belongs_to_a_place_and_to_the_answer_in_it() {
        let answer = row("f1", "mine", 1, &[]);
        assert_eq!(answer_id(&answer), answer_id(&answer.clone()));
        assert_ne!(
            answer_id(&answer),
            answer_id(&Row {
                answer: "another".into(),
                ..answer.clone()
            })
        );
        assert_ne!(
            answer_id(&answer),
            answer_id(&Row {
                run: 2,
                ..answer.clone()
            })
        );
    }
}
