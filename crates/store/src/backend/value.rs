//! Values that go into a statement and come out of a row.

use std::error::Error;

use bytes::BytesMut;
use rusqlite::types::{ToSqlOutput, Value as SqliteValue, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::error::StoreError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SqlValue {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl SqlValue {
    /// A structure that is kept as JSON text.
    pub(crate) fn json(value: &impl Serialize) -> Result<Self, StoreError> {
        Ok(Self::Text(serde_json::to_string(value)?))
    }
}

impl From<&str> for SqlValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SqlValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for SqlValue {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u32> for SqlValue {
    fn from(number: u32) -> Self {
        Self::Int(i64::from(number))
    }
}

impl From<u64> for SqlValue {
    fn from(number: u64) -> Self {
        // Ordinals, epochs and counts: nothing here comes near the limit.
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for SqlValue {
    fn from(flag: bool) -> Self {
        Self::Int(i64::from(flag))
    }
}

impl From<Vec<u8>> for SqlValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<T: Into<SqlValue>> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl rusqlite::ToSql for SqlValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(SqliteValue::Null),
            Self::Int(number) => ToSqlOutput::Owned(SqliteValue::Integer(*number)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

impl ToSql for SqlValue {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) if *kind == Type::INT4 => i32::try_from(*number)?.to_sql(kind, out),
            Self::Int(number) => number.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // The schema has only these types, and the statements are our own.
        true
    }

    to_sql_checked!();
}

/// The values of one row, in the order of the statement.
#[derive(Debug)]
pub(crate) struct SqlRow(Vec<SqlValue>);

impl SqlRow {
    pub(crate) fn new(values: Vec<SqlValue>) -> Self {
        Self(values)
    }

    fn wrong(&self, column: usize, wanted: &str) -> StoreError {
        StoreError::Damaged(format!("column {column} is no {wanted}: {:?}", self.0.get(column)))
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64, StoreError> {
        match self.0.get(column) {
            Some(SqlValue::Int(number)) => Ok(*number),
            _ => Err(self.wrong(column, "number")),
        }
    }

    pub(crate) fn unsigned(&self, column: usize) -> Result<u64, StoreError> {
        u64::try_from(self.int(column)?).map_err(|_| self.wrong(column, "positive number"))
    }

    pub(crate) fn small(&self, column: usize) -> Result<u32, StoreError> {
        u32::try_from(self.int(column)?).map_err(|_| self.wrong(column, "small number"))
    }

    pub(crate) fn flag(&self, column: usize) -> Result<bool, StoreError> {
        Ok(self.int(column)? != 0)
    }

    pub(crate) fn text(&self, column: usize) -> Result<String, StoreError> {
        match self.0.get(column) {
            Some(SqlValue::Text(text)) => Ok(text.clone()),
            _ => Err(self.wrong(column, "text")),
        }
    }

    pub(crate) fn bytes(&self, column: usize) -> Result<Vec<u8>, StoreError> {
        match self.0.get(column) {
            Some(SqlValue::Bytes(bytes)) => Ok(bytes.clone()),
            _ => Err(self.wrong(column, "sequence of bytes")),
        }
    }

    fn is_null(&self, column: usize) -> bool {
        matches!(self.0.get(column), Some(SqlValue::Null))
    }

    pub(crate) fn maybe_int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        if self.is_null(column) { Ok(None) } else { self.int(column).map(Some) }
    }

    pub(crate) fn maybe_text(&self, column: usize) -> Result<Option<String>, StoreError> {
        if self.is_null(column) { Ok(None) } else { self.text(column).map(Some) }
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, column: usize) -> Result<T, StoreError> {
        Ok(serde_json::from_str(&self.text(column)?)?)
    }

    pub(crate) fn maybe_json<T: DeserializeOwned>(&self, column: usize) -> Result<Option<T>, StoreError> {
        self.maybe_text(column)?.map(|text| Ok(serde_json::from_str(&text)?)).transpose()
    }
}
