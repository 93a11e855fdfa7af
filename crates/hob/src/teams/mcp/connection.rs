//! A connection to an MCP server, through the official SDK: a process of our own, or streamable HTTP.
//! The server is not trusted: its lines, answers, lists and logs have limits, and it sees no other keys.

use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hob_agents::{McpServer, ProcessGroup, Redaction};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation,
    PaginatedRequestParams, ProtocolVersion, Tool,
};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{DynamicTransportError, StreamableHttpClientTransport};
use rmcp::{RoleClient, ServiceError, ServiceExt};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader, ReadBuf};
use tokio::process::{ChildStderr, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::ServerEnvironment;
use crate::printer::harmless;
use crate::programs;

/// Longest message of a server in bytes.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Bytes that a process may print for one call, or while it starts.
const PRINTED_BYTES_MAX: u64 = 64 << 20;
/// How long the status of a process may take after it closed its output.
const REAP_LIMIT: Duration = Duration::from_millis(200);
const END_LIMIT: Duration = Duration::from_secs(1);
const TOOLS_MAX: usize = 256;
const PAGES_MAX: usize = 32;
/// Bytes of a process's standard error that are logged, in lines of at most so many bytes.
const LOG_BYTES_MAX: usize = 64 * 1024;
const LOG_LINE_BYTES_MAX: u64 = 1024;
/// Variables that every server process may see.
const COMMON_VARIABLES: [&str; 2] = ["HOME", "LANG"];

/// Why a call has no result.
#[derive(Debug)]
pub(super) enum CallError {
    /// The server refused it.
    Refused(String),
    /// The server ended, or what it sent is unusable.
    Lost(String),
}

/// A server that answers. Dropping it ends the server's process.
pub(super) struct Connection {
    service: RunningService<RoleClient, ClientConfig>,
    pub(super) tools: Vec<Tool>,
    /// Bytes that the process may still print for the current call. An address has none.
    budget: Arc<AtomicU64>,
    /// A call has found that the server is gone.
    is_lost: AtomicBool,
    process: Option<ProcessGroup>,
    _log: JoinSet<()>,
}

impl Connection {
    /// # Errors
    /// The server cannot be started or reached, or does not speak the protocol.
    pub(super) async fn open(
        name: &str,
        settings: &McpServer,
        environment: &ServerEnvironment,
    ) -> Result<Connection, String> {
        let mut connection = match &settings.url {
            Some(url) => over_http(url, settings.token_env.as_deref(), environment).await?,
            None => over_stdio(name, settings, environment).await?,
        };
        connection.tools = connection.list().await?;
        Ok(connection)
    }

    fn new(
        service: RunningService<RoleClient, ClientConfig>,
        budget: Arc<AtomicU64>,
        process: Option<ProcessGroup>,
        log: JoinSet<()>,
    ) -> Connection {
        let is_lost = AtomicBool::new(false);
        Connection { service, tools: Vec::new(), budget, is_lost, process, _log: log }
    }

    /// Closes the server's input, which the protocol says must end it, and waits a moment.
    pub(super) async fn close(mut self) {
        let ending = async {
            let _closed = self.service.close().await;
            if let Some(process) = &mut self.process {
                let _ended = process.leader().wait().await;
            }
        };
        // The process is ended by force if it is late.
        let _late = timeout(END_LIMIT, ending).await;
    }

    async fn list(&self) -> Result<Vec<Tool>, String> {
        let mut tools: Vec<Tool> = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.service.list_tools(Some(page)).await;
            let page = page.map_err(|error| format!("it does not list its tools: {error}"))?;
            tools.extend(page.tools);
            if tools.len() > TOOLS_MAX {
                return Err(format!("it has more than {TOOLS_MAX} tools"));
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(format!("its list of tools has more than {PAGES_MAX} pages"))
    }

    pub(super) fn is_open(&self) -> bool {
        !self.is_lost.load(Ordering::Relaxed) && !self.service.is_transport_closed()
    }

    /// Why the connection has ended.
    pub(super) fn end(&self) -> String {
        if self.budget.load(Ordering::Relaxed) == 0 {
            format!("it printed more than {PRINTED_BYTES_MAX} bytes for one call")
        } else {
            "it ended".to_owned()
        }
    }

    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Value,
    ) -> Result<CallToolResult, CallError> {
        self.budget.store(PRINTED_BYTES_MAX, Ordering::Relaxed);
        let mut params = CallToolRequestParams::new(tool.to_owned());
        if let Value::Object(arguments) = arguments {
            params = params.with_arguments(arguments);
        }
        // The peer's method, and not the service's: that one would go on with questions of the server.
        match self.service.peer().call_tool(params).await {
            Ok(result) => Ok(result),
            Err(ServiceError::McpError(error)) => {
                Err(CallError::Refused(error.message.into_owned()))
            }
            Err(ServiceError::TransportClosed) => {
                self.is_lost.store(true, Ordering::Relaxed);
                Err(CallError::Lost(self.end()))
            }
            Err(ServiceError::TransportSend(error)) => {
                self.is_lost.store(true, Ordering::Relaxed);
                Err(CallError::Lost(transport_error(&error)))
            }
            Err(error) => Err(CallError::Lost(error.to_string())),
        }
    }
}

fn client() -> ClientConfig {
    let hob = Implementation::new("hob", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), hob)
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

async fn over_stdio(
    name: &str,
    settings: &McpServer,
    environment: &ServerEnvironment,
) -> Result<Connection, String> {
    let (program, arguments) =
        settings.command.split_first().ok_or("it has neither a command nor an address")?;
    let found = programs::find(program.as_ref(), &environment.path)
        .ok_or_else(|| format!("the program '{program}' is not installed"))?;
    let named = settings.env.iter().map(String::as_str).chain(COMMON_VARIABLES);
    let variables = named.filter_map(|name| Some((name, environment.variables.get(name)?)));
    let mut command = Command::new(found);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", &environment.path)
        .envs(variables.map(|(name, value)| (name, value.expose())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = ProcessGroup::spawn(&mut command)
        .map_err(|error| format!("'{program}' cannot be started: {error}"))?;
    let leader = process.leader();
    let pipes = (leader.stdin.take(), leader.stdout.take(), leader.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(format!("'{program}' has no pipes"));
    };
    let mut log = JoinSet::new();
    log.spawn(log_lines(name.to_owned(), stderr, environment.redaction.clone()));
    let budget = Arc::new(AtomicU64::new(PRINTED_BYTES_MAX));
    let output = Budgeted { inner: stdout, budget: Arc::clone(&budget) };
    let transport =
        AsyncRwTransport::new_client(output, stdin).with_max_line_length(MESSAGE_BYTES_MAX);
    let service = match client().serve(transport).await {
        Ok(service) => service,
        Err(error) => {
            return Err(end_of(&mut process).await.unwrap_or_else(|| start_error(&error)));
        }
    };
    Ok(Connection::new(service, budget, Some(process), log))
}

async fn over_http(
    url: &str,
    token_env: Option<&str>,
    environment: &ServerEnvironment,
) -> Result<Connection, String> {
    // reqwest takes the provider of the process. An error means that one is installed.
    let _already_decided = rustls::crypto::ring::default_provider().install_default();
    // A redirect would take the token to an address that the team file does not name.
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let http = http.build().map_err(|error| error.to_string())?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .max_sse_event_size(MESSAGE_BYTES_MAX)
        .max_json_response_size(MESSAGE_BYTES_MAX);
    if let Some(name) = token_env {
        let token = environment.variables.get(name).filter(|token| !token.expose().is_empty());
        let token = token.ok_or_else(|| format!("the environment variable '{name}' is not set"))?;
        config = config.auth_header(token.expose());
    }
    let transport = StreamableHttpClientTransport::with_client(http, config);
    let service = client().serve(transport).await.map_err(|error| start_error(&error))?;
    let budget = Arc::new(AtomicU64::new(PRINTED_BYTES_MAX));
    Ok(Connection::new(service, budget, None, JoinSet::new()))
}

/// How the process ended, if it did.
async fn end_of(process: &mut ProcessGroup) -> Option<String> {
    let status = timeout(REAP_LIMIT, process.leader().wait()).await.ok()?.ok()?;
    Some(format!("it ended ({status}); `--log info` shows what it printed"))
}

fn start_error(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => transport_error(error),
        other => other.to_string(),
    }
}

/// The cause, without the names of the SDK's types around it.
fn transport_error(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref() {
        Some(StreamableHttpError::<reqwest::Error>::Client(error)) => {
            let mut cause: &dyn std::error::Error = error;
            while let Some(deeper) = cause.source() {
                cause = deeper;
            }
            cause.to_string()
        }
        _ => error.error.to_string(),
    }
}

/// Logs the first lines of a process's standard error. All of it is read, so that the process can go on.
async fn log_lines(server: String, stderr: ChildStderr, redaction: Redaction) {
    let mut reader = BufReader::new(stderr);
    let mut left = LOG_BYTES_MAX;
    let mut line = Vec::new();
    while let Ok(1..) = (&mut reader).take(LOG_LINE_BYTES_MAX).read_until(b'\n', &mut line).await {
        if left > 0 {
            let text = redaction.text(String::from_utf8_lossy(&line).trim_end());
            tracing::info!(server, "{}", harmless(&text));
            left = left.saturating_sub(line.len());
            if left == 0 {
                tracing::info!(server, "further lines of this server are not logged");
            }
        }
        line.clear();
    }
}

/// Reads until the budget of bytes is used up, and then as if the other side had ended.
struct Budgeted<R> {
    inner: R,
    budget: Arc<AtomicU64>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Budgeted<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let left = self.budget.load(Ordering::Relaxed);
        if left == 0 {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        let read = (buffer.filled().len() - before) as u64;
        self.budget.store(left.saturating_sub(read), Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_ends_with_its_budget() {
        let budget = Arc::new(AtomicU64::new(10));
        let mut reader = Budgeted { inner: tokio::io::repeat(b'a'), budget: Arc::clone(&budget) };
        let mut piece = [0; 6];
        assert_eq!(reader.read(&mut piece).await.expect("bytes"), 6);
        assert_eq!(reader.read(&mut piece).await.expect("bytes"), 6);
        assert_eq!(reader.read(&mut piece).await.expect("the end"), 0);
    }
}
