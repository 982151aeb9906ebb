//! How a command ends: exit codes, and failures with their chain and hint.

use std::error::Error;
use std::process::ExitStatus;

use crate::cli::command_line::CommandLine;
use crate::cli::findings::render_some;
use crate::cli::format::{Noun, count, money};
use crate::cli::terminal::{Console, TextStyle};
use crate::evaluation::{DearestReply, Ending, EvaluationError};
use crate::pipeline::{OpenError, Problems};
use crate::results::{FolderError, LabelLockError, LabelWriterError, SetError};
use crate::scheduler::{BudgetReached, RunError};
use base::files::{FileError, Shortage, system_words};
use base::locale::localized;
use base::say;
use base::text::shell_word;
use base::units::Usd;
use store::cache::CacheError;
use store::remote::{RemoteError, SettingsError};

/// What a command exits with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// An unexpected error; a locked or damaged cache; a judge that failed its self-test.
    Error = 1,
    /// The user's input is wrong, and nothing was called.
    BadInput = 2,
    /// Nothing is selected.
    EmptySelection = 4,
    /// Some cells failed or are missing.
    Incomplete = 5,
    /// A budget stopped the run.
    Budget = 6,
    /// Work is pending.
    Pending = 7,
    /// A gate failed.
    Regression = 100,
    /// Interrupted.
    Interrupted = 130,
}

impl Exit {
    /// How a process of this program ended. One that a signal killed has failed.
    pub(crate) fn from_status(status: ExitStatus) -> Exit {
        const ALL: [Exit; 9] = [
            Exit::Done,
            Exit::Error,
            Exit::BadInput,
            Exit::EmptySelection,
            Exit::Incomplete,
            Exit::Budget,
            Exit::Pending,
            Exit::Regression,
            Exit::Interrupted,
        ];
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        ALL.into_iter()
            .find(|exit| Some(exit.code()) == code)
            .unwrap_or(Exit::Error)
    }

    /// The process's exit code.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// The exit with the higher precedence: 1, 2, 4 > 130 > 6 > 5 > 7 > 100.
    pub(crate) fn and(self, other: Exit) -> Exit {
        if other.precedence() > self.precedence() {
            other
        } else {
            self
        }
    }

    fn precedence(self) -> u8 {
        match self {
            Exit::Error | Exit::BadInput | Exit::EmptySelection => 6,
            Exit::Interrupted => 5,
            Exit::Budget => 4,
            Exit::Incomplete => 3,
            Exit::Pending => 2,
            Exit::Regression => 1,
            Exit::Done => 0,
        }
    }
}

impl From<Ending> for Exit {
    fn from(ending: Ending) -> Exit {
        match ending {
            Ending::Complete => Exit::Done,
            Ending::Pending => Exit::Pending,
            Ending::Incomplete => Exit::Incomplete,
            Ending::Budget => Exit::Budget,
            Ending::Interrupted => Exit::Interrupted,
            Ending::Broken => Exit::Error,
        }
    }
}

/// How a signing key is made.
pub(crate) fn new_key() -> &'static str {
    localized(
        "compeval cache key   makes a key",
        "compeval cache key   产生密钥",
    )
}

/// The failure for `--json` with a flag whose output is something else.
pub(crate) fn not_as_json(flag: &str) -> Failure {
    Failure::input(say!(
        "{flag} prints no JSON: leave out --json",
        "{flag} 不输出 JSON：请去掉 --json"
    ))
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Faults in the user's files, each with its place.
    Problems(Problems),
    /// Anything else, in words.
    Message {
        /// How to exit.
        exit: Exit,
        /// What happened.
        message: String,
        /// What to do.
        hint: Option<String>,
        /// What the system refused.
        shortage: Option<Shortage>,
    },
}

impl Failure {
    /// The user's input is wrong.
    pub(crate) fn input(message: impl Into<String>) -> Failure {
        Failure::Message {
            exit: Exit::BadInput,
            message: message.into(),
            hint: None,
            shortage: None,
        }
    }

    /// Something unexpected.
    pub(crate) fn error(message: impl Into<String>) -> Failure {
        Failure::Message {
            exit: Exit::Error,
            message: message.into(),
            hint: None,
            shortage: None,
        }
    }

