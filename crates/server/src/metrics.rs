//! The text of `/metrics`, as Prometheus reads it.

use std::fmt::Write as _;

pub(crate) const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Numbers, each with its name, what it is and its labels. Lines of one name come one after the other.
#[derive(Debug, Default)]
pub struct MetricsText {
    text: String,
    last: String,
}

type MetricLabels<'a> = &'a [(&'a str, &'a str)];

impl MetricsText {
    /// A number that goes up and down.
    pub fn gauge(&mut self, name: &str, about: &str, labels: MetricLabels<'_>, value: f64) {
        self.head(name, about, "gauge");
        self.line(name, labels, value);
    }

    /// A number that only grows. Its name ends with `_total`.
    pub fn counter(&mut self, name: &str, about: &str, labels: MetricLabels<'_>, value: f64) {
        self.head(name, about, "counter");
        self.line(name, labels, value);
    }

    /// How often something took at most so long: `(bound, count up to it)`, then all, with their sum.
    pub fn histogram(&mut self, name: &str, about: &str, buckets: &[(f64, u64)], (count, sum): (u64, f64)) {
        self.head(name, about, "histogram");
        let bucket = format!("{name}_bucket");
        for (bound, count) in buckets {
            self.line(&bucket, &[("le", &bound.to_string())], *count as f64);
        }
        self.line(&bucket, &[("le", "+Inf")], count as f64);
        self.line(&format!("{name}_sum"), &[], sum);
        self.line(&format!("{name}_count"), &[], count as f64);
    }

    fn head(&mut self, name: &str, about: &str, kind: &str) {
        if self.last != name {
            self.last = name.to_owned();
            // Writing to a text cannot fail.
            let _ = writeln!(self.text, "# HELP {name} {about}\n# TYPE {name} {kind}");
        }
    }

    fn line(&mut self, name: &str, labels: MetricLabels<'_>, value: f64) {
        self.text.push_str(name);
        for (at, (key, label)) in labels.iter().enumerate() {
            let escaped = label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{}{key}=\"{escaped}\"", if at == 0 { '{' } else { ',' });
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_head_once_and_escaped_labels() {
        let mut text = MetricsText::default();
        text.gauge("oarlock_tasks", "Tasks.", &[("state", "idle")], 2.0);
        text.gauge("oarlock_tasks", "Tasks.", &[("state", "a\"b\\c"), ("x", "y")], 1.0);
        text.histogram("oarlock_append_seconds", "Appends.", &[(0.1, 1)], (2, 0.75));
        let expected = "# HELP oarlock_tasks Tasks.\n# TYPE oarlock_tasks gauge\noarlock_tasks{state=\"idle\"} 2\n\
            oarlock_tasks{state=\"a\\\"b\\\\c\",x=\"y\"} 1\n# HELP oarlock_append_seconds Appends.\n\
            # TYPE oarlock_append_seconds histogram\noarlock_append_seconds_bucket{le=\"0.1\"} 1\n\
            oarlock_append_seconds_bucket{le=\"+Inf\"} 2\noarlock_append_seconds_sum 0.75\n\
            oarlock_append_seconds_count 2\n";
        assert_eq!(text.finish(), expected);
    }
}
