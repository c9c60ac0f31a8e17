//! Tokens of a filter into a tree.

use super::token::{Token, tokens, wrong};
use crate::{Error, Result};

/// An expression as written, before columns and types are known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Compare { column: Name, relation: Relation, literal: Literal },
    In { column: Name, literals: Vec<Literal> },
    IsNull(Name),
    Holds(Name),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Name {
    pub(super) name: String,
    pub(super) position: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Literal {
    pub(super) value: LiteralValue,
    pub(super) position: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum LiteralValue {
    Integer(i64),
    Number(f64),
    Text(String),
    Boolean(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    /// The same relation with its sides exchanged.
    fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }
}

/// Parentheses and `not` may nest this deep, and so many `and` and `or` may follow each other: the tree is walked
/// by recursion.
const MAX_DEPTH: usize = 100;
const MAX_JOINS: usize = 1000;

/// Parses the whole of `text`.
pub(super) fn parse(text: &str) -> Result<Expression> {
    let tokens = tokens(text)?;
    let end = text.chars().count() + 1;
    let mut parser = Parser { text, tokens, at: 0, end, depth: 0, n_joins: 0 };
    let expression = parser.either()?;
    match parser.peek() {
        None => Ok(expression),
        Some(_) => Err(parser.expected("`and`, `or` or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token)>,
    at: usize,
    end: usize,
    depth: usize,
    n_joins: usize,
}

impl Parser<'_> {
    fn either(&mut self) -> Result<Expression> {
        let mut left = self.both()?;
        while self.take_join("or")? {
            left = Expression::Or(Box::new(left), Box::new(self.both()?));
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Expression> {
        let mut left = self.single()?;
        while self.take_join("and")? {
            left = Expression::And(Box::new(left), Box::new(self.single()?));
        }
        Ok(left)
    }

    fn single(&mut self) -> Result<Expression> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(wrong(self.text, self.position(), "the expression nests too deeply"));
        }
        let expression = if self.take_word("not") {
            Expression::Not(Box::new(self.single()?))
        } else if self.take(&Token::Open) {
            let inner = self.either()?;
            if !self.take(&Token::Close) {
                return Err(self.expected("`)`"));
            }
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn test(&mut self) -> Result<Expression> {
        if let Some(literal) = self.literal() {
            let Some(relation) = self.relation() else { return Err(self.expected("a comparison")) };
            let column = self.name()?;
            return Ok(Expression::Compare { column, relation: relation.flipped(), literal });
        }
        let column = self.name()?;
        if let Some(relation) = self.relation() {
            let literal = self.value()?;
            return Ok(Expression::Compare { column, relation, literal });
        }
        if self.take_word("is") {
            let negated = self.take_word("not");
            if !self.take_word("null") {
                return Err(self.expected("`null`"));
            }
            return Ok(negate(negated, Expression::IsNull(column)));
        }
        let negated = self.take_word("not");
        if self.take_word("in") {
            let literals = self.values()?;
            // As `!=`, `not in` is false for null.
            let is_in = Expression::In { column: column.clone(), literals };
            let known = Expression::Not(Box::new(Expression::IsNull(column)));
            return Ok(match negated {
                false => is_in,
                true => Expression::And(Box::new(known), Box::new(Expression::Not(Box::new(is_in)))),
            });
        }
        if negated { Err(self.expected("`in`")) } else { Ok(Expression::Holds(column)) }
    }

    fn values(&mut self) -> Result<Vec<Literal>> {
        if !self.take(&Token::Open) {
            return Err(self.expected("`(`"));
        }
        let mut literals = vec![self.value()?];
        while self.take(&Token::Comma) {
            literals.push(self.value()?);
        }
        if self.take(&Token::Close) { Ok(literals) } else { Err(self.expected("`,` or `)`")) }
    }

    fn value(&mut self) -> Result<Literal> {
        if let Some(literal) = self.literal() {
            return Ok(literal);
        }
        let error = self.expected("a value");
        match self.peek() {
            Some(Token::Word(word)) if word == "null" => Err(error.hint("ask `is null`")),
            Some(Token::Word(word)) => {
                let hint = format!("write \"{word}\" for text; columns cannot be compared with each other");
                Err(error.hint(hint))
            }
            _ => Err(error),
        }
    }

    fn literal(&mut self) -> Option<Literal> {
        let position = self.position();
        let value = match self.peek()? {
            Token::Literal(value) => value.clone(),
            Token::Word(word) if word.eq_ignore_ascii_case("true") => LiteralValue::Boolean(true),
            Token::Word(word) if word.eq_ignore_ascii_case("false") => LiteralValue::Boolean(false),
            _ => return None,
        };
        self.at += 1;
        Some(Literal { value, position })
    }

    fn name(&mut self) -> Result<Name> {
        const RESERVED: [&str; 6] = ["and", "or", "not", "in", "is", "null"];
        let position = self.position();
        let name = match self.peek() {
            Some(Token::Word(word)) if !RESERVED.contains(&word.to_ascii_lowercase().as_str()) => {
                word.clone()
            }
            Some(Token::Quoted(name)) => name.clone(),
            _ => return Err(self.expected("a column")),
        };
        self.at += 1;
        Ok(Name { name, position })
    }

    fn relation(&mut self) -> Option<Relation> {
        let Some(Token::Relation(relation)) = self.peek() else { return None };
        let relation = *relation;
        self.at += 1;
        Some(relation)
    }

    fn take_join(&mut self, word: &str) -> Result<bool> {
        let found = self.take_word(word);
        self.n_joins += usize::from(found);
        if self.n_joins > MAX_JOINS {
            let error = wrong(self.text, self.position(), "the expression is too long");
            return Err(error.hint("use `in (…)`, or a column made for the purpose"));
        }
        Ok(found)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(found)) if found.eq_ignore_ascii_case(word));
        self.at += usize::from(found);
        found
    }

    fn take(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn position(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |(position, _)| *position)
    }

    fn expected(&self, what: &str) -> Error {
        let found = match self.peek() {
            None => "the end",
            Some(_) => "something else",
        };
        wrong(self.text, self.position(), format!("expected {what}, found {found}"))
    }
}

fn negate(negated: bool, expression: Expression) -> Expression {
    if negated { Expression::Not(Box::new(expression)) } else { expression }
}
