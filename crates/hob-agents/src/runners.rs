//! Commands that run other commands: shells, `sudo`, `xargs`. A rule that forbids `rm` forbids `sudo rm` and `sh -c 'rm x'`.
//! This catches mistakes of models. The sandbox holds against programs that hide what they do.

use crate::command::{is_assignment, simple_commands};

/// Maximum depth of commands inside each other.
const DEPTH_MAX: usize = 8;
/// Commands that run their arguments as another command, or a text as commands.
const RUNNERS: &[&str] = &[
    ".",
    "ash",
    "bash",
    "builtin",
    "busybox",
    "chroot",
    "chrt",
    "command",
    "dash",
    "doas",
    "env",
    "eval",
    "exec",
    "fish",
    "flock",
    "ionice",
    "ksh",
    "nice",
    "nohup",
    "nsenter",
    "parallel",
    "pkexec",
    "runuser",
    "script",
    "setpriv",
    "setsid",
    "sh",
    "source",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "toybox",
    "unshare",
    "watch",
    "xargs",
    "zsh",
];
const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "sh", "zsh"];
/// Runners that start a shell when no command follows. It reads its commands from its input.
const SHELL_STARTERS: &[&str] = &["chroot", "doas", "nsenter", "pkexec", "sudo", "unshare"];
/// Runners whose first word after the options is a folder, a file, a mask or a priority.
const VALUE_FIRST: &[&str] = &["chroot", "chrt", "flock", "taskset"];
/// Words with which `find` begins a command.
const FIND_COMMANDS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
/// Options with which a shell or an interpreter only answers a question, and reads no input.
const QUESTIONS: &[&str] = &["--help", "--version", "-V", "-h", "-v"];
const CODE: &str = "it gives code to an interpreter";
const INPUT: &str = "a shell or an interpreter would read its input as code";

/// A simple command as rules see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JudgedCommand {
    pub(crate) words: Vec<String>,
    /// This command with the name of its program alone, if a folder is before it, and the commands inside.
    pub(crate) inner: Vec<Vec<String>>,
    /// Why there may be other commands inside.
    pub(crate) unclear: Option<&'static str>,
}

/// The simple commands of a shell command.
///
/// # Errors
/// Those of [`simple_commands`].
pub(crate) fn judged_commands(text: &str) -> Result<Vec<JudgedCommand>, &'static str> {
    Ok(simple_commands(text)?.into_iter().map(JudgedCommand::of).collect())
}

/// A program without its folder.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether these first words leave open which command runs, so that a rule for them would allow everything: a program
/// that runs another one, with nothing but options after it.
pub(crate) fn runs_everything(words: &[String]) -> bool {
    let Some((program, words)) = words.split_first() else { return true };
    let name = base_name(program);
    let (_, mut rest) = parts(name, words);
    if VALUE_FIRST.contains(&name) {
        rest = parts(name, rest.get(1..).unwrap_or_default()).1;
    }
    RUNNERS.contains(&name) && runs_everything(rest)
}

impl JudgedCommand {
    pub(crate) fn of(words: Vec<String>) -> JudgedCommand {
        let mut judged = JudgedCommand::default();
        judged.judge(&words, 0);
        judged.words = words;
        judged
    }

    /// The command in a container, which is the first word for rules.
    pub(crate) fn within(self, container: &str) -> JudgedCommand {
        let within = |words: Vec<String>| -> Vec<String> {
            std::iter::once(container.to_owned()).chain(words).collect()
        };
        let inner = self.inner.into_iter().map(within).collect();
        JudgedCommand { words: within(self.words), inner, unclear: self.unclear }
    }

    fn judge(&mut self, words: &[String], depth: usize) {
        let Some((program, words)) = words.split_first() else { return };
        let name = base_name(program);
        if depth >= DEPTH_MAX {
            return self.note("it has too many commands inside each other");
        }
        if name != "[" && name.contains(['*', '?', '[']) {
            return self.note("a pattern stands for its program");
        }
        if name != program {
            let named = std::iter::once(name.to_owned()).chain(words.iter().cloned());
            self.inner.push(named.collect());
        }
        match name {
            // It runs a file of commands, which is a program like any other.
            "." | "source" => {}
            "eval" => self.script(&words.join(" "), depth),
            "busybox" | "toybox" => self.add(words, depth),
            "trap" => {
                words.iter().find(|word| !word.starts_with('-')).into_iter().for_each(|text| {
                    self.script(text, depth);
                })
            }
            "alias" if !words.is_empty() => self.note("it gives a command another name"),
            // It says where a program is.
            "command" if words.first().is_some_and(|word| word == "-v" || word == "-V") => {}
            "find" => {
                let is_begin = |word: &String| FIND_COMMANDS.contains(&word.as_str());
                words.split(is_begin).skip(1).for_each(|command| self.add(command, depth));
            }
            // They give their words to a shell.
            "watch" | "parallel" => self.script(&parts(name, words).1.join(" "), depth),
            "su" | "runuser" | "script" | "flock" => self.user_shell(name, words, depth),
            _ if SHELLS.contains(&name) => self.shell(name, words, depth),
            _ if RUNNERS.contains(&name) => self.runner(name, words, depth),
            _ => self.interpreter(name, words),
        }
    }

