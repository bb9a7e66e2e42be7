//! Everything that a caller can see of what was read, as one text.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use moeprof_trace::{KinetoFile, TraceError};

/// What a caller can see of an outcome; in how many batches a table comes does not count.
pub fn outcome(result: &Result<KinetoFile, TraceError>) -> String {
    match result {
        Ok(file) => {
            let device = file.device_args.to_batches().unwrap();
            let tables = [&file.events, &device].map(|table| rows(table));
            let rest = (&file.names, &file.tracks, &file.collective_args, &file.labels);
            let lists = (&file.categories, &file.phases, &file.event_counts, &file.notices);
            format!("{tables:?} {} {lists:?} {} {} {}", show(rest), file.metadata_json, file.partial, file.bytes_read)
        }
        Err(error) => format!("{} {:?} {}", error.slug(), error.position(), error.message()),
    }
}

fn show(batches: (&RecordBatch, &RecordBatch, &RecordBatch, &RecordBatch)) -> String {
    let (names, tracks, collectives, labels) = batches;
    [names, tracks, collectives, labels].map(|batch| rows(std::slice::from_ref(batch)).join(";")).join("|")
}

/// Every value of every column, as text.
pub fn rows(batches: &[RecordBatch]) -> Vec<String> {
    let schema = batches[0].schema();
    let column = |name: &str| -> String {
        let cells = batches.iter().flat_map(|batch| {
            let column = batch.column_by_name(name).unwrap();
            (0..batch.num_rows()).map(|row| cell(column, row)).collect::<Vec<_>>()
        });
        cells.collect::<Vec<_>>().join(",")
    };
    schema.fields().iter().map(|field| format!("{field:?}: {}", column(field.name()))).collect()
}

fn cell(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return "null".to_owned();
    }
    match column.data_type() {
        DataType::UInt8 => column.as_primitive::<UInt8Type>().value(row).to_string(),
        DataType::UInt16 => column.as_primitive::<UInt16Type>().value(row).to_string(),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Utf8 => format!("{:?}", column.as_string::<i32>().value(row)),
        DataType::Utf8View => format!("{:?}", column.as_string_view().value(row)),
        other => panic!("a column of {other}"),
    }
}
