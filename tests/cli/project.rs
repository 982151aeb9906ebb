//! A project in a temporary folder, and the program run in it.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::server::Server;

/// A key that is easily found wherever it occurs.
pub const KEY: &str = "sk-not-a-key-4f1e7a0c9d";

/// Prices of the project's models, for its pipeline.
pub const PRICES: &str = r#"
[prices."mock/small-1"]
input = 100.0
output = 200.0

[prices."mock/judge-1"]
input = 100.0
output = 200.0
"#;

/// A project: one fixture with two points, seven probes, five methods, a provider on loopback.
pub struct Project {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Project {
    /// The project with `server` as its provider.
    pub fn new(server: &Server) -> Project {
        let project = Project::offline();
        project.point_at(server);
        project
    }

    /// The project with a provider that does not listen.
    pub fn offline() -> Project {
        let folder = tempfile::tempdir().expect("a folder");
        let project = Project {
            folder,
            variables: vec![("MOCK_API_KEY".into(), KEY.into())],
        };
        project.write("pipeline.toml", include_str!("data/pipeline.toml"));
        project.write("prompts/anchored.md", include_str!("data/anchored.md"));
        project.write("prompts/answer.md", include_str!("data/answer.md"));
        project.write("fixtures/harbor.json", include_str!("data/harbor.json"));
        project.write(
            "probes/harbor.probes.json",
            include_str!("data/harbor.probes.json"),
        );
        project
    }

    /// A folder without a project.
    pub fn empty() -> Project {
        Project {
            folder: tempfile::tempdir().expect("a folder"),
            variables: Vec::new(),
        }
    }

    /// Removes a file or a folder, if there is one.
    pub fn remove(&self, path: &str) {
        let path = self.path(path);
        let _ = if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        };
    }

    /// Moves the provider to `server`.
    pub fn point_at(&self, server: &Server) {
        let text = self.read("pipeline.toml");
        let moved = text.lines().map(|line| {
            if line.starts_with("base_url") {
                format!("base_url    = \"{}\"", server.url())
            } else {
                line.to_owned()
            }
        });
        self.write("pipeline.toml", &moved.collect::<Vec<_>>().join("\n"));
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Replaces `from`, which must occur, by `to`.
    pub fn edit(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "`{from}` is not in {path}");
        self.write(path, &text.replacen(from, to, 1));
    }

    /// Sets a variable for the program.
    pub fn set(&mut self, name: &str, value: &str) {
        self.unset(name);
        self.variables.push((name.into(), value.into()));
    }

    pub fn unset(&mut self, name: &str) {
        self.variables.retain(|(known, _)| known != name);
    }

