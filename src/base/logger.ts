/** What the library asks of a logger: pino's shape, so that pino fits without an adapter. */
export interface Logger {
  trace(fields: object, message: string): void;
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  /** True when a message at this level would be written: guards fields that cost time to build. */
  isLevelEnabled(level: string): boolean;
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
