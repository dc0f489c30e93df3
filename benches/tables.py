"""Writes results into the tables of README.md and docs/results/, between markers such as `<!-- speed -->`."""

import json

MIB = 1 << 20


def pages(root):
    """The pages that may contain marked tables."""
    return [root / "README.md", root / "docs" / "results.md", *sorted((root / "docs" / "results").glob("*.md"))]


def write(root, results):
    """Updates every table for which there are results."""
    made = {name: make(results) for name, make in TABLES.items() if name.split("-")[0] in results}
    if "speed" in made:
        made["summary-speed"] = summary_speed(results)
    if "accuracy" in results:
        made["summary-accuracy"] = summary_accuracy(root, results)
    made["about"] = about(results)
    for path in pages(root):
        text = path.read_text(encoding="utf-8")
        for name, table in made.items():
            text = between(text, name, table)
        path.write_text(text, encoding="utf-8")


def between(text, name, table):
    """Replaces the text between the markers `name` by `table`, if there are markers."""
    first, last = f"<!-- {name} -->", f"<!-- /{name} -->"
    if first not in text:
        return text
    before, rest = text.split(first, 1)
    if last not in rest:
        raise SystemExit(f"the marker {last} is missing")
    return before + first + "\n" + table + "\n" + last + rest.split(last, 1)[1]


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def seconds(spread):
    unit, scale, digits = ("s", 1, 2) if spread["median"] >= 0.995 else ("ms", 1000, 1)
    digits = 0 if spread["median"] * scale >= 100 else digits
    low, mid, high = (f"{spread[key] * scale:.{digits}f}" for key in ("min", "median", "max"))
    return f"{mid} {unit} ({low}–{high})"


def count(value):
    """A rate rounded to three significant digits."""
    step = 10 ** max(0, len(str(int(value))) - 3)
    return f"{round(value / step) * step:,}"


def rate(spread):
    return f"{count(spread['median'])} ({count(spread['min'])}–{count(spread['max'])})"


def mib(n_bytes):
    return f"{n_bytes / MIB:.0f} MiB" if n_bytes >= 10 * MIB else f"{n_bytes / MIB:.1f} MiB"


def percent(share):
    return f"{100 * share:.1f}"


def interval(pair):
    return f"{percent(pair[0])}–{percent(pair[1])}"


def met(true):
    return "yes" if true else "**no**"


def speed(results):
    speed = results["speed"]
    link, mapped, opened, default = speed["link"], speed["map"], speed["open"], speed["default"]
    peaks = {"compile": speed["compile"]["peak"], "link": max(link["peak_1"], link["peak_2"]), "map": mapped["peak"],
             "open": opened["peak"]}
    rows = [
        ["compile all of MeSH 2019", "under 5 s", seconds(speed["compile"]["seconds"]),
         met(speed["compile"]["seconds"]["median"] < 5)],
        ["open it and verify checksums", "under 10 ms", seconds(opened["seconds"]),
         met(opened["seconds"]["median"] < 0.01)],
        ["`kb info`, whole process", "", seconds(opened["info_seconds"]), ""],
        ["`link --text`, default model, starter terminology, whole process", "", seconds(speed["start"]["seconds"]), ""],
        [f"`link --model lexical`, {link['n_abstracts']:,} abstracts, 2 threads, whole process", "",
         seconds(link["once_2"]), ""],
        ["the same as throughput, start-up included", "1,000 abstracts/s, goal 5,000", f"{rate(link['rate_once_2'])} /s",
         met(link["rate_once_2"]["median"] >= 1000) + goal(link["rate_once_2"]["median"] >= 5000)],
        [f"`link --model lexical`, the abstracts {link['n_fold']} times over, 2 threads", "1,000 abstracts/s, goal 5,000",
         f"{rate(link['rate_2'])} /s", met(link["rate_2"]["median"] >= 1000) + goal(link["rate_2"]["median"] >= 5000)],
        ["the same, 1 thread", "", f"{rate(link['rate_1'])} /s", ""],
        ["`link --model lexical`, speed-up from 1 to 2 threads", "1.8 times", f"{link['scaling']:.2f} times",
         met(link["scaling"] >= 1.8)],
        ["`link --model lexical`, output with 1, 2 and 4 threads", "identical",
         "identical" if link["same_output"] else "differs", met(link["same_output"])],
        ["`link`, default model, 1,000 abstracts, MeSH trees C, D, F03, 2 threads, start-up included",
         "150 abstracts/s, goal 300", f"{rate(default['rate_2'])} /s",
         met(default["rate_2"]["median"] >= 150) + goal(default["rate_2"]["median"] >= 300)],
        ["the same, 1 thread", "", f"{rate(default['rate_1'])} /s", ""],
        ["the same, first run, 2 threads: concept names are encoded", "", seconds(default["first"]), ""],
        ["the same, output with 1 and 2 threads", "identical", "identical" if default["same_output"] else "differs",
         met(default["same_output"])],
        ["the same, peak memory", "under 400 MiB", mib(default["peak"]), met(default["peak"] < 400 * MIB)],
        [f"`map`, {mapped['n_names']:,} names to MEDIC, 1 thread", "5,000 names/s", f"{rate(mapped['rate_1'])} /s",
         met(mapped["rate_1"]["median"] >= 5000)],
        ["the same, 2 threads", "", f"{rate(mapped['rate_2'])} /s", ""],
        ["`map`, output with 1 and 2 threads", "identical", "identical" if mapped["same_output"] else "differs",
         met(mapped["same_output"])],
        *([f"peak memory of `{name}`", "under 300 MiB", mib(peak), met(peak < 300 * MIB)]
          for name, peak in [("kb build", peaks["compile"]), ("link --model lexical", peaks["link"]),
                             ("map", peaks["map"]), ("kb info", peaks["open"])]),
    ]
    commands = [speed["compile"]["command"], opened["command"], opened["info_command"], speed["start"]["command"],
                link["command"], default["command"], mapped["command"]]
    return table(["measurement", "target", "median (min–max)", "met"], rows) + "\n\n" + shell(commands)


