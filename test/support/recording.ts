/** What a recording says with `--json`, as far as tests look at it. */
export interface Recording {
  readonly trace: string;
  readonly clock: { readonly name: string; readonly guest: boolean; readonly of_records: string | null };
  readonly end: string;
  readonly guest_exit: string;
  readonly events: number;
  readonly left_out?: number;
  readonly stops: number;
  readonly records: number;
  readonly missing: number;
  readonly resets: number;
  readonly tail_lost: boolean;
  readonly load_bias: string;
  readonly foreign_hits: number;
  readonly foreign_most?: { readonly hits: number; readonly address: string; readonly probes: readonly string[] };
  readonly scratch: string | undefined;
  readonly ram: { readonly past_wire: boolean; readonly source?: string; readonly why?: string } | null;
  readonly panic_breakpoints: number;
  readonly counter_stays_open: string | null;
  readonly probes: readonly ProbeRow[];
  readonly guest_ns: number;
  readonly host_ms: number;
  readonly standing_ms: number;
  readonly longest_standing_ms: number;
  readonly ran_ms: number;
  readonly gaps: readonly { readonly from_ns: number; readonly to_ns: number; readonly why?: string }[];
  readonly futures: readonly FutureRow[];
  readonly functions: readonly FunctionRow[];
  readonly counts: readonly { readonly function: string; readonly calls: number }[];
  readonly error?: { readonly code: string; readonly message: string; readonly hint?: string };
}

/** How a probe was carried out. */
export interface ProbeRow {
  readonly function: string;
  readonly address: string;
  readonly engine: string;
  readonly why?: string;
  readonly partly?: string;
}

export interface FunctionRow {
  readonly function: string;
  readonly instance: string;
  readonly address: string;
  readonly calls: number;
  readonly lost: number;
  readonly total_ns: number;
  readonly times_at_most?: true;
  readonly self_ns: number;
  readonly avg_ns: number;
  readonly max_ns: number;
}

export interface FutureRow {
  readonly future: string;
  readonly instance: string;
  readonly kind: string;
  readonly file: string | null;
  readonly line: number | null;
  readonly polls: number;
  readonly at_least: boolean;
  readonly ready: number;
  readonly pending: number;
  readonly panicked: number;
  readonly derived: number;
  readonly lost: number;
  readonly total_ns: number;
  readonly total_error_ns?: number;
  readonly times_at_most?: true;
  readonly max_ns: number;
}
