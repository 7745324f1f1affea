//! Moves bytes one way, as the fault of the moment allows.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;

use super::{Fault, Shared, Way};

/// All that is held for one way of one connection.
const BUFFER: usize = 16 << 10;

/// Why a pump stopped.
enum Stopped {
    /// One side has no more to say; the other way goes on.
    Ended,
    /// The connection is over, both ways.
    Cut,
}

struct Pump<'a> {
    shared: &'a Shared,
    way: Way,
    fault: watch::Receiver<Fault>,
    /// Bytes passed since the fault began.
    since: u64,
}

/// Serves a connection to its end.
pub(super) async fn run(shared: &Shared, mut client: TcpStream, mut server: TcpStream) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let reset = {
        let (client_reads, client_writes) = client.split();
        let (server_reads, server_writes) = server.split();
        let mut fault = shared.fault.subscribe();
        let both = async {
            tokio::try_join!(
                Pump::new(shared, Way::Up).run(client_reads, server_writes),
                Pump::new(shared, Way::Down).run(server_reads, client_writes),
            )
        };
        tokio::select! {
            biased;
            _ = fault.wait_for(|fault| *fault == Fault::Reset) => true,
            // An error on one side is passed on as the reset that it most likely was.
            ended = both => matches!(ended, Err(Some(_))),
        }
    };
    if reset {
        let _ = (client.set_zero_linger(), server.set_zero_linger());
    }
}

impl<'a> Pump<'a> {
    fn new(shared: &'a Shared, way: Way) -> Self {
        Self { shared, way, fault: shared.fault.subscribe(), since: 0 }
    }

    /// `Err(None)` is a cut on purpose.
    async fn run(mut self, from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> Result<(), Option<io::Error>> {
        match self.pass(from, &mut to).await {
            Ok(Stopped::Ended) => to.shutdown().await.map_err(Some),
            Ok(Stopped::Cut) => Err(None),
            Err(error) => Err(Some(error)),
        }
    }

    async fn pass(&mut self, from: ReadHalf<'_>, to: &mut WriteHalf<'_>) -> io::Result<Stopped> {
        let mut buffer = vec![0; BUFFER];
        loop {
            let Some((most, pause)) = self.allowance() else {
                if self.cut() {
                    return Ok(Stopped::Cut);
                }
                self.changed().await;
                continue;
            };
            let read = tokio::select! {
                biased;
                () = self.changed() => continue,
                ready = from.readable() => {
                    ready?;
                    match from.try_read(&mut buffer[..most]) {
                        Ok(read) => read,
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                        Err(error) => return Err(error),
                    }
                }
            };
            if read == 0 {
                return Ok(Stopped::Ended);
            }
            self.hold(pause).await;
            to.write_all(&buffer[..read]).await?;
            self.since += read as u64;
            self.shared.count(self.way, read);
        }
    }

    /// How much may be read now, and how long it is held. Nothing, if nothing may pass.
    fn allowance(&self) -> Option<(usize, Duration)> {
        let fault = *self.fault.borrow();
        match fault {
            Fault::None | Fault::Refuse => Some((BUFFER, Duration::ZERO)),
            Fault::Latency(time) => Some((BUFFER, time)),
            Fault::Silence | Fault::Reset => None,
            Fault::Drip { bytes, every } => Some((bytes.clamp(1, BUFFER), every)),
            Fault::CutAfter { way, bytes } if way == self.way => {
                let left = usize::try_from(bytes.saturating_sub(self.since)).unwrap_or(BUFFER);
                (left > 0).then_some((left.min(BUFFER), Duration::ZERO))
            }
            Fault::CutAfter { .. } => Some((BUFFER, Duration::ZERO)),
        }
    }

    /// Whether nothing may pass because enough has.
    fn cut(&self) -> bool {
        matches!(*self.fault.borrow(), Fault::CutAfter { .. })
    }

    /// Until the fault is another one. The count begins anew.
    async fn changed(&mut self) {
        if self.fault.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.since = 0;
    }

    /// Holds a piece back; a silence that begins meanwhile holds it longer.
    async fn hold(&mut self, pause: Duration) {
        if !pause.is_zero() {
            tokio::select! {
                () = self.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        while *self.fault.borrow() == Fault::Silence {
            self.changed().await;
        }
    }
}
