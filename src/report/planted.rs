//! Planted items: the sentence, and the tables.

use super::document::{Block, Section};
use super::figures::{share_cell, text_table};
use super::styled::{TextTable, known, named_row, plain_cell};
use super::translation::{Translation, joined};
use crate::action::BuiltInStrategy;
use crate::planted::{Kind, State};
use crate::results::{
    FigureTableId, Ordered, PlantedComparison, PlantedSummary, PlantedTest, Share, Summary,
};
use indexmap::IndexSet;

/// What became of planted items, or why they show nothing.
pub(super) fn items(summary: &Summary, tr: &Translation) -> Option<Section> {
    let title = tr.pick("Planted items", "植入项");
    let lead = void(summary, tr).unwrap_or_else(|| {
        tr.pick(
            "Tasks, rules and jobs that were put into the sessions, asked about exactly, without a judge. `full` is the control; 50% obeyed is no knowledge.",
            "植入会话的任务、规则和作业，精确提问，无需评审。`full` 为对照；遵守 50% 等于一无所知。",
        ).to_owned()
    });
    let table = text_table(FigureTableId::Planted, summary, tr).without_void()?;
    Section::new("planted", title, [Block::Table(table), Block::dim(lead)])
}

/// The methods with planted items.
fn planted(summary: &Summary) -> impl Iterator<Item = (&str, &PlantedSummary)> {
    let methods = summary.methods.iter();
    methods.filter_map(|(name, method)| Some((name.as_str(), method.planted.as_ref()?)))
}

/// Its items by kind, by position and by the number of compressions.
fn parts(found: &PlantedSummary) -> [&Ordered<Share>; 3] {
    [&found.by_kind, &found.by_position, &found.by_compressions]
}

/// By kind, by position and by the number of compressions: the share of right next steps.
pub(super) fn groups(summary: &Summary, tr: &Translation) -> Option<Section> {
    let mut columns: IndexSet<(usize, &String)> = IndexSet::new();
    for (_, found) in planted(summary) {
        for (group, shares) in parts(found).into_iter().enumerate() {
            columns.extend(shares.keys().map(|name| (group, name)));
        }
    }
    // stable: names stay in the order of their group
    columns.sort_by_key(|(group, _)| *group);
    let heading = |(group, name): &(usize, &String)| match group {
        0 | 1 => word(name, tr),
        _ => tr.pick(format!("after {name}"), format!("{name} 次后")),
    };
    let rows = planted(summary).map(|(name, found)| {
        let groups = parts(found);
        let share = |(group, name): &(usize, &String)| groups.get(*group)?.get(*name);
        let cells = columns.iter().map(|column| share_cell(share(column), tr));
        named_row(name.to_owned(), cells)
    });
    let header = std::iter::once(tr.method.to_owned()).chain(columns.iter().map(heading));
    let table = TextTable::new(header, rows);
    let title = tr.pick("Planted items: right next steps", "植入项：正确的下一步");
    let lead = tr.pick(
        "By kind, by position in what the first compression replaced, and by the number of compressions.",
        "按种类、按在首次压缩内容中的位置、按压缩次数。",
    );
    let blocks = [Block::Table(table.without_void()?), Block::dim(lead)];
    Section::new("planted-groups", title, blocks)
}

/// What was said, by what is true.
pub(super) fn states(summary: &Summary, tr: &Translation) -> Option<Section> {
    let rows = planted(summary).flat_map(|(name, found)| {
        found.states.iter().map(move |(truth, said)| {
            let counts = State::ALL.map(|state| {
                let count = said.get(state.name());
                plain_cell(known(count, u64::to_string))
            });
            named_row(format!("{name} · {}", word(truth, tr)), counts)
        })
    });
    let states = State::ALL.map(|state| word(state.name(), tr));
    let header = std::iter::once(tr.method.to_owned()).chain(states);
    let table = TextTable::new(header, rows);
    let title = tr.pick(
        "Planted items: said of each true state",
        "植入项：真实状态与所说状态",
    );
    let lead = tr.pick(
        "The row is the truth, the column what was said. Decoys are not in the context.",
        "行是真实状态，列是所说状态。诱饵项不在上下文中。",
    );
    let blocks = [Block::Table(table.without_void()?), Block::dim(lead)];
    Section::new("planted-states", title, blocks)
}

