//! One oracle for the terminal result: unit test, property test, seed replay and fuzz target call
//! the same body.
