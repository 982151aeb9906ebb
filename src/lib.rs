//! compeval: after an agent's history was compressed, can the agent still do its work?

pub mod units;
pub mod locale;
pub mod fault;
pub mod transcript;

pub mod fixture;
pub mod provider;
pub mod action;
pub mod probe;
pub mod compress;
pub mod answer;
pub mod judge;
pub mod measure;
pub mod lexical;
