// What of the turn the waterfall shows: zoomed and panned within the turn, whatever the width.

import { scaleLinear, type ScaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { zoom, zoomIdentity, type D3ZoomEvent, type ZoomBehavior, type ZoomTransform } from "d3-zoom";

/** Room at the right for the time of the last bar. */
export const MARGIN_PX = 56;
const LEAST_SHOWN_NS = 1_000;

export class TimeAxis {
  private transform: ZoomTransform = zoomIdentity;
  private readonly zoom: ZoomBehavior<HTMLCanvasElement, unknown>;
  private widthPx = Number.NaN;

  /** `moved` is told of every change, and how far the pointer dragged the rows up or down. */
  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly start: number,
    private readonly end: number,
    moved: (down: number) => void,
  ) {
    this.zoom = zoom<HTMLCanvasElement, unknown>()
      .filter((event: MouseEvent | TouchEvent) => {
        // one finger scrolls as everywhere, unless there is something at the sides to pan to
        if ("touches" in event) return event.touches.length > 1 || this.transform.k > 1;
        if (event.type === "wheel") return event.ctrlKey || event.metaKey;
        return event.type !== "dblclick" && !event.button;
      })
      .on("zoom", (event: D3ZoomEvent<HTMLCanvasElement, unknown>) => {
        const source = event.sourceEvent as Event | null;
        const isDrag = source?.type === "mousemove" && event.transform.k === this.transform.k;
        const down = isDrag ? event.transform.y - this.transform.y : 0;
        this.transform = event.transform;
        moved(down);
      });
    select(canvas).call(this.zoom);
  }

  get plotPx(): number {
    return this.canvas.clientWidth || 1;
  }

  /** From nanoseconds to pixels. */
  scale(): ScaleLinear<number, number> {
    const whole = scaleLinear()
      .domain([this.start, this.end])
      .range([0, this.plotPx - MARGIN_PX]);
    return this.transform.rescaleX(whole);
  }

  /** The canvas has another width: what is shown stays what is shown. */
  resize(): void {
    const { clientWidth } = this.canvas;
    const widened = (clientWidth - MARGIN_PX) / (this.widthPx - MARGIN_PX);
    this.widthPx = clientWidth;
    this.zoom
      .extent([
        [0, 0],
        [clientWidth, 1],
      ])
      .translateExtent([
        [0, -Infinity],
        [clientWidth, Infinity],
      ])
      .scaleExtent([1, this.most]);
    const { k, x } = this.transform;
    if (Number.isFinite(widened) && widened !== 1 && k > 1) this.set(k, x * widened);
  }

  private get most(): number {
    return Math.max((this.end - this.start) / LEAST_SHOWN_NS, 1);
  }

  private set(k: number, x: number): void {
    this.zoom.transform(select(this.canvas), zoomIdentity.translate(x, 0).scale(k));
  }

  zoomBy(factor: number): void {
    this.zoom.scaleBy(select(this.canvas), factor);
  }

  panBy(px: number): void {
    this.zoom.translateBy(select(this.canvas), -px / this.transform.k, 0);
  }

  /** Make a stretch of time as wide as the plot, with some room at its sides. */
  fit(start: number, end: number): void {
    const px = this.plotPx - MARGIN_PX;
    const per = px / (this.end - this.start);
    const k = Math.min(px / ((end - start) * per * 1.3), this.most);
    this.set(k, px / 2 - ((start + end) / 2 - this.start) * per * k);
  }

  whole(): void {
    this.set(1, 0);
  }
}
