//! Settings of the server.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::batcher::BatcherConfig;
use crate::error::{ApiError, ApiResult};
use crate::times::Clock;
use crate::tls::Tls;

/// Settings of the server.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// The data folder.
    pub data: PathBuf,
    /// Whether only this machine can reach the server; the `Host` of requests must name it then.
    pub is_loopback: bool,
    /// The public URL behind a proxy.
    pub public_url: Option<PublicUrl>,
    /// The certificate, if the server speaks TLS itself.
    pub tls: Option<Arc<Tls>>,
    /// Proxies trusted to set `X-Forwarded-For`.
    pub trusted_proxies: Vec<IpAddr>,
    /// The timeout of a request.
    pub timeout: Duration,
    /// The maximum body size of a linking request, in bytes.
    pub max_link_bytes: usize,
    /// The maximum length of a text to link or import, in bytes.
    pub max_text_bytes: usize,
    /// The maximum size of a linking response, in bytes.
    pub max_answer_bytes: usize,
    /// The maximum size of an uploaded file, in bytes.
    pub max_upload_bytes: usize,
    /// The maximum uncompressed size of an uploaded file, in bytes.
    pub max_unpacked_bytes: u64,
    /// Limits of the batch queue.
    pub batcher: BatcherConfig,
    /// The clock.
    pub clock: Clock,
    /// Whether to start the thread that runs jobs; tests run them one by one.
    pub runs_jobs: bool,
    /// Whether to lock the data folder and fail jobs that an earlier server left running. False for a program that only
    /// reads or edits accounts.
    pub owns_jobs: bool,
}

impl ServeConfig {
    /// The default settings, on loopback.
    pub fn new(data: impl Into<PathBuf>) -> ServeConfig {
        ServeConfig {
            data: data.into(),
            is_loopback: true,
            public_url: None,
            tls: None,
            trusted_proxies: Vec::new(),
            timeout: Duration::from_secs(120),
            max_link_bytes: 8 << 20,
            max_text_bytes: 2 << 20,
            max_answer_bytes: 64 << 20,
            max_upload_bytes: 64 << 20,
            max_unpacked_bytes: 256 << 20,
            batcher: BatcherConfig::default(),
            clock: Clock::system(),
            runs_jobs: true,
            owns_jobs: true,
        }
    }

    /// Whether clients reach the server by HTTPS.
    pub fn is_https(&self) -> bool {
        self.tls.is_some() || self.public_url.as_ref().is_some_and(PublicUrl::is_https)
    }
}

/// The public URL of the server, such as `https://links.example.org`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(String);

impl std::str::FromStr for PublicUrl {
    type Err = ApiError;

    fn from_str(text: &str) -> ApiResult<PublicUrl> {
        let origin = text.strip_suffix('/').unwrap_or(text).to_ascii_lowercase();
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        let is_host = |host: &str| !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ', '\\']);
        match host.is_some_and(is_host) {
            true => Ok(PublicUrl(origin)),
            false => Err(ApiError::bad(format!("invalid server URL `{text}`"))
                .hint("give scheme and host without a path, such as https://links.example.org")),
        }
    }
}

impl PublicUrl {
    /// Scheme and host.
    pub fn origin(&self) -> &str {
        &self.0
    }

    /// The host.
    pub fn host(&self) -> &str {
        self.0.split_once("://").map_or(&self.0, |(_, host)| host)
    }

    /// Whether the scheme is HTTPS.
    pub fn is_https(&self) -> bool {
        self.0.starts_with("https://")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_url_is_scheme_and_host() {
        let of = |text: &str| text.parse::<PublicUrl>();
        assert_eq!(of("https://Links.example.org/").unwrap().host(), "links.example.org");
        assert!(!of("http://links.example.org:8080").unwrap().is_https());
        for text in ["links.example.org", "ftp://x", "https://", "https://x/path", "https://user@x", "https://x y"] {
            assert!(of(text).unwrap_err().hint.is_some(), "{text}");
        }
    }
}
