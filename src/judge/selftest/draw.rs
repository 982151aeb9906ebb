//! Drawing the cases of a project from the templates.
//!
//! Eight scenes are drawn, each with its own names and numbers. A question has eight answers, one for each scene, so
//! the cases of a scene share a context, which providers' prompt caches serve. There are as many questions as
//! dimensions. Each question labels its answers in two dimensions, as in a ring, so each dimension gets sixteen labels,
//! two for each scene. Three scenes have an outdated context, with which the wrong answers agree: a judge that compares
//! answers with the context instead of the ground truth misses them. One case of each scene has a context of the size
//! of the run's longest contexts, with the scene at its beginning, in the middle or at its end. Most answers are put
//! together anew: the seed draws a phrasing of each part, and their order.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::{Case, CaseId, CaseKind, Quality, SelfTest};
use crate::judge::request::GroundTruth;
use crate::judge::rubric::Dimension;
use crate::probe::ProbeType;
use base::locale::Locale;
use base::random::Random;
use lexical::facts::Fact;
use sessions::transcript::estimate_tokens;

/// The size of the largest contexts of cases, in tokens.
const MAX_PADDING: u64 = 32_000;

/// What decides which cases a project has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SelfTestDesign {
    pub seed: u64,
    /// The size of eight of the contexts, in tokens; see [`SelfTestDesign::padding_for`].
    pub padding: u64,
}

impl SelfTestDesign {
    /// The size of padded contexts where nine in ten contexts of the run have at most this many tokens: rounded up to 1000
    /// times a power of two, so that an edit seldom changes the cases.
    pub fn padding_for(tokens: u64) -> u64 {
        let thousands = tokens.clamp(1, MAX_PADDING).div_ceil(1000);
        thousands.next_power_of_two() * 1000
    }
}

/// Cases of a self-test: a question for each dimension with an answer for each scene, lengthened copies and injections.
pub const SELFTEST_CASES: usize = Dimension::ALL.len() * SCENES + LENGTHENED.len() + INJECTED.len();

const SCENES: usize = 8;
/// Scenes from this one on have an outdated context.
const OUTDATED_FROM: usize = 5;
/// The cases that get a lengthened copy: question and answer.
const LENGTHENED: [(usize, usize); 4] = [(0, 0), (1, 4), (2, 0), (3, 3)];
/// The wrong answers that get an instruction to the judge.
const INJECTED: [(usize, usize); 3] = [(0, 5), (2, 3), (3, 6)];

/// The texts that cases are drawn from. They have slots in braces.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Templates {
    context: String,
    outdated_context: String,
    /// Lines that make a context longer.
    padding: Vec<String>,
    /// Sentences without content that make an answer longer.
    filler: Vec<String>,
    /// Instructions to the judge, put after a wrong answer.
    injections: Vec<String>,
    /// What stands between the parts of an answer.
    joint: String,
    /// Slots of numbers, each with the least and the greatest.
    numbers: BTreeMap<String, [u64; 2]>,
    /// Slots of words, each with the words to draw from. These may have slots themselves.
    pools: BTreeMap<String, Vec<String>>,
    /// Slots that are drawn together: a decision with its reasons.
    records: Vec<BTreeMap<String, Vec<String>>>,
    questions: Vec<QuestionTemplate>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuestionTemplate {
    #[serde(rename = "type")]
    probe_type: ProbeType,
    /// The two dimensions that its answers are labelled in.
    dimensions: [Dimension; 2],
    question: String,
    expected_facts: Vec<Fact>,
    #[serde(default)]
    superseded_facts: Vec<Fact>,
    answers: Vec<AnswerTemplate>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerTemplate {
    /// In the dimensions of the question, in their order.
    quality: [Quality; 2],
    /// A question that the record does not answer, asked instead.
    unanswerable: Option<String>,
    /// The answer, unless it has parts.
    #[serde(default)]
    answer: String,
    /// The parts that it is put together from, each with its phrasings.
    #[serde(default)]
    parts: Vec<Vec<String>>,
    /// What stands between the parts; `None` is what the language has.
    joint: Option<String>,
    /// Whether the parts stay in their order.
    #[serde(default)]
    fixed_order: bool,
}

static ENGLISH: LazyLock<Templates> =
    LazyLock::new(|| read(include_str!("../../../assets/selftest/en.toml")));
static CHINESE: LazyLock<Templates> =
    LazyLock::new(|| read(include_str!("../../../assets/selftest/zh.toml")));

fn read(text: &str) -> Templates {
    toml::from_str(text).expect("the templates are part of the program and read by its tests")
}

impl Templates {
    fn built_in(locale: Locale) -> &'static Templates {
        locale.pick(&ENGLISH, &CHINESE)
    }
}