def goal(reached):
    return ", goal reached" if reached else ", goal missed"


def shell(commands):
    return "```sh\n" + "\n".join(commands) + "\n```"


def sizes(results):
    names = {"binary": "the `canonym` binary, with line tables for debugging"}
    rows = [[names.get(name, f"`{name}.kb`"), mib(size)] for name, size in sorted(results["sizes"].items())]
    return table(["file", "size"], rows) + "\n\n" + shell(results["knowledge_bases"])


def accuracy_map(results):
    rows = results["accuracy"]["map"]
    lines = [[row["corpus"], row["dictionary"], f"{row['n']:,}", percent(row["accuracy_1"]), interval(row["ci_1"]),
              percent(row["accuracy_5"])] for row in rows]
    head = ["queries (dev)", "dictionary", "mentions", "accuracy@1", "95 % CI", "accuracy@5"]
    return table(head, lines) + "\n\n" + shell(command for row in rows for command in row["commands"])


def accuracy_corpora(results):
    rows = results["accuracy"]["recognition"]
    lines = [[row["title"], f"{row['n_gold']:,}", percent(row["kb"]["coverage"]),
              *(percent(row["strict"][key]) for key in ("precision", "recall", "f1")), interval(row["ci_strict"]),
              percent(row["partial"]["f1"])] for row in rows]
    head = ["corpus and terminology", "gold mentions", "coverage", "strict P", "strict R", "strict F1", "95 % CI", "partial F1"]
    return table(head, lines) + "\n\n" + shell(command for row in rows for command in row["commands"])


def peers(results):
    rows = [[row["corpus"], row["dictionary"], row["system"], f"{row['n_queries']:,}", percent(row["accuracy"]),
             count(row["names_per_second"])]
            for row in sorted(results["peers"], key=lambda row: (row["corpus"], row["dictionary"], -row["n_queries"]))]
    return table(["queries (dev)", "dictionary", "system", "mentions", "accuracy@1", "names/s, 1 thread"], rows)


def write_peers(root, results):
    """Updates the table of the peers."""
    path = root / "docs" / "results" / "peers.md"
    path.write_text(between(path.read_text(encoding="utf-8"), "beside", beside_peers(results)), encoding="utf-8")


def beside_peers(results):
    """The systems of each task, best first; the best value of each column is bold."""
    parts = []
    for task in dict.fromkeys(row["task"] for row in results["rows"]):
        rows = [row for row in results["rows"] if row["task"] == task]
        finds = "strict" in rows[0]
        score = (lambda row: row["strict"]["f1"]) if finds else (lambda row: row["accuracy_1"])
        rows.sort(key=score, reverse=True)
        second = (lambda row: row["partial"]["f1"]) if finds else (lambda row: row["accuracy_5"])
        columns = [(score, max, percent), (second, max, percent), (lambda row: row["rate"], max, count),
                   (lambda row: row["build_seconds"], min, one_decimal), (lambda row: row["ready_seconds"], min, two_decimals),
                   (lambda row: row["peak_bytes"], min, mib)]
        best = [choose(map(value, rows)) for value, choose, _ in columns]
        ours = next((row["rate"] for row in rows if row["system"] == "canonym"), None)
        lines = []
        for row in rows:
            cells = [f"**{show(value(row))}**" if value(row) == top else show(value(row))
                     for (value, _, show), top in zip(columns, best)]
            cells.insert(1, interval(row["ci_strict" if finds else "ci_1"]))
            cells.insert(4, f"{row['rate'] / ours:.3g}" if ours else "")
            lines.append([f"{row['system']} {results['versions'][row['system']]}", *cells])
        names = (["strict F1", "95 % CI", "partial F1", "abstracts/s"] if finds
                 else ["accuracy@1", "95 % CI", "accuracy@5", "names/s"])
        head = ["system", *names, "relative rate", "index build, s", "ready, s", "peak memory"]
        parts.append(f"{task[0].upper()}{task[1:]}:\n\n" + table(head, lines))
    failed = [f"- {one['system']}, {one['task']}: {one['reason']}" for one in results["failed"]]
    return "\n\n".join(parts + (["Not measured:\n\n" + "\n".join(failed)] if failed else []))


