//! From finished spans to the receiver: a queue with a limit, a thread that empties it, and a count of what was lost.

use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use linetender_holder::Holder;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{Context, Key, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, SdkTracerProvider, Span, SpanData, SpanExporter, SpanProcessor,
};

use super::client::Client;
use super::spans::Spans;

/// What is exported.
pub(super) struct Export {
    provider: SdkTracerProvider,
    count: Arc<Count>,
}

/// What became of the spans.
#[derive(Debug, Default)]
struct Count {
    made: AtomicU64,
    delivered: AtomicU64,
    /// Whether the last batch was not taken.
    failing: AtomicBool,
}

/// Exports over OTLP. A receiver that fails is said once, until it takes a batch again.
#[derive(Debug)]
struct Exporter {
    inner: opentelemetry_otlp::SpanExporter,
    count: Arc<Count>,
}

/// The queue, and the number of what was put into it: it drops what it has no room for.
#[derive(Debug)]
struct Queue {
    inner: BatchSpanProcessor,
    count: Arc<Count>,
}

impl Export {
    /// Begins to export. What keeps it from that is said once, and done without.
    pub(super) fn begin(holder: &Holder) -> Option<Self> {
        let client = Client::new();
        // It starts a thread, and panics where there can be no more of them.
        let built = catch_unwind(std::panic::AssertUnwindSafe(|| Self::build(client)));
        let export = match built {
            Ok(Ok(export)) => export,
            Ok(Err(error)) => {
                let error = error.to_string();
                tracing::warn!(error = %linetender::hide_secrets(&error), "traces disabled");
                return None;
            }
            Err(_) => {
                tracing::warn!("traces disabled: no thread for them");
                return None;
            }
        };
        holder.trace_with(Arc::new(Spans::of(export.provider.tracer("linetender"))));
        tracing::info!("exporting traces over OTLP");
        Some(export)
    }

    fn build(client: Client) -> Result<Self, ExporterBuildError> {
        let count = Arc::<Count>::default();
        let exporter =
            opentelemetry_otlp::SpanExporter::builder().with_http().with_http_client(client).build()?;
        let exporter = Exporter { inner: exporter, count: Arc::clone(&count) };
        // Its sizes and times are read from the variables that OpenTelemetry has for them.
        let queue = BatchSpanProcessor::builder(exporter).build();
        let provider = SdkTracerProvider::builder()
            .with_resource(resource())
            .with_span_processor(Queue { inner: queue, count: Arc::clone(&count) })
            .build();
        Ok(Self { provider, count })
    }

    /// Exports what is left, for no longer than this.
    pub(super) async fn end(self, limit: Duration) {
        let Self { provider, count } = self;
        // It blocks, and the requests that it waits for may run on this very thread.
        let ended = tokio::task::spawn_blocking(move || drop(provider.shutdown_with_timeout(limit)));
        let _ = tokio::time::timeout(limit, ended).await;
        let (made, delivered) = (count.made.load(Ordering::Relaxed), count.delivered.load(Ordering::Relaxed));
        if delivered < made {
            tracing::warn!(made, lost = made - delivered, "not all spans were delivered");
        }
    }
}

/// Who exports.
fn resource() -> Resource {
    let said = Resource::builder().build();
    let name = said.get(&Key::new("service.name")).map(|name| name.to_string());
    let named = name.is_some_and(|name| !name.is_empty() && !name.starts_with("unknown_service"));
    let resource =
        Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if named { resource } else { resource.with_service_name("linetender") }.build()
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let exported = self.inner.export(batch).await;
        match &exported {
            Ok(()) => {
                self.count.delivered.fetch_add(spans, Ordering::Relaxed);
                if self.count.failing.swap(false, Ordering::Relaxed) {
                    tracing::info!("traces are delivered again");
                }
            }
            Err(error) if !self.count.failing.swap(true, Ordering::Relaxed) => {
                let error = error.to_string();
                tracing::warn!(error = %linetender::hide_secrets(&error), "cannot deliver traces");
            }
            Err(_) => {}
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

impl SpanProcessor for Queue {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.inner.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() {
            self.count.made.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
