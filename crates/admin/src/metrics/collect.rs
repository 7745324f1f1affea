//! From a snapshot to series.

use std::fmt::Error;

use linetender::{Doubt, Evidence, RetryReason, ServerRefusal};
use linetender_holder::holder::{FleetReport, PlacedReport};
use linetender_holder::tally::{ByVerdict, Counted, Histogram, VERDICT_NAMES};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::names::{self, Kind, Metric};
use super::snapshot::{Lines, STATES, Server, Snapshot, label};

/// The bounds of histograms, in microseconds: powers of two from a quarter of a millisecond to four minutes and a half.
const BOUNDS: std::ops::RangeInclusive<u64> = 1 << 8..=1 << 28;

/// Whether something is so, of each server that the fleet shares.
fn placed(
    to: &mut DescriptorEncoder<'_>,
    metric: &Metric,
    fleet: &FleetReport,
    is: impl Fn(&PlacedReport) -> bool,
) -> Result<(), Error> {
    let mut family = begin(to, metric)?;
    for placed in &fleet.servers {
        let name = label(&placed.server);
        family.encode_family(&[("server", name.as_str())])?.encode_gauge(&u64::from(is(placed)))?;
    }
    Ok(())
}

/// A snapshot, to be written.
#[derive(Debug)]
pub(super) struct Collected(pub(super) Snapshot);

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let to = &mut encoder;
        self.of_process(to)?;
        self.of_calls(to)?;
        self.of_servers(to)?;
        self.of_fleet(to)
    }
}

impl Collected {
    fn of_process(&self, to: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let Snapshot { version, uptime, memory, journal_lost, .. } = &self.0;
        begin(to, &names::BUILD)?.encode_info(&[("version", version.as_str())])?;
        begin(to, &names::UPTIME)?.encode_gauge(&uptime.as_secs_f64())?;
        if let Some(memory) = memory {
            begin(to, &names::MEMORY)?.encode_gauge(memory)?;
        }
        match journal_lost {
            Some(lost) => begin(to, &names::JOURNAL_LOST)?.encode_counter::<NoLabelSet, _, f64>(lost, None),
            None => Ok(()),
        }
    }

    fn of_calls(&self, to: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut calls = begin(to, &names::CALLS)?;
        for (name, counted) in self.counted() {
            for (kind, verdicts) in [("tool", &counted.tools), ("other", &counted.others)] {
                by_verdict(&mut calls, name, kind, verdicts)?;
            }
        }
        self.by_reason(to, &names::NOT_EXECUTED, |counted| {
            Evidence::ALL.map(Evidence::name).into_iter().zip(counted.not_executed).collect()
        })?;
        self.by_reason(to, &names::REFUSED, |counted| {
            ServerRefusal::ALL.map(ServerRefusal::name).into_iter().zip(counted.refused).collect()
        })?;
        self.by_reason(to, &names::UNKNOWN, |counted| {
            Doubt::ALL.map(Doubt::name).into_iter().zip(counted.unknown).collect()
        })?;
        self.by_reason(to, &names::RETRIES, |counted| {
            RetryReason::ALL.map(RetryReason::name).into_iter().zip(counted.retries).collect()
        })?;
        self.counter(to, &names::OWN, |counted| counted.own)?;
        self.gauge(to, &names::UNDER_WAY, |server| {
            server.counted.as_ref().map(|counted| counted.under_way as u64)
        })?;
        self.histogram(to, &names::AT_SERVER, |counted| &counted.at_server)?;
        self.histogram(to, &names::WAITED, |counted| &counted.waited)?;
        self.counter(to, &names::SENT, |counted| counted.bytes.0)?;
        self.counter(to, &names::RECEIVED, |counted| counted.bytes.1)
    }

