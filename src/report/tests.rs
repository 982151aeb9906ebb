//! Reports as people see them.

use crate::judge::{CriterionScore, Dimension};
use crate::measure::{FactClass, FactOutcome};
use crate::report::translation::translation;
use crate::report::*;
use crate::results::fakes::{NO_LINES, design, row};
use crate::results::*;
use base::locale::Locale;
use stats::{NoEvidenceReason, Verdict};

/// A text without its colours.
pub(super) fn plain(text: &str) -> String {
    let mut parts = text.split(COLOR_MARK);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| {
        plain + part.split_once('m').expect("a code").1
    })
}

const FIXTURES: [&str; 4] = ["cache-bug", "login", "metrics", "proxy"];

fn rows(method: &str, base: f64, kept: u64) -> Vec<Row> {
    let of = |(place, fixture): (usize, &&str)| -> Vec<Row> {
        let wobble = 0.04 * ((place * 5 + (10.0 * base) as usize) % 3) as f64;
        let of_run = |run: u32| {
            let value = base + wobble + 0.1 * place as f64 + 0.05 * f64::from(run);
            let scores = Dimension::ALL
                .map(|dimension| (dimension, (value + 0.1 * dimension as u8 as f64).min(5.0)));
            Row {
                context_tokens: Some(kept),
                compression_ratio: Some(1.0 - kept as f64 / 40_000.0),
                ..row(fixture, method, run, &scores)
            }
        };
        (1..=3).map(of_run).collect()
    };
    FIXTURES.iter().enumerate().flat_map(of).collect()
}

const METHODS: [(&str, &str); 3] = [
    ("anchored", "anchored-iterative"),
    ("full", "full"),
    ("none", "none"),
];

fn manifest(label: &str) -> Manifest {
    Manifest::begin(
        label,
        "t",
        design(&METHODS, &FIXTURES.map(|name| (name, 1)), 3),
    )
}

fn all_rows(anchored: f64) -> Vec<Row> {
    [
        rows("anchored", anchored, 1_800),
        rows("full", 4.2, 40_000),
        rows("none", 0.6, 0),
    ]
    .concat()
}

fn set(manifest: Manifest, rows: Vec<Row>) -> ResultSet {
    ResultSet::gather(manifest, rows.into_iter().map(Ok)).unwrap()
}

/// The number of probes of each fixture in comparisons: enough that the noise of grading is small.
const PROBES: u32 = 10;

/// A set with [`PROBES`] probes per fixture, all with the grades of `rows`.
fn of_many(manifest: Manifest, rows: &[Row]) -> ResultSet {
    let fixtures = design(&METHODS, &FIXTURES.map(|name| (name, PROBES)), 3).fixtures;
    let design = Design {
        fixtures,
        ..manifest.design
    };
    let probe = |n: u32| {
        rows.iter().map(move |row| Row {
            probe: format!("p{n}"),
            ..row.clone()
        })
    };
    set(
        Manifest { design, ..manifest },
        (1..=PROBES).flat_map(probe).collect(),
    )
}

fn compared(manifest_a: Manifest) -> Summary {
    let (a, b) = (
        of_many(manifest_a, &all_rows(3.1)),
        of_many(manifest("baseline"), &all_rows(2.6)),
    );
    let side = |set| Side { set, method: None };
    let comparison = compare(side(&a), side(&b), ComparisonScope::All, &NO_LINES).unwrap();
    summarize(&a, Some(comparison))
}

fn report(manifest: &Manifest, rows: Vec<Row>) -> String {
    let places = worst_rows(&set(manifest.clone(), rows.clone()), 2);
    let worst = places
        .into_iter()
        .map(|(at, score)| WorstProbe::new(&rows[at], score))
        .collect();
    markdown(
        &Summary {
            worst,
            ..compared(manifest.clone())
        },
        manifest,
    )
}

/// What `--all` prints below the first screen.
fn all_tables(summary: &Summary, manifest: &Manifest, width: usize) -> String {
    plain(&styled_sections(&details(summary, manifest), width))
}

