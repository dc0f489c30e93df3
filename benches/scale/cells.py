#!/usr/bin/env python3
"""What share of the names an inverted file of cells has to read to find the nearest ones, after `dense.py` on its files.

    benches/scale/cells.py --report experiments/reports/dense-cells.json

Cells are those of k-means (faiss, 8 iterations on 64 names a cell), read in the order of the distance of their centres from the query.
"""

import argparse
import json
import pathlib

import dense
import faiss
import numpy as np

SHARES = (0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
N_QUERIES = 500


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--report", type=pathlib.Path)
    options = parser.parse_args()
    rows = dense.vectors(dense.MADE / "names-f16.index")
    flat = faiss.IndexFlatIP(rows.shape[1])
    flat.add(rows)
    asked = {}
    for title in ("mentions", "misspelled"):
        queries = np.fromfile(dense.MADE / title / "queries.f32", np.float32).reshape(-1, rows.shape[1])[:N_QUERIES]
        asked[title] = (queries, flat.search(queries, dense.K)[1])
    results = []
    for n_cells in (1024, 4096):
        cells = faiss.Kmeans(rows.shape[1], n_cells, niter=8, seed=1, max_points_per_centroid=64)
        cells.train(rows[::3].copy())
        centres = faiss.IndexFlatL2(rows.shape[1])
        centres.add(cells.centroids)
        cell_of = centres.search(rows, 1)[1][:, 0]
        sizes = np.bincount(cell_of, minlength=n_cells)
        for title, (queries, truth) in asked.items():
            order = centres.search(queries, n_cells)[1]
            rank = np.empty_like(order)
            np.put_along_axis(rank, order, np.arange(n_cells)[None].repeat(len(queries), 0), 1)
            found = rank[np.arange(len(queries))[:, None], cell_of[truth]]
            for share in SHARES:
                n = int(n_cells * share)
                read = float(np.mean([sizes[order[query, :n]].sum() for query in range(len(queries))])) / len(rows)
                one = {"cells": n_cells, "queries": title, "read_cells": n, "read_names": read,
                       "recall_at_1": float(np.mean(found[:, 0] < n)), "recall_at_20": float(np.mean(found < n))}
                print(one, flush=True)
                results.append(one)
    if options.report:
        options.report.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
