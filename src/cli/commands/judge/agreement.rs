//! `compeval judge agreement`: compares the judges with people and prints the result.

use std::path::Path;

use serde_json::json;

use crate::cli::args::Common;
use crate::cli::commands::cell::chosen_results;
use crate::cli::failure::{Exit, Failure, chain};
use crate::cli::format::{dimension_name, number, percent, with_fields};
use crate::cli::project::{given, project_paths_of};
use crate::cli::terminal::Console;
use crate::pipeline::first_few;
use crate::report::{Block, Section, TextTable};
use crate::results::{
    AgreementResult, GradedSheet, JudgeAgreement, ResultSet, blind_sheet, compare_judges, signed,
};
use base::files::{read_any, write_whole};
use base::locale::Locale;
use base::say;
use base::text::shell_word;
use stats::thresholds::MIN_PAIRS;
use stats::{Agreement, Coefficient, Interval, NoCoefficient};

pub(super) fn run(
    common: &Common,
    path: &Path,
    label: Option<&str>,
    console: &Console,
) -> Result<Exit, Failure> {
    let sheet = read_grades(&given(common, path))?;
    let results = project_paths_of(common)?.results;
    let folder = chosen_results(common, &results, label, console)?;
    let set = ResultSet::read(&folder)?;
    let compared = compare_judges(&sheet, &set, folder.rows()?)
        .map_err(|error| Failure::error(chain(&error)))?
        .map_err(Failure::from)?;
    let name = folder.label();
    if compared.judges.iter().all(|judge| judge.pooled.pairs == 0) {
        return Err(nothing_common(&name));
    }
    let locale = console.locale;
    let warnings = warnings(&compared, &name, locale);
    let fields = json!({ "label": name, "warnings": warnings });
    console.report(&with_fields(&compared, fields), || {
        let judges = compared.judges.iter();
        let sections: Vec<Section> = judges.map(|judge| section(judge, locale)).collect();
        console.print(&console.document(&sections));
        console.print(&counts(&compared, &name, locale));
    });
    for warning in &warnings {
        console.warn(locale.pick("warning:", "警告："), warning);
    }
    Ok(Exit::Done)
}

fn read_grades(path: &Path) -> Result<GradedSheet, Failure> {
    let bytes = read_any(path).map_err(|error| {
        Failure::input(format!("cannot read {}: {error}", path.display()))
            .hinted("the sheet that --blind-sheet wrote, filled in")
    })?;
    GradedSheet::parse(&path.display().to_string(), &bytes).map_err(Failure::from)
}

/// Writes answers of the newest or the named result set for people to grade.
pub(super) fn write_sheet(
    common: &Common,
    typed: &Path,
    label: Option<&str>,
    console: &Console,
) -> Result<Exit, Failure> {
    let results = project_paths_of(common)?.results;
    let folder = chosen_results(common, &results, label, console)?;
    let manifest = folder.manifest()?;
    let sheet = blind_sheet(&manifest.design, folder.rows()?)
        .map_err(|error| Failure::error(chain(&error)))?;
    let sheet = sheet.map_err(|error| Failure::error(chain(&error)))?;
    let path = given(common, typed);
    write_whole(&path, &sheet)?;
    let file = path.display().to_string();
    let compare = format!(
        "compeval judge agreement {} --label {}",
        shell_word(&typed.display().to_string()),
        shell_word(&folder.label())
    );
    console.json(&json!({ "file": file, "label": folder.label(), "next": compare }));
    console.print(&say!(
        console.locale,
        "{file}: fill in the column `score` (0 to 5), then: {compare}",
        "{file}：填写 `score` 列（0 至 5），然后：{compare}"
    ));
    Ok(Exit::Done)
}

fn nothing_common(label: &str) -> Failure {
    Failure::input(format!(
        "no grade in the file matches a judged cell of `{label}`"
    ))
    .hinted("the cells named were not judged; `compeval run` again completes them")
}

fn section(judge: &JudgeAgreement, locale: Locale) -> Section {
    let columns = [
        locale.pick("dimension", "维度"),
        locale.pick("pairs", "对数"),
        locale.pick("exact", "相同"),
        locale.pick("within 1", "相差 1 以内"),
        locale.pick("Spearman", "斯皮尔曼"),
        locale.pick("kappa", "卡帕"),
        locale.pick("judge − human", "评审 − 人工"),
    ];
    let dimensions = judge.dimensions.iter();
    let dimensions = dimensions
        .map(|(dimension, found)| line(dimension_name(locale, *dimension), found, locale));
    let all = line(locale.pick("all", "全部"), &judge.pooled, locale);
    let table = TextTable::plain(&columns, &[], dimensions.chain([all]));
    let name = judge.judge.as_deref();
    let itself = match judge.against_itself {
        Some(spread) => say!(
            locale,
            "against itself: σ {:.2}, {} of {} 2 points or more apart",
            "自身重复：σ {:.2}，相差 2 分或以上 {}/{}",
            spread.sigma,
            percent(Some(spread.far_share)),
            locale.count(spread.pairs, "repeat", "次重复")
        ),
        None if name.is_none() => String::new(),
        None => say!(
            locale,
            "against itself: no answer was graded twice; set runs = {{ judge = 2 }} under [pipeline]",
            "自身重复：没有内容被评分两次；在 [pipeline] 下设 runs = {{ judge = 2 }} 即可"
        ),
    };
    let panel = locale.pick("panel (median)", "评审组（中位数）");
    Section::plain(
        name.unwrap_or(panel),
        [Block::Table(table), Block::plain(itself)],
    )
}

