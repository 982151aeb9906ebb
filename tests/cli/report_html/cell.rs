//! One judged cell of a sample.

use compeval::action::{ActionKey, Digest};
use compeval::judge::{Criterion, CriterionScore, Rubric, Scope, grade};
use compeval::measure::{FactClass, FactOutcome};
use compeval::probe::{Probe, ProbeType};
use compeval::results::{OpenBook, Row, RowCost, RowKeys, RowSearch};

use super::sample::{METHODS, SampleOptions, Xorshift};

/// Coordinates and shared values of a cell.
#[derive(Clone, Copy)]
pub(crate) struct CellPosition<'a> {
    pub(crate) options: &'a SampleOptions,
    pub(crate) fixture: &'a str,
    /// The position in `METHODS`.
    pub(crate) method: usize,
    pub(crate) run: u32,
    pub(crate) point: u32,
    pub(crate) key: ActionKey,
    /// The probability that a fact is kept.
    pub(crate) keep: f64,
}

/// Puts facts into the context (`text`) and the answer at random.
fn facts(
    at: CellPosition<'_>,
    probe: &Probe,
    random: &mut Xorshift,
    text: &mut String,
) -> (Vec<FactOutcome>, String) {
    let mut answer = String::from("As far as the context says: ");
    let mut facts = Vec::new();
    for fact in &probe.expected_facts {
        let (kept, said) = (random.next() < at.keep, random.next() < 0.86);
        if kept {
            text.push_str(&format!(
                "- {}: decided in step {}, was port 9999.\n",
                fact.name(),
                facts.len() + 1
            ));
        }
        let answered = if kept { said } else { random.next() < 0.05 };
        if answered {
            answer.push_str(&format!("{}; ", fact.name()));
        }
        facts.push(FactOutcome {
            fact: fact.name().into(),
            answered,
            class: Some(FactClass::new(kept, answered)),
            found: None,
        });
    }
    answer.push_str(at.options.injection);
    (facts, answer)
}

/// A cell. The facts that its context keeps are added to `text`.
pub(crate) fn row(
    at: CellPosition<'_>,
    probe: &Probe,
    random: &mut Xorshift,
    text: &mut String,
) -> Row {
    let (method, strategy, _, tokens) = METHODS[at.method];
    let injection = at.options.injection;
    let (facts, answer) = facts(at, probe, random, text);
    let share = |of: fn(&FactOutcome) -> bool| {
        facts.iter().filter(|fact| of(fact)).count() as f64 / facts.len() as f64
    };
    let survival =
        share(|fact| matches!(fact.class, Some(FactClass::Answered | FactClass::Missed)));
    let criteria = criteria(at.options, probe.kind, share(|fact| fact.answered), random);
    let scores = grade(Rubric::built_in(at.options.locale), &criteria);
    let digest = |part: &str| ActionKey(Digest::hash(format!("{} {} {part}", at.key, probe.id)));
    let replaced = 19_000 + 1_000 * u64::from(at.point);
    let tokens = if strategy == "full" { replaced } else { tokens };
    let stale: Vec<String> = (random.next() < 0.04)
        .then(|| probe.superseded_facts[0].name().into())
        .into_iter()
        .collect();
    Row {
        fixture: at.fixture.into(),
        point: at.point,
        method: format!("{method}{injection}"),
        run: at.run,
        probe: probe.id.to_string(),
        kind: probe.kind,
        question: probe.question.clone(),
        answerer: format!("agent{injection}"),
        judge: format!("judge{injection}"),
        answer_n: 1,
        judge_n: 1,
        keys: RowKeys {
            compress: at.key,
            answer: digest("answer"),
            judge: digest("judge"),
        },
        criteria,
        dimensions: scores
            .iter()
            .map(|(dimension, score)| (dimension, score.value()))
            .collect(),
        overall: scores.overall().map(|score| score.value()),
        answer_when_lost: None,
        heading: None,
        fact_survival: Some(survival),
        summary_survival: None,
        fabricated: None,
        invented: (random.next() < 0.03)
            .then(|| format!("src/ghost.rs{injection}"))
            .into_iter()
            .collect(),
        context_tokens: Some(tokens),
        replaced_tokens: Some(replaced),
        compression_ratio: Some(1.0 - tokens as f64 / replaced as f64),
        fetch_tokens: Some(((1.0 - survival) * facts.len() as f64).round() as u64 * 640),
        refetch_unlocated: 0,
        refetch_unguided: false,
        usd: RowCost {
            compress: Some(0.031),
            answer: Some(0.004),
            judge: (at.method != 3).then_some(0.011),
        },
        truncated: false,
        open_book: None,
        answer: stale.iter().fold(answer, |answer, fact| {
            format!("{answer} It runs on {fact}.")
        }),
        stale_facts: stale,
        context_facts: None,
        is_constraint: false,
        facts,
    }
}

