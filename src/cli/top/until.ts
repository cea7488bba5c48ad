/** Resolves at that time, in milliseconds since 1970, or when the signal comes. */
export function until(time: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, Math.max(0, time - Date.now()));
    signal.addEventListener('abort', done);
    if (signal.aborted) done();
  });
}
