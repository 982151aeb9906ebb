//! compeval: after an agent's history was compressed, can the agent still do its work?

pub mod files;
pub mod units;
pub mod locale;
pub mod fault;
pub mod transcript;
pub mod stats;

pub mod fixture;
pub mod import;
pub mod provider;
pub mod action;
pub mod cache;
pub mod probe;
pub mod compress;
pub mod answer;
pub mod judge;
pub mod measure;
pub mod lexical;
pub mod pipeline;
pub mod plan;
pub mod results;
pub mod report;
pub mod scheduler;
pub mod cli;
