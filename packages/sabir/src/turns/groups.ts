/** Items by a key that several share, so that those of one key are found without a look at the others. */
export function createGroups<Key, Item>() {
  const groups = new Map<Key, Set<Item>>();
  return {
    add(key: Key, item: Item): void {
      const group = groups.get(key);
      if (group) group.add(item);
      else groups.set(key, new Set([item]));
    },
    delete(key: Key, item: Item): void {
      const group = groups.get(key);
      group?.delete(item);
      if (group?.size === 0) groups.delete(key);
    },
    /** In the order in which they were added. */
    get: (key: Key): Item[] => [...(groups.get(key) ?? [])],
    clear: () => groups.clear(),
  };
}
