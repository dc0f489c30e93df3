// A tree of concepts that is loaded level by level, as rows that are visible.

export interface TreeNode {
  id: string;
  name: string;
  n_children: number;
}

export interface TreeRow {
  node: TreeNode;
  /** The nodes above it; a concept may have several places. */
  path: string[];
  isOpen: boolean;
}

/** The key of a place in the tree. */
export const placeOf = (path: string[]): string => path.join('\n');

/** The visible rows: the children of open places follow them. */
export function visibleRows(roots: TreeNode[], children: ReadonlyMap<string, TreeNode[]>, open: ReadonlySet<string>): TreeRow[] {
  const rows: TreeRow[] = [];
  const add = (nodes: TreeNode[], above: string[]): void => {
    for (const node of nodes) {
      const path = [...above, node.id];
      const isOpen = open.has(placeOf(path));
      rows.push({ node, path, isOpen });
      // A cycle in the hierarchy ends where it repeats.
      if (isOpen && !above.includes(node.id)) add(children.get(node.id) ?? [], path);
    }
  };
  add(roots, []);
  return rows;
}
