//! Formats that people give for traces, by their first bytes.

use crate::error::Failure;

const NSIGHT: &str = "Nsight Systems exports are not read yet";
const PACKED: &str = "of compressed files only gzip is read";
const OTHER: &str = "not a Kineto trace in JSON";

/// First bytes, name, what a file of the format is, and what follows from that.
const FORMATS: [(&[u8], &str, &str, &str); 17] = [
    (b"SQLite format 3\0", "SQLite", "an SQLite database", NSIGHT),
    (b"PAR1", "Parquet", "a Parquet file", NSIGHT),
    (b"ARROW1", "Arrow", "an Arrow file", NSIGHT),
    (b"\xff\xff\xff\xff", "Arrow", "an Arrow stream", NSIGHT),
    (b"NVIDIA Tegra Profiler Report", "nsys-rep", "an Nsight Systems report", NSIGHT),
    (b"NVIDIA Nsight Systems Stream", "qdstrm", "an Nsight Systems stream", NSIGHT),
    (b"\x1f\x8b", "gzip", "gzip inside gzip", "unpack it once"),
    (b"PK\x03\x04", "zip", "a zip archive", PACKED),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd-compressed data", PACKED),
    (b"\x04\x22\x4d\x18", "lz4", "lz4-compressed data", PACKED),
    (b"BZh", "bzip2", "bzip2-compressed data", PACKED),
    (b"\xfd7zXZ\0", "xz", "xz-compressed data", PACKED),
    (b"7z\xbc\xaf\x27\x1c", "7z", "a 7z archive", PACKED),
    (b"\x7fELF", "ELF", "a program", OTHER),
    (b"\x89HDF", "HDF5", "an HDF5 file", OTHER),
    (b"\x89PNG", "PNG", "a PNG image", OTHER),
    (b"%PDF", "PDF", "a PDF document", OTHER),
];

/// Returns the refusal of a text that is of a known format.
pub(crate) fn recognise(window: &[u8]) -> Option<Failure> {
    let (_, format, what, but) = FORMATS.iter().find(|(magic, ..)| window.starts_with(magic))?;
    Some(Failure::Unsupported(format, format!("{what}; {but}")))
}
