//! The runner as a program of its own, for the tests that start it in a real session.
fn main() -> std::process::ExitCode {
    flightproof_runner::main()
}
