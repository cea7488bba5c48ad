// Source files and places as tables and trees show them: without what lies before a package, or the standard library.

/** Up to the folder of a package: of a registry, or of a git repository. */
const PACKAGES = /^.*\/(?:registry\/src\/[^/]+|git\/checkouts)\//;
/** Up to the standard library's sources, as rustc names them, or where they are installed. */
const LIBRARY = /^(?:\/rustc\/[^/]+|.*\/rustlib\/src\/rust)\/(?=library\/)/;

/**
 * A source file as people read it: `tokio-1.54.1/src/sync/mutex.rs` for one of a registry's package, `library/core/..`
 * for one of the standard library, any other as it is. For text alone: JSON and traces have the whole path.
 */
export function shownFile(file: string): string {
  return file.replace(PACKAGES, '').replace(LIBRARY, '');
}

/** The same of each place that stands behind ` at ` in a line. */
export function shownPlaces(line: string): string {
  return line.includes(' at /') ? line.replace(PLACES, ' at ') : line;
}

const PLACES =
  / at (?:\/(?:(?! at )[^:])*?\/(?:registry\/src\/[^/]+|git\/checkouts)\/|\/(?:rustc\/[^/:]+|(?:(?! at )[^:])*?\/rustlib\/src\/rust)\/(?=library\/))/g;

/** `tokio-1.54.1/src/sync/mutex.rs:455`: a place in a source file, by {@link shownFile}; `?` for an unknown line. */
export function shownPlace(file: string, line: number | undefined): string {
  return `${shownFile(file)}:${line ?? '?'}`;
}
