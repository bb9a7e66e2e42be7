//! Strings by their spelling in the file: escapes are decoded once for each new spelling.

use std::borrow::Cow;

use crate::error::Position;
use crate::intern::Interner;
use crate::json::{Kind, Scalar};
use crate::text::decode;

/// What an event's values are read from.
pub(crate) struct Context<'a> {
    pub(crate) window: &'a [u8],
    pub(crate) place: &'a dyn Fn(usize) -> Position,
}

impl Context<'_> {
    #[inline]
    pub(crate) fn raw(&self, value: &Scalar) -> &[u8] {
        self.window.get(value.start..value.end).unwrap_or_default()
    }

    /// The bytes of a value's text, which are valid UTF-8.
    #[inline]
    pub(crate) fn bytes(&self, value: &Scalar) -> Cow<'_, [u8]> {
        if value.kind == Kind::Coded {
            let mut text = String::new();
            decode(self.raw(value), &mut text);
            return Cow::Owned(text.into_bytes());
        }
        Cow::Borrowed(self.raw(value))
    }

    pub(crate) fn text(&self, value: &Scalar) -> String {
        String::from_utf8_lossy(&self.bytes(value)).into_owned()
    }
}

/// Texts and their codes.
#[derive(Debug, Default)]
pub(crate) struct Spellings {
    /// The plain string before this one; categories and phases come in runs.
    last: (Vec<u8>, Option<u32>),
    pub(crate) texts: Interner,
    /// Codes of the spellings that are to be decoded.
    escaped_codes: Vec<u32>,
    escaped: Interner,
}

impl Spellings {
    /// Returns the code of a value whose text was met before.
    #[inline]
    pub(crate) fn get(&mut self, context: &Context<'_>, value: &Scalar) -> Option<u32> {
        if value.kind == Kind::Coded {
            return self.get_coded(context, value);
        }
        let raw = context.raw(value);
        if self.last.1.is_some() && self.last.0 == raw {
            return self.last.1;
        }
        let code = self.texts.get(raw)?;
        self.last.0.clear();
        self.last.0.extend_from_slice(raw);
        self.last.1 = Some(code);
        Some(code)
    }

    #[cold]
    fn get_coded(&mut self, context: &Context<'_>, value: &Scalar) -> Option<u32> {
        let raw = context.raw(value);
        if let Some(spelling) = self.escaped.get(raw) {
            return self.escaped_codes.get(spelling as usize).copied();
        }
        let code = self.texts.get(&context.bytes(value))?;
        self.escaped.insert(raw)?;
        self.escaped_codes.push(code);
        Some(code)
    }

    /// Gives a code to a text that may be new; None where there are no more.
    #[cold]
    pub(crate) fn add(&mut self, context: &Context<'_>, value: &Scalar) -> Option<u32> {
        self.texts.insert(&context.bytes(value))
    }

    pub(crate) fn list(&self) -> Vec<String> {
        self.texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    }
}
