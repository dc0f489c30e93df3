//! TLS with a certificate file: what the server presents, and how a program on the same machine checks that it does.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use canonym_core::{Error, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, ServerConfig, SignatureScheme, StreamOwned, version,
};

/// The files of a certificate, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server, followed by those of its issuers.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What the server presents. Renewed files are read again, without a restart.
pub struct Tls {
    files: TlsFiles,
    read: Mutex<ReadFiles>,
}

struct ReadFiles {
    config: Arc<ServerConfig>,
    changed: [Option<SystemTime>; 2],
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// If they cannot be read or do not belong together.
    pub fn open(files: TlsFiles) -> Result<Tls> {
        let read = ReadFiles { config: Arc::new(config(&files)?), changed: changed(&files) };
        Ok(Tls { read: Mutex::new(read), files })
    }

    /// The settings for the next connection. If renewed files are wrong, the former ones stay, with a warning.
    pub fn config(&self) -> Arc<ServerConfig> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let now = changed(&self.files);
        if now != read.changed {
            read.changed = now;
            match config(&self.files) {
                Ok(config) => read.config = Arc::new(config),
                Err(error) => tracing::warn!("the certificate was not renewed: {}", error.with_causes()),
            }
        }
        read.config.clone()
    }
}

fn changed(files: &TlsFiles) -> [Option<SystemTime>; 2] {
    [&files.certificate, &files.key].map(|path| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok())
}

fn config(files: &TlsFiles) -> Result<ServerConfig> {
    let certificates = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?)
        .map_err(|error| Error::artifact(&files.key, format!("no private key in PEM: {error}")).with_hint(KEY_HINT))?;
    let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&VERSIONS).map_err(refused)?;
    let mut config = builder.with_no_client_auth().with_single_cert(certificates, key).map_err(|error| {
        let message = format!("the key does not fit the certificate {}: {error}", files.certificate.display());
        Error::artifact(&files.key, message).with_hint("give the certificate of the server first, and its own key")
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

const KEY_HINT: &str = "use an unencrypted key that starts with `-----BEGIN PRIVATE KEY-----`";

static VERSIONS: [&rustls::SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn refused(error: rustls::Error) -> Error {
    Error::unavailable(format!("TLS is not possible: {error}"))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Error::io("read", path, error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let all: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    let hint = "use a file that starts with `-----BEGIN CERTIFICATE-----`";
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(Error::artifact(path, "no certificate in PEM").with_hint(hint)),
        Err(error) => Err(Error::artifact(path, format!("no certificate in PEM: {error}")).with_hint(hint)),
    }
}

/// A connection over `stream` to a server that presents the certificate in the file `certificate`, whatever its names and dates.
///
/// # Errors
/// If the file cannot be read.
pub fn connect(stream: TcpStream, certificate: &Path) -> Result<impl Read + Write + use<>> {
    let provider = provider();
    let pinned = Pinned { certificate: certificates(certificate)?.swap_remove(0), provider: provider.clone() };
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&VERSIONS).map_err(refused)?;
    let config = builder.dangerous().with_custom_certificate_verifier(Arc::new(pinned)).with_no_client_auth();
    let name = ServerName::from(std::net::IpAddr::from([127, 0, 0, 1]));
    Ok(StreamOwned::new(ClientConnection::new(Arc::new(config), name).map_err(refused)?, stream))
}

/// Accepts one certificate and no other.
#[derive(Debug)]
struct Pinned {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        match *presented == self.certificate {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(rustls::Error::General("the server presents another certificate".to_owned())),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
