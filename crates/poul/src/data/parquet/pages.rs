//! Pages of Parquet files: no memory is taken for more than a page can hold.
//!
//! A page says in front how long it is, packed and unpacked, and a dictionary how many values it has; the reader takes memory for that
//! much. What is said is compared with what the compression can make of so many bytes and with what the footer says of the column.

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
/// A block of zstd takes at least four bytes and stands for at most 128 KiB: nothing packs better.
const MOST: u64 = 1 << 15;

/// A Parquet file whose pages are checked before memory is taken for them.
pub(crate) struct Pages<R> {
    file: R,
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

/// For pages that lie where the footer says nothing of, or contradicts itself.
const ANYWHERE: Chunk = Chunk { first: 0, end: u64::MAX, ratio: MOST, unpacked: u64::MAX };

impl<R: ChunkReader> Pages<R> {
    pub(crate) fn new(file: R, metadata: &ParquetMetaData) -> Self {
        let columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
        let chunk = |column: &ColumnChunkMetaData| {
            let first = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let places = [first, column.compressed_size(), column.uncompressed_size()];
            // Negative places are for the reader to refuse.
            let [first, length, unpacked] = places.map(|place| u64::try_from(place).ok());
            let (first, ratio) = (first?, ratio(column.compression()));
            // Some writers say 0 for what they do not know.
            let unpacked = unpacked.filter(|unpacked| *unpacked > 0).unwrap_or(u64::MAX);
            Some(Chunk { first, end: first.saturating_add(length?), ratio, unpacked })
        };
        let mut chunks: Vec<Chunk> = columns.filter_map(chunk).collect();
        chunks.sort_unstable_by_key(|chunk| chunk.first);
        Self { file, chunks }
    }
}

/// How many bytes one can stand for at most. Where nothing is unpacked, more than the one does no harm.
fn ratio(compression: Compression) -> u64 {
    match compression {
        // Three bytes copy 64.
        Compression::SNAPPY => 22,
        Compression::LZ4 | Compression::LZ4_RAW => 255,
        Compression::GZIP(_) => 1032,
        _ => MOST,
    }
}

impl<R: ChunkReader> Length for Pages<R> {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl<R: ChunkReader> ChunkReader for Pages<R> {
    type T = Checked<R::T>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let next = self.chunks.partition_point(|chunk| chunk.first <= start);
        let chunk = next.checked_sub(1).map(|place| self.chunks[place]).filter(|chunk| start < chunk.end);
        let chunk = Some(chunk.unwrap_or(ANYWHERE));
        Ok(Checked { read: BufReader::new(self.file.get_read(start)?), chunk })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        match start.checked_add(length as u64).is_some_and(|end| end <= self.len()) {
            true => self.file.get_bytes(start, length),
            false => Err(ParquetError::EOF(format!("{length} bytes at {start} reach beyond the file"))),
        }
    }
}

/// The bytes of a page, whose header is checked as soon as the first is read. Where it was read before, none is.
pub(crate) struct Checked<R> {
    read: BufReader<R>,
    chunk: Option<Chunk>,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(chunk) = self.chunk.take()
            && let Some(header) = Header::read(self.read.fill_buf()?)
        {
            header.check(chunk).map_err(|what| io::Error::new(io::ErrorKind::InvalidData, what))?;
        }
        self.read.read(out)
    }
}

/// What a page says of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Header {
    unpacked: u64,
    packed: u64,
    /// How many values a dictionary has.
    values: Option<u64>,
}

impl Header {
    /// The first fields of a header; none where these are others, which the reader will refuse by itself. A page that does not say how
    /// long it is packed, as every writer does, counts as one that can hold nothing.
    fn read(head: &[u8]) -> Option<Self> {
        let mut fields = Fields { rest: head, number: 0 };
        let [_, unpacked] = [fields.i32(1)?, fields.i32(2)?];
        let packed = fields.i32(3).unwrap_or(0);
        // A checksum may come between; what a dictionary says of itself is a structure of its own.
        let _ = fields.i32(4);
        let values = fields.structure(7).and_then(|()| fields.i32(1));
        Some(Self { unpacked, packed, values })
    }

    fn check(self, chunk: Chunk) -> std::result::Result<(), String> {
        let Self { unpacked, packed, values } = self;
        let most = chunk.ratio.saturating_mul(packed).min(chunk.unpacked.saturating_mul(SLACK));
        if unpacked > most.max(ANY_PAGE) {
            return Err(format!("a page of {packed} bytes says that it unpacks to {unpacked}"));
        }
        // A value takes a byte at least.
        match values.filter(|values| *values > unpacked.max(ANY_PAGE)) {
            Some(values) => Err(format!("a dictionary of {unpacked} bytes says that it has {values} values")),
            None => Ok(()),
        }
    }
}

/// Fields in Thrift's compact protocol: a byte for the distance to the number of the field before and for the type, then the value.
struct Fields<'a> {
    rest: &'a [u8],
    number: u8,
}

