//! Reads file operations off shell command lines, where they are evident.

use std::iter::Peekable;
use std::str::Chars;

use super::operation::{FileAction, FileOperation};
use base::words::WordList;

/// One command of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellCommand {
    /// The folder that the line changed to before this command; empty if it did not.
    folder: String,
    /// Program and arguments, unquoted.
    pub words: Vec<String>,
    /// Whether it reads what the command before it writes.
    pub is_piped: bool,
}

impl ShellCommand {
    /// The program that it runs and its arguments, without what stands before a program and without redirections.
    pub fn run(&self) -> Vec<&str> {
        const PREFIXES: WordList = WordList("sudo time env nohup do then else ! {");
        let words = without_redirections(&self.words).into_iter();
        words
            .skip_while(|word| PREFIXES.has(word) || is_setting(word))
            .collect()
    }

    /// Whether it lets a package manager write files: the list of packages or, where `true`, a whole project.
    pub(super) fn makes_project(&self) -> Option<bool> {
        let run = self.run();
        let (_, rest) = run.split_first().filter(|(name, _)| is_runner(name))?;
        let task = rest.iter().find(|word| !word.starts_with('-'))?;
        let makes_all = matches!(*task, "create" | "new" | "init")
            || rest.iter().any(|word| word.starts_with("create-"));
        (makes_all || WRITES_MANIFEST.has(task)).then_some(makes_all)
    }

    /// Whether it may change files that it does not name. `line` is the whole command line, with what it passes on.
    fn may_change_unnamed(&self, line: &str) -> bool {
        self.run().split_first().is_some_and(|(program, rest)| {
            let name = program.rsplit('/').next().unwrap_or(program);
            is_own_script(program)
                || self.makes_project().is_some()
                || changes_unnamed(name, rest, line)
        })
    }

    /// Whether it may do more than what is evident.
    pub(super) fn is_unclear(&self) -> bool {
        let run = self.run();
        let is_reader = run.first().is_none_or(|program| READERS.has(program));
        !is_reader && self.operations().is_empty()
    }

    /// Its evident file operations, in order. What a branch or a loop may change is not evident.
    pub fn operations(&self) -> Vec<FileOperation> {
        let mut operations = self.operations_when_run();
        let first = self.words.first().map(String::as_str);
        if matches!(first, Some("do" | "then" | "else")) {
            operations.retain(|one| one.action == FileAction::Read);
        }
        operations
    }

    fn operations_when_run(&self) -> Vec<FileOperation> {
        let run = self.run();
        if let Some((from, to)) = renamed(&run).filter(|(from, to)| is_path(from) && is_path(to)) {
            let [from, to] = [from, to].map(|path| joined(&self.folder, path));
            return FileOperation::rename(&from, &to).into();
        }
        let redirected = redirections(&self.words).into_iter();
        let actions = redirected.chain(actions_of_program(&run));
        actions
            .filter(|(_, path)| is_path(path))
            .map(|(action, path)| FileOperation::new(action, &joined(&self.folder, &path)))
            .collect()
    }
}

/// The commands of a command line, in order, without those that change the folder.
pub fn shell_commands(command: &str) -> Vec<ShellCommand> {
    let mut folder = String::new();
    let mut commands = Vec::new();
    for command in simple_commands(command) {
        if let [cd, to, ..] = command.words.as_slice()
            && matches!(cd.as_str(), "cd" | "pushd")
        {
            folder = if is_rooted(to) {
                to.clone()
            } else {
                joined(&folder, to)
            };
            continue;
        }
        if command.words.first().is_some_and(|word| word == "popd") {
            folder.clear();
            continue;
        }
        commands.push(ShellCommand {
            folder: folder.clone(),
            ..command
        });
    }
    commands
}

