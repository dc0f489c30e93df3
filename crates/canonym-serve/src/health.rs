//! Asks a server on this machine whether it is ready, for supervisors and containers without other programs.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use crate::tls;

/// How long each step may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The start of the answer that is read, in bytes.
const MAX_ANSWER: u64 = 4096;

/// Succeeds if the server at `address` is ready for requests. A server that speaks TLS has to present the certificate in the file
/// `certificate`.
///
/// # Errors
/// Usage error if the address is not on this machine; otherwise what is wrong with the server or the file.
pub fn ask(address: SocketAddr, certificate: Option<&Path>) -> canonym_core::Result<()> {
    if !address.ip().is_loopback() {
        let hint = "use an address such as 127.0.0.1:7878";
        return Err(canonym_core::Error::usage(format!("{address} is not an address of this machine"), hint));
    }
    let no_answer = |error: std::io::Error| {
        let hint = "is `canonym serve` running, on this port? with `--tls-cert`, give the same certificate here";
        canonym_core::Error::unavailable(format!("no answer from {address}: {error}")).with_hint(hint)
    };
    let stream = connect(address).map_err(no_answer)?;
    let answer = match certificate {
        None => answer(stream, address),
        Some(certificate) => answer(tls::connect(stream, certificate)?, address),
    };
    let answer = answer.map_err(no_answer)?;
    let line: String = answer.lines().next().unwrap_or_default().chars().take(80).collect();
    match line.split(' ').nth(1) {
        Some("200") if line.starts_with("HTTP/1.") => Ok(()),
        Some("503") if line.starts_with("HTTP/1.") => {
            let hint = "the log of the server says why";
            Err(canonym_core::Error::unavailable(format!("the server at {address} is not ready")).with_hint(hint))
        }
        // An alert of TLS.
        _ if line.starts_with('\u{15}') => {
            Err(canonym_core::Error::unavailable(format!("the server at {address} speaks TLS"))
                .with_hint("give its certificate with `--tls-cert`"))
        }
        _ => Err(canonym_core::Error::unavailable(format!("{address} is not a canonym server; it answered `{line}`"))),
    }
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

fn answer(mut stream: impl Read + Write, address: SocketAddr) -> std::io::Result<String> {
    // One write, because a program that closes at once would break the second.
    let request = format!("GET /ready HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    // One read at a time is limited; a server that sends slowly ends at the limit of bytes.
    match stream.take(MAX_ANSWER).read_to_end(&mut bytes) {
        Err(error) if bytes.is_empty() => Err(error),
        _ => Ok(String::from_utf8_lossy(&bytes).into_owned()),
    }
}
