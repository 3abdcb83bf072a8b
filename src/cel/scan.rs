//! Owns the token level of expressions: where a token starts and ends, where a
//! `${` placeholder closes, and the fence every source must pass before the CEL
//! parser sees it.
//!
//! The fence is what makes the parser safe to call on hostile text. The parser
//! recurses on ternaries, and its tree is cloned and dropped recursively, so
//! four thousand characters of `-!-!` or `a?b:` would cost stack in proportion.
//! Here the depth of the tree is bounded from the tokens, in one loop without
//! recursion. String rules must stay those of the parser's lexer, or the two
//! would disagree on what is text and what is nesting.

pub(super) const MAX_CHARACTERS: usize = 4096;
/// More than the depth accepted after parsing: this bound counts generously.
const MAX_TOKEN_DEPTH: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
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
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

/// Splits CEL source into tokens; never fails, marks what it cannot read.
pub(super) struct Scanner<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(source: &'a str) -> Self {
        Scanner { source, at: 0 }
    }

    fn byte(&self, index: usize) -> u8 {
        // NUL is in no token class, so the end needs no case of its own.
        self.source.as_bytes().get(index).copied().unwrap_or(0)
    }

    fn skip_blank(&mut self) {
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

    fn run_end(&self, start: usize) -> usize {
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

    fn text(&self, open: usize, raw: bool, kind: Kind) -> (Kind, usize) {
        match self.text_end(open, raw) {
            Some(end) => (kind, end),
            None => (Kind::UnterminatedText, self.source.len()),
        }
    }

    fn word(&self, start: usize) -> (Kind, usize) {
        let end = self.run_end(start);
        if matches!(self.byte(end), b'"' | b'\'') {
            match self.source[start..end].to_ascii_lowercase().as_str() {
                "r" => return self.text(end, true, Kind::Text),
                "b" => return self.text(end, false, Kind::Bytes),
                "br" | "rb" => return self.text(end, true, Kind::Bytes),
                _ => {}
            }
        }
        (Kind::Word, end)
    }

    fn number(&self, start: usize) -> (Kind, usize) {
        let mut end = self.run_end(start);
        if self.byte(end) == b'.' && self.byte(end + 1).is_ascii_digit() {
            end = self.run_end(end + 1);
        }
        // In `0br'` the parser would find a raw string where this scanner finds
        // a plain one; no valid expression has a quote here.
        if matches!(self.byte(end), b'"' | b'\'') {
            return (Kind::Unexpected, end);
        }
        (Kind::Number, end)
    }
}

impl Iterator for Scanner<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.skip_blank();
        let start = self.at;
        let character = self.source.get(start..)?.chars().next()?;
        let next = self.byte(start + 1);
        let (kind, end) = match character {
            'a'..='z' | 'A'..='Z' | '_' => self.word(start),
            '0'..='9' => self.number(start),
            '.' if next.is_ascii_digit() => self.number(start),
            '"' | '\'' => self.text(start, false, Kind::Text),
            '(' | '[' | '{' => (Kind::Open, start + 1),
            ')' | ']' | '}' => (Kind::Close, start + 1),
            ',' => (Kind::Comma, start + 1),
            ':' => (Kind::Colon, start + 1),
            '.' => (Kind::Dot, start + 1),
            '?' => (Kind::Question, start + 1),
            '&' if next == b'&' => (Kind::Logic, start + 2),
            '|' if next == b'|' => (Kind::Logic, start + 2),
            '=' | '!' | '<' | '>' if next == b'=' => (Kind::Operator, start + 2),
            '+' | '-' | '*' | '/' | '%' | '!' | '<' | '>' => (Kind::Operator, start + 1),
            other => (Kind::Unexpected, start + other.len_utf8()),
        };
        self.at = end;
        Some(Token { kind, start, end })
    }
}

/// One bracket level, counting what can deepen the tree inside it.
struct Level {
    open: Token,
    ternaries: usize,
    logic: usize,
    operators: usize,
    widest: usize,
    child: usize,
    sealed: usize,
}

impl Level {
    fn new(open: Token) -> Self {
        Level {
            open,
            ternaries: 0,
            logic: 0,
            operators: 0,
            widest: 0,
            child: 0,
            sealed: 0,
        }
    }

