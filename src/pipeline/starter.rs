//! The files of a new project, which runs without changes.

/// A file to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StarterFile {
    /// Where, relative to the new project.
    pub path: &'static str,
    pub text: &'static str,
}

/// A pipeline, a prompt, a fixture with its bank, the schemas they name, and a .gitignore. The pipeline is the shipped one.
pub fn starter_files() -> [StarterFile; 8] {
    [
        StarterFile { path: "pipeline.toml", text: include_str!("../../pipeline.toml") },
        StarterFile { path: "prompts/anchored.md", text: include_str!("../../prompts/anchored.md") },
        StarterFile {
            path: "fixtures/tally-bank-export.json",
            text: include_str!("../../assets/starter/tally-bank-export.json"),
        },
        StarterFile {
            path: "probes/tally-bank-export.probes.json",
            text: include_str!("../../assets/starter/tally-bank-export.probes.json"),
        },
        StarterFile { path: "schemas/pipeline.schema.json", text: include_str!("../../schemas/pipeline.schema.json") },
        StarterFile { path: "schemas/fixture.schema.json", text: include_str!("../../schemas/fixture.schema.json") },
        StarterFile { path: "schemas/bank.schema.json", text: include_str!("../../schemas/bank.schema.json") },
        StarterFile { path: ".gitignore", text: "/cache/\n/results/\n" },
    ]
}
