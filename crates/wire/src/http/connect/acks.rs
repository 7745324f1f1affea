//! What the system knows of a peer below every protocol: whether it acknowledges what it is sent.

#[cfg(all(target_os = "linux", not(linetender_portable)))]
mod linux {
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, AsRawFd as _};
    use std::time::Duration;

    use crate::http::connect::network::Silence;

    /// Asks the kernel. `None` if it does not tell.
    #[expect(unsafe_code, reason = "no wrapper of ours has TCP_INFO")]
    pub(in crate::http::connect) fn silence(socket: impl AsFd) -> Option<Silence> {
        let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
        let mut length = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).ok()?;
        // SAFETY: the descriptor is borrowed for the call; the buffer has the length that is given, and every pattern of bits is a
        // valid `tcp_info`. An older kernel fills less of it, and the rest stays zero.
        let info = unsafe {
            let given = libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.as_mut_ptr().cast(),
                &raw mut length,
            );
            (given == 0).then(|| info.assume_init())?
        };
        let heard = info.tcpi_last_ack_recv.min(info.tcpi_last_data_recv);
        Some(Silence {
            lasts: Duration::from_millis(heard.into()),
            owes: info.tcpi_unacked > 0 || info.tcpi_probes > 0,
            tries: u32::from(info.tcpi_retransmits) + u32::from(info.tcpi_probes),
        })
    }
}

#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
mod none {
    use crate::http::connect::network::Silence;

    /// Nothing is known: the system's own keepalive has to do.
    pub(in crate::http::connect) const fn silence<T>(_: &T) -> Option<Silence> {
        None
    }
}

#[cfg(all(target_os = "linux", not(linetender_portable)))]
pub(super) use linux::silence;
#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
pub(super) use none::silence;
