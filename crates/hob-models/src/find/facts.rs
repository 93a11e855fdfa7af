//! Reads length, checksum and commit of a file from the hub's response headers.
//! Transfers no byte of the file.

use ureq::Body;
use ureq::http::Response;
use ureq::http::header::{AUTHORIZATION, CONTENT_LENGTH, ETAG};

use super::FindError;
use super::remote::{REDIRECTIONS_MAX, Remote, location, unreachable};
use crate::Sha256;

const COMMIT_DIGITS: usize = 40;

/// What the hub states about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// Address on the hub, which may differ from the requested one.
    pub(super) address: String,
    pub(super) bytes: Option<u64>,
    /// Checksum of files that are stored outside the repository, as weights are.
    pub(super) sha256: Option<Sha256>,
    pub(super) commit: Option<String>,
}

impl Facts {
    fn of(address: &str, response: &Response<Body>) -> Facts {
        let header = |name: &str| response.headers().get(name)?.to_str().ok();
        let is_here = response.status().as_u16() == 200;
        let own = |name: &str| header(name).filter(|_| is_here);
        let sum = header("X-Linked-Etag").or(own(ETAG.as_str()));
        let bytes = header("X-Linked-Size").or(own(CONTENT_LENGTH.as_str()));
        let is_commit = |commit: &&str| {
            commit.len() == COMMIT_DIGITS && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        Facts {
            address: address.to_owned(),
            bytes: bytes.and_then(|bytes| bytes.parse().ok()),
            sha256: sum.and_then(|sum| sum.trim_start_matches("W/").trim_matches('"').parse().ok()),
            commit: header("X-Repo-Commit").filter(is_commit).map(str::to_owned),
        }
    }
}

impl Remote {
    /// Asks the hub about a file without transferring it. The redirection to the storage carries the facts, so only
    /// redirections within the hub are followed, as after a repository was renamed.
    pub(super) fn facts(&self, address: &str) -> Result<Facts, FindError> {
        let mut address = address.to_owned();
        for _ in 0..REDIRECTIONS_MAX {
            self.count_request();
            let mut request = self.agent.head(&address);
            if let Some(token) = self.token_for(&address) {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            }
            let request = request.config().max_redirects(0).max_redirects_will_error(false).build();
            let response = request.call().map_err(|error| unreachable(&address, error))?;
            let facts = Facts::of(&address, &response);
            let status = response.status().as_u16();
            match (status, location(&address, &response)) {
                (200, _) => return Ok(facts),
                (301 | 302 | 303 | 307 | 308, Some(_)) if facts.bytes.is_some() => {
                    return Ok(facts);
                }
                (301 | 302 | 303 | 307 | 308, Some(to)) => {
                    if self.hub_path(&to).is_none() {
                        return Ok(facts);
                    }
                    address = to;
                }
                // A mirror may not support HEAD.
                (405 | 501, _) => return Ok(facts),
                _ => return Err(self.refused(&address, &response)),
            }
        }
        Err(unreachable(&address, format!("more than {REDIRECTIONS_MAX} redirections")))
    }
}
