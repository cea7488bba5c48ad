/** Lets a file that finds no room on its disk have that of another one, which is needed less. */
export class DiskRoom {
  #give: (() => boolean) | undefined;

  /** `give` frees room, or returns false if it has none left. */
  offer(give: () => boolean): void {
    this.#give = give;
  }

  /** Whether room was made. */
  take(): boolean {
    return this.#give?.() ?? false;
  }
}
