//! Rows that are read one page after the other: bounded in number and in bytes, so that memory holds one page, however many
//! rows there are and however large they are.

/// The most rows of a page, and how many bytes of text make it full. A row that is larger is a page of its own.
pub const PAGE_ROWS: usize = 96;
pub const PAGE_BYTES: u64 = 1 << 20;

/// A row as a list of them has it: where it is and how large, without its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub place: u64,
    /// The number of the token, the event or the instance.
    pub number: u64,
    /// A token's status, as its column has it.
    pub status: String,
    pub bytes: u64,
}

/// How many rows at the beginning of the list make the first page: one at least, if there is any.
pub fn page_length(listed: &[Listed], rows_max: usize) -> usize {
    let mut bytes = 0;
    let fits = listed.iter().take(rows_max).take_while(|row| {
        let is_first = bytes == 0;
        bytes += row.bytes.max(1);
        is_first || bytes <= PAGE_BYTES
    });
    fits.count()
}

/// The list, cut into pages.
pub fn pages(listed: &[Listed]) -> impl Iterator<Item = &[Listed]> {
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

    fn rows(sizes: &[u64]) -> Vec<Listed> {
        let row = |(number, bytes): (usize, &u64)| Listed {
            place: number as u64,
            number: number as u64,
            status: String::new(),
            bytes: *bytes,
        };
        sizes.iter().enumerate().map(row).collect()
    }

    fn lengths(sizes: &[u64]) -> Vec<usize> {
        pages(&rows(sizes)).map(<[Listed]>::len).collect()
    }

    #[test]
    fn a_page_ends_before_the_row_that_would_be_too_much_and_holds_one_at_least() {
        assert!(lengths(&[]).is_empty());
        assert_eq!(lengths(&[PAGE_BYTES, 1]), [1, 1]);
        assert_eq!(lengths(&[PAGE_BYTES * 9, PAGE_BYTES * 9, 0]), [1, 1, 1]);
        assert_eq!(lengths(&[PAGE_BYTES / 2, PAGE_BYTES / 2, 1, 1]), [2, 2]);
        assert_eq!(lengths(&[0; 200]), [96, 96, 8]);
        assert_eq!(page_length(&rows(&[1; 9]), 5), 5);
        assert_eq!(page_length(&rows(&[1; 9]), 0), 0);
    }

    /// The most bytes of text that are held at once, over any list.
    #[test]
    fn no_page_holds_more_than_its_bytes_or_one_row() {
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