    /// The same with what to do.
    pub(crate) fn hinted(self, text: impl Into<String>) -> Failure {
        match self {
            Failure::Message {
                exit,
                message,
                shortage,
                ..
            } => Failure::Message {
                exit,
                message,
                hint: Some(text.into()),
                shortage,
            },
            problems => problems,
        }
    }

    /// The same with another exit.
    pub(crate) fn exiting(self, exit: Exit) -> Failure {
        match self {
            Failure::Message {
                message,
                hint,
                shortage,
                ..
            } => Failure::Message {
                exit,
                message,
                hint,
                shortage,
            },
            problems => problems,
        }
    }

    /// Whether a full disk is the cause.
    pub(crate) fn is_out_of_space(&self) -> bool {
        matches!(
            self,
            Failure::Message {
                shortage: Some(Shortage::Space),
                ..
            }
        )
    }

    /// Something that the system may have refused, with what to do then; `space` says it for a full disk.
    fn from_system(message: String, shortage: Option<Shortage>, space: &str) -> Failure {
        let hint = match shortage {
            Some(Shortage::Space) => space,
            Some(Shortage::FileSize) => localized(
                "`ulimit -f` limits the size of files here: `ulimit -f unlimited` lifts that",
                "此处的 `ulimit -f` 限制了文件大小；`ulimit -f unlimited` 可解除",
            ),
            Some(Shortage::OpenFiles) => localized(
                "`ulimit -n 1024` lets a process open that many files at once",
                "`ulimit -n 1024` 允许进程同时打开这么多文件",
            ),
            Some(Shortage::ReadOnly) => localized(
                "work on a copy in a folder that can be written to; COMPEVAL_CACHE moves the cache",
                "请在可写文件夹中的副本上操作；COMPEVAL_CACHE 可移动缓存",
            ),
            None => return Failure::error(message),
        };
        Failure::Message {
            exit: Exit::Error,
            message,
            hint: Some(hint.to_owned()),
            shortage,
        }
    }