    fn logic(&mut self) {
        self.logic += 1;
        self.widest = self.widest.max(self.operators);
        self.operators = 0;
    }

    /// Ends one element of a list, map or argument list. Operators chain to the
    /// left, so everything in an element may end up below all its operators.
    fn seal(&mut self) {
        // A balanced tree of n terms, once for `&&` and once for `||`.
        let balanced = 2 * (usize::BITS - self.logic.leading_zeros()) as usize;
        let operators = self.widest.max(self.operators);
        self.sealed = self
            .sealed
            .max(self.ternaries + balanced + operators + self.child);
        (self.ternaries, self.logic, self.operators) = (0, 0, 0);
        (self.widest, self.child) = (0, 0);
    }
}

/// Tokens of a source that the parser can be trusted with.
pub(super) fn fence(source: &str) -> Result<Vec<Token>, String> {
    if source.len() > MAX_CHARACTERS && source.chars().count() > MAX_CHARACTERS {
        return Err(at(
            source,
            0,
            &format!("expression is longer than {MAX_CHARACTERS} characters"),
        ));
    }
    let mut tokens: Vec<Token> = Vec::new();
    let root = Token {
        kind: Kind::Open,
        start: 0,
        end: 0,
    };
    let mut level = Level::new(root);
    let mut outer: Vec<Level> = Vec::new();
    for token in Scanner::new(source) {
        let fail = |message: &str| Err(at(source, token.start, message));
        let text = &source[token.start..token.end];
        match token.kind {
            Kind::Word | Kind::Number | Kind::Text | Kind::Colon => {}
            Kind::Bytes => return fail("bytes literals are not supported"),
            Kind::UnterminatedText => return fail("string is not closed"),
            Kind::Unexpected if text == "=" => return fail("unexpected `=`, compare with `==`"),
            Kind::Unexpected => return fail(&format!("unexpected `{text}`")),
            Kind::Open if text == "{" && follows_name(source, tokens.last()) => {
                return fail("struct literals are not supported");
            }
            Kind::Open => outer.push(std::mem::replace(&mut level, Level::new(token))),
            Kind::Close => {
                let opened = &source[level.open.start..level.open.end];
                if !matches!((opened, text), ("(", ")") | ("[", "]") | ("{", "}")) {
                    return fail(&format!("unexpected `{text}`"));
                }
                level.seal();
                let depth = level.sealed + 1;
                // A matched bracket was opened, so its outer level is there.
                level = outer.pop().unwrap_or(Level::new(root));
                level.child = level.child.max(depth);
            }
            Kind::Comma => level.seal(),
            Kind::Question => level.ternaries += 1,
            Kind::Logic => level.logic(),
            Kind::Dot | Kind::Operator => level.operators += 1,
        }
        tokens.push(token);
    }
    if level.open.end > 0 {
        let opened = &source[level.open.start..level.open.end];
        let message = format!("`{opened}` is not closed");
        return Err(at(source, level.open.start, &message));
    }
    level.seal();
    if level.sealed > MAX_TOKEN_DEPTH {
        return Err(at(source, 0, "expression is nested too deeply"));
    }
    if tokens.is_empty() {
        return Err(at(source, 0, "expression is empty"));
    }
    Ok(tokens)
}

/// Whether the last token names something that `{` would build.
fn follows_name(source: &str, last: Option<&Token>) -> bool {
    last.is_some_and(|last| last.kind == Kind::Word && &source[last.start..last.end] != "in")
}

/// Length of the expression that `text` opens with, up to the `}` that closes
/// its placeholder; `None` when nothing closes it.
pub(super) fn placeholder(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for token in Scanner::new(text) {
        // Whatever is wrong between is reported when the expression is checked;
        // a brace inside a string is part of a longer token.
        match &text[token.start..token.end] {
            "{" => depth += 1,
            "}" if depth == 0 => return Some(token.start),
            "}" => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Prefixes a message with the place of a byte offset, counted in characters.
pub(super) fn at(source: &str, offset: usize, message: &str) -> String {
    let before = source.get(..offset).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before[start..].chars().count() + 1;
    // A quoted token may span lines; a message may not.
    let message = message.replace(['\n', '\r'], " ");
    if line == 1 {
        format!("column {column}: {message}")
    } else {
        format!("line {line}, column {column}: {message}")
    }
}