/// Whether a command line may change files that it does not name: by a version control system, a patch, a formatter, a
/// removed folder, a script that writes.
pub fn may_change_unnamed_files(line: &str) -> bool {
    let commands = shell_commands(line);
    commands
        .iter()
        .any(|command| command.may_change_unnamed(line))
}

fn changes_unnamed(program: &str, rest: &[&str], line: &str) -> bool {
    let is_wide = rest
        .iter()
        .any(|word| word.contains(['*', '?', '$', '{', '`']));
    match program {
        "git" => changes_work_tree(rest),
        "rm" => is_wide || has_option(rest, &['r', 'R']) || has(rest, &["--recursive"]),
        "mv" | "cp" => is_wide || has_option(rest, &['r', 'R', 'a']) || names_folder(rest),
        "sed" => is_wide && edits_in_place(rest),
        "truncate" | "ed" | "ex" | "sd" => is_wide,
        "find" => {
            has(rest, &["-delete"])
                || runs_changing(after(rest, &["-exec", "-execdir", "-ok"]), line)
        }
        "xargs" | "parallel" => {
            let is_option = |word: &&str| {
                word.starts_with(|c: char| matches!(c, '-' | '{') || c.is_ascii_digit())
            };
            let run = rest.iter().position(|word| !is_option(word));
            runs_changing(run.and_then(|at| rest.get(at..)), line)
        }
        "bash" | "sh" | "zsh" => {
            let run = after(rest, &["-c", "-lc"]).and_then(|run| run.first());
            run.is_some_and(|run| may_change_unnamed_files(run))
                || rest.first().is_some_and(|script| is_own_script(script))
        }
        "perl" | "ruby" if has_option(rest, &['i']) => true,
        "python" | "python3" | "node" | "perl" | "ruby" => {
            let mut marks = ["write", "'w'", "\"w\""].iter();
            marks.any(|mark| line.contains(mark)) || runs_formatter(rest)
        }
        "tar" => rest
            .first()
            .is_some_and(|mode| !mode.starts_with("--") && mode.contains('x')),
        "awk" | "gawk" => has(rest, &["inplace"]),
        "gh" => has(rest, &["checkout"]),
        // A program of an image runs on the folders that it is given.
        "docker" | "podman" => {
            let mounts = |pair: &[&str]| matches!(pair, [option, at] if has_option(&[option], &['v']) && at.contains(":/"));
            let is_long = |word: &&str| word.starts_with("--volume") || word.starts_with("--mount");
            let is_run =
                has(rest, &["run"]) && (rest.windows(2).any(mounts) || rest.iter().any(is_long));
            is_run || rewrites(program, rest)
        }
        "svn" | "hg" => has(
            rest,
            &["update", "up", "merge", "revert", "patch", "import"],
        ),
        _ => rewrites(program, rest),
    }
}

/// Whether `sed` writes its result into the files that it reads.
fn edits_in_place(words: &[&str]) -> bool {
    has_option(words, &['i']) || words.iter().any(|word| word.starts_with("--in-place"))
}

/// Whether a program is a script of the project, which may do anything.
fn is_own_script(program: &str) -> bool {
    const ENDINGS: [&str; 6] = [".sh", ".py", ".rb", ".pl", ".js", ".mjs"];
    !is_rooted(program)
        && program.contains('/')
        && ENDINGS.iter().any(|ending| program.ends_with(ending))
}

/// Whether a program, or the task that it runs, rewrites the files that it finds.
fn rewrites(program: &str, rest: &[&str]) -> bool {
    const REWRITERS: WordList = WordList(
        "patch gofmt goimports rustfmt isort autopep8 yapf autoflake shfmt pyupgrade dos2unix rsync unzip jscodeshift \
        rubocop swiftformat fastmod",
    );
    if has(rest, &["--check", "--dry-run", "--diff", "-l", "-n"]) || READERS.has(program) {
        return false;
    }
    let subcommand = rest.iter().find(|word| !word.starts_with('-'));
    REWRITERS.has(program)
        || program == "pre-commit"
        || runs_formatter(&[program])
        || has(
            rest,
            &["--write", "--fix", "--in-place", "--inplace", "--apply"],
        )
        || subcommand.is_some_and(|word| matches!(*word, "fmt" | "format"))
        || is_runner(program) && runs_formatter(rest)
}

