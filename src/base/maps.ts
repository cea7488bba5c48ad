interface Keyed<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V): unknown;
}

/** The value of a key, made where there is none yet. */
export function kept<K, V>(map: Keyed<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** Adds to the list of a key. */
export function addTo<K, V>(map: Keyed<K, V[]>, key: K, value: V): void {
  kept(map, key, () => []).push(value);
}