    /// Counts per server and reason. A reason that never occurred is left out.
    fn by_reason(
        &self,
        to: &mut DescriptorEncoder<'_>,
        metric: &'static Metric,
        counts: fn(&Counted) -> Vec<(&'static str, u64)>,
    ) -> Result<(), Error> {
        let mut family = begin(to, metric)?;
        for (name, counted) in self.counted() {
            for (reason, count) in counts(counted).into_iter().filter(|(_, count)| *count > 0) {
                count_at(&mut family, &[("server", name), ("reason", reason)], count)?;
            }
        }
        Ok(())
    }

    fn of_servers(&self, to: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        self.gauge(to, &names::UP, |server| server.lines.as_ref().map(|lines| u64::from(lines.are_up())))?;
        let mut lines = begin(to, &names::LINES)?;
        for (name, server) in &self.0.servers {
            for (state, count) in server.lines.iter().flat_map(|lines| STATES.iter().zip(lines.by_state)) {
                lines
                    .encode_family(&[("server", name.as_str()), ("state", state.name())])?
                    .encode_gauge(&count)?;
            }
        }
        self.counter(to, &names::STARTS, |counted| counted.starts)?;
        let mut ends = begin(to, &names::ENDS)?;
        for (name, counted) in self.counted() {
            for (cause, count) in &counted.ends {
                count_at(&mut ends, &[("server", name), ("cause", cause)], *count)?;
            }
        }
        self.counter(to, &names::PLANNED_ENDS, |counted| counted.planned)?;
        let of =
            |value: fn(&Lines) -> Option<f64>| move |server: &Server| server.lines.as_ref().and_then(value);
        self.gauge(to, &names::BUDGET, of(|lines| Some(lines.budget)))?;
        self.gauge(to, &names::NEXT_TRY, of(|lines| lines.next_try.map(|wait| wait.as_secs_f64())))?;
        self.gauge(to, &names::SERVER_MEMORY, |server| server.processes.map(|(bytes, _)| bytes))?;
        self.gauge(to, &names::PROCESSES, |server| server.processes.map(|(_, count)| count))
    }

    fn of_fleet(&self, to: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let Some(fleet) = &self.0.fleet else { return Ok(()) };
        begin(to, &names::FLEET_CONNECTED)?.encode_gauge(&u64::from(fleet.connected))?;
        begin(to, &names::FLEET_NODES)?.encode_gauge(&(fleet.nodes.len() as u64))?;
        placed(to, &names::FLEET_HERE, fleet, |placed| placed.here)?;
        placed(to, &names::FLEET_SOMEWHERE, fleet, |placed| placed.runs_at.is_some())
    }

    fn counted(&self) -> impl Iterator<Item = (&str, &Counted)> {
        self.0.servers.iter().filter_map(|(name, server)| Some((name.as_str(), server.counted.as_ref()?)))
    }

    fn counter(
        &self,
        to: &mut DescriptorEncoder<'_>,
        metric: &Metric,
        value: impl Fn(&Counted) -> u64,
    ) -> Result<(), Error> {
        let mut family = begin(to, metric)?;
        self.counted()
            .try_for_each(|(name, counted)| count_at(&mut family, &[("server", name)], value(counted)))
    }

    fn gauge<V: prometheus_client::encoding::EncodeGaugeValue>(
        &self,
        to: &mut DescriptorEncoder<'_>,
        metric: &Metric,
        value: impl Fn(&Server) -> Option<V>,
    ) -> Result<(), Error> {
        let mut family = begin(to, metric)?;
        for (name, server) in &self.0.servers {
            if let Some(value) = value(server) {
                family.encode_family(&[("server", name.as_str())])?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }

    fn histogram(
        &self,
        to: &mut DescriptorEncoder<'_>,
        metric: &Metric,
        of: impl Fn(&Counted) -> &Histogram,
    ) -> Result<(), Error> {
        let mut family = begin(to, metric)?;
        for (name, counted) in self.counted() {
            let histogram = of(counted);
            let labels = [("server", name)];
            let mut series = family.encode_family(&labels)?;
            let (sum, count) = (histogram.sum().as_secs_f64(), histogram.count());
            series.encode_histogram::<NoLabelSet>(sum, count, &buckets(histogram), None)?;
        }
        Ok(())
    }
}

/// How many lie between each two bounds; the last bound is infinity.
fn buckets(histogram: &Histogram) -> Vec<(f64, u64)> {
    let mut below = 0;
    let bounds = histogram
        .cumulative()
        .filter(|(bound, _)| u64::try_from(bound.as_micros()).is_ok_and(|micros| BOUNDS.contains(&micros)));
    let mut buckets: Vec<(f64, u64)> = bounds
        .map(|(bound, count)| (bound.as_secs_f64(), count - std::mem::replace(&mut below, count)))
        .collect();
    buckets.push((f64::INFINITY, histogram.count() - below));
    buckets
}

fn begin<'a>(to: &'a mut DescriptorEncoder<'_>, metric: &'a Metric) -> Result<MetricEncoder<'a>, Error> {
    let kind = match metric.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
        Kind::Info => MetricType::Info,
    };
    to.encode_descriptor(metric.name, metric.help, None, kind)
}

fn by_verdict(
    to: &mut MetricEncoder<'_>,
    server: &str,
    kind: &str,
    verdicts: &ByVerdict,
) -> Result<(), Error> {
    for (verdict, count) in VERDICT_NAMES.iter().zip(verdicts) {
        count_at(to, &[("server", server), ("kind", kind), ("verdict", &word(verdict))], *count)?;
    }
    Ok(())
}

fn count_at<const N: usize>(
    to: &mut MetricEncoder<'_>,
    labels: &[(&str, &str); N],
    count: u64,
) -> Result<(), Error> {
    to.encode_family(labels)?.encode_counter::<NoLabelSet, _, f64>(&count, None)
}

/// A label as one word.
fn word(words: &str) -> String {
    words.replace(' ', "_")
}
