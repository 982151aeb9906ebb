//! A project in Chinese says everything about its results in Chinese.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::project::Project;

/// Names that are the same in any language: methods, files, fields, flags, commands, models, units.
const NAMES: &[&str] = &[
    // methods and stages
    "anchored",
    "index",
    "regenerative",
    "extract",
    "mask",
    "truncate",
    "full",
    "none",
    "agent",
    "judge",
    "lexical",
    "rules",
    "compress",
    "answer",
    "probes",
    "rule", // files, commands, flags
    "report",
    "html",
    "results",
    "contexts",
    "jsonl",
    "details",
    "compeval",
    "show",
    "observe",
    "label",
    "json",
    "all",
    "allow",
    "weak",
    "unproven",
    "selftest",
    "md",
    "utc",
    "claude",
    "code",
    "codex",
    "openhands",
    "copilot",
    "cli",
    "hermes", // vendors
    "factory",
    "anthropic",
    "openai",
    "gpt", // units and signs
    "kb",
    "min",
    "usd",
    "pareto",
    "pipeline",
    "toml",
];

/// The words of three letters or more that are in no list of names and not in the user's own text.
fn english(text: &str, own: &BTreeSet<String>) -> Vec<String> {
    let words = text
        .split(|c: char| !c.is_ascii_alphabetic())
        .filter(|word| word.len() > 2)
        .map(str::to_lowercase);
    words
        .filter(|word| !NAMES.contains(&word.as_str()) && !own.contains(word))
        .collect()
}

fn words_of(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphabetic())
        .map(str::to_lowercase)
        .collect()
}

/// A project in Chinese with the sample session, whose own words are English.
fn project() -> (Project, BTreeSet<String>) {
    let project = Project::empty();
    project.expect(0, "init --locale zh");
    let mut own = BTreeSet::new();
    for file in [
        "fixtures/tally-bank-export.json",
        "probes/tally-bank-export.probes.json",
    ] {
        own.extend(words_of(&project.read(file)));
    }
    own.extend(words_of(&project.path("results").display().to_string()));
    for prompt in project.files("prompts") {
        own.extend(words_of(
            &std::fs::read_to_string(prompt).expect("a prompt"),
        ));
    }
    (project, own)
}

