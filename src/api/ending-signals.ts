/** What ends a program from outside, in good order where it looks for it. */
export const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