fn widest(text: &str) -> usize {
    text.lines()
        .map(unicode_width::UnicodeWidthStr::width)
        .max()
        .unwrap_or(0)
}

#[test]
fn the_summary_table_at_full_width() {
    let manifest = manifest("tighter-prompt");
    insta::assert_snapshot!(all_tables(&compared(manifest.clone()), &manifest, 100));
}

#[test]
fn cells_that_were_not_begun_are_missing_and_not_failed() {
    let manifest = manifest("cut-short");
    let rows: Vec<Row> = all_rows(3.1)
        .into_iter()
        .filter(|row| row.method != "full" || row.run < 3)
        .collect();
    let summary = summarize(&set(manifest.clone(), rows), None);
    let cells = |text: String, bars: char| {
        let of = |line: &&str| {
            ["method", "full"]
                .iter()
                .any(|word| line.trim_start_matches(['|', ' ']).starts_with(word))
        };
        let end = |line: &str| {
            let line = line.replace([bars, '*'], " ");
            line.split_whitespace()
                .next_back()
                .unwrap_or_default()
                .to_owned()
        };
        let found: Vec<String> = text.lines().filter(of).map(end).collect();
        let at = found
            .iter()
            .position(|cells| cells.starts_with("missing"))
            .unwrap();
        found[at..].to_vec()
    };
    assert_eq!(cells(markdown(&summary, &manifest), '|'), ["missing", "4"]);
    assert_eq!(
        cells(all_tables(&summary, &manifest, 120), '|'),
        ["missing", "4"]
    );
}

#[test]
fn a_narrow_terminal_gets_the_same_table_in_blocks() {
    let manifest = manifest("tighter-prompt");
    let summary = compared(manifest.clone());
    for width in [60, 72, 80, 100, 140] {
        let text = all_tables(&summary, &manifest, width);
        assert!(widest(&text) <= width, "{width}: {}\n{text}", widest(&text));
    }
    insta::assert_snapshot!(all_tables(&summary, &manifest, 60));
}

fn own_sentence(manifest: &Manifest) -> String {
    headline(
        &summarize(&set(manifest.clone(), all_rows(3.1)), None),
        manifest,
    )
    .text
}

#[test]
fn a_run_in_which_rules_only_grade_says_which_figures_count() {
    let mut manifest = manifest("offline");
    manifest.design.judges[0].lexical = true;
    let sentence = own_sentence(&manifest);
    assert!(
        sentence.starts_with("Graded by built-in rules, not by a model: "),
        "{sentence}"
    );
    manifest.design.answerers[0].lexical = true;
    let sentence = own_sentence(&manifest);
    assert!(
        sentence.starts_with("Dry run with built-in rules: "),
        "{sentence}"
    );
    // Where a model answers and grades, one more method by the rules makes no dry run.
    let mut manifest = self::manifest("mixed");
    let [asked, ruled] = [false, true].map(|lexical| ModelInfo {
        lexical,
        ..manifest.design.answerers[0].clone()
    });
    let methods = manifest.design.methods.iter_mut();
    for (method, model) in methods.zip([asked, ruled]) {
        method.model = Some(model);
    }
    let sentence = own_sentence(&manifest);
    assert!(sentence.starts_with("anchored keeps "), "{sentence}");
    let changed = |lexical: bool| {
        sentence_of(&all_rows(3.1), &all_rows(2.0), |design| {
            design.judges[0].lexical = true;
            design.answerers[0].lexical = lexical;
        })
    };
    assert!(changed(false).ends_with("; graded by built-in rules."));
    assert!(changed(true).ends_with("; built-in rules, no model."));
}

#[test]
fn a_run_of_references_alone_judges_no_method() {
    let mut manifest = manifest("references");
    manifest.design.methods.remove(0);
    let rows = [rows("full", 4.2, 40_000), rows("none", 0.6, 0)].concat();
    let summary = summarize(&set(manifest.clone(), rows), None);
    assert_eq!(
        sentence(&manifest, &summary),
        "Only the references were run: no method is judged."
    );
}

