/** Why something cannot be had, in words for a person: an answer, not an error. */
export type Refusal = { readonly refused: string };

export function isRefusal(value: object): value is Refusal {
  return 'refused' in value;
}
