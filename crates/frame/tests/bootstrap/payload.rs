use flightproof_frame::FrameCode;
use flightproof_frame::bootstrap::{MAX_PAYLOAD_BYTES, SecretPayload};

fn payload(bytes: &[u8]) -> SecretPayload {
    SecretPayload::from_vec(bytes.to_vec()).unwrap()
}

#[test]
fn a_payload_shows_its_length_and_nothing_else() {
    assert_eq!(
        format!("{:?}", payload(b"sesame")),
        "SecretPayload(6 bytes)"
    );
    assert_eq!(payload(b"sesame").len(), 6);
}

#[test]
fn payloads_are_equal_where_all_their_bytes_are() {
    assert_eq!(payload(b"sesame"), payload(b"sesame"));
    for other in ["sesamE", "Sesame", "sesam", "sesame "] {
        assert_ne!(payload(b"sesame"), payload(other.as_bytes()));
    }
}

#[test]
fn a_consumer_gets_the_payload_and_what_it_returns_comes_back() {
    let length = payload(b"sesame").consume(|bytes| {
        assert_eq!(bytes, b"sesame");
        Ok::<_, ()>(bytes.len())
    });
    assert_eq!(length, Ok(6));
}

#[test]
fn a_consumer_that_fails_or_panics_is_a_refusal_without_its_words() {
    let failed = payload(b"sesame").consume(|bytes| Err::<(), _>(bytes.to_vec()));
    assert_eq!(
        failed.unwrap_err().to_string(),
        "frame/CALLBACK_FAILED: it returned an error"
    );
    let panicked = payload(b"sesame")
        .consume(|bytes| -> Result<(), ()> { std::panic::resume_unwind(Box::new(bytes.to_vec())) });
    assert_eq!(
        panicked.unwrap_err().to_string(),
        "frame/CALLBACK_FAILED: it panicked"
    );
}

/// Panics where it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("again"));
    }
}

#[test]
fn a_panic_whose_remains_panic_again_is_one_refusal() {
    let panicked = payload(b"sesame")
        .consume(|_| -> Result<(), ()> { std::panic::resume_unwind(Box::new(Bomb)) });
    assert_eq!(panicked.unwrap_err().code, FrameCode::CallbackFailed);
}

#[test]
fn a_payload_has_the_size_of_a_frame() {
    assert_eq!(
        SecretPayload::from_vec(vec![]).unwrap_err().code,
        FrameCode::Empty
    );
    let most = SecretPayload::from_vec(vec![1; MAX_PAYLOAD_BYTES]).unwrap();
    assert_eq!(most.len(), MAX_PAYLOAD_BYTES);
    let over = SecretPayload::from_vec(vec![1; MAX_PAYLOAD_BYTES + 1]);
    assert_eq!(over.unwrap_err().code, FrameCode::Oversize);
}

/// Has one impl for every type and another for those that can be cloned or shown. A call compiles
/// only where it is clear which is meant.
trait Unshowable<Why> {
    fn hold() {}
}

struct Cloned;
struct Displayed;

impl<T> Unshowable<()> for T {}
impl<T: Clone> Unshowable<Cloned> for T {}
impl<T: std::fmt::Display> Unshowable<Displayed> for T {}

#[test]
fn a_payload_can_be_neither_cloned_nor_displayed() {
    <SecretPayload as Unshowable<_>>::hold();
}