    /// Prints it and says how to exit.
    pub(crate) fn report(&self, console: &Console) -> Exit {
        match self {
            Failure::Problems(problems) => {
                console.eprint(&render_some(problems, console));
                Exit::BadInput
            }
            Failure::Message {
                exit,
                message,
                hint,
                ..
            } => {
                console.error(localized("error:", "错误："), message);
                if let Some(hint) = hint {
                    console.eprint(&console.labelled(
                        TextStyle::Hint,
                        localized("hint:", "提示："),
                        hint,
                    ));
                }
                *exit
            }
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Failure {
        Failure::Problems(problems)
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        let space = localized(
            "free some space and run again; what was kept is safe",
            "请释放一些空间后重新运行；已保存的内容不受影响",
        );
        Failure::from_system(chain(&error), Shortage::in_error(&error), space)
    }
}

impl From<CacheError> for Failure {
    fn from(error: CacheError) -> Failure {
        let space = localized(
            "free some space, or remove entries with `compeval cache prune`, which needs no free space",
            "请释放一些空间，或用 `compeval cache prune` 删除条目（不需要空闲空间）",
        );
        let shortage = match &error {
            // These have only the words of the system.
            CacheError::Poisoned { cause, .. } => Shortage::in_text(cause),
            CacheError::Damaged(damage) => Shortage::in_text(&damage.what),
            error => Shortage::in_error(error),
        };
        Failure::from_system(chain(&error), shortage, space)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        match error {
            RunError::Cache(error) => error.into(),
            RunError::File(error) => error.into(),
        }
    }
}

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Failure {
        let exit = if error.is_input() {
            Exit::BadInput
        } else {
            Exit::Error
        };
        Failure::error(error.to_string()).exiting(exit)
    }
}

impl From<EvaluationError> for Failure {
    fn from(error: EvaluationError) -> Failure {
        match error {
            EvaluationError::Open(OpenError::Problems(problems)) => problems.into(),
            EvaluationError::Open(OpenError::Empty(empty)) => Failure::input(empty.why)
                .hinted(empty.help)
                .exiting(Exit::EmptySelection),
            EvaluationError::Writer(error) => refused_writer(error),
            EvaluationError::LabelLock(error) => error.into(),
            EvaluationError::Cache(error) => error.into(),
            EvaluationError::File(error) => error.into(),
            EvaluationError::Remote(error) => error.into(),
            EvaluationError::Set(error) => error.into(),
            EvaluationError::Folder(error) => error.into(),
            error @ (EvaluationError::Runtime(_) | EvaluationError::ClockStopped) => {
                Failure::error(error.to_string())
            }
            error => {
                let failure = Failure::input(message(&error));
                match hint_for(&error) {
                    Some(hint) => failure.hinted(hint),
                    None => failure,
                }
            }
        }
    }
}

/// Why nothing more may be sent, in terms of the flags that say so, and what to do. Of what a flag allows, a part of a run
/// has a share, and a later look has what the earlier ones left.
pub(crate) fn budget_message(reached: BudgetReached) -> String {
    let why = match reached {
        BudgetReached::Cost { limit, spent } => {
            let limit = match allowed_in_all("max_cost", limit) {
                None => format!("--max-cost {limit}"),
                Some(all) => {
                    let own = money(Some(Usd(limit)));
                    say!(
                        "the {own} that --max-cost {all} leaves here",
                        "--max-cost {all} 在此留下的 {own}"
                    )
                }
            };
            say!(
                "the next request could exceed {limit} ({} spent or reserved)",
                "下一个请求可能超过 {limit}（已用或预留 {}）",
                Usd(spent)
            )
        }
        BudgetReached::Requests { limit } => match allowed_in_all("max_requests", limit as f64) {
            None => say!(
                "--max-requests {limit} were sent",
                "--max-requests {limit} 已用完"
            ),
            Some(all) => {
                let own = count(limit, Noun::Request);
                say!(
                    "{own} were sent, which --max-requests {all} leaves here",
                    "--max-requests {all} 在此留下的 {own} 已用完"
                )
            }
        },
    };
    say!(
        "{why}; run again with a larger budget to continue",
        "{why}；请用更大的预算重新运行以继续"
    )
}

/// What a flag was typed with, if that is more than the limit of this process.
fn allowed_in_all(flag: &str, limit: f64) -> Option<f64> {
    let all: f64 = typed_value(flag)?.parse().ok()?;
    (all - limit > 1e-9).then_some(all)
}

/// The value of a flag as it was typed.
fn typed_value(flag: &str) -> Option<String> {
    CommandLine::current()
        .typed(flag)?
        .rsplit([' ', '='])
        .next()
        .map(str::to_owned)
}

/// What is wrong with a request, in terms of the flags that made it.
fn message(error: &EvaluationError) -> String {
    match error {
        EvaluationError::UnknownPrice { model, .. } => {
            say!(
                "--max-cost needs known prices, and the price of `{model}` is unknown",
                "--max-cost 需要已知价格，而 `{model}` 的价格未知"
            )
        }
        EvaluationError::CostLimit {
            limit,
            reply,
            expected,
            ..
        } => {
            let estimate = expected.map(|usd| {
                say!(
                    ", and the run is estimated at {}",
                    "；本次运行估计为 {}",
                    money(Some(usd))
                )
            });
            let limit = match allowed_in_all("max_cost", limit.0) {
                None => say!("--max-cost {} is", "--max-cost {} ", limit.0),
                Some(all) => {
                    let own = money(Some(*limit));
                    say!(
                        "--max-cost {all} leaves {own} here, which is",
                        "--max-cost {all} 在此留下 {own}，"
                    )
                }
            };
            say!(
                "{limit} less than one reply of `{}` may cost: {} for {} tokens{}",
                "{limit}低于 `{}` 一条回复的可能费用：{}（{} 个词元）{}",
                reply.model,
                money(Some(reply.usd)),
                reply.tokens.0,
                estimate.unwrap_or_default()
            )
        }
        EvaluationError::TooFewFixtures { needed, found } => {
            let have = count(*found, Noun::Fixture);
            let are = if *found == 1 { "is" } else { "are" };
            say!(
                "--until-decided needs {needed} fixtures that the baseline has too: there {are} {have}",
                "--until-decided 需要基线中也有的 {needed} 个样本，现有 {have}"
            )
        }
        error => chain(error),
    }
}

/// What to do about a request that cannot be evaluated.
fn hint_for(error: &EvaluationError) -> Option<String> {
    Some(match error {
        EvaluationError::UnknownPrice { model, file } => say!(
            "declare it in {}: [prices.\"{model}\"] with input and output in USD per million tokens",
            "请在 {} 中声明：[prices.\"{model}\"]，给出每百万词元的 input 与 output（美元）",
            file.display()
        ),
        EvaluationError::CostLimit { limit, share, reply, expected } => {
            cost_limit_hint(*limit, *share, reply, *expected)
        }
        EvaluationError::MissingKey { variable, provider } => say!(
            "export {variable}=…, or name another variable: api_key_env in [providers.{provider}]",
            "export {variable}=…，或在 [providers.{provider}] 中用 api_key_env 指定其他变量"
        ),
        EvaluationError::CacheIsFile(_) => localized(
            "name another folder by `cache` in [pipeline] or by COMPEVAL_CACHE, or move that file away",
            "在 [pipeline] 中用 `cache` 或用 COMPEVAL_CACHE 指定其他文件夹，或移走该文件",
        )
        .to_owned(),
        EvaluationError::NoSelftest { .. } => say!(
            "{}   asks them once, for all parts",
            "{}   为所有分片只询问一次",
            CommandLine::current().command("judge selftest")
        ),
        EvaluationError::NoParts { .. } => {
            let of = typed_value("parts").unwrap_or_else(|| "8".to_owned());
            let part = CommandLine::current().without("parts").with("part", &format!("--part 1/{of}"));
            say!("{}   runs the first of {of}", "{}   运行 {of} 个分片中的第一个", part.command("run"))
        }
        EvaluationError::RemoteSettings(SettingsError::NoKey) => {
            say!("{}; --remote-mode read uploads nothing", "{}；--remote-mode read 不上传任何内容", new_key())
        }
        EvaluationError::RemoteSettings(SettingsError::ReadOnly) => {
            localized("--remote-mode read uploads nothing", "--remote-mode read 不上传任何内容").to_owned()
        }
        error => return part_hint(error).or_else(|| comparison_hint(error)).map(str::to_owned),
    })
}

/// The smallest limit that works, and what lowers the cost of one reply.
fn cost_limit_hint(limit: Usd, share: f64, reply: &DearestReply, expected: Option<Usd>) -> String {
    let least = expected.map_or(reply.usd.0, |expected| expected.0.min(reply.usd.0));
    let all = allowed_in_all("max_cost", limit.0).unwrap_or(limit.0);
    let least = all + (least - limit.0) / share;
    let amount = say!(
        "--max-cost {:.2} works",
        "--max-cost {:.2} 即可",
        (least * 100.0).ceil() / 100.0
    );
    match reply.is_limited {
        true => say!(
            "{amount}, or a lower max_output_tokens where `{}` is asked",
            "{amount}，或在使用 `{}` 处降低 max_output_tokens",
            reply.model
        ),
        false => say!(
            "{amount}, or max_output_tokens where `{}` is asked: it is missing there",
            "{amount}，或在使用 `{}` 处设置缺少的 max_output_tokens",
            reply.model
        ),
    }
}

/// What to do about parts that cannot be run or merged.
fn part_hint(error: &EvaluationError) -> Option<&'static str> {
    Some(match error {
        EvaluationError::BatchedPart { .. } => localized(
            "--lane live or --lane flex, or run the matrix in one process",
            "--lane live 或 --lane flex，或在一个进程中运行整个矩阵",
        ),
        EvaluationError::ModulesInParts { .. } => localized(
            "list its files under `inputs`, without `inputs_from`, or run the matrix in one process",
            "请去掉 `inputs_from`，在 `inputs` 中列出文件，或在一个进程中运行整个矩阵",
        ),
        EvaluationError::PartIsRunning { .. } => localized(
            "give each process a number of its own, from 1/N to N/N",
            "给每个进程各自的编号，从 1/N 到 N/N",
        ),
        EvaluationError::NoRemote => localized(
            "--remote fs:///srv/compeval, or COMPEVAL_REMOTE",
            "--remote fs:///srv/compeval，或 COMPEVAL_REMOTE",
        ),
        EvaluationError::OtherParts { .. } => localized(
            "give the options that the parts were run with (--runs, --methods, --model and so on), or run them again",
            "请给出各分片运行时的选项（--runs、--methods、--model 等），或重新运行",
        ),
        EvaluationError::OtherAssignment { .. } => localized(
            "give the number of parts that were run, or run them again with this project and version",
            "请给出已运行的分片数，或用本项目和版本重新运行",
        ),
        _ => return None,
    })
}

