"""Turns results into the tables of docs/results.md and README.md, between markers such as `<!-- speed -->`."""

MIB = 1 << 20


def write(root, results):
    """Puts every table for which there are figures in its places."""
    made = {name: make(results) for name, make in TABLES.items() if name in results}
    if "speed" in made:
        made["summary-speed"] = summary_speed(results)
    if "accuracy" in made:
        made["summary-accuracy"] = summary_accuracy(results)
    made["about"] = about(results)
    for path in (root / "docs" / "results.md", root / "README.md"):
        text = path.read_text(encoding="utf-8")
        for name, table in made.items():
            text = between(text, name, table)
        path.write_text(text, encoding="utf-8")


def between(text, name, table):
    """`text` with `table` between the markers of `name`, where it has them."""
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
    """A rate to three digits; more are noise."""
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
        ["open it, checksums verified", "under 10 ms", seconds(opened["seconds"]),
         met(opened["seconds"]["median"] < 0.01)],
        ["`kb info`, the whole process", "", seconds(opened["info_seconds"]), ""],
        ["`link --text`, the whole process, starter knowledge base", "", seconds(speed["start"]["seconds"]), ""],
        [f"`link`, by words, {link['n_abstracts']:,} abstracts, the whole process, 2 threads", "", seconds(link["once_2"]), ""],
        ["the same as a rate, start included", "1,000 abstracts/s, goal 5,000", f"{rate(link['rate_once_2'])} /s",
         met(link["rate_once_2"]["median"] >= 1000) + goal(link["rate_once_2"]["median"] >= 5000)],
        [f"`link`, the abstracts {link['n_fold']} times over, 2 threads", "1,000 abstracts/s, goal 5,000",
         f"{rate(link['rate_2'])} /s", met(link["rate_2"]["median"] >= 1000) + goal(link["rate_2"]["median"] >= 5000)],
        ["the same, 1 thread", "", f"{rate(link['rate_1'])} /s", ""],
        ["`link`, 2 threads against 1", "1.8 times", f"{link['scaling']:.2f} times", met(link["scaling"] >= 1.8)],
        ["`link`, output of 1, 2 and 4 threads", "identical", "identical" if link["same_output"] else "differs",
         met(link["same_output"])],
        ["`link`, default model, 1,000 abstracts, trees C, D, F03, 2 threads, start included",
         "150 abstracts/s, goal 300", f"{rate(default['rate_2'])} /s",
         met(default["rate_2"]["median"] >= 150) + goal(default["rate_2"]["median"] >= 300)],
        ["the same, 1 thread", "", f"{rate(default['rate_1'])} /s", ""],
        ["the same, the first time, 2 threads: names are encoded", "", seconds(default["first"]), ""],
        ["the same, output of 1 and 2 threads", "identical", "identical" if default["same_output"] else "differs",
         met(default["same_output"])],
        ["the same, peak memory", "under 400 MiB", mib(default["peak"]), met(default["peak"] < 400 * MIB)],
        [f"`map`, {mapped['n_names']:,} names to MEDIC, 1 thread", "5,000 names/s", f"{rate(mapped['rate_1'])} /s",
         met(mapped["rate_1"]["median"] >= 5000)],
        ["the same, 2 threads", "", f"{rate(mapped['rate_2'])} /s", ""],
        ["`map`, output of 1 and 2 threads", "identical", "identical" if mapped["same_output"] else "differs",
         met(mapped["same_output"])],
        *([f"peak memory of `{name}`", "under 300 MiB", mib(peak), met(peak < 300 * MIB)]
          for name, peak in [("kb build", peaks["compile"]), ("link", peaks["link"]), ("map", peaks["map"]),
                             ("kb info", peaks["open"])]),
    ]
    commands = [speed["compile"]["command"], opened["command"], opened["info_command"], speed["start"]["command"],
                link["command"], default["command"], mapped["command"]]
    return table(["what", "target", "median (min–max)", "met"], rows) + "\n\n" + shell(commands)


def goal(reached):
    return ", goal reached" if reached else ", goal missed"


def shell(commands):
    return "```sh\n" + "\n".join(commands) + "\n```"


def sizes(results):
    names = {"binary": "the program `canonym`, debug lines included"}
    rows = [[names.get(name, f"`{name}.kb`"), mib(size)] for name, size in sorted(results["sizes"].items())]
    return table(["file", "size"], rows) + "\n\n" + shell(results["knowledge_bases"])


