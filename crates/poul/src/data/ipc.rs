//! Arrow IPC: files (also called Feather) and streams.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader, read_footer_length};
use arrow_schema::{ArrowError, Schema};

use super::batches::{FileBatches, guarded, sliced};
use super::source::{Content, SourceFile, places};
use super::state::FileState;
use crate::{Error, Result};

const MAGIC: &[u8; 6] = b"ARROW1";
const TRAILER: usize = 10;
/// A byte of LZ4 stands for at most 255 others, and frames take some of their own.
const MOST_BY_LZ4: i64 = 255;
/// A block of zstd takes at least four bytes and stands for at most 128 KiB.
const MOST_BY_ZSTD: i64 = 1 << 15;
/// As the format advises. Rows without a column take no bytes, so a file may say that it has any number of them.
const MOST_BATCH_ROWS: i64 = i32::MAX as i64;

/// Reads the schema of an IPC file or stream and the length of each of its batches.
///
/// Every block is checked to lie within the file: the reader allocates what a block says it needs before it reads.
pub(crate) fn open(path: &Path) -> Result<SourceFile> {
    let file = File::open(path).map_err(|error| Error::read(path, error))?;
    let state = FileState::of(&file, path)?;
    let n_bytes = state.n_bytes();
    let mut file = BufReader::new(file);
    guarded(path, || {
        let mut magic = [0; MAGIC.len()];
        read_exact(&mut file, &mut magic, path)?;
        let is_file = &magic == MAGIC;
        let n_rows = if is_file {
            rows_of_file(&mut file, n_bytes, path)?
        } else {
            rows_of_stream(&mut file, n_bytes, path)?
        };
        seek(&mut file, 0, path)?;
        let schema = if is_file {
            FileReader::try_new(file, None).map(|reader| reader.schema())
        } else {
            StreamReader::try_new(file, None).map(|reader| reader.schema())
        };
        let schema = schema.map_err(|error| unreadable(path, &error))?;
        let content = if is_file { Content::IpcFile } else { Content::IpcStream };
        Ok(SourceFile { path: path.to_path_buf(), n_bytes, state: Some(state), n_rows, schema, content })
    })
}

/// The batches of an IPC file, cut to at most `batch_rows` rows.
pub(crate) fn file_batches(source: &SourceFile, wanted: &Schema, batch_rows: usize) -> Result<FileBatches> {
    let file = File::open(&source.path).map_err(|error| Error::read(&source.path, error))?;
    let reader = FileReader::try_new_buffered(file, Some(projection(source, wanted)));
    Ok(cut(reader.map_err(|error| unreadable(&source.path, &error))?, &source.path, batch_rows))
}

/// The batches of an IPC stream, cut to at most `batch_rows` rows.
pub(crate) fn stream_batches(source: &SourceFile, wanted: &Schema, batch_rows: usize) -> Result<FileBatches> {
    let file = File::open(&source.path).map_err(|error| Error::read(&source.path, error))?;
    let reader = StreamReader::try_new_buffered(file, Some(projection(source, wanted)));
    Ok(cut(reader.map_err(|error| unreadable(&source.path, &error))?, &source.path, batch_rows))
}

fn projection(source: &SourceFile, wanted: &Schema) -> Vec<usize> {
    // The reader gives columns in the order of the file, whatever the order asked for.
    let places = places(&source.schema);
    let mut indices: Vec<usize> =
        wanted.fields().iter().filter_map(|field| places.get(field.name().as_str()).copied()).collect();
    indices.sort_unstable();
    indices
}