impl Fields<'_> {
    /// A whole number, if the next field is the one of that number and is one.
    fn i32(&mut self, number: u8) -> Option<u64> {
        self.begin(number, 5)?;
        let mut value = 0_u64;
        for place in 0..5 {
            let byte = *self.rest.split_off_first()?;
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                // Zigzag: negative numbers are odd, and refused by the reader.
                return Some(value >> 1);
            }
        }
        None
    }

    /// Goes into a structure, if the next field is the one of that number and is one.
    fn structure(&mut self, number: u8) -> Option<()> {
        self.begin(number, 12)?;
        self.number = 0;
        Some(())
    }

    fn begin(&mut self, number: u8, kind: u8) -> Option<()> {
        let distance = number.checked_sub(self.number)?;
        (*self.rest.first()? == (distance << 4 | kind)).then_some(())?;
        self.rest.split_off_first();
        self.number = number;
        Some(())
    }
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

    fn sizes(head: &[u8]) -> [u64; 2] {
        let Header { unpacked, packed, .. } = Header::read(head).unwrap();
        [unpacked, packed]
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
            let [unpacked, _] = sizes(&good[4..]);
            assert_eq!(unpacked, 2_400_000);
            let mut bad = good.clone();
            let place = 4 + 1 + good[5..].iter().position(|byte| *byte < 0x80).unwrap() + 2;
            assert_eq!(sizes(&bad[4..])[0], unpacked);
            // Four bytes of a varint: the highest becomes all ones.
            bad[place + 3] = 0x7f;
            assert!(sizes(&bad[4..])[0] > 100_000_000, "{:?}", sizes(&bad[4..]));
            let error = read(&bad).unwrap_err();
            assert!(error.to_string().contains("says that it unpacks to"), "{compression}: {error}");
        }
    }

    #[test]
    fn rows_of_groups_are_those_of_the_file() {
        let mut bytes = written(Compression::SNAPPY);
        let n_bytes = bytes.len();
        let footer = u32::from_le_bytes(bytes[n_bytes - 8..n_bytes - 4].try_into().unwrap()) as usize;
        let footer = n_bytes - 8 - footer;
        // 300,000 as the footer writes it; the first time as the rows of the file.
        let rows = [0xc0, 0xcf, 0x24];
        let place = footer + bytes[footer..].windows(3).position(|window| window == rows).unwrap();
        bytes[place + 2] = 0x23;
        let error = read(&bytes).unwrap_err();
        assert!(error.to_string().contains("the rows of its groups are not as many"), "{error}");
    }

    #[test]
    fn a_dictionary_of_more_values_than_bytes_is_refused() {
        let chunk = Chunk { first: 0, end: 100, ratio: 22, unpacked: 100 };
        // A page of type 2, 300 bytes long, with a dictionary of 400,000,000 values; without and with a checksum.
        let values = [0x15, 0x80, 0x90, 0xbc, 0xfd, 0x02];
        let bare = [&[0x15, 4, 0x15, 0xd8, 0x04, 0x15, 0xd8, 0x04, 0x4c][..], &values].concat();
        let checked = [&[0x15, 4, 0x15, 0xd8, 0x04, 0x15, 0xd8, 0x04, 0x15, 2, 0x3c][..], &values].concat();
        for head in [bare, checked] {
            let header = Header::read(&head).unwrap();
            assert_eq!(header, Header { unpacked: 300, packed: 300, values: Some(400_000_000) });
            assert!(header.check(chunk).unwrap_err().contains("says that it has 400000000 values"));
            assert!(Header { values: Some(300), ..header }.check(chunk).is_ok());
        }
    }

    #[test]
    fn a_page_that_does_not_say_how_long_it_is_packed_is_bounded_too() {
        // The third field is a structure, which the reader passes over.
        let header = Header::read(&[0x15, 0, 0x15, 0xc2, 0xe5, 0xa3, 0x4f, 0x1c, 0x80, 0]).unwrap();
        assert_eq!(header, Header { unpacked: 83_130_721, packed: 0, values: None });
        assert!(header.check(ANYWHERE).unwrap_err().contains("says that it unpacks to 83130721"));
    }

    #[test]
    fn a_page_that_no_column_owns_is_bounded_too() {
        let header = |unpacked| Header { unpacked, packed: 1000, values: None };
        assert!(header(MOST * 1000).check(ANYWHERE).is_ok());
        assert!(header(MOST * 1000 + 1).check(ANYWHERE).is_err());
        let bytes = Bytes::from(written(Compression::SNAPPY));
        let pages = Pages { file: bytes, chunks: Vec::new() };
        assert_eq!(pages.get_read(4).unwrap().chunk.map(|chunk| chunk.ratio), Some(MOST));
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
            assert_eq!(Header::read(head), None, "{head:?}");
        }
        let header = Header::read(&[0x15, 0, 0x15, 0xac, 0x02, 0x15, 4, 0x2c]);
        assert_eq!(header, Some(Header { unpacked: 150, packed: 2, values: None }));
    }
}