/// What to do about a comparison that cannot be made.
fn comparison_hint(error: &EvaluationError) -> Option<&'static str> {
    Some(match error {
        EvaluationError::TooManyCells(_) => {
            localized("compare without --html", "不带 --html 进行比较")
        }
        EvaluationError::OtherBaseline(_) => localized(
            "nothing was sent: undo what differs, or run the baseline again as the project is now; without --compare-to the \
             run is not compared",
            "没有发送任何请求：请撤销这些差异，或按项目现在的样子重新运行基线；不带 --compare-to 的运行不作比较",
        ),
        EvaluationError::UsedFixtures { .. } => localized(
            "--confirm needs fixtures that no `run --compare-to` and no `compare` with this baseline used",
            "--confirm 需要与该基线的任何 `run --compare-to` 或 `compare` 都未用过的样本",
        ),
        EvaluationError::TooFewFixtures { .. } => localized(
            "run without --until-decided compares what there is",
            "不带 --until-decided 的运行会比较现有内容",
        ),
        _ => return None,
    })
}

/// The failure for a label whose results cannot be written, with the commands that can.
fn refused_writer(error: LabelWriterError) -> Failure {
    let typed = CommandLine::current();
    let other = typed.clone().with_label("NEW").command("run");
    let hint = match &error {
        LabelWriterError::OtherDesign { label, .. } => {
            let replace = typed.with("replace", "--replace").command("run");
            Some(say!(
                "{other}   keeps both\n      {replace}   keeps the old results as `{}`",
                "{other}   两者都保留\n      {replace}   旧结果保留为 `{}`",
                label.earlier(1)
            ))
        }
        LabelWriterError::Protected(label) => Some(say!(
            "{other}   keeps both; `compeval labels protect --off {}` lifts the protection",
            "{other}   两者都保留；`compeval labels protect --off {}` 解除保护",
            shell_word(label.as_str())
        )),
        _ => None,
    };
    let failure = Failure::from(error);
    if let Some(hint) = hint {
        failure.hinted(hint)
    } else {
        failure
    }
}