fn cut(
    reader: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    path: &Path,
    batch_rows: usize,
) -> FileBatches {
    let path = path.to_path_buf();
    let batches = reader.map(move |batch| batch.map_err(|error| unreadable(&path, &error)));
    Box::new(batches.flat_map(move |batch| -> FileBatches {
        match batch {
            Ok(batch) => Box::new(sliced(batch, batch_rows).map(Ok)),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }))
}

/// Walks the footer of an IPC file and adds up the rows of its batches.
fn rows_of_file(file: &mut BufReader<File>, n_bytes: u64, path: &Path) -> Result<u64> {
    let cut_short = || corrupt(path, "the end of the file is missing");
    let trailer_at = n_bytes.checked_sub(TRAILER as u64).ok_or_else(cut_short)?;
    seek(file, trailer_at, path)?;
    let mut trailer = [0; TRAILER];
    read_exact(file, &mut trailer, path)?;
    let footer_len = read_footer_length(trailer).map_err(|_| cut_short())?;
    let footer_at = trailer_at.checked_sub(footer_len as u64).ok_or_else(cut_short)?;
    seek(file, footer_at, path)?;
    let mut footer = vec![0; footer_len];
    read_exact(file, &mut footer, path)?;
    let footer = arrow_ipc::root_as_footer(&footer).map_err(|error| corrupt(path, &error.to_string()))?;
    let mut n_rows = 0;
    for block in footer.dictionaries().iter().flatten().chain(footer.recordBatches().iter().flatten()) {
        let (offset, length) = check_block(block, n_bytes, path)?;
        seek(file, offset, path)?;
        let mut message = vec![0; length];
        read_exact(file, &mut message, path)?;
        // A continuation mark and a length come first; older files have the length only.
        let prefix = if message.starts_with(&[0xff; 4]) { 8 } else { 4 };
        let message = message.get(prefix..).unwrap_or_default();
        n_rows += message_rows(message, path)?;
        check_lengths(file, message, offset + length as u64, path)?;
    }
    Ok(n_rows)
}

fn check_block(block: &arrow_ipc::Block, n_bytes: u64, path: &Path) -> Result<(u64, usize)> {
    let whole = || {
        let offset = u64::try_from(block.offset()).ok()?;
        let metadata = u64::try_from(block.metaDataLength()).ok()?;
        let body = u64::try_from(block.bodyLength()).ok()?;
        let end = offset.checked_add(metadata)?.checked_add(body)?;
        (end <= n_bytes).then_some((offset, metadata as usize))
    };
    whole().ok_or_else(|| corrupt(path, "a batch lies outside the file"))
}

/// Walks the messages of an IPC stream and adds up the rows of its batches.
fn rows_of_stream(file: &mut BufReader<File>, n_bytes: u64, path: &Path) -> Result<u64> {
    let mut at = 0;
    let mut n_rows = 0;
    loop {
        let mut word = [0; 4];
        seek(file, at, path)?;
        if at + 4 > n_bytes {
            // A stream may end without its end mark.
            return if at == n_bytes { Ok(n_rows) } else { Err(corrupt(path, "the stream is cut short")) };
        }
        read_exact(file, &mut word, path)?;
        at += 4;
        if word == [0xff; 4] {
            read_exact(file, &mut word, path)?;
            at += 4;
        }
        let length = u64::from(u32::from_le_bytes(word));
        if length == 0 {
            return Ok(n_rows);
        }
        if at + length > n_bytes {
            return Err(corrupt(path, "the stream is cut short"));
        }
        let mut message = vec![0; length as usize];
        read_exact(file, &mut message, path)?;
        n_rows += message_rows(&message, path)?;
        check_lengths(file, &message, at + length, path)?;
        let body = arrow_ipc::root_as_message(&message).map_or(-1, |message| message.bodyLength());
        let end = u64::try_from(body).ok().and_then(|body| (at + length).checked_add(body));
        at = end.filter(|end| *end <= n_bytes).ok_or_else(|| corrupt(path, "the stream is cut short"))?;
    }
}

fn message_rows(message: &[u8], path: &Path) -> Result<u64> {
    let message = arrow_ipc::root_as_message(message).map_err(|error| corrupt(path, &error.to_string()))?;
    match message.header_as_record_batch() {
        None => Ok(0),
        Some(batch) if batch.length() > MOST_BATCH_ROWS => {
            Err(corrupt(path, "a batch says that it has more rows than a batch may have"))
        }
        Some(batch) => {
            u64::try_from(batch.length()).map_err(|_| corrupt(path, "a batch has a negative length"))
        }
    }
}

/// Checks what the compressed buffers of a batch say they hold, from its message and where its body begins: the reader allocates
/// that much before it decompresses.
fn check_lengths(file: &mut BufReader<File>, message: &[u8], body_at: u64, path: &Path) -> Result<()> {
    let message = arrow_ipc::root_as_message(message).map_err(|error| corrupt(path, &error.to_string()))?;
    let in_dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let Some(batch) = message.header_as_record_batch().or(in_dictionary) else { return Ok(()) };
    let Some(compression) = batch.compression() else { return Ok(()) };
    let most =
        if compression.codec() == arrow_ipc::CompressionType::LZ4_FRAME { MOST_BY_LZ4 } else { MOST_BY_ZSTD };
    for buffer in batch.buffers().iter().flatten().filter(|buffer| buffer.length() > 0) {
        let at = u64::try_from(buffer.offset()).ok().and_then(|offset| body_at.checked_add(offset));
        let at = at.ok_or_else(|| corrupt(path, "a buffer lies outside the file"))?;
        seek(file, at, path)?;
        let mut length = [0; 8];
        read_exact(file, &mut length, path)?;
        let length = i64::from_le_bytes(length);
        // -1 says that it was not worth compressing.
        if length < -1 || length > most.saturating_mul(buffer.length()) {
            return Err(corrupt(path, "a buffer says that it holds more than it can"));
        }
    }
    Ok(())
}

fn seek(file: &mut BufReader<File>, at: u64, path: &Path) -> Result<()> {
    file.seek(SeekFrom::Start(at)).map(drop).map_err(|error| Error::read(path, error))
}

fn read_exact(file: &mut BufReader<File>, bytes: &mut [u8], path: &Path) -> Result<()> {
    file.read_exact(bytes).map_err(|_| corrupt(path, "the file is cut short"))
}

fn unreadable(path: &Path, error: &ArrowError) -> Error {
    corrupt(path, &error.to_string())
}

fn corrupt(path: &Path, what: &str) -> Error {
    let error = Error::input(format!("cannot be read as Arrow IPC: {what}")).file(path);
    error.hint("the file may be cut short or damaged: write it again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Source;
    use arrow_array::Int32Array;
    use arrow_ipc::writer::{FileWriter, StreamWriter};
    use arrow_schema::{DataType, Field};
    use std::sync::Arc;

    fn batch(values: Vec<i32>) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("a", DataType::Int32, true)]);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int32Array::from(values))]).unwrap()
    }

    #[test]
    fn files_and_streams_read_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let (file, stream) = (folder.path().join("a.arrow"), folder.path().join("b.arrow"));
        let batches = [batch(vec![1, 2, 3]), batch(vec![4])];
        let mut writer = FileWriter::try_new(File::create(&file).unwrap(), &batches[0].schema()).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
        let mut writer = StreamWriter::try_new(File::create(&stream).unwrap(), &batches[0].schema()).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
        for path in [&file, &stream] {
            let source = Source::open(path.to_str().unwrap()).unwrap();
            assert_eq!(source.n_rows(), Some(4));
            let lengths: Vec<usize> =
                source.batches(&["a"], 2).unwrap().map(|batch| batch.unwrap().num_rows()).collect();
            assert_eq!(lengths, [2, 1, 1]);
        }
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        let error = Source::open(file.to_str().unwrap()).err().unwrap();
        assert!(error.to_string().contains("a.arrow: cannot be read as Arrow IPC"), "{error}");
    }

    #[test]
    fn a_compressed_buffer_that_says_it_is_huge_is_refused_before_it_is_read() {
        use arrow_ipc::CompressionType;
        use arrow_ipc::writer::IpcWriteOptions;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.arrow");
        let batch = batch(vec![7; 1000]);
        let options =
            IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME)).unwrap();
        let file = File::create(&path).unwrap();
        let mut writer = FileWriter::try_new_with_options(file, &batch.schema(), options.clone()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let stream = folder.path().join("b.arrow");
        let file = File::create(&stream).unwrap();
        let mut writer = StreamWriter::try_new_with_options(file, &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        for path in [path, stream] {
            let path = path.to_str().unwrap();
            assert_eq!(Source::open(path).unwrap().n_rows(), Some(1000));
            let bytes = std::fs::read(path).unwrap();
            let length = 4_000_i64.to_le_bytes();
            let at = bytes.windows(8).position(|window| window == length).unwrap();
            for byte in 3..8 {
                let mut huge = bytes.clone();
                huge[at + byte] = 0x7f;
                std::fs::write(path, huge).unwrap();
                let error = Source::open(path).err().unwrap().to_string();
                assert!(error.contains("more than it can"), "{error}");
            }
        }
    }

    #[test]
    fn zstd_that_says_it_is_huge_is_refused_too() {
        use arrow_ipc::CompressionType;
        use arrow_ipc::writer::IpcWriteOptions;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.arrow");
        let batch = batch(vec![7; 1000]);
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap();
        let file = File::create(&path).unwrap();
        let mut writer = FileWriter::try_new_with_options(file, &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        assert_eq!(Source::open(path.to_str().unwrap()).unwrap().n_rows(), Some(1000));
        let mut bytes = std::fs::read(&path).unwrap();
        let length = 4_000_i64.to_le_bytes();
        let at = bytes.windows(8).position(|window| window == length).unwrap();
        bytes[at + 7] = 0x04;
        std::fs::write(&path, bytes).unwrap();
        let error = Source::open(path.to_str().unwrap()).err().unwrap().to_string();
        assert!(error.contains("more than it can"), "{error}");
    }
    #[test]
    fn rows_of_nothing_are_not_counted_for_ever() {
        use arrow_array::NullArray;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.arrow");
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Null, true)]));
        let n_rows = 7_654_321;
        let nothing = Arc::new(NullArray::new(n_rows));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![nothing]).unwrap();
        let mut writer = FileWriter::try_new(File::create(&path).unwrap(), &schema).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        assert_eq!(Source::open(path.to_str().unwrap()).unwrap().n_rows(), Some(n_rows as u64));
        let mut bytes = std::fs::read(&path).unwrap();
        let length = (n_rows as i64).to_le_bytes();
        let places: Vec<usize> = (0..bytes.len() - 8).filter(|at| bytes[*at..at + 8] == length).collect();
        assert!(!places.is_empty());
        places.iter().for_each(|at| bytes[at + 6] = 0x10);
        std::fs::write(&path, bytes).unwrap();
        let error = Source::open(path.to_str().unwrap()).err().unwrap().to_string();
        assert!(error.contains("more rows than a batch may have"), "{error}");
    }
}
