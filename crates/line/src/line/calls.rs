//! What programs ask a server for.

use std::sync::Arc;

use linetender_core::ServerState;
use linetender_wire::frame;
use serde::Serialize;

use super::Line;
use crate::basics::error::{CallError, CallErrorKind};
use crate::basics::kind::Kind;
use crate::basics::params::tool_name;
use crate::call::{Answer, Call, Options, Reply};
use crate::catalogue::{Catalogue, Freshness, Prompt, Resource, ResourceTemplate, Tool};
use crate::server;
use crate::tender::Inbox;

/// What is said to somebody who passes JSON as a string.
const NO_OBJECT: &str = "arguments must be a JSON object (JSON that is text already goes into `Raw`)";
const NOT_STRUCTURED: &str =
    "params must be a JSON object or array (JSON that is text already goes into `Raw`)";

impl Line {
    /// Calls a tool. `arguments` is anything that serializes to a JSON object, or [`Raw`](crate::Raw) JSON.
    ///
    /// ```no_run
    /// # async fn example(line: linetender::Line) -> Result<(), linetender::CallError> {
    /// let answer = line.call_tool("echo", serde_json::json!({ "message": "hello" })).await?;
    /// println!("{}", answer.text());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If there is no result: why, whether the call was executed, and what happens next. A tool that ran and says that it
    /// failed is a result: see [`Answer::is_tool_error`].
    pub async fn call_tool(&self, tool: &str, arguments: impl Serialize) -> Result<Answer, CallError> {
        self.call_tool_with(tool, arguments, Options::default()).await
    }

    /// Calls a tool with a deadline of its own, or to hear of its progress.
    ///
    /// # Errors
    /// If there is no result.
    pub async fn call_tool_with(
        &self,
        tool: &str,
        arguments: impl Serialize,
        options: Options,
    ) -> Result<Answer, CallError> {
        let params = self.named(tool, &self.spelt(&arguments)?)?;
        let options = self.as_program(options);
        self.call("tools/call", Some(&params), Some(tool), options).answer().await
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// If there is no result.
    pub async fn read_resource(&self, uri: &str) -> Result<Answer, CallError> {
        let params = format!(r#"{{"uri":{}}}"#, frame::respell(uri));
        self.call("resources/read", Some(&params), None, Options::default()).answer().await
    }

    /// Gets a prompt. `arguments` is anything that serializes to a JSON object.
    ///
    /// # Errors
    /// If there is no result.
    pub async fn get_prompt(&self, name: &str, arguments: impl Serialize) -> Result<Answer, CallError> {
        let params = self.named(name, &self.spelt(&arguments)?)?;
        self.call("prompts/get", Some(&params), None, Options::default()).answer().await
    }

    /// Makes any request. `params` is anything that serializes; `()` is none. Dropping the future cancels it.
    ///
    /// # Errors
    /// If there is no result.
    pub async fn request(
        &self,
        method: &str,
        params: impl Serialize,
        options: Options,
    ) -> Result<Answer, CallError> {
        let params = self.spelt(&params)?;
        let params = match params.as_bytes() {
            b"null" => None,
            [b'{' | b'[', ..] => Some(params),
            _ => return Err(self.unreadable(NOT_STRUCTURED)),
        };
        let tool = self.tool_that_matters(method, params.as_deref());
        let options = self.as_program(options);
        self.call(method, params.as_deref(), tool.as_deref(), options).answer().await
    }

    /// The options of a program, which is one agent whatever clones of the line it holds.
    fn as_program(&self, options: Options) -> Options {
        Options { context: Some(self.shared.context.clone()), ..options }
    }

    /// Makes a request whose params were read already.
    pub(crate) async fn pass(
        &self,
        method: &str,
        params: Option<&str>,
        options: Options,
    ) -> Result<Reply, CallError> {
        let tool = self.tool_that_matters(method, params);
        self.call(method, params, tool.as_deref(), options).run().await
    }

    /// The name of the tool that is called, where it matters.
    fn tool_that_matters(&self, method: &str, params: Option<&str>) -> Option<String> {
        let server = &self.shared.server;
        let settings = server.policy.settings();
        let matters = !server.safe_tools.is_empty()
            || settings.trust_annotations
            || settings.state != ServerState::None;
        (matters && method == "tools/call").then(|| params.and_then(tool_name)).flatten()
    }

    /// Something of the caller's as JSON that can be a part of a message.
    fn spelt(&self, value: &impl Serialize) -> Result<String, CallError> {
        let spelt = serde_json::to_string(value).map_err(|error| self.unreadable(&error.to_string()))?;
        let limits = server::limits(self.shared.server.policy.settings());
        frame::check(&spelt, limits).map_err(|bad| self.unreadable(&bad.to_string()))?;
        Ok(spelt)
    }

    /// The params of a request for something by its name.
    fn named(&self, name: &str, arguments: &str) -> Result<String, CallError> {
        if !arguments.starts_with('{') {
            return Err(self.unreadable(NO_OBJECT));
        }
        Ok(format!(r#"{{"name":{},"arguments":{arguments}}}"#, frame::respell(name)))
    }

    fn unreadable(&self, why: &str) -> CallError {
        let cause = format!("the request cannot be sent: {why}");
        self.probe_call().error_before(CallErrorKind::Unreadable, cause)
    }

    fn call<'a>(
        &'a self,
        method: &'a str,
        params: Option<&'a str>,
        tool: Option<&'a str>,
        options: Options,
    ) -> Call<'a> {
        Call { shared: &self.shared, method, params, tool, options }
    }

    /// The tools, as last read. Waits for the first reading; a server that is down keeps its tools listed.
    ///
    /// # Errors
    /// If the server could not be reached, or did not say which tools it has.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, CallError> {
        Ok(self.read(Kind::Tools).await?.tools().collect())
    }

    /// The prompts, as last read. Waits for the first reading.
    ///
    /// # Errors
    /// If the server could not be reached, or did not say which prompts it has.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, CallError> {
        Ok(self.read(Kind::Prompts).await?.prompts().collect())
    }