def accuracy(results):
    found = results["accuracy"]
    mapped = [[row["corpus"], row["dictionary"], f"{row['n']:,}", percent(row["accuracy_1"]), interval(row["ci_1"]),
               percent(row["accuracy_5"])] for row in found["map"]]
    recognised = [[row["title"], f"{row['n_gold']:,}", percent(row["kb"]["coverage"]),
                   *(percent(row["strict"][key]) for key in ("precision", "recall", "f1")), interval(row["ci_strict"]),
                   percent(row["partial"]["f1"])] for row in found["recognition"]]
    commands = [command for row in found["map"] + found["recognition"] for command in row["commands"]]
    return "\n\n".join([
        table(["queries (dev)", "dictionary", "mentions", "accuracy@1", "95%", "accuracy@5"], mapped),
        table(["corpus and terminology", "gold", "coverage", "strict P", "strict R", "strict F1", "95%", "partial F1"], recognised),
        shell(commands),
    ])


def peers(results):
    rows = [[row["corpus"], row["dictionary"], row["system"], f"{row['n_queries']:,}", percent(row["accuracy"]),
             count(row["names_per_second"])]
            for row in sorted(results["peers"], key=lambda row: (row["corpus"], row["dictionary"], -row["n_queries"]))]
    return table(["queries (dev)", "dictionary", "system", "mentions", "accuracy@1", "names/s, 1 thread"], rows)


def write_peers(root, results):
    """Puts the table of the peers in its place."""
    path = root / "docs" / "results.md"
    path.write_text(between(path.read_text(encoding="utf-8"), "beside", beside_peers(results)), encoding="utf-8")


def beside_peers(results):
    """The systems of each task, the best first; the best figure of each column is bold, whoever has it."""
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
        names = ["strict F1", "95%", "partial F1", "abstracts/s"] if finds else ["accuracy@1", "95%", "accuracy@5", "names/s"]
        head = ["system", *names, "rate against ours", "build, s", "ready, s", "peak memory"]
        parts.append(f"{task[0].upper()}{task[1:]}:\n\n" + table(head, lines))
    failed = [f"- {one['system']}, {one['task']}: {one['reason']}" for one in results["failed"]]
    return "\n\n".join(parts + (["Left out:\n\n" + "\n".join(failed)] if failed else []))


def one_decimal(number):
    return f"{number:.1f}"


def two_decimals(number):
    return f"{number:.2f}"


def summary_speed(results):
    speed = results["speed"]
    link, mapped = speed["link"], speed["map"]
    rows = [
        ["compile all of MeSH 2019 (29,351 concepts, 153,000 names)", seconds(speed["compile"]["seconds"])],
        ["open it", seconds(speed["open"]["seconds"])],
        ["find and link the mentions of abstracts, 2 threads", f"{count(link['rate_2']['median'])} abstracts/s"],
        ["map names to MEDIC, 1 thread", f"{count(mapped['rate_1']['median'])} names/s"],
        ["start, link one sentence with the starter, end", seconds(speed["start"]["seconds"])],
        ["peak memory of `link` with all of MeSH", mib(max(link["peak_1"], link["peak_2"]))],
        ["MeSH compiled; the program",
         f"{mib(results['sizes']['mesh'])}; {mib(results['sizes']['binary'])}"],
    ]
    return table(["what", "figure"], rows)


def summary_accuracy(results):
    found = results["accuracy"]
    rows = [["find and link: " + row["title"], "strict F1", f"{percent(row['strict']['f1'])} ({interval(row['ci_strict'])})"]
            for row in found["recognition"]]
    rows += [[f"map names: {row['corpus']} dev, BioSyn {row['dictionary']} dictionary", "accuracy@1",
              f"{percent(row['accuracy_1'])} ({interval(row['ci_1'])})"] for row in found["map"]]
    return table(["task and data", "measure", "figure (95 %)"], rows)


def about(results):
    lines = []
    for part, found in sorted(results["about"].items()):
        lines.append(
            f"- {part}: {found['date']}, revision {found['commit']}, {found['cores']} cores {found['architecture']}, "
            f"{found['system']}, load average {found['load_before']} before the start")
    return "\n".join(lines)


def example(results):
    """What the first command of the README prints."""
    return f"```text\n{results['example']}\n```"


TABLES = {"example": example, "speed": speed, "sizes": sizes, "accuracy": accuracy, "peers": peers}
