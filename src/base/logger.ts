/** What the library asks of a logger: pino's shape, so that pino fits without an adapter. */
export interface Logger {
  trace(fields: object, message: string): void;
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  /** True when a message at this level would be written: guards fields that cost time to build. */
  isLevelEnabled(level: string): boolean;
  /** The same for a part of rsptrace, such as `inject`, whose entries may be asked for alone. */
  part?(name: string): Logger;
}

/** A logger for the entries of a part; the logger itself where it knows no parts. */
export function partOf(logger: Logger, name: string): Logger {
  return logger.part?.(name) ?? logger;
}

const nothing = (): void => {};

/** The default logger: silent. */
export const silent: Logger = {
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  isLevelEnabled: () => false,
};