#[test]
fn a_method_whose_judge_is_in_doubt_has_no_verdict_and_no_missing_evidence() {
    let (manifest, mut summary) = comparison_of(&all_rows(3.1), &all_rows(2.0), |_| ());
    let comparison = summary.comparison.as_mut().unwrap();
    comparison.primary = None;
    let anchored = comparison.methods.get_mut("anchored").unwrap();
    anchored.dimensions.clear();
    let test = anchored.overall.as_mut().unwrap();
    test.verdict = Verdict::NoEvidence;
    test.reason = Some(NoEvidenceReason::DriftNotExcluded);
    let sentence = sentence(&manifest, &summary);
    assert!(
        sentence.starts_with("No verdict: anchored +1.0") && !sentence.contains("evidence"),
        "{sentence}"
    );
}

#[test]
fn scores_without_an_interval_take_one_line() {
    let manifest = Manifest::begin("one", "t", design(&METHODS, &[("login", 1)], 3));
    let rows = all_rows(3.1)
        .into_iter()
        .filter(|row| row.fixture == "login")
        .collect();
    let summary = summarize(&set(manifest.clone(), rows), None);
    let table = all_tables(&summary, &manifest, 100);
    let lines: Vec<&str> = table
        .lines()
        .skip_while(|line| !line.starts_with("anchored"))
        .take(3)
        .collect();
    assert!(
        lines[1].starts_with("full") && lines[2].starts_with("none"),
        "{table}"
    );
}

#[test]
fn the_rule_based_stand_in_is_named_on_every_table_and_report() {
    let mut manifest = manifest("offline");
    manifest.design.judges[0].lexical = true;
    manifest.caveats.weak_judges.push("judge".into());
    manifest.caveats.allow_weak_judge = true;
    let summary = summarize(&set(manifest.clone(), all_rows(3.1)), None);
    let shown = plain(&screen(&summary, &manifest, 100, 24));
    let table = shown + &all_tables(&summary, &manifest, 100);
    for text in [table, markdown(&summary, &manifest)] {
        assert!(text.contains("lexical (rule-based stand-in)"), "{text}");
        assert!(
            text.contains("weak judge: judge failed its self-test"),
            "{text}"
        );
    }
}

#[test]
fn the_report_pastes_into_a_pull_request() {
    let text = report(&manifest("tighter-prompt"), all_rows(3.1));
    assert!(text.lines().count() < 120);
    insta::assert_snapshot!(text);
}

#[test]
fn a_chinese_report_has_chinese_labels() {
    let mut manifest = manifest("新提示词");
    manifest.design.locale = Locale::Zh;
    insta::assert_snapshot!(report(&manifest, all_rows(3.1)));
    for width in [60, 80, 120] {
        let table = all_tables(&compared(manifest.clone()), &manifest, width);
        assert!(
            widest(&table) <= width && table.contains("准确性"),
            "{table}"
        );
    }
}

#[test]
fn the_published_reference_stands_clearly_apart() {
    insta::assert_snapshot!(plain(&styled_sections(&reference(Locale::En), 110)));
}

#[test]
fn text_of_models_cannot_break_out_of_the_report() {
    let manifest = manifest("a");
    let mut rows = all_rows(3.1);
    for row in &mut rows {
        let evil = "<script>alert(1)</script> | ![x](http://evil) @team #1 `code`\n# heading";
        row.criteria = CriterionScore::new("accuracy_factual".into(), 0, evil)
            .into_iter()
            .collect();
        row.facts[0].answered = false;
        row.facts[0].fact = "`|<img src=x>`".into();
    }
    let text = report(&manifest, rows);
    assert!(
        !text.contains("<script>") && !text.contains("![x]") && !text.contains("@team"),
        "{text}"
    );
    assert!(!text.lines().any(|line| line.starts_with("# ")), "{text}");
    assert!(text.contains("&lt;script&gt;"));
}

const SCREEN: usize = 21;

