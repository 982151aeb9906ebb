//! The command that a run names at its end.

use super::args::RunArgs;
use crate::cli::command_line::CommandLine;
use crate::cli::failure::Exit;
use crate::cli::format::shell_word;
use crate::results::{Manifest, Summary};

/// The command to type next: one that continues the work, or one that shows it when all is done.
pub(super) fn next_command(exit: Exit, args: &RunArgs, summary: &Summary, manifest: &Manifest) -> String {
    let typed = CommandLine::current();
    let is_judged = summary.methods.iter().any(|(_, method)| method.cells.judged > 0);
    match (exit, summary.fixtures.first()) {
        (Exit::Error, _) if !args.allow_weak_judge && !manifest.caveats.weak_judges.is_empty() => selftest(typed, args),
        (Exit::Error, _) => typed.with_label(&manifest.label).command("run"),
        (Exit::Interrupted | Exit::Incomplete, _) if args.select.refresh.is_empty() => {
            typed.with_label(&manifest.label).command("run")
        }
        (Exit::Pending, _) => typed.without("offline").with_label(&manifest.label).command("run"),
        // The same budget again goes further, but not where it is too small for a beginning, nor where all that it
        // paid for is asked anew.
        (Exit::Budget, _) if manifest.requests_sent > 0 && args.select.refresh.is_empty() => {
            typed.with_label(&manifest.label).command("run")
        }
        (Exit::Budget | Exit::Interrupted | Exit::Incomplete, _) => typed.with_label(&manifest.label).command("plan"),
        (_, Some(fixture)) if is_judged || manifest.design.answerers.is_empty() => {
            typed.of_results().with_label(&manifest.label).command(&format!("show {}", shell_word(fixture)))
        }
        _ => typed.of_project().command("plan"),
    }
}

/// The self-test of the judges that were asked: `judge selftest` knows no `--model`.
fn selftest(typed: CommandLine, args: &RunArgs) -> String {
    let model = args.select.judge_model.as_ref().or(args.select.model.as_ref());
    let typed = typed.of_project();
    let typed = match model {
        Some(model) => typed.with("judge_model", &format!("--judge-model {}", shell_word(model))),
        None => typed,
    };
    typed.command("judge selftest")
}
