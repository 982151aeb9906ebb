//! Prints the events of an evaluation that deserve a line of their own, and the hosts and programs that a project uses.

use crate::action::ActionKey;
use crate::cli::findings::render_some;
use crate::cli::format::{Noun, count, money};
use crate::cli::part::part_line;
use crate::cli::terminal::{Console, TextStyle};
use crate::evaluation::Event;
use crate::pipeline::{ExternalAccess, Problems};
use crate::plan::CostEstimate;
use crate::results::Label;
use base::locale::localized;
use base::say;
use store::remote::SharedSummary;

/// Prints the line of an event, if it has one.
pub(crate) fn print_notice(event: &Event<'_>, console: &Console) {
    match event {
        Event::Opened { warnings, .. } => print_warnings(console, warnings),
        Event::Part(part) => console.note(&part_line(part)),
        Event::RemoteIgnored => console.note(&console.labelled(
            TextStyle::Hint,
            localized("note:", "说明："),
            localized(
                "CI is set, so the remote of the pipeline is not used; COMPEVAL_REMOTE and COMPEVAL_TRUST name one",
                "设置了 CI，因此不使用流程中的远程缓存；可用 COMPEVAL_REMOTE 和 COMPEVAL_TRUST 指定",
            ),
        )),
        Event::RefreshContinues { label } => console.note(&console.labelled_prose(
            TextStyle::Hint,
            localized("note:", "说明："),
            continued_refresh(label),
        )),
        Event::RemoteUnavailable(error) => console.warn(
            localized("remote:", "远程："),
            say!("{error}; this command continues without it", "{error}；本命令不使用它而继续"),
        ),
        Event::RemoteLacks { url, estimate } => {
            missing_in_remote(url, estimate).into_iter().for_each(|line| console.note(&line))
        }
        Event::RemoteWarning(warning) => console.warn(localized("remote:", "远程："), warning),
        Event::CacheNotice(notice) => console.warn(localized("cache:", "缓存："), notice),
        Event::Untrusted(entries) => console.warn(localized("cache:", "缓存："), untrusted_entries(*entries)),
        Event::ChecksLeftOut => console.warn(localized("stopped:", "已停止："), checks_left_out()),
        Event::Access(access) => console.note(&access_list(access, console)),
        Event::Exchanged(summary) => transfers(summary).into_iter().for_each(|line| console.note(&line)),
        Event::OutputsChanged { label, keys } => {
            console.warn(localized("warning:", "警告："), changed_outputs(label, keys));
        }
        Event::Started(_)
        | Event::Added { .. }
        | Event::Step(_)
        | Event::Progress(_)
        | Event::WorkIsOver
        | Event::Ended(_) => {}
    }
}

fn continued_refresh(label: &Label) -> String {
    say!(
        "this continues the --refresh in which the last run of `{label}` was stopped: outputs made since it began are \
         not asked for again; under another label, --refresh begins anew",
        "继续 `{label}` 上次运行中停下的 --refresh：自其开始以来的产出不再请求；换一个标签则 --refresh 从头开始"
    )
}

/// What a run pays for because the remote does not have it; `None` if it has everything.
fn missing_in_remote(
    url: &str,
    CostEstimate { requests, usd, .. }: &CostEstimate,
) -> Option<String> {
    (*requests > 0).then(|| {
        let (asked, usd) = (count(*requests, Noun::Request), money(*usd));
        say!(
            "{url} has not all of it: this run sends about {asked}, for about {usd}.",
            "{url} 内容不全：本次运行约需 {asked}，约 {usd}。"
        )
    })
}

fn untrusted_entries(entries: u64) -> String {
    say!(
        "{entries} pulled entries are of writers that are not in `trust`; they count as missing",
        "拉取的 {entries} 个条目来自不在 `trust` 中的写入者，视为缺失"
    )
}

fn checks_left_out() -> &'static str {
    localized(
        "interrupted while the judges were checked with answers of this run; finished work is saved, and the next \
         run makes the other checks",
        "在用本次运行的回答检查评审时中断；完成的工作已保存，下次运行会做完其余检查",
    )
}

fn changed_outputs(label: &str, keys: &[ActionKey]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| key.0.short()).collect();
    say!(
        "pulled outputs differ from those that the earlier results of `{label}` were made from ({}, …); \
         `compeval cache show KEY` says who wrote them",
        "拉取的输出与 `{label}` 先前结果所用的不同（{}，……）；`compeval cache show KEY` 说明由谁写入",
        keys.join(", ")
    )
}

/// Prints warnings: one at its place, several by kind.
pub(crate) fn print_warnings(console: &Console, warnings: &Problems) {
    if !warnings.is_empty() {
        console.note(&render_some(warnings, console));
    }
}

/// What was pulled and uploaded, in a line; `None` if nothing was.
fn transfers(summary: &SharedSummary) -> Option<String> {
    let (pulled, pushed) = (summary.pulled.entries, summary.pushed.entries);
    let done: Vec<String> = [
        (pulled, localized("pulled", "拉取")),
        (pushed, localized("uploaded", "上传")),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, verb)| format!("{count} {verb}"))
    .collect();
    (!done.is_empty()).then(|| {
        say!(
            "Remote {}: {}.",
            "远程 {}：{}。",
            summary.url,
            done.join(", ")
        )
    })
}

/// The hosts and programs that a project uses, on one line.
pub(crate) fn access_line(access: &ExternalAccess, console: &Console) -> String {
    let project = console.paint(TextStyle::Strong, localized("This project", "本项目"));
    let access = access.lines().join(localized("; ", "；"));
    say!("{project} {access}", "{project}{access}")
}

/// The hosts and programs that a project uses, as a list with a heading.
pub(crate) fn access_list(access: &ExternalAccess, console: &Console) -> String {
    let heading = console.paint(TextStyle::Strong, localized("This project:", "本项目："));
    [heading]
        .into_iter()
        .chain(access.lines().iter().map(|line| format!("  {line}")))
        .collect::<Vec<_>>()
        .join("\n")
}
