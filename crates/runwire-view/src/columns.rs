//! Fits the widths of table columns to a total width.

/// Spaces between two columns.
pub const BETWEEN: usize = 2;

/// Minimum width of a column of data.
const MIN_COLUMNS: usize = 4;

/// Minimum width of a readable column.
const READABLE: usize = 8;

/// Fits columns of data to a width: the widest shrink first. Columns that do not fit are omitted at the end.
pub fn fitted(natural: &[usize], width: usize) -> Vec<usize> {
    let shown = shown(natural, width, MIN_COLUMNS).max(natural.len().min(1));
    shared(&natural[..shown], width)
}

/// Fits columns to a width, and omits those at the end that would not be readable.
pub fn readable(natural: &[usize], width: usize) -> Vec<usize> {
    let shown = shown(natural, width, READABLE);
    shared(&natural[..shown], width)
}

/// Counts the columns that fit with their minimum widths.
fn shown(natural: &[usize], width: usize, narrowest: usize) -> usize {
    let mut taken = 0;
    let fits = |column: &&usize| {
        taken += narrowest.min(**column) + BETWEEN;
        taken <= width + BETWEEN
    };
    natural.iter().take_while(fits).count()
}

/// Distributes a width over columns.
fn shared(natural: &[usize], width: usize) -> Vec<usize> {
    let shown = natural.len();
    let mut left = width.saturating_sub(BETWEEN * shown.saturating_sub(1));
    // From the narrowest on, each column takes its natural width or its share of the rest.
    let mut order: Vec<usize> = (0..shown).collect();
    order.sort_by_key(|column| natural[*column]);
    let mut widths = vec![0; shown];
    for (taken, column) in order.iter().enumerate() {
        let part = left / (shown - taken);
        widths[*column] = natural[*column].min(part.max(1));
        left = left.saturating_sub(widths[*column]);
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_columns_shrink_first() {
        assert_eq!(fitted(&[5, 50, 8], 80), [5, 50, 8]);
        assert_eq!(fitted(&[5, 50, 8], 40), [5, 23, 8]);
        assert_eq!(fitted(&[30, 50, 8], 40), [14, 14, 8]);
    }

    #[test]
    fn columns_that_do_not_fit_are_omitted() {
        assert_eq!(fitted(&[9; 20], 40).len(), 7);
        assert_eq!(fitted(&[9], 3), [3]);
        assert!(fitted(&[], 3).is_empty());
    }
}
