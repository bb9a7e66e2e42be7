//! Reads the tables of Nsight Systems exports into Arrow columns, straight from the pages of the `SQLite` file.
//!
//! An export is a plain heap of tables without indexes, of which a profile wants most rows of a few columns. The file
//! format is public and fixed, so the rows are decoded from the pages where they lie, side by side on several threads;
//! nothing is written, no lock is taken, and no C library is needed. What the columns mean is the caller's affair:
//! exports differ by version, and a column that is not there is simply not returned.

mod columns;
mod database;
mod error;
mod pages;
mod record;
mod schema;
mod source;

pub use crate::database::{Database, TableColumns};
pub use crate::error::NsysError;
