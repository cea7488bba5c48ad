/** Why something cannot be had, in words for a person: an answer, not an error. */
export interface Refusal {
  readonly refused: string;
  /** What would help, where that is known. */
  readonly wayOut?: string;
}

export function isRefusal(value: object): value is Refusal {
  return 'refused' in value;
}
