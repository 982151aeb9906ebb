//! The files of a new project, which runs without changes.

use std::borrow::Cow;

use super::PIPELINE_FILE;
use base::locale::Locale;

/// The shipped pipeline as a project has it: with the schemas beside it, and with a seed for the self-test of its judges: the cases of one project are not those of another.
pub fn with_selftest_seed(pipeline: &str, seed: u64) -> String {
    pipeline.replace("./assets/schemas/", "./schemas/").replacen(
        "[pipeline]\n",
        &format!(
            "[pipeline]\nselftest_seed = {seed}            # draws the cases that judges are tested with; keep it\n"
        ),
        1,
    )
}

/// A file of a new project as it is in a language: the pipeline names the language, and the prompt is written in it.
pub fn in_language(path: &str, text: &'static str, locale: Locale) -> Cow<'static, str> {
    match (locale, path) {
        (Locale::Zh, PIPELINE_FILE) => {
            let named =
                "[pipeline]\nlocale   = \"zh\"                 # language of prompts, rubric, reports and messages\n";
            text.replacen("[pipeline]\n", named, 1).into()
        }
        (Locale::Zh, "prompts/anchored.md") => include_str!("../../assets/prompts/zh/anchored-iterative.md").into(),
        _ => text.into(),
    }
}

/// The paths and texts of a pipeline, a prompt, a fixture with its bank, the schemas they name, and a .gitignore. The
/// pipeline is the shipped one.
pub fn starter_files() -> [(&'static str, &'static str); 8] {
    [
        ("pipeline.toml", include_str!("../../pipeline.toml")),
        ("prompts/anchored.md", include_str!("../../prompts/anchored.md")),
        ("fixtures/tally-bank-export.json", include_str!("../../assets/starter/tally-bank-export.json")),
        ("probes/tally-bank-export.probes.json", include_str!("../../assets/starter/tally-bank-export.probes.json")),
        ("schemas/pipeline.schema.json", include_str!("../../assets/schemas/pipeline.schema.json")),
        ("schemas/fixture.schema.json", include_str!("../../assets/schemas/fixture.schema.json")),
        ("schemas/bank.schema.json", include_str!("../../assets/schemas/bank.schema.json")),
        (".gitignore", "/cache/\n/results/\n"),
    ]
}