    fn note(&mut self, reason: &'static str) {
        self.unclear.get_or_insert(reason);
    }

    fn add(&mut self, words: &[String], depth: usize) {
        if !words.is_empty() {
            self.inner.push(words.to_vec());
            self.judge(words, depth + 1);
        }
    }

    fn script(&mut self, text: &str, depth: usize) {
        match simple_commands(text) {
            Ok(commands) => commands.iter().for_each(|command| self.add(command, depth)),
            Err(reason) => self.note(reason),
        }
    }

    fn shell(&mut self, name: &str, words: &[String], depth: usize) {
        let (options, rest) = parts(name, words);
        let has =
            |letter: char| options.iter().any(|word| is_cluster(word) && word.contains(letter));
        match rest.first() {
            Some(text) if has('c') => self.script(text, depth),
            // A file of commands is a program like any other.
            Some(_) if !has('s') && !has_input(options) => {}
            None if asks(options) => {}
            _ => self.note(INPUT),
        }
    }

    /// Programs that give the text after `-c` to a shell.
    fn user_shell(&mut self, name: &str, words: &[String], depth: usize) {
        let is_before =
            |word: &String| is_cluster(word) && word.ends_with('c') || word == "--command";
        let long = words.iter().find_map(|word| word.strip_prefix("--command="));
        let at = words.iter().position(is_before);
        let text = long.or_else(|| Some(words.get(at? + 1)?.as_str()));
        let always_starts = matches!(name, "su" | "script");
        match text {
            Some(text) => self.script(text, depth),
            None if always_starts => self.note(INPUT),
            None => {}
        }
        if !always_starts {
            self.runner(name, words, depth);
        }
    }

    fn runner(&mut self, name: &str, words: &[String], depth: usize) {
        let (options, rest) = parts(name, words);
        if name == "env" && options.iter().any(|word| splits_text(word)) {
            return self.note(CODE);
        }
        let has_value_first = VALUE_FIRST.contains(&name);
        // The value of an option may look like the command.
        if has_value_first || options.last().is_some_and(|word| is_long_option(word)) {
            self.add(parts(name, rest.get(1..).unwrap_or_default()).1, depth);
        }
        if rest.len() <= usize::from(has_value_first) && SHELL_STARTERS.contains(&name) {
            self.note(INPUT);
        }
        self.add(rest, depth);
    }

    fn interpreter(&mut self, name: &str, words: &[String]) {
        let kind = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        let letters: &[char] = match kind {
            "python" | "pypy" => &['c'],
            "perl" => &['e', 'E'],
            "ruby" | "lua" | "luajit" | "Rscript" => &['e'],
            "php" => &['r', 'B', 'R', 'E'],
            "node" | "nodejs" | "bun" => &['e', 'p'],
            "awk" | "gawk" | "mawk" | "nawk" => {
                let runs = |word: &String| word.contains("system") || word.contains('|');
                if words.iter().any(runs) {
                    self.note(CODE);
                }
                return;
            }
            _ => return,
        };
        let (options, rest) = parts(kind, words);
        // Such as `-MData::Dumper`.
        let has_value = |word: &str| {
            matches!(kind, "perl" | "ruby")
                && word.starts_with('-')
                && word[1..].starts_with(['M', 'm', 'I', 'r'])
        };
        let has_code = |word: &String| {
            word.starts_with("--eval")
                || word.starts_with("--print")
                || is_cluster(word) && word.contains(letters) && !has_value(word)
        };
        if options.iter().any(has_code) {
            self.note(CODE);
        } else if has_input(options) || rest.is_empty() && !asks(options) {
            self.note(INPUT);
        }
    }
}

