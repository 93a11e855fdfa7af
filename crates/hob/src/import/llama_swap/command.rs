//! A model's `cmd`: the program and its flags, as a shell would read them.
//! Nothing is run. Flags are taken one by one, and what is left at the end has no place in hob.toml.

/// Programs whose model lies inside a container.
const CONTAINERS: [&str; 3] = ["docker", "podman", "nerdctl"];

/// Flags that make a server of another kind than chat.
const OTHER_KINDS: [&str; 5] =
    ["--embedding", "--embeddings", "--reranking", "--rerank", "--model-vocoder"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    program: String,
    flags: Vec<Flag>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Flag {
    name: String,
    value: Option<String>,
}

impl Command {
    pub(super) fn parse(text: &str) -> Command {
        let mut words = words(text).into_iter().peekable();
        let program = words.next().unwrap_or_default();
        let mut flags = Vec::new();
        while let Some(word) = words.next() {
            if !is_flag(&word) {
                continue;
            }
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (word, words.next_if(|next| !is_flag(next))),
            };
            flags.push(Flag { name, value });
        }
        Command { program, flags }
    }

    /// Takes the flag of any of these names; the last one counts, as in llama-server.
    pub(super) fn take(&mut self, names: &[&str]) -> Option<String> {
        let mut value = None;
        self.flags.retain(|flag| match names.contains(&flag.name.as_str()) {
            true => {
                value = Some(flag.value.clone().unwrap_or_default());
                false
            }
            false => true,
        });
        value
    }

    /// Takes it if it is what is wanted; left where it is, it will be said.
    pub(super) fn take_as<T: std::str::FromStr>(&mut self, names: &[&str]) -> Option<T> {
        let value: T = self.value(names)?.parse().ok()?;
        self.take(names);
        Some(value)
    }

    fn value(&self, names: &[&str]) -> Option<&str> {
        let named = self.flags.iter().rev().find(|flag| names.contains(&flag.name.as_str()))?;
        named.value.as_deref()
    }

    /// The names of the flags that nobody took.
    pub(super) fn left(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.flags.iter().map(|flag| flag.name.as_str()).collect();
        names.dedup();
        names
    }

    /// # Errors
    /// Why hob cannot run this model itself.
    pub(super) fn model(&self) -> Result<String, &'static str> {
        let program = self.program.rsplit(['/', '\\']).next().unwrap_or_default();
        if CONTAINERS.contains(&program) {
            return Err("its model lies in a container");
        }
        if self.flags.iter().any(|flag| OTHER_KINDS.contains(&flag.name.as_str())) {
            return Err("it is no chat model");
        }
        match self.value(&["-m", "--model"]) {
            Some(path) if is_gguf(path) && program.contains("llama") => Ok(at_home(path)),
            _ => Err("its cmd is no llama-server with a GGUF file"),
        }
    }
}

fn is_gguf(path: &str) -> bool {
    path.len() > 5 && path.to_ascii_lowercase().ends_with(".gguf")
}

/// hob knows the home folder by its sign.
fn at_home(path: &str) -> String {
    ["${env.HOME}/", "$HOME/"]
        .into_iter()
        .find_map(|home| path.strip_prefix(home))
        .map_or_else(|| path.to_owned(), |rest| format!("~/{rest}"))
}

/// A minus and a letter: `-1` is a value.
fn is_flag(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    name.len() < word.len() && name.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Comment lines are llama-swap's own; quotes and backslashes as in a shell.
fn words(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let text: Vec<&str> = lines.map(|line| line.trim_end_matches('\\')).collect();
    let text = text.join(" ");
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_as_a_shell_reads_it() {
        let text = "# the big one\n/opt/llama-server \\\n  -m '/models/a b.gguf' \\\n --temp=0.7\n\
                    -ngl -1 --jinja --chat-template-kwargs '{\"a\": \"b\"}' -c 4096 -c 8192";
        let mut command = Command::parse(text);
        assert_eq!(command.model().as_deref(), Ok("/models/a b.gguf"));
        assert_eq!(command.take(&["-ngl"]).as_deref(), Some("-1"));
        assert_eq!(command.take_as::<f64>(&["--temp"]), Some(0.7));
        assert_eq!(command.take_as::<u32>(&["-c", "--ctx-size"]), Some(8192));
        assert_eq!(command.take_as::<u32>(&["--chat-template-kwargs"]), None);
        assert_eq!(command.left(), ["-m", "--jinja", "--chat-template-kwargs"]);
    }

    #[test]
    fn hob_runs_what_is_a_file_and_chats() {
        let rows = [
            ("llama-server -m a.gguf", Ok("a.gguf")),
            ("llama-server --model ${env.HOME}/a.GGUF", Ok("~/a.GGUF")),
            ("docker run -m 4g llama --model /m/a.gguf", Err("container")),
            ("llama-server -m e.gguf --embedding", Err("no chat model")),
            ("llama-server -hf org/name", Err("no llama-server with")),
            ("vllm serve -m a.gguf", Err("no llama-server with")),
            ("", Err("no llama-server with")),
        ];
        for (text, expected) in rows {
            match (Command::parse(text).model(), expected) {
                (Ok(path), Ok(expected)) => assert_eq!(path, expected, "{text}"),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{text}: {why}"),
                (found, _) => panic!("{text} gave {found:?}"),
            }
        }
    }
}
