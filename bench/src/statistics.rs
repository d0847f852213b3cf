//! Medians and percentiles.

/// Returns a percentile; sorts the values.
pub(crate) fn percentile(values: &mut [u32], share: f64) -> Option<u32> {
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    values.get((last as f64 * share).round() as usize).copied()
}

/// Returns the median.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let (below, above) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some(f64::midpoint(*below, *above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_lies_in_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let mut values: Vec<u32> = (0..=100).rev().collect();
        assert_eq!(percentile(&mut values, 0.5), Some(50));
        assert_eq!(percentile(&mut values, 0.99), Some(99));
        assert_eq!(percentile(&mut [], 0.5), None);
    }
}
