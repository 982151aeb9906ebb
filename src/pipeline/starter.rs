//! Files that `init` writes: a new project, which runs without changes, and adapters for compressors outside compeval,
//! which are the files of examples/adapters at the paths of a project.

use std::borrow::Cow;

use super::PIPELINE_FILE;
use base::locale::Locale;
use base::named_enum;

/// The shipped pipeline as a new project gets it: it finds the schemas beside it, and it has a seed of its own for the
/// self-test of judges, so that each project has other cases. Into the sample session, items are planted.
pub fn starter_pipeline(pipeline: &str, seed: u64, has_sample: bool) -> String {
    let seeded = format!(
        "[pipeline]\nselftest_seed = {seed}            # draws the cases that judges are tested with; keep it\n"
    );
    let text = pipeline
        .replace("./assets/schemas/", "./schemas/")
        .replacen("[pipeline]\n", &seeded, 1);
    if has_sample {
        text.replacen("#\n# [planted]\n# enabled", "[planted]\nenabled", 1)
    } else {
        text
    }
}

/// The text of a new project's file in a language: the pipeline names the language, and the prompt is written in it.
pub fn in_language(path: &str, text: &'static str, locale: Locale) -> Cow<'static, str> {
    match (locale, path) {
        (Locale::Zh, PIPELINE_FILE) => {
            let named = "[pipeline]\nlocale   = \"zh\"                 # language of prompts, rubric, results and reports\n";
            text.replacen("[pipeline]\n", named, 1).into()
        }
        (Locale::Zh, "prompts/anchored.md") => {
            include_str!("../../assets/prompts/zh/anchored-iterative.md").into()
        }
        _ => text.into(),
    }
}

/// The paths and texts of a pipeline, a prompt, a fixture with its bank, the schemas they name, and a .gitignore. The
/// pipeline is the shipped one.
pub fn starter_files() -> [(&'static str, &'static str); 8] {
    [
        ("pipeline.toml", include_str!("../../pipeline.toml")),
        (
            "prompts/anchored.md",
            include_str!("../../prompts/anchored.md"),
        ),
        (
            "fixtures/tally-bank-export.json",
            include_str!("../../assets/starter/tally-bank-export.json"),
        ),
        (
            "probes/tally-bank-export.probes.json",
            include_str!("../../assets/starter/tally-bank-export.probes.json"),
        ),
        (
            "schemas/pipeline.schema.json",
            include_str!("../../assets/schemas/pipeline.schema.json"),
        ),
        (
            "schemas/fixture.schema.json",
            include_str!("../../assets/schemas/fixture.schema.json"),
        ),
        (
            "schemas/bank.schema.json",
            include_str!("../../assets/schemas/bank.schema.json"),
        ),
        (".gitignore", "/cache/\n/results/\n"),
    ]
}

named_enum! {
    /// A compressor outside compeval that a project can put under test.
    pub enum Adapter {
        /// A function of your own, in Python
        Python = "python",
        /// A function of your own, in JavaScript
        Node = "node",
        /// The context compressor of the Hermes agent
        Hermes = "hermes",
        /// The summarising condenser of the OpenHands SDK
        OpenHands = "openhands",
        /// LangChain's summarization middleware
        LangChain = "langchain",
        /// The summarization middleware of deepagents
        DeepAgents = "deepagents",
        /// The compaction of pi
        Pi = "pi",
    }
}

/// The files of a folder below `examples/`, with their paths from there.
macro_rules! examples {
    ($($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../examples/", $path)))),+]
    };
}

type Files = &'static [(&'static str, &'static str)];

impl Adapter {
    /// The files with their paths in a project, where all are below `compressors/`.
    pub fn files(self) -> Vec<(String, String)> {
        let files = self.examples().iter().skip(1);
        files
            .map(|(path, text)| (in_project(&format!("examples/{path}")), in_project(text)))
            .collect()
    }

    /// The table of the method for `pipeline.toml`. Begins with a blank line.
    pub fn table(self) -> String {
        in_project(self.examples().first().map_or("", |(_, table)| table))
    }

    /// The table of the method, then the files.
    fn examples(self) -> Files {
        match self {
            Adapter::Python => {
                examples![
                    "adapters/python/method.toml",
                    "adapters/compeval_method.py",
                    "adapters/python/README.md",
                    "adapters/python/compress.py"
                ]
            }
            Adapter::Node => {
                examples![
                    "adapters/node/method.toml",
                    "adapters/compeval_method.mjs",
                    "adapters/node/README.md",
                    "adapters/node/compress.mjs"
                ]
            }
            Adapter::Hermes => examples![
                "adapters/hermes/method.toml",
                "adapters/compeval_method.py",
                "adapters/hermes/README.md",
                "adapters/hermes/requirements.txt",
                "compressors/adapt_class.py",
            ],
            Adapter::OpenHands => examples![
                "adapters/openhands/method.toml",
                "adapters/compeval_method.py",
                "adapters/openhands/README.md",
                "adapters/openhands/compress.py",
                "adapters/openhands/requirements.txt",
            ],
            Adapter::LangChain => examples![
                "adapters/langchain/method.toml",
                "adapters/compeval_method.py",
                "adapters/langchain_messages.py",
                "adapters/langchain/README.md",
                "adapters/langchain/compress.py",
                "adapters/langchain/requirements.txt",
            ],
            Adapter::DeepAgents => examples![
                "adapters/deepagents/method.toml",
                "adapters/compeval_method.py",
                "adapters/langchain_messages.py",
                "adapters/deepagents/README.md",
                "adapters/deepagents/compress.py",
                "adapters/deepagents/requirements.txt",
            ],
            Adapter::Pi => examples![
                "adapters/pi/method.toml",
                "adapters/compeval_method.mjs",
                "adapters/pi/README.md",
                "adapters/pi/compress.mjs",
                "adapters/pi/requirements.txt",
            ],
        }
    }
}

/// A path or text of an example with the paths of a project. Its table is in `pipeline.toml` already.
fn in_project(text: &str) -> String {
    let mut text = text
        .replace("examples/adapters/", "compressors/")
        .replace("examples/compressors/", "compressors/");
    for adapter in Adapter::ALL {
        text = text.replace(
            &format!("cat compressors/{adapter}/method.toml >> pipeline.toml && "),
            "",
        );
    }
    text.replace(
        "[Your own compressor](../../compressors/README.md)",
        "The page \"Your own compressor\" of compeval",
    )
}

#[cfg(test)]
mod tests {
    use super::Adapter;

    #[test]
    fn every_file_that_a_table_names_is_written() {
        for adapter in Adapter::ALL {
            let (files, table) = (adapter.files(), adapter.table());
            let named = table
                .split('"')
                .filter(|part| part.starts_with("compressors/") && !part.ends_with('*'));
            for path in named {
                assert!(
                    files.iter().any(|(written, _)| written == path),
                    "{adapter}: {path}"
                );
            }
            let texts = files.iter().map(|(_, text)| text).chain([&table]);
            assert!(
                !texts.clone().any(|text| text.contains("examples/")),
                "{adapter}"
            );
            assert!(
                !texts.clone().any(|text| text.contains("method.toml")),
                "{adapter}"
            );
        }
    }
}