#[test]
fn the_screen_says_what_was_shown_within_its_lines() {
    let manifest = manifest("after");
    let shown = plain(&screen(&compared(manifest.clone()), &manifest, 80, SCREEN));
    assert!(
        shown.lines().count() <= SCREEN && widest(&shown) <= 80,
        "{shown}"
    );
    insta::assert_snapshot!(shown);
}

#[test]
fn a_screen_of_many_methods_keeps_its_lines() {
    let names: Vec<String> = (0..40).map(|number| format!("method-{number}")).collect();
    let methods: Vec<(&str, &str)> = names
        .iter()
        .map(|name| (name.as_str(), "anchored-iterative"))
        .collect();
    let manifest = Manifest::begin(
        "many",
        "t",
        design(&methods, &FIXTURES.map(|name| (name, 1)), 3),
    );
    let all = names
        .iter()
        .flat_map(|name| rows(name, 2.0, 1_500))
        .collect();
    let summary = summarize(&set(manifest.clone(), all), None);
    let shown = plain(&screen(&summary, &manifest, 60, SCREEN));
    assert!(
        shown.lines().count() <= SCREEN && widest(&shown) <= 60,
        "{shown}"
    );
    assert!(shown.contains("and 32 more (--all)"), "{shown}");
}

/// The sentence, and what it had no room for.
fn sentence(manifest: &Manifest, summary: &Summary) -> String {
    let found = headline(summary, manifest);
    format!("{} {}", found.text, found.more)
        .trim_end()
        .to_owned()
}

#[test]
fn the_sentence_names_what_changed_in_both_languages() {
    let mut manifest = manifest("after");
    let summary = compared(manifest.clone());
    let english = sentence(&manifest, &summary);
    assert!(english.starts_with("Improved: anchored +0.49"), "{english}");
    manifest.design.locale = Locale::Zh;
    let chinese = sentence(&manifest, &summary);
    assert!(chinese.starts_with("提升：anchored +0.49"), "{chinese}");
}

/// The headline of a comparison of two sets of rows; `design` changes the design of both.
fn sentence_of(judged: &[Row], baseline: &[Row], design: impl Fn(&mut Design)) -> String {
    let (manifest, summary) = comparison_of(judged, baseline, design);
    sentence(&manifest, &summary)
}

/// A comparison of two sets of rows; `design` changes the design of both.
fn comparison_of(
    judged: &[Row],
    baseline: &[Row],
    design: impl Fn(&mut Design),
) -> (Manifest, Summary) {
    let manifest = |label: &str| {
        let mut manifest = manifest(label);
        design(&mut manifest.design);
        manifest
    };
    let (a, b) = (
        of_many(manifest("after"), judged),
        of_many(manifest("before"), baseline),
    );
    let side = |set| Side { set, method: None };
    let compared = compare(side(&a), side(&b), ComparisonScope::All, &NO_LINES).unwrap();
    let summary = summarize(&a, Some(compared));
    (a.manifest, summary)
}

/// Rows of a constraint that the contexts of `anchored` keep or lose, depending on `class`.
fn constraint_rows(class: FactClass) -> Vec<Row> {
    let anchored = rows("anchored", 1.0, 1_800).into_iter().map(|mut row| {
        row.is_constraint = true;
        row.facts[0] = FactOutcome {
            fact: "no new dependency".into(),
            class: Some(class),
            ..row.facts[0].clone()
        };
        row
    });
    anchored
        .chain(rows("full", 4.2, 40_000))
        .chain(rows("none", 0.6, 0))
        .collect()
}

#[test]
fn a_lost_constraint_is_in_the_sentence_also_where_no_score_changed() {
    let (lost, kept) = (
        constraint_rows(FactClass::Lost),
        constraint_rows(FactClass::Answered),
    );
    let english = sentence_of(&lost, &kept, |_| ());
    assert!(
        english.starts_with("anchored lost the user's rule `no new dependency`"),
        "{english}"
    );
    let chinese = sentence_of(&lost, &kept, |design| design.locale = Locale::Zh);
    assert!(
        chinese.starts_with("anchored 丢失用户的规则 `no new dependency`"),
        "{chinese}"
    );
    let unjudged = sentence_of(&lost, &kept, |design| design.judges[0].lexical = true);
    assert!(
        unjudged.starts_with("Unchanged: the same answers and grades as before; "),
        "{unjudged}"
    );
    assert!(
        unjudged.contains("anchored may have dropped the user's rule `no new dependency`"),
        "{unjudged}"
    );
    assert!(!sentence_of(&kept, &kept, |_| ()).contains("constraint"));
}

