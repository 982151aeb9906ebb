//! No flag is accepted and ignored: a value that cannot be right is refused, or leaves its mark, in every command.

use super::project::Project;

/// A value that no flag can be meant to have.
const ODD: &str = "xyzzy";

/// The arguments that commands need besides flags.
const SUBJECTS: &[(&str, &str)] = &[
    ("compare", "sample sample"),
    ("report", "sample"),
    ("show", "tally-bank-export"),
    ("why", "tally-bank-export"),
    ("labels rm", "sample"),
    ("labels protect", "sample"),
    ("probes generate", "--force"),
    ("schema", "pipeline"),
    ("completions", "bash"),
];

/// Commands that first look for a file, batch, entry or part that the project of this test lacks.
const LACKING: &[&str] = &[
    "batch cancel",
    "cache show",
    "fixture import",
    "fixture scrub",
    "observe",
    "judge agreement",
];

/// Flags that accept every value: a topic, the name of a key, a writer who may have written nothing.
const ANYTHING_GOES: &[&str] = &["--focus-topic", "--name", "--writer"];

/// The subcommands that a page of help lists.
fn subcommands(help: &str) -> Vec<String> {
    let is_heading =
        |line: &&str| line.ends_with(':') && !line.starts_with(' ') && !line.starts_with("Usage");
    let listed = help
        .lines()
        .skip_while(|line| !is_heading(line))
        .take_while(|line| *line != "Options:");
    let is_group = help
        .lines()
        .find(is_heading)
        .is_some_and(|line| line != "Options:" && line != "Arguments:");
    let listed = listed.filter(|_| is_group);
    let named = listed.filter_map(|line| {
        line.strip_prefix("  ")
            .filter(|line| !line.starts_with(' '))
    });
    named
        .filter_map(|line| line.split(' ').next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// The long flags of a page of help that take a value.
fn flags(help: &str) -> Vec<String> {
    let flag = |line: &str| {
        let (_, flag) = line
            .trim_start()
            .strip_prefix('-')
            .map(|_| line)
            .and_then(|line| line.split_once("--"))?;
        let (name, value) = flag.split_once(' ')?;
        value.starts_with('<').then(|| format!("--{name}"))
    };
    help.lines()
        .filter(|line| line.trim_start().starts_with('-'))
        .filter_map(flag)
        .collect()
}

/// Every command without subcommands, with its help.
fn leaves(project: &Project, command: &str) -> Vec<(String, String)> {
    let help = project.expect(0, &format!("{command} --help")).stdout;
    let below = subcommands(&help);
    if below.is_empty() {
        return vec![(command.to_owned(), help)];
    }
    below
        .iter()
        .flat_map(|name| leaves(project, format!("{command} {name}").trim()))
        .collect()
}

/// A project with the sample and the results of a run.
fn project() -> Project {
    let project = Project::empty();
    project.expect(0, "init . --quiet");
    project.expect(0, "run --label sample --quiet");
    project
}

#[test]
fn an_impossible_value_of_a_flag_leaves_its_mark_in_every_command() {
    let project = project();
    let (mut ignored, mut walked) = (Vec::new(), 0);
    for (command, help) in leaves(&project, "")
        .into_iter()
        .filter(|(name, _)| !LACKING.contains(&name.as_str()))
    {
        let subject = SUBJECTS
            .iter()
            .find(|(name, _)| *name == command)
            .map_or("", |(_, subject)| *subject);
        for flag in flags(&help) {
            if ANYTHING_GOES.contains(&flag.as_str()) {
                continue;
            }
            walked += 1;
            let line = format!("{command} {subject} {flag} {ODD}");
            let ended = project.compeval(&line);
            // An error names the value, or the flag that has it.
            let is_named = |text: &String| {
                text.contains(ODD) || (ended.code == 2 && text.contains(flag.as_str()))
            };
            let left_mark = [&ended.stdout, &ended.stderr].into_iter().any(is_named)
                || project.exists(ODD)
                || project.exists(&format!("results/{ODD}"));
            if !left_mark {
                ignored.push(format!("{line}\n{}", ended.stderr));
            }
            for made in [ODD.to_owned(), format!("results/{ODD}")] {
                project.remove(&made);
            }
        }
    }
    assert!(walked > 100, "only {walked} flags were found");
    assert!(
        ignored.is_empty(),
        "{} flags were ignored:\n{}",
        ignored.len(),
        ignored.join("\n")
    );
}

#[test]
fn a_value_or_a_flag_without_an_effect_is_refused() {
    let project = project();
    let refused = [
        ("run --jobs 0", "expected a number from 1"),
        (
            "run --refresh probes",
            "possible values: compress, answer, judge",
        ),
        (
            "plan --refresh probes",
            "possible values: compress, answer, judge",
        ),
        ("report sample --open --all", "cannot be used with"),
        ("run --max-cost -1", "expected an amount of money"),
        ("plan --compare-to smaple", "there are no results `smaple`"),
        (
            "show tally-bank-export --open",
            "no answerer of the result set `sample` may search",
        ),
        ("probes generate nobody", "there is no fixture `nobody`"),
        (
            "report nothing-alike",
            "`compeval labels ls` lists what there is",
        ),
    ];
    for (line, words) in refused {
        project.expect(2, line).says(&[words]);
    }
    let unknown = project.expect(2, "probes generate nobody").stderr;
    assert!(
        !unknown.contains("--fixtures"),
        "it has no such flag: {unknown}"
    );
}

#[test]
fn with_json_standard_output_is_one_document_or_the_flag_is_refused() {
    let project = project();
    let key = project.keys("sample")[0].clone();
    for line in ["report sample --csv", &format!("cache show {key} --raw")] {
        let refused = project.expect(2, &format!("{line} --json"));
        refused.says(&["prints no JSON: leave out --json"]);
        assert_eq!(refused.stdout, "", "{line}");
    }
    let document = |line: &str| project.expect(0, &format!("{line} --json")).json();
    assert_eq!(
        document("judge agreement --blind-sheet sheet.csv")["label"],
        "sample"
    );
    assert_eq!(document("labels protect sample")["protected"], true);
    assert_eq!(
        document("labels protect --off sample")["labels"][0],
        "sample"
    );
    assert_eq!(document("labels rm sample")["removed"][0], "sample");
}

#[test]
fn a_command_without_a_project_refuses_flags_that_select_one() {
    let project = Project::empty();
    for line in [
        "schema pipeline --profile ci",
        "completions bash -c other.toml",
        "guard --before a.json --after b.json -c other.toml",
        "guard --before a.json --after b.json --profile ci",
    ] {
        project
            .expect(2, line)
            .says(&["has no effect on this command"]);
    }
}

#[test]
fn the_short_help_of_run_fits_sixty_lines() {
    let short = Project::empty().expect(0, "run -h").stdout;
    assert!(short.lines().count() <= 60, "{short}");
    assert!(short.contains("--compare-to") && !short.contains("--part"));
}

#[test]
fn a_run_is_compared_with_the_previous_results_and_quiet_prints_the_sentence() {
    let project = Project::offline();
    let run = "run --model lexical --runs 1 --compare-to previous";
    project
        .expect(2, &format!("{run} --label a"))
        .says(&["there are no other complete results"]);
    project.expect(0, "run --model lexical --runs 1 --label a");
    let quiet = project.expect(0, &format!("{run} --label b --quiet"));
    assert_eq!(quiet.stdout.lines().count(), 1, "{}", quiet.stdout);
    assert_eq!(project.result("b", "manifest.json")["compared_to"], "a");
    let newest = project.expect(0, "report --json").json();
    assert!(newest["comparison"].is_object(), "{newest}");
    let unnamed = "run --model lexical --runs 1 --label b --compare-to --quiet";
    assert_eq!(project.expect(0, unnamed).stdout, quiet.stdout);
}

#[test]
fn a_side_that_is_not_named_is_the_newest_complete_result_and_is_said() {
    let project = Project::offline();
    let run = "run --model lexical --runs 1";
    project.expect(0, &format!("{run} --label a"));
    project
        .expect(2, "compare a")
        .says(&["there are no other complete results"]);
    project.expect(0, &format!("{run} --label b --methods full,twin"));
    let b = "using `b`, the newest complete results";
    let a = "using `a`, the newest complete results";
    for (command, taken) in [
        ("compare --only-common", &[b, a][..]),
        ("compare a --only-common", &[b]),
        ("compare ./results/b:full --only-common", &[a]),
    ] {
        let ended = project.expect(0, command);
        ended.says(taken);
        let notes = ended.stderr.matches(", the newest complete results");
        assert_eq!(notes.count(), taken.len());
    }
    let ended = project.expect(0, "compare a b --only-common");
    assert!(
        !ended.stderr.contains("the newest complete results"),
        "{}",
        ended.stderr
    );
}