/// A wrong key or file is bad input; anything else is an error.
pub(crate) fn import_failure(error: CacheError) -> Failure {
    let is_input = matches!(
        error,
        CacheError::BadPrefix { .. }
            | CacheError::UnknownPrefix { .. }
            | CacheError::AmbiguousPrefix { .. }
            | CacheError::BadImport { .. }
    );
    let failure = Failure::from(error);
    if is_input {
        failure.exiting(Exit::BadInput)
    } else {
        failure
    }
}

impl From<SetError> for Failure {
    fn from(error: SetError) -> Failure {
        match error {
            SetError::Folder(error) => error.into(),
            error => Failure::input(chain(&error)),
        }
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Failure {
        match error {
            FolderError::File(error) if !error.is_missing() => error.into(),
            error @ FolderError::Missing { near: None, .. } => {
                let list = CommandLine::current().of_project().command("labels ls");
                let hint = say!("{list}   lists what there is", "{list}   列出已有结果");
                Failure::input(chain(&error)).hinted(hint)
            }
            error => Failure::input(chain(&error)),
        }
    }
}

impl From<LabelLockError> for Failure {
    fn from(error: LabelLockError) -> Failure {
        match error {
            LabelLockError::Held { .. } => Failure::error(error.to_string()),
            LabelLockError::File(error) => error.into(),
        }
    }
}

impl From<LabelWriterError> for Failure {
    fn from(error: LabelWriterError) -> Failure {
        match error {
            LabelWriterError::Lock(error) => error.into(),
            LabelWriterError::Folder(error) => error.into(),
            refused => Failure::input(refused.to_string()),
        }
    }
}

/// An error with its causes, on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner
            .downcast_ref()
            .map_or_else(|| inner.to_string(), system_words);
        if !text.contains(&words) {
            text.push_str(localized(": ", "："));
            text.push_str(&words);
        }
        cause = inner.source();
    }
    text
}
