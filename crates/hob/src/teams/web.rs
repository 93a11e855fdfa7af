//! `get_url` and `http_probe`: pages of the Internet, and the health of servers that are allowed.
//! Both go through the guard of `hob-upstream`, because a page may ask a model to reach into the network.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_agents::builtin::{arguments, spec_of};
use hob_agents::{AgentTool, ToolClass, ToolOutput, ToolSpec};
use hob_core::count_text;
use hob_upstream::{Fetched, GuardOptions, guarded_fetch};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Bytes of a page that are read.
const PAGE_BYTES_MAX: usize = 2 << 20;
/// Maximum characters of a page that a model reads in one call.
const PAGE_CHARS: usize = 8_000;
const TIME_MAX: Duration = Duration::from_secs(10);

/// `get_url`: a page as text.
#[derive(Debug)]
pub(super) struct GetUrl {
    spec: ToolSpec,
    options: GuardOptions,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PageArguments {
    /// An http or https address
    url: String,
    /// Where to begin, in characters: an answer says how many are left
    #[serde(default)]
    offset: Option<usize>,
}

impl Default for GetUrl {
    fn default() -> GetUrl {
        let description =
            "Read a page of the Internet as text. Addresses of private networks are refused.";
        let spec = spec_of::<PageArguments>("get_url", description, ToolClass::Network);
        let options = GuardOptions {
            allow_hosts: Vec::new(),
            is_public_allowed: true,
            bytes_max: PAGE_BYTES_MAX,
            time_max: TIME_MAX,
        };
        GetUrl { spec: ToolSpec { is_foreign: true, ..spec }, options }
    }
}

impl AgentTool for GetUrl {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, value: Value) -> BoxFuture<'_, ToolOutput> {
        async move {
            let asked: PageArguments = match arguments(value) {
                Ok(asked) => asked,
                Err(reason) => return ToolOutput::error(reason),
            };
            match guarded_fetch(&asked.url, false, &self.options).await {
                Ok(page) => output_of(&page, asked.offset.unwrap_or_default()),
                Err(error) => ToolOutput::error(error.to_string()),
            }
        }
        .boxed()
    }
}

/// What a model reads of a page.
fn output_of(page: &Fetched, offset: usize) -> ToolOutput {
    let Fetched { url, status, content_type, body, is_cut } = page;
    // Pictures, PDF files and archives have such bytes, and would fill the context with signs.
    if body.contains(&0) {
        return ToolOutput::error(format!("{status} {url}\nIt is not text ('{content_type}')."));
    }
    let text = String::from_utf8_lossy(body);
    let text = if content_type.contains("html") { text_of(&text) } else { text.into_owned() };
    let mut output = format!("{status} {url}\n{}", excerpt(&text, offset));
    if *is_cut {
        output += &format!("\n[hob has read the first {PAGE_BYTES_MAX} bytes of the page]");
    }
    if *status < 400 { ToolOutput::ok(output) } else { ToolOutput::error(output) }
}

fn excerpt(text: &str, offset: usize) -> String {
    let shown: String = text.chars().skip(offset).take(PAGE_CHARS).collect();
    let left = text.chars().count().saturating_sub(offset.saturating_add(PAGE_CHARS));
    if left > 0 { format!("{shown}\n[{} left]", count_text(left, "character")) } else { shown }
}

/// The words of an HTML page, without markup, scripts and styles.
fn text_of(html: &str) -> String {
    // Made once for the whole page, because a page may have a hundred thousand elements. Bytes keep their places.
    let lower = html.to_ascii_lowercase();
    let (mut text, mut at) = (String::new(), 0);
    while let Some(start) = html[at..].find('<') {
        text += &html[at..at + start];
        at += start;
        let rest = &lower[at..];
        let ends_name = |c: char| !c.is_ascii_alphanumeric() && c != '/';
        let name = rest[1..].split(ends_name).next().unwrap_or_default();
        let end = match name {
            "script" | "style" | "template" | "noscript" => after_close(rest, name),
            _ if rest.starts_with("<!--") => rest.find("-->").map(|at| at + 3),
            _ => rest.find('>').map(|at| at + 1),
        };
        text += if INLINE.contains(&name.trim_start_matches('/')) { "" } else { "\n" };
        at += end.unwrap_or(rest.len());
    }
    text += &html[at..];
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ];
    let text = entities.iter().fold(text, |text, (name, sign)| text.replace(name, sign));
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Elements within a line.
const INLINE: [&str; 14] = [
    "a", "abbr", "b", "code", "em", "font", "i", "img", "kbd", "small", "span", "strong", "sub",
    "sup",
];

fn after_close(rest: &str, name: &str) -> Option<usize> {
    let at = rest.find(&format!("</{name}"))?;
    rest[at..].find('>').map(|end| at + end + 1)
}