def one_decimal(number):
    return f"{number:.1f}"


def two_decimals(number):
    return f"{number:.2f}"


def summary_speed(results):
    speed = results["speed"]
    link, default, mapped, sizes = speed["link"], speed["default"], speed["map"], results["sizes"]
    rows = [
        ["link 1,000 abstracts to MeSH (default: trees C, D, F03), 2 threads, start-up included",
         f"{count(link['rate_once_2']['median'])} abstracts/s",
         f"{count(default['rate_2']['median'])} abstracts/s"],
        ["the same, peak memory", mib(max(link["peak_1"], link["peak_2"])), mib(default["peak"])],
        ["the same in seconds, first run with a terminology, which encodes its names", "–",
         seconds(default["first"]).split(" (")[0]],
        ["`link --text` with one sentence, whole process",
         *(seconds(speed["start"][key]).split(" (")[0] for key in ("lexical_seconds", "seconds"))],
        ["map names, 1 thread", f"{count(mapped['rate_1']['median'])} names/s",
         f"{count(mapped['default_rate_1']['median'])} names/s"],
    ]
    compiled, opened = (seconds(speed[key]["seconds"]).split(" (")[0] for key in ("compile", "open"))
    return table(["speed and memory", "lexical", "default"], rows) + (
        f"\n\nAll of MeSH 2019 (29,351 concepts, 153,000 names) compiles in {compiled}, opens in {opened} and takes "
        f"{mib(sizes['mesh'])}; the program takes {mib(sizes['binary'])}.")


def summary_accuracy(root, results):
    """Scores of both models; those of the default model are from its training report and the everyday texts."""
    halves, everyday = (json.loads((root / "experiments" / "reports" / f"{name}.json").read_text(encoding="utf-8"))
                        for name in ("default-bundle", "everyday"))
    right = {(run["terminology"], run["model"]): f"{percent(run['right'] / run['n'])} ({interval(run['right_interval'])})"
             for run in everyday["runs"]}
    rows = [[f"everyday text, {name}", "mentions linked correctly, %", right[name, "lexical"], right[name, "default"]]
            for name in dict.fromkeys(run["terminology"] for run in everyday["runs"])]
    for row in results["accuracy"]["recognition"]:
        judged = next((of for name, of in halves["by_halves"].items() if row["title"].startswith(name)), None)
        # The default model learned from some articles of CRAFT and is measured on the others.
        others = halves["by_halves"].get(f"{row['title'].replace(' dev,', '')}, the other articles")
        default = percent(judged["links"][2]) if judged else f"{percent(others['links'][2])} (other articles)"
        rows.append([row["title"], "strict F1", f"{percent(row['strict']['f1'])} ({interval(row['ci_strict'])})", default])
    rows += [[f"`map`: {row['corpus']} dev, BioSyn {row['dictionary']} dictionary", "accuracy@1",
              f"{percent(row['accuracy_1'])} ({interval(row['ci_1'])})", "– (learned from them)"]
             for row in results["accuracy"]["map"] if row["dictionary"] == "dev"]
    return table(["data", "measure", "lexical (95 % CI)", "default (95 % CI)"], rows)


def about(results):
    lines = []
    for part, found in sorted(results["about"].items()):
        lines.append(
            f"- {part}: {found['date']}, revision {found['commit']}, {found['cores']} cores {found['architecture']}, "
            f"{found['system']}, load average before the start {found['load_before']}")
    return "\n".join(lines)


def example(results):
    """Output of the first command of the README."""
    return f"```text\n{results['example']}\n```"


TABLES = {"example": example, "speed": speed, "sizes": sizes, "accuracy-map": accuracy_map, "accuracy-corpora": accuracy_corpora,
          "peers": peers}
