//! Traces: a span for each call and each generation, exported over OTLP where the environment names a receiver.
//!
//! Nobody waits for it. What cannot be exported is dropped, counted, and said in the log.

#[cfg(feature = "otlp")]
mod client;
#[cfg(feature = "otlp")]
mod export;
#[cfg(feature = "otlp")]
mod spans;

use std::time::Duration;

use linetender_holder::Holder;

/// The variables that name a receiver of traces, as OpenTelemetry has them.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// What is exported while a process holds lines.
pub(crate) struct Traces {
    #[cfg(feature = "otlp")]
    export: Option<export::Export>,
}

impl Traces {
    /// Begins to trace what this holder holds from now on, if a receiver is named.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub(crate) fn begin(holder: &Holder) -> Self {
        let wanted = is_wanted();
        #[cfg(feature = "otlp")]
        let export = wanted.then(|| export::Export::begin(holder)).flatten();
        #[cfg(not(feature = "otlp"))]
        if wanted {
            let _ = holder;
            tracing::info!("traces disabled: this linetender was built without the feature `otlp`");
        }
        Self {
            #[cfg(feature = "otlp")]
            export,
        }
    }

    /// Exports what is left, for no longer than this.
    #[cfg_attr(not(feature = "otlp"), expect(clippy::unused_async, reason = "nothing is left"))]
    pub(crate) async fn end(self, limit: Duration) {
        #[cfg(feature = "otlp")]
        if let Some(export) = self.export {
            export.end(limit).await;
        }
        #[cfg(not(feature = "otlp"))]
        let _ = limit;
    }
}

/// Whether a receiver is named, and nothing says that it is not to be used.
#[expect(
    clippy::disallowed_methods,
    reason = "OpenTelemetry is configured by variables, for every program alike"
)]
fn is_wanted() -> bool {
    let value = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let disabled = value("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let other = value("OTEL_TRACES_EXPORTER").is_some_and(|exporter| exporter != "otlp");
    !disabled && !other && ENDPOINTS.into_iter().any(|name| value(name).is_some())
}
