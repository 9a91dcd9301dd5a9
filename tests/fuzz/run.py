"""Coverage-guided fuzzing of one target: `python run.py TARGET [libFuzzer options]`; without a target, their names.

Needs atheris (`pip install -e '.[fuzz]'`). Seeds and dictionary are made anew each time; the corpus is kept in `.fuzz/TARGET`
of the directory it runs in, and so is an input that fails. `tests/fuzz/test_found.py` is where its smallest form goes.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))


def main(arguments: list[str]) -> None:
    import atheris
    from fuzz.catalogue import NAMES

    if not arguments or arguments[0] not in NAMES:
        sys.exit(f"say which target: {', '.join(NAMES)}")
    name, options = arguments[0], arguments[1:]
    folder = Path(".fuzz") / name
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    with atheris.instrument_imports(include=["trio_exthost"]):
        for package in ("wire", "packages", "policy", "cli", "runtime.host"):
            importlib.import_module(f"trio_exthost.{package}")
        from fuzz.catalogue import dictionary, load, seeds

        fuzz_one = load(name)
    for seed in seeds(name):
        (folder / "corpus" / hashlib.sha256(seed).hexdigest()[:32]).write_bytes(seed)
    words = folder / "dictionary"
    # An empty one is refused.
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in dictionary(name) or [b"x"]))
    known = ["-timeout=20", "-rss_limit_mb=2048", "-max_len=4096", f"-dict={words}", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *known, *options, str(folder / "corpus")], fuzz_one)
    atheris.Fuzz()


def _escaped(word: bytes) -> str:
    return "".join(chr(each) if 32 <= each < 127 and each not in b'"\\' else f"\\x{each:02x}" for each in word)


if __name__ == "__main__":
    main(sys.argv[1:])
