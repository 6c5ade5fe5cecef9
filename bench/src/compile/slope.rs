//! How time grows with the number of moves: the slope of the line through (log moves, log time), by least squares.
//!
//! In: measured points. Out: the slope: 1 is linear growth.

/// The slope; none with fewer than two different numbers of moves.
pub(crate) fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|p| p.0), mean(|p| p.1));
    let spread: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let together: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    (spread > 0.0).then(|| together / spread)
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn powers_have_their_exponent_as_slope() {
        for exponent in [0.5, 1.0, 1.07, 2.0] {
            let points: Vec<(f64, f64)> =
                [1e5, 3e5, 7e5, 2e6].map(|x: f64| (x, 3.0 * x.powf(exponent))).to_vec();
            assert!((slope(&points).unwrap() - exponent).abs() < 1e-9);
        }
        assert_eq!(slope(&[(5.0, 1.0), (5.0, 2.0)]), None);
    }
}