#[test]
fn grades_that_only_one_side_has_are_not_unchanged() {
    let is_left = |row: &Row| row.method != "anchored" || row.fixture != "proxy";
    let fewer: Vec<Row> = all_rows(3.1).into_iter().filter(is_left).collect();
    let english = sentence_of(&fewer, &all_rows(3.1), |_| ());
    assert_eq!(
        english,
        "Not comparable: anchored (30 of 120 cells are missing); some grades only on one side: anchored; 2 \
         methods unchanged."
    );
    let chinese = sentence_of(&fewer, &all_rows(3.1), |design| design.locale = Locale::Zh);
    assert_eq!(
        chinese,
        "无法比较：anchored（120 个单元中缺 30 个）；部分评分仅一侧有：anchored；2 个方法无变化。"
    );
    let (manifest, summary) = comparison_of(&fewer, &all_rows(3.1), |_| ());
    let table = all_tables(&summary, &manifest, 100);
    assert!(
        table.contains("unchanged (same answers, same grades): full, none"),
        "{table}"
    );
}

#[test]
fn answerers_with_other_results_are_each_named() {
    let (mut manifest, mut summary) = comparison_of(&all_rows(3.1), &all_rows(2.6), |_| ());
    manifest
        .design
        .answerers
        .push(crate::results::fakes::model_info("second", "test/agent-2"));
    let comparison = summary.comparison.as_mut().unwrap();
    comparison.primary = None;
    let better = comparison.methods.swap_remove("anchored").unwrap();
    let mut worse = better.clone();
    worse.overall.as_mut().unwrap().verdict = stats::Verdict::Regressed;
    worse.dimensions.clear();
    comparison.methods = [
        ("anchored/agent".to_owned(), better),
        ("anchored/second".to_owned(), worse),
    ]
    .into_iter()
    .collect();
    let said = sentence(&manifest, &summary);
    assert!(
        said.starts_with("Regressed: anchored/second") && said.contains("improved: anchored/agent"),
        "{said}"
    );
}

#[test]
fn a_lost_constraint_fails_a_junit_test_of_its_own() {
    let (lost, kept) = (
        constraint_rows(FactClass::Lost),
        constraint_rows(FactClass::Answered),
    );
    let (_, summary) = comparison_of(&lost, &kept, |_| ());
    let xml = junit(&summary, 1.0);
    assert!(
        xml.contains("<testcase classname=\"anchored\" name=\"constraint\">\n      <failure "),
        "{xml}"
    );
    assert!(xml.contains("failures=\"1\""), "{xml}");
    let (_, mut summary) = comparison_of(&kept, &kept, |_| ());
    assert!(!junit(&summary, 1.0).contains("constraint"));
    let comparison = summary.comparison.as_mut().unwrap();
    comparison.absent.push("gone".to_owned());
    let xml = junit(&summary, 1.0);
    assert!(
        xml.contains("<testcase classname=\"gone\" name=\"absent\">\n      <failure "),
        "the gate fails, too: {xml}"
    );
}

