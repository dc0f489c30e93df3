//! TLS with a certificate file.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use canonym_serve::health;
use canonym_serve::tls::{Tls, TlsFiles, connect};

use crate::support::Server;

/// Self-signed certificates made for these tests: `certificate.pem` with `key.pem`, and `renewed.pem` with `renewed-key.pem`.
fn made(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

/// Copies of a certificate and its key in a folder.
fn present(folder: &Path, [certificate, key]: [&str; 2]) -> TlsFiles {
    let files = TlsFiles { certificate: folder.join("presented.pem"), key: folder.join("presented-key.pem") };
    std::fs::copy(made(certificate), &files.certificate).unwrap();
    std::fs::copy(made(key), &files.key).unwrap();
    files
}

fn answer(address: SocketAddr, certificate: &str) -> std::io::Result<String> {
    let mut stream = connect(TcpStream::connect(address)?, &made(certificate)).unwrap();
    stream.write_all(format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_speaks_tls_and_presents_renewed_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let tls = Tls::open(present(folder.path(), ["certificate.pem", "key.pem"])).unwrap();
    let server = Server::configured(|config| config.tls = Some(Arc::new(tls)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(canonym_serve::server::serve(listener, server.app.clone()));
    let kept = folder.path().to_path_buf();
    let asked = tokio::task::spawn_blocking(move || {
        assert!(answer(address, "certificate.pem").unwrap().starts_with("HTTP/1.1 200"));
        health::ask(address, Some(&made("certificate.pem"))).unwrap();
        // A client that expects another certificate, or none.
        let other = answer(address, "renewed.pem").unwrap_err().to_string();
        assert!(other.contains("presents another certificate"), "{other}");
        let plain = health::ask(address, None).unwrap_err();
        assert!(plain.hint().is_some_and(|hint| hint.contains("--tls-cert")), "{plain}");
        // Renewed files are presented from the next connection on; broken ones are not.
        present(&kept, ["renewed.pem", "renewed-key.pem"]);
        assert!(answer(address, "renewed.pem").unwrap().starts_with("HTTP/1.1 200"));
        present(&kept, ["renewed.pem", "key.pem"]);
        assert!(answer(address, "renewed.pem").unwrap().starts_with("HTTP/1.1 200"));
        assert!(answer(address, "certificate.pem").is_err());
    });
    asked.await.unwrap();
    server.app.stop();
    serving.await.unwrap().unwrap();
}

#[test]
fn wrong_files_are_refused_with_a_hint() {
    let check = |certificate: PathBuf, key: PathBuf, message: &str| {
        let error = Tls::open(TlsFiles { certificate, key }).err().unwrap();
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.hint().is_some() && error.path().is_some(), "{error}");
    };
    check(made("certificate.pem"), made("renewed-key.pem"), "the key does not fit the certificate");
    check(made("key.pem"), made("key.pem"), "no certificate in PEM");
    check(made("certificate.pem"), made("certificate.pem"), "no private key in PEM");
    check(made("missing.pem"), made("key.pem"), "missing.pem");
}
