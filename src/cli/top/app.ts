// What a person does at the screen of `rsptrace top`.
import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../base/errors.js';
import { clipEnd, visible, wrapped } from '../../text/index.js';
import { Screen, styled } from './screen.js';

/** A row of the table. */
export interface Item {
  /** By which it is found again. */
  readonly key: string;
  /** In which a filter searches. */
  readonly text: string;
}

/** What is shown: the first lines, a table of items, and pages. */
export interface Content<I extends Item> {
  readonly items: readonly I[];
  /** How the table can be sorted; the first is how it is. */
  readonly sorts: readonly string[];
  head(columns: number): string[];
  sorted(items: readonly I[], sort: string): I[];
  /** A title, and a line an item. `selected`: its index. */
  table(items: readonly I[], selected: number, columns: number): string[];
  /** All that is known of one item. */
  page(item: I, columns: number): Promise<string[]>;
  resources(columns: number): string[];
  readonly help: readonly string[];
}

interface AppOptions {
  /** The last look as JSON. */
  json(): Promise<string>;
  /** The program is to end. */
  onQuit(): void;
  /** Aborted when no more looks come, by a key or a signal. */
  readonly ends: AbortSignal;
}

type Page = 'tasks' | 'task' | 'resources' | 'help';

/** What the keys have made of the page. */
interface View {
  readonly page: Page;
  /** Of the content's; undefined for the first. */
  readonly sort: string | undefined;
  readonly filter: string;
  /** Keys are typed into the filter. */
  readonly isTyping: boolean;
  readonly isPaused: boolean;
  /** By its key, so that it stays when rows are sorted anew. */
  readonly selected: string | undefined;
  /** The first line that is shown. */
  readonly top: number;
  readonly message: string;
}

const KEYS = 'return open  s sort  / filter  r resources  p pause  w write  ? help  q quit';

