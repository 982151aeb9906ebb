//! The page's data: one element with everything but long texts, and one element for each chunk of texts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use indexmap::{IndexMap, IndexSet};
use serde::{Serialize, Serializer};

use super::chunks::{FactMatcher, ProbeName, chunk_cells, chunk_context, chunk_session, safe_json};
use super::input::{ContextKey, PageInput, PageMethod};
use crate::action::ActionKey;
use crate::judge::{CriterionId, Dimension};
use crate::measure::{FactClass, FactOutcome};
use crate::probe::{Probe, ProbeType};
use crate::results::Row;

/// The JSON that the script reads as `report`.
#[derive(Serialize)]
struct PageData<'a> {
    #[serde(flatten)]
    input: &'a PageInput<'a>,
    methods: Vec<PageMethod>,
    dimensions: Vec<(&'static str, &'static str)>,
    types: Vec<&'static str>,
    /// By id: the name, and the index of the dimension.
    criteria: IndexMap<&'a str, (String, Option<usize>)>,
    fixtures: &'a IndexSet<&'a str>,
    probes: Vec<PageProbe<'a>>,
    answerers: &'a IndexSet<&'a str>,
    judges: &'a IndexSet<&'a str>,
    /// The first cell of each chunk of cells.
    chunks: &'a [usize],
    cells: CellTable,
}

/// A probe at its fixture and point.
#[derive(Serialize)]
struct PageProbe<'a> {
    fixture: Option<usize>,
    point: u32,
    id: &'a str,
    #[serde(rename = "type")]
    kind: ProbeType,
    /// `None` if the bank no longer has the probe.
    #[serde(flatten)]
    probe: Option<BankProbe<'a>>,
}

#[derive(Serialize)]
struct BankProbe<'a> {
    question: &'a str,
    expected: Vec<&'a [String]>,
    superseded: Vec<&'a [String]>,
    reference: Option<&'a str>,
    answerable: bool,
    tags: &'a [String],
}

impl<'a> From<&'a Probe> for BankProbe<'a> {
    fn from(probe: &'a Probe) -> BankProbe<'a> {
        BankProbe {
            question: &probe.question,
            expected: probe
                .expected_facts
                .iter()
                .map(|fact| fact.spellings.as_slice())
                .collect(),
            superseded: probe
                .superseded_facts
                .iter()
                .map(|fact| fact.spellings.as_slice())
                .collect(),
            reference: probe.reference_answer.as_deref(),
            answerable: probe.answerable,
            tags: &probe.tags,
        }
    }
}

/// The cells by column, because JSON of columns is much smaller than JSON of rows.
#[derive(Serialize)]
struct CellTable {
    n: usize,
    #[serde(flatten)]
    columns: BTreeMap<&'static str, CellColumn>,
    dimensions: [CellColumn; Dimension::ALL.len()],
    /// A letter for each fact of a row, in the order of the row.
    facts: Vec<String>,
}

/// The value of a cell in a column; `None` where the row has none.
type ColumnValue = fn(&Row, &CellIndices) -> Option<i64>;

/// The columns other than dimensions and facts, by the names that the script uses.
const COLUMNS: [(&str, ColumnValue); 12] = [
    ("method", |_, at| i64::try_from(at.method).ok()),
    ("probe", |_, at| i64::try_from(at.probe).ok()),
    ("answerer", |_, at| i64::try_from(at.answerer).ok()),
    ("judge", |_, at| i64::try_from(at.judge).ok()),
    ("context", |_, at| i64::try_from(at.context).ok()),
    ("same", |_, at| i64::try_from(at.same).ok()),
    ("run", |row, _| Some(row.run.into())),
    ("answer_n", |row, _| Some(row.answer_n.into())),
    ("judge_n", |row, _| Some(row.judge_n.into())),
    ("overall", |row, _| hundredths(row.overall)),
    ("tokens", |row, _| {
        row.context_tokens
            .and_then(|tokens| i64::try_from(tokens).ok())
    }),
    ("flags", |row, _| Some(flags(row))),
];

/// A column. If all values are equal, it is written as that value alone.
#[derive(Debug)]
struct CellColumn(Vec<Option<i64>>);

impl Serialize for CellColumn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.first() {
            Some(first) if self.0.iter().all(|value| value == first) => first.serialize(serializer),
            _ => self.0.serialize(serializer),
        }
    }
}

impl CellTable {
    fn new(rows: &[Row], indices: &[CellIndices]) -> CellTable {
        let columns = COLUMNS.into_iter().map(|(name, value)| {
            let values = rows.iter().zip(indices).map(|(row, at)| value(row, at));
            (name, CellColumn(values.collect()))
        });
        let dimensions = Dimension::ALL.map(|dimension| {
            let scores = rows
                .iter()
                .map(|row| hundredths(row.dimensions.get(&dimension).copied()));
            CellColumn(scores.collect())
        });
        CellTable {
            n: indices.len(),
            columns: columns.collect(),
            dimensions,
            facts: rows
                .iter()
                .map(|row| row.facts.iter().map(letter).collect())
                .collect(),
        }
    }
}