/// The same question answered with a search, which finds most of what the context lost.
pub(crate) fn with_search(at: CellPosition<'_>, closed: &Row, random: &mut Xorshift) -> Row {
    let injection = at.options.injection;
    let mut facts = closed.facts.clone();
    let (mut found, mut answer) = (Vec::new(), closed.answer.clone());
    for fact in &mut facts {
        let is_lost = fact.class == Some(FactClass::Lost);
        let is_found = is_lost && random.next() < 0.7;
        fact.found = Some(is_found);
        if is_found {
            found.push(format!(
                "[message {} · tool]\nThe log says: {}{injection}",
                found.len() + 3,
                fact.fact
            ));
            fact.answered = random.next() < 0.8;
        }
        if is_found && fact.answered {
            fact.class = Some(FactClass::AnsweredElsewhere);
            answer.push_str(&format!("{}; ", fact.fact));
        }
    }
    let messages: Vec<usize> = (3..3 + found.len()).collect();
    let returned = if found.is_empty() {
        "No message matches.".to_owned()
    } else {
        found.join("\n\n")
    };
    let is_searched = facts
        .iter()
        .any(|fact| fact.class != Some(FactClass::Answered));
    let misused = RowSearch {
        query: String::new(),
        messages: Vec::new(),
        returned: format!("Error: the query is empty.{injection}"),
    };
    let search = RowSearch {
        query: format!("{}{injection}", closed.question),
        messages,
        returned,
    };
    let searches = if is_searched {
        vec![search, misused]
    } else {
        Vec::new()
    };
    let key = ActionKey(Digest::hash(format!(
        "{} with a search",
        closed.keys.answer
    )));
    let open_book = OpenBook {
        closed: closed.answerer.clone(),
        steps: Vec::new(),
        searches,
        tokens: 300,
        gold_found: is_searched.then_some(!found.is_empty()),
    };
    Row {
        answerer: format!("{}+search", closed.answerer),
        keys: RowKeys {
            answer: key,
            judge: ActionKey(Digest::hash(format!("grade of {key}"))),
            ..closed.keys.clone()
        },
        facts,
        answer,
        open_book: Some(open_book),
        ..closed.clone()
    }
}

fn criteria(
    options: &SampleOptions,
    kind: ProbeType,
    answered: f64,
    random: &mut Xorshift,
) -> Vec<CriterionScore> {
    let rubric = Rubric::built_in(options.locale).criteria_for(kind, Scope::ByType);
    let points =
        |base: f64, random: f64| ((base + random * 1.6 - 0.4).round().clamp(0.0, 5.0)) as u8;
    let reason = |points: u8| match points {
        0..=1 => "The answer names none of what was asked for.",
        2..=3 => "One of the facts is there; the file is not named, and the value is missing.",
        _ => "All that was asked for is named, with the right values.",
    };
    let one = |c: &Criterion, random: &mut Xorshift| {
        let base = if c.id.0.starts_with("instruction") {
            4.2
        } else {
            0.8 + answered * 3.6
        };
        let points = points(base, random.next());
        CriterionScore::new(
            c.id.clone(),
            points,
            format!("{}{}", reason(points), options.injection),
        )
        .expect("on the scale")
    };
    rubric.into_iter().map(|c| one(c, random)).collect()
}
