/** Signals that end a program in good order, if it handles them. */
export const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