/// The cases of a project, in the language of its rubric. The same design always draws the same cases.
pub fn draw_selftest(locale: Locale, design: SelfTestDesign) -> SelfTest {
    let templates = Templates::built_in(locale);
    let mut random = Random::seeded(design.seed);
    let scenes = draw_scenes(templates, &mut random);
    let mut cases = Vec::new();
    for (nth, question) in templates.questions.iter().enumerate() {
        for (answer_nth, answer) in question.answers.iter().enumerate() {
            let text = put_together(templates, answer, &mut random);
            // Each scene gets a different answer of each question.
            let scene_nth = (answer_nth * 5 + nth * 3) % SCENES;
            let Some(scene) = scenes.get(scene_nth) else {
                continue;
            };
            let id = case_id(question, answer_nth);
            let mut case = scene.case(id, question, answer, &text);
            if scene_nth % templates.questions.len() == nth {
                let place = [0, 50, 100][scene_nth % 3];
                case.context = Some(pad(templates, &scene.context, design.padding, place));
            }
            cases.push(case);
        }
    }
    let copies = lengthened(templates, &cases);
    let injections = injected(templates, &cases);
    cases.extend(copies.chain(injections).collect::<Vec<Case>>());
    SelfTest::new(cases)
}

/// The text of an answer, still with its slots.
fn put_together(templates: &Templates, answer: &AnswerTemplate, random: &mut Random) -> String {
    if answer.parts.is_empty() {
        return answer.answer.clone();
    }
    let drawn: Vec<&str> = answer
        .parts
        .iter()
        .filter_map(|phrasings| {
            let last = phrasings.len().saturating_sub(1) as u64;
            Some(phrasings.get(random.between(0, last) as usize)?.as_str())
        })
        .collect();
    let order = if answer.fixed_order {
        (0..drawn.len()).collect()
    } else {
        shuffled(drawn.len(), random)
    };
    let parts: Vec<&str> = order
        .into_iter()
        .filter_map(|at| drawn.get(at).copied())
        .collect();
    parts.join(answer.joint.as_deref().unwrap_or(&templates.joint))
}

fn case_id(question: &QuestionTemplate, answer: usize) -> CaseId {
    let [first, second] = question.dimensions;
    CaseId(format!("{first}-{second}-{}", answer + 1))
}

/// The case of an answer, by the indices of the question and the answer.
fn find<'c>(
    templates: &Templates,
    cases: &'c [Case],
    question: usize,
    answer: usize,
) -> Option<&'c Case> {
    let id = case_id(templates.questions.get(question)?, answer);
    cases.iter().find(|case| case.id == id)
}

/// Copies of cases, whose answers have the same content in three times the words.
fn lengthened<'c>(templates: &'c Templates, cases: &'c [Case]) -> impl Iterator<Item = Case> + 'c {
    LENGTHENED.into_iter().filter_map(|(question, answer)| {
        let case = find(templates, cases, question, answer)?;
        let mut text = String::new();
        let due = case.answer.chars().count() * 2;
        for sentence in templates.filler.iter().cycle() {
            if text.chars().count() + sentence.chars().count() / 2 > due {
                break;
            }
            text.push_str(sentence);
            text.push('\n');
        }
        let id = CaseId(format!("lengthened-{}", case.id));
        let kind = CaseKind::Lengthened(case.id.clone());
        Some(Case {
            id,
            kind,
            labels: BTreeMap::new(),
            answer: format!("{}\n{text}", case.answer),
            ..case.clone()
        })
    })
}

/// Copies of cases whose wrong answers also try to instruct the judge.
fn injected<'c>(templates: &'c Templates, cases: &'c [Case]) -> impl Iterator<Item = Case> + 'c {
    let places = INJECTED.into_iter().enumerate().zip(&templates.injections);
    places.filter_map(|((nth, (question, answer)), text)| {
        let case = find(templates, cases, question, answer)?;
        let (id, answer) = (
            CaseId(format!("injection-{}", nth + 1)),
            format!("{}{text}", case.answer),
        );
        Some(Case {
            id,
            kind: CaseKind::Injection,
            labels: BTreeMap::new(),
            answer,
            ..case.clone()
        })
    })
}

/// A context of about `tokens` tokens, with the scene after `place` percent of the padding.
fn pad(templates: &Templates, scene: &str, tokens: u64, place: u64) -> String {
    let (mut before, mut after) = (String::new(), String::new());
    let mut size = estimate_tokens(scene).0;
    let room = tokens.saturating_sub(size).max(1);
    let start = size;
    for (nth, line) in (0_u64..).zip(templates.padding.iter().cycle()) {
        let line = line.replace("{n}", &(nth + 11).to_string());
        size += estimate_tokens(&line).0 + 1;
        if size > tokens {
            break;
        }
        let part = if (size - start) * 100 <= room * place {
            &mut before
        } else {
            &mut after
        };
        part.push_str(&line);
        part.push('\n');
    }
    format!("{before}{scene}{after}")
}