/// Programs that write no file.
const READERS: WordList = WordList("grep rg ag ack echo man cat ls wc diff test [ cd");

/// Subcommands of package managers that change the file that names the packages.
const WRITES_MANIFEST: WordList =
    WordList("add remove uninstall install i require update upgrade version get mod");

fn has(words: &[&str], marks: &[&str]) -> bool {
    words.iter().any(|word| marks.contains(word))
}

/// Whether one of these letters is among the short options.
fn has_option(words: &[&str], letters: &[char]) -> bool {
    let mut options = words
        .iter()
        .filter(|word| word.starts_with('-') && !word.starts_with("--"));
    options.any(|word| word.contains(letters))
}

fn names_folder(words: &[&str]) -> bool {
    operands(words).iter().any(|word| {
        let name = word.rsplit('/').next().unwrap_or(word);
        !name.contains('.') || matches!(name, "." | "..")
    })
}

/// The words that are no options.
fn operands<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let words = words.iter().copied();
    words.filter(|word| !word.starts_with('-')).collect()
}

/// The words after the first of these marks.
fn after<'w>(words: &'w [&'w str], marks: &[&str]) -> Option<&'w [&'w str]> {
    let at = words.iter().position(|word| marks.contains(word))?;
    words.get(at + 1..)
}

/// Whether a command that another one runs on the files that it finds changes them.
fn runs_changing(run: Option<&[&str]>, line: &str) -> bool {
    let Some((program, rest)) = run.and_then(<[_]>::split_first) else {
        return false;
    };
    let rest: Vec<&str> = rest.iter().copied().chain(["{}"]).collect();
    changes_unnamed(program, &rest, line)
}

fn changes_work_tree(rest: &[&str]) -> bool {
    let (subcommand, next) = match rest {
        ["-C" | "-c", _, rest @ ..] => return changes_work_tree(rest),
        [option, rest @ ..] if option.starts_with('-') => return changes_work_tree(rest),
        [subcommand, rest @ ..] => (subcommand, rest.first()),
        [] => return false,
    };
    match *subcommand {
        "checkout" | "switch" => {
            !next.is_some_and(|next| matches!(*next, "-b" | "-B" | "-c" | "-C"))
        }
        "stash" => !next.is_some_and(|next| matches!(*next, "list" | "show")),
        "rm" => rest.iter().any(|word| word.starts_with("-r")),
        "restore" | "pull" | "merge" | "rebase" | "reset" | "apply" | "cherry-pick" | "revert"
        | "am" | "clean" | "mv" => true,
        _ => false,
    }
}

/// Whether a program runs tasks that have names.
fn is_runner(program: &str) -> bool {
    const RUNNERS: WordList = WordList(
        "composer helm make just task rake npm pnpm yarn bun npx bunx cargo go deno mix dotnet uv uvx poetry tox nox \
        gradlew mvn",
    );
    RUNNERS.has(program)
}

/// Whether the name of a task or of a module has a word of rewriting in it.
fn runs_formatter(rest: &[&str]) -> bool {
    const WORDS: WordList =
        WordList("fmt format prettier black isort fix autofix write codegen generate gen migrate");
    let mut parts = rest
        .iter()
        .flat_map(|word| word.split(|c: char| !c.is_alphanumeric()));
    parts.any(|part| WORDS.has(part))
}

fn is_rooted(path: &str) -> bool {
    path.starts_with(['/', '~'])
}

fn joined(folder: &str, path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    if folder.is_empty() || is_rooted(path) {
        return path.to_owned();
    }
    format!("{}/{path}", folder.trim_end_matches('/'))
}

/// Whether a word can be a file's path: it has a name with a dot, or a folder, and nothing that a shell expands.
fn is_path(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with(['-', '&'])
        && word.contains(['.', '/'])
        && !word.starts_with("/dev/")
        && !word.ends_with('/')
        && !word.contains("://")
        && !word.contains([
            '*', '?', '$', '{', '(', ')', '|', '=', ',', '<', '>', '"', '\'', '`', ' ', '\n',
        ])
        && word.chars().any(char::is_alphabetic)
}

fn is_setting(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    })
}

