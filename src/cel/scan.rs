//! Splits expressions into tokens, finds the end of a `${` placeholder, and
//! bounds the depth of a source before the CEL parser runs on it.
//!
//! The bound makes the parser safe on hostile text. The parser recurses on
//! ternaries, and its tree is cloned and dropped recursively, so four thousand
//! characters of `-!-!` or `a?b:` would overflow the stack. `tokenize` bounds
//! the depth of the tree from the tokens, without recursion. String rules must
//! equal those of the parser's lexer, or the two would disagree on nesting.

pub(super) const MAX_CHARACTERS: usize = 4096;
/// Higher than the depth accepted after parsing, because this bound overestimates.
const MAX_TOKEN_DEPTH: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TokenKind {
    Word,
    Number,
    Text,
    Bytes,
    Open,
    Close,
    Comma,
    Colon,
    Dot,
    Question,
    /// `&&` and `||`, which the parser turns into balanced trees.
    Logic,
    Operator,
    UnterminatedText,
    Unexpected,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub start: usize,
    pub end: usize,
}

/// Splits CEL source into tokens. Unknown characters become `Unexpected` tokens.
pub(super) struct Scanner<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(source: &'a str) -> Self {
        Scanner { source, at: 0 }
    }

    fn byte(&self, index: usize) -> u8 {
        // NUL belongs to no token class, so it can stand for the end.
        self.source.as_bytes().get(index).copied().unwrap_or(0)
    }

    fn skip_whitespace_and_comments(&mut self) {
        loop {
            match self.byte(self.at) {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0B | 0x0C => self.at += 1,
                b'/' if self.byte(self.at + 1) == b'/' => {
                    let rest = &self.source.as_bytes()[self.at..];
                    let line = rest.iter().position(|byte| *byte == b'\n');
                    self.at += line.map_or(rest.len(), |end| end + 1);
                }
                _ => return,
            }
        }
    }

    fn word_end(&self, start: usize) -> usize {
        let mut end = start;
        while self.byte(end).is_ascii_alphanumeric() || self.byte(end) == b'_' {
            end += 1;
        }
        end
    }

    /// End of the string whose opening quote is at `open`, if it is closed.
    fn text_end(&self, open: usize, raw: bool) -> Option<usize> {
        let quote = self.byte(open);
        let triple = self.byte(open + 1) == quote && self.byte(open + 2) == quote;
        let mut at = open + if triple { 3 } else { 1 };
        while at < self.source.len() {
            let byte = self.byte(at);
            if byte == b'\\' && !raw {
                at += 2;
            } else if byte != quote {
                at += 1;
            } else if !triple {
                return Some(at + 1);
            } else if self.byte(at + 1) == quote && self.byte(at + 2) == quote {
                return Some(at + 3);
            } else {
                at += 1;
            }
        }
        None
    }

    fn text(&self, open: usize, raw: bool, kind: TokenKind) -> (TokenKind, usize) {
        match self.text_end(open, raw) {
            Some(end) => (kind, end),
            None => (TokenKind::UnterminatedText, self.source.len()),
        }
    }

    fn word(&self, start: usize) -> (TokenKind, usize) {
        let end = self.word_end(start);
        if matches!(self.byte(end), b'"' | b'\'') {
            match self.source[start..end].to_ascii_lowercase().as_str() {
                "r" => return self.text(end, true, TokenKind::Text),
                "b" => return self.text(end, false, TokenKind::Bytes),
                "br" | "rb" => return self.text(end, true, TokenKind::Bytes),
                _ => {}
            }
        }
        (TokenKind::Word, end)
    }

    fn number(&self, start: usize) -> (TokenKind, usize) {
        let mut end = self.word_end(start);
        if self.byte(end) == b'.' && self.byte(end + 1).is_ascii_digit() {
            end = self.word_end(end + 1);
        }
        // In `0br'` the parser sees a raw string where this scanner would see a
        // plain one. No valid expression has a quote here.
        if matches!(self.byte(end), b'"' | b'\'') {
            return (TokenKind::Unexpected, end);
        }
        (TokenKind::Number, end)
    }
}

impl Iterator for Scanner<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.skip_whitespace_and_comments();
        let start = self.at;
        let character = self.source.get(start..)?.chars().next()?;
        let next = self.byte(start + 1);
        let (kind, end) = match character {
            'a'..='z' | 'A'..='Z' | '_' => self.word(start),
            '0'..='9' => self.number(start),
            '.' if next.is_ascii_digit() => self.number(start),
            '"' | '\'' => self.text(start, false, TokenKind::Text),
            '(' | '[' | '{' => (TokenKind::Open, start + 1),
            ')' | ']' | '}' => (TokenKind::Close, start + 1),
            ',' => (TokenKind::Comma, start + 1),
            ':' => (TokenKind::Colon, start + 1),
            '.' => (TokenKind::Dot, start + 1),
            '?' => (TokenKind::Question, start + 1),
            '&' if next == b'&' => (TokenKind::Logic, start + 2),
            '|' if next == b'|' => (TokenKind::Logic, start + 2),
            '=' | '!' | '<' | '>' if next == b'=' => (TokenKind::Operator, start + 2),
            '+' | '-' | '*' | '/' | '%' | '!' | '<' | '>' => (TokenKind::Operator, start + 1),
            other => (TokenKind::Unexpected, start + other.len_utf8()),
        };
        self.at = end;
        Some(Token { kind, start, end })
    }
}

