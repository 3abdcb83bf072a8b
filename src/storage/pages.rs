//! Pages of rows, limited in number and bytes, so that memory holds one page regardless of how many rows there are and how
//! large they are. Pure.

/// Limits of a page. A larger row is a page of its own.
pub const PAGE_ROWS: usize = 96;
pub const PAGE_BYTES: u64 = 1 << 20;

/// A row of a list, without its text.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRow {
    pub row_id: u64,
    /// The number of the token, event or instance.
    pub number: u64,
    /// The status column; empty for rows that are no tokens.
    pub status: String,
    pub bytes: u64,
}

/// The number of rows on the first page: at least one, unless the list is empty.
pub fn page_length(listed: &[ListedRow], rows_max: usize) -> usize {
    let mut bytes = 0;
    let fits = listed.iter().take(rows_max).take_while(|row| {
        let is_first = bytes == 0;
        bytes += row.bytes.max(1);
        is_first || bytes <= PAGE_BYTES
    });
    fits.count()
}

pub fn pages(listed: &[ListedRow]) -> impl Iterator<Item = &[ListedRow]> {
    let mut rest = listed;
    std::iter::from_fn(move || {
        let (page, others) = rest.split_at(page_length(rest, PAGE_ROWS));
        rest = others;
        (!page.is_empty()).then_some(page)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(sizes: &[u64]) -> Vec<ListedRow> {
        let row = |(number, bytes): (usize, &u64)| ListedRow {
            row_id: number as u64,
            number: number as u64,
            status: String::new(),
            bytes: *bytes,
        };
        sizes.iter().enumerate().map(row).collect()
    }

    fn lengths(sizes: &[u64]) -> Vec<usize> {
        pages(&rows(sizes)).map(<[ListedRow]>::len).collect()
    }

    #[test]
    fn a_page_respects_both_limits_and_has_at_least_one_row() {
        assert!(lengths(&[]).is_empty());
        assert_eq!(lengths(&[PAGE_BYTES, 1]), [1, 1]);
        assert_eq!(lengths(&[PAGE_BYTES * 9, PAGE_BYTES * 9, 0]), [1, 1, 1]);
        assert_eq!(lengths(&[PAGE_BYTES / 2, PAGE_BYTES / 2, 1, 1]), [2, 2]);
        assert_eq!(lengths(&[0; 200]), [96, 96, 8]);
        assert_eq!(page_length(&rows(&[1; 9]), 5), 5);
        assert_eq!(page_length(&rows(&[1; 9]), 0), 0);
    }

    #[test]
    fn a_page_exceeds_its_bytes_only_with_a_single_row() {
        let sizes: Vec<u64> = (0..5_000).map(|n| (n * 7_919) % 900_000).collect();
        let all = rows(&sizes);
        let mut seen = 0;
        for page in pages(&all) {
            let bytes: u64 = page.iter().map(|row| row.bytes).sum();
            assert!(
                page.len() == 1 || bytes <= PAGE_BYTES,
                "{bytes} in {}",
                page.len()
            );
            assert_eq!(page[0].number, seen);
            seen += page.len() as u64;
        }
        assert_eq!(seen, 5_000);
    }
}