fn actions_of_program(run: &[&str]) -> Vec<(FileAction, String)> {
    let Some((program, all)) = run.split_first() else {
        return Vec::new();
    };
    let files = operands(all);
    match (*program, files.as_slice()) {
        ("cat" | "less" | "head" | "tail" | "nl" | "bat" | "more", _) => {
            each(FileAction::Read, &files)
        }
        ("rm" | "unlink", _) => each(FileAction::Delete, &files),
        ("touch", _) => each(FileAction::Write, &files),
        ("tee", _) if all.contains(&"-a") => each(FileAction::Change, &files),
        ("tee", _) => each(FileAction::Write, &files),
        ("sed", _) if edits_in_place(all) => each(FileAction::Change, &files_of_sed(all)),
        ("sed", _) => each(FileAction::Read, &files_of_sed(all)),
        ("cp", [_, to]) if !has_option(all, &['r', 'R', 'a']) => each(FileAction::Write, &[to]),
        ("git", ["rm", rest @ ..]) if !all.contains(&"--cached") => each(FileAction::Delete, rest),
        _ => Vec::new(),
    }
}

/// The file that `mv` gives another name.
fn renamed<'w>(run: &[&'w str]) -> Option<(&'w str, &'w str)> {
    let after = match run {
        ["mv", after @ ..] | ["git", "mv", after @ ..] => after,
        _ => return None,
    };
    match operands(after).as_slice() {
        [from, to] => Some((from, to)),
        _ => None,
    }
}

fn each(action: FileAction, files: &[&str]) -> Vec<(FileAction, String)> {
    files
        .iter()
        .map(|file| (action, (*file).to_owned()))
        .collect()
}

/// The files among the arguments of `sed`: neither options nor scripts.
fn files_of_sed<'a>(all: &[&'a str]) -> Vec<&'a str> {
    let marked = all.iter().any(|word| is_script_mark(word));
    let before = [""].iter().chain(all);
    let plain = all
        .iter()
        .zip(before)
        .filter(|(word, before)| !word.starts_with('-') && !is_script_mark(before));
    plain
        .map(|(word, _)| *word)
        .skip(usize::from(!marked))
        .collect()
}

fn is_script_mark(word: &str) -> bool {
    matches!(word, "-e" | "-f" | "--expression" | "--file")
}

fn redirections(words: &[String]) -> Vec<(FileAction, String)> {
    let pairs = words.windows(2).filter_map(|pair| match pair {
        [sign, path] if sign == ">" => Some((FileAction::Write, path.clone())),
        [sign, path] if sign == ">>" => Some((FileAction::Change, path.clone())),
        _ => None,
    });
    pairs.collect()
}

fn without_redirections(words: &[String]) -> Vec<&str> {
    let mut plain = Vec::new();
    let mut is_target = false;
    for word in words {
        let is_sign = matches!(word.as_str(), ">" | ">>" | "2>" | "<");
        if !is_sign && !is_target {
            plain.push(word.as_str());
        }
        is_target = is_sign;
    }
    plain
}

/// The simple commands of a command line; here-documents and comments are left out.
fn simple_commands(command: &str) -> Vec<ShellCommand> {
    let mut splitter = Splitter::default();
    let mut lines = command.lines();
    while let Some(line) = lines.next() {
        splitter.read(line);
        for end in splitter.heredocs.drain(..) {
            lines.by_ref().find(|line| line.trim() == end);
        }
    }
    splitter.end_command();
    splitter.commands
}

