//! Whole projects in temporary folders: what opens, what does not, and what people read then.

mod errors;
mod excerpts;
mod files;
mod matrix;
mod models;
mod opening;
mod schemas;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use super::{OpenError, OpenRequest, Opened, Problem, Problems, Severity, find_pipeline, open};

const STAGES: &str = r#"
[[compress]]
name = "full"
strategy = "full"

[[answer]]
name = "agent"
model = "lexical"

[[judge]]
name = "judge"
model = "lexical"
"#;

const FIXTURE: &str = r#"{
  "name": "tiny",
  "points": [2, 4],
  "messages": [
    {"role": "user", "content": "The port is 8080."},
    {"role": "assistant", "content": "Noted: 8080."},
    {"role": "user", "content": "Make it 9090."},
    {"role": "assistant", "content": "It is 9090 now."}
  ]
}
"#;

const BANK: &str = r#"{
  "fixture": "tiny",
  "probes": [
    {"id": "first", "type": "recall", "point": 1, "question": "Which port at first?", "expected_facts": ["8080"]},
    {"id": "now", "type": "recall", "question": "Which port now?", "expected_facts": ["9090"]},
    {"id": "why", "type": "decision", "question": "Why the change?", "expected_facts": ["9090"]}
  ]
}
"#;

/// A project to be opened: its files, the request and the variables that are set.
struct Project {
    files: BTreeMap<String, String>,
    variables: BTreeMap<&'static str, &'static str>,
    request: OpenRequest,
}

impl Project {
    /// A sound project whose pipeline is `text`.
    fn new(text: &str) -> Project {
        let files = [
            ("fixtures/tiny.json", FIXTURE),
            ("probes/tiny.probes.json", BANK),
            ("pipeline.toml", text),
        ];
        let files = files
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .into();
        Project {
            files,
            variables: BTreeMap::new(),
            request: OpenRequest::default(),
        }
    }

    /// A project with the minimal stages, and with `text` in its `[pipeline]` table.
    fn with_settings(text: &str) -> Project {
        Project::new(&format!("[pipeline]\n{text}\n{STAGES}"))
    }

    /// A project with the minimal stages, the first `from` in them replaced by `to`.
    fn with_stages(from: &str, to: &str) -> Project {
        Project::new(&STAGES.replacen(from, to, 1))
    }

    fn file(mut self, path: &str, text: &str) -> Project {
        self.files.insert(path.to_owned(), text.to_owned());
        self
    }

    fn without(mut self, path: &str) -> Project {
        self.files.remove(path);
        self
    }

    fn variable(mut self, name: &'static str, value: &'static str) -> Project {
        self.variables.insert(name, value);
        self
    }

    fn asking(mut self, change: impl FnOnce(&mut OpenRequest)) -> Project {
        change(&mut self.request);
        self
    }

    fn open(&self) -> Result<Opened, OpenError> {
        let folder = tempfile::tempdir().expect("a folder");
        self.open_in(folder.path())
    }

    fn open_in(&self, folder: &Path) -> Result<Opened, OpenError> {
        for (path, text) in &self.files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::File::create(path)
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .expect("a file");
        }
        let file = find_pipeline(folder, None).expect("a pipeline");
        let variables = self.variables.clone();
        open(
            &OpenRequest {
                file,
                ..self.request.clone()
            },
            &move |name: &str| variables.get(name).map(|v| (*v).to_owned()),
        )
    }

    fn opened(&self) -> Opened {
        self.open().unwrap_or_else(|error| match error {
            OpenError::Problems(problems) => panic!("{}", render(&problems)),
            OpenError::Empty(empty) => panic!("{empty}"),
        })
    }

    /// The errors as people read them.
    fn refusal(&self) -> String {
        match self.open() {
            Err(OpenError::Problems(problems)) => render(&errors(problems)),
            Err(OpenError::Empty(empty)) => panic!("{empty}"),
            Ok(_) => panic!("nothing is wrong"),
        }
    }

    /// Each problem in one line: where it is, the message, and what to do after an arrow.
    fn listed(&self) -> String {
        let Err(OpenError::Problems(problems)) = self.open() else {
            panic!("problems")
        };
        let lines = errors(problems).0.into_iter().map(|problem| {
            let place = problem
                .position()
                .map(|(file, line, column)| format!("{file}:{line}:{column}: "));
            let advice = problem.advice().map(|advice| format!(" -> {advice}"));
            place.unwrap_or_default() + problem.message() + &advice.unwrap_or_default()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn messages(&self) -> Vec<String> {
        match self.open() {
            Err(OpenError::Problems(problems)) => errors(problems)
                .0
                .iter()
                .map(|p| p.message().to_owned())
                .collect(),
            Err(OpenError::Empty(empty)) => vec![empty.message().to_owned()],
            Ok(_) => Vec::new(),
        }
    }
}

/// The problems of each project, for a table of mistakes.
fn listed<const N: usize>(projects: [Project; N]) -> String {
    projects
        .iter()
        .map(Project::listed)
        .collect::<Vec<_>>()
        .join("\n")
}

fn errors(problems: Problems) -> Problems {
    Problems(
        problems
            .0
            .into_iter()
            .filter(|problem| problem.severity() == Severity::Error)
            .collect(),
    )
}

/// The warnings, without those that every bank of this size gets.
fn warnings_of(opened: &Opened) -> Problems {
    let is_kept = |problem: &&Problem| {
        problem
            .position()
            .is_none_or(|(file, ..)| !file.ends_with(".probes.json"))
    };
    Problems(opened.warnings.0.iter().filter(is_kept).cloned().collect())
}

fn render(problems: &Problems) -> String {
    let mut lines = Vec::new();
    for problem in &problems.0 {
        let label = match problem.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        lines.push(format!("{label}: {}", problem.message()));
        lines.extend(problem.excerpt(100, false));
        lines.extend(problem.advice().map(|advice| format!("help: {advice}")));
    }
    let text = lines.join("\n");
    text.lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
}