/// The sum of: 1 if the answer asserts what cannot be known, 2 if it states a superseded fact, and 4 if it names what
/// does not exist.
fn flags(row: &Row) -> i64 {
    let fabricated = row.fabricated == Some(true);
    i64::from(fabricated)
        + 2 * i64::from(!row.stale_facts.is_empty())
        + 4 * i64::from(!row.invented.is_empty())
}

fn hundredths(value: Option<f64>) -> Option<i64> {
    value
        .filter(|value| value.is_finite())
        .map(|value| (value * 100.0).round() as i64)
}

/// The letter by which the script knows the outcome of a fact.
fn letter(fact: &FactOutcome) -> char {
    match (fact.class, fact.answered) {
        (Some(FactClass::Lost), _) if fact.is_found_by_search() => 'u',
        (Some(FactClass::AnsweredElsewhere), _) if fact.is_found_by_search() => 's',
        (Some(FactClass::Answered), _) => 'a',
        (Some(FactClass::Missed), _) => 'm',
        (Some(FactClass::Lost), _) => 'l',
        (Some(FactClass::AnsweredElsewhere), _) => 'e',
        (None, true) => 'y',
        (None, false) => 'n',
    }
}

type ProbeKey<'a> = (&'a str, u32, &'a str);

/// Positions of a cell's names in the [`NameTables`].
#[derive(Clone, Copy, Debug)]
struct CellIndices {
    method: usize,
    probe: usize,
    answerer: usize,
    judge: usize,
    context: usize,
    /// The first cell of the method and the probe with the same judgement. Repetitions of a deterministic method share
    /// one.
    same: usize,
}

/// The names that occur in rows, in order of occurrence. Cells refer to them by index.
#[derive(Default)]
struct NameTables<'a> {
    methods: IndexSet<String>,
    fixtures: IndexSet<&'a str>,
    probes: IndexMap<ProbeKey<'a>, ProbeType>,
    answerers: IndexSet<&'a str>,
    judges: IndexSet<&'a str>,
    /// The contexts, with the probes that were answered from each.
    contexts: IndexMap<ContextKey, BTreeSet<usize>>,
    criteria: IndexSet<CriterionId>,
    judgements: HashMap<(usize, usize, ActionKey), usize>,
    cells: Vec<CellIndices>,
}

