//! Checks what a plan says of the machine against what the machine reports.
//! hob sets neither a power limit nor a driver: a claim that the machine does not confirm makes a record unverified.

use super::{Doubt, Label, Record};

/// Names of the labels that plans have axes for.
pub const CREATOR: &str = "creator";
pub const POWER_CAP: &str = "power_cap_w";
pub const DRIVER: &str = "driver";

/// A limit that differs by less is the same: machines round to parts of a watt.
const CAP_APART_W_MAX: f64 = 0.5;

impl Record {
    /// Adds what is doubtful or wrong about the driver and the power limit that its labels name. `caps_w` are the power
    /// limits, in watts, that the machine reports.
    pub fn check_setup(&mut self, caps_w: &[f64]) {
        let drivers: Vec<&str> =
            self.host.accelerators.iter().filter_map(|card| card.driver.as_deref()).collect();
        let driver = self.labels.get(DRIVER).map(|said| {
            let is_same = drivers.iter().any(|driver| driver == said);
            (format!("driver {said}"), is_same, drivers.join(", "))
        });
        let cap = self.labels.get(POWER_CAP).map(|said| {
            let watts: Option<f64> = said.parse().ok();
            let is_it =
                |cap: &f64| watts.is_some_and(|watts| (watts - cap).abs() < CAP_APART_W_MAX);
            let reported: Vec<String> = caps_w.iter().map(|watts| format!("{watts} W")).collect();
            (format!("a power limit of {said} W"), caps_w.iter().any(is_it), reported.join(", "))
        });
        for (claim, is_same, reported) in driver.into_iter().chain(cap) {
            match (is_same, reported.is_empty()) {
                (true, _) => {}
                (false, true) => self.confidence.reasons.push(Doubt::SetupUnverified),
                (false, false) => self
                    .invalid_reasons
                    .push(format!("the plan says {claim}, and the machine reports {reported}")),
            }
        }
        self.confidence.reasons.sort();
        self.confidence.reasons.dedup();
        if !self.confidence.reasons.is_empty() || !self.invalid_reasons.is_empty() {
            self.confidence.label = Label::Unverified;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Accelerator;

    #[test]
    fn a_claim_is_confirmed_refuted_or_unverified() {
        let rows = [
            (DRIVER, "580.95", Some("580.95"), &[][..], 0, 0),
            (DRIVER, "580.95", Some("570.1"), &[], 0, 1),
            (DRIVER, "580.95", None, &[], 1, 0),
            (POWER_CAP, "15", None, &[15.0, 25.0], 0, 0),
            (POWER_CAP, "15", None, &[25.0], 0, 1),
            (POWER_CAP, "15", None, &[], 1, 0),
            (CREATOR, "ada", None, &[], 0, 0),
        ];
        for (name, said, driver, caps_w, doubts, invalid) in rows {
            let mut record = Record::default();
            record.confidence.label = Label::Verified;
            record.labels.insert(name.to_owned(), said.to_owned());
            let driver = driver.map(str::to_owned);
            record.host.accelerators.push(Accelerator { driver, ..Accelerator::default() });
            record.check_setup(caps_w);
            let got = (record.confidence.reasons.len(), record.invalid_reasons.len());
            assert_eq!(got, (doubts, invalid), "{name} {said} {caps_w:?}");
            let is_verified = record.confidence.label == Label::Verified;
            assert_eq!(is_verified, doubts + invalid == 0, "{name} {said}");
        }
    }
}
