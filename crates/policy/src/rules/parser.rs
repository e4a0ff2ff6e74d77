//! Rule files as statements: calls and assignments of constants, the subset of Starlark that needs no evaluation.

use std::collections::HashMap;

use super::lexer::{RuleToken, tokens};
use super::{Fault, SourcePosition};

/// Limit of nesting.
const MAX_DEPTH: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    None,
    Text(String),
    List(Vec<Value>),
}

impl Value {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
        }
    }
}

/// A call with its arguments as written.
#[derive(Debug)]
pub(super) struct RuleCall {
    pub(super) name: String,
    pub(super) place: SourcePosition,
    pub(super) arguments: Vec<Argument>,
}

#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: Option<String>,
    pub(super) place: SourcePosition,
    pub(super) value: Value,
}

pub(super) fn parse(text: &str) -> Result<Vec<RuleCall>, Fault> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, constants: HashMap::new() };
    let mut calls = Vec::new();
    loop {
        match parser.next() {
            (RuleToken::End, _) => return Ok(calls),
            (RuleToken::StatementEnd, _) => {}
            (RuleToken::Name(name), place) => match parser.next() {
                (RuleToken::Open('('), _) => {
                    let arguments = parser.arguments()?;
                    parser.statement_end()?;
                    calls.push(RuleCall { name, place, arguments });
                }
                (RuleToken::Equals, _) => {
                    let value = parser.expression(0)?;
                    parser.statement_end()?;
                    parser.assign(name, place, value)?;
                }
                (other, place) => return Err(unexpected(&other, place, "`(` or `=`")),
            },
            (other, place) => return Err(unexpected(&other, place, "a rule")),
        }
    }
}

struct Parser {
    tokens: Vec<(RuleToken, SourcePosition)>,
    at: usize,
    constants: HashMap<String, Value>,
}

impl Parser {
    /// Stays at the last token, the end of the file.
    fn next(&mut self) -> (RuleToken, SourcePosition) {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn peek(&self) -> &RuleToken {
        &self.tokens[self.at].0
    }

    fn peek_second(&self) -> Option<&RuleToken> {
        self.tokens.get(self.at + 1).map(|(token, _)| token)
    }

    fn place(&self) -> SourcePosition {
        self.tokens[self.at].1
    }

    fn statement_end(&mut self) -> Result<(), Fault> {
        match self.next() {
            (RuleToken::StatementEnd | RuleToken::End, _) => Ok(()),
            (other, place) => Err(unexpected(&other, place, "the end of the line")),
        }
    }

    fn assign(&mut self, name: String, place: SourcePosition, value: Value) -> Result<(), Fault> {
        if self.constants.contains_key(&name) {
            return Err(Fault::at(place, format!("`{name}` has a value already")));
        }
        self.constants.insert(name, value);
        Ok(())
    }

    fn arguments(&mut self) -> Result<Vec<Argument>, Fault> {
        let mut arguments: Vec<Argument> = Vec::new();
        loop {
            if *self.peek() == RuleToken::Close(')') {
                self.next();
                return Ok(arguments);
            }
            let place = self.place();
            let name = match (self.peek().clone(), self.peek_second()) {
                (RuleToken::Name(name), Some(RuleToken::Equals)) => {
                    self.at += 2;
                    Some(name)
                }
                _ => None,
            };
            if name.is_none() && arguments.iter().any(|argument| argument.name.is_some()) {
                return Err(Fault::at(place, "an argument without a name comes after one with a name"));
            }
            let value = self.expression(0)?;
            arguments.push(Argument { name, place, value });
            self.separator(')')?;
        }
    }

    /// A comma, or the closing bracket, which is not consumed.
    fn separator(&mut self, close: char) -> Result<(), Fault> {
        match self.peek() {
            RuleToken::Close(found) if *found == close => Ok(()),
            RuleToken::Comma => {
                self.next();
                Ok(())
            }
            other => Err(unexpected(other, self.place(), &format!("`,` or `{close}`"))),
        }
    }

    fn expression(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut value = self.operand(depth)?;
        while *self.peek() == RuleToken::Plus {
            let (_, place) = self.next();
            value = match (value, self.operand(depth)?) {
                (Value::Text(first), Value::Text(second)) => Value::Text(first + &second),
                (Value::List(mut first), Value::List(second)) => {
                    first.extend(second);
                    Value::List(first)
                }
                (first, second) => {
                    let (first, second) = (first.kind(), second.kind());
                    return Err(Fault::at(place, format!("{first} and {second} cannot be joined")));
                }
            };
        }
        Ok(value)
    }

    fn operand(&mut self, depth: usize) -> Result<Value, Fault> {
        if depth > MAX_DEPTH {
            return Err(Fault::at(self.place(), "this is nested too deeply"));
        }
        match self.next() {
            (RuleToken::Text(text), _) => Ok(Value::Text(text)),
            (RuleToken::Name(name), place) => match (name.as_str(), self.constants.get(&name)) {
                ("None", _) => Ok(Value::None),
                (_, Some(value)) => Ok(value.clone()),
                _ => Err(Fault::at(place, format!("`{name}` has no value"))),
            },
            (RuleToken::Open('('), _) => {
                let value = self.expression(depth + 1)?;
                match self.next() {
                    (RuleToken::Close(')'), _) => Ok(value),
                    (other, place) => Err(unexpected(&other, place, "`)`")),
                }
            }
            (RuleToken::Open(_), _) => self.list(depth),
            (other, place) => Err(unexpected(&other, place, "a string or a list")),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut values = Vec::new();
        while *self.peek() != RuleToken::Close(']') {
            values.push(self.expression(depth + 1)?);
            self.separator(']')?;
        }
        self.next();
        Ok(Value::List(values))
    }
}

fn unexpected(found: &RuleToken, place: SourcePosition, wanted: &str) -> Fault {
    Fault::at(place, format!("expected {wanted}, found {}", found.describe()))
}
