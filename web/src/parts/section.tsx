// A part of the page: landmark, heading, one line that says what it shows. What fails inside stays inside.
import { Component, type ComponentChildren } from "preact";

interface SectionProps { id: string; title: string; lead?: ComponentChildren; children?: ComponentChildren }

export function Section({ id, title, lead, children }: SectionProps) {
  return (
    <section id={id} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{title}</h2>
      {lead && <p class="lead">{lead}</p>}
      <Guard>{children}</Guard>
    </section>
  );
}

// Why a part is empty, in one line.
export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

class Guard extends Component<{ children?: ComponentChildren }, { problem: string | null }> {
  override state = { problem: null };
  override componentDidCatch(error: unknown) {
    this.setState({ problem: error instanceof Error ? error.message : String(error) });
  }
  override render() {
    if (this.state.problem === null) return this.props.children;
    return <p class="empty" role="alert">This part could not be shown: {this.state.problem}</p>;
  }
}