/// Divides the words after a program into its options and the rest. For a program that runs another one, assignments and
/// numbers count as options.
fn parts<'w>(name: &str, words: &'w [String]) -> (&'w [String], &'w [String]) {
    let is_shell = SHELLS.contains(&name);
    let is_runner = RUNNERS.contains(&name) && !is_shell;
    let has_value_first = VALUE_FIRST.contains(&name);
    let mut rest = words;
    while let Some((word, more)) = rest.split_first() {
        let is_option = word.starts_with('-') || is_shell && word.starts_with('+');
        let is_value = is_number(word) && !has_value_first;
        if !is_option && !(is_runner && (is_value || is_assignment(word))) {
            break;
        }
        rest = if takes_value(name, word) { more.get(1..).unwrap_or_default() } else { more };
    }
    words.split_at(words.len() - rest.len())
}

/// Whether the next word belongs to an option.
fn takes_value(name: &str, option: &str) -> bool {
    if SHELLS.contains(&name) {
        let is_short = is_cluster(option) || option.starts_with('+');
        return is_short && option.ends_with(['o', 'O'])
            || matches!(option, "--rcfile" | "--init-file");
    }
    let options: &[&str] = match name {
        "sudo" | "doas" => &["-u", "-g", "-C", "-D", "-h", "-p", "-R", "-r", "-T", "-t", "-U"],
        "env" => &["-u", "-C"],
        "exec" => &["-a"],
        "flock" => &["-E", "-w"],
        "nice" => &["-n"],
        "ionice" => &["-c", "-n"],
        "runuser" => &["-u", "-g", "-G", "-s"],
        "stdbuf" => &["-i", "-o", "-e"],
        "strace" => &["-a", "-b", "-e", "-E", "-I", "-o", "-O", "-p", "-P", "-s", "-S", "-u", "-X"],
        "systemd-run" => &["-p", "-u", "-E", "-H", "-M"],
        "time" => &["-f", "-o"],
        "timeout" => &["-k", "-s"],
        "watch" => &["-n"],
        "xargs" => &["-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s"],
        "parallel" => &["-a", "-I", "-j", "-n"],
        "python" | "pypy" => &["-W", "-X"],
        "perl" | "ruby" => &["-I", "-r"],
        "node" | "nodejs" => &["-r", "--require", "--import", "--loader", "-C"],
        "php" => &["-c", "-d", "-z"],
        "lua" => &["-l"],
        _ => &[],
    };
    options.contains(&option)
}

/// A number, perhaps with a unit, such as the time of `timeout`. `7z` is a program.
fn is_number(word: &str) -> bool {
    let digits = word.strip_suffix(['s', 'm', 'h', 'd', '%', 'k', 'K', 'M', 'G']).unwrap_or(word);
    word.starts_with(|c: char| c.is_ascii_digit()) && digits.parse::<f64>().is_ok()
}

/// One or more options of a letter each, such as `-lc`.
fn is_cluster(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && !word.starts_with("--")
}

/// A long option, perhaps with a value in the next word.
fn is_long_option(word: &str) -> bool {
    word.len() > 2 && word.starts_with("--") && !word.contains('=')
}

/// An option with which `env` makes several words of one.
fn splits_text(word: &str) -> bool {
    word.starts_with("--split-string") || is_cluster(word) && word.contains('S')
}

/// The standard input in place of a file.
fn has_input(options: &[String]) -> bool {
    options.iter().any(|word| word == "-")
}