/// What became of the closed tasks of the method that does worst, with what stands beside it; `None` where nothing was
/// planted.
pub(super) fn planted_line(summary: &Summary, tr: &Translation) -> Option<String> {
    if let Some(void) = void(summary, tr) {
        return Some(void);
    }
    let mut methods = summary.methods.values();
    let full = methods.find(|method| method.is(BuiltInStrategy::Full));
    let full = full.and_then(|method| method.planted.as_ref());
    let candidates = summary
        .methods
        .iter()
        .filter(|(_, method)| !method.is_anchor());
    let known = candidates.filter_map(|(name, method)| {
        let found = method.planted.as_ref()?;
        Some((name, found, found.obeyed.share?))
    });
    let worst = known.reduce(|worst, next| if next.2 < worst.2 { next } else { worst });
    let Some((name, found, _)) = worst else {
        return rules_line(summary, tr);
    };
    let beside = |share: Option<&Share>| {
        let none = " (no whole transcript to compare with)";
        match share.map(|share| of(share, tr)) {
            None => tr.pick(none, "（没有完整会话作对照）").to_owned(),
            Some(control) => tr.pick(
                format!(" (whole transcript: {control})"),
                format!("（完整会话：{control}）"),
            ),
        }
    };
    let closed = |kind: &&Kind| !matches!(kind, Kind::Open | Kind::Running | Kind::Replaced);
    let kinds = Kind::ALL.iter().filter(closed);
    let kinds = kinds.filter_map(|kind| Some((kind, found.wrong_by_kind.get(kind.name())?)));
    let most = kinds.reduce(|most, next| {
        if next.1.share > most.1.share {
            next
        } else {
            most
        }
    });
    let came_back = match most.filter(|(_, share)| share.count > 0) {
        Some((kind, share)) => {
            let control = full.and_then(|full| full.wrong_by_kind.get(kind.name()));
            let (count, of, beside) = (share.count, share.of, beside(control));
            let (english, chinese) = came_back(*kind);
            tr.pick(
                format!("{name}: {count} of {of} {english}{beside}"),
                format!("{name}：{of} 个{chinese}中有 {count} 个又回来了{beside}"),
            )
        }
        None => {
            let (all, beside) = (
                of(&found.resurrected, tr),
                beside(full.map(|full| &full.resurrected)),
            );
            tr.pick(
                format!("{name}: {all} closed tasks came back{beside}"),
                format!("{name}：已了结的任务又回来：{all}{beside}"),
            )
        }
    };
    let [forgotten, decoys] = [&found.forgotten, &found.decoys].map(|share| of(share, tr));
    Some(tr.pick(
        format!("{came_back}; forgotten {forgotten}; decoys done {decoys}."),
        format!("{came_back}；遗忘 {forgotten}；误做诱饵 {decoys}。"),
    ))
}

/// Without an answerer, the rules that contexts keep.
fn rules_line(summary: &Summary, tr: &Translation) -> Option<String> {
    let methods = summary
        .methods
        .iter()
        .filter(|(_, method)| !method.is_anchor());
    let kept = methods.filter_map(|(name, method)| {
        let kept = &method.planted.as_ref()?.rules_kept;
        kept.share?;
        Some(format!("{name} {}", of(kept, tr)))
    });
    let kept = joined(kept, tr.comma)?;
    Some(tr.pick(
        format!("Planted rules kept: {kept}."),
        format!("植入规则保留：{kept}。"),
    ))
}

