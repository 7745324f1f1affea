//! Simulated processes in the place of the system's: everything above this is the code that ships.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut as _, BytesMut};
use linetender_wire::Seen;
use linetender_wire::seam::{Event, Listener};
use linetender_wire::stdio::platform::{Found, Output, Platform, Started, Starter, Stdin, Work};
use linetender_wire::stdio::{Child, Launch};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::sync::mpsc;
use tokio::time::Sleep;

use crate::pipe::{Reader, Writer, pipe};
use crate::process::{self, Pipes, Process};
use crate::rng::Rng;
use crate::scene::Scene;

/// How much a control socket holds.
const CONTROL: usize = 256;

/// Starts simulated servers.
pub(crate) struct Simulated(pub(crate) Arc<Scene>);

/// Where one of them runs.
pub(crate) struct Place(Arc<Process>);

/// Our end of its stdin.
pub(crate) struct In(Writer);

/// Our end of its stdout. On a busy machine it takes a moment until we are woken; what is there can be read all the same.
pub(crate) struct Out {
    pipe: Reader,
    rng: Rng,
    /// How late it is, at most, in milliseconds.
    latest: u64,
    late: Option<Pin<Box<Sleep>>>,
}

impl Starter for Simulated {
    fn start(
        &self,
        launch: &Launch,
        listener: Arc<dyn Listener>,
        events: mpsc::Sender<Event>,
    ) -> Result<Child, Seen> {
        let scene = &self.0;
        let mut rng = scene.rng();
        let (our_stdin, stdin) = pipe(scene.habits().pipe);
        let (stdout, our_stdout) = pipe(scene.habits().pipe);
        let (stderr, our_stderr) = pipe(scene.habits().pipe);
        let (control, theirs) = tokio::io::duplex(CONTROL);
        let latest = scene.habits().late;
        let out = Out { pipe: our_stdout, rng: rng.fork(), latest, late: None };
        let process = process::start(scene, Pipes { stdin, stdout, stderr }, theirs, rng);
        let started = Started {
            platform: Place(process),
            stdin: In(our_stdin),
            stdout: out,
            stderr: our_stderr,
            control,
        };
        Ok(Child::of(started, launch, listener, events))
    }
}

impl Platform for Place {
    type Stdin = In;
    type Stdout = Out;
    type Stderr = Reader;
    type Control = DuplexStream;

    fn find(&self, _: i32) -> Box<dyn Found> {
        Box::new(Body(Arc::clone(&self.0)))
    }

    fn kill_reaper(&mut self) {
        self.0.kill_reaper();
    }

    async fn reaper_gone(&mut self) {
        self.0.reaper_gone().await;
    }
}

/// A server that can be found by its number.
struct Body(Arc<Process>);

impl Found for Body {
    fn pid(&self) -> Option<i32> {
        Some(self.0.pid)
    }

    fn has_exited(&self) -> bool {
        self.0.has_exited()
    }

    fn exited(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            while !self.0.has_exited() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    }

    fn work(&self) -> Option<Work> {
        // Whoever works does nothing else.
        Some(Work { cpu: if self.0.works { self.0.age() } else { Duration::ZERO }, ..Work::default() })
    }

    fn clear(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.0.clear())
    }
}

impl Stdin for In {
    async fn broken(&self) {
        self.0.broken().await;
    }

    fn unread(&self) -> Option<Vec<u8>> {
        self.0.unread()
    }
}

impl AsyncWrite for In {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Out {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.late.is_none() && self.pipe.is_ready() {
            let latest = self.latest;
            let wait = self.rng.millis(0, latest + 1);
            if !wait.is_zero() {
                self.late = Some(Box::pin(tokio::time::sleep(wait)));
            }
        }
        if let Some(late) = &mut self.late {
            ready!(late.as_mut().poll(context));
            self.late = None;
        }
        Pin::new(&mut self.pipe).poll_read(context, buffer)
    }
}

impl Output for Out {
    async fn read_now(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        self.pipe.read_now(buffer).await
    }
}

impl Output for Reader {
    async fn read_now(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        if !self.is_ready() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let bytes = self.take(buffer.remaining_mut().min(8192));
        buffer.extend_from_slice(&bytes);
        Ok(bytes.len())
    }
}
