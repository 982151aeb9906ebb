//! Figures of one result set, method by method: what a summary consists of.

pub(super) mod answers;
pub(super) mod cells;
pub(super) mod contexts;
pub(super) mod economy;
pub(super) mod excluded;
pub(super) mod groups;
pub(super) mod guarded;
pub(super) mod invented;
pub(super) mod literal_check;
pub(super) mod noise;
pub(super) mod open_book;
pub(super) mod planted;
pub(super) mod ranking;
pub(super) mod scale;
pub(super) mod shares;