impl<'a> NameTables<'a> {
    fn new(input: &PageInput<'a>) -> NameTables<'a> {
        let methods = input
            .methods
            .iter()
            .map(|method| method.name.clone())
            .collect();
        let mut tables = NameTables {
            methods,
            ..NameTables::default()
        };
        for row in input.rows {
            let name = page_name(&tables.methods, row);
            let cell = tables.indices(row, name);
            tables.cells.push(cell);
        }
        tables
    }

    fn indices(&mut self, row: &'a Row, method: String) -> CellIndices {
        self.fixtures.insert(&row.fixture);
        self.criteria
            .extend(row.criteria.iter().map(|score| score.criterion.clone()));
        let entry = self.probes.entry((&row.fixture, row.point, &row.probe));
        let probe = entry.index();
        entry.or_insert(row.kind);
        let entry = self
            .contexts
            .entry((row.keys.compress, row.method.clone(), row.point));
        let context = entry.index();
        entry.or_default().insert(probe);
        let method = self.methods.insert_full(method).0;
        let cell = self.cells.len();
        CellIndices {
            method,
            probe,
            same: *self
                .judgements
                .entry((method, probe, row.keys.judge))
                .or_insert(cell),
            answerer: self.answerers.insert_full(&row.answerer).0,
            judge: self.judges.insert_full(&row.judge).0,
            context,
        }
    }
}

/// The name of a row's method on the page. It includes the answerer if there are several; answers with a search get a name
/// of their own.
fn page_name(methods: &IndexSet<String>, row: &Row) -> String {
    let with_answerer = format!("{}/{}", row.method, row.closed_answerer());
    let name = match methods.contains(&with_answerer) {
        true => with_answerer,
        false => row.method.clone(),
    };
    // No figure of the page may mix open and closed book.
    match row.open_book.is_some() {
        true => format!("{name} + search"),
        false => name,
    }
}

/// All data elements of the page.
pub(super) fn elements(input: &PageInput<'_>) -> String {
    let bank: BTreeMap<(&str, &str), &Probe> = input
        .banks
        .iter()
        .flat_map(|(fixture, probes)| {
            probes
                .iter()
                .map(move |probe| ((*fixture, &*probe.id.0), probe))
        })
        .collect();
    let tables = NameTables::new(input);
    let probes: Vec<Option<&Probe>> = tables
        .probes
        .keys()
        .map(|(fixture, _, id)| bank.get(&(*fixture, *id)).copied())
        .collect();
    let matchers: Vec<Option<FactMatcher>> = probes
        .iter()
        .map(|probe| probe.map(FactMatcher::new))
        .collect();
    let row_matchers: Vec<Option<&FactMatcher>> = tables
        .cells
        .iter()
        .map(|cell| matchers.get(cell.probe).and_then(Option::as_ref))
        .collect();
    let contexts = contexts(input, &tables, &matchers);
    let cells = chunk_cells(input.rows, &row_matchers);
    let (first_cells, cells): (Vec<usize>, Vec<String>) = cells.into_iter().unzip();
    let page_probes =
        tables
            .probes
            .iter()
            .zip(probes)
            .map(|((&(fixture, point, id), &kind), probe)| PageProbe {
                fixture: tables.fixtures.get_index_of(fixture),
                point,
                id,
                kind,
                probe: probe.map(BankProbe::from),
            });
    let data = page_data(input, &tables, page_probes.collect(), &first_cells);
    let mut html = format!(
        "<script type=\"application/json\" id=\"report\">{}</script>\n",
        safe_json(&data)
    );
    let cells = cells.into_iter().map(Some).collect();
    let sessions = sessions(input, &tables, &matchers);
    for (kind, chunks) in [
        ("cells", cells),
        ("contexts", contexts),
        ("sessions", sessions),
    ] {
        for (number, chunk) in chunks
            .into_iter()
            .enumerate()
            .filter_map(|(number, chunk)| Some((number, chunk?)))
        {
            let _ = writeln!(
                html,
                "<script type=\"text/plain\" id=\"{kind}-{number}\">{chunk}</script>"
            );
        }
    }
    html
}

/// The chunk of each context, with the facts of its probes; `None` if it is not in the cache.
fn contexts(
    input: &PageInput<'_>,
    tables: &NameTables<'_>,
    matchers: &[Option<FactMatcher>],
) -> Vec<Option<String>> {
    let contexts = tables.contexts.iter().map(|(key, probes)| {
        let named = probes.iter().filter_map(|at| {
            let (&(fixture, _, id), _) = tables.probes.get_index(*at)?;
            Some(((fixture, id), matchers.get(*at)?.as_ref()?))
        });
        let matchers: BTreeMap<ProbeName<'_>, &FactMatcher> = named.collect();
        chunk_context(input.contexts.get(key)?, &matchers)
    });
    contexts.collect()
}

/// The chunk of each fixture's session, with the facts of the fixture's probes.
fn sessions(
    input: &PageInput<'_>,
    tables: &NameTables<'_>,
    matchers: &[Option<FactMatcher>],
) -> Vec<Option<String>> {
    let chunks = tables.fixtures.iter().map(|fixture| {
        let probes = tables
            .probes
            .keys()
            .zip(matchers)
            .filter(|((of, ..), _)| of == fixture);
        let probes: Vec<_> = probes
            .filter_map(|((_, point, id), matcher)| Some((*point, *id, matcher.as_ref()?)))
            .collect();
        Some(chunk_session(input.sessions.get(fixture)?, &probes))
    });
    chunks.collect()
}

fn page_data<'a>(
    input: &'a PageInput<'a>,
    tables: &'a NameTables<'a>,
    probes: Vec<PageProbe<'a>>,
    chunks: &'a [usize],
) -> PageData<'a> {
    PageData {
        input,
        methods: methods(input, &tables.methods),
        dimensions: Dimension::ALL
            .iter()
            .map(|d| (d.name(), d.label(input.locale)))
            .collect(),
        types: ProbeType::ALL.iter().map(|kind| kind.name()).collect(),
        criteria: tables
            .criteria
            .iter()
            .map(|id| (&*id.0, criterion(input, id)))
            .collect(),
        fixtures: &tables.fixtures,
        probes,
        answerers: &tables.answerers,
        judges: &tables.judges,
        chunks,
        cells: CellTable::new(input.rows, &tables.cells),
    }
}

/// The declared methods, then those that only rows name.
fn methods(input: &PageInput<'_>, names: &IndexSet<String>) -> Vec<PageMethod> {
    let undeclared = names.iter().skip(input.methods.len());
    let undeclared = undeclared.map(|name| PageMethod {
        name: name.clone(),
        ..PageMethod::default()
    });
    input.methods.iter().cloned().chain(undeclared).collect()
}

/// A criterion's name, and the index of its dimension.
fn criterion(input: &PageInput<'_>, id: &CriterionId) -> (String, Option<usize>) {
    match input.rubric.criterion(id) {
        Some(known) => (
            known.name.clone(),
            Dimension::ALL.iter().position(|d| *d == known.dimension),
        ),
        None => (id.to_string(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_equal_values_is_written_as_that_value() {
        let json =
            |values: &[Option<i64>]| serde_json::to_string(&CellColumn(values.to_vec())).unwrap();
        assert_eq!(json(&[Some(1), Some(1)]), "1");
        assert_eq!(json(&[None, None]), "null");
        assert_eq!(json(&[Some(1), None]), "[1,null]");
        assert_eq!(json(&[]), "[]");
    }
}