#[test]
fn a_dimension_that_alone_regressed_is_the_sentence() {
    let lower = |by: f64| {
        let mut rows = all_rows(3.1);
        for row in rows.iter_mut().filter(|row| row.method == "anchored") {
            *row.dimensions.get_mut(&Dimension::Accuracy).unwrap() -= by;
        }
        rows
    };
    let english = sentence_of(&lower(0.8), &all_rows(3.1), |_| ());
    assert!(
        english.starts_with("Regressed: anchored in accuracy −0.80 (95%: "),
        "{english}"
    );
    let chinese = sentence_of(&lower(0.8), &all_rows(3.1), |design| {
        design.locale = Locale::Zh
    });
    assert!(
        chinese.starts_with("退步：anchored 的准确性 −0.80（95%："),
        "{chinese}"
    );
    let small = sentence_of(&lower(0.2), &all_rows(3.1), |_| ());
    assert!(small.contains("anchored −0.03"), "{small}");
    let elsewhere = |row: &mut Row| {
        for (dimension, score) in &mut row.dimensions {
            *score = if *dimension == Dimension::Accuracy {
                *score - 0.8
            } else {
                (*score + 0.8).min(5.0)
            };
        }
    };
    let mut mixed = all_rows(3.1);
    mixed
        .iter_mut()
        .filter(|row| row.method == "anchored")
        .for_each(elsewhere);
    let mixed = sentence_of(&mixed, &all_rows(3.1), |_| ());
    assert!(
        mixed.starts_with("Regressed: anchored in accuracy −0.80 (95%: ")
            && mixed.contains("; improved: anchored +0.5"),
        "{mixed}"
    );
}

#[test]
fn the_sentence_says_on_how_many_fixtures_a_method_changed() {
    let (mut partly, before) = (all_rows(3.1), all_rows(2.6));
    for (row, earlier) in partly
        .iter_mut()
        .zip(&before)
        .filter(|(row, _)| row.fixture == "proxy")
    {
        *row = earlier.clone();
    }
    let (manifest, summary) = comparison_of(&partly, &before, |_| ());
    let english = sentence(&manifest, &summary);
    assert!(
        english.contains(": anchored +0.") && english.contains(") on 3 of 4 fixtures"),
        "{english}"
    );
    let shown = plain(&screen(&summary, &manifest, 100, 24));
    let row = shown.lines().find(|line| line.starts_with("anchored "));
    assert!(
        row.is_some_and(|row| row.contains(" (3 of 4) ")),
        "beside the change: {shown}"
    );
    assert!(!sentence_of(&all_rows(3.1), &before, |_| ()).contains("fixtures"));
}

#[test]
fn of_two_methods_the_other_one_is_named_and_no_edit() {
    let set = of_many(manifest("after"), &all_rows(3.1));
    let side = |method| Side {
        set: &set,
        method: Some(method),
    };
    let compared = compare(
        side("anchored"),
        side("full"),
        ComparisonScope::All,
        &NO_LINES,
    )
    .unwrap();
    assert!(
        compared.methods.values().all(|pair| pair.edits.is_empty()),
        "also not in tables and on the page"
    );
    let summary = summarize(&set, Some(compared));
    let text = sentence(&set.manifest, &summary);
    assert!(
        text.starts_with("Regressed: anchored −") && text.contains(" against full"),
        "{text}"
    );
    let shown = plain(&screen(&summary, &set.manifest, 100, 24));
    let rows = |name: &str| shown.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(
        [rows("anchored "), rows("full "), rows("none ")],
        [1, 0, 0],
        "only what is compared: {shown}"
    );
}

#[test]
fn dimensions_that_a_judge_is_not_qualified_in_are_one_note() {
    let reason = ExclusionReason::Unqualified {
        judges: vec!["grader".into()],
    };
    let dimensions = [Dimension::Accuracy, Dimension::Continuity];
    let excluded = dimensions.map(|dimension| ExcludedDimension {
        dimension,
        reason: reason.clone(),
    });
    assert_eq!(
        crate::report::notes::excluded_dimensions(&excluded, translation(Locale::En)),
        [
            "overall and the gate do not count accuracy, continuity: grader has not passed its self-test there \
             (`compeval judge selftest`)."
        ]
    );
}

#[test]
fn an_improvement_that_takes_more_tokens_says_so() {
    let longer = [
        rows("anchored", 3.1, 3_150),
        rows("full", 4.2, 40_000),
        rows("none", 0.6, 0),
    ]
    .concat();
    let (a, b) = (
        of_many(manifest("after"), &longer),
        of_many(manifest("before"), &all_rows(2.6)),
    );
    let side = |set| Side { set, method: None };
    let compared = compare(side(&a), side(&b), ComparisonScope::All, &NO_LINES).unwrap();
    let text = sentence(&manifest("after"), &summarize(&a, Some(compared)));
    assert!(
        text.starts_with("Improved, but 75% longer: anchored"),
        "{text}"
    );
}

