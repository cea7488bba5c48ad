export interface Ran {
  readonly status: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that runs, in a process or in a thread of this one. */
export interface Command {
  readonly ended: Promise<Ran>;
  /** The object that it prints with `--json`. Rejects where it ends with another status. */
  json<T>(status?: number): Promise<T>;
  over(): boolean;
  /** Resolves when stdout and stderr together have shown this text. */
  shows(text: string): Promise<void>;
  /** Calls `reader` with all that both have shown, whenever that is more. */
  read(reader: (said: string) => void): void;
  signal(signal: 'SIGINT' | 'SIGTERM'): void;
}

/** `json` of a command that ends so. */
export async function jsonOf<T>(ended: Promise<Ran>, wanted = 0): Promise<T> {
  const { status, stdout, stderr } = await ended;
  if (status !== wanted) throw new Error(`status ${status}, not ${wanted}: ${stderr}`);
  return JSON.parse(stdout) as T;
}

/** What a command has printed so far, and who waits for more. */
export class Output {
  #stdout = '';
  #stderr = '';
  readonly #waiting: { text: string; resolve: () => void; reject: (error: Error) => void }[] = [];
  readonly #readers: ((said: string) => void)[] = [];

  add(stream: 'stdout' | 'stderr', text: string): void {
    if (stream === 'stdout') this.#stdout += text;
    else this.#stderr += text;
    for (const reader of this.#readers) reader(this.#stdout + this.#stderr);
    this.#look();
  }

  read(reader: (said: string) => void): void {
    this.#readers.push(reader);
    reader(this.#stdout + this.#stderr);
  }

  shows(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ text, resolve, reject });
      this.#look();
    });
  }

  end(status: number | null, signal: string | null): Ran {
    const [stdout, stderr] = [this.#stdout, this.#stderr];
    for (const { text, reject } of this.#waiting) {
      reject(new Error(`ended without showing '${text}':\n${stdout}${stderr}`));
    }
    return { status, signal, stdout, stderr };
  }

  #look(): void {
    for (const { text, resolve } of this.#waiting) {
      if (this.#stdout.includes(text) || this.#stderr.includes(text)) resolve();
    }
  }
}