fn asks(options: &[String]) -> bool {
    options.iter().any(|word| QUESTIONS.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    /// Braces and semicolons of `find` are plain words here.
    fn judged(text: &str) -> JudgedCommand {
        if text.starts_with("find") {
            return JudgedCommand::of(words(text));
        }
        judged_commands(&text.replace("{}", "@")).expect(text)[0].clone()
    }

    #[test]
    fn options_of_a_runner_name_no_command() {
        for text in [
            "sh",
            "sh -",
            "/bin/bash -c",
            "bash -l -c",
            "bash -euo pipefail -c",
            "env A=b",
            "env -u A bash -c",
            "sudo -u root",
            "sudo -n",
            "timeout -k 5 10s",
            "nice -n 5",
            "stdbuf --output 4K",
            "xargs -0 -n 1",
            "xargs -I {} sh -c",
            "busybox sh",
            "chroot /mnt",
            "taskset -c 0-3 bash -c",
        ] {
            assert!(runs_everything(&words(text)), "{text}");
        }
        for text in [
            "ls",
            "git -C",
            "bash build.sh",
            "sudo -n systemctl",
            "sudo 7z",
            "timeout 1.5h make",
            "taskset 1 make",
            "env A=b make",
        ] {
            assert!(!runs_everything(&words(text)), "{text}");
        }
    }

    /// Each command runs `rm x`, in some surroundings.
    #[test]
    fn a_command_inside_another_one_is_found() {
        for text in [
            "/bin/rm x",
            "./rm x",
            "bash -c 'rm x'",
            "sh -c 'ls; rm x'",
            "sh -c 'ls; rm x' A=b",
            "/bin/sh -ec 'rm x'",
            "bash --norc -o pipefail -c 'cd /tmp && rm x'",
            "bash -euo pipefail -c 'rm x'",
            "zsh -lc '/bin/rm x'",
            "sh -c \"sh -c 'rm x'\"",
            "env rm x",
            "env -i A=b -u C /bin/rm x",
            "sudo rm x",
            "sudo -n -u root rm x",
            "sudo --user root rm x",
            "sudo --user=root -- rm x",
            "sudo --user root -n rm x",
            "timeout --signal KILL 5 rm x",
            "builtin eval 'rm x'",
            "trap 'rm x' EXIT",
            "trap -- 'ls; rm x' EXIT",
            "doas rm x",
            "su root -c 'rm x'",
            "su --command='rm x'",
            "runuser -u root rm x",
            "xargs rm x",
            "xargs -0 -n 1 rm x",
            "xargs -I {} sh -c 'rm x'",
            "busybox rm x",
            "busybox sh -c 'rm x'",
            "nice -n 5 timeout -k 5 10s rm x",
            "nohup setsid stdbuf -o L rm x",
            "time -f %e rm x",
            "command rm x",
            "exec rm x",
            "eval rm x",
            "eval 'ls; rm x'",
            "find . -name a -exec rm x ;",
            "find . -exec ls {} + -execdir /bin/rm x",
            "watch -n 5 rm x",
            "watch 'ls; rm x'",
            "parallel rm x",
            "parallel --jobs 50% rm x",
            "unshare -r rm x",
            "chroot /mnt rm x",
            "flock /tmp/lock rm x",
            "flock /tmp/lock -c 'rm x'",
            "taskset 0x1 rm x",
            "strace -f -o log rm x",
            "sudo env A=b nice xargs rm x",
        ] {
            let judged = judged(text);
            let is_found = judged.inner.iter().any(|inner| inner.starts_with(&words("rm x")));
            assert!(is_found, "{text}: {judged:?}");
        }
        assert_eq!(judged("sudo 7z x").inner, [words("7z x")], "its name is no number");
        let within = judged("/bin/rm x").within("web");
        assert_eq!((within.words, within.inner), (words("web /bin/rm x"), vec![words("web rm x")]));
    }

    #[test]
    fn code_for_an_interpreter_is_unclear() {
        for text in [
            "python -c 'import os'",
            "python3.12 -Ic 'import os'",
            "python3 -W ignore -c x",
            "/usr/bin/perl -e 'unlink 1'",
            "perl -ne 'print'",
            "ruby -e x",
            "node --eval x",
            "node -p x",
            "php -r x",
            "awk 'BEGIN { system(\"rm x\") }'",
            "sudo python3 -c x",
            "python3",
            "python3 -",
            "python3 -u",
            "sh",
            "bash -s",
            "bash -",
            "bash -c 'rm $X'",
            "sh -c 'A=b rm x' build.sh",
            "sh -c 'rm x > y'",
            "sudo -s",
            "su",
            "su root",
            "env -S 'rm x'",
            "alias zap=rm",
            "/bin/r[m] x",
            "r? x",
            "sh -c \"sh -c 'rm x; (ls)'\"",
        ] {
            assert!(judged(text).unclear.is_some(), "{text}");
        }
        for text in [
            "ls",
            "[ -e rm ]",
            "git rm x",
            "grep rm x",
            "python3 script.py -c x",
            "python3 -m pytest",
            "python3 --version",
            "perl -MData::Dumper script.pl",
            "bash build.sh",
            "bash --version",
            "awk '{ print $1 }' x",
            "env",
            "command -v rm",
            "sudo -n systemctl status",
        ] {
            let judged = judged(text);
            let has_rm = judged.inner.iter().any(|inner| inner[0] == "rm");
            assert!(judged.unclear.is_none() && !has_rm, "{text}: {judged:?}");
        }
    }

    #[test]
    fn commands_inside_each_other_end() {
        let judged = JudgedCommand::of(words(&("sudo ".repeat(DEPTH_MAX + 1) + "rm x")));
        assert!(judged.unclear.is_some_and(|reason| reason.contains("too many")), "{judged:?}");
    }
}