#[test]
fn the_sentence_of_one_set_claims_no_order_between_overlapping_intervals() {
    let methods = [
        ("anchored", "anchored-iterative"),
        ("mask", "mask"),
        ("cut", "truncate"),
        ("full", "full"),
        ("none", "none"),
    ];
    let manifest = Manifest::begin(
        "first",
        "t",
        design(&methods, &FIXTURES.map(|name| (name, 1)), 3),
    );
    let all = [
        rows("anchored", 3.1, 1_800),
        rows("mask", 3.05, 1_800),
        rows("cut", 1.2, 1_800),
        rows("full", 4.2, 40_000),
        rows("none", 0.6, 0),
    ];
    let summary = summarize(&set(manifest.clone(), all.concat()), None);
    let text = sentence(&manifest, &summary);
    assert!(text.contains("; not separable from it: mask"), "{text}");
    assert!(text.contains("; below it: cut −"), "{text}");
}

#[test]
fn a_method_with_the_same_score_everywhere_is_ordered_by_it() {
    let methods = [("anchored", "anchored-iterative"), ("junk", "command")];
    let manifest = Manifest::begin(
        "first",
        "t",
        design(&methods, &FIXTURES.map(|name| (name, 1)), 3),
    );
    let mut junk = rows("junk", 0.6, 10);
    junk.iter_mut()
        .flat_map(|row| row.dimensions.values_mut())
        .for_each(|score| *score = 0.0);
    let all = [rows("anchored", 3.1, 1_800), junk].concat();
    let text = sentence(&manifest, &summarize(&set(manifest.clone(), all), None));
    assert!(
        text.starts_with("anchored scores ")
            && text.contains(" of the transcript's tokens on 4 fixtures; "),
        "{text}"
    );
    assert!(text.contains("; below it: junk −"), "{text}");
}

#[test]
fn an_incomplete_set_says_only_that() {
    let mut manifest = manifest("after");
    let half: Vec<Row> = all_rows(3.1)
        .into_iter()
        .filter(|row| row.run == 1)
        .collect();
    let text = sentence(&manifest, &summarize(&set(manifest.clone(), half), None));
    assert_eq!(
        text,
        "Incomplete: 12 of 36 cells are graded and 0 failed, so nothing is concluded."
    );
    manifest.outcome = Outcome::Budget;
    let mut whole = summarize(&set(manifest.clone(), all_rows(3.1)), None);
    assert!(sentence(&manifest, &whole).starts_with("Incomplete: 36 of 36"));
    // Where nothing is answered, contexts are counted.
    manifest.outcome = Outcome::Incomplete;
    manifest.design.answerers.clear();
    for method in whole.methods.values_mut() {
        (method.compression.contexts, method.compression.expected) = (5, 6);
    }
    let contexts = "Incomplete: 15 of 18 contexts were made, so nothing is concluded.";
    assert_eq!(sentence(&manifest, &whole), contexts);
}

#[test]
fn a_comparison_without_grades_says_that_contexts_are_the_same() {
    let (manifest, mut summary) = comparison_of(&all_rows(3.1), &all_rows(3.1), |_| ());
    assert_eq!(
        sentence(&manifest, &summary),
        "Unchanged: the same answers and grades as before."
    );
    for compared in summary.comparison.as_mut().unwrap().methods.values_mut() {
        compared.fixtures = FixtureChanges::default();
    }
    assert_eq!(
        sentence(&manifest, &summary),
        "Unchanged: the same planted figures as before."
    );
    for compared in summary.comparison.as_mut().unwrap().methods.values_mut() {
        compared.differences.contexts = Some(Default::default());
    }
    assert_eq!(
        sentence(&manifest, &summary),
        "Unchanged: the same contexts as before."
    );
}
