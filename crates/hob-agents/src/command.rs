//! Divides a shell command into its simple commands, so that the rules of a team file can decide about each. What a shell
//! computes when it runs, such as a variable, is never guessed. Patterns such as `*.c`, and `~`, stay as they are written.
//! The grammar is that of POSIX `sh`, section "Shell Command Language": quoting, lists, pipelines.

/// The arguments of each simple command, in order.
///
/// # Errors
/// The reason why the commands are not known before a shell runs them: substitutions, variables, redirections, compound
/// commands, assignments, or quotes that do not end.
pub(crate) fn simple_commands(text: &str) -> Result<Vec<Vec<String>>, &'static str> {
    let mut lexer = Lexer {
        chars: text.chars().peekable(),
        word: None,
        words: Vec::new(),
        commands: Vec::new(),
    };
    while let Some(c) = lexer.chars.next() {
        lexer.take(c)?;
    }
    lexer.end_command()?;
    if lexer.commands.is_empty() { Err("it has no command") } else { Ok(lexer.commands) }
}

/// Words that begin a compound command.
const RESERVED: [&str; 18] = [
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function",
    "if", "in", "select", "then", "until", "while",
];

struct Lexer<'t> {
    chars: std::iter::Peekable<std::str::Chars<'t>>,
    /// The word so far; empty quotes make an empty word.
    word: Option<String>,
    words: Vec<String>,
    commands: Vec<Vec<String>>,
}

impl Lexer<'_> {
    fn take(&mut self, c: char) -> Result<(), &'static str> {
        match c {
            '\'' => self.single_quoted(),
            '"' => self.double_quoted(),
            '\\' => match self.chars.next() {
                Some('\n') => Ok(()),
                Some(escaped) => self.push(escaped),
                None => Err("it ends with a backslash"),
            },
            '$' | '`' => Err("it has a variable or a substitution"),
            '<' | '>' => Err("it redirects input or output"),
            '(' | ')' | '{' | '}' => Err("it has a compound command"),
            '#' if self.word.is_none() => Err("it has a comment"),
            ' ' | '\t' => self.end_word(),
            '\n' | ';' | '&' | '|' => self.end_command(),
            c => self.push(c),
        }
    }

    fn push(&mut self, c: char) -> Result<(), &'static str> {
        self.word.get_or_insert_default().push(c);
        Ok(())
    }

    fn single_quoted(&mut self) -> Result<(), &'static str> {
        self.word.get_or_insert_default();
        loop {
            match self.chars.next().ok_or("a quote does not end")? {
                '\'' => return Ok(()),
                c => self.push(c)?,
            }
        }
    }

    fn double_quoted(&mut self) -> Result<(), &'static str> {
        self.word.get_or_insert_default();
        loop {
            match self.chars.next().ok_or("a quote does not end")? {
                '"' => return Ok(()),
                '$' | '`' => return Err("it has a variable or a substitution"),
                '\\' => match self.chars.next().ok_or("a quote does not end")? {
                    '\n' => {}
                    c @ ('"' | '\\' | '$' | '`') => self.push(c)?,
                    c => {
                        self.push('\\')?;
                        self.push(c)?;
                    }
                },
                c => self.push(c)?,
            }
        }
    }

    fn end_word(&mut self) -> Result<(), &'static str> {
        let Some(word) = self.word.take() else { return Ok(()) };
        if self.words.is_empty() && (RESERVED.contains(&word.as_str()) || is_assignment(&word)) {
            return Err("it has a compound command or sets a variable");
        }
        self.words.push(word);
        Ok(())
    }

    fn end_command(&mut self) -> Result<(), &'static str> {
        self.end_word()?;
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
        Ok(())
    }
}

pub(crate) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_pipelines_are_several_commands() {
        for (text, expected) in [
            ("git status", vec![vec!["git", "status"]]),
            ("git status && git push", vec![vec!["git", "status"], vec!["git", "push"]]),
            ("a|b;c&d\ne", vec![vec!["a"], vec!["b"], vec!["c"], vec!["d"], vec!["e"]]),
            (r#"echo 'a b' "c \"d" e\ f """#, vec![vec!["echo", "a b", "c \"d", "e f", ""]]),
            ("echo a\\\nb 'x;y'", vec![vec!["echo", "ab", "x;y"]]),
            ("grep a=b c#d", vec![vec!["grep", "a=b", "c#d"]]),
        ] {
            let found = simple_commands(text).expect(text);
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn what_a_shell_computes_first_is_unclear() {
        for text in [
            "",
            "  ",
            "echo $(rm x)",
            "echo `rm x`",
            "echo \"$HOME\"",
            "echo $HOME",
            "ls > x",
            "cat <(ls)",
            "(ls)",
            "{ ls; }",
            "if ls; then rm x; fi",
            "A=b ls",
            "PATH+=x ls",
            "! ls",
            "ls # all",
            "echo 'a",
            "echo \"a",
            "ls \\",
            "while true",
            "f() { ls",
            "echo \"a`ls`\"",
            "echo a\\\nb 'x;y' \"$\"",
        ] {
            assert!(simple_commands(text).is_err(), "{text}");
        }
    }
}
