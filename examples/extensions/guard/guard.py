"""Refuses shell commands that destroy things, and turns `git push` into a dry run.

A seat belt, not a sandbox: it reads the command as text, and text can be disguised. Where it is unsure it errs towards
refusing, and each reason says what to do instead, because it is the model that reads it.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

# What the shell itself understands between words; a newline ends a command as `;` does.
OPERATORS = "();<>|&`\n"
# Programs and keywords that run the words after them. Their options differ, so every later word may be the program.
WRAPPERS = {"builtin", "command", "doas", "env", "eval", "exec", "find", "nice", "nohup", "sudo", "time", "xargs"}
WRAPPERS |= {"!", "{", "do", "elif", "else", "if", "then", "until", "while"}
SHELLS = {"sh", "bash", "dash", "ksh", "zsh", "eval"}
INTERPRETERS = SHELLS | {"python", "python3", "perl", "ruby", "node"}
# The host waits five seconds for an answer. This many characters, and bounded patterns, keep the worst case below.
LONGEST = 64 * 1024

PRECIOUS = re.compile(
    r"(//?|~[\w-]*|\$HOME|\$\{HOME\}|\.|\.\.(/\.\.)*"
    r"|/(home|root|opt|srv|var|mnt|media|dev|Users|Volumes|Applications|Library)|/(home|Users)/[^/]+"
    r"|/(bin|boot|etc|lib|lib32|lib64|proc|sbin|sys|usr|System)(/.*)?)?/?\**"
)
DEVICE = re.compile(r"(?:of=)?/dev/(?!null$|zero$|full$|std(?:out|err)$|tty$|fd/|shm/|pts/).+")
FORK_BOMB = re.compile(r"([\w:.]{1,40})[ \t]{0,9}\([ \t]{0,9}\)\s{0,9}\{[^}]{0,200}?\1\s{0,9}\|\s{0,9}\1")
RUNS_DOWNLOAD = re.compile(r"\b(?:sh|bash|dash|ksh|zsh|eval|source)\b[^;\n]{0,200}?(?:\$\(|<\(|`)\s*(?:curl|wget)\b")
PLAIN_PUSH = re.compile(r"\bgit[ \t]+push(?![\w-])")


class Step(NamedTuple):
    """One simple command of a shell line."""

    words: list[str]  # the program, without its directory, and its arguments
    fed: bool  # whether what curl or wget fetched is piped into it
    writes: list[str]  # files it redirects to


def split(command: str) -> list[str]:
    """Return words, without their quotes, and operators."""
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=OPERATORS)
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # a quote left open, as in here-documents: a rough reading is better than none
        return re.findall(r"[();<>|&`\n]+|[^\s();<>|&`\"']+", command)


def steps(command: str) -> Iterator[Step]:
    """Yield the simple commands, also those within substitutions and `sh -c` strings."""
    pending = [command]
    while pending:  # ends: what is put back has lost its quotes, so it is shorter
        words: list[str] = []
        writes: list[str] = []
        redirection = ""
        in_shell = fed = False
        for token in [*split(pending.pop()), "\n"]:
            if not token or not set(token) <= set(OPERATORS):
                if "$(" in token or "`" in token or (" " in token and in_shell):
                    pending.append(token)
                if redirection:
                    writes += [token] if ">" in redirection else []
                else:
                    words.append(token if words else token.rsplit("/", 1)[-1])
                    in_shell = in_shell or token.rsplit("/", 1)[-1] in SHELLS
                redirection = ""
            elif token.rstrip("&|")[-1:] in {"<", ">"}:
                redirection = token
            elif words or writes or token.strip("\n"):  # not an empty line, which a pipe may be followed by
                yield from unwrap(Step(words, fed, writes))
                fed = token.strip("\n") in {"|", "|&"} and (fed or not {"curl", "wget"}.isdisjoint(words))
                words, writes, redirection, in_shell = [], [], "", False


def unwrap(step: Step) -> Iterator[Step]:
    """Yield the step and, when it is `sudo x` or the like, every command it may run."""
    yield step
    if step.words and (step.words[0] in WRAPPERS or re.match(r"\w+=", step.words[0])):
        for start in range(1, min(len(step.words), 16)):
            program = step.words[start].rsplit("/", 1)[-1]
            yield step._replace(words=[program, *step.words[start + 1 :]])


def has_flag(step: Step, letters: str, *long: str) -> bool:
    """Whether one of the letters stands among its short options, or one of the long options is given."""
    return any(
        word in long or (word[:1] == "-" and word[:2] != "--" and set(letters).intersection(word))
        for word in step.words
    )


def wipes(step: Step) -> bool:
    """Whether it removes something nobody wants removed."""
    targets = [posixpath.normpath(word) for word in step.words[1:] if word and not word.startswith("-")]
    return step.words[:1] == ["rm"] and has_flag(step, "rR", "--recursive") and any(map(PRECIOUS.fullmatch, targets))


def formats(step: Step) -> bool:
    """Whether it writes over a disk."""
    program = step.words[0] if step.words else ""
    over = [*step.writes, *(step.words[1:] if program in {"dd", "tee", "shred", "cp"} else [])]
    return program.startswith("mkfs") or program == "wipefs" or any(map(DEVICE.fullmatch, over))


def runs_download(step: Step) -> bool:
    """Whether something from the network is run unread."""
    return step.fed and bool(step.words) and step.words[0] in INTERPRETERS


def configures(step: Step) -> bool:
    """Whether it changes the configuration of the machine."""
    program, args = (step.words[0], step.words[1:]) if step.words else ("", [])
    over = list(step.writes)
    if program in {"tee", "rm", "touch", "chmod", "chown", "truncate"} or (program == "sed" and "-i" in " ".join(args)):
        over += args
    elif program in {"cp", "mv", "ln", "install"}:
        over += args[-1:]
    return any(posixpath.normpath(word).startswith("/etc/") or word.rstrip("/") == "/etc" for word in over if word)


def pushes(step: Step) -> bool:
    """Whether it is `git push`, whatever stands between the two words."""
    words = iter(step.words[1:])
    for word in words:
        if word in {"-C", "-c", "--git-dir", "--work-tree", "--namespace"}:
            next(words, None)
        elif not word.startswith("-"):
            return step.words[0] == "git" and word == "push"
    return False


def overwrites(step: Step) -> bool:
    """Whether it throws away what others pushed."""
    forced = has_flag(step, "f", "--force", "--mirror") or any(word[:1] == "+" for word in step.words)
    return pushes(step) and forced


class Rule(NamedTuple):
    """What is refused, and what the model should do instead."""

    forbids: str
    instead: str
    breaks: Callable[[Step], bool] = lambda _step: False
    pattern: re.Pattern[str] = re.compile(r"(?!)")  # for what only the whole text shows; this one matches nothing


RULES = [
    Rule("rm -r of /, ~, *, . or a system directory", "Name the exact files below the project.", wipes),
    Rule("mkfs, wipefs, or writing onto a device", "Write to a file in the project.", formats),
    Rule("running what curl or wget fetched", "Save it and show it to the user.", runs_download, RUNS_DOWNLOAD),
    Rule("writing to /etc", "Put it in the project and tell the user where it belongs.", configures),
    Rule("a function that starts itself twice", "Start a fixed number of processes.", pattern=FORK_BOMB),
    Rule("git push --force, -f, --mirror or +ref", "Push without force, or ask the user to.", overwrites),
]
TOO_LONG = Rule("commands over 64 KiB", "Write long content to a file with another tool.")
UNCLEAR_PUSH = Rule("a git push that is hard to read", "Run plain `git push` as a command of its own.")


def judge(command: str) -> tuple[Rule | None, str]:
    """Return the rule that refuses the command, if any, and else the command that may run."""
    if len(command) > LONGEST:
        return TOO_LONG, command
    found = list(steps(command))
    for rule in RULES:
        if rule.pattern.search(command) or any(map(rule.breaks, found)):
            return rule, command
    return dry_run(command, found)


def dry_run(command: str, found: list[Step]) -> tuple[Rule | None, str]:
    """Return the command with `--dry-run` at each push that lacks it, or a refusal where that cannot be done surely."""

    def real(step: Step) -> bool:
        return pushes(step) and not {"--dry-run", "-n"}.intersection(step.words)

    if not any(map(real, found)):
        return None, command
    changed = PLAIN_PUSH.sub(lambda match: match[0] + " --dry-run", command)
    # The words may also stand in a commit message: only if each place is a push, and none is left, it is changed.
    if len(PLAIN_PUSH.findall(command)) == sum(map(pushes, found)) and not any(map(real, steps(changed))):
        return None, changed
    return UNCLEAR_PUSH, command


def send(kind: str, **fields: object) -> None:
    """Write one frame: one line, flushed at once, because the host waits for it."""
    print(json.dumps({"type": kind, **fields}), flush=True)


def frames() -> Iterator[dict]:
    """Yield the host's frames until end of input. What is no frame is logged and skipped; stderr is the log."""
    for line in sys.stdin.buffer:
        try:
            frame = json.loads(line)
        except (ValueError, RecursionError) as error:
            print(f"guard: skipped a line: {error}", file=sys.stderr)
            continue
        if isinstance(frame, dict):
            yield frame


