//! The table of compressions: what one costs.

use super::breakdowns::FigureTable;
use super::translation::Translation;
use crate::results::{FigureTableId, Summary};

/// The table; `None` if it would have no figures, or if there are grades: other tables have its figures then.
pub(super) fn compressions(summary: &Summary, tr: &Translation) -> Option<FigureTable> {
    let mut cells = summary.methods.values().map(|method| &method.cells);
    let is_graded = cells.any(|cells| cells.judged + cells.not_compressed > 0);
    let texts = [tr.compressions_title, tr.compressions_note];
    let table = FigureTableId::Compressions;
    let table = FigureTable::of_figures("compressions", table, texts, summary, tr);
    table.filter(|_| !is_graded)
}
