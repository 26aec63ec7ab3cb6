//! Owns the choice of ports on the loopback address. It must not keep them open.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, bail};

/// Below the range from which Linux takes ports of outgoing connections: nobody gets one by accident.
const FIRST: u32 = 20_000;
const COUNT: u32 = 12_000;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port that nothing listens on and that this process has not given out lately.
pub fn free_port() -> Result<u16> {
    // Processes that start together begin far apart.
    let start = std::process::id().wrapping_mul(211);
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(FIRST + start.wrapping_add(step) % COUNT)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port between {FIRST} and {} is free", FIRST + COUNT)
}

/// Whether anything listens there.
pub fn is_open(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}
