// The script of an HTML report: takes the blocks of data out of the page, and shows them.
import { byId, el, listOf } from './dom.js';
import { longestOf, type Place } from './find.js';
import { Flame } from './flame.js';
import { type Shown, tablesOf } from './tables.js';
import { Timeline } from './timeline.js';
import { blocksIn, type Trace, traceOf } from './trace.js';

const keys: readonly (readonly [string, string])[] = [
  ['wheel, + -', 'zoom'],
  ['drag, arrows', 'move; shift and wheel: in time; wheel over names: lanes'],
  ['0, f', 'show everything; fit the selection'],
  ['click', 'select; on a name: fold its lane'],
  [', .', 'select the slice before, the next one in the row'],
  ['k j', 'select what is around, inside; past that, at the same time in the lane above, below'],
  ['w', 'from a poll to the wake that caused it, or to the system call that it serves, and back'],
  ['/', 'search; n and N, or Enter: the next and the one before'],
  ['Escape', 'no selection'],
  ['1 to 9', 'the views'],
  ['?', 'this help'],
];

/** The parts of the page, one of which is shown. */
class Views {
  readonly #timeline: Timeline;
  readonly #views = new Map<string, Shown>();
  readonly #tabs = new Map<string, HTMLButtonElement>();
  #now = '';
  #filter = '';

