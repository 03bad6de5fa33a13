// The rows behind a number: from the server where there is one, else the query to run.
import { useState } from "preact/hooks";
import { type View } from "../view";
import { Copyable } from "./copy";
import { shown } from "./name";

interface Answer { columns: string[]; rows: unknown[][] }

export function Rows({ view, sql }: { view: View; sql: string }) {
  const command = `llmprof query ${quoted(view.data.name)} ${quoted(sql)}`;
  return (
    <details class="rows">
      <summary>{view.source.live ? "rows" : "query"}</summary>
      <Copyable text={command} what="the query" />
      {view.source.live && <LiveRows view={view} sql={sql} />}
    </details>
  );
}

// For a shell, whatever stands in it; as readable as that allows.
export function quoted(text: string): string {
  if (/^[\w./:=+-]+$/.test(text)) return text;
  if (text.includes("'") && !/["$`\\!]/.test(text)) return `"${text}"`;
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function LiveRows({ view, sql }: { view: View; sql: string }) {
  const [answer, setAnswer] = useState<Answer | string | null>(null);
  const ask = () => {
    setAnswer("asking …");
    const failed = (error: unknown) => setAnswer(error instanceof Error ? error.message : String(error));
    view.source.rows(view.index, sql).then(setAnswer, failed);
  };
  if (answer === null) return <button type="button" onClick={ask}>Show them</button>;
  if (typeof answer === "string") return <p role="status">{shown(answer)}</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Rows">
      <table>
        <thead><tr>{answer.columns.map((name) => <th key={name} scope="col">{shown(name)}</th>)}</tr></thead>
        <tbody>{answer.rows.map((row, at) => <tr key={at}>{row.map((cell, column) => <td key={column}>{shown(cell)}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}
