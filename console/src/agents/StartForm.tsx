import { useId, useRef, useState, type FormEvent, type KeyboardEvent } from "react";
import { client } from "../client";
import { useRouter } from "../router";
import { useText } from "../text";
import { Button, ErrorAlert, Kbd } from "../ui";
import { parseInput } from "./parseInput";
import style from "./StartForm.module.css";

interface StartFormProps {
  agent: string;
  examples: readonly string[];
  thread: string;
}

/** Form that starts an agent and opens the run. */
export function StartForm({ agent, examples, thread }: StartFormProps) {
  const { t } = useText();
  const { navigate } = useRouter();
  const [message, setMessage] = useState("");
  const [input, setInput] = useState("");
  const [threadId, setThreadId] = useState(thread);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const form = useRef<HTMLFormElement>(null);
  const id = useId();
  const parsed = parseInput(input);

  const start = async (event: FormEvent) => {
    event.preventDefault();
    if (busy || !parsed.ok) return;
    setBusy(true);
    setError(undefined);
    try {
      const run = await client.runs.create({
        agent,
        message: message.trim() === "" ? undefined : message,
        input: parsed.value,
        thread_id: threadId.trim() === "" ? undefined : threadId.trim(),
      });
      navigate({ name: "run", id: run.run_id, tab: "conversation" });
    } catch (error) {
      setError(error);
      setBusy(false);
    }
  };
  const submitOnEnter = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || !(event.metaKey || event.ctrlKey)) return;
    event.preventDefault();
    form.current?.requestSubmit();
  };

  return (
    <form ref={form} className={style["form"]} onSubmit={(event) => void start(event)} onKeyDown={submitOnEnter}>
      <label className="field-label" htmlFor={`${id}message`}>
        {t.agents.message}
      </label>
      <textarea
        id={`${id}message`}
        className="field"
        rows={3}
        placeholder={t.agents.messagePlaceholder}
        value={message}
        onChange={(event) => setMessage(event.target.value)}
      />
      {examples.length > 0 && (
        <div className={style["examples"]} role="group" aria-label={t.agents.examples}>
          {examples.map((example) => (
            <button key={example} type="button" className={style["example"]} onClick={() => setMessage(example)}>
              {example}
            </button>
          ))}
        </div>
      )}
      <details className={style["advanced"]} open={thread !== ""}>
        <summary>{t.agents.advanced}</summary>
        <label className="field-label" htmlFor={`${id}thread`}>
          {t.agents.thread}
        </label>
        <input
          id={`${id}thread`}
          className="field mono"
          autoComplete="off"
          spellCheck={false}
          value={threadId}
          onChange={(event) => setThreadId(event.target.value)}
          aria-describedby={`${id}thread-hint`}
        />
        <p id={`${id}thread-hint`} className="field-hint">
          {t.agents.threadHint}
        </p>
        <label className="field-label" htmlFor={`${id}input`}>
          {t.agents.input}
        </label>
        <textarea
          id={`${id}input`}
          className="field mono"
          rows={4}
          spellCheck={false}
          value={input}
          onChange={(event) => setInput(event.target.value)}
          aria-invalid={!parsed.ok}
          aria-describedby={`${id}input-hint`}
        />
        <p id={`${id}input-hint`} className={parsed.ok ? "field-hint" : "field-error"}>
          {parsed.ok ? t.agents.inputHint : t.agents.inputInvalid(parsed.reason)}
        </p>
      </details>
      {error !== undefined && <ErrorAlert error={error} isUserAction className={style["error"]} />}
      <div className={style["foot"]}>
        <Button type="submit" variant="primary" icon="play" busy={busy} disabled={!parsed.ok}>
          {busy ? t.agents.starting : t.agents.start}
        </Button>
        <span className={style["hint"]} aria-hidden="true">
          <Kbd>Ctrl</Kbd> <Kbd>Enter</Kbd>
        </span>
      </div>
    </form>
  );
}