export class App<I extends Item> {
  readonly #options: AppOptions;
  readonly #screen = new Screen({ onKey: (key) => void this.#key(key), onRedraw: () => void this.#draw() });
  #view: View = {
    ...{ page: 'tasks', sort: undefined, filter: '', isTyping: false, isPaused: false },
    ...{ selected: undefined, top: 0, message: '' },
  };
  #shown: Content<I> | undefined;
  /** The item that is open: the last that was seen of it. */
  #opened: I | undefined;
  #onResume = (): void => {};

  constructor(options: AppOptions) {
    this.#options = options;
    options.ends.addEventListener('abort', () => this.#resume());
  }

  open(): void {
    this.#screen.open();
    this.#screen.draw(['rsptrace top: looks for the first time']);
  }

  close(): void {
    this.#screen.close();
  }

  /** A look that comes when it is paused is shown when it is not any more. */
  async show(shown: Content<I>): Promise<void> {
    await this.resumed();
    this.#shown = shown;
    const key = this.#opened?.key;
    this.#opened = shown.items.find((item) => item.key === key) ?? this.#opened;
    await this.#draw();
  }

  /** Resolves while no look is wanted only when one is again, or when all is over. */
  async resumed(): Promise<void> {
    if (!this.#view.isPaused || this.#options.ends.aborted) return;
    await new Promise<void>((resolve) => {
      this.#onResume = resolve;
    });
  }

  async #draw(): Promise<void> {
    const shown = this.#shown;
    if (shown === undefined) return;
    const { columns, rows } = this.#screen.size;
    const head = shown.head(columns);
    const room = Math.max(1, rows - head.length - 1);
    const body =
      this.#view.page === 'tasks' ? this.#table(shown, room, columns) : await this.#page(shown, room, columns);
    const lines = Array.from({ length: room }, (_, i) => body[i] ?? '');
    this.#screen.draw([...head, ...lines, this.#foot(shown, columns)]);
  }

  #table(shown: Content<I>, room: number, columns: number): string[] {
    const rows = this.#rows(shown);
    const index = this.#index(rows);
    const most = Math.max(1, room - 1);
    const top = Math.min(Math.max(this.#view.top, index - most + 1, 0), Math.max(0, index));
    this.#set({ top });
    return shown.table(rows.slice(top, top + most), index - top, columns);
  }

  async #page(shown: Content<I>, room: number, columns: number): Promise<string[]> {
    const { page, top } = this.#view;
    const open = this.#opened;
    const lines =
      page === 'help'
        ? shown.help.flatMap((line) => wrapped(line, columns, '  '))
        : page === 'task' && open
          ? await shown.page(open, columns)
          : shown.resources(columns);
    const first = Math.min(top, Math.max(0, lines.length - room));
    if (first !== top) this.#set({ top: first });
    return lines.slice(first, first + room);
  }

  #foot(shown: Content<I>, columns: number): string {
    const { isTyping, filter, isPaused, message } = this.#view;
    if (isTyping) return clipEnd(visible(`filter: ${filter}_`), columns);
    const states = [
      ...(isPaused ? ['paused'] : []),
      ...(filter === '' ? [] : [`filter: ${filter}`]),
      `by ${this.#sort(shown)}`,
    ];
    const text = message === '' ? `${states.join('  ')} | ${KEYS}` : message;
    return styled('inverse', clipEnd(visible(text), columns));
  }

  #rows(shown: Content<I>): I[] {
    const wanted = this.#view.filter.toLowerCase();
    const { items } = shown;
    const found = wanted === '' ? items : items.filter(({ text }) => text.toLowerCase().includes(wanted));
    return shown.sorted(found, this.#sort(shown));
  }

  #sort({ sorts }: Content<I>): string {
    return this.#view.sort ?? sorts[0] ?? '';
  }

  /** Of the selected row; the first if there is none. */
  #index(rows: readonly I[]): number {
    return Math.max(
      0,
      rows.findIndex(({ key }) => key === this.#view.selected),
    );
  }

  async #key(key: string): Promise<void> {
    this.#set({ message: '' });
    if (key === 'ctrl-c' || (key === 'q' && !this.#view.isTyping)) {
      this.#options.onQuit();
      return;
    }
    if (this.#view.isTyping) this.#type(key);
    else if (key === 'w') await this.#write();
    else this.#command(key);
    await this.#draw();
  }

  #set(changed: Partial<View>): void {
    this.#view = { ...this.#view, ...changed };
  }

  #type(key: string): void {
    const { filter } = this.#view;
    const set = (changed: Partial<View>): void => this.#set({ ...changed, top: 0 });
    if (key === 'return' || key === 'enter') set({ isTyping: false });
    else if (key === 'escape') set({ isTyping: false, filter: '' });
    else if (key === 'backspace') set({ filter: filter.slice(0, -1) });
    else if ([...key].length === 1) set({ filter: filter + key });
  }

  #command(key: string): void {
    const { page, isPaused } = this.#view;
    const set = (changed: Partial<View>): void => this.#set(changed);
    const turn = (to: Page): void => set({ page: page === to ? 'tasks' : to, top: 0 });
    if (key === 'escape' || key === 'backspace' || key === 'left') set({ page: 'tasks', top: 0 });
    else if (key === '?' || key === 'h') turn('help');
    else if (key === 'r') turn('resources');
    else if (key === 's') this.#sortNext();
    else if (key === '/') set({ page: 'tasks', isTyping: true, filter: '' });
    else if (key === 'p' || key === ' ') {
      set({ isPaused: !isPaused });
      if (isPaused) this.#resume();
    } else if (key === 'return' || key === 'enter' || key === 'right') this.#openSelected();
    else this.#move(key);
  }

  #sortNext(): void {
    if (this.#shown === undefined) return;
    const { sorts } = this.#shown;
    this.#set({ sort: sorts[(sorts.indexOf(this.#sort(this.#shown)) + 1) % sorts.length] });
  }

  /** Whoever waits for looks to be wanted again goes on. */
  #resume(): void {
    this.#onResume();
    this.#onResume = () => {};
  }

  #openSelected(): void {
    if (this.#view.page !== 'tasks' || this.#shown === undefined) return;
    const rows = this.#rows(this.#shown);
    this.#opened = rows[this.#index(rows)];
    if (this.#opened) this.#set({ page: 'task', top: 0 });
  }

  #move(key: string): void {
    const page = Math.max(1, this.#screen.size.rows - 4);
    const steps: Readonly<Record<string, number>> = {
      ...{ up: -1, k: -1, down: 1, j: 1, pageup: -page, pagedown: page },
      ...{
        home: Number.NEGATIVE_INFINITY,
        g: Number.NEGATIVE_INFINITY,
        end: Number.POSITIVE_INFINITY,
        G: Number.POSITIVE_INFINITY,
      },
    };
    const step = steps[key];
    if (step === undefined || this.#shown === undefined) return;
    if (this.#view.page !== 'tasks') {
      this.#set({ top: Math.max(0, Math.min(this.#view.top + step, Number.MAX_SAFE_INTEGER)) });
      return;
    }
    const rows = this.#rows(this.#shown);
    const index = Math.min(rows.length - 1, Math.max(0, this.#index(rows) + step));
    this.#set({ selected: rows[index]?.key });
  }

  async #write(): Promise<void> {
    const name = `rsptrace-top-${new Date().toISOString().replaceAll(':', '-')}.json`;
    let message = `written: ${name}`;
    try {
      writeFileSync(name, await this.#options.json(), { flag: 'wx' });
    } catch (error) {
      message = `${name} cannot be written: ${messageOf(error)}`;
    }
    this.#set({ message });
  }
}

/** Until then, in milliseconds since 1970, or until the signal comes. */
export async function pause(time: number, signal: AbortSignal): Promise<void> {
  await delay(Math.max(0, time - Date.now()), undefined, { signal }).catch(() => {});
}
