use flightproof_core::Refused;

/// A refusal of this crate.
pub type CertifierError = Refused<CertifierCode>;

flightproof_core::refusal_codes! {
    /// Refusals of the certifier.
    pub enum CertifierCode in "certifier" {
        /// The witness file breaks its schema.
        WitnessInvalid = "WITNESS_INVALID", Configuration,
            "the witness cannot be read", "a witness that is read in two ways judges nothing", "compare the file with the witness schema in docs/formats.md";
    }
}
