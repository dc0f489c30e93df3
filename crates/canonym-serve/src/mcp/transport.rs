//! JSON-RPC messages as lines on a pair of streams, such as standard input and output.
//!
//! Unlike the transport of the library, which ignores lines that are not JSON, this one answers every line that cannot
//! be read with an error.

use std::io::{BufRead, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// The maximum length of a line, in bytes: a text of the maximum length, escaped.
pub const MAX_LINE: u64 = 16 << 20;

/// Messages that may wait.
const MAX_WAITING: usize = 16;

type Out = Arc<Mutex<Box<dyn Write + Send>>>;

/// Lines in and out.
pub struct Lines {
    messages: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    out: Out,
}

impl Lines {
    /// Reads messages from `input` on a thread of its own until it ends.
    pub fn new(input: impl BufRead + Send + 'static, out: impl Write + Send + 'static) -> Lines {
        let out: Out = Arc::new(Mutex::new(Box::new(out)));
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        let errors = out.clone();
        std::thread::spawn(move || read(input, &sender, &errors));
        Lines { messages, out }
    }
}

impl Transport<RoleServer> for Lines {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = std::io::Result<()>> + Send + 'static {
        let out = self.out.clone();
        async move {
            let line = serde_json::to_vec(&message)?;
            tokio::task::spawn_blocking(move || write(&out, line)).await?
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> std::io::Result<()> {
        self.messages.close();
        Ok(())
    }
}

fn write(out: &Out, mut line: Vec<u8>) -> std::io::Result<()> {
    line.push(b'\n');
    let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
    out.write_all(&line)?;
    out.flush()
}

fn read(mut input: impl BufRead, messages: &mpsc::Sender<RxJsonRpcMessage<RoleServer>>, out: &Out) {
    loop {
        let line = match next_line(&mut input) {
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(error) => {
                tracing::error!("cannot read the next message: {error}");
                return;
            }
        };
        let answer = match parse(&line) {
            Ok(None) => continue,
            Ok(Some(message)) => match messages.blocking_send(message) {
                Ok(()) => continue,
                Err(_) => return,
            },
            Err(answer) => answer,
        };
        tracing::warn!("invalid message: {}", answer["error"]["message"]);
        if write(out, answer.to_string().into_bytes()).is_err() {
            return;
        }
    }
}

/// The next line; of one that is too long, as much as shows that it is. `None` at the end.
fn next_line(input: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if input.take(MAX_LINE + 1).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 > MAX_LINE && line.last() != Some(&b'\n') {
        input.skip_until(b'\n')?;
    }
    Ok(Some(line))
}

/// The message in a line, or the answer to one that cannot be read; `None` for a blank line or a notification that the protocol
/// does not have.
fn parse(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Value> {
    if line.len() as u64 > MAX_LINE {
        return Err(error(Value::Null, -32600, &format!("a message may have at most {MAX_LINE} bytes")));
    }
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let value: Value =
        serde_json::from_slice(line).map_err(|cause| error(Value::Null, -32700, &format!("invalid JSON: {cause}")))?;
    let id = match &value["id"] {
        id @ (Value::String(_) | Value::Number(_)) => id.clone(),
        _ => Value::Null,
    };
    if value.is_array() {
        return Err(error(id, -32600, "batch requests are not supported; send one message per line"));
    }
    let is_notification = value.get("id").is_none();
    match serde_json::from_value(value) {
        Ok(message) => Ok(Some(message)),
        Err(cause) if is_notification => {
            tracing::debug!("ignored a notification: {cause}");
            Ok(None)
        }
        Err(_) => Err(error(id, -32600, "not a request of the Model Context Protocol as JSON-RPC 2.0")),
    }
}

fn error(id: Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
