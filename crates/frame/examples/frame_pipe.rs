//! What the reader of the bootstrap frame costs above a bare read of the same bytes, and how late
//! its deadline is. One line of JSON each.

use flightproof_frame::FrameCode;
use flightproof_frame::bootstrap::{
    BUFFER_BYTES, Descriptor, HEADER_BYTES, Limits, MAX_PAYLOAD_BYTES, receive,
};
use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Reads of each kind, taking turns.
const ROUNDS: usize = 2_000;
/// Deadlines that are let pass.
const DEADLINES: usize = 200;
/// How long each of them is.
const DEADLINE: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", reads()?);
    println!("{}", lateness()?);
    Ok(())
}

fn reads() -> Result<String, Box<dyn Error>> {
    let mut frame = vec![b'f'; HEADER_BYTES + MAX_PAYLOAD_BYTES];
    let header = u32::try_from(MAX_PAYLOAD_BYTES)?.to_be_bytes();
    frame
        .iter_mut()
        .zip(header)
        .for_each(|(to, from)| *to = from);
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let reader = filled(&frame)?;
        let start = Instant::now();
        bare_read(reader, &mut buffer)?;
        bare.push(start.elapsed());
        let reader = filled(&frame)?;
        let start = Instant::now();
        let payload = receive(Descriptor::adopt(reader)?, Limits::default())?;
        drop(black_box(payload));
        ours.push(start.elapsed());
    }
    let (bare, ours) = (micros(bare), micros(ours));
    let above = |at: usize| ours.get(at).zip(bare.get(at)).map_or(0.0, |(a, b)| a - b);
    Ok(format!(
        "{{\"work\":\"64 KiB frame through a pipe\",\"rounds\":{ROUNDS},\
         \"bare_min_us\":{:.2},\"bare_median_us\":{:.2},\"ours_min_us\":{:.2},\
         \"ours_median_us\":{:.2},\"above_min_us\":{:.2},\"above_median_us\":{:.2}}}",
        at(&bare, 0),
        at(&bare, ROUNDS / 2),
        at(&ours, 0),
        at(&ours, ROUNDS / 2),
        above(0),
        above(ROUNDS / 2),
    ))
}

/// The reading end of a pipe that holds the frame and its end, so that no other thread's turn is
/// measured.
fn filled(frame: &[u8]) -> Result<OwnedFd, Box<dyn Error>> {
    let (reader, writer) = rustix::pipe::pipe()?;
    rustix::pipe::fcntl_setpipe_size(&writer, 2 * MAX_PAYLOAD_BYTES)?;
    File::from(writer).write_all(frame)?;
    Ok(reader)
}

/// Everything up to the end, into a buffer that is there already, and a close.
fn bare_read(reader: OwnedFd, buffer: &mut [u8]) -> std::io::Result<()> {
    let mut reader = File::from(reader);
    let mut filled = 0;
    loop {
        match reader.read(buffer.get_mut(filled..).unwrap_or_default())? {
            0 => break,
            count => filled += count,
        }
    }
    black_box(buffer);
    Ok(())
}

fn lateness() -> Result<String, Box<dyn Error>> {
    let limits = Limits::new(DEADLINE, Duration::from_secs(2))?;
    let mut late = Vec::new();
    for _ in 0..DEADLINES {
        let (reader, _silent) = rustix::pipe::pipe()?;
        let start = Instant::now();
        let refused = receive(Descriptor::adopt(reader)?, limits);
        late.push(start.elapsed().saturating_sub(DEADLINE));
        if refused.err().map(|e| e.code) != Some(FrameCode::Timeout) {
            return Err("a silent peer was not left at the deadline".into());
        }
    }
    let late = micros(late);
    Ok(format!(
        "{{\"work\":\"lateness of a deadline\",\"rounds\":{DEADLINES},\"median_us\":{:.1},\
         \"p99_us\":{:.1},\"max_us\":{:.1}}}",
        at(&late, DEADLINES / 2),
        at(&late, DEADLINES * 99 / 100),
        at(&late, DEADLINES - 1),
    ))
}

fn at(sorted: &[f64], index: usize) -> f64 {
    sorted.get(index).copied().unwrap_or_default()
}

/// In ascending order.
fn micros(mut times: Vec<Duration>) -> Vec<f64> {
    times.sort_unstable();
    times.iter().map(|t| t.as_secs_f64() * 1e6).collect()
}
