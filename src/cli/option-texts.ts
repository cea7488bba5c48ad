/**
 * What help says of the lists that plug-ins can extend. Empty where no help is shown, because it takes half of the
 * program.
 */
export interface OptionTexts {
  readonly probes: string;
  readonly formats: string;
  /** Of the formats. */
  readonly extensions: string;
  readonly runtimes: string;
}

export const noTexts: OptionTexts = { probes: '', formats: '', extensions: '', runtimes: '' };
