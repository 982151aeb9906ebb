//! Seam: stands in for the reading of banks that the room `probe` is about to bring.

use crate::fault::Fault;
use crate::probe::{Bank, Probe};

pub(super) struct ParsedBank {
    pub(super) bank: Bank,
}

impl ParsedBank {
    pub(super) fn read(text: &str) -> Result<ParsedBank, Vec<Fault>> {
        let fault = |e| vec![Fault::json(text, 0, &e, "a bank is JSON with `fixture` and `probes`")];
        serde_json::from_str(text).map(|bank| ParsedBank { bank }).map_err(fault)
    }

    pub(super) fn point_faults(&self, points: usize) -> Vec<Fault> {
        let is_off = |p: &&Probe| p.point.is_some_and(|at| at.0 == 0 || at.0 as usize > points);
        let fault = |p: &Probe| {
            let message = format!("probe `{}` is asked at a point that is out of range: expected 1 to {points}", p.id);
            Fault::at(0..1, message, "`point` is the number of a compression point of the fixture, from 1")
        };
        self.bank.probes.iter().filter(is_off).map(fault).collect()
    }
}