/// Whether `>` is that of `2>&1` or `>&2`: it names no file, and ends no command.
fn joins_streams(rest: &Peekable<Chars<'_>>) -> bool {
    let mut rest = rest.clone();
    rest.next() == Some('&') && rest.next().is_some_and(|c| c.is_ascii_digit() || c == '-')
}

#[derive(Default)]
struct Splitter {
    commands: Vec<ShellCommand>,
    words: Vec<String>,
    is_piped: bool,
    word: String,
    /// The quotes that are open, and the substitutions within them; they may go over several lines.
    open: Vec<char>,
    /// The lines that end the here-documents which begin after this line.
    heredocs: Vec<String>,
}

impl Splitter {
    fn read(&mut self, line: &str) {
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            let next = chars.peek().copied();
            match (self.open.last(), c) {
                // The message of a commit may be `"$(cat <<'EOF'`.
                (None | Some('('), '<') if next == Some(c) && !self.open.ends_with(&['(', '(']) => {
                    self.begin_heredoc(&mut chars);
                }
                (Some('"' | '('), '\\') if matches!(next, Some('"' | '\\')) => {
                    self.word.extend(chars.next());
                }
                (Some('"'), '"') | (Some('\''), '\'') | (Some('('), ')') => {
                    self.open.pop();
                }
                (Some('"'), '(') if self.word.ends_with('$') => self.open.push(c),
                (None, '"' | '\'') | (Some('('), '"' | '\'' | '(') => self.open.push(c),
                (Some(_), c) => self.word.push(c),
                (None, '\\') if next.is_none() => return self.end_word(),
                (None, '\\') => self.word.extend(chars.next()),
                (None, '#') if self.word.is_empty() => break,
                (None, '|') if self.word != ">" => {
                    self.end_command();
                    self.is_piped = chars.next_if_eq(&'|').is_none();
                    // `|&` pipes both streams.
                    chars.next_if_eq(&'&');
                }
                (None, ';' | '&') if self.word != ">" => self.end_command(),
                (None, '>') if joins_streams(&chars) => {
                    chars.nth(1);
                    self.end_stream();
                }
                (None, '>') => self.redirect(chars.next_if_eq(&'>').is_some()),
                (None, c) if c.is_whitespace() => self.end_word(),
                (None, c) => self.word.push(c),
            }
        }
        match self.open.last() {
            Some(_) => self.word.push('\n'),
            None => self.end_command(),
        }
    }

    /// Reads on after the first `<` of `<<END`. The text of `<<< text` is no file, and `1<<4` begins no document.
    fn begin_heredoc(&mut self, chars: &mut Peekable<Chars<'_>>) {
        chars.next();
        if chars.next_if_eq(&'<').is_some() {
            self.end_word();
            return self.words.push("<".to_owned());
        }
        while chars.next_if(|c| "- \"'\\".contains(*c)).is_some() {}
        let mut end = String::new();
        while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || "_-.!".contains(*c)) {
            end.push(c);
        }
        chars.next_if(|c| matches!(c, '"' | '\''));
        if end.starts_with(|c: char| !c.is_numeric()) {
            self.heredocs.push(end);
        }
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        match word.as_str() {
            "" => {}
            // A word that is only such a sign was quoted: it is no redirection.
            ">" | ">>" | "<" => self.words.push(format!("'{word}'")),
            _ => self.words.push(word),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.commands.push(ShellCommand {
                folder: String::new(),
                words: std::mem::take(&mut self.words),
                is_piped: std::mem::take(&mut self.is_piped),
            });
        }
    }

    /// Ends the word before `>`. The number of a stream is not a word.
    fn end_stream(&mut self) {
        if matches!(self.word.as_str(), "1" | "2") {
            self.word.clear();
        }
        self.end_word();
    }

    /// Adds `>` or `>>`. Where standard error goes is of no interest.
    fn redirect(&mut self, append: bool) {
        let is_stderr = self.word == "2";
        self.end_stream();
        let sign = if append { ">>" } else { ">" };
        self.words.push(if is_stderr {
            "2>".to_owned()
        } else {
            sign.to_owned()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileAction::{Change, Delete, Read, Write};
    use proptest::prelude::*;

    fn of(command: &str) -> Vec<(FileAction, String)> {
        let operations = shell_commands(command).into_iter();
        operations
            .flat_map(|command| command.operations())
            .map(|o| (o.action, o.path))
            .collect()
    }

    #[test]
    fn what_a_branch_changes_is_not_evident() {
        let branches = "if cat a.rs; then mv a.rs b.rs; else rm a.rs; cat c.rs; fi";
        let read = ["a.rs", "c.rs"].map(|path| (Read, path.to_owned()));
        assert_eq!(of(&branches.replace("if ", "")), read);
        assert_eq!(of("nohup rm a.rs"), [(Delete, "a.rs".to_owned())]);
    }

    #[test]
    fn redirections_here_documents_and_tools_are_seen() {
        let one = |action, path: &str| vec![(action, path.to_owned())];
        assert_eq!(
            of("cat > app/a.py <<'EOF'\nrm b.py\nEOF"),
            one(Write, "app/a.py")
        );
        assert_eq!(
            of("cat <<EOF > a.toml\nx\nEOF\necho hi >> log.txt"),
            [(Write, "a.toml".to_owned()), (Change, "log.txt".to_owned())]
        );
        assert_eq!(
            of("cd /home/user/p && sed -i 's/a/b/' src/x.rs"),
            one(Change, "/home/user/p/src/x.rs")
        );
        for edit in [
            "sed -i -e '/x/d' -e 's/1.0/2.0/' conf/a.ini",
            "sed -Ei s/a/b/ conf/a.ini",
            "pushd conf && sed --in-place=.old s/a/b/ a.ini; popd",
        ] {
            assert_eq!(of(edit), one(Change, "conf/a.ini"), "{edit}");
        }
        assert_eq!(
            of("git mv a.py b.py"),
            [(Delete, "a.py".to_owned()), (Write, "b.py".to_owned())]
        );
        assert_eq!(
            of("cat conf/nginx.conf | head -5"),
            one(Read, "conf/nginx.conf")
        );
        assert_eq!(
            of("rm -f tmp/out.db; touch x.log"),
            [
                (Delete, "tmp/out.db".to_owned()),
                (Write, "x.log".to_owned())
            ]
        );
    }

    #[test]
    fn words_that_are_not_files_are_left_out() {
        assert!(
            of("make 2>/dev/null >/dev/null; ls *.py; echo 'a > b.txt'; cat $FILE; pytest -q 2>&1")
                .is_empty()
        );
        assert!(of("curl -s http://127.0.0.1:8080/a.html").is_empty());
        assert!(of("git rm --cached src/a.py").is_empty());
        assert!(of("grep '>' src/y.py; grep -n \">>\" a.md").is_empty());
        assert!(of("cat 2> errors.txt; cat <<< notes.txt").is_empty());
    }

    #[test]
    fn a_quote_over_several_lines_holds_no_command() {
        for command in [
            "git commit -m \"$(cat <<'EOF'\nUse \"x\", don't\n- src/old.py -> src/new.py\ncat docs/a.md is it\nEOF\n)\"",
            "node -e \"\nconst f = x => x.name;\nif (n > cfg.max) f(\\\"rm a.js\\\");\n\"",
            "gh pr create --body \"## Summary\n- config.yaml => base.yaml\n> see docs/faq.md\n\"",
            "sqlite3 work.db \"select a.id from a, b\nwhere a.id > b.id\"",
            "awk '\n{ print > out.txt }\n'",
            "# it's > a.txt\nmake # \"rm b.txt",
        ] {
            assert!(of(command).is_empty(), "{command}");
        }
        for command in [
            "git commit -m \"a\n> b\"\ncat a.py",
            "# don't\ncat a.py # isn't",
            "echo \"it's \\\"x\"\ncat a.py",
            "read v <<< \"$x\"\ncat a.py",
            "y=$((1<<4))\ncat a.py",
            "cat <<A <<'B'\nrm 1.py\nA\nrm 2.py\nB\ncat a.py",
            "cat \\\n  a.py",
            "cat a.py |\n  head",
            "echo \"x << y\"\ncat a.py",
            "echo \"$(curl -H \"x: $h\" | grep '\"a\"' | wc)\"\ncat a.py",
            "echo \"$((1<<n)) $(it \"isn't\" (x))\"\ncat a.py",
            "git commit -m \"$(cat <<EOF\nrm \"b.py\"\nEOF\n)\" && cat a.py",
        ] {
            assert_eq!(of(command), [(Read, "a.py".to_owned())], "{command}");
        }
    }

    #[test]
    fn streams_that_are_joined_end_no_command() {
        let commands =
            shell_commands("make -s 2>&1 | tail -5 >&2 && echo x 2>&1 >a.log; make |& head");
        let words: Vec<String> = commands
            .iter()
            .map(|command| command.words.join(" "))
            .collect();
        assert_eq!(
            words,
            ["make -s", "tail -5", "echo x > a.log", "make", "head"]
        );
        let piped: Vec<bool> = commands.iter().map(|command| command.is_piped).collect();
        assert_eq!(piped, [false, true, false, false, true]);
    }

    #[test]
    fn commands_that_may_change_what_they_do_not_name_are_told() {
        for line in [
            "rm -rf src",
            "git apply fix.patch",
            "git -C sub checkout main",
            "patch -p1 < fix.patch",
            "find . -name '*.py' -exec sed -i s/a/b/ {} +",
            "grep -rl old src | xargs sed -i s/old/new/",
            "for f in *.py; do sed -i s/a/b/ $f; done",
            "cargo fmt",
            "make fmt",
            "npm install lodash",
            "cargo add serde",
            "go mod tidy",
            "npx --yes create-next-app@latest todo",
            "pnpm dlx create-vite web",
            "gh pr checkout 3",
            "npm run lint:fix",
            "npx prettier --write src",
            "ruff format .",
            "bash -c 'cargo fmt'",
            "perl -pi -e s/a/b/ lib/*.pm",
            "mv src lib",
            "clang-format -i src/*.c",
            "./scripts/format.sh",
            "./tools/upgrade.py src",
            "bash tools/upgrade.sh src",
            "tar xzf new.tgz",
            "cp -r ../base/. .",
            "sed -Ei s/a/b/ src/*.py",
            "sed --in-place=.old s/a/b/ src/*.py",
            "docker run --rm -v \"$PWD:/src\" image fix",
            "docker run -itv .:/src image",
            "podman run --volume=.:/src image",
            "docker run --mount type=bind,src=.,dst=/src image",
        ] {
            assert!(may_change_unnamed_files(line), "{line}");
        }
        for line in [
            "rm a.rs",
            "git checkout -b fix",
            "git stash list",
            "find . -name '*.py' -exec grep -n x {} +",
            "grep -rn format src",
            "cargo fmt --check",
            "cargo test",
            "npm run build",
            "npm run test -- --create",
            "ls src | xargs wc -l",
            "mv a.rs b.rs",
            "docker ps --format x",
            "docker run --rm image ls",
            "docker run --rm image pytest -v",
            "docker run --rm image pytest -v tests/pool.py::test_drain",
        ] {
            assert!(!may_change_unnamed_files(line), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_command_line_panics(command in "[ -~\n]{0,80}") {
            let _ = of(&command);
        }
    }
}
