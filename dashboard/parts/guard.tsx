// What cannot be drawn must not take the rest of the page with it: data of a later version may have another shape.
import { Component, type ComponentChildren } from "preact";

interface GuardProps {
  /** Begins a sentence: "The timeline". */
  what: string;
  children: ComponentChildren;
}

export class Guard extends Component<GuardProps, { problem?: string | undefined }> {
  override state: { problem?: string | undefined } = {};

  static override getDerivedStateFromError(error: unknown) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }

  override componentDidCatch(error: unknown): void {
    console.warn(error);
  }

  override render({ what, children }: GuardProps, { problem }: { problem?: string | undefined }) {
    if (problem === undefined) return children;
    return (
      <div class="problem-box" role="alert">
        {what} cannot be shown: {problem}{" "}
        <button type="button" class="button small" onClick={() => this.setState({ problem: undefined })}>
          Try again
        </button>
      </div>
    );
  }
}