/// The line in place of figures, where the control voids them; and the kinds that it leaves alone.
fn void(summary: &Summary, tr: &Translation) -> Option<String> {
    let why = summary.planted_control.void.as_ref()?;
    Some(tr.pick(
        format!("Planted items show nothing here: {why}. Ask a stronger answerer."),
        format!("植入项在此说明不了什么：{why}。请换更强的作答模型。"),
    ))
}

/// The kinds that even the whole transcript gets wrong too often.
pub(super) fn left_alone(summary: &Summary, tr: &Translation) -> Option<String> {
    let kinds = summary.planted_control.left_alone.iter();
    let kinds = joined(kinds.map(ToString::to_string), tr.comma)?;
    Some(tr.pick(
        format!("planted items of these kinds are excluded from all figures, because the whole transcript gets under 75% of them right: {kinds}."),
        format!("以下种类的植入项不计入任何数字，因为完整会话上答对不到 75%：{kinds}。"),
    ))
}

/// What changed against the baseline: what rose, or how large a rise would have been found.
pub(super) fn change(found: &PlantedComparison, tr: &Translation) -> Vec<String> {
    let line = |name: &str, test: &PlantedTest, found: &str| {
        let (before, after, name) = (of(&test.before, tr), of(&test.after, tr), figure(name, tr));
        tr.pick(
            format!("planted items, {name}: {before} → {after}, {found}."),
            format!("植入项，{name}：{before} → {after}，{found}。"),
        )
    };
    let worse = tr.pick("more than chance", "超出偶然");
    let worse = found
        .regressed()
        .map(|(name, test)| line(name, test, worse));
    let quiet = found.pooled.iter().filter(|(_, test)| !test.regressed);
    let quiet = quiet.map(|(name, test)| {
        let none = tr.pick("no evidence of a rise", "没有上升的证据");
        line(name, test, &format!("{none}{}", smallest(test, tr)))
    });
    worse.chain(quiet).collect()
}

fn smallest(test: &PlantedTest, tr: &Translation) -> String {
    let few = tr.pick(" (under three sessions)", "（不足三个会话）");
    let rise = test.smallest_found.map(|rise| 100.0 * rise);
    rise.map_or(few.to_owned(), |rise| {
        tr.pick(
            format!(" (80% of such runs find a rise of {rise:.0} points)"),
            format!("（此类运行有 80% 能发现上升 {rise:.0} 个百分点）"),
        )
    })
}

fn of(share: &Share, tr: &Translation) -> String {
    let (count, of) = (share.count, share.of);
    tr.pick(format!("{count} of {of}"), format!("{count}/{of}"))
}

fn figure(name: &str, tr: &Translation) -> String {
    match name {
        "resurrected" => tr.pick("came back", "又回来").to_owned(),
        "forgotten" => tr.pick("forgotten", "遗忘").to_owned(),
        name => word(name, tr),
    }
}

/// What came back, of a closed kind, as the end of "2 of 24 …", and as a noun.
fn came_back(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Done => ("finished tasks came back", "已完成的任务"),
        Kind::Cancelled => ("cancelled tasks came back", "已取消的任务"),
        Kind::Rule => ("forbidden actions were done", "被禁止的操作"),
        Kind::Quoted => ("quoted requests became orders", "引文里的请求"),
        Kind::Open | Kind::Replaced | Kind::Running => ("tasks went wrong", "任务"),
    }
}

/// The word for a kind of item, a state or a position.
fn word(name: &str, tr: &Translation) -> String {
    let chinese = match name {
        "open" => "未办",
        "done" => "已办",
        "cancelled" => "已取消",
        "replaced" => "已替换",
        "rule" => "规则",
        "quoted" => "引文",
        "running" => "在跑",
        "forbidden" => "禁止",
        "started" => "已启动",
        "nobody asked us" => "无人要求",
        "not in the context" => "上下文中没有",
        "early" => "前段",
        "middle" => "中段",
        "late" => "后段",
        other => other,
    };
    tr.pick(name, chinese).to_owned()
}
