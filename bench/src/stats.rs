//! Statistics of samples: the median, the bad tail, and the ratio of two medians.

/// Which way a metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    Lower,
    Higher,
    /// It only explains other metrics.
    Neither,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    /// The 95th percentile by nearest rank, counted from the good end: for a rate, 95% of the samples are higher.
    pub(crate) p95: f64,
    pub(crate) n: usize,
}

/// Nothing for no samples.
pub(crate) fn summarise(samples: &[f64], better: Better) -> Option<Summary> {
    if samples.is_empty() {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let median = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
    if better == Better::Higher {
        sorted.reverse();
    }
    let rank = (n * 95).div_ceil(100);
    Some(Summary { median, p95: sorted[rank - 1], n })
}

/// The median of times; nothing for none.
pub(crate) fn median(samples: &[f64]) -> Option<f64> {
    summarise(samples, Better::Lower).map(|summary| summary.median)
}

/// How many times better the candidate is; above 1 is better whichever way the metric improves.
///
/// Nothing when the division would say nothing: a time or a rate of zero was too short to be measured.
pub(crate) fn times_better(baseline: f64, candidate: f64, better: Better) -> Option<f64> {
    let (over, under) = match better {
        Better::Lower => (baseline, candidate),
        Better::Higher => (candidate, baseline),
        Better::Neither => return None,
    };
    (over > 0.0 && under > 0.0).then(|| over / under)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(samples: &[f64], better: Better, median: f64, p95: f64) {
        let expected = Summary { median, p95, n: samples.len() };
        assert_eq!(summarise(samples, better), Some(expected));
    }

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middle_two() {
        check(&[4.0, 1.0, 3.0, 2.0], Better::Lower, 2.5, 4.0);
        check(&[9.0, 1.0, 5.0], Better::Lower, 5.0, 9.0);
        check(&[7.0], Better::Lower, 7.0, 7.0);
    }

    #[test]
    fn the_tail_leaves_out_one_sample_in_twenty() {
        let samples: Vec<f64> = (1..=100).map(f64::from).collect();
        check(&samples, Better::Lower, 50.5, 95.0);
        check(&samples[..20], Better::Lower, 10.5, 19.0);
    }

    #[test]
    fn the_bad_tail_of_a_rate_is_its_low_end() {
        let samples: Vec<f64> = (1..=100).map(f64::from).collect();
        check(&samples, Better::Higher, 50.5, 6.0);
        check(&[10.0, 30.0, 20.0], Better::Higher, 20.0, 10.0);
    }

    #[test]
    fn no_samples_have_no_summary() {
        assert_eq!(summarise(&[], Better::Lower), None);
    }

    #[test]
    fn a_ratio_above_one_is_better_either_way() {
        assert_eq!(times_better(50.0, 5.0, Better::Lower), Some(10.0));
        assert_eq!(times_better(2_000.0, 160_000.0, Better::Higher), Some(80.0));
        assert_eq!(times_better(5.0, 50.0, Better::Lower), Some(0.1));
        assert_eq!(times_better(5.0, 0.0, Better::Lower), None);
        assert_eq!(times_better(5.0, 1.0, Better::Neither), None);
    }
}
