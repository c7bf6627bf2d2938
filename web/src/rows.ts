// Long lists: only the rows that can be seen are elements.

import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";

export class VirtualRows {
  private readonly virtualizer: Virtualizer<HTMLElement, HTMLElement>;
  private readonly shown = new Map<number, HTMLElement>();
  private count = 0;
  private everything = 0;

  constructor(
    private readonly scroller: HTMLElement,
    private readonly holder: HTMLElement,
    private readonly rowPx: number,
    private readonly row: (index: number) => HTMLElement,
    private readonly changed: () => void = () => undefined,
  ) {
    this.virtualizer = new Virtualizer(this.options());
    this.virtualizer._didMount();
    this.virtualizer._willUpdate();
  }

  private options() {
    return {
      count: this.count,
      getScrollElement: () => this.scroller,
      estimateSize: () => this.rowPx,
      scrollToFn: elementScroll,
      observeElementRect,
      observeElementOffset,
      overscan: 6,
      onChange: () => this.render(false),
    };
  }

  /** There are `count` rows now, and they may be other ones than before. */
  update(count: number): void {
    this.count = count;
    this.holder.style.height = `${count * this.rowPx}px`;
    this.virtualizer.setOptions(this.options());
    this.virtualizer._willUpdate();
    this.render(true);
  }

  /** On paper there is no scrolling: the first `count` rows are elements until it is 0 again. */
  forPrint(count: number): void {
    this.everything = Math.min(count, this.count);
    this.holder.style.height = `${(this.everything || this.count) * this.rowPx}px`;
    this.render(true);
  }

  scrollTo(index: number): void {
    const top = index * this.rowPx;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + this.rowPx > scrollTop + clientHeight)
      this.scroller.scrollTop = top + this.rowPx - clientHeight;
  }

  private indexes(): number[] {
    if (this.everything) return Array.from({ length: this.everything }, (_, index) => index);
    return this.virtualizer.getVirtualItems().map((item) => item.index);
  }

  private render(anew: boolean): void {
    const wanted = this.indexes();
    const keep = new Set(wanted);
    for (const [index, element] of this.shown) {
      if (!anew && keep.has(index)) continue;
      element.remove();
      this.shown.delete(index);
    }
    for (const index of wanted) {
      if (this.shown.has(index)) continue;
      const element = this.row(index);
      element.style.top = `${index * this.rowPx}px`;
      this.shown.set(index, element);
      this.holder.append(element);
    }
    this.changed();
  }
}
