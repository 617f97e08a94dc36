//! The line to a container's first process: a thread that carries bytes between two pipes, which
//! the session's channel uses, and the engine's stream, which is decoded on the way.

use super::dial::Stream;
use super::engine::Attachment;
use super::stream::{Corruption, Source, StreamDecoder};
use super::tape::{Recorder, Side};
use crate::{SessionCode, SessionError};
use rustix::pipe::{PipeFlags, pipe_with};
use std::future::Future as _;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// Bytes carried at once, 64 KiB: what a pipe holds.
const PIECE_BYTES: usize = 64 << 10;
/// Most bytes kept of the container's standard error; the rest is read and dropped.
const MAX_STDERR: usize = 4 << 10;

/// Where a line leads to.
pub(super) enum Far {
    /// A container of an engine.
    Engine(Attachment),
    /// Somebody of this process who speaks as an engine does.
    Here(UnixStream),
}

impl Far {
    async fn open(self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Engine(attachment) => Ok(Box::new(attachment.open().await?)),
            Self::Here(stream) => {
                stream.set_nonblocking(true)?;
                Ok(Box::new(tokio::net::UnixStream::from_std(stream)?))
            }
        }
    }
}

/// An attached line. Dropping it lets go of the container's standard input, which ends it.
#[derive(Debug)]
pub(super) struct Line {
    thread: Option<JoinHandle<()>>,
    cancel: Option<oneshot::Sender<()>>,
    heard: Arc<Mutex<Heard>>,
}

/// What was learned beside the runner's channel.
#[derive(Debug, Default)]
struct Heard {
    stderr: Vec<u8>,
    end: Option<End>,
}

/// How the engine's stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// Between two frames.
    Clean,
    /// It is not to be believed.
    Corrupt(Corruption),
    /// The connection broke.
    Broken(String),
}

impl Line {
    /// Attaches, sends `first` to the container, and then whatever is written to the second of the
    /// returned pipes. The first one has the container's standard output.
    pub(super) fn open(
        far: Far,
        first: Vec<u8>,
        recorder: Option<Recorder>,
    ) -> Result<(Self, OwnedFd, OwnedFd), SessionError> {
        let io = |e: &dyn std::fmt::Display| SessionCode::HostIo.refuse(format_args!("line: {e}"));
        let (output, output_write) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| io(&e))?;
        let (input_read, input) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| io(&e))?;
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (cancel, cancelled) = oneshot::channel();
        let (opened, told) = mpsc::sync_channel(1);
        let ends = Ends {
            first,
            input: input_read,
            output: output_write,
            heard: Arc::clone(&heard),
            recorder,
        };
        let thread = std::thread::Builder::new()
            .name("engine line".to_owned())
            .spawn(move || carry(far, ends, cancelled, &opened))
            .map_err(|e| io(&e))?;
        let line = Self {
            thread: Some(thread),
            cancel: Some(cancel),
            heard,
        };
        match told.recv() {
            Ok(Ok(())) => Ok((line, output, input)),
            Ok(Err(e)) => Err(SessionCode::EngineFault.refuse(e)),
            Err(_ended) => Err(SessionCode::EngineFault.refuse("the line was never opened")),
        }
    }

    /// What the container said on standard error so far.
    pub(super) fn stderr(&self) -> Vec<u8> {
        self.heard().stderr.clone()
    }

    /// How the stream ended, if it did.
    pub(super) fn end(&self) -> Option<End> {
        self.heard().end.clone()
    }

    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.cancel = None;
        if let Some(thread) = self.thread.take() {
            // Its result is unit; a panic there leaves nothing to do here.
            let _ = thread.join();
        }
    }
}

/// What the thread works with.
struct Ends {
    first: Vec<u8>,
    input: OwnedFd,
    output: OwnedFd,
    heard: Arc<Mutex<Heard>>,
    recorder: Option<Recorder>,
}

fn carry(
    far: Far,
    ends: Ends,
    cancelled: oneshot::Receiver<()>,
    opened: &mpsc::SyncSender<io::Result<()>>,
) {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            let _ = opened.send(Err(e));
            return;
        }
    };
    runtime.block_on(async {
        let prepared = async {
            let input = Receiver::from_owned_fd(ends.input)?;
            let output = Sender::from_owned_fd(ends.output)?;
            Ok((far.open().await?, input, output))
        };
        let (stream, input, mut output) = match prepared.await {
            Ok(prepared) => prepared,
            Err(e) => {
                let _ = opened.send(Err(e));
                return;
            }
        };
        let _ = opened.send(Ok(()));
        let (from, to) = tokio::io::split(stream);
        let recorder = ends.recorder;
        let sending = tokio::spawn(send(ends.first, input, to, recorder.clone()));
        let receiving = async {
            let end = receive(from, &mut output, &ends.heard, recorder).await;
            let mut heard = ends.heard.lock().unwrap_or_else(PoisonError::into_inner);
            heard.end = Some(end);
            // Only now: whoever finds the pipe at its end asks why.
            drop(output);
        };
        // Whichever is first: the container's end, or ours.
        let mut receiving = std::pin::pin!(receiving);
        let mut cancelled = std::pin::pin!(cancelled);
        std::future::poll_fn(|context| {
            if receiving.as_mut().poll(context).is_ready() {
                return std::task::Poll::Ready(());
            }
            cancelled.as_mut().poll(context).map(|_told_or_dropped| ())
        })
        .await;
        sending.abort();
    });
}

/// Carries to the container until our side lets go; then the container's input ends as well.
async fn send(
    first: Vec<u8>,
    mut input: Receiver,
    mut to: WriteHalf<Box<dyn Stream>>,
    recorder: Option<Recorder>,
) {
    if to.write_all(&first).await.is_err() || to.flush().await.is_err() {
        return;
    }
    drop(first);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let carried = match input.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(count) => {
                let bytes = piece.get(..count).unwrap_or_default();
                if let Some(recorder) = &recorder {
                    recorder.note(Side::Host, bytes);
                }
                to.write_all(bytes).await
            }
        };
        if carried.is_err() || to.flush().await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

/// Carries from the container until its stream ends, in whatever way.
async fn receive(
    mut from: ReadHalf<Box<dyn Stream>>,
    output: &mut Sender,
    heard: &Mutex<Heard>,
    recorder: Option<Recorder>,
) -> End {
    let mut decoder = StreamDecoder::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = match from.read(&mut piece).await {
            Ok(0) => return decoder.finish().map_or_else(End::Corrupt, |()| End::Clean),
            Ok(count) => count,
            Err(e) => return End::Broken(e.to_string()),
        };
        let mut bytes = piece.get(..count).unwrap_or_default();
        if let Some(recorder) = &recorder {
            recorder.note(Side::Engine, bytes);
        }
        loop {
            match decoder.next(&mut bytes) {
                Ok(Some((Source::Stdout, content))) => {
                    if output.write_all(content).await.is_err() {
                        return End::Broken("nobody listens".to_owned());
                    }
                }
                Ok(Some((Source::Stderr, content))) => keep(content, heard),
                Ok(None) => break,
                Err(corruption) => return End::Corrupt(corruption),
            }
        }
    }
}

fn keep(content: &[u8], heard: &Mutex<Heard>) {
    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    let room = MAX_STDERR.saturating_sub(heard.stderr.len());
    heard.stderr.extend(content.iter().take(room));
}