def intercepted(frame: dict, refused: dict[str, int]) -> None:
    """Answer whether a tool may run. Every question gets an answer, or the agent would wait for the deadline."""
    args = frame.get("tool_args")
    command = args.get("command") if isinstance(args, dict) else None
    if frame.get("event") != "tool_call" or frame.get("tool_name") != "bash" or not isinstance(command, str):
        send("event_intercept_response", id=frame.get("id"))
        return
    try:
        rule, allowed = judge(command)
    except Exception as error:  # noqa: BLE001 - a guard with a fault says no, and stays alive for the next question
        send("event_intercept_response", id=frame.get("id"), block=True, reason=f"guard failed: {error!r}")
        return
    if rule is not None:
        refused[rule.forbids] = refused.get(rule.forbids, 0) + 1
        reason = f"guard refuses {rule.forbids}. {rule.instead}"
        send("event_intercept_response", id=frame.get("id"), block=True, reason=reason)
    elif allowed != command:
        # modified_args replaces all arguments, so the others are kept.
        send("event_intercept_response", id=frame.get("id"), modified_args={**args, "command": allowed})
        send("notify", level="info", message="git push became a dry run")
    else:
        send("event_intercept_response", id=frame.get("id"))


def overview(refused: dict[str, int]) -> str:
    """Return the rules, how often each refused, and the total."""
    lines = [f"{refused.get(rule.forbids, 0):4}  {rule.forbids}" for rule in RULES]
    return "\n".join([f"guard refused {sum(refused.values())} commands", *lines, "git push becomes git push --dry-run"])


def main() -> None:
    """Speak with the host until it says shutdown or closes our input."""
    # When the host is gone, writing ends the program quietly, as for any program in a pipe.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    refused: dict[str, int] = {}
    send("hello", name="guard", version="0.1.0", capabilities=["commands", "events"])
    for frame in frames():
        kind = frame.get("type")
        if kind == "hello_ack":
            send("register_command", name="guard", description="Show what is refused, and how often")
            send("subscribe", intercept=["tool_call"])
            send("ready")
        elif kind == "event_intercept":
            intercepted(frame, refused)
        elif kind == "command_invoked":
            send("command_response", id=frame.get("id"), action="display", display=overview(refused))
        elif kind == "shutdown":
            send("shutdown_ack")
            return
        # Anything else is from a newer host, or not for us.


if __name__ == "__main__":
    main()
