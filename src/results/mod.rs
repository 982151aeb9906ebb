//! x
mod row;
pub use row::{FactRow, Row, RowKeys};
