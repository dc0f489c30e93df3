//! The Model Context Protocol: the terminology and the linker as tools for language models.
//!
//! All tools only read. They return IDs of the terminology and no others, and say so where there is no match. `tools`
//! has the tools, `shapes` their arguments and results, `transport` the messages on standard input and output.

mod shapes;
mod tools;
mod transport;

pub use transport::Lines;

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use tokio::sync::Semaphore;

use crate::engine::Engine;
use crate::error::ApiError;
use canonym_core::numbers::counted;

/// Calls that run at a time; others wait.
const MAX_CALLS: usize = 2;

/// The server side of the protocol, over one engine.
#[derive(Clone)]
pub struct McpServer {
    engine: Arc<dyn Engine>,
    permits: Arc<Semaphore>,
}

impl McpServer {
    /// A server over `engine`.
    pub fn new(engine: Arc<dyn Engine>) -> McpServer {
        McpServer { engine, permits: Arc::new(Semaphore::new(MAX_CALLS)) }
    }

    /// Answers messages on `lines` until they end.
    pub fn run(self, lines: impl FnOnce() -> Lines) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(async {
            // Fails if the messages end, or are others, before the client has introduced itself.
            let service = match self.serve(lines()).await {
                Ok(service) => service,
                Err(error) => {
                    tracing::warn!("no client connected: {error}");
                    return Ok(());
                }
            };
            service.waiting().await.map(drop).map_err(std::io::Error::other)
        })
    }

    /// The protocol over HTTP, without sessions. Hosts and origins have to be checked before.
    pub fn http(self, max_body: usize) -> StreamableHttpService<McpServer, NeverSessionManager> {
        self.over_http(StreamableHttpServerConfig::default().disable_allowed_hosts(), max_body)
    }

    /// The protocol over HTTP for programs of this machine: other hosts are refused, which prevents DNS rebinding, and web pages.
    pub fn http_of_this_machine(self, max_body: usize) -> StreamableHttpService<McpServer, NeverSessionManager> {
        self.over_http(StreamableHttpServerConfig::default().enforce_origin_validation(), max_body)
    }

    fn over_http(
        self,
        config: StreamableHttpServerConfig,
        max_body: usize,
    ) -> StreamableHttpService<McpServer, NeverSessionManager> {
        let config =
            config.with_legacy_session_mode(false).with_json_response(true).with_max_request_body_bytes(max_body);
        StreamableHttpService::new(move || Ok(self.clone()), Arc::default(), config)
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let kb = self.engine.kb();
        let instructions = format!(
            "Links text and terms to the terminology {} ({}). Report only IDs that a tool returned; \
             if the status is no_match, say that the terminology has no matching concept.",
            kb.meta().name,
            counted(kb.n_concepts() as u64, "concept")
        );
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("canonym", env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !tools::NAMES.contains(&request.name.as_ref()) {
            let name: String = request.name.chars().take(80).collect();
            let message = format!("unknown tool `{name}`; the tools are {}", tools::NAMES.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        }
        let permit = self.permits.clone().acquire_owned().await;
        let engine = self.engine.clone();
        let work = move || {
            let _permit = permit;
            tools::call(engine.as_ref(), &request.name, request.arguments.unwrap_or_default())
        };
        let done = tokio::task::spawn_blocking(work).await;
        let done = done.unwrap_or_else(|error| Err(ApiError::internal(&error)));
        Ok(CallToolResponse::Complete(match done {
            Ok(value) => CallToolResult::structured(value),
            Err(ApiError { message, hint, .. }) => {
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                CallToolResult::error(vec![ContentBlock::text(format!("{message}{hint}"))])
            }
        }))
    }
}
