/** Columns of numbers that grow by doubling: tables as struct of arrays without an object per row. */
export class U32Column {
  #data: Uint32Array = new Uint32Array(64);
  length = 0;

  /** Has these rows in place of its own. They are not copied. */
  take(rows: Uint32Array): void {
    this.#data = rows;
    this.length = rows.length;
  }

  push(value: number): void {
    if (this.length === this.#data.length) {
      const wider = new Uint32Array(Math.max(64, this.length * 2));
      wider.set(this.#data);
      this.#data = wider;
    }
    this.#data[this.length++] = value;
  }

  at(index: number): number {
    return this.#data[index] as number;
  }

  set(index: number, value: number): void {
    this.#data[index] = value;
  }

  /** The rows so far, as a view that later pushes may detach from. */
  rows(): Uint32Array {
    return this.#data.subarray(0, this.length);
  }
}

export class F64Column {
  #data = new Float64Array(64);
  length = 0;

  push(value: number): void {
    if (this.length === this.#data.length) {
      const wider = new Float64Array(this.length * 2);
      wider.set(this.#data);
      this.#data = wider;
    }
    this.#data[this.length++] = value;
  }

  rows(): Float64Array {
    return this.#data.subarray(0, this.length);
  }
}