/// `http_probe`: the status of an address that is allowed.
#[derive(Debug)]
pub(super) struct HttpProbe {
    spec: ToolSpec,
    options: GuardOptions,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProbeArguments {
    url: String,
    #[serde(default)]
    method: ProbeMethod,
    /// The status that is healthy. Default: any below 400
    #[serde(default)]
    expect_status: Option<u16>,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum ProbeMethod {
    #[default]
    Get,
    Head,
}

impl HttpProbe {
    /// A probe of this machine, of the hosts that hob knows, and of those that the team file lists.
    pub(super) fn new(known: Vec<String>, listed: &[String]) -> HttpProbe {
        let also = match listed {
            [] => String::new(),
            listed => format!(" or one of {},", listed.join(", ")),
        };
        let description = format!(
            "Ask a server of this machine, or one that hob knows,{also} whether it answers. Gives status, time and the \
             beginning of the answer."
        );
        let spec = spec_of::<ProbeArguments>("http_probe", &description, ToolClass::Network);
        let own = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let allow_hosts = own.into_iter().chain(known).chain(listed.iter().cloned()).collect();
        let options = GuardOptions {
            allow_hosts,
            is_public_allowed: false,
            bytes_max: 2_000,
            time_max: TIME_MAX,
        };
        HttpProbe { spec: ToolSpec { is_foreign: true, ..spec }, options }
    }
}

impl AgentTool for HttpProbe {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, value: Value) -> BoxFuture<'_, ToolOutput> {
        async move {
            let asked: ProbeArguments = match arguments(value) {
                Ok(asked) => asked,
                Err(reason) => return ToolOutput::error(reason),
            };
            let begun = std::time::Instant::now();
            match guarded_fetch(&asked.url, asked.method == ProbeMethod::Head, &self.options).await {
                Ok(answer) => {
                    let is_healthy = asked.expect_status.map_or(answer.status < 400, |status| status == answer.status);
                    let report = json!({
                        "status": answer.status, "is_as_expected": is_healthy, "ms": begun.elapsed().as_millis() as u64,
                        "body": String::from_utf8_lossy(&answer.body),
                    });
                    ToolOutput::ok(report.to_string())
                }
                Err(error) => ToolOutput::error(error.to_string()),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_its_words() {
        let html = "<html><head><title>T</title><style>p { color: red }</style><SCRIPT>if (a < b) x()</SCRIPT></head>\
                    <body><!-- no > word --><h1>Big</h1><p>One <b>two</b> &amp; three<br>four</p></body></html>";
        assert_eq!(text_of(html), "T\nBig\nOne two & three\nfour");
        assert_eq!(text_of("a <b"), "a");
    }

    #[test]
    fn a_page_of_many_scripts_is_read_in_one_pass() {
        let page = "<script>x</script>".repeat(PAGE_BYTES_MAX / 18) + "end";
        let begun = std::time::Instant::now();
        assert_eq!(text_of(&page), "end");
        assert!(begun.elapsed() < TIME_MAX, "{:?}", begun.elapsed());
    }

    #[test]
    fn a_model_reads_that_a_page_is_cut_or_no_text() {
        let page = |body: &[u8], is_cut| Fetched {
            url: "https://a.example/b".to_owned(),
            status: 200,
            content_type: "text/html".to_owned(),
            body: body.to_vec(),
            is_cut,
        };
        let whole = output_of(&page(b"<p>one", false), 0);
        assert_eq!(whole, ToolOutput::ok("200 https://a.example/b\none"));
        let cut = output_of(&page(b"<p>one", true), 0);
        let end = "one\n[hob has read the first 2097152 bytes of the page]";
        assert!(cut.text.ends_with(end), "{}", cut.text);
        let picture = output_of(&page(b"\x89PNG\r\n\x1a\n\0\0", false), 0);
        assert!(picture.is_error && picture.text.ends_with("not text ('text/html')."));
    }

    #[test]
    fn an_offset_after_the_end_gives_nothing() {
        assert_eq!(excerpt("page", 2), "ge");
        assert_eq!(excerpt("page", usize::MAX), "");
    }

    /// On Linux, all of 127.0.0.0/8 is this machine, and only 127.0.0.1 is allowed by itself.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_probe_reaches_the_hosts_that_a_team_lists() {
        use std::io::{Read as _, Write as _};

        let listener = std::net::TcpListener::bind("127.0.0.2:0").expect("a port");
        let host = listener.local_addr().expect("an address").to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let _read = stream.read(&mut [0; 4096]).expect("a request");
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").expect("sent");
        });
        let url = json!({ "url": format!("http://{host}/health") });
        let refused = HttpProbe::new(Vec::new(), &[]).call(url.clone()).await;
        assert!(refused.is_error && refused.text.contains("not among the hosts"), "{refused:?}");
        let probe = HttpProbe::new(Vec::new(), std::slice::from_ref(&host));
        let answer = probe.call(url).await;
        assert!(!answer.is_error && answer.text.contains("\"status\":200"), "{answer:?}");
        assert!(probe.spec().description.contains(&host));
    }

    #[test]
    fn a_long_page_comes_in_parts() {
        let text = "é".repeat(PAGE_CHARS + 5);
        assert!(excerpt(&text, 0).ends_with("\n[5 characters left]"));
        assert_eq!(excerpt(&text, PAGE_CHARS), "ééééé");
    }
}