  constructor(timeline: Timeline, trace: Trace) {
    this.#timeline = timeline;
    const { tables } = trace;
    this.#views.set('Timeline', () => {
      timeline.describe();
      return [];
    });
    if (tables) {
      this.#flame('Flame graph', tables.calls);
      this.#flame('Await graph', tables.awaits);
      const lead = (place: Place): void => this.#lead(longestOf(trace, place));
      for (const [title, shown] of tablesOf(tables, lead)) this.#views.set(title, shown);
    } else {
      const cut = 'the end of this file is missing, and with it its tables and flame graphs: its recorder was killed';
      this.#views.set('Not seen', () => [el('p', { class: 'note' }, cut)]);
    }
    for (const title of this.#views.keys()) {
      const tab = el('button', { type: 'button', role: 'tab' }, title);
      tab.addEventListener('click', () => this.show(title));
      this.#tabs.set(title, tab);
    }
    byId('tabs').append(...this.#tabs.values());
    byId('tabs').addEventListener('keydown', ({ key }) => {
      const step = key === 'ArrowRight' ? 1 : key === 'ArrowLeft' ? -1 : 0;
      if (step !== 0) this.byNumber([...this.#views.keys()].indexOf(this.#now) + step);
      if (step !== 0) this.#tabs.get(this.#now)?.focus();
    });
  }

  get now(): string {
    return this.#now;
  }

  byNumber(number: number): void {
    this.show([...this.#views.keys()][number] ?? '');
  }

  show(title: string): void {
    const shown = this.#views.get(title);
    if (shown === undefined) return;
    if (title !== this.#now) byId('view').scrollTop = 0;
    this.#now = title;
    for (const [name, tab] of this.#tabs) {
      tab.setAttribute('aria-selected', String(name === title));
      tab.tabIndex = name === title ? 0 : -1;
    }
    const isTimeline = title === 'Timeline';
    const view = byId('view');
    byId('timeline').hidden = !isTimeline;
    view.hidden = isTimeline;
    view.className = title.endsWith('graph') ? 'flame' : '';
    view.setAttribute('aria-label', title);
    byId('details').hidden = !isTimeline && !title.endsWith('graph');
    byId('tip').hidden = true;
    view.replaceChildren(...shown(this.#filter));
    this.#timeline.draw();
    this.#timeline.onChange();
  }

  search(text: string): void {
    this.#filter = text;
    const count = this.#timeline.search(text);
    byId('found').textContent = text === '' ? '' : `${count.toLocaleString('en')} found`;
    if (this.#now !== 'Timeline') this.show(this.#now);
  }

  /** To the slice that a row is about. */
  #lead(slice: number): void {
    if (slice < 0) {
      byId('found').textContent = 'nothing of it is in the timeline';
      return;
    }
    this.show('Timeline');
    this.#timeline.drawNow();
    this.#timeline.showAround(slice);
    this.focus();
  }

  /** What takes the keys of what is shown. */
  focus(): void {
    const view = byId('view');
    (this.#now === 'Timeline' ? byId('lanes') : (view.querySelector('canvas') ?? view)).focus();
  }

  #flame(title: string, stacks: ConstructorParameters<typeof Flame>[0]): void {
    if (stacks.frame.length === 0) return;
    let flame: Flame | undefined;
    this.#views.set(title, (filter) => {
      flame ??= new Flame(stacks, title);
      flame.search(filter);
      flame.describe();
      return flame.parts;
    });
  }
}

/** Keys of the whole page, and its search. */
function listen(views: Views, timeline: Timeline): void {
  const input = byId('search').querySelector('input') as HTMLInputElement;
  const help = byId<HTMLDialogElement>('keys');
  help.append(el('h2', {}, 'Keys of the timeline'), listOf(keys), el('p', {}, 'Escape closes this.'));
  byId('help').addEventListener('click', () => help.showModal());
  const next = (step: 1 | -1): void => {
    if (views.now === 'Timeline') timeline.next(step);
  };
  input.addEventListener('input', () => views.search(input.value));
  byId('search').addEventListener('submit', (event) => {
    event.preventDefault();
    next(1);
  });
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.target === input) {
      if (event.key !== 'Escape') return;
      views.focus();
    } else if (event.key === '/') input.select();
    else if (event.key === '?') help.showModal();
    else if (event.key === 'n') next(1);
    else if (event.key === 'N') next(-1);
    else if (/^[1-9]$/.test(event.key)) {
      views.byNumber(Number(event.key) - 1);
      views.focus();
    } else return;
    event.preventDefault();
  });
}

/** `#view=Tasks`, `#t=1000,2000&select=17`: what is shown, so that an address can say it. */
function fragment(views: Views, timeline: Timeline, { what }: Trace): void {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const [from, to] = (wanted.get('t') ?? '').split(',').map(Number);
  if (from !== undefined && to !== undefined && to > from) timeline.layout.show(from, to);
  const slice = Number(wanted.get('select') ?? -1);
  views.show('Timeline');
  // A profile has nothing but samples.
  if (what.length === 0) views.show('Flame graph');
  views.show(wanted.get('view') ?? '');
  timeline.drawNow();
  views.focus();
  if (slice in what) timeline.select(slice);
  let writing = 0;
  timeline.onChange = () => {
    clearTimeout(writing);
    // A browser counts changes of its history.
    writing = window.setTimeout(() => {
      const { from: start, to: end } = timeline.layout;
      const select = timeline.selected < 0 ? '' : `&select=${timeline.selected}`;
      const view = views.now === 'Timeline' ? '' : `&view=${encodeURIComponent(views.now)}`;
      history.replaceState(null, '', `#t=${Math.round(start)},${Math.round(end)}${select}${view}`);
    }, 400);
  };
}

async function start(): Promise<void> {
  const data = [...document.querySelectorAll('script[type="application/octet-stream"]')];
  const trace = traceOf(await blocksIn(data.map(({ textContent }) => textContent ?? '')));
  for (const each of data) each.remove();
  const { info } = trace;
  byId('program').textContent = info?.program ?? 'nothing was recorded';
  document.title = `${info?.program ?? 'rsptrace'}: rsptrace report`;
  const clock = info && `${info.clock.guest ? 'guest clock' : 'clock'} ${info.clock.name}`;
  const cut = trace.tables ? '' : '; the end of this file is missing';
  byId('about').textContent = info ? `${info.arch}, ${clock}${cut}` : '';
  const slices = trace.what.length;
  byId('count').textContent = `${slices.toLocaleString('en').replaceAll(',', ' ')} slices and marks`;
  const timeline = new Timeline(trace);
  const views = new Views(timeline, trace);
  listen(views, timeline);
  fragment(views, timeline, trace);
  performance.mark('shown');
  document.documentElement.dataset.state = 'shown';
}

addEventListener('DOMContentLoaded', () => {
  start().catch((error: unknown) => {
    byId('count').textContent = `the report cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
    throw error;
  });
});