#[test]
fn the_terminal_the_report_and_the_page_of_a_run_have_no_english_words() {
    let (project, own) = project();
    let ended = project.expect(0, "run --label a --all --runs 1");
    let terminal = format!("{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(english(&terminal, &own), Vec::<String>::new(), "{terminal}");
    let planted = project
        .expect(0, "run --label planted --planted --all --runs 1")
        .stdout;
    assert_eq!(english(&planted, &own), Vec::<String>::new(), "{planted}");
    let printed = project.expect(0, "report --reference").stdout;
    assert!(
        printed.contains("锚定迭代（Factory）") && printed.contains("不透明压缩（OpenAI）"),
        "{printed}"
    );
    let report = project.read("results/a/report.md");
    let prose: String = report
        .lines()
        .filter(|line| !line.contains("`accuracy_") && !line.contains("0/5"))
        .collect();
    assert_eq!(english(&prose, &own), Vec::<String>::new(), "{report}");
    let page = project.read("results/a/report.html");
    for words in [
        "\"type_recall\":\"召回\"",
        "\"type_continuation\":\"连续性\"",
    ] {
        let compact = page.replace("\": \"", "\":\"");
        assert!(compact.contains(words), "{words} is not in the page");
    }
}

/// The words of ids and facts in the bank of the sample.
fn facts(project: &Project) -> BTreeSet<String> {
    let bank: serde_json::Value =
        serde_json::from_str(&project.read("probes/tally-bank-export.probes.json"))
            .expect("a bank");
    let probes = bank["probes"].as_array().expect("probes");
    let mut own: BTreeSet<String> = probes
        .iter()
        .flat_map(|probe| words_of(&format!("{}{}", probe["id"], probe["expected_facts"])))
        .collect();
    own.extend(words_of("tally-bank-export"));
    own.extend(words_of(&project.path(".").display().to_string()));
    own
}

/// The output of a command, without quotations, flags, paths, keys, and the commands that it names.
fn prose(text: &str) -> String {
    let is_quoted_command = |line: &&str| line.trim_start().starts_with("compeval ");
    let without_commands = |line: &str| match line.split_once("compeval ") {
        Some((before, command)) => format!(
            "{before} {}",
            command.split_once("   ").map_or("", |(_, note)| note)
        ),
        None => line.to_owned(),
    };
    let lines: Vec<String> = text
        .lines()
        .filter(|line| !is_quoted_command(line))
        .map(without_commands)
        .collect();
    let unquoted: String = lines.join("\n").split('`').step_by(2).collect();
    let is_prose = |word: &&str| {
        !word.contains("--") && !word.contains(|c: char| "/_=".contains(c) || c.is_ascii_digit())
    };
    unquoted
        .split_whitespace()
        .filter(is_prose)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn commands_on_results_print_no_english_words() {
    let (project, of_session) = project();
    // Most commands quote nothing of the session but the facts that were asked for.
    let of_bank = facts(&project);
    let commands = [
        "run --label a --all --runs 1 --no-progress",
        "run --label b --runs 1 --compare-to a",
        "run --label b --runs 2",
        "report a",
        "compare a b",
        "show tally-bank-export --label a",
        "show tally-bank-export --label a --method mask --probe bag",
        "show tally-bank-export --label a --method none --probe first-error",
        "observe fixtures",
    ];
    let mut left = Vec::new();
    for command in commands {
        let ended = project.compeval(command);
        let text = format!("{}\n{}", ended.stdout, ended.stderr);
        let own = if command.starts_with("show") {
            &of_session
        } else {
            &of_bank
        };
        let words = english(&prose(&text), own)
            .into_iter()
            .filter(|word| !words_of(command).contains(word));
        let words: Vec<String> = words.collect();
        left.extend(
            (!words.is_empty()).then(|| format!("compeval {command}: {}\n{text}", words.join(" "))),
        );
    }
    assert!(left.is_empty(), "{}", left.join("\n"));
}

/// The columns of a terminal that each line takes up to the place that `find` finds in it.
fn widths(lines: &str, find: impl Fn(&str) -> Option<usize>) -> BTreeSet<usize> {
    lines
        .lines()
        .filter_map(|line| find(line).map(|end| line[..end].width()))
        .collect()
}

#[test]
fn columns_beside_chinese_names_are_aligned() {
    let (project, _) = project();
    project.edit(
        "pipeline.toml",
        "name     = \"extract\"",
        "name     = \"按规则摘录的方法\"",
    );
    project.expect(0, "run --label 基线 --runs 1 --no-progress");
    project.expect(0, "run --label second-label --runs 1 --no-progress");
    let listed = project.expect(0, "labels ls").stdout;
    assert_eq!(widths(&listed, |line| line.find('/')).len(), 1, "{listed}");
    let scores = project
        .expect(0, "show tally-bank-export --label 基线")
        .stdout;
    let is_in_table = |line: &str| {
        line.ends_with("none") || line.ends_with(|c: char| c.is_ascii_digit() || c == '–')
    };
    let end_of_row =
        |line: &str| (is_in_table(line) && !line.contains("压缩点")).then_some(line.len());
    assert_eq!(widths(&scores, end_of_row).len(), 1, "{scores}");
    let entries = project.expect(0, "cache ls").stdout;
    assert_eq!(
        widths(&entries, |line| line.find("tally-bank-export")).len(),
        1,
        "{entries}"
    );
}

#[test]
fn the_language_can_be_chosen_for_a_project_in_another() {
    let project = Project::empty();
    project.expect(0, "init");
    let chinese = project.expect(0, "run --label a --runs 1 --locale zh");
    assert!(
        chinese.stdout.contains("下一步") && project.read("results/a/report.md").contains("总分"),
        "{chinese:?}"
    );
    assert!(
        project
            .expect(0, "check")
            .stdout
            .contains("valid: 1 fixture")
    );
    project.expect(0, "report a");
    assert!(project.read("results/a/report.md").contains("overall"));
    assert!(
        project
            .rows("a")
            .iter()
            .all(|row| row["criteria"][0]["reasoning"].as_str().is_some())
    );
}

#[test]
fn a_project_that_cannot_be_opened_still_has_its_language() {
    let project = Project::empty();
    project.expect(0, "init --locale zh");
    let observed = || project.expect(4, "observe fixtures").stdout;
    let said = observed();
    assert!(said.contains("没有"), "{said}");
    let pipeline = project.read("pipeline.toml");
    project.write(
        "pipeline.toml",
        &pipeline.replacen("[pipeline]\n", "[pipeline]\nresults = 3\n", 1),
    );
    assert_eq!(observed(), said);
}

#[test]
fn the_stand_in_gives_its_reasons_in_chinese() {
    let (project, own) = project();
    project.expect(0, "run --label a --runs 1");
    for row in project.rows("a") {
        for criterion in row["criteria"].as_array().expect("criteria") {
            let reason = criterion["reasoning"].as_str().expect("a reason");
            assert_eq!(english(reason, &own), Vec::<String>::new(), "{reason}");
        }
    }
}

#[test]
fn kinds_of_probes_have_the_names_of_the_literature() {
    use compeval::probe::ProbeType;
    let names = ProbeType::ALL.map(|kind| kind.label(base::locale::Locale::Zh));
    assert_eq!(names, ["召回", "产物", "连续性", "决策"]);
}

#[test]
fn the_page_has_the_terminals_words_for_points_and_runs() {
    let texts: Value =
        serde_json::from_str(include_str!("../../assets/report/texts.zh.json")).unwrap();
    assert_eq!(
        (&texts["cycle_n"], &texts["run_n"]),
        (&json!("压缩点 {n}"), &json!("第 {n} 次"))
    );
    let texts: Value =
        serde_json::from_str(include_str!("../../assets/report/texts.en.json")).unwrap();
    assert_eq!(
        (&texts["cycle_n"], &texts["run_n"]),
        (&json!("point {n}"), &json!("run {n}"))
    );
}
