//! Column names of a table, from the text of its `CREATE TABLE`.

/// The columns of a table as its rows store them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Columns {
    /// Names in the order of the stored values.
    pub(crate) names: Vec<String>,
    /// The column that is the row's key, and stored as NULL.
    pub(crate) key: Option<usize>,
    /// Rows lie in an index instead of a table.
    pub(crate) without_rowid: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Quoted(String),
    Open,
    Close,
    Comma,
    Other,
}

impl Token {
    fn is(&self, word: &str) -> bool {
        matches!(self, Self::Word(own) if own.eq_ignore_ascii_case(word))
    }
}

/// Reads the columns; None where the text is no `CREATE TABLE` with a list of columns.
pub(crate) fn columns(sql: &str) -> Option<Columns> {
    let tokens = tokens(sql);
    let open = tokens.iter().position(|token| *token == Token::Open)?;
    let mut depth = 1_usize;
    let mut parts = vec![Vec::new()];
    let mut rest = tokens.get(open + 1..)?.iter();
    for token in rest.by_ref() {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth -= 1,
            Token::Comma if depth == 1 => {
                parts.push(Vec::new());
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
        parts.last_mut()?.push(token);
    }
    let after: Vec<&Token> = rest.collect();
    let without_rowid = after.windows(2).any(|pair| matches!(pair, [a, b] if a.is("without") && b.is("rowid")));
    let mut found = Columns { without_rowid, ..Columns::default() };
    for part in &parts {
        column(part, &mut found);
    }
    Some(found)
}

fn column(part: &[&Token], found: &mut Columns) {
    let name = match part.first() {
        Some(Token::Quoted(name)) => name,
        Some(Token::Word(name)) if !is_constraint(name) => name,
        Some(Token::Word(_)) => return table_key(part, found),
        _ => return,
    };
    let has = |words: [&str; 2]| part.windows(2).any(|pair| matches!(pair, [a, b] if a.is(words[0]) && b.is(words[1])));
    let computed = part.windows(2).skip(1).any(|pair| matches!(pair, [a, Token::Open] if a.is("as")));
    if computed && !part.iter().any(|token| token.is("stored")) {
        return; // made when it is asked for, so no row stores it
    }
    if part.get(1).is_some_and(|kind| kind.is("integer")) && has(["primary", "key"]) && !has(["key", "desc"]) {
        found.key = Some(found.names.len());
    }
    found.names.push(name.clone());
}

fn is_constraint(word: &str) -> bool {
    ["constraint", "primary", "unique", "check", "foreign"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// `PRIMARY KEY (id)` after the columns makes the key too, where `id` is declared INTEGER: nsys never writes it so, and
/// such a column is stored as NULL, which is then taken for the row's number where the list names one column.
fn table_key(part: &[&Token], found: &mut Columns) {
    let inside = part.iter().position(|token| token.is("primary"));
    let Some(list) = inside.and_then(|at| part.get(at + 2..)) else { return };
    if let [Token::Open, Token::Word(name) | Token::Quoted(name), Token::Close, ..] = list {
        found.key = found.names.iter().position(|own| own.eq_ignore_ascii_case(name));
    }
}

fn tokens(sql: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut text = sql;
    while let Some(first) = text.chars().next() {
        let skip = |from: &str, end: &str| from.find(end).map_or(from.len(), |at| at + end.len());
        let length = match first {
            '-' if text.starts_with("--") => skip(text, "\n"),
            '/' if text.starts_with("/*") => skip(text, "*/"),
            '"' | '`' | '\'' | '[' => {
                let close = if first == '[' { ']' } else { first };
                let (name, length) = quoted(text, close);
                found.push(Token::Quoted(name));
                length
            }
            _ if first.is_alphanumeric() || first == '_' || first == '$' => {
                let end = |c: char| !(c.is_alphanumeric() || c == '_' || c == '$');
                let length = text.find(end).unwrap_or(text.len());
                found.push(Token::Word(text.get(..length).unwrap_or_default().to_owned()));
                length
            }
            _ => {
                match first {
                    '(' => found.push(Token::Open),
                    ')' => found.push(Token::Close),
                    ',' => found.push(Token::Comma),
                    _ if first.is_whitespace() => {}
                    _ => found.push(Token::Other),
                }
                first.len_utf8()
            }
        };
        text = text.get(length..).unwrap_or_default();
    }
    found
}

/// Reads a quoted name; a doubled quote stands for one.
fn quoted(text: &str, close: char) -> (String, usize) {
    let mut name = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != close {
            name.push(c);
        } else if close != ']' && chars.peek().is_some_and(|&(_, next)| next == close) {
            name.push(c);
            chars.next();
        } else {
            return (name, at + c.len_utf8());
        }
    }
    (name, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sql: &str) -> Vec<String> {
        columns(sql).map(|found| found.names).unwrap_or_default()
    }

    #[test]
    fn comments_and_quotes_do_not_hide_columns() {
        let sql = "CREATE TABLE \"a, b\" (\n -- start, end (ns)\n start INTEGER NOT NULL, -- (\n \"end\" INTEGER,
            [de,viceId] INTEGER DEFAULT (1+(2)), `x``y` TEXT, /* z, */ 'q' REAL, UNIQUE (start, \"end\"))";
        assert_eq!(names(sql), ["start", "end", "de,viceId", "x`y", "q"]);
    }

    #[test]
    fn only_an_integer_primary_key_is_the_key_of_the_row() {
        let key = |sql| columns(sql).and_then(|found| found.key);
        assert_eq!(key("CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, value TEXT)"), Some(0));
        assert_eq!(key("CREATE TABLE t (value TEXT, id integer, PRIMARY KEY (id))"), Some(1));
        assert_eq!(key("CREATE TABLE t (id INT PRIMARY KEY, value TEXT)"), None);
        assert_eq!(key("CREATE TABLE t (id INTEGER PRIMARY KEY DESC)"), None);
    }

    #[test]
    fn rows_of_other_layouts_are_told() {
        assert!(columns("CREATE TABLE t (a TEXT PRIMARY KEY) WITHOUT ROWID").is_some_and(|found| found.without_rowid));
        assert_eq!(names("CREATE TABLE t (a INT, b INT AS (a * 2), c INT AS (a) STORED, d)"), ["a", "c", "d"]);
        assert_eq!(columns("CREATE TABLE t"), None);
    }
}