    /// The resources, as last read. Waits for the first reading.
    ///
    /// # Errors
    /// If the server could not be reached, or did not say which resources it has.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, CallError> {
        Ok(self.read(Kind::Resources).await?.resources().collect())
    }

    /// The templates of resources, as last read. Waits for the first reading.
    ///
    /// # Errors
    /// If the server could not be reached, or did not say which templates it has.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, CallError> {
        Ok(self.read(Kind::Templates).await?.resource_templates().collect())
    }

    /// The catalogue, if this list of it was read.
    async fn read(&self, kind: Kind) -> Result<Arc<Catalogue>, CallError> {
        let catalogue = self.catalogue().await?;
        if catalogue.is_read(kind) {
            return Ok(catalogue);
        }
        let cause = format!("the server did not answer {}", kind.method());
        Err(self.probe_call().error_before(CallErrorKind::BadAnswer, cause))
    }

    /// Everything the server offers, as last read. Waits for the first reading.
    ///
    /// # Errors
    /// If the line could not come up, or its lists could not be read.
    pub async fn catalogue(&self) -> Result<Arc<Catalogue>, CallError> {
        let mut catalogue = self.shared.catalogue.clone();
        if !catalogue.borrow().is_known() {
            self.ready().await?;
            let limit = self.shared.server.policy.settings().dial.handshake;
            let read = tokio::time::timeout(limit, catalogue.wait_for(|catalogue| catalogue.is_known()));
            if !matches!(read.await, Ok(Ok(_))) {
                let cause = "the server's lists could not be read";
                return Err(self.probe_call().error_before(CallErrorKind::HeldTooLong, cause.to_owned()));
            }
        }
        let read = catalogue.borrow().clone();
        self.seen(&read);
        Ok(read)
    }

    /// Somebody is shown a list: how long it is good. If its time is over, it is read again.
    #[doc(hidden)] // for linetender's gateway
    pub fn shown(&self, kind: Kind) -> Freshness {
        let catalogue = self.shared.catalogue.borrow().clone();
        self.seen(&catalogue);
        catalogue.freshness(kind)
    }

    /// A caller looks at the lists. That is use, also where the server is not asked, and what is to be read again then is: lists whose
    /// time is over, and those of which the server may have said something while no stream was open.
    pub(super) fn seen(&self, catalogue: &Catalogue) {
        if let Some(live) = self.live(None) {
            live.ledger.usage.mark();
        }
        catalogue.seen(|| self.shared.inbox.try_send(Inbox::Expired).is_ok());
    }
}