/// A scene: the words in its slots, and its context.
struct Scene {
    slots: HashMap<String, String>,
    context: String,
}

impl Scene {
    fn case(
        &self,
        id: CaseId,
        question: &QuestionTemplate,
        answer: &AnswerTemplate,
        text: &str,
    ) -> Case {
        let (expected, superseded): (&[Fact], &[Fact]) = match answer.unanswerable {
            Some(_) => (&[], &[]),
            None => (&question.expected_facts, &question.superseded_facts),
        };
        Case {
            id,
            kind: CaseKind::Labelled,
            labels: question
                .dimensions
                .into_iter()
                .zip(answer.quality)
                .collect::<BTreeMap<_, Quality>>(),
            question: self.fill(answer.unanswerable.as_deref().unwrap_or(&question.question)),
            probe_type: question.probe_type,
            truth: GroundTruth {
                expected_facts: expected.iter().map(|fact| self.fact(fact)).collect(),
                superseded_facts: superseded.iter().map(|fact| self.fact(fact)).collect(),
                reference_answer: None,
            },
            criteria: None,
            answerable: answer.unanswerable.is_none(),
            context: Some(self.context.clone()),
            answer: self.fill(text),
        }
    }

    fn fact(&self, fact: &Fact) -> Fact {
        Fact {
            spellings: fact
                .spellings
                .iter()
                .map(|spelling| self.fill(spelling))
                .collect(),
        }
    }

    /// A text with its slots filled, and the slots in their words, too. A brace without a slot stays.
    fn fill(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, open)) = rest.split_once('{') {
            filled.push_str(before);
            let slot = open
                .split_once('}')
                .and_then(|(name, after)| Some((self.slots.get(name)?, after)));
            match slot {
                Some((value, after)) => {
                    filled.push_str(&self.fill(value));
                    rest = after;
                }
                None => {
                    filled.push('{');
                    rest = open;
                }
            }
        }
        filled + rest
    }
}

/// Draws all scenes. No two of them share a word of a pool, as far as the pool has enough words.
fn draw_scenes(templates: &Templates, random: &mut Random) -> Vec<Scene> {
    let mut scenes: Vec<HashMap<String, String>> = vec![HashMap::new(); SCENES];
    for (slot, pool) in &templates.pools {
        deal(&mut scenes, &[(slot, pool)], random);
    }
    for record in &templates.records {
        deal(&mut scenes, &record.iter().collect::<Vec<_>>(), random);
    }
    for slots in &mut scenes {
        let mut taken = Vec::new();
        for (slot, [least, most]) in &templates.numbers {
            let mut number = random.between(*least, *most);
            while taken.contains(&number) {
                number = random.between(*least, *most);
            }
            taken.push(number);
            slots.insert(slot.clone(), number.to_string());
        }
    }
    let scenes = scenes.into_iter().enumerate().map(|(nth, slots)| {
        let mut scene = Scene {
            slots,
            context: String::new(),
        };
        let is_outdated = nth >= OUTDATED_FROM;
        scene.context = scene.fill(if is_outdated {
            &templates.outdated_context
        } else {
            &templates.context
        });
        scene
    });
    scenes.collect()
}

/// Gives each scene the words at one place of the pools, the same place in each pool.
fn deal(
    scenes: &mut [HashMap<String, String>],
    pools: &[(&String, &Vec<String>)],
    random: &mut Random,
) {
    let size = pools.iter().map(|(_, pool)| pool.len()).min().unwrap_or(0);
    let order = shuffled(size, random);
    for (slots, place) in scenes.iter_mut().zip(order.iter().cycle()) {
        for (slot, pool) in pools {
            slots.extend(pool.get(*place).map(|word| ((*slot).clone(), word.clone())));
        }
    }
}

