export type ToolViewProps = {
  name: string;
  state: string;
  input?: unknown;
  output?: unknown;
  errorText?: string | undefined;
};

/** One tool call: shown, never run here. */
export function ToolView({ name, state, input, output, errorText }: ToolViewProps) {
  return (
    <div className="tool" data-tool={name}>
      <strong>{name}</strong> ({state})<pre>{JSON.stringify(input)}</pre>
      {output !== undefined && <pre>{JSON.stringify(output)}</pre>}
      {errorText && <p role="alert">{errorText}</p>}
    </div>
  );
}