    /// The program with arguments, ready to be started in the project.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_compeval"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            .env_clear();
        for name in ["PATH", "HOME"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program with arguments separated by spaces.
    pub fn compeval(&self, arguments: &str) -> Ended {
        Ended::of(&self.command(arguments).output().expect("the program"))
    }

    /// Runs the program and demands this exit code.
    pub fn expect(&self, code: i32, arguments: &str) -> Ended {
        let ended = self.compeval(arguments);
        let Ended { stdout, stderr, .. } = &ended;
        assert_eq!(
            ended.code,
            code,
            "compeval {arguments}\n{stdout}\n{stderr}\n{}",
            self.failures()
        );
        assert!(
            !stderr.contains("a fault of compeval"),
            "a run accounts for all of its cells:\n{stderr}"
        );
        ended
    }

    /// The failures in the manifests of all result sets.
    fn failures(&self) -> String {
        let manifests = self
            .files("results")
            .into_iter()
            .filter(|path| path.ends_with("manifest.json"));
        let read = |path| serde_json::from_str(&fs::read_to_string(path).ok()?).ok();
        let lists = manifests
            .filter_map(read)
            .map(|manifest: Value| manifest["failures"].to_string());
        lists
            .map(|list| list.chars().take(1500).collect())
            .collect::<Vec<String>>()
            .join("\n")
    }

    /// Starts the program in the background.
    pub fn start(&self, arguments: &str) -> Running {
        Running::of(self.command(arguments))
    }

    /// The rows of a result set.
    pub fn rows(&self, label: &str) -> Vec<Value> {
        let text = self.read(&format!("results/{label}/cells.jsonl"));
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a row"))
            .collect()
    }

    /// The rows of a result set, without what they cost.
    pub fn unpriced_rows(&self, label: &str) -> Vec<Value> {
        let mut rows = self.rows(label);
        rows.iter_mut()
            .filter_map(Value::as_object_mut)
            .for_each(|row| drop(row.remove("usd")));
        rows
    }

    /// A JSON file of a result set.
    pub fn result(&self, label: &str, file: &str) -> Value {
        serde_json::from_str(&self.read(&format!("results/{label}/{file}"))).expect("JSON")
    }

    /// The keys of the actions that results need.
    pub fn keys(&self, label: &str) -> Vec<String> {
        self.read(&format!("results/{label}/keys.txt"))
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// All files below a folder of the project, sorted.
    pub fn files(&self, below: &str) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.path(below)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path)
                } else {
                    files.push(path)
                }
            }
        }
        files.sort();
        files
    }
}

impl Ended {
    pub fn of(output: &Output) -> Ended {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended {
            code: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// Standard output, which must be one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {}", self.stdout))
    }

    /// Demands that standard output holds each of these.
    pub fn stdout_says(&self, words: &[&str]) {
        let flat = self.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(
                flat.contains(word),
                "`{word}` is missing in:\n{}",
                self.stdout
            );
        }
    }

    /// Demands that standard error holds each of these.
    pub fn says(&self, words: &[&str]) {
        let flat = self.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(
                flat.contains(word),
                "`{word}` is missing in:\n{}",
                self.stderr
            );
        }
    }
}

/// The program in the background; killed when dropped.
pub struct Running(Option<Child>);

impl Running {
    /// Starts it.
    pub fn of(mut command: Command) -> Running {
        Running(Some(command.spawn().expect("the program")))
    }

    /// Reads standard error until a line holds these words.
    #[cfg(unix)]
    pub fn wait_for_words(&mut self, words: &str) {
        self.read_until(|line, _| line.contains(words));
    }

    fn read_until(&mut self, holds: impl Fn(&str, bool) -> bool) -> String {
        let stderr = self
            .0
            .as_mut()
            .and_then(|child| child.stderr.as_mut())
            .expect("a pipe");
        let (mut line, mut byte) = (Vec::new(), [0]);
        loop {
            stderr.read_exact(&mut byte).expect("more to read");
            let is_whole = byte[0] == b'\n';
            if !is_whole {
                line.push(byte[0]);
            }
            let text = String::from_utf8_lossy(&line).into_owned();
            if holds(&text, is_whole) {
                return text;
            }
            if is_whole {
                line.clear();
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.0.as_ref().map_or(0, Child::id)
    }

    /// Sends Ctrl-C.
    #[cfg(unix)]
    pub fn interrupt(&self) {
        self.signal(rustix::process::Signal::INT);
    }

    /// Sends a signal.
    #[cfg(unix)]
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid().cast_signed()).expect("a process");
        rustix::process::kill_process(pid, signal).expect("a signal");
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.0
            .as_mut()
            .is_none_or(|child| child.try_wait().expect("a process").is_some())
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        let child = self.0.take().expect("a process");
        Ended::of(&child.wait_with_output().expect("an end"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The settings of a shared cache.
#[cfg(any(unix, feature = "object-stores"))]
impl Project {
    /// Makes the project use a remote.
    pub fn share(&self, url: &str) {
        let table = format!("\n[cache]\nremote = \"{url}\"\n");
        self.write("pipeline.toml", &(self.read("pipeline.toml") + &table));
    }
}