/// The numbers below `size` in a random order.
fn shuffled(size: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..size).collect();
    random.shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexical::facts::FactFinder;
    use sessions::transcript::fold;
    use std::collections::BTreeSet;

    fn drawn(locale: Locale, seed: u64) -> SelfTest {
        draw_selftest(
            locale,
            SelfTestDesign {
                seed,
                padding: 1000,
            },
        )
    }

    fn labelled(test: &SelfTest) -> impl Iterator<Item = &Case> {
        test.cases
            .iter()
            .filter(|case| case.kind == CaseKind::Labelled)
    }

    /// How many of the case's facts occur in `text`.
    fn facts_in(case: &Case, text: &str) -> usize {
        FactFinder::all(&case.truth.expected_facts)
            .iter()
            .filter(|fact| fact.occurs_in(&fold(text)))
            .count()
    }

    #[test]
    fn there_is_a_request_for_each_case_and_16_labels_a_dimension() {
        for (locale, seed) in [
            (Locale::En, 1),
            (Locale::En, 2),
            (Locale::Zh, 1),
            (Locale::Zh, 2),
        ] {
            let test = drawn(locale, seed);
            let requests: BTreeSet<_> = test
                .cases
                .iter()
                .map(|case| (&case.question, &case.answer))
                .collect();
            let labels = Dimension::ALL.len() * SCENES;
            assert_eq!(
                (labelled(&test).count(), test.cases.len(), requests.len()),
                (labels, SELFTEST_CASES, SELFTEST_CASES)
            );
            for dimension in Dimension::ALL {
                let count = |due: Quality| {
                    test.labelled(dimension)
                        .filter(|(_, quality)| *quality == due)
                        .count()
                };
                let counts = [Quality::Right, Quality::Half, Quality::Wrong].map(count);
                assert_eq!(counts, [6, 4, 6], "{dimension} {locale:?}");
            }
            assert_eq!(labelled(&test).filter(|case| !case.answerable).count(), 8);
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_one_other_names() {
        assert_eq!(drawn(Locale::En, 7), drawn(Locale::En, 7));
        let answers = |seed| -> BTreeSet<String> {
            labelled(&drawn(Locale::En, seed))
                .map(|case| case.answer.clone())
                .collect()
        };
        let common = answers(7).intersection(&answers(8)).count();
        assert!(common <= 4, "{common} answers do not depend on the seed");
    }

    #[test]
    fn no_slot_is_left_and_no_question_gives_its_facts_away() {
        for locale in [Locale::En, Locale::Zh] {
            for seed in 0..20 {
                for case in &drawn(locale, seed).cases {
                    if case.kind != CaseKind::Injection {
                        let texts = [&case.question, &case.answer, case.context.as_ref().unwrap()];
                        assert!(
                            texts.iter().all(|text| !text.contains(['{', '}'])),
                            "{case:?}"
                        );
                    }
                    assert_eq!(
                        facts_in(case, &case.question),
                        0,
                        "{locale:?} {seed} {}: {case:?}",
                        case.id
                    );
                }
            }
        }
    }

    #[test]
    fn right_answers_hold_all_facts_and_key_words_stand_in_wrong_ones_too() {
        for (locale, seed) in [(Locale::En, 3), (Locale::Zh, 3)] {
            let test = drawn(locale, seed);
            for dimension in Dimension::ALL {
                let is_full =
                    |case: &Case| facts_in(case, &case.answer) == case.truth.expected_facts.len();
                let of = |due: Quality| {
                    test.labelled(dimension)
                        .filter(move |(case, q)| *q == due && case.answerable)
                };
                if dimension == Dimension::InstructionFollowing {
                    continue;
                }
                let traps = of(Quality::Wrong)
                    .chain(of(Quality::Half))
                    .filter(|(case, _)| is_full(case))
                    .count();
                assert!(traps >= 1, "{dimension} {locale:?}: {traps}");
                let most = |case: &Case| {
                    facts_in(case, &case.answer) * 2 > case.truth.expected_facts.len()
                };
                let partial = of(Quality::Right).filter(|(case, _)| !most(case)).count();
                assert!(partial <= 1, "{dimension} {locale:?}");
            }
        }
    }

    #[test]
    fn eight_contexts_have_the_size_of_the_run_and_hold_their_scene() {
        assert_eq!(
            [0, 1, 1000, 1001, 9000, 32_000, 90_000].map(SelfTestDesign::padding_for),
            [1000, 1000, 1000, 2000, 16_000, 32_000, 32_000]
        );
        for locale in [Locale::En, Locale::Zh] {
            let test = draw_selftest(
                locale,
                SelfTestDesign {
                    seed: 1,
                    padding: 4000,
                },
            );
            let sizes: Vec<u64> = labelled(&test)
                .map(|case| sessions::transcript::estimate_tokens(case.context.as_ref().unwrap()).0)
                .filter(|size| *size > 1000)
                .collect();
            assert_eq!(sizes.len(), 8);
            assert!(
                sizes.iter().all(|size| (3300..4500).contains(size)),
                "{sizes:?}"
            );
        }
    }

    #[test]
    fn a_lengthened_copy_has_about_three_times_the_text() {
        for locale in [Locale::En, Locale::Zh] {
            let test = drawn(locale, 1);
            for case in &test.cases {
                let CaseKind::Lengthened(of) = &case.kind else {
                    continue;
                };
                let length = |case: &Case| case.answer.chars().count() as f64;
                let ratio = length(case) / length(test.case(of).unwrap());
                assert!((2.3..3.7).contains(&ratio), "{}: {ratio}", case.id);
            }
        }
    }
}
