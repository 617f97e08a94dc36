use crate::ground::Ground;
use flightproof_session::Session as _;

#[test]
fn a_session_is_attested_and_leaves_nothing() {
    let ground = Ground::new();
    let t = std::time::Instant::now();
    let mut session = ground.open();
    println!("open {:?}", t.elapsed());
    println!("{}", serde_json::to_string_pretty(session.attestation()).unwrap());
    let t = std::time::Instant::now();
    assert!(session.close().unwrap().is_clean());
    println!("close {:?}", t.elapsed());
}
