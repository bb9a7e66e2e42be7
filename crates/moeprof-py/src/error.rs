//! Errors of the reader as Python exceptions, variant by variant.

use std::path::Path;

use moeprof_nsys::NsysError;
use moeprof_trace::TraceError;
use pyo3::exceptions::{PyException, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

/// `moeprof._native.TraceFormatError`.
///
/// A class made at run time: the stable interface of Python 3.11 does not allow native classes that extend an exception.
pub(crate) struct TraceFormatError;

const DOC: &std::ffi::CStr =
    c"A file that is not a well-formed trace: ``slug``, ``message``, ``path``, ``line`` (from 1), ``byte`` (from 0).";
const ATTRIBUTES: [&str; 5] = ["slug", "message", "path", "line", "byte"];

impl TraceFormatError {
    pub(crate) fn class(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let class = CLASS.get_or_try_init(py, || {
            let members = PyDict::new(py);
            let property = py.import("builtins")?.getattr("property")?;
            let getter = py.import("operator")?.getattr("attrgetter")?;
            for name in ATTRIBUTES {
                let hidden = format!("_{name}");
                members.set_item(name, property.call1((getter.call1((&hidden,))?,))?)?;
                let default = if matches!(name, "line" | "byte") { None } else { Some("") };
                members.set_item(hidden, default)?;
            }
            let base = py.get_type::<PyException>();
            // `new_type` lets go of the dict before it is used, so a reference is kept here.
            let dict = members.clone().into_any().unbind();
            let class = PyErr::new_type(py, c"moeprof._native.TraceFormatError", Some(DOC), Some(&base), Some(dict));
            drop(members);
            class
        })?;
        Ok(class.bind(py).clone())
    }

    fn instance(py: Python<'_>, fault: &Fault<'_>) -> PyResult<PyErr> {
        let value = Self::class(py)?.call1((&fault.text,))?;
        value.setattr("_slug", fault.slug)?;
        value.setattr("_message", &fault.message)?;
        value.setattr("_path", text(fault.path))?;
        value.setattr("_line", fault.line)?;
        value.setattr("_byte", fault.byte)?;
        Ok(PyErr::from_value(value))
    }
}

/// What an error of either reader says.
struct Fault<'a> {
    text: String,
    slug: &'static str,
    message: String,
    path: &'a Path,
    line: Option<u64>,
    byte: Option<u64>,
}

fn text(path: &Path) -> &std::ffi::OsStr {
    path.as_os_str()
}

/// Maps an error: the system's become subclasses of `OSError` with a file name, all others `TraceFormatError`.
pub(crate) fn to_python(py: Python<'_>, error: &TraceError) -> PyErr {
    if let TraceError::Io { path, source } = error {
        return of_system(py, path, source);
    }
    let position = error.position();
    let fault = Fault {
        text: error.to_string(),
        slug: error.slug(),
        message: error.message(),
        path: error.path(),
        line: position.map(|at| at.line),
        byte: position.map(|at| at.byte),
    };
    TraceFormatError::instance(py, &fault).unwrap_or_else(|failure| failure)
}

/// Maps an error of the reader of nsys exports, by the same rule.
pub(crate) fn of_nsys(py: Python<'_>, error: &NsysError) -> PyErr {
    if let NsysError::Io { path, source } = error {
        return of_system(py, path, source);
    }
    let fault = Fault {
        text: error.to_string(),
        slug: error.slug(),
        message: error.message(),
        path: error.path(),
        line: None,
        byte: error.byte(),
    };
    TraceFormatError::instance(py, &fault).unwrap_or_else(|failure| failure)
}

fn of_system(py: Python<'_>, path: &Path, source: &std::io::Error) -> PyErr {
    let path = text(path).to_os_string();
    match source.raw_os_error() {
        // OSError picks its subclass by the number.
        Some(code) => match py.import("os").and_then(|os| os.call_method1("strerror", (code,))) {
            Ok(reason) => PyOSError::new_err((code, reason.unbind(), path)),
            Err(failure) => failure,
        },
        None => PyOSError::new_err((None::<i32>, source.to_string(), path)),
    }
}

/// The reader itself has failed, which no file should bring about.
pub(crate) fn failed() -> PyErr {
    PyRuntimeError::new_err("the reader itself has failed; that is a fault of moeprof: please report it with the file")
}