/// One bracket level, with counts of everything that deepens the tree inside it.
struct Level {
    open: Token,
    ternaries: usize,
    logic: usize,
    operators: usize,
    operators_max: usize,
    nested_depth: usize,
    depth_max: usize,
}

impl Level {
    fn new(open: Token) -> Self {
        Level {
            open,
            ternaries: 0,
            logic: 0,
            operators: 0,
            operators_max: 0,
            nested_depth: 0,
            depth_max: 0,
        }
    }

    fn logic(&mut self) {
        self.logic += 1;
        self.operators_max = self.operators_max.max(self.operators);
        self.operators = 0;
    }

    /// Ends one element of a list, map or argument list. Operators associate to the
    /// left, so any part of an element may be nested below all its operators.
    fn end_element(&mut self) {
        // The height of a balanced tree, once for `&&` and once for `||`.
        let balanced = 2 * (usize::BITS - self.logic.leading_zeros()) as usize;
        let operators = self.operators_max.max(self.operators);
        self.depth_max = self
            .depth_max
            .max(self.ternaries + balanced + operators + self.nested_depth);
        (self.ternaries, self.logic, self.operators) = (0, 0, 0);
        (self.operators_max, self.nested_depth) = (0, 0);
    }
}

/// The tokens of a source that is safe to parse.
pub(super) fn tokenize(source: &str) -> Result<Vec<Token>, String> {
    if source.len() > MAX_CHARACTERS && source.chars().count() > MAX_CHARACTERS {
        return Err(with_position(
            source,
            0,
            &format!("expression is longer than {MAX_CHARACTERS} characters"),
        ));
    }
    let mut tokens: Vec<Token> = Vec::new();
    let root = Token {
        kind: TokenKind::Open,
        start: 0,
        end: 0,
    };
    let mut level = Level::new(root);
    let mut outer: Vec<Level> = Vec::new();
    for token in Scanner::new(source) {
        let fail = |message: &str| Err(with_position(source, token.start, message));
        let text = &source[token.start..token.end];
        match token.kind {
            TokenKind::Word | TokenKind::Number | TokenKind::Text | TokenKind::Colon => {}
            TokenKind::Bytes => return fail("bytes literals are not supported"),
            TokenKind::UnterminatedText => return fail("string is not closed"),
            TokenKind::Unexpected if text == "=" => return fail("unexpected `=`, compare with `==`"),
            TokenKind::Unexpected => return fail(&format!("unexpected `{text}`")),
            TokenKind::Open if text == "{" && follows_name(source, tokens.last()) => {
                return fail("struct literals are not supported");
            }
            TokenKind::Open => outer.push(std::mem::replace(&mut level, Level::new(token))),
            TokenKind::Close => {
                let opened = &source[level.open.start..level.open.end];
                if !matches!((opened, text), ("(", ")") | ("[", "]") | ("{", "}")) {
                    return fail(&format!("unexpected `{text}`"));
                }
                level.end_element();
                let depth = level.depth_max + 1;
                level = outer.pop().expect("a matched bracket has an outer level");
                level.nested_depth = level.nested_depth.max(depth);
            }
            TokenKind::Comma => level.end_element(),
            TokenKind::Question => level.ternaries += 1,
            TokenKind::Logic => level.logic(),
            TokenKind::Dot | TokenKind::Operator => level.operators += 1,
        }
        tokens.push(token);
    }
    if level.open.end > 0 {
        let opened = &source[level.open.start..level.open.end];
        let message = format!("`{opened}` is not closed");
        return Err(with_position(source, level.open.start, &message));
    }
    level.end_element();
    if level.depth_max > MAX_TOKEN_DEPTH {
        return Err(with_position(source, 0, "expression is nested too deeply"));
    }
    if tokens.is_empty() {
        return Err(with_position(source, 0, "expression is empty"));
    }
    Ok(tokens)
}

/// Whether the last token is a type name, which makes `{` a struct literal.
fn follows_name(source: &str, last: Option<&Token>) -> bool {
    last.is_some_and(|last| last.kind == TokenKind::Word && &source[last.start..last.end] != "in")
}

/// The length of the expression at the start of `text`, up to the `}` that
/// closes its placeholder. `None` if it is not closed.
pub(super) fn placeholder_length(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for token in Scanner::new(text) {
        // Errors are reported when the expression is checked. A brace inside a
        // string is part of a longer token.
        match &text[token.start..token.end] {
            "{" => depth += 1,
            "}" if depth == 0 => return Some(token.start),
            "}" => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Prefixes a message with the line and column of a byte offset.
pub(super) fn with_position(source: &str, offset: usize, message: &str) -> String {
    let before = source.get(..offset).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before[start..].chars().count() + 1;
    // A quoted token may span lines, but a message must not.
    let message = message.replace(['\n', '\r'], " ");
    if line == 1 {
        format!("column {column}: {message}")
    } else {
        format!("line {line}, column {column}: {message}")
    }
}