fn line(name: &str, found: &Agreement, locale: Locale) -> Vec<String> {
    let ends = &found.ci95;
    let share =
        |figure, ci95| with_interval(percent(figure), ci95, |end| format!("{:.0}", end * 100.0));
    let rank = |figure, ci95| {
        with_interval(coefficient(figure, locale), ci95, |end| {
            number(Some(end), 2)
        })
    };
    let difference = found.mean_difference.map(signed);
    vec![
        name.to_owned(),
        found.pairs.to_string(),
        share(found.exact, ends.exact),
        share(found.within_one, ends.within_one),
        rank(&found.spearman, ends.spearman),
        rank(&found.quadratic_kappa, ends.quadratic_kappa),
        with_interval(
            difference.unwrap_or_else(|| number(None, 2)),
            ends.mean_difference,
            signed,
        ),
    ]
}

/// A figure with its 95% interval, where it has one.
fn with_interval(figure: String, ci95: Option<Interval>, end: impl Fn(f64) -> String) -> String {
    match ci95 {
        Some(ci95) => format!("{figure} [{}, {}]", end(ci95.low()), end(ci95.high())),
        None => figure,
    }
}

fn coefficient(found: &Coefficient, locale: Locale) -> String {
    match (found.value, found.reason) {
        (Some(value), _) => number(Some(value), 3),
        (None, Some(NoCoefficient::NoVariation)) => {
            locale.pick("no variation", "没有变化").to_owned()
        }
        (None, _) => number(None, 3),
    }
}

fn counts(compared: &AgreementResult, label: &str, locale: Locale) -> String {
    let AgreementResult {
        graded,
        unmatched,
        alpha,
        ..
    } = compared;
    let mut text = say!(
        locale,
        "{} against `{label}`",
        "{} 对比 `{label}`",
        locale.count(*graded, "human grade", "个人工评分")
    );
    if !unmatched.is_empty() {
        text.push_str(&say!(
            locale,
            ", {} not judged",
            "，{} 未评分",
            unmatched.len()
        ));
    }
    if let Some(alpha) = alpha {
        text.push_str(&say!(
            locale,
            "\nthe judges with each other: Krippendorff's alpha {}",
            "\n评审之间：α 系数 {}",
            coefficient(alpha, locale)
        ));
    }
    text
}

fn warnings(compared: &AgreementResult, label: &str, locale: Locale) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(judge) = compared
        .judges
        .iter()
        .find(|judge| judge.pooled.spearman.rests_on_few())
    {
        let pairs = locale.count(judge.pooled.pairs, "pair", "对");
        warnings.push(say!(
            locale,
            "{pairs} in all: under {MIN_PAIRS}, coefficients are unreliable",
            "共 {pairs}：少于 {MIN_PAIRS} 对时系数说明不了什么"
        ));
    } else {
        let thin = compared.judges.iter().flat_map(|judge| &judge.dimensions);
        let mut names: Vec<&str> = thin
            .filter(|(_, f)| f.spearman.rests_on_few())
            .map(|(d, _)| d.name())
            .collect();
        names.dedup();
        if !names.is_empty() {
            warnings.push(say!(
                locale,
                "unreliable, under {MIN_PAIRS} pairs: {}",
                "少于 {MIN_PAIRS} 对，分量很轻：{}",
                names.join(locale.pick(", ", "、"))
            ));
        }
    }
    if !compared.unmatched.is_empty() {
        let lines = first_few(&compared.unmatched, 10);
        warnings.push(format!(
            "`{label}` has no grade for the cells of these lines: {lines}"
        ));
    }
    if let Some(alpha) = compared.alpha.filter(Coefficient::is_low_alpha) {
        let value = number(alpha.value, 3);
        warnings.push(say!(
            locale,
            "the judges agree poorly with each other: alpha {value}, below .667",
            "评审之间几乎不一致：α 系数 {value}，低于 .667"
        ));
    }
    warnings
}
