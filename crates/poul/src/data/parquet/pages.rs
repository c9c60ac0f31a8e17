//! Pages of Parquet files: no memory is taken for more than a page can unpack to.
//!
//! A page says in front how long it is, packed and unpacked, and the reader takes that much memory before it unpacks. What is said is
//! compared with what the compression can make of so many bytes and with what the footer says of the whole column.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};

/// Unpacked bytes that any page may have: below this nothing is worth a question.
const ANY_PAGE: u64 = 1 << 20;
/// Footers need not count every header: a page may have so many times what they say of the column.
const SLACK: u64 = 2;

/// A Parquet file whose pages are checked before they are unpacked.
pub(super) struct Pages {
    file: File,
    n_bytes: u64,
    /// By place in the file.
    chunks: Vec<Chunk>,
}

/// Where the pages of a column lie in one row group, and what bounds them.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    first: u64,
    end: u64,
    /// What a byte can stand for.
    ratio: u64,
    /// Of all pages, as the footer says.
    unpacked: u64,
}

impl Pages {
    pub(super) fn new(file: File, metadata: &ParquetMetaData) -> io::Result<Self> {
        let n_bytes = file.metadata()?.len();
        let columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
        let chunk = |column: &ColumnChunkMetaData| {
            let first = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let places = [first, column.compressed_size(), column.uncompressed_size()];
            // Negative places are for the reader to refuse.
            let [first, length, unpacked] = places.map(|place| u64::try_from(place).ok());
            let (first, ratio) = (first?, ratio(column.compression())?);
            Some(Chunk { first, end: first.saturating_add(length?), ratio, unpacked: unpacked? })
        };
        let mut chunks: Vec<Chunk> = columns.filter_map(chunk).collect();
        chunks.sort_unstable_by_key(|chunk| chunk.first);
        Ok(Self { file, n_bytes, chunks })
    }
}

/// How many bytes one can stand for at most; none where nothing is unpacked.
fn ratio(compression: Compression) -> Option<u64> {
    match compression {
        Compression::UNCOMPRESSED => None,
        // Three bytes copy 64.
        Compression::SNAPPY => Some(22),
        Compression::LZ4 | Compression::LZ4_RAW => Some(255),
        Compression::GZIP(_) => Some(1032),
        // A block of four bytes stands for 128 KiB.
        _ => Some(1 << 15),
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.n_bytes
    }
}

impl ChunkReader for Pages {
    type T = Checked;

    fn get_read(&self, start: u64) -> Result<Checked> {
        let next = self.chunks.partition_point(|chunk| chunk.first <= start);
        let chunk = next.checked_sub(1).map(|place| self.chunks[place]).filter(|chunk| start < chunk.end);
        Ok(Checked { read: self.file.get_read(start)?, chunk })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        match start.checked_add(length as u64).is_some_and(|end| end <= self.n_bytes) {
            true => self.file.get_bytes(start, length),
            false => Err(ParquetError::EOF(format!("{length} bytes at {start} reach beyond the file"))),
        }
    }
}

/// The bytes of a page, whose header is checked as soon as the first is read. Where it was read before, none is.
pub(super) struct Checked {
    read: BufReader<File>,
    chunk: Option<Chunk>,
}

impl Read for Checked {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(chunk) = self.chunk.take() {
            let head = self.read.fill_buf()?;
            if let Some([unpacked, packed]) = sizes(head) {
                let most = chunk.ratio.saturating_mul(packed).min(chunk.unpacked.saturating_mul(SLACK));
                if unpacked > most.max(ANY_PAGE) {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("a page of {packed} bytes says that it unpacks to {unpacked}"),
                    ));
                }
            }
        }
        self.read.read(out)
    }
}

/// How long a page is, unpacked and packed, by the first fields of its header; none where these are others, which the reader will
/// refuse by itself. Headers are in Thrift's compact protocol.
fn sizes(mut head: &[u8]) -> Option<[u64; 2]> {
    /// A field that comes next after the one before, of type i32.
    const NEXT_I32: u8 = 0x15;
    let mut field = || {
        let kind = *head.split_off_first()?;
        (kind == NEXT_I32).then_some(())?;
        let mut value = 0_u64;
        for place in 0..5 {
            let byte = *head.split_off_first()?;
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                // Zigzag: negative lengths are odd, and refused by the reader.
                return Some(value >> 1);
            }
        }
        None
    };
    let _type = field()?;
    Some([field()?, field()?])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, RecordBatch};
    use arrow_schema::{DataType, Field, Schema};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::{GzipLevel, ZstdLevel};
    use parquet::file::properties::WriterProperties;

    use super::*;

    /// A table of one column that compresses well, and its bytes.
    fn written(compression: Compression) -> Vec<u8> {
        let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, false)]));
        let column = Arc::new(Int64Array::from(vec![7_i64; 300_000]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_dictionary_enabled(false)
            .set_data_page_row_count_limit(usize::MAX)
            .set_data_page_size_limit(usize::MAX)
            .set_write_batch_size(1 << 20)
            .build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, schema, Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> crate::Result<u64> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        std::fs::write(&path, bytes).unwrap();
        let source = crate::Source::open_path(&path)?;
        let batches = source.batches(&["x"], 1 << 16)?;
        batches.map(|batch| batch.map(|batch| batch.num_rows() as u64)).sum()
    }

    #[test]
    fn pages_that_unpack_to_much_are_read_and_impossible_ones_are_refused() {
        let every = [
            Compression::SNAPPY,
            Compression::LZ4_RAW,
            Compression::GZIP(GzipLevel::default()),
            Compression::ZSTD(ZstdLevel::default()),
        ];
        for compression in every {
            let good = written(compression);
            assert_eq!(read(&good).unwrap(), 300_000, "{compression}");
            // The first page starts after the magic; its second field is the length unpacked, 2,400,000.
            let [unpacked, _] = sizes(&good[4..]).unwrap();
            assert_eq!(unpacked, 2_400_000);
            let mut bad = good.clone();
            let place = 4 + 1 + good[5..].iter().position(|byte| *byte < 0x80).unwrap() + 2;
            assert_eq!(sizes(&bad[4..]).unwrap()[0], unpacked);
            // Four bytes of a varint: the highest becomes all ones.
            bad[place + 3] = 0x7f;
            assert!(sizes(&bad[4..]).unwrap()[0] > 100_000_000, "{:?}", sizes(&bad[4..]));
            let error = read(&bad).unwrap_err();
            assert!(error.to_string().contains("says that it unpacks to"), "{compression}: {error}");
        }
    }

    #[test]
    fn what_is_no_header_is_left_to_the_reader() {
        for head in [
            &[][..],
            &[0x15],
            &[0x15, 0x80],
            &[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            &[0x25, 0, 0x15, 2, 0x15, 2],
        ] {
            assert_eq!(sizes(head), None, "{head:?}");
        }
        assert_eq!(sizes(&[0x15, 0, 0x15, 0xac, 0x02, 0x15, 4, 0x2c]), Some([150, 2]));
    }
}
