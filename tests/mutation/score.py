"""How many planted faults the tests of a pure layer find: `python tests/mutation/score.py LAYER --work DIRECTORY`.

mutmut makes the mutants, and tries each with the layer's own tests that reach its function, in a fork of a process that has
imported everything. What survives there is tried once more: written into the source, with all tests of the layer, in a new
process, since what is computed at import or kept in a cache was computed before the fork. What still survives is looked up
in `explained.toml`, whose entries are checked in turn. Everything happens in a copy of the checkout.
"""

from __future__ import annotations

import argparse
import collections
import math
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from mutants import STORES, Mutant, files_of, mutants_of, sample

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("wire", "policy", "effects", "hooks", "state")
AT_A_TIME = 40
SECONDS = 120
"""What a mutant that is tried alone has: the slowest layer's tests need a tenth."""
KILLED = ("killed", "timeout")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("layer", choices=LAYERS)
    arguments.add_argument("--size", type=int, default=200, help="mutants in the sample")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--all", action="store_true", help="every mutant, no sample: hours")
    arguments.add_argument("--work", type=Path, required=True, help="the directory for the copies")
    given = arguments.parse_args()
    os.nice(15)
    os.environ["HYPOTHESIS_PROFILE"] = "mutation"

    copy = given.work.resolve() / given.layer
    copy_checkout(copy, given.layer)
    os.chdir(copy)  # mutmut reads its settings where it stands
    made = [each for path in files_of(given.layer, copy) for each in mutants_of(path, copy)]
    of_code = [each for each in made if not each.of_text]
    chosen = of_code if given.all else sample(of_code, given.size, given.seed)
    print(f"{given.layer}: {len(made)} mutants, {len(of_code)} not only of a text, {len(chosen)} tried", flush=True)

    found = {}
    for start in range(0, len(chosen), AT_A_TIME):
        found |= try_in_forks(copy, chosen[start : start + AT_A_TIME])
        print(f"  {len(found)}: {sum(each in KILLED for each in found.values())} killed", flush=True)
    left = [each for each in chosen if found[each.name] not in KILLED]
    survivors = [each for each in left if not is_killed_alone(copy, given.layer, each)]
    report(given.layer, chosen, survivors, sum(each == "timeout" for each in found.values()))
    check_entries(given.layer, made, chosen, survivors)


def copy_checkout(copy: Path, layer: str) -> None:
    """The files that git knows, as they are in the checkout, with mutmut told of the layer's sources and tests."""
    shutil.rmtree(copy, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    settings = copy / "pyproject.toml"
    own = f"[tool.mutmut]\nonly_mutate = {files_of(layer, copy)}\npytest_add_cli_args_test_selection = {tests_of(layer)}\n"
    settings.write_text(settings.read_text().replace("[tool.mutmut]\n", own))


def tests_of(layer: str) -> list[str]:
    """What pytest is given: the layer's own tests; of `state` without those of the stores."""
    names = sorted(str(each.relative_to(ROOT)) for each in (ROOT / "tests" / layer).glob("test_*.py"))
    return [each for each in names if layer != "state" or not Path(each).stem.removeprefix("test_").startswith(STORES)]


def try_in_forks(copy: Path, mutants: list[Mutant]) -> dict[str, str]:
    """Each mutant's name and what mutmut says of it."""
    names = [each.name for each in mutants]
    run = subprocess.run(
        [sys.executable, "-m", "mutmut", "run", "--max-children", "1", *names],
        cwd=copy, check=False, capture_output=True, text=True,
    )  # fmt: skip
    listed = subprocess.run(
        [sys.executable, "-m", "mutmut", "results", "--all", "true"],
        cwd=copy, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    told = dict(line.strip().split(": ", 1) for line in listed.splitlines() if ": " in line)
    if run.returncode or any(told.get(each, "not checked") == "not checked" for each in names):
        sys.exit(f"mutmut stopped with status {run.returncode}:\n{run.stdout[-4000:]}\n{run.stderr[-4000:]}")
    return {each: told[each] for each in names}


def is_killed_alone(copy: Path, layer: str, mutant: Mutant) -> bool:
    """Whether a test fails, or does not end, with the mutant in the source itself."""
    source = copy / mutant.path
    whole = source.read_bytes()
    try:
        apply = [sys.executable, "-m", "mutmut", "apply", mutant.name]
        subprocess.run(apply, cwd=copy, check=True, capture_output=True)
        tests = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests_of(layer)]
        return subprocess.run(tests, cwd=copy, check=False, capture_output=True, timeout=SECONDS).returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        source.write_bytes(whole)


def report(layer: str, chosen: list[Mutant], survivors: list[Mutant], endless: int) -> None:
    """What survived and why, and the line for docs/mutation.md."""
    reasons = {key(each): each for each in explained()}
    kinds: collections.Counter[str] = collections.Counter()
    for each in survivors:
        reason = reasons.get(key_of(each))
        kinds[reason["kind"] if reason else "unexplained"] += 1
        if reason is None:
            file, function, was, becomes = key_of(each)
            print(
                f"\n[[mutant]]\nfile = {file!r}\nfunction = {function!r}\nwas = '''{was}'''\nbecomes = '''{becomes}'''"
            )
    killed = len(chosen) - len(survivors)
    counted = len(chosen) - kinds["equivalent"]
    low, high = wilson(killed, counted)
    print(
        f"\n{layer}: {len(chosen)} tried, {killed} killed ({endless} by not ending), "
        f"survived: {dict(kinds)}; score {killed / counted:.1%} of those that are not equivalent, 95 %: {low:.1%} to {high:.1%}"
    )


def explained() -> list[dict[str, str]]:
    """The entries of explained.toml."""
    entries: list[dict[str, str]] = tomllib.loads(Path(__file__).with_name("explained.toml").read_text())["mutant"]
    return entries


def check_entries(layer: str, made: list[Mutant], chosen: list[Mutant], survivors: list[Mutant]) -> None:
    """Tell which entries of explained.toml are wrong."""
    entries = explained()
    killed = {key_of(each) for each in chosen} - {key_of(each) for each in survivors}
    wrong = [("is of no mutant", each) for each in stale(entries, layer, made)]
    wrong += [("is of one that is killed", each) for each in entries if key(each) in killed]
    for what, each in wrong:
        print(
            f"explained.toml: an entry {what}: {each['file']}, {each['function']}: {each['was']} -> {each['becomes']}"
        )


def stale(entries: Iterable[dict[str, str]], layer: str, made: Iterable[Mutant]) -> list[dict[str, str]]:
    """The entries of a layer's files that are of no mutant of it: the code has changed since, or the entry is misspelt."""
    there = {key_of(each) for each in made}
    return [each for each in entries if each["file"].startswith(f"{layer}/") and key(each) not in there]


def key(entry: dict[str, str]) -> tuple[str, ...]:
    """What tells an entry of explained.toml from others."""
    return entry["file"], entry["function"], entry["was"], entry["becomes"]


def key_of(mutant: Mutant) -> tuple[str, ...]:
    """The same of a mutant."""
    return mutant.path.removeprefix("trio_exthost/"), mutant.function, mutant.was, mutant.becomes


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share."""
    z, share = 1.96, hits / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return middle - half, middle + half


if __name__ == "__main__":
    main()
