//! The page that people look at: what is in it, what never is, and what a browser makes of it.

mod browser;
mod cell;
mod page;
mod sample;
