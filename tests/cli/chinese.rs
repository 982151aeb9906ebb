//! A project in Chinese says everything about its results in Chinese.

use std::collections::BTreeSet;

use super::project::Project;

/// What is a name in any language: methods, files, fields, flags, commands, models, units.
const NAMES: &[&str] = &[
    // methods and stages
    "anchored", "index", "regenerative", "extract", "mask", "truncate", "full", "none", "agent", "judge", "lexical",
    "rules", // files, commands, flags
    "report", "html", "results", "details", "compeval", "show", "observe", "economics", "label", "json", "all",
    "allow", "weak", "unproven", "selftest", "md", // vendors
    "factory", "anthropic", "openai", "gpt", // units and signs
    "kb", "min", "usd", "pareto",
];

/// Words of three letters or more that are in no list of names, and not in what the user wrote.
fn english(text: &str, own: &BTreeSet<String>) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 2).map(str::to_lowercase);
    words.filter(|word| !NAMES.contains(&word.as_str()) && !own.contains(word)).collect()
}

fn words_of(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphabetic()).map(str::to_lowercase).collect()
}

/// A project in Chinese, of the sample session, whose own words are English.
fn project() -> (Project, BTreeSet<String>) {
    let project = Project::empty();
    project.expect(0, "init");
    project.edit("pipeline.toml", "[pipeline]", "[pipeline]\nlocale = \"zh\"");
    let mut own = BTreeSet::new();
    for file in ["fixtures/tally-bank-export.json", "probes/tally-bank-export.probes.json"] {
        own.extend(words_of(&project.read(file)));
    }
    own.extend(words_of(&project.path("results").display().to_string()));
    for prompt in project.files("prompts") {
        own.extend(words_of(&std::fs::read_to_string(prompt).expect("a prompt")));
    }
    (project, own)
}

#[test]
fn the_terminal_the_report_and_the_page_of_a_run_have_no_english_words() {
    let (project, own) = project();
    let ended = project.expect(0, "run --label a --all --runs 1");
    // Which hosts and programs are used is a matter of the command line, as are its errors.
    let terminal = format!("{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(english(&terminal, &own), Vec::<String>::new(), "{terminal}");
    project.expect(0, "report a --reference");
    let report = project.read("results/a/report.md");
    let prose: String = report.lines().filter(|line| !line.contains("`accuracy_") && !line.contains("0/5")).collect();
    assert_eq!(english(&prose, &own), Vec::<String>::new(), "{report}");
    assert!(report.contains("锚定式迭代（Factory）") && report.contains("不透明压缩（OpenAI）"), "{report}");
    let page = project.read("results/a/report.html");
    for words in ["锚定式迭代（Factory）", "\"type_recall\":\"召回\"", "\"type_continuation\":\"连续性\""] {
        let compact = page.replace("\": \"", "\":\"");
        assert!(compact.contains(words), "{words} is not in the page");
    }
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
